"""Compare the simulator's timing with published measurements.

Each point of hardware/ascend_sim/calibration/points.yaml is rebuilt with a kernel of ours and timed at its full shape.
Points marked `fit` were used to choose figures of the chip profile, points marked `check` were not.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table

from kernel_gym.cli import command_line

if TYPE_CHECKING:
    from kernel_gym.hardware.ascend_sim import calibration

EXAMPLES = """
kernel-gym calibrate
kernel-gym calibrate --points add1,add4,dc3 --json
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--points", default="", help="ids of points, separated by commas; all if left out")
    parser.add_argument("--chip", default="910B1", help="chip profile (default: %(default)s, as measured)")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")


def run(arguments: argparse.Namespace) -> int:
    """Time the points and print them beside the measurements; the exit status is 0 if all points ran."""
    from kernel_gym.hardware.ascend_sim import calibration

    predictions = _predict(calibration.select(command_line.words(arguments.points)), arguments.chip)
    summary = calibration.summary(predictions)
    if arguments.json:
        print(json.dumps({"summary": asdict(summary), "points": [_row(p) for p in predictions]}))
    else:
        _print(predictions, summary, arguments.chip)
    return 1 if summary.missing else 0


def _predict(points: tuple[calibration.Point, ...], chip: str) -> list[calibration.Prediction]:
    from kernel_gym.hardware.ascend_sim import calibration
    from kernel_gym.hardware.ascend_sim.device import AscendSim

    with AscendSim(chip=chip, timeout=calibration.TIMEOUT, budget=calibration.BUDGET) as device:
        return [calibration.predict(point, device) for point in points]


def _row(prediction: calibration.Prediction) -> dict[str, object]:
    point = prediction.point
    return {
        "id": point.id,
        "set": point.set,
        "what": point.what,
        "measured_us": point.us,
        "predicted_us": prediction.us,
        "error": prediction.error,
        "measured_pipes": point.pipes,
        "predicted_pipes": prediction.pipes,
        "reason": prediction.reason,
        "seconds": round(prediction.seconds, 2),
    }


def _print(predictions: list[calibration.Prediction], summary: calibration.Summary, chip: str) -> None:
    table = Table(title=f"Predicted against measured, {chip}")
    for name, justify in (("point", "left"), ("set", "left"), ("what", "left"), ("measured us", "right")):
        table.add_column(name, justify=justify)  # type: ignore[arg-type]
    table.add_column("predicted us", justify="right")
    table.add_column("error", justify="right")
    for p in predictions:
        error = "failed" if p.error is None else f"{100 * p.error:+.1f}%"
        predicted = "-" if p.us is None else f"{p.us:,.2f}"
        table.add_row(p.point.id, p.point.set, p.point.what, f"{p.point.us:,.2f}", predicted, error)
    console = Console()
    console.print(table)
    for p in predictions:
        if p.reason:
            console.print(f"{p.point.id} failed: {p.reason}")
    console.print(
        f"median error: fit {100 * summary.fit:.1f}%, check {100 * summary.check:.1f}%; "
        f"Kendall tau over {summary.predicted} points {summary.tau:.3f}"
    )
