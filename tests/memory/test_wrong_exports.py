"""A changed export is refused as a whole, with its line, or does no harm."""

import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.memory.bank import PREVIOUS, BankError, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Profile, Uncompilable

EMBEDDER = StaticEmbedder()


@cache
def _exported() -> tuple[dict[str, Any], ...]:
    """Make a header and items of every kind, with statistics, children and a verdict of every outcome."""
    with MemoryBank(None, EMBEDDER) as bank, TemporaryDirectory() as folder:
        page = MemoryItem(Kind.API, "Relu", "Relu(y, x, n);", names=("Relu",))
        bank.add([page, MemoryItem(Kind.PRACTICE, "two", "two buffers", bottlenecks=("mte2",))], attempt=False)
        profile = Profile({"V": 1.5}, {"hbm_read": 64}, {"V": 0.5}, {"Relu": 2}, "mte2", "waits for memory")
        for verdict in (
            Feasible("ok", "sim", "tier", {"run": 0.5}, ("note",), latency=4.0, profile=profile),
            Cheated("no", gate="binary", rule="r"),
            Incorrect("no", cause="fault", rule="r", line=3, case="c", plain=False),
            Uncompilable("no", line=2),
        ):
            task = {"task": "level1/relu", "category": "activation", "operators": ("aten.relu",), "stage": Stage.DRAFT}
            own = {"verdict": verdict, **task}
            start = bank.items(Kind.TRACE)[0].id if bank.items(Kind.TRACE) else None
            bank.add(
                [
                    MemoryItem(Kind.TRACE, "a", f"// {verdict.outcome}", code=verdict.outcome, parent=start, **own),
                    MemoryItem(Kind.EXPERIENCE, "b", f"told: {verdict.outcome}", source=PREVIOUS, **own),
                ]
            )
        bank.record(Stage.DRAFT, range(1, 7), 1.0)
        bank.record(Stage.REFINE, [3, 4], -0.5)
        bank.export(file := Path(folder) / "memory.jsonl")
        return tuple(json.loads(line) for line in file.read_text().splitlines())


def _places(data: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value in JSON data, inner ones too."""
    inner = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list | tuple) else ()
    for key, value in inner:
        yield (*path, key)
        yield from _places(value, (*path, key))


def _replaced(data: Any, path: tuple[Any, ...], value: Any) -> Any:
    if not path:
        return value
    pairs = data.items() if isinstance(data, dict) else enumerate(data)
    changed = {key: _replaced(old, path[1:], value) if key == path[0] else old for key, old in pairs}
    return changed if isinstance(data, dict) else list(changed.values())


#: Places in an export by their names, so that no kind of field is drawn more often for being there more often.
_PLACES: dict[str, list[tuple[Any, ...]]] = {}
for _path in _places(_exported()):
    _name = ".".join(key for key in _path if isinstance(key, str)) + "[]" * sum(isinstance(k, int) for k in _path[1:])
    _PLACES.setdefault(_name, []).append(_path)

scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 12),
    st.integers(),
    st.sampled_from([2**63, -(2**63) - 1, 10**400]),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["bogus", "draft", "trace", "practice", "feasible", "\ud800", "level1/gelu"]),
)
anything = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=2),
    max_leaves=5,
)


@settings(max_examples=400)
@given(st.sampled_from(sorted(_PLACES)).flatmap(lambda name: st.sampled_from(_PLACES[name])), anything)
@pytest.mark.slow
def test_a_file_with_one_wrong_value_is_refused_or_harmless(place, value):
    changed = _replaced(_exported(), place, value)
    with TemporaryDirectory() as folder, MemoryBank(None, EMBEDDER) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "own", "own"), MemoryItem(Kind.PRACTICE, "mine", "mine")])
        bank.record(Stage.REFINE, [1], 0.25)
        before = bank._store.serialize()
        file = Path(folder) / "memory.jsonl"
        file.write_text("\n".join(json.dumps(line) for line in changed) + "\n")
        try:
            bank.import_(file)
        except BankError as error:
            refused = str(error)
            assert bank._store.serialize() == before
            assert "\n" not in refused
        assert bank.problems() == ()
        assert len(bank.retrieve("relu", 99)) == len(bank.items()) == len(bank)
        for item in bank.items():
            assert bank.lineage(item.id)[-1] == item
            assert all(child.verdict is not None for child in bank.children(item.id))


#: Line 4 is a feasible trace, line 5 its experience.
WRONG: dict[str, tuple[int, str, Any, str]] = {
    "stage of outcomes": (4, "outcomes", [["bogus", 1, 1, 1]], "line 4: outcomes.0.0: Input should be 'draft' or"),
    "no uses": (4, "outcomes", [["draft", 0, 1, 1]], "line 4: outcomes.0.1: Input should be greater than"),
    "short outcomes": (4, "outcomes", [["draft", 1]], "line 4: outcomes.0.2: Field required"),
    "title": (4, "title", 5, "line 4: title: Input should be a valid string"),
    "operators": (4, "operators", [1], "line 4: operators.0: Input should be a valid string"),
    "born": (4, "born", "x", "line 4: born: Input should be a valid integer"),
    "born later": (4, "born", 99, "line 4: born is 99, the header counts 4 attempts"),
    "verdict": (
        4,
        "verdict",
        None,
        "line 4: an item of the kind trace needs its verdict",
    ),
    "word": (4, "operators", "aten", "line 4: operators: Input should be a valid tuple"),
    "number in a word": (4, "born", "1", 'line 4: born cannot be "1"'),
    "unknown": (4, "colour", "red", 'line 4: colour cannot be "red"'),
    "later source": (5, "source", 7, "line 5: there is no trace 7 before it"),
    "same id": (5, "id", 1, "line 5: an earlier line is item 1 already"),
    "half a letter": (4, "task", "\ud800", "line 4: 'utf-8' codec can't encode"),
    "edges": (1, "edges", [[1, 2]], "line 1: there is no trace 1"),
    "attempts": (1, "attempts", 2**63, "line 1: attempts: Input should be less than"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_value_is_named_with_its_line(name: str, tmp_path: Path) -> None:
    number, field, value, says = WRONG[name]
    file = tmp_path / "memory.jsonl"
    lines = [line | {field: value} if i == number else line for i, line in enumerate(_exported(), start=1)]
    file.write_text("\n".join(json.dumps(line) for line in lines) + "\n")
    with MemoryBank(None, EMBEDDER) as bank:
        with pytest.raises(BankError) as caught:
            bank.import_(file)
        assert str(caught.value).startswith(f"{file}, {says}"), caught.value
        assert len(bank) == bank.attempts == 0
