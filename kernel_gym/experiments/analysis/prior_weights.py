"""What the weights of `context-value` should be before it has learned anything, computed from true effects.

In states of finished runs many contexts are tried: what heuristics and the picker that knows would show, and random
ones. The log-odds of a good kernel are regressed on the features of `context-value`, within each state (operators
differ in how hard they are, and no pick changes that). How much of the variance this explains is told for operators
that the weights were not fitted on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import log
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.context_value import ContextValueAgent
from kernel_gym.agents.support.context_features import FEATURES, features
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.analysis.credit import OTHERS, Question, Visit, Watch, picks, visits

#: The features that have weights to fit; the others differ only in refining, or not within a state.
FITTED = ("verified", "compiled", "failed", "named", "answered", "length")
#: Random contexts a state.
RANDOM = 24
_COLUMNS = [list(FEATURES).index(name) for name in FITTED]

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Weights by feature, from so many contexts; the share of variance they explain on operators left out."""

    weights: dict[str, float]
    explained: float
    contexts: int


@dataclass(frozen=True)
class Tried:
    """The contexts tried in one state, less their mean: features, and log-odds of a good kernel."""

    task: str
    rows: Matrix
    odds: Matrix


def fit(runs: Sequence[Path], question: Question, watch: Watch = lambda done, of: None) -> Fit:
    """Weights from states of these runs."""
    tried = [one for run in runs for one in _tried(run, question, watch)]
    if len(tasks := sorted({one.task for one in tried})) < 2:
        raise KernelGymError("weights need states of two operators or more that were attempted before: more --states")
    parts = [[one for one in tried if tasks.index(one.task) % 2 == part] for part in (0, 1)]
    error = sum(_error(_solve(other), own) for own, other in (parts, parts[::-1]))
    total = sum(float(one.odds @ one.odds) for one in tried)
    weights = dict(zip(FITTED, _solve(tried).tolist(), strict=True))
    return Fit(weights, 1 - error / total if total else 0.0, sum(len(one.odds) for one in tried))


def _tried(run: Path, question: Question, watch: Watch) -> Iterator[Tried]:
    agent = ContextValueAgent()  # it picks nothing: it keeps the records that its features are computed from
    for number, visit in enumerate(visits(run, question, watch)):
        if visit.chosen and (outlook := agent.outlook(visit.seen.attempt.task)).record.attempts:
            contexts = list(_contexts(visit, number, question.seed))
            rows = np.array([features(outlook, context, None, None)[_COLUMNS] for context in contexts])
            chances = [
                visit.oracle.success_chance(visit.seen.state, [one.item for one in context]) for context in contexts
            ]
            odds = np.array([log(chance / (1 - chance)) for chance in np.clip(chances, 1e-5, 1 - 1e-3).tolist()])
            yield Tried(visit.seen.attempt.task, rows - rows.mean(0), odds - odds.mean())
        agent.learn(visit.seen.attempt)


def _contexts(visit: Visit, number: int, seed: int) -> Iterator[Sequence[Candidate]]:
    state, legal = visit.seen.state, visit.seen.mask
    pool, rng = state["candidates"], generator(seed, "contexts", number)
    best = picks(visit.oracle, state, legal)
    yield from (best[:count] for count in range(len(best) + 1))
    yield from (picks(kind(), state, legal) for kind in OTHERS.values())
    for _ in range(RANDOM):
        yield [pool[slot] for slot in rng.permutation(len(pool))[: int(rng.integers(1, state["picks_left"] + 1))]]


def _solve(tried: Sequence[Tried]) -> Matrix:
    """Least squares with a little shrinkage."""
    rows, odds = np.vstack([one.rows for one in tried]), np.concatenate([one.odds for one in tried])
    solved: Matrix = np.linalg.solve(rows.T @ rows + np.eye(len(FITTED)), rows.T @ odds)
    return solved


def _error(weights: Matrix, tried: Sequence[Tried]) -> float:
    return sum(float(np.square(one.odds - one.rows @ weights).sum()) for one in tried)
