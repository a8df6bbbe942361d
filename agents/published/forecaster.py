"""Forecast drafts and verify the most promising: GPU Forecasters (arXiv 2605.31464).

The author writes several kernels for one verification (`drafts` of the environment). A learned forecast ranks them: the
chance that a kernel is feasible, and its latency. The kernel with the greatest

    p gain + kappa sigma

is verified, p and gain being the forecasts and sigma their uncertainty: a kernel is worth a verification if it looks
promising or if the forecast is unsure. Both forecasts are linear in the lines of the source, hashed to 512 columns,
with a Gaussian posterior for every weight by itself. They are learned from every verdict, over all tasks.

Deviations from the paper:
1. The forecaster there is a language model that reads the code. Ours learns from the run's own verdicts.
2. One kernel of each set is verified, so that every agent of a comparison has equally many verifications. Theirs may
   verify none.
3. The gain of a draft is 0 before there is a feasible kernel, so drafts are ranked by their chance alone.
4. The paper starts from no tree: the fastest kernel is refined, and the common rule fills the context.
5. Own drafting: forecasts rank drafts too; with `heuristic` the first draft is verified while drafting.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import exp, log, sqrt
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.contract import Info, Metrics
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.memory.item import Stage

#: Columns that lines are hashed to, weight of the uncertainty, and variance of a weight at first; all are ours.
COLUMNS, KAPPA, SPREAD = 512, 0.3, 0.5
#: Variance of the logarithm of a latency given the source.
NOISE = 0.1

Columns = tuple[int, ...]
Numbers = NDArray[np.float64]


class ForecasterAgent(TreeAgent):
    """Verify the draft whose forecast is most promising or least certain; refine the fastest kernel.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: With `own`, forecasts rank drafts too; else the first one is verified while drafting.
        kappa: Weight of the uncertainty.

    Attributes:
        feasible: Means and precisions of the weights of feasibility, one row each.
        latency: The same for the logarithm of latency, relative to the best of the task before the attempt.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic", kappa: float = KAPPA) -> None:
        super().__init__(seed, drafting)
        self.kappa = kappa
        self.feasible: Numbers = np.stack([np.zeros(COLUMNS), np.full(COLUMNS, 1 / SPREAD)])
        self.latency: Numbers = self.feasible.copy()

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the fastest kernel."""
        return kernels[0]

    def choose_draft(self, tree: Tree, offered: Offered, info: Info) -> int:
        """Return the draft with the greatest value of a verification; while drafting the first, unless `own`."""
        if info["stage"] is Stage.DRAFT and self.drafting != "own":
            return min(offered)
        refining = info["stage"] is Stage.REFINE
        return max(offered, key=lambda slot: (self.promise(offered[slot].item.code, refining), -slot))

    def promise(self, source: str, refining: bool) -> float:
        """Return p gain + kappa sigma of a kernel."""
        where = list(columns(source))
        chance = 1 / (1 + exp(-float(self.feasible[0, where].sum())))
        ratio = float(self.latency[0, where].sum()) if refining else 0.0
        gain = 1.0 if not refining else 1.0 + max(-1.0, min(1.0, -ratio))
        sigma = sqrt(float((1 / self.feasible[1, where]).sum()) + refining * float((1 / self.latency[1, where]).sum()))
        return chance * gain + self.kappa * sigma / sqrt(len(where) or 1)

    def learn(self, attempt: Attempt) -> Metrics:
        """Update both forecasts with the verdict, one step of Newton's method for each weight by itself."""
        where = list(columns(attempt.kernel.source))
        chance = 1 / (1 + exp(-float(self.feasible[0, where].sum())))
        self.feasible[1, where] += chance * (1 - chance)
        error = float(attempt.verdict.feasible) - chance
        self.feasible[0, where] += error / self.feasible[1, where] / sqrt(len(where) or 1)
        if attempt.verdict.latency_us is not None and attempt.best_us is not None:
            left = log(attempt.verdict.latency_us / attempt.best_us) - float(self.latency[0, where].sum())
            variance = 1 / self.latency[1, where]
            self.latency[0, where] += variance * left / (NOISE + variance.sum())
            self.latency[1, where] += 1 / (NOISE + variance.sum())
        return {**super().learn(attempt), "error": abs(error)}

    def state(self) -> dict[str, Any]:
        """Return both forecasts."""
        return {"feasible": self.feasible.tolist(), "latency": self.latency.tolist()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back both forecasts."""
        self.feasible, self.latency = np.asarray(state["feasible"]), np.asarray(state["latency"])


@lru_cache(maxsize=4096)
def columns(source: str) -> Columns:
    """Return the columns of a kernel's different lines."""
    lines = {line.strip() for line in source.splitlines()}
    return tuple(sorted({crc32(line.encode()) % COLUMNS for line in lines if len(line) > 2}))
