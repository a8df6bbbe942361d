"""Learn the prior of `context-value` from verdicts: the agent begins without one with each of many authors.

For each author the agent's regressions are fitted to that author's verdicts alone. The prior's means are those of the
fitted weights over authors, and its deviations say how much authors differ: what a new author is expected to be like.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.context_value import GATES, ContextValueAgent
from kernel_gym.agents.support.context_features import FEATURES
from kernel_gym.envs.vector import view
from kernel_gym.experiments.pretraining.pretraining import processes
from kernel_gym.experiments.pretraining.rollouts import Batch, draw_batch
from kernel_gym.memory.item import Stage

#: Least deviation of a learned weight.
LEAST = 0.05


@dataclass(frozen=True)
class Fitted:
    """The weights that the verdicts of one author led to, by stage and gate, and the number of verdicts."""

    author: str
    verdicts: int
    means: dict[tuple[str, str], NDArray[np.float64]]


def fit_author(batch: Batch) -> Fitted:
    """Let the agent work without a prior, and return its weights at the end."""
    agent = ContextValueAgent(seed=batch.seed, prior="none")
    count = len(batch.tasks)
    envs = batch.environments()
    observations, infos = envs.reset(seed=batch.seed)
    verdicts = 0
    while verdicts < batch.attempts:
        actions = [agent.act(*view(observations, infos, i)) for i in range(count)]
        observations, *_, infos = envs.step(np.array(actions))
        for attempt in infos.get("attempt", ()):
            agent.learn(attempt)
            verdicts += 1
    means = {(stage.value, gate): agent.gates[stage, gate].mean for stage in Stage for gate in GATES}
    return Fitted(batch.author, verdicts, means)


def learn_prior(
    authors: int, workers: int, tasks: int = 8, budget: int = 15, report: Callable[[Fitted], None] = lambda fitted: None
) -> dict[str, Any]:
    """Return the prior as it is packaged.

    Args:
        authors: Batches of the training split, each with an author.
        workers: Processes.
        tasks: Tasks of an author.
        budget: Attempts at a task.
        report: Called with the weights of each author.

    Returns:
        Features, means and deviations by stage and gate, and the number of authors and verdicts.
    """
    batches = [draw_batch("training", (3, number), tasks, (budget,)) for number in range(authors)]
    fitted = list[Fitted]()
    with processes(workers) as executor:
        for some in executor.map(fit_author, batches) if executor else map(fit_author, batches):
            fitted.append(some)
            report(some)
    return prior_of(fitted)


def prior_of(fitted: Sequence[Fitted]) -> dict[str, Any]:
    """Return means and deviations of the authors' weights."""
    gates = []
    for stage in Stage:
        for gate in GATES:
            rows = np.stack([some.means[stage.value, gate] for some in fitted])
            deviation = np.maximum(LEAST, rows.std(axis=0, ddof=1) if len(rows) > 1 else np.ones(rows.shape[1]))
            gates.append([stage.value, gate, rows.mean(axis=0).round(4).tolist(), deviation.round(4).tolist()])
    return {
        "features": list(FEATURES),
        "authors": len({some.author for some in fitted}),
        "verdicts": sum(some.verdicts for some in fitted),
        "gates": gates,
    }
