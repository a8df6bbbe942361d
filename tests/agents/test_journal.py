"""The journal: replayed, torn lines cut, drift refused."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.agents.journal import Journal
from kernel_gym.errors import KernelGymError

records = st.lists(
    st.fixed_dictionaries(
        {"task": st.text(max_size=5), "reward": st.floats(-1, 1), "verdict": st.just({"seconds": 1})}
    ),
    max_size=6,
)


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
    _write(path, [{"reward": 1.0, "verdict": {"feasible": True, "seconds": {"compile": 0.1}}}])
    _write(path, [{"reward": 1.0, "verdict": {"feasible": True, "seconds": {"compile": 0.7}}}])
    with pytest.raises(KernelGymError, match=r"attempt 0 .*\(reward\)"):
        _write(path, [{"reward": -1.0, "verdict": {"feasible": True, "seconds": {}}}])


def test_a_file_that_is_no_journal_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("not json\n")
    with pytest.raises(KernelGymError) as error:
        Journal(path)
    assert "\n" not in str(error.value)
