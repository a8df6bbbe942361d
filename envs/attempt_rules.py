"""The rules of attempts and episodes that the live and the forecast environment share.

`Progress` is how far an episode has come. Functions of arrays serve one episode as well as a batch of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.observation import Vector
from kernel_gym.envs.options import Options
from kernel_gym.envs.rewards import REWARDS, shaped
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict


@dataclass(frozen=True)
class Progress:
    """The stage of an episode, the attempts used, the first and the best feasible latency."""

    stage: Stage = Stage.DRAFT
    used: int = 0
    first_us: float | None = None
    best_us: float | None = None

    def reward(self, verdict: Verdict, options: Options) -> float:
        """Return the reward of a verdict at this point.

        A draft is rewarded once in an episode. Where the bank keeps an earlier, infeasible verdict of the same kernel,
        there is nothing to refine, but later kernels are compared with the best one all the same.
        """
        rewarded = self.stage if self.best_us is None else Stage.REFINE
        reward = REWARDS[rewarded](verdict, self.best_us)
        return shaped(reward, verdict, options.coverage) if rewarded is Stage.REFINE else reward

    def after(self, verdict: Verdict, options: Options, refinable: bool = True) -> Progress:
        """Return the progress after an attempt.

        Args:
            verdict: The verdict of the attempt.
            options: The environment's options.
            refinable: Whether the bank holds a kernel to refine, if the attempt was feasible.

        Returns:
            One attempt more is used. A feasible kernel counts for the latencies and ends drafting.
        """
        now_us = verdict.latency_us
        if now_us is None:
            return Progress(self.stage, self.used + 1, self.first_us, self.best_us)
        stage = Stage.REFINE if options.stages != "draft" and refinable else self.stage
        return Progress(stage, self.used + 1, self.first_us or now_us, min(now_us, self.best_us or now_us))

    def attempt(
        self,
        options: Options,
        task: Task,
        kernel: Kernel,
        verdict: Verdict,
        context: tuple[int, ...],
        start: int | None,
        api_pages: tuple[int, ...],
        produced: tuple[int, ...],
    ) -> Attempt:
        """Return the record of an attempt that was made at this point."""
        return Attempt(
            task=task.id,
            category=task.category,
            stage=self.stage,
            index=self.used,
            context=context,
            start=start,
            api_pages=api_pages,
            kernel=kernel,
            verdict=verdict,
            reward=self.reward(verdict, options),
            best_us=self.best_us,
            produced=produced,
        )


def refining(first_us: float, best_us: float) -> Progress:
    """Return the progress at the beginning of a task, given the oldest and the best latency that the bank holds."""
    return Progress(Stage.REFINE, 0, first_us, best_us)


def is_over(options: Options, used: Any, has_kernel: Any) -> Any:
    """Return whether the budget is spent or, with `stages="draft"`, a kernel is feasible; also for arrays."""
    return (used >= options.budget) | (has_kernel & (options.stages == "draft"))


def start_is_due(refining: Any, mendable: Any, over: Any) -> Any:
    """Return whether an attempt begins with a start point: to refine, or the last one to mend; also for arrays."""
    return (refining | mendable) & np.logical_not(over)


def is_ready(picks_left: Any, start_due: Any) -> Any:
    """Return whether the picks are over and a kernel can be written; also for arrays."""
    return (picks_left == 0) & np.logical_not(start_due)


def action_mask(offered: Any, picked: Any, ready: Any, start_required: Any) -> Vector:
    """Return 1 for every legal action: candidates that are offered and not picked; `K` unless a start point must be.

    The last axis of `offered` and `picked` is the slots; axes before it are a batch.
    """
    mask = np.zeros((*offered.shape[:-1], offered.shape[-1] + 1), np.float32)
    mask[..., :-1] = offered & ~picked & np.logical_not(ready)[..., None]
    mask[..., -1] = np.logical_not(start_required)
    return mask


def items_kept(options: Options, verdict: Verdict) -> int:
    """Return how many of an attempt's items (trace, experience) join the bank; a frozen one takes start points only."""
    if options.memory != "frozen":
        return 2
    return int(bool(verdict.feasible) or options.repair)
