"""The two rewards of the method. Each states its range and its value when the verifier failed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, tanh
from typing import ClassVar, Protocol

from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Feasible, Verdict


class Reward(Protocol):
    """The reward of a verdict in one stage. It is deterministic and raw: normalisation belongs to the agent.

    Attributes:
        name: Name of the reward in the method.
        range: Least and greatest value.
        on_error: Value if an infrastructure error kept the kernel from being judged.
    """

    name: ClassVar[str]
    range: ClassVar[tuple[float, float]]
    on_error: ClassVar[float]

    def __call__(self, verdict: Verdict, best_us: float | None) -> float:
        """Return the reward.

        Args:
            verdict: The verdict of the attempt.
            best_us: The best latency before the attempt; None if there is none.

        Returns:
            A value within `range`.
        """


@dataclass(frozen=True)
class DraftReward:
    """r1: +1 if the kernel is feasible, else -1."""

    name: ClassVar[str] = "r1"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    on_error: ClassVar[float] = 0.0

    def __call__(self, verdict: Verdict, best_us: float | None = None) -> float:
        """Return the reward of `verdict`; the best latency is not used."""
        if verdict.outcome == "unjudged":
            return self.on_error
        return 1.0 if verdict.feasible else -1.0


@dataclass(frozen=True)
class RefineReward:
    """r2: -1 if infeasible, else tanh(log b - log latency), with b the best latency before the attempt.

    As fast as the best so far gives 0, twice as fast 0.6, half as fast -0.6.
    """

    name: ClassVar[str] = "r2"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    on_error: ClassVar[float] = 0.0

    def __call__(self, verdict: Verdict, best_us: float | None) -> float:
        """Return the reward of `verdict` relative to `best_us`.

        Raises:
            ValueError: The kernel is feasible and there is no best latency to compare it with.
        """
        if verdict.outcome == "unjudged":
            return self.on_error
        latency = verdict.latency_us
        if latency is None:
            return -1.0
        if best_us is None:
            raise ValueError("refining needs a best latency; there is none before the first feasible kernel")
        return tanh(log(best_us) - log(latency))


#: Bottlenecks that are no work of the kernel: launching, cores without work, waiting, and an unknown one.
IDLE = frozenset({"", "launch", "balance", "sync"})


def coverage(verdict: Verdict) -> float:
    """Return the profiling coverage of a kernel: 1 if its time goes into its own work, else 0.

    Args:
        verdict: The verdict of the attempt.
    """
    return float(isinstance(verdict, Feasible) and verdict.profile.bottleneck not in IDLE)


def shaped(reward: float, verdict: Verdict, weight: float) -> float:
    """Return the reward of refining with profiling coverage mixed in; that of an infeasible kernel stays.

    Args:
        reward: The reward r2.
        verdict: The verdict of the attempt.
        weight: Weight of the coverage, in [0, 1).

    Returns:
        (1 - weight) r2 + weight coverage, within the range of r2.
    """
    return (1.0 - weight) * reward + weight * coverage(verdict) if verdict.feasible else reward


REWARDS: dict[Stage, Reward] = {Stage.DRAFT: DraftReward(), Stage.REFINE: RefineReward()}
