"""Make forecast attempts with a policy and collect its decisions."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.agents.scoring import ILLEGAL, CandidateScorer
from kernel_gym.authors.apprentice.forecast.measurements import PACKAGED
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.experiments.splits import AUTHORS, Split, author, split_tasks

Flags = NDArray[np.bool_]
#: Returns an action for each row of observations and masks, and the logarithm of its probability.
Policy = Callable[[Vector, Vector, np.random.Generator], tuple[NDArray[np.int64], NDArray[np.float32]]]


@dataclass(frozen=True)
class Batch:
    """An author at work on some tasks, each with the same budget: where attempts are made."""

    author: str
    tasks: tuple[str, ...]
    budget: int
    seed: int
    #: The packaged measurements, or a file that `kernel-gym forecast renew` wrote.
    measurements: str = PACKAGED
    #: Further kernels that are drawn for each context: returns are means over all of them, and less noisy.
    redraws: int = 0

    @property
    def attempts(self) -> int:
        """The number of attempts."""
        return len(self.tasks) * self.budget

    def environments(self) -> ForecastVectorEnv:
        """Return the environment in which all tasks are worked on in lock-step."""
        author = {"profile": self.author}
        envs = ForecastVectorEnv(
            len(self.tasks), self.measurements, tasks=list(self.tasks), budget=self.budget, author_options=author
        )
        envs.redraw(self.redraws)
        return envs


@dataclass(frozen=True)
class Decisions:
    """Decisions with more than one legal action, one row each, and the rewards of the attempts that they belong to.

    `following` is the row of the next decision in the same attempt, -1 if there is none. `rewards` has one number for
    each attempt, in the order in which they ended; `solved` is the share of tasks with a feasible kernel at the end,
    and `first` the attempt at each task that gave it, the budget if none did.
    """

    observations: Vector
    masks: Flags
    actions: NDArray[np.int64]
    log_probabilities: NDArray[np.float32]
    returns: NDArray[np.float32]
    following: NDArray[np.int64]
    rewards: NDArray[np.float32]
    solved: float
    first: NDArray[np.int64] = field(default_factory=lambda: np.zeros(0, np.int64))


def draw_batch(
    split: Split,
    seed: tuple[int, ...],
    tasks: int,
    budgets: tuple[int, ...],
    measurements: str = PACKAGED,
    redraws: int = 0,
) -> Batch:
    """Draw an author, tasks and a budget from a split; the same seed gives the same batch."""
    rng = np.random.default_rng(seed)
    names = split_tasks(split)
    chosen = rng.choice(len(names), min(tasks, len(names)), replace=False)
    number = int(rng.choice(AUTHORS[split]))
    budget = int(rng.choice(budgets))
    some = tuple(names[i] for i in sorted(chosen))
    return Batch(author(number), some, budget, int(rng.integers(2**31)), measurements, redraws)


def make_attempts(batch: Batch, policy: Policy, environments: ForecastVectorEnv | None = None) -> Decisions:
    """Let a policy make all attempts of a batch in lock-step, from the seed knowledge on.

    Args:
        batch: The author, the tasks and the budget.
        policy: The policy.
        environments: The environments of the batch, for a policy that looks into them; None: new ones.

    Returns:
        Its decisions and the rewards.
    """
    count = len(batch.tasks)
    envs = environments or batch.environments()
    rng = np.random.default_rng(batch.seed)
    observations, infos = envs.reset(seed=batch.seed)
    kept: list[tuple[Any, ...]] = []
    returns: list[float] = []
    following: list[int] = []
    rewards: list[float] = []
    open_rows: list[list[int]] = [[] for _ in range(count)]
    first = np.full(count, batch.budget)
    while len(rewards) < batch.attempts:
        seen, mask = observations["observations"], observations["action_mask"]
        actions, log_probabilities = policy(seen, mask, rng)
        for i in np.flatnonzero(mask.sum(axis=1) > 1.5).tolist():
            if open_rows[i]:
                following[open_rows[i][-1]] = len(kept)
            open_rows[i].append(len(kept))
            kept.append((seen[i], mask[i] > 0.5, actions[i], log_probabilities[i]))
            returns.append(0.0)
            following.append(-1)
        observations, paid, *_, infos = envs.step(actions)
        if "attempt" not in infos:
            continue
        rewards += paid.tolist()
        for i, reward in enumerate((envs.mean_rewards if batch.redraws else paid).tolist()):
            for row in open_rows[i]:
                returns[row] = reward
            open_rows[i] = []
            if infos["attempt"][i].verdict.feasible:
                first[i] = min(first[i], infos["attempt"][i].index)
    columns = [np.stack(column) for column in zip(*kept, strict=True)]
    return Decisions(
        columns[0].astype(np.float32),
        columns[1],
        columns[2].astype(np.int64),
        columns[3].astype(np.float32),
        np.array(returns, np.float32),
        np.array(following, np.int64),
        np.array(rewards, np.float32),
        float((first < batch.budget).mean()),
        first,
    )


# Policies


def sampling(scorer: CandidateScorer) -> Policy:
    """Return the policy that draws actions with the scores as logits."""

    def act(seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
        scores = _scores(scorer, seen, mask)
        noise = -np.log(-np.log(rng.random(scores.shape)))
        actions = (scores + noise).argmax(axis=1)
        largest = scores.max(axis=1, keepdims=True)
        total = largest[:, 0] + np.log(np.exp(scores - largest).sum(axis=1))
        return actions, scores[np.arange(len(actions)), actions] - total

    return act


def exploring(scorer: CandidateScorer, epsilon: float) -> Policy:
    """Return the policy that takes the highest score, or with probability `epsilon` a random legal action."""

    def act(seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
        scores = _scores(scorer, seen, mask)
        anything = (rng.random(mask.shape) * mask).argmax(axis=1)
        actions = np.where(rng.random(len(mask)) < epsilon, anything, scores.argmax(axis=1))
        return actions, np.zeros(len(actions), np.float32)

    return act


def uniform(seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
    """Choose any legal action, all alike."""
    return (rng.random(mask.shape) * mask).argmax(axis=1), -np.log(mask.sum(axis=1))


def similarity_feasible(seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
    """Act as the agent `similarity-feasible` does, from observations alone: the rule that training starts from."""
    layout = Layout.of_size(mask.shape[1] - 1, seen.shape[1])

    def feature(name: str) -> Any:
        return seen[:, layout.candidate(name)]

    value = feature("similarity") + 4.0 * feature("kind.trace") * feature("feasible")
    value = np.where(feature("kind.start") > 0.5, feature("relative_latency"), value)
    scores = np.where(mask[:, :-1] > 0.5, value, -np.inf)
    actions = np.where(np.isneginf(scores).all(axis=1), mask.shape[1] - 1, scores.argmax(axis=1))
    return actions, np.zeros(len(actions), np.float32)


def _scores(scorer: CandidateScorer, seen: Vector, mask: Vector) -> NDArray[np.float64]:
    """Return the scores of all actions; where a single one is legal the network is not asked."""
    scores: NDArray[np.float64] = np.where(mask > 0.5, 0.0, ILLEGAL)
    rows = np.flatnonzero(mask.sum(axis=1) > 1.5)
    if len(rows):
        with torch.no_grad():
            batch = {"observations": torch.as_tensor(seen[rows]), "action_mask": torch.as_tensor(mask[rows])}
            scores[rows] = scorer.masked(batch)[0].double().numpy()
    return scores
