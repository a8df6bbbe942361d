"""Fit the initial weights of `context-value` to true effects.

In states of finished runs many contexts are tried: those of the heuristics and the oracle, and random ones. The
log-odds of a good kernel are regressed on the features of `context-value` within each state, because tasks differ in
difficulty and no pick changes that. The explained share of the variance is computed on tasks that the weights were not
fitted on.
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
from kernel_gym.experiments.analysis.credit import (
    HEURISTICS,
    CreditSettings,
    ExaminedAttempt,
    Watch,
    examined_attempts,
    pick_context,
)

#: The features whose weights are fitted; the others vary only in refining, or not within a state.
FITTED = ("verified", "compiled", "failed", "named", "answered", "length")
#: Random contexts per state.
RANDOM = 24
_COLUMNS = [list(FEATURES).index(name) for name in FITTED]

Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Fit:
    """Weights by feature, fitted on so many contexts, and the share of variance they explain on tasks left out."""

    weights: dict[str, float]
    explained: float
    contexts: int


@dataclass(frozen=True)
class TriedContexts:
    """The contexts tried in one state: features and log-odds of a good kernel, less their means."""

    task: str
    rows: Matrix
    odds: Matrix


def fit(runs: Sequence[Path], settings: CreditSettings, watch: Watch = lambda done, total: None) -> Fit:
    """Fit weights on states of finished runs.

    Args:
        runs: Run folders with a simulated author.
        settings: Which attempts of each run are used.
        watch: Called after every state with the states examined and the states in all.

    Returns:
        The weights.

    Raises:
        KernelGymError: The states are of fewer than two tasks, or a run cannot be replayed.
    """
    states = [state for run in runs for state in _try_contexts(run, settings, watch)]
    if len(tasks := sorted({state.task for state in states})) < 2:
        raise KernelGymError("weights need states of two tasks or more that were attempted before: more --states")
    halves = [[state for state in states if tasks.index(state.task) % 2 == half] for half in (0, 1)]
    error = sum(_error(_solve(other), own) for own, other in (halves, halves[::-1]))
    total = sum(float(state.odds @ state.odds) for state in states)
    weights = dict(zip(FITTED, _solve(states).tolist(), strict=True))
    return Fit(weights, 1 - error / total if total else 0.0, sum(len(state.odds) for state in states))


def _try_contexts(run: Path, settings: CreditSettings, watch: Watch) -> Iterator[TriedContexts]:
    agent = ContextValueAgent()  # picks nothing; it keeps the records that its features are computed from
    for number, examined in enumerate(examined_attempts(run, settings, watch)):
        attempt, state = examined.replayed.attempt, examined.replayed.state
        if examined.selected and (outlook := agent.outlook(attempt.task)).record.attempts:
            contexts = list(_contexts(examined, number, settings.seed))
            rows = np.array([features(outlook, context, None, None)[_COLUMNS] for context in contexts])
            chances = [
                examined.oracle.success_chance(state, [candidate.item for candidate in context]) for context in contexts
            ]
            odds = np.array([log(chance / (1 - chance)) for chance in np.clip(chances, 1e-5, 1 - 1e-3).tolist()])
            yield TriedContexts(attempt.task, rows - rows.mean(0), odds - odds.mean())
        agent.learn(attempt)


def _contexts(examined: ExaminedAttempt, number: int, seed: int) -> Iterator[Sequence[Candidate]]:
    state, legal = examined.replayed.state, examined.replayed.mask
    pool, rng = state["candidates"], generator(seed, "contexts", number)
    best = pick_context(examined.oracle, state, legal)
    yield from (best[:count] for count in range(len(best) + 1))
    yield from (pick_context(kind(), state, legal) for kind in HEURISTICS.values())
    for _ in range(RANDOM):
        yield [pool[slot] for slot in rng.permutation(len(pool))[: int(rng.integers(1, state["picks_left"] + 1))]]


def _solve(states: Sequence[TriedContexts]) -> Matrix:
    """Solve the least squares with a little shrinkage."""
    rows, odds = np.vstack([state.rows for state in states]), np.concatenate([state.odds for state in states])
    solved: Matrix = np.linalg.solve(rows.T @ rows + np.eye(len(FITTED)), rows.T @ odds)
    return solved


def _error(weights: Matrix, states: Sequence[TriedContexts]) -> float:
    return sum(float(np.square(state.odds - state.rows @ weights).sum()) for state in states)
