"""Open the node that a learned model finds most promising: K-Search (arXiv 2602.19128).

A node of the search is a kernel with an idea what to do to it. A world model predicts what comes of it; the most
promising node is opened and worked on, until 5 rounds in a row bring no gain; then it is abandoned for good. Here a
node is (start point, practice), and the model is a Bayesian linear regression of the reward of refining on

    the start point's log speedup relative to the best; log(1 + its tries); the share of its tries that failed;
    whether the practice names its bottleneck; the mean reward of the practice; the mean reward at this bottleneck

learned over all tasks from every attempt.

Deviations from the paper:
1. The world model is a language model there, which also proposes nodes and edits its tree in words. Ours is learned
   from outcomes, and practices of the pool are the ideas.
2. Rounds without gain are counted for a start point; its practices share them.
3. After the practice the common rule fills the context. Once all kernels are abandoned, all are open again.
4. Own drafting: the practice with the greatest mean reward in drafting first, then the common rule.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import log, log1p
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.contract import Info, Metrics
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent, common_rule
from kernel_gym.envs.attempt import Attempt
from kernel_gym.memory.item import Stage

#: The paper's rounds without gain after which a node is abandoned.
PATIENCE = 5
#: Mean of the weights before anything is learned, ours: a fast start point, little tried, and a practice that fits.
PRIOR = (-0.3, 0.5, -0.1, -0.3, 0.2, 0.5, 0.5)
#: Variance of the weights before, and of a reward given the features.
SPREAD, NOISE = 0.1, 0.25

Numbers = NDArray[np.float64]


class WorldModelAgent(TreeAgent):
    """Refine the kernel, with the practice, for which the model predicts most; give it up after 5 rounds without gain.

    Args:
        seed: Not used: the rule is deterministic.
        drafting: With `own`, the practice with the greatest mean reward in drafting is shown first.
        patience: Rounds without gain after which a start point is abandoned.

    Attributes:
        precision, moment: The posterior of the weights, as precision matrix and precision times mean.
        rewards: Attempts and total reward by `STAGE ID` of a practice, and by `at BOTTLENECK` of a start point.
        known: Bottlenecks that each practice names.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic", patience: int = PATIENCE) -> None:
        super().__init__(seed, drafting)
        self.patience = patience
        self.precision: Numbers = np.eye(len(PRIOR)) / SPREAD
        self.moment: Numbers = self.precision @ np.asarray(PRIOR)
        self.rewards: dict[str, tuple[int, float]] = {}
        self.known: dict[int, tuple[str, ...]] = {}
        self._weights: Numbers | None = None

    @property
    def weights(self) -> Numbers:
        """Mean of the weights."""
        if self._weights is None:
            self._weights = np.asarray(np.linalg.solve(self.precision, self.moment), np.float64)
        return self._weights

    def predict(self, tree: Tree, start: int, practice: int) -> float:
        """Return the predicted reward of refining a kernel with a practice; 0 stands for no practice."""
        return float(self.features(tree, start, practice) @ self.weights)

    def features(self, tree: Tree, start: int, practice: int) -> Numbers:
        """Return the features of a node; 0 stands for no practice."""
        tries = [visit for visit in tree.visits if visit.start == start]
        failed = sum(visit.latency_us is None for visit in tries) / len(tries) if tries else 0.0
        bottleneck = tree.found_by[start].bottleneck if start in tree.found_by else ""
        return np.array(
            [
                1.0,
                log(min(tree.latency.values()) / tree.latency[start]),
                log1p(len(tries)),
                failed,
                float(bottleneck in self.known.get(practice, ())),
                self._mean(f"refine {practice}"),
                self._mean(f"at {bottleneck}"),
            ]
        )

    def _mean(self, key: str) -> float:
        count, total = self.rewards.get(key, (0, 0.0))
        return total / (count + 1)

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the open kernel whose best node is predicted to gain most."""
        gone = self.abandoned(tree)
        open_kernels = [kernel for kernel in kernels if kernel not in gone] or kernels
        ideas = self._ideas()
        return max(open_kernels, key=lambda kernel: max(self.predict(tree, kernel, idea) for idea in ideas))

    def _ideas(self) -> list[int]:
        """Return practices worth a look at, the best of each set of bottlenecks, and 0 for none."""
        best: dict[tuple[str, ...], int] = {}
        for practice, names in self.known.items():
            other = best.setdefault(names, practice)
            if self._mean(f"refine {practice}") > self._mean(f"refine {other}"):
                best[names] = practice
        return [*best.values(), 0]

    def abandoned(self, tree: Tree) -> Collection[int]:
        """Return the kernels from which the last rounds, as many as `patience`, brought no gain."""
        rounds: dict[int, int] = {}
        best = float("inf")
        for visit in tree.visits:
            gained = visit.latency_us is not None and visit.latency_us < best
            best = visit.latency_us if gained and visit.latency_us else best
            rounds[visit.start] = 0 if gained else rounds.get(visit.start, 0) + 1
        return {kernel for kernel, count in rounds.items() if count >= self.patience}

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the practice that the model finds best, then what the common rule picks."""
        practices = self._practices(offered)
        if info["picked"] or not practices:
            return common_rule(offered, info)
        return max(practices, key=lambda slot: (self.predict(tree, info["start"], offered[slot].id), -slot))

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Show the practice with the greatest mean reward in drafting, then what the common rule picks."""
        practices = self._practices(offered)
        if info["picked"] or not practices:
            return common_rule(offered, info)
        return max(practices, key=lambda slot: (self._mean(f"draft {offered[slot].id}"), -slot))

    def _practices(self, offered: Offered) -> list[int]:
        """Return the slots of practices, and note which bottlenecks they name."""
        slots = [slot for slot, candidate in offered.items() if candidate.kind == "practice"]
        self.known |= {offered[slot].id: offered[slot].item.bottlenecks for slot in slots}
        return slots

    def learn(self, attempt: Attempt) -> Metrics:
        """Update the posterior with every practice that was shown, and the means."""
        tree = self.trees.get(attempt.task, Tree())
        shown = [id for id in attempt.context if id in self.known]
        error = 0.0
        if attempt.stage is Stage.REFINE and attempt.start in tree.latency:
            for practice in shown or [0]:
                row = self.features(tree, attempt.start, practice)
                error = attempt.reward - float(row @ self.weights)
                self.precision = self.precision + np.outer(row, row) / NOISE
                self.moment = self.moment + row * attempt.reward / NOISE
            self._weights = None
            bottleneck = tree.found_by[attempt.start].bottleneck if attempt.start in tree.found_by else ""
            self._count(f"at {bottleneck}", attempt.reward)
        for practice in shown:
            self._count(f"{attempt.stage.value} {practice}", attempt.reward)
        return {**super().learn(attempt), "error": abs(error)}

    def _count(self, key: str, reward: float) -> None:
        count, total = self.rewards.get(key, (0, 0.0))
        self.rewards[key] = count + 1, total + reward

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Move what is known of practices to the new ids; what is not in the bank is dropped."""
        super().remap_items(ids)
        self.known = {ids[id]: names for id, names in self.known.items() if id in ids}
        moved = {}
        for key, score in self.rewards.items():
            kind, _, name = key.partition(" ")
            if kind == "at":
                moved[key] = score
            elif int(name) in ids:
                moved[f"{kind} {ids[int(name)]}"] = score
        self.rewards = moved

    def state(self) -> dict[str, Any]:
        """Return the posterior, the means and the practices."""
        return {
            "precision": self.precision.tolist(),
            "moment": self.moment.tolist(),
            "rewards": self.rewards,
            "known": [[id, *names] for id, names in self.known.items()],
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back the posterior, the means and the practices."""
        self.precision, self.moment, self._weights = np.asarray(state["precision"]), np.asarray(state["moment"]), None
        self.rewards = {key: (count, total) for key, (count, total) in state["rewards"].items()}
        self.known = {id: tuple(names) for id, *names in state["known"]}
