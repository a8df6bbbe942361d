"""Compute the skill at which an author that ignores its context is right as often as one with random contexts."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log, prod

import numpy as np

from kernel_gym.authors.apprentice import fluent, load_profile, lower
from kernel_gym.authors.apprentice.ascendc.kernel_file import write_kernel
from kernel_gym.authors.apprentice.ascendc.schedule import NAIVE
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.authors.apprentice.behaviour.spelling_odds import SpellingOdds
from kernel_gym.authors.contract import Context, Note
from kernel_gym.memory.item import Kind
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible

PAGES, OTHERS = 10, 5


def placebo_skill(profile: str, tasks: tuple[Task, ...], contexts: int) -> tuple[float, float]:
    """Return the rate of correct drafts of a profile with random contexts, and the skill that gives the same rate."""
    needed = [_needed(task) for task in tasks]
    reader = load_profile(profile)
    rate = float(np.mean([_rates(reader, context, needed) for context in _contexts(tasks, contexts)]))
    return rate, _skill(needed, rate)


def _needed(task: Task) -> tuple[str, ...]:
    """Return the idioms that a plain draft needs."""
    spelling = always_right(idioms())
    write_kernel(lower(task), NAIVE, spelling)
    return tuple(spelling.chosen)


def _contexts(tasks: tuple[Task, ...], number: int) -> Iterator[Context]:
    items = seed_items("ascendc")
    pages = [Note("api", item.text) for item in items if item.kind is Kind.API]
    practices = [Note("practice", item.text) for item in items if item.kind is Kind.PRACTICE]
    working = Feasible("Correct.", latency=1.0)
    traces = [Note("trace", source, source, working) for source in (fluent(task).source for task in tasks)]
    rng = np.random.default_rng(0)
    for _ in range(number):
        kinds = [traces if rng.random() < 0.5 else practices for _ in range(OTHERS)]
        chosen = [kind[int(rng.integers(len(kind)))] for kind in kinds]
        yield (*chosen, *(pages[int(n)] for n in rng.choice(len(pages), PAGES, replace=False)))


def _rates(profile: Profile, context: Context, needed: list[tuple[str, ...]]) -> float:
    """Return the mean rate of right drafts over kernels that need these idioms."""
    odds = SpellingOdds(profile, context, None)
    sure = {idiom.id: odds.estimate(idiom).probability for idiom in idioms().values()}
    return float(np.mean([prod(sure[name] for name in names) for names in needed]))


def _skill(needed: list[tuple[str, ...]], rate: float) -> float:
    """Find the skill of a rate by bisection: the rate rises with the skill."""
    priors = {idiom.id: log(idiom.prior.probability / (1 - idiom.prior.probability)) for idiom in idioms().values()}

    def reached(skill: float) -> float:
        right = {name: 1 / (1 + exp(-odds - skill)) for name, odds in priors.items()}
        return float(np.mean([prod(right[name] for name in names) for names in needed]))

    low, high = -10.0, 20.0
    while high - low > 1e-4:
        middle = (low + high) / 2
        low, high = (middle, high) if reached(middle) < rate else (low, middle)
    return (low + high) / 2
