"""Compute what a learner gains over the best heuristic, and how much of the gap to a yardstick that closes.

A yardstick picks with knowledge that no agent has, so the gap to it is the most that can be gained.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernel_gym.experiments.runs.figures import RunOutcome, by_seed
from kernel_gym.experiments.statistics import SAME, Difference, Interval, difference, interval


@dataclass(frozen=True)
class ClosedGap:
    """The share of the gap between best heuristic and yardstick that a learner closes, by seed.

    It is (learner - heuristic) / (yardstick - heuristic); None for a seed in which the yardstick is not better.
    `share` is the mean over seeds. It is None if one seed has no gap, because a mean of the others would select seeds.
    """

    learner: str
    heuristic: str
    gap: Interval
    per_seed: dict[int, float | None]
    share: Interval | None

    @property
    def without(self) -> list[int]:
        """The seeds without a gap."""
        return [seed for seed, share in self.per_seed.items() if share is None]


def gain(
    runs: Sequence[RunOutcome], learner: str, heuristics: Sequence[str], figure: str = "area"
) -> Difference | None:
    """Return the difference between a learner and the best heuristic by mean; None if either has no run.

    The best heuristic is chosen on the same runs, which favours it: the gain is understated, if anything.
    """
    values = by_seed(runs, figure)
    best = _best(values, heuristics)
    return difference(learner, values.get(learner, {}), best, values[best]) if best else None


def closed_gap(
    runs: Sequence[RunOutcome], learner: str, heuristics: Sequence[str], yardstick: str, figure: str = "area"
) -> ClosedGap | None:
    """Return how much of the gap a learner closes; None unless the yardstick has a run of every seed."""
    values = by_seed(runs, figure)
    best, top = _best(values, heuristics), values.get(yardstick, {})
    if not best or {run.seed for run in runs} - top.keys():
        return None
    base, own = values[best], values.get(learner, {})
    gaps = {seed: top[seed] - base[seed] for seed in sorted(own) if seed in base}
    shares = {seed: (own[seed] - base[seed]) / gap if gap > SAME else None for seed, gap in gaps.items()}
    width = interval(list(gaps.values()))
    if width is None:
        return None
    return ClosedGap(learner, best, width, shares, None if None in shares.values() else interval(list(shares.values())))


def _best(values: Mapping[str, Mapping[int, float]], heuristics: Sequence[str]) -> str:
    present = [name for name in heuristics if values.get(name)]
    return max(present, key=lambda name: sum(values[name].values()) / len(values[name]), default="")
