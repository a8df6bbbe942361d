"""The journal: replayed, torn lines cut, drift refused."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from journals import journal_row

from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.verdict import from_json

records = st.lists(st.builds(journal_row, st.text(max_size=5), st.floats(-1, 1)), max_size=6)


def _write(path: Path, rows: list[dict[str, Any]]) -> None:
    journal = Journal(path)
    for row in rows:
        journal.write(row)
    journal.close()


@given(rows=records, cut=st.integers(0, 400))
def test_killed_at_any_byte_the_journal_comes_out_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: list[dict[str, Any]], cut: int
) -> None:
    path = tmp_path_factory.mktemp("run") / "results.jsonl"
    _write(path, rows)
    whole = path.read_bytes()
    path.write_bytes(whole[: max(0, len(whole) - cut)])
    _write(path, rows)
    assert path.read_bytes() == whole


def test_times_may_differ_on_replay_but_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    _write(path, [journal_row(seconds=0.1)])
    _write(path, [journal_row(seconds=0.7)])
    with pytest.raises(KernelGymError, match=r"attempt 0 .*\(reward\)"):
        _write(path, [journal_row(reward=-1.0)])


def test_verdicts_of_earlier_versions_are_replayed_as_strict(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    row = journal_row()
    row["verdict"] = from_json(row["verdict"]).to_json()
    earlier = row | {"verdict": {key: row["verdict"][key] for key in row["verdict"] if key not in ("policy", "secret")}}
    _write(path, [earlier])
    _write(path, [row])
    with pytest.raises(KernelGymError, match=r"attempt 0 .*\(verdict\)"):
        _write(path, [row | {"verdict": row["verdict"] | {"policy": "reference"}}])


def test_a_run_goes_on_with_the_secret_that_it_began_with(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    verdict = from_json(journal_row()["verdict"]).to_json()
    one, two = (journal_row() | {"verdict": verdict | {"secret": secret}} for secret in ("one", "two"))
    _write(path, [one, one])
    with pytest.raises(KernelGymError, match="began with another secret: set KERNEL_GYM_SECRET"):
        _write(path, [one, one, two])
    assert len(Journal.read(path)) == 2


def test_one_process_at_a_time_writes_the_journal_and_others_may_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "results.jsonl"
    monkeypatch.setattr("kernel_gym.experiments.runs.journal.PATIENCE", 0.2)
    journal = Journal(path)
    journal.write(journal_row("a"))
    with pytest.raises(KernelGymError, match="another process is at work"):
        Journal(path)
    with path.open("a") as file:
        file.write('{"task": "half')  # as a reader may see a line that is being written
    before = path.read_bytes()
    assert Journal.read(path) == [journal_row("a")]
    assert path.read_bytes() == before, "reading changes nothing"
    journal.close()
    _write(path, [journal_row("a"), journal_row("b")])
    assert Journal.read(path) == [journal_row("a"), journal_row("b")]


def test_a_run_that_is_under_way_keeps_its_bank(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_gym.experiments.runs.journal.PATIENCE", 0.0)
    folder = RunFolder(tmp_path)
    folder.bank.write_text("of an earlier try")
    journal = folder.open_journal()
    assert not folder.bank.exists()
    folder.bank.write_text("in use")
    with pytest.raises(KernelGymError, match="another process is at work"):
        folder.open_journal()
    assert folder.bank.exists()
    journal.close()


def test_a_killed_writer_releases_the_journal(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    code = (
        "import sys, time; from pathlib import Path; from kernel_gym.experiments.runs.journal import Journal\n"
        f"journal = Journal(Path(sys.argv[1])); journal.write({journal_row()})\n"
        "print('written', flush=True); time.sleep(60)"
    )
    writer = subprocess.Popen([sys.executable, "-c", code, str(path)], stdout=subprocess.PIPE, text=True)
    assert writer.stdout is not None
    assert writer.stdout.readline() == "written\n"
    writer.kill()
    journal = Journal(path)  # waits for the writer to be gone
    assert journal.records == [journal_row()]
    journal.close()
    writer.wait()


VERDICT = journal_row()["verdict"]


def _line(**changes: Any) -> bytes:
    return json.dumps(journal_row() | changes).encode()


@pytest.mark.parametrize(("line", "says"), [
    (b"not json", "JSONDecodeError"),
    (b"", "JSONDecodeError"),
    (b"\xff\xfe\xff", "UnicodeDecodeError"),
    (b"\0\0\0\0", "JSONDecodeError"),
    (b"[]", "it: "),
    (b'{"task": "level1/relu"}', "stage: Field required"),
    (_line(context="3"), "context: "),
    (_line(verdict={}), "verdict.outcome: Field required"),
    (_line(verdict=VERDICT | {"outcome": "fine"}), "KeyError: 'fine'"),
    (_line(verdict=VERDICT | {"colour": "blue"}), "colour"),
    (_line(verdict=VERDICT | {"latency": -1.0}), "positive latency"),
])  # fmt: skip
def test_a_line_that_is_no_record_is_named_with_what_to_do(line: bytes, says: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    _write(path, [journal_row()])
    path.write_bytes(path.read_bytes() + line + b"\n")
    for use in (Journal, Journal.read):
        with pytest.raises(KernelGymError) as error:
            use(path)
        text = str(error.value)
        assert f"{path} is not a journal: line 2" in text
        assert says in text
        assert "\n" not in text
