"""Predicts the outcome of the apprentice's next attempt without writing and verifying a kernel.

Every idiom is an independent draw with a known probability, so the chance that a kernel of one schedule is right is the
product over its idioms. Schedules are drawn, and the prediction is the mean over the draws. Contexts that are compared
under one seed get the same draws. The real quality of a kernel is decided by the verifier alone.
"""

from __future__ import annotations

from collections.abc import Set
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from kernel_gym.authors.apprentice.author import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import Effect, Idiom
from kernel_gym.authors.apprentice.behaviour.moves import moves
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible

#: The effects of a wrong spelling after which a kernel is not feasible.
FAILURES: Set[Effect] = frozenset({"uncompilable", "fault", "mismatch"})


@dataclass(frozen=True)
class Prediction:
    """The chances that an attempt gives a feasible kernel, a feasible and better one, and one that compiles.

    In refining, `better` is the chance that the kernel is feasible and takes a move against the start point's
    bottleneck. In drafting and in repair it equals `feasible`.
    """

    feasible: float
    better: float
    compiled: float = 0.0


def predict(
    author: Apprentice, task: Task, context: Context, start: StartPoint | None = None, draws: int = 4, seed: int = 0
) -> Prediction:
    """Return the mean over `draws` schedules; under one seed every context gets the same draws."""
    try:
        plan = lower(task)
    except Unsupported:
        return Prediction(0.0, 0.0)
    roots = np.random.default_rng(seed).integers(2**63, size=draws)
    chances = [_chances(author, task, plan, context, start, int(root)) for root in roots]
    return Prediction(*(float(np.mean(column)) for column in zip(*chances, strict=True)))


def _chances(
    author: Apprentice, task: Task, plan: Plan, context: Context, start: StartPoint | None, root: int
) -> tuple[float, float, float]:
    """Return the chances (feasible, better, compiled) for the schedule that `root` draws."""
    if not author.profile.reads:
        context, start = (), None
    choice = author.choose_schedule(plan, context, start, root)
    odds = author.odds(task, context, start, choice, root)
    meanings = [idiom for idiom, _ in author.misreadings(plan)]
    needed = [*meanings, *needed_idioms(author.language, plan, choice.schedule)]
    chances = [(idiom, odds.estimate(idiom).probability) for idiom in needed]
    right = prod(_without(FAILURES, *chance) for chance in chances)
    compiled = prod(_without({"uncompilable"}, *chance) for chance in chances)
    if start is None or not start.verdict.feasible:
        return right, right, compiled
    bottleneck = start.verdict.profile.bottleneck if isinstance(start.verdict, Feasible) else ""
    fits = {move.id for move in moves(author.language) if bottleneck in move.fits}
    return right, right * (not fits.isdisjoint(choice.moves)), compiled


def _without(effects: Set[Effect], idiom: Idiom, right: float) -> float:
    """Return the chance that an idiom has none of the effects: spelled right, or wrong with another effect."""
    total = sum(spelling.weight for spelling in idiom.wrong)
    harmless = sum(spelling.weight for spelling in idiom.wrong if idiom.effect_of(spelling) not in effects)
    return right + (1 - right) * harmless / total


@lru_cache(maxsize=4096)
def needed_idioms(language: str, plan: Plan, schedule: Any) -> tuple[Idiom, ...]:
    """Return the idioms that a kernel of this plan and schedule uses."""
    writer = backend(language)
    spelling = always_right(writer.idioms)
    writer.write(plan, schedule, spelling)
    return tuple(writer.idioms[name] for name in spelling.chosen)
