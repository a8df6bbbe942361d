"""Fits the constants of an author profile to published figures, and returns an ensemble that fits equally well.

The figures are binomial: shares of so many tasks. The fit minimises their deviance by differential evolution. All
profiles that the search tried and whose deviance is not worse than the best by more than chance form the ensemble.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy import optimize, stats

from kernel_gym.authors.apprentice.behaviour.misreading import KINDS
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile, profile_members, ranges
from kernel_gym.authors.apprentice.calibration.protocols import Protocols
from kernel_gym.authors.apprentice.calibration.targets import Targets
from kernel_gym.errors import ConfigError

#: A constant that has no typical value: its draws are uniform between 0 and 1.
SKELETON = "skeleton"
#: The constants that can be fitted, with their ranges. `meaning` stands for formula, boundary and precision alike.
RANGES: dict[str, tuple[float, float]] = {
    "skill": (-4.0, 3.0),
    "belief": (0.0, 4.0),
    "grasp": (0.0, 4.0),
    "verified": (0.0, 8.0),
    "hinted": (0.0, 8.0),
    "inertia": (0.0, 1.0),
    "copying": (0.7, 0.999),
    "meaning": (-3.0, 6.0),
    "axis": (-3.0, 6.0),
}


@dataclass(frozen=True)
class Row:
    """One figure of a fitted profile beside its target, with the binomial 95% interval of the fitted share."""

    label: str
    target: float
    fitted: float
    low: float
    high: float

    @property
    def within(self) -> bool:
        """Whether the target lies in the interval."""
        return self.low <= self.target <= self.high


@dataclass(frozen=True)
class Fit:
    """The best profile of a search, its rows, and the ensemble of those that fit as well (the best one first).

    Members have the constants that were fitted and those that each of them draws.
    """

    profile: Profile
    deviance: float
    rows: tuple[Row, ...]
    ensemble: tuple[dict[str, float], ...]
    deviances: tuple[float, ...]
    evaluations: int


def fit(
    targets: Targets,
    protocols: Protocols,
    base: Profile,
    *,
    generations: int = 60,
    members: int = 16,
    seed: int = 0,
    workers: int = 1,
    progress: Callable[[int, float], None] = lambda generation, deviance: None,
) -> Fit:
    """Search the profiles whose figures agree with the targets.

    Args:
        targets: The figures, and the names of the free constants.
        protocols: Computes the figures of a profile.
        base: The profile that gives the constants which are not free.
        generations: Generations of the search; each tries six profiles for every free constant.
        members: The size of the ensemble.
        seed: Seed of the search.
        workers: Processes that compute figures; the result does not depend on it.
        progress: Is called after each generation with its number and the lowest deviance.

    Returns:
        The best profile and the ensemble.

    Raises:
        ConfigError: A constant cannot be fitted.
    """
    names = targets.fit or tuple(RANGES)
    if unknown := sorted(set(names) - set(RANGES)):
        raise ConfigError(f"{', '.join(unknown)} cannot be fitted; these can: {', '.join(RANGES)}")
    if fixed := sorted(set(targets.draw) - (drawn_constants() - set(names))):
        raise ConfigError(f"{', '.join(fixed)} cannot be drawn; these can: {', '.join(sorted(drawn_constants()))}")
    objective = _Deviance(targets, protocols, base, names)
    tried: list[tuple[float, NDArray[np.float64]]] = []
    generation = 0

    def report(intermediate_result: Any) -> None:
        nonlocal generation
        generation += 1
        progress(generation, float(intermediate_result.fun))

    with ProcessPoolExecutor(workers) if workers > 1 else nullcontext() as pool:

        def evaluate(function: Callable[[Any], float], points: Iterable[NDArray[np.float64]]) -> list[float]:
            points = [np.array(point) for point in points]
            values = list(pool.map(function, points) if pool else map(function, points))
            tried.extend(zip(values, points, strict=True))
            return values

        optimize.differential_evolution(
            objective,
            [RANGES[name] for name in names],
            maxiter=generations,
            popsize=6,
            tol=0,
            rng=np.random.default_rng(seed),
            polish=False,
            updating="deferred",
            workers=evaluate,
            callback=report,
        )
    chosen = _ensemble(tried, len(names), members)
    fitted = [_constants(names, values) for _, values in chosen]
    best = with_constants(base, fitted[0])
    rows = beside_targets(targets, protocols.figures(best, targets.figures))
    ensemble = tuple(constants | drawn(base, targets.draw, number) for number, constants in enumerate(fitted))
    return Fit(best, chosen[0][0], rows, ensemble, tuple(value for value, _ in chosen), len(tried))


def fit_members(targets: Targets, protocols: Protocols, base: str, **search: Any) -> Fit:
    """Fit each member of an ensemble on its own; return the fit of the first with all members.

    Args:
        targets: The figures, and the names of the free constants.
        protocols: Computes the figures of a profile.
        base: The name of the profile with the members.
        **search: Arguments of `fit`: generations, seed, workers, progress.
    """
    own = profile_members(base)
    bases = [load_profile(f"{base}~{number}") for number in range(len(own))]
    fitted = targets.model_copy(update={"draw": ()})  # members keep what they have drawn
    fits = [fit(fitted, protocols, member, members=1, **search) for member in bases]
    ensemble = tuple(constants | single.ensemble[0] for constants, single in zip(own, fits, strict=True))
    evaluations = sum(single.evaluations for single in fits)
    best = with_constants(load_profile(base), fits[0].ensemble[0])
    return Fit(best, fits[0].deviance, fits[0].rows, ensemble, tuple(single.deviance for single in fits), evaluations)


def drawn_constants() -> set[str]:
    """Return the constants that members of an ensemble can draw."""
    return {SKELETON, *ranges()}


def drawn(base: Profile, names: Iterable[str], number: int) -> dict[str, float]:
    """Return constants that a member of an ensemble draws, around those of `base` as `Profile.sampled` does."""
    sampled = base.sampled(number)
    share = float(np.random.default_rng([number, crc32(SKELETON.encode())]).random())
    return {name: round(share if name == SKELETON else float(getattr(sampled, name)), 4) for name in names}


@dataclass(frozen=True)
class _Deviance:
    """The deviance of a point of the search."""

    targets: Targets
    protocols: Protocols
    base: Profile
    names: tuple[str, ...]

    def __call__(self, values: NDArray[np.float64]) -> float:
        profile = with_constants(self.base, _constants(self.names, values))
        return deviance(self.targets, self.protocols.figures(profile, self.targets.figures))


def with_constants(base: Profile, constants: dict[str, float]) -> Profile:
    """Return the profile with other constants in place of its own."""
    return Profile.model_validate(base.model_dump() | constants)


def _constants(names: tuple[str, ...], values: NDArray[np.float64]) -> dict[str, float]:
    """Return the constants of a profile that a point of the search stands for, with four digits."""
    constants = {name: round(float(value), 4) for name, value in zip(names, values, strict=True)}
    if "meaning" in constants:
        constants |= dict.fromkeys(KINDS, constants.pop("meaning"))
    return constants


def deviance(targets: Targets, shares: NDArray[np.float64]) -> float:
    """Return twice the log-likelihood ratio of the observed shares against the computed ones."""
    counts = np.array([figure.tasks for figure in targets.figures])
    observed = np.array([figure.share for figure in targets.figures])
    solved = np.round(observed * counts)
    computed, exact = (np.clip(values, 1e-4, 1 - 1e-4) for values in (shares, observed))
    ratio = stats.binom.logpmf(solved, counts, exact) - stats.binom.logpmf(solved, counts, computed)
    return float(2 * ratio.sum())


def beside_targets(targets: Targets, shares: NDArray[np.float64]) -> tuple[Row, ...]:
    """Return computed shares beside their targets, with the binomial 95% interval of each."""
    rows = []
    for figure, share in zip(targets.figures, shares, strict=True):
        low, high = stats.binom.ppf([0.025, 0.975], figure.tasks, share) / figure.tasks
        rows.append(Row(figure.label, figure.share, float(share), float(low), float(high)))
    return tuple(rows)


def _ensemble(
    tried: list[tuple[float, NDArray[np.float64]]], free: int, members: int
) -> list[tuple[float, NDArray[np.float64]]]:
    """Return the best values and others that fit as well, each as far from those before it as possible."""
    ordered = sorted(tried, key=lambda pair: pair[0])
    limit = ordered[0][0] + stats.chi2.ppf(0.5, free)
    equal = [pair for pair in ordered if pair[0] <= limit]
    points = np.array([values for _, values in equal])
    scaled = points / np.maximum(points.std(axis=0), 1e-9)
    chosen = [0]
    distance = np.linalg.norm(scaled - scaled[0], axis=1)
    while len(chosen) < min(members, len(equal)) and distance.max() > 0:
        chosen.append(int(distance.argmax()))
        distance = np.minimum(distance, np.linalg.norm(scaled - scaled[chosen[-1]], axis=1))
    return [equal[index] for index in chosen]
