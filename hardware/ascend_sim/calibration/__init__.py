"""Compares published measurements with the simulator's predictions.

`points.yaml` holds the measurements; each names a kernel in this folder that reproduces the measured one. Kernels run
at the published shape, with their instructions timed and no data computed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median
from typing import Any, Literal

from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import ConfigError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

FOLDER = Path(__file__).parent
#: The chip that the measurements come from, by its clock.
CHIP = "910B1"
#: Scalar loops at full shape take a few billion basic blocks.
BUDGET, TIMEOUT = 20_000_000_000, 600.0


@dataclass(frozen=True)
class Point:
    """One measurement: which kernel, at which shape, and how long it took."""

    id: str
    set: Literal["fit", "check"]
    kernel: str
    signature: Signature
    us: float
    measures: Literal["task", "core"] = "task"
    pipes: dict[str, float] = field(default_factory=dict)
    what: str = ""


@dataclass(frozen=True)
class Prediction:
    """The simulator's prediction for a point; `us` is None and `reason` is set if the kernel does not run."""

    point: Point
    us: float | None
    pipes: dict[str, float] = field(default_factory=dict)
    reason: str = ""
    seconds: float = 0.0

    @property
    def error(self) -> float | None:
        """Relative to the measurement; above zero if too slow."""
        return None if self.us is None else self.us / self.point.us - 1.0


def points() -> tuple[Point, ...]:
    """Return all measurements, in the order of the file."""
    data = parse_yaml((FOLDER / "points.yaml").read_text(encoding="utf-8"))
    return tuple(_point(entry) for entry in data["points"])


def _point(entry: dict[str, Any]) -> Point:
    dtype = entry.pop("dtype", "float32")
    inputs = tuple(InputSpec(tuple(shape), dtype) for shape in entry.pop("in", ()))
    outputs = tuple(TensorSpec(tuple(shape), dtype) for shape in entry.pop("out", ()))
    signature = Signature(inputs, outputs, ints=tuple(entry.pop("ints", ())))
    return Point(signature=signature, **entry)


def select(names: Iterable[str]) -> tuple[Point, ...]:
    """Return the points with these ids; all if there are none."""
    point_ids, points_by_id = list(names), {point.id: point for point in points()}
    unknown = [name for name in point_ids if name not in points_by_id]
    if unknown:
        raise ConfigError(f"no calibration point {unknown[0]}; there are {', '.join(points_by_id)}")
    return tuple(points_by_id[name] for name in point_ids) if point_ids else tuple(points_by_id.values())


def predict(point: Point, device: AscendSim) -> Prediction:
    """Run the point's kernel for its timing."""
    build = device.build(Kernel((FOLDER / f"{point.kernel}.cpp").read_text(encoding="utf-8"), trusted=True))
    if build.diagnostics:
        return Prediction(point, None, reason=build.diagnostics[0].message)
    run = device.run(build, Inputs(point.signature))
    if run.status != "ok" or run.latency_us is None or run.profile is None:
        reason = run.fault.message if run.fault else f"{run.status} {run.code}"
        return Prediction(point, None, reason=reason, seconds=run.seconds)
    us = run.latency_us - (run.profile.waits["launch"] if point.measures == "core" else 0.0)
    return Prediction(point, us, pipes=run.profile.pipes, seconds=run.seconds)


@dataclass(frozen=True)
class Summary:
    """The quality of predictions: median error of each set, and order over all."""

    fit: float
    check: float
    tau: float
    predicted: int
    missing: tuple[str, ...]


def summary(predictions: Sequence[Prediction]) -> Summary:
    """Return the median absolute error of both sets, Kendall's tau over all that ran."""
    ran = [(p.point, p.us) for p in predictions if p.us is not None]
    errors = {name: [abs(us / point.us - 1) for point, us in ran if point.set == name] for name in ("fit", "check")}
    return Summary(
        fit=median(errors["fit"]) if errors["fit"] else float("nan"),
        check=median(errors["check"]) if errors["check"] else float("nan"),
        tau=kendall([point.us for point, _ in ran], [us for _, us in ran]),
        predicted=len(ran),
        missing=tuple(p.point.id for p in predictions if p.us is None),
    )


def kendall(x: Sequence[float], y: Sequence[float]) -> float:
    """Return Kendall's tau: pairs in the same order less pairs in opposite order, over all pairs."""
    pairs = [(i, j) for i in range(len(x)) for j in range(i)]
    agree = sum(_sign(x[i] - x[j]) * _sign(y[i] - y[j]) for i, j in pairs)
    return agree / len(pairs) if pairs else float("nan")


def _sign(value: float) -> int:
    return (value > 0) - (value < 0)
