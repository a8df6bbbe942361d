import json
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from kernel_gym.memory.bank import PREVIOUS, BankError, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible
from kernel_gym.version import __version__

EMBEDDER = StaticEmbedder()
OK = Feasible("ok", latency=4.0)


def _told(task: str) -> MemoryItem:
    return MemoryItem(Kind.EXPERIENCE, task, f"{task} worked", verdict=OK, task=task, source=PREVIOUS)


def _kernel(name: str, parent: int | None = None, device: str = "") -> MemoryItem:
    verdict = replace(OK, device=device)
    return MemoryItem(Kind.TRACE, name, name, code=name, verdict=verdict, task="level1/silu", parent=parent)


@pytest.fixture
def bank():
    with MemoryBank(None, EMBEDDER) as bank:
        bank.add([MemoryItem(Kind.API, "Relu", "Relu(y, x, n);", names=("Relu",))], attempt=False)
        for task in ("level1/relu", "level1/gelu"):
            trace = MemoryItem(Kind.TRACE, task, "code", code=f"// {task}", verdict=OK, task=task)
            bank.add([trace, _told(task)])
        bank.record(Stage.DRAFT, [1, 4], 1.0)
        yield bank


def test_an_import_into_an_empty_bank_gives_the_same_bank(bank, tmp_path):
    file = tmp_path / "memory.jsonl"
    assert bank.export(file) == 5
    with MemoryBank(None, EMBEDDER) as other:
        assert other.import_(file) == 5
        assert other.items() == bank.items()
        assert other.outcomes(range(1, 6)) == bank.outcomes(range(1, 6))
        assert other.attempts == bank.attempts
        assert other.retrieve("relu", 5) == bank.retrieve("relu", 5)
        assert other.import_(file) == 0
        assert len(other) == 5


def test_statistics_of_seed_knowledge_are_imported_unless_the_bank_has_more(bank, tmp_path):
    bank.export(tmp_path / "memory.jsonl")
    page = bank.get(1)
    for own, mean in ((None, 1.0), (-1.0, -1.0)):
        with MemoryBank(None, EMBEDDER) as other:
            (id,) = other.add([page], attempt=False)
            if own is not None:
                other.record(Stage.DRAFT, [id], own)
            other.import_(tmp_path / "memory.jsonl")
            assert other.outcomes([id])[id][Stage.DRAFT].mean == mean


def test_excluded_tasks_leave_no_trace(bank, tmp_path):
    file = tmp_path / "memory.jsonl"
    assert bank.export(file, exclude_tasks=["level1/relu"]) == 3
    assert "level1/relu" not in "".join(file.read_text().splitlines()[1:])
    with MemoryBank(None, EMBEDDER) as other:
        other.add([MemoryItem(Kind.PRACTICE, "own", "own")])
        assert other.import_(file) == 3
        own, page, trace, experience = other.items()
        assert (own.title, page.title, trace.task) == ("own", "Relu", "level1/gelu")
        assert experience.source == trace.id == 3
        header = json.loads(file.read_text().splitlines()[0])
        assert other.origin(trace.id) == f"{header['bank']}#4"
        assert other.origin(own.id) == ""


def test_with_tasks_left_out_no_statistics_are_exported(bank, tmp_path):
    """Statistics of a page that was shown for the excluded task only must not be exported."""
    bank.export(tmp_path / "memory.jsonl", exclude_tasks=["level1/relu"])
    with MemoryBank(None, EMBEDDER) as other:
        other.import_(tmp_path / "memory.jsonl")
        ids = range(1, len(other) + 1)
        assert not any(record.uses for records in other.outcomes(ids).values() for record in records.values())


def test_the_header_says_where_memories_come_from(bank, tmp_path):
    bank.add([_kernel("elsewhere", device="cuda"), _kernel("here", device="ascend-sim")])
    bank.export(tmp_path / "memory.jsonl", provenance={"run": "seed-0", "commits": ["abc"]})
    header = json.loads((tmp_path / "memory.jsonl").read_text().splitlines()[0])
    assert header["provenance"] == {"run": "seed-0", "commits": ["abc"]}
    assert header["devices"] == ["ascend-sim", "cuda"]
    assert header["kernel_gym"] == __version__
    assert datetime.fromisoformat(header["date"]).utcoffset() == timedelta(0)


def test_a_reference_to_an_excluded_item_becomes_none(bank, tmp_path):
    bank.add([_kernel("borrowed", parent=2)])
    bank.export(tmp_path / "memory.jsonl", exclude_tasks=["level1/relu"])
    with MemoryBank(None, EMBEDDER) as other:
        other.import_(tmp_path / "memory.jsonl")
        assert other.items(task="level1/silu")[0].parent is None


def test_children_are_exported_unless_one_end_is_excluded(bank, tmp_path):
    first, second = bank.add([_kernel("one"), _kernel("other", PREVIOUS)])
    bank.add([_kernel("one", parent=second)])
    bank.add([_kernel("one", parent=2)])
    bank.export(tmp_path / "memory.jsonl", exclude_tasks=["level1/relu"])
    with MemoryBank(None, EMBEDDER) as copy:
        copy.import_(tmp_path / "memory.jsonl")
        first, second = (item.id for item in copy.items(task="level1/silu"))
        assert [[item.id for item in copy.children(id)] for id in (first, second)] == [[second], [first]]
        assert copy.problems() == ()


def test_items_of_a_file_are_found_again_under_their_new_ids(bank, tmp_path):
    bank.export(tmp_path / "memory.jsonl", exclude_tasks=["level1/relu"])
    with MemoryBank(None, EMBEDDER) as other:
        other.add([MemoryItem(Kind.PRACTICE, "own", "own")])
        assert other.local_ids(tmp_path / "memory.jsonl") == {}
        other.import_(tmp_path / "memory.jsonl")
        assert other.local_ids(tmp_path / "memory.jsonl") == {1: 2, 4: 3, 5: 4}
        assert [other.get(new).text for new in (2, 3, 4)] == [bank.get(old).text for old in (1, 4, 5)]


def test_a_kernel_of_two_devices_is_exported_with_both_verdicts(bank, tmp_path):
    file = tmp_path / "memory.jsonl"
    bank.add([_kernel("a", device="one"), _kernel("a", device="other"), _kernel("a")])
    bank.export(file)
    with MemoryBank(None, EMBEDDER) as other:
        other.add([_kernel("a", device="other")])
        assert other.import_(file) == len(bank) - 1
        assert sorted(item.verdict.device for item in other.start_points("level1/silu")) == ["", "one", "other"]
        assert len(other.local_ids(file)) == len(set(other.local_ids(file).values())) == len(bank)
        assert other.problems() == ()


def test_an_origin_survives_a_second_export(bank, tmp_path):
    bank.export(tmp_path / "first.jsonl")
    with MemoryBank(None, EMBEDDER) as second, MemoryBank(None, EMBEDDER) as third:
        second.import_(tmp_path / "first.jsonl")
        second.export(tmp_path / "second.jsonl")
        third.import_(tmp_path / "second.jsonl")
        assert third.origin(1) == second.origin(1) != ""


@pytest.mark.parametrize(
    ("content", "says"),
    [
        ("", "not an export"),
        ("{}\n", "not an export"),
        ("not json\n", "not an export"),
        ('{"format": "kernel_gym.memory", "version": 9, "items": 0}\n', "newer kernel_gym"),
        ('{"format": "kernel_gym.memory", "version": 1, "items": 3, "attempts": 0, "bank": ""}\n', "cut short"),
        (
            '{"format": "kernel_gym.memory", "version": 1, "items": 1, "attempts": 0, "bank": ""}\n{"id": 1}\n',
            "line 2: kind: Field required",
        ),
    ],
)
def test_a_bad_file_is_refused_in_one_line_and_changes_nothing(bank, tmp_path, content, says):
    file = tmp_path / "bad.jsonl"
    file.write_text(content)
    before = bank.snapshot()
    with pytest.raises(BankError, match=says) as caught:
        bank.import_(file)
    assert "\n" not in str(caught.value)
    assert bank.snapshot() == before
    with pytest.raises(BankError, match="cannot read"):
        bank.import_(tmp_path / "absent.jsonl")


def test_children_keep_their_order(bank, tmp_path):
    """A kernel that becomes a child late keeps its place among older items."""

    (start,) = bank.add([_kernel("start")])
    (elsewhere,) = bank.add([_kernel("elsewhere")])
    (late,) = bank.add([_kernel("late", elsewhere)])
    (child,) = bank.add([_kernel("child", start)])
    bank.add([_kernel("elsewhere", start)])
    bank.add([_kernel("late", start)])
    assert [item.id for item in bank.children(start)] == [child, elsewhere, late]
    file = tmp_path / "memory.jsonl"
    bank.export(file)
    with MemoryBank(None, EMBEDDER) as other:
        other.import_(file)
        assert other._store.edges() == bank._store.edges()
        assert other.problems() == ()
    header, *lines = file.read_text().splitlines()
    old = {key: value for key, value in json.loads(header).items() if key != "edges"}  # before edges were kept
    file.write_text("\n".join([json.dumps(old), *lines]) + "\n")
    with MemoryBank(None, EMBEDDER) as other:
        other.import_(file)
        assert [item.id for item in other.children(start)] == [child]
        assert other.problems() == ()


@pytest.mark.parametrize("key", ["version", "items", "attempts", "bank"])
def test_a_header_that_lacks_something_is_one_line(bank, tmp_path, key):
    file = tmp_path / "memory.jsonl"
    bank.export(file)
    header, *lines = file.read_text().splitlines()
    without = {name: value for name, value in json.loads(header).items() if name != key}
    file.write_text("\n".join([json.dumps(without), *lines]) + "\n")
    with MemoryBank(None, EMBEDDER) as other:
        for use in (other.import_, other.local_ids):
            with pytest.raises(BankError, match=f"line 1: {key}: Field required"):
                use(file)


@pytest.mark.parametrize("line", ["[]", "{}", '{"id": 1}', "null"])
def test_a_line_that_is_no_item_is_one_line(bank, tmp_path, line):
    file = tmp_path / "memory.jsonl"
    bank.export(file)
    header, _, *lines = file.read_text().splitlines()
    file.write_text("\n".join([header, line, *lines]) + "\n")
    with MemoryBank(None, EMBEDDER) as other:
        for use in (other.import_, other.local_ids):
            with pytest.raises(BankError, match="line 2: "):
                use(file)
        assert len(other) == 0
