"""What a run writes to TensorBoard: every name with its meaning. Agents add their own under `agent/`."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from statistics import median

from kernel_gym.envs.attempt import Attempt

#: Written after every attempt or every iteration; the step is the number of attempts so far.
METRICS: dict[str, str] = {
    "reward/draft": "raw reward of a drafting attempt: +1 feasible, -1 not",
    "reward/refine": "raw reward of a refining attempt: tanh of log(best so far / latency), -1 if infeasible",
    "rate/compiled": "share of attempts so far that compiled",
    "rate/correct": "share of attempts so far that were feasible",
    "solved/compiled": "share of operators with a kernel that compiled",
    "solved/correct": "share of operators with a feasible kernel",
    "author/tokens_in": "tokens that a model has been sent; only with a model as the author",
    "author/tokens_out": "tokens that it has answered with",
    "author/dollars": "what that has cost at the prices that were given",
    "speedup/first_draft": "median over solved operators of first feasible latency / best latency",
}


class Meter:
    """Keeps the running figures of a run."""

    def __init__(self, tasks: int) -> None:
        self.tasks = tasks
        self.attempts = 0
        self._compiled_attempts = 0
        self._feasible_attempts = 0
        self._compiled: set[str] = set()
        self._latencies: dict[str, list[float]] = defaultdict(list)

    @property
    def solved(self) -> int:
        """Operators with a feasible kernel."""
        return len(self._latencies)

    def take(self, attempt: Attempt) -> Mapping[str, float]:
        """Count an attempt; all figures that it changes."""
        self.attempts += 1
        if attempt.verdict.compiled:
            self._compiled_attempts += 1
            self._compiled.add(attempt.task)
        if attempt.verdict.latency_us is not None:
            self._feasible_attempts += 1
            self._latencies[attempt.task].append(attempt.verdict.latency_us)
        figures = {
            f"reward/{attempt.stage}": attempt.reward,
            "rate/compiled": self._compiled_attempts / self.attempts,
            "rate/correct": self._feasible_attempts / self.attempts,
            "solved/compiled": len(self._compiled) / self.tasks,
            "solved/correct": self.solved / self.tasks,
        }
        if self._latencies:
            ratios = [history[0] / min(history) for history in self._latencies.values()]
            figures["speedup/first_draft"] = median(ratios)
        return figures
