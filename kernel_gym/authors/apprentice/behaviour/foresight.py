"""What the apprentice would come to, without writing: the chance that its kernel has nothing wrong in it.

An author that is a program can be asked. Every idiom is an independent draw with a known probability, so the chance
that a kernel of one schedule is right is their product; schedules are drawn, and the chance is the mean over the draws.
Contexts that are compared get the same draws. It is a prediction: what a kernel is worth, the verifier says.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import Any

import numpy as np

from kernel_gym.authors.apprentice.author import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.moves import moves
from kernel_gym.authors.apprentice.behaviour.spelling_choice import fluent
from kernel_gym.authors.apprentice.behaviour.spelling_odds import Judge
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import craft
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible


@dataclass(frozen=True)
class Prospect:
    """What an attempt would come to: the chance of a feasible kernel, and of a feasible one that also takes a move
    against the start point's bottleneck (the same as the first in drafting)."""

    feasible: float
    better: float


def foresee(
    author: Apprentice, task: Task, context: Context, start: StartPoint | None = None, draws: int = 4, seed: int = 0
) -> Prospect:
    """The mean over `draws` schedules, the same ones for every context under one seed."""
    try:
        plan = lower(task)
    except Unsupported:
        return Prospect(0.0, 0.0)
    roots = np.random.default_rng(seed).integers(2**63, size=draws)
    seen = [_one(author, plan, context, start, int(root)) for root in roots]
    return Prospect(*(float(np.mean(column)) for column in zip(*seen, strict=True)))


def _one(author: Apprentice, plan: Plan, context: Context, start: StartPoint | None, root: int) -> tuple[float, float]:
    if not author.profile.reads:
        context, start = (), None
    course = author.course(plan, context, start, root)
    judge = Judge(author.profile, context, start, course.risks, author.language)
    needed = _needed(author.language, plan, course.schedule)
    right = prod(_harmless(idiom, judge.judge(idiom).probability) for idiom in needed)
    if start is None:
        return right, right
    bottleneck = start.verdict.profile.bottleneck if isinstance(start.verdict, Feasible) else ""
    fits = {move.id for move in moves(author.language) if bottleneck in move.fits}
    return right, right * (not fits.isdisjoint(course.moves))


def _harmless(idiom: Idiom, right: float) -> float:
    """The chance that an idiom does not stand in the way: spelled right, or wrong in a way that is only slow."""
    total = sum(spelling.weight for spelling in idiom.wrong)
    slow = sum(spelling.weight for spelling in idiom.wrong if idiom.effect_of(spelling) == "slow")
    return right + (1 - right) * slow / total


@lru_cache(maxsize=4096)
def _needed(language: str, plan: Plan, schedule: Any) -> tuple[Idiom, ...]:
    """The idioms that a kernel of this plan and schedule is made of."""
    known = craft(language)
    voice = fluent(known.idioms)
    known.write(plan, schedule, voice)
    return tuple(known.idioms[name] for name in voice.spoken)
