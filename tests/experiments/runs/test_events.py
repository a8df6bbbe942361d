"""The events of a run: long runs write fewer points, and whoever speaks seldom is heard all the same."""

from pathlib import Path

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from kernel_gym.config import resolve
from kernel_gym.experiments.runs.events import POINTS, Events


def _points(folder: Path, tag: str) -> list[int]:
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()
    return [event.step for event in events.Scalars(tag)]


def test_curves_of_a_long_run_are_thinned_and_short_ones_are_whole(tmp_path: Path) -> None:
    for attempts in (50, 3 * POINTS):
        events = Events(tmp_path / str(attempts), resolve(), attempts)
        for step in range(1, attempts + 1):
            events.attempt({"reward/mean": 0.5}, step)
            events.agent({"loss": 0.5}, step)
        events.close()
    assert _points(tmp_path / "50", "reward/mean") == _points(tmp_path / "50", "agent/loss") == list(range(1, 51))
    for tag in ("reward/mean", "agent/loss"):
        assert abs(len(_points(tmp_path / str(3 * POINTS), tag)) - POINTS) <= 1, tag


def test_what_a_learner_says_once_an_iteration_is_written(tmp_path: Path) -> None:
    """Its iterations need not end where points of the curves are due: 512 attempts an iteration, a point every 500."""
    events = Events(tmp_path, resolve(), 500 * POINTS)
    steps = list(range(512, 512 * 41, 512))
    for step in steps:
        events.agent({"loss": 0.5}, step)
    events.close()
    assert _points(tmp_path, "agent/loss") == steps
