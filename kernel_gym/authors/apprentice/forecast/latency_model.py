"""The latency of a schedule, interpolated between those that were measured.

The logarithm of the latency is a sum of two parts. The first is common to all tasks: a linear function of the
schedule's fields and of their products in pairs, relative to the task's best schedule, fitted to all measurements. The
second belongs to the task: a Gaussian process on what the first leaves over, which meets every measured latency. A
task that was never measured has the first part alone, so that its ratios are those of an average task.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property, lru_cache
from itertools import combinations
from math import exp, log

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.forecast.measurements import Measurements, Point

Vector = NDArray[np.float64]

_FIELDS = tuple(field.name for field in fields(Schedule))
#: Decay of the process's correlation over the whole range of a field, and its noise.
DECAY, NOISE = 0.3, 1e-3
#: Weight of the penalty on the coefficients of the common part.
RIDGE = 1.0


@lru_cache(maxsize=65536)
def relevant(schedule: Schedule, names: frozenset[str]) -> Schedule:
    """Return the schedule with the best value in every field that changes nothing for a task."""
    return replace(schedule, **{name: getattr(Schedule, name) for name in _FIELDS if name not in names})


def position(schedule: Schedule) -> Vector:
    """Return the fields as numbers: 0 for the best value, 1 for the beginner's."""
    cores, tile, buffers, batch, *switches = astuple(schedule)
    return np.array(
        [
            log(48 / cores) / log(48),
            log(16384 / (tile or 16384)) / log(64),
            2 - buffers,
            log(64 / (batch or 64)) / log(64),
            *(1 - int(switch) for switch in switches),
        ]
    )


@dataclass(frozen=True)
class Interpolation:
    """The measured points of one task and the weights of its process."""

    points: tuple[Point, ...]
    positions: Vector
    best: float
    weights: Vector

    def residual(self, where: Vector) -> float:
        """Return what the process adds to the common part."""
        return float(_correlation(where[None], self.positions)[0] @ self.weights)


class LatencyModel:
    """Forecasts latencies and bottlenecks from measurements."""

    def __init__(self, measurements: Measurements) -> None:
        feasible = {
            task: tuple(point for point in points if point.outcome == "feasible")
            for task, points in measurements.points.items()
        }
        self._points = {task: points for task, points in feasible.items() if points}
        self._measured = {task: {_place(p): p for p in points} for task, points in measurements.points.items()}
        self._tasks: dict[str, Interpolation] = {}

    def forecast(self, task: str, schedule: Schedule, names: Collection[str]) -> Point:
        """Return the point of a schedule; `names` are the fields that matter to the task.

        Args:
            task: Id of the task.
            schedule: The schedule.
            names: The fields that change the task's kernels.

        Returns:
            The latency, with the bottleneck and diagnosis of the nearest measured schedule. If that one ran into a
            limit of the device, so does this one.
        """
        schedule = relevant(schedule, frozenset(names))
        where = position(schedule)
        common = float(_terms(where) @ self._coefficients)
        if task not in self._points:
            return replace(self._nearest_of_all(where), schedule=schedule, latency=exp(self._typical + common))
        own, measured = self._interpolation(task), self._measured[task]
        places = np.array(list(measured))
        near = list(measured.values())[int(np.abs(places - where).sum(axis=1).argmin())]
        if near.outcome != "feasible":
            return replace(near, schedule=schedule)
        return replace(near, schedule=schedule, latency=exp(own.best + common + own.residual(where)))

    def _interpolation(self, task: str) -> Interpolation:
        if task not in self._tasks:
            self._tasks[task] = self._interpolated(self._points[task])
        return self._tasks[task]

    def _interpolated(self, points: tuple[Point, ...]) -> Interpolation:
        positions = np.stack([position(point.schedule) for point in points])
        best, values = _relative(points)
        left = values - _terms(positions) @ self._coefficients
        covariance = _correlation(positions, positions) + NOISE * np.eye(len(points))
        weights: Vector = np.asarray(np.linalg.solve(covariance, left), np.float64)
        return Interpolation(points, positions, best, weights)

    @cached_property
    def _coefficients(self) -> Vector:
        """The common part, from all tasks."""
        if not self._points:
            return np.zeros(len(_terms(position(Schedule()))))
        positions = [position(point.schedule) for points in self._points.values() for point in points]
        rows, values = _terms(np.stack(positions)), np.concatenate([_relative(p)[1] for p in self._points.values()])
        coefficients: Vector = np.linalg.solve(rows.T @ rows + RIDGE * np.eye(rows.shape[1]), rows.T @ values)
        return coefficients

    @cached_property
    def _typical(self) -> float:
        return float(np.median([_relative(points)[0] for points in self._points.values()] or [log(100.0)]))

    def _nearest_of_all(self, where: Vector) -> Point:
        every = self._all_positions
        if not len(every[0]):
            return Point(Schedule(), 1.0, "mte2", "")
        return every[0][int(np.abs(every[1] - where).sum(axis=1).argmin())]

    @cached_property
    def _all_positions(self) -> tuple[list[Point], Vector]:
        points = [point for task in sorted(self._points) for point in self._points[task]]
        return points, np.stack([position(point.schedule) for point in points]) if points else np.zeros((0, 10))


def _relative(points: tuple[Point, ...]) -> tuple[float, Vector]:
    """Return the logarithm of the best schedule's latency (of the fastest, if it is not there) and all others to it."""
    logs = np.log([point.latency for point in points])
    whole = [log(point.latency) for point in points if point.schedule == Schedule()]
    best = whole[0] if whole else float(logs.min())
    return best, logs - best


def _place(point: Point) -> tuple[float, ...]:
    return tuple(position(point.schedule).tolist())


def _terms(where: Vector) -> Vector:
    """Return the terms of the common part: the fields and their products in pairs."""
    pairs = [where[..., i] * where[..., j] for i, j in combinations(range(where.shape[-1]), 2)]
    return np.concatenate([where, np.stack(pairs, axis=-1)], axis=-1)


def _correlation(a: Vector, b: Vector) -> Vector:
    distance: Vector = np.abs(a[:, None] - b[None]).sum(axis=2)
    return np.exp(-DECAY * distance)
