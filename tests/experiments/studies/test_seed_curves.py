"""The run that a comparison adds for each agent: means over seeds with intervals, as TensorBoard draws them."""

from pathlib import Path

import numpy as np
import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.plugins.custom_scalar import layout_pb2

from kernel_gym.config import resolve
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.tracking.metrics import documented
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies import agent_comparison
from kernel_gym.experiments.studies.seed_curves import write_seed_curves
from kernel_gym.experiments.studies.study import Study


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """Two agents and two seeds on a table."""
    base = resolve(overrides={"tasks": ["level1/relu", "level1/gelu"], "budget": 6, "env": {"forecast": True}})
    folder = tmp_path_factory.mktemp("compared")
    made = agent_comparison.agent_comparison(base, ["random", "value"], 2, folder)
    for shard in made.shards:
        train(shard.config, RunFolder.open(made.path(shard), shard.config))
    agent_comparison.write(made)
    return made


def read(folder: Path) -> EventAccumulator:
    return EventAccumulator(str(folder)).Reload()


def test_each_agent_has_a_run_with_means_and_intervals_over_its_seeds(study: Study) -> None:
    outcomes = study.outcomes()
    for agent in ("random", "value"):
        events = read(study.folder / agent)
        tags = events.Tags()["scalars"]
        assert {f"mean/{curve}{end}" for curve in ("solved", "reward") for end in ("", "/low", "/high")} <= set(tags)
        assert all(map(documented, tags))
        mean, low, high = (events.Scalars(f"mean/solved{end}") for end in ("", "/low", "/high"))
        assert [point.step for point in mean] == [2, 4, 6, 8, 10, 12]  # attempts at two tasks, as in the runs
        curves = [run.curve for run in outcomes if run.agent == agent]
        assert [point.value for point in mean] == pytest.approx(np.mean(curves, axis=0))
        assert all(a.value <= m.value <= b.value for a, m, b in zip(low, mean, high, strict=True))


def test_the_means_are_drawn_with_bands_before_the_charts_of_all_runs(study: Study) -> None:
    written = read(study.folder / "value").Tensors("custom_scalars__config__")[0].tensor_proto
    layout = layout_pb2.Layout.FromString(written.string_val[0])
    charts = [chart for category in layout.category for chart in category.chart]
    bands = [(band.value, band.lower, band.upper) for chart in charts[:3] for band in chart.margin.series]
    assert bands == [
        (f"mean/{curve}", f"mean/{curve}/low", f"mean/{curve}/high") for curve in ("solved", "reward", "speedup")
    ]
    assert layout.category[3].title == "Every run"


def test_a_speedup_is_shown_from_where_every_seed_has_one(study: Study) -> None:
    solved = [
        next(attempts for attempts, share in enumerate(run.curve, 1) if share)
        for run in study.outcomes()
        if run.agent == "value"
    ]
    steps = [point.step for point in read(study.folder / "value").Scalars("mean/speedup")]
    assert steps == [2 * attempts for attempts in range(max(solved), 7)]


def test_writing_again_replaces_and_a_single_seed_has_no_mean(study: Study, tmp_path: Path) -> None:
    assert sorted(path.name for path in write_seed_curves(study.folder)) == ["random", "value"]
    assert len(list((study.folder / "value").glob("events.out.tfevents.*"))) == 1
    assert len(read(study.folder / "value").Scalars("mean/solved")) == 6
    config = study.shards[0].config
    train(config, RunFolder.open(tmp_path / "random" / "seed-0", config))
    assert write_seed_curves(tmp_path) == []
    assert study.complete() == list(study.shards)
