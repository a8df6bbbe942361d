"""The two rewards of the method, as objects that state their range and their value when the verifier failed."""

from __future__ import annotations

from dataclasses import dataclass
from math import log, tanh
from typing import ClassVar, Protocol

from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Verdict


class Reward(Protocol):
    """What a verdict is worth in one stage. Deterministic; raw: normalisation belongs to the agent."""

    name: ClassVar[str]
    #: Least and greatest value.
    range: ClassVar[tuple[float, float]]
    #: Value when an infrastructure error kept the kernel from being judged.
    on_error: ClassVar[float]

    def __call__(self, verdict: Verdict, best_us: float | None) -> float:
        """The reward of `verdict`, given the best latency before the attempt."""


@dataclass(frozen=True)
class DraftReward:
    """r1: +1 if the kernel is feasible, else -1."""

    name: ClassVar[str] = "r1"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    on_error: ClassVar[float] = 0.0

    def __call__(self, verdict: Verdict, best_us: float | None = None) -> float:
        """The reward of `verdict`; the best latency plays no part."""
        if verdict.outcome == "unjudged":
            return self.on_error
        return 1.0 if verdict.feasible else -1.0


@dataclass(frozen=True)
class RefineReward:
    """r2: -1 if infeasible, else tanh(log b - log latency), b being the best latency before the attempt.

    0 is "as fast as the best so far"; twice as fast gives 0.6, half as fast -0.6.
    """

    name: ClassVar[str] = "r2"
    range: ClassVar[tuple[float, float]] = (-1.0, 1.0)
    on_error: ClassVar[float] = 0.0

    def __call__(self, verdict: Verdict, best_us: float | None) -> float:
        """The reward of `verdict` relative to `best_us`."""
        if verdict.outcome == "unjudged":
            return self.on_error
        latency = verdict.latency_us
        if latency is None:
            return -1.0
        if best_us is None:
            raise ValueError("refining needs a best latency; there is none before the first feasible kernel")
        return tanh(log(best_us) - log(latency))


REWARDS: dict[Stage, Reward] = {Stage.DRAFT: DraftReward(), Stage.REFINE: RefineReward()}
