"""The simulator's timing against published measurements, on the real device with our own kernels."""

from __future__ import annotations

import math
import re

import pytest

from kernel_gym.errors import ConfigError
from kernel_gym.hardware.ascend_sim import calibration, chip
from kernel_gym.hardware.ascend_sim.device import AscendSim

LONG = {"add0", "dc1"}
SOURCES = ("documented", "measured", "fitted", "guess")


@pytest.fixture(scope="module")
def predictions() -> list[calibration.Prediction]:
    chosen = [point for point in calibration.points() if point.id not in LONG]
    with AscendSim(chip=calibration.CHIP, timeout=calibration.TIMEOUT, budget=calibration.BUDGET) as device:
        return [calibration.predict(point, device) for point in chosen]


def test_two_thirds_of_the_points_are_for_fitting_and_every_family_is_checked() -> None:
    points = calibration.points()
    checked = [point for point in points if point.set == "check"]
    assert len(points) == 24
    assert len(checked) == 8
    assert {point.kernel for point in checked} == {point.kernel for point in points}


@pytest.mark.slow
def test_every_point_runs_at_its_published_shape(predictions: list[calibration.Prediction]) -> None:
    assert [(p.point.id, p.reason) for p in predictions if p.us is None] == []


def test_points_that_were_not_fitted_are_predicted(predictions: list[calibration.Prediction]) -> None:
    quality = calibration.summary(predictions)
    assert quality.check < 0.03
    assert quality.fit < 0.03
    assert quality.tau > 0.99


def test_no_point_is_far_off(predictions: list[calibration.Prediction]) -> None:
    assert {p.point.id: p.error for p in predictions if p.error is None or abs(p.error) > 0.11} == {}


def test_the_pipe_that_bounds_a_copy_is_as_busy_as_measured(predictions: list[calibration.Prediction]) -> None:
    for p in predictions:
        if p.point.kernel in {"copy_in", "copy_nz"}:
            assert p.pipes["MTE2"] == pytest.approx(p.point.pipes["MTE2"], rel=0.15), p.point.id


#: How far a pipe's time may be from the measured one.
PIPES = [
    ("MTE2", {"add1", "add2", "add3", "add4", "add5", "add6"}, 0.15),
    ("MTE2", {"mm0", "mm8"}, 0.05),
    ("MTE2", {"mm2"}, 0.2),
    ("M", {"mm0", "mm2", "mm8"}, 0.15),
    ("S", {"add1"}, 0.05),
    ("S", {"add2", "add3", "add4"}, 0.3),
]


@pytest.mark.parametrize(("pipe", "names", "error"), PIPES)
def test_pipes_are_as_busy_as_measured(
    predictions: list[calibration.Prediction], pipe: str, names: set[str], error: float
) -> None:
    for p in predictions:
        if p.point.id in names:
            assert p.pipes[pipe] == pytest.approx(p.point.pipes[pipe], rel=error), p.point.id


def test_the_steps_of_the_tuning_example_are_ordered(predictions: list[calibration.Prediction]) -> None:
    us = {p.point.id: p.us or math.nan for p in predictions}
    assert us["add1"] > us["add2"] > us["add3"] > us["add4"] > us["add5"] > us["add6"]
    assert us["dc4"] > us["dc3"]
    assert us["dc8"] > us["dc9"]
    assert us["mm0"] > us["mm2"] > us["mm8"]


@pytest.mark.slow
def test_the_longest_points_are_predicted() -> None:
    """Billions of scalar accesses: `make calibrate`."""
    with AscendSim(chip=calibration.CHIP, timeout=calibration.TIMEOUT, budget=calibration.BUDGET) as device:
        predictions = [calibration.predict(point, device) for point in calibration.select(LONG)]
    assert all(p.error is not None and abs(p.error) < 0.15 for p in predictions)


def test_an_unknown_point_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="no calibration point add99; there are add0"):
        calibration.select(["add99"])


def test_kendall_counts_pairs() -> None:
    assert calibration.kendall([1, 2, 3], [10, 20, 30]) == 1
    assert calibration.kendall([1, 2, 3], [30, 20, 10]) == -1
    assert calibration.kendall([1, 2, 3], [10, 30, 20]) == pytest.approx(1 / 3)


@pytest.mark.parametrize("path", sorted(chip.CHIPS.glob("*.yaml")), ids=lambda path: path.stem)
def test_every_figure_has_a_source(path) -> None:  # type: ignore[no-untyped-def]
    group = ""
    for line in path.read_text().splitlines():
        if re.match(r"# Passes", line):
            group = line
        figure = re.match(r"\s*\w+: (?:[\d.]+|\{.*\})\s*(#.*)?$", line)
        if figure and not (figure[1] or "guess" in group or "`pass.row`" in group):
            assert re.search(r"launch: 0$", line), line
        if figure and figure[1]:
            assert any(source in figure[1] for source in SOURCES), line
