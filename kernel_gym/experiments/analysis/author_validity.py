"""Compare the apprentice with a model: do the same contexts help both authors?

Both authors get the same contexts for the same tasks, several times each. A context's score is the mean credit of the
kernels that were written with it. For each task the two authors rank the contexts. The agreement of the rankings,
averaged over tasks, says how far results with the apprentice can be expected to hold for the model.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from kernel_gym.authors.contract import Author, Context
from kernel_gym.authors.model.author import ModelAuthor, nonce_of
from kernel_gym.authors.model.prompt import messages
from kernel_gym.envs.concurrent_calls import concurrent_calls
from kernel_gym.envs.pool import Composition, PoolRequest, similar
from kernel_gym.envs.prompt_context import describe, generation_request
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import InfrastructureError
from kernel_gym.experiments.statistics import Interval
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import estimate_tokens
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Unjudged, Verdict
from kernel_gym.verifier.contract import VerifyAll

#: The credit of each outcome: a kernel that compiles gets half.
CREDIT = {"feasible": 1.0, "incorrect": 0.5, "uncompilable": 0.0, "cheated": 0.0}
#: Resamplings of the bootstrap.
RESAMPLES = 1000

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class Case:
    """One context for one task, with the items that it shows."""

    task: Task
    items: tuple[MemoryItem, ...]
    context: Context


@dataclass(frozen=True)
class Design:
    """The size of the comparison: contexts per task (the first one is empty), items and repetitions per context."""

    contexts: int = 8
    picks: int = 5
    repeats: int = 4
    pool_factor: int = 4
    composition: Composition = "stratified"
    seed: int = 0

    def cases(self, tasks: Sequence[Task], bank: MemoryBank, language: str) -> list[Case]:
        """Return the contexts of every task: an empty one, then random draws from the environment's pool."""
        return [case for task in tasks for case in self._task_cases(task, bank, language)]

    def _task_cases(self, task: Task, bank: MemoryBank, language: str) -> list[Case]:
        request = PoolRequest(describe(task), self.picks * self.pool_factor, language)
        pool = [candidate.item for candidate in similar(bank, request, self.composition)]
        rng = generator(self.seed, "validity", task.id)
        drawn: list[tuple[MemoryItem, ...]] = [()]
        for _ in range(self.contexts - 1):
            picked = rng.choice(len(pool), min(self.picks, len(pool)), replace=False)
            drawn.append(tuple(pool[i] for i in picked))
        return [_case(task, items, bank, language) for items in drawn]

    def rng(self, cases: Sequence[Case], position: int, repeat: int) -> np.random.Generator:
        """Return the random generator of a repetition, which is the same for both authors."""
        return generator(self.seed, "validity", cases[position].task.id, position, repeat)


def _case(task: Task, items: tuple[MemoryItem, ...], bank: MemoryBank, language: str) -> Case:
    request = generation_request(task, items, lambda query, code: bank.api_pages(query, code, language))
    return Case(task, items, request.context)


@dataclass(frozen=True)
class Estimate:
    """The requests and tokens of the comparison; output tokens are an upper bound."""

    questions: int
    known: int
    tokens_in: int
    tokens_out_at_most: int
    dollars_at_most: float


def estimate(design: Design, cases: Sequence[Case], author: ModelAuthor) -> Estimate:
    """Return what is still to be paid, before any request is sent."""
    requests = [
        (messages(cases[i].task, cases[i].context, None, author.context_tokens), nonce_of(design.rng(cases, i, repeat)))
        for i in range(len(cases))
        for repeat in range(design.repeats)
    ]
    new = [prompt for prompt, nonce in requests if not author.endpoint.has_answer(prompt, nonce)]
    tokens_in = sum(estimate_tokens(*(message["content"] for message in prompt)) for prompt in new)
    settings = author.endpoint.settings
    out = len(new) * settings.max_tokens
    return Estimate(len(requests), len(requests) - len(new), tokens_in, out, settings.dollars(tokens_in, out))


def scores(
    design: Design,
    cases: Sequence[Case],
    author: Author,
    verify_all: VerifyAll,
    progress: Callable[[int], None] = lambda done: None,
) -> Vector:
    """Return the mean credit of each case with an author."""
    means = []
    for position, case in enumerate(cases):
        kernels = concurrent_calls(
            lambda repeat, at=position: author.write(  # type: ignore[misc]
                cases[at].task, cases[at].context, None, design.rng(cases, at, repeat)
            ),
            range(design.repeats),
            getattr(author, "writers", 1),
        )
        means.append(np.mean([_credit(verdict) for verdict in _verify(kernels, case.task, verify_all)]))
        progress(position + 1)
    return np.asarray(means)


def _verify(kernels: Sequence[Kernel], task: Task, verify_all: VerifyAll) -> list[Verdict]:
    written = [(kernel, task) for kernel in kernels if kernel.source.strip()]
    empty: list[Verdict] = [Uncompilable("no answer")] * (len(kernels) - len(written))
    return [*verify_all(written), *empty]


def _credit(verdict: Verdict) -> float:
    if isinstance(verdict, Unjudged):
        raise InfrastructureError(f"{verdict.feedback}; run the same command again to go on")
    return CREDIT[verdict.outcome]


@dataclass(frozen=True)
class Agreement:
    """Rank agreement averaged over tasks, with 95% bootstrap intervals.

    `operators` is the number of tasks; `informative` counts those for which both authors have different scores. Without
    one there is no figure (NaN).
    """

    kendall: Interval
    spearman: Interval
    operators: int
    informative: int


def agreement(cases: Sequence[Case], model: Vector, apprentice: Vector, seed: int = 0) -> Agreement:
    """Return how far two authors agree on which contexts help; tasks with equal scores say nothing."""
    names = [case.task.id for case in cases]
    groups = [np.flatnonzero([name == task for name in names]) for task in dict.fromkeys(names)]
    pairs = [(model[group], apprentice[group]) for group in groups]
    informative = [pair for pair in pairs if _varied(*pair)]
    rng = np.random.default_rng(seed)
    resampled = [[_resampled(pair, rng) for pair in informative] for _ in range(RESAMPLES)] if informative else []
    return Agreement(
        _interval(_kendall, informative, resampled),
        _interval(_spearman, informative, resampled),
        len(groups),
        len(informative),
    )


def _interval(
    statistic: Callable[[Vector, Vector], float],
    pairs: Sequence[tuple[Vector, Vector]],
    resampled: Sequence[Sequence[tuple[Vector, Vector]]],
) -> Interval:
    if not pairs:
        return Interval(float("nan"), float("nan"), float("nan"))
    samples = [
        np.mean([statistic(*pair) for pair in sample if _varied(*pair)])
        for sample in resampled
        if any(_varied(*pair) for pair in sample)
    ]
    low, high = np.quantile(samples, [0.025, 0.975]) if samples else (np.nan, np.nan)
    return Interval(float(np.mean([statistic(*pair) for pair in pairs])), float(low), float(high))


def _resampled(pair: tuple[Vector, Vector], rng: np.random.Generator) -> tuple[Vector, Vector]:
    """Draw contexts with replacement, the two authors' scores together."""
    drawn = rng.integers(len(pair[0]), size=len(pair[0]))
    return pair[0][drawn], pair[1][drawn]


def _varied(x: Vector, y: Vector) -> bool:
    return bool(np.ptp(x) > 0 and np.ptp(y) > 0)


def _kendall(x: Vector, y: Vector) -> float:
    """Return tau-b, which counts ties as neither agreement nor disagreement."""
    first, second = (np.sign(np.subtract.outer(values, values)) for values in (x, y))
    return float((first * second).sum() / np.sqrt((first**2).sum() * (second**2).sum()))


def _spearman(x: Vector, y: Vector) -> float:
    return float(np.corrcoef(rankdata(x), rankdata(y))[0, 1])


def summary(cases: Sequence[Case], model: Vector, apprentice: Vector, result: Agreement) -> dict[str, Any]:
    """Return the comparison as plain data."""
    return {
        "kendall": _plain(result.kendall),
        "spearman": _plain(result.spearman),
        "operators": result.operators,
        "informative": result.informative,
        "contexts": [
            {
                "task": case.task.id,
                "items": [item.title for item in case.items],
                "model": float(by_model),
                "apprentice": float(by_apprentice),
            }
            for case, by_model, by_apprentice in zip(cases, model, apprentice, strict=True)
        ],
    }


def _plain(interval: Interval) -> dict[str, float | None]:
    return {name: None if np.isnan(value) else value for name, value in vars(interval).items()}
