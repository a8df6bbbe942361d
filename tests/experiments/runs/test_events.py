"""The events of a run: long runs write fewer points, and whoever speaks seldom is heard all the same."""

from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2
from tensorboard.plugins.hparams import metadata

from kernel_gym.config import resolve
from kernel_gym.experiments.drawing import GRADES
from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome
from kernel_gym.experiments.runs.tracking import images
from kernel_gym.experiments.runs.tracking.events import POINTS, RUN_CHARTS, Events


@pytest.fixture
def few_figures() -> None:
    """Runs of these tests draw as often as those of users."""


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


def test_runs_on_forecasts_have_a_point_of_every_curve_for_each_iteration(tmp_path: Path) -> None:
    events = Events(tmp_path, resolve(overrides={"env": {"forecast": True}}), 20, batch=5)
    for step in range(1, 21):
        events.attempt({"reward/mean": step, f"latency/{step % 5}": step}, step)
    events.close()
    assert _points(tmp_path, "reward/mean") == [5, 10, 15, 20]
    assert _points(tmp_path, "latency/3") == [5, 10, 15, 20]


@pytest.mark.parametrize(("forecast", "drawn"), [(True, [200]), (False, list(range(20, 201, 20)))])
def test_figures_are_drawn_ten_times_and_on_forecasts_once(tmp_path: Path, forecast: bool, drawn: list[int]) -> None:
    events = Events(tmp_path, resolve(overrides={"env": {"forecast": forecast}}), 200)
    assert [step for step in range(1, 201) if events.draws(step)] == drawn
    events.close()


def test_metrics_of_a_learners_iterations_are_written(tmp_path: Path) -> None:
    """Its iterations need not end where points of the curves are due: 512 attempts an iteration, a point every 500."""
    events = Events(tmp_path, resolve(), 500 * POINTS)
    steps = list(range(512, 512 * 41, 512))
    for step in steps:
        events.agent({"loss": 0.5}, step)
    events.close()
    assert _points(tmp_path, "agent/loss") == steps


def _hparams(folder: Path, **overrides: Any) -> tuple[Any, Any]:
    """Return the columns and the row that a complete run writes."""
    events = Events(folder, resolve(overrides=overrides), 8)
    events.settings(RunOutcome("", 0, dict.fromkeys(FIGURES, 0.5) | {"speedup": None}, (0.5,)))
    events.close()
    written = EventAccumulator(str(folder)).Reload()
    assert set(written.Tags()["scalars"]) == {f"hparam/{name}" for name in FIGURES if name != "speedup"}
    content = written.PluginTagToContent("hparams")
    return (
        metadata.parse_experiment_plugin_data(content[metadata.EXPERIMENT_TAG]),
        metadata.parse_session_start_info_plugin_data(content[metadata.SESSION_START_INFO_TAG]),
    )


def test_seeds_of_one_agent_are_one_row_and_all_agents_have_the_same_columns(tmp_path: Path) -> None:
    first, second, other = (
        _hparams(tmp_path / str(i), **settings)
        for i, settings in enumerate(
            [
                {"agent": "value", "seed": 0, "agent_options": {"epsilon": 0.05}},
                {"agent": "value", "seed": 1, "agent_options": {"epsilon": 0.05}},
                {"agent": "random", "budget": 9, "env": {"picks": 3}},
            ]
        )
    )
    assert first[1].group_name == second[1].group_name != other[1].group_name
    rows = [{name: value.string_value for name, value in row.hparams.items()} for _, row in (first, other)]
    assert [(row["agent"], row["agent options"], row["settings"]) for row in rows] == [
        ("value", "epsilon 0.05", ""),
        ("random", "", "budget 9, env.picks 3"),
    ]
    for columns, row in (first, second, other):
        assert {column.name for column in columns.hparam_infos} == set(row.hparams)
        assert {metric.name.tag for metric in columns.metric_infos} == {f"hparam/{name}" for name in FIGURES}


def test_the_main_charts_are_laid_out(tmp_path: Path) -> None:
    Events(tmp_path, resolve(), 8).close()
    written = EventAccumulator(str(tmp_path)).Reload().Tensors("custom_scalars__config__")[0].tensor_proto
    layout = layout_pb2.Layout.FromString(written.string_val[0])
    assert [category.title for category in layout.category] == list(RUN_CHARTS)
    tags = [list(chart.multiline.tag) for category in layout.category for chart in category.chart]
    assert tags == [["solved/correct"], ["reward/mean"], ["speedup/first_draft"]]


@pytest.mark.parametrize("tasks", [1, 40])
@pytest.mark.slow
def test_images_are_readable_where_tensorboard_shrinks_them(tasks: int) -> None:
    verdicts = [(False, None), (True, None), (True, 4.0), (True, 2.0)]
    records = [
        {"task": f"level1/{'long_' * i}name", "verdict": {"compiled": ok, "feasible": us is not None, "latency_us": us}}
        for i in range(tasks)
        for ok, us in verdicts
    ]
    shown = 350  # pixels that an image has in TensorBoard
    for name, pixels in images.figures(records, {}, 4).items():
        height, width, _ = pixels.shape
        assert width == images.WIDTH, name
        assert images.LETTERS * shown / width >= 10, "letters of less than 10 pixels cannot be read"
        assert height >= images.ROW * (tasks if name.endswith("attempts") else 1)
    drawn = {
        tuple(int(value) for value in pixel)
        for pixel in images.figures(records, {}, 4)["figure/attempts"].reshape(-1, 3)
    }
    assert {tuple(bytes.fromhex(grade[1:])) for grade in GRADES} <= drawn
