"""Optimisation moves: how the apprentice chooses a schedule, in a first draft and in refining.

A schedule says how a kernel uses the machine (cores, tiles, buffers). A move changes one field of it. Each language
defines its schedules as a `ScheduleSpace`, in `ascendc/moves.py` and `cuda/moves.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from math import exp, log
from typing import Any

import numpy as np
from pydantic import BaseModel, ConfigDict

from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.reading import shows
from kernel_gym.authors.apprentice.frontend.plan import Plan
from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.data_files import parse_yaml
from kernel_gym.verdict import Feasible

#: Returns the random stream of one named decision.
Stream = Callable[[str], np.random.Generator]


class Move(BaseModel):
    """One optimisation: a ladder of values for one field of the schedule, from slow to fast.

    `draft` is the probability of each rung in a first draft. `fits` names the bottlenecks that the move relieves.
    `seen` holds regular expressions that recognise it in a text. `risks` names the idioms that it may break.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: str
    about: str
    field: str
    ladder: tuple[int, ...]
    draft: float
    fits: tuple[str, ...]
    seen: tuple[str, ...]
    risks: tuple[str, ...]

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """All of `seen` as one pattern."""
        return re.compile("|".join(f"(?:{text})" for text in self.seen))

    def rung(self, schedule: Any) -> int:
        """Return the rung that a schedule stands on; a value between two rungs counts as the lower one."""
        value = int(getattr(schedule, self.field))
        if value in self.ladder:
            return self.ladder.index(value)
        below = [index for index, rung in enumerate(self.ladder) if 0 < rung <= value]
        return below[-1] if below else 0

    def at(self, schedule: Any, rung: int) -> Any:
        """Return the schedule moved to a rung."""
        value = self.ladder[rung]
        kind = type(getattr(schedule, self.field))
        return replace(schedule, **{self.field: kind(value)})


@dataclass(frozen=True)
class ScheduleChoice:
    """The schedule of one attempt, the moves that led to it, and the idioms that these moves put at risk."""

    schedule: Any
    moves: tuple[str, ...] = ()
    risks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class ScheduleSpace:
    """The schedules of one language and how to move between them."""

    language: str
    #: Where a first draft begins, before any move.
    first: Any
    #: What a careful beginner writes.
    naive: Any
    #: The fastest one known.
    best: Any
    #: Returns the schedule that a kernel's comment records, or None.
    recorded: Callable[[str], Any]
    #: Returns the schedule of a kernel without such a comment, recognised by its text.
    recognised: Callable[[str], Any]
    #: Returns whether a move changes anything in kernels for a plan.
    matters: Callable[[Move, Plan], bool]

    def moves(self) -> tuple[Move, ...]:
        """Return the moves of the language."""
        return moves(self.language)


@lru_cache(maxsize=8)
def moves(language: str = "ascendc") -> tuple[Move, ...]:
    """Return the moves of a language, from its `moves.yaml`."""
    text = resources.files("kernel_gym.authors.apprentice").joinpath(language, "moves.yaml").read_text()
    return tuple(Move.model_validate(record) for record in parse_yaml(text))


def draft(plan: Plan, profile: Profile, context: Context, stream: Stream, schedules: ScheduleSpace) -> ScheduleChoice:
    """Choose the schedule of a first draft: simple, with some moves by habit and more that the context shows."""
    if profile.fluent:
        return ScheduleChoice(schedules.best)
    schedule = schedules.first
    taken: list[str] = []
    for move in schedules.moves():
        if not move.draft or not schedules.matters(move, plan):
            schedule = schedule if move.draft == 0.0 else move.at(schedule, len(move.ladder) - 1)
            continue
        odds = log(move.draft / (1 - move.draft)) + profile.ambition + profile.prompted * _shown(move, context)
        draws = stream(f"move:{move.id}").random(len(move.ladder) - 1)
        rung = 0
        while rung < len(draws) and draws[rung] < _sigmoid(odds):
            rung += 1
        schedule = move.at(schedule, rung)
        taken += [move.id] * (rung > 0)
    return ScheduleChoice(schedule, tuple(taken))


def refine(
    plan: Plan, profile: Profile, context: Context, start: StartPoint, stream: Stream, schedules: ScheduleSpace
) -> ScheduleChoice:
    """Choose one or two moves from the start point's schedule.

    A move is likelier if it relieves the bottleneck or if the context shows it, and less likely if a child of the start
    point has tried it.
    """
    if profile.fluent:
        return ScheduleChoice(schedules.best)
    schedule = schedules.recorded(start.kernel.source) or schedules.recognised(start.kernel.source)
    bottleneck = start.verdict.profile.bottleneck if isinstance(start.verdict, Feasible) else ""
    children = " ".join(start.children)
    scored: list[tuple[float, Move]] = []
    for move in schedules.moves():
        if move.rung(schedule) + 1 >= len(move.ladder) or not schedules.matters(move, plan):
            continue
        score = profile.prompted * _shown(move, context) + profile.fitting * (bottleneck in move.fits)
        score -= profile.fitting * _tried(move, schedule, children)
        scored.append((score + float(stream(f"refine:{move.id}").gumbel()), move))
    scored.sort(key=lambda item: -item[0])
    count = 1 + int(stream("refine").random() < profile.boldness)
    chosen = _compatible([move for _, move in scored])[:count]
    for move in chosen:
        rung = int(stream(f"far:{move.id}").integers(move.rung(schedule) + 1, len(move.ladder)))
        schedule = move.at(schedule, rung)
    return ScheduleChoice(schedule, tuple(m.id for m in chosen), frozenset(risk for m in chosen for risk in m.risks))


def repair(start: StartPoint, schedules: ScheduleSpace) -> ScheduleChoice:
    """Keep the schedule of a kernel that is to be mended."""
    return ScheduleChoice(schedules.recorded(start.kernel.source) or schedules.recognised(start.kernel.source))


def _compatible(ordered: list[Move]) -> list[Move]:
    """Return the moves without those that change the same field as an earlier one."""
    result: list[Move] = []
    for move in ordered:
        if all(move.field != other.field for other in result):
            result.append(move)
    return result


def _shown(move: Move, context: Context) -> bool:
    """Return whether a note shows the move; failed kernels do not count."""
    return any(shows(move.pattern, note.text) for note in context if _worth_following(note))


def _worth_following(note: Note) -> bool:
    return note.verdict is None or note.verdict.feasible


def _tried(move: Move, schedule: Any, children: str) -> bool:
    """Return whether a child's line says that a higher rung of this move was tried."""
    return bool(children) and any(f"{move.field}={rung}" in children for rung in move.ladder[move.rung(schedule) + 1 :])


def _sigmoid(odds: float) -> float:
    return 1 / (1 + exp(-odds))
