"""Optimisation moves: how an author comes to a schedule, in a first draft and in refining."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from importlib import resources
from math import exp, log
from typing import Any

import numpy as np
import yaml
from pydantic import BaseModel, ConfigDict

from kernel_gym.authors.apprentice.ascendc.nest import near
from kernel_gym.authors.apprentice.ascendc.schedule import BEST, NAIVE, Schedule, recorded
from kernel_gym.authors.apprentice.ascendc.short_rows import suits
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.reading import shows
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Plan, Ref, Stage, Step
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.verdict import Feasible

Stream = Callable[[str], np.random.Generator]


class Move(BaseModel):
    """One optimisation: a ladder of values for a field of the schedule."""

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
        """Where a schedule stands on the ladder."""
        value = int(getattr(schedule, self.field))
        if value in self.ladder:
            return self.ladder.index(value)
        below = [index for index, rung in enumerate(self.ladder) if 0 < rung <= value]
        return below[-1] if below else 0

    def at(self, schedule: Any, rung: int) -> Any:
        """The schedule moved to a rung."""
        value = self.ladder[rung]
        kind = type(getattr(schedule, self.field))
        return replace(schedule, **{self.field: kind(value)})


@dataclass(frozen=True)
class Course:
    """The schedule an author settled on, the moves that led there, and the idioms that these put at risk."""

    schedule: Any
    moves: tuple[str, ...] = ()
    risks: frozenset[str] = frozenset()


@dataclass(frozen=True)
class Ways:
    """The schedules of a language: where drafts begin, the best one, the moves, and how a text gives its schedule away.

    `matters` says whether a move changes anything in kernels for a plan.
    """

    first: Any
    best: Any
    moves: Callable[[], tuple[Move, ...]]
    recorded: Callable[[str], Any]
    recognised: Callable[[str], Any]
    matters: Callable[[Move, Plan], bool]


@lru_cache(maxsize=8)
def moves(language: str = "ascendc") -> tuple[Move, ...]:
    """The moves of a language that come with the package."""
    text = resources.files("kernel_gym.authors.apprentice").joinpath(language, "moves.yaml").read_text()
    return tuple(Move.model_validate(record) for record in yaml.safe_load(text))


def draft(plan: Plan, profile: Profile, context: Context, stream: Stream, ways: Ways) -> Course:
    """The schedule of a first draft: simple, except where the context or the author's habits go further."""
    if profile.fluent:
        return Course(ways.best)
    schedule = ways.first
    taken: list[str] = []
    for move in ways.moves():
        if not move.draft or not ways.matters(move, plan):
            schedule = schedule if move.draft == 0.0 else move.at(schedule, len(move.ladder) - 1)
            continue
        odds = log(move.draft / (1 - move.draft)) + profile.ambition + profile.prompted * _shown(move, context)
        draws = stream(f"move:{move.id}").random(len(move.ladder) - 1)
        rung = 0
        while rung < len(draws) and draws[rung] < _sigmoid(odds):
            rung += 1
        schedule = move.at(schedule, rung)
        taken += [move.id] * (rung > 0)
    return Course(schedule, tuple(taken))


def refine(plan: Plan, profile: Profile, context: Context, start: StartPoint, stream: Stream, ways: Ways) -> Course:
    """One or two steps from the start point's schedule, likelier where they fit and where the context shows them."""
    if profile.fluent:
        return Course(ways.best)
    schedule = ways.recorded(start.kernel.source) or ways.recognised(start.kernel.source)
    bottleneck = start.verdict.profile.bottleneck if isinstance(start.verdict, Feasible) else ""
    told = " ".join(start.children)
    scored: list[tuple[float, Move]] = []
    for move in ways.moves():
        if move.rung(schedule) + 1 >= len(move.ladder) or not ways.matters(move, plan):
            continue
        score = profile.prompted * _shown(move, context) + profile.fitting * (bottleneck in move.fits)
        score -= profile.fitting * _tried(move, schedule, told)
        scored.append((score + float(stream(f"refine:{move.id}").gumbel()), move))
    scored.sort(key=lambda item: -item[0])
    wanted = 1 + int(stream("refine").random() < profile.boldness)
    chosen = _compatible([move for _, move in scored])[:wanted]
    for move in chosen:
        far = int(stream(f"far:{move.id}").integers(move.rung(schedule) + 1, len(move.ladder)))
        schedule = move.at(schedule, far)
    return Course(schedule, tuple(m.id for m in chosen), frozenset(risk for m in chosen for risk in m.risks))


def recognised(source: str) -> Schedule:
    """The schedule of a kernel that somebody else wrote, as far as its text gives it away."""

    def number(pattern: str, default: int) -> int:
        found = re.search(pattern, source)
        return int(found[1]) if found else default

    scalar_loop = re.search(r"for\s*\([^)]*\)\s*\{?[^}]*SetValue\s*\([^}]*GetValue", source) is not None
    return Schedule(
        cores=number(r"<<<\s*(\d+)", number(r"(?:cores|blockDim|BLOCK_DIM|blocks)\w*\s*=\s*(\d+)", 8)),
        tile=number(r"(?i)tile\w*\s*=\s*(\d+)", 1024),
        buffers=number(r"InitBuffer\(\s*\w*[qQ]\w*\s*,\s*(\d)\s*,", 1),
        batch=1,
        resident=True,
        vector=not scalar_loop,
        fused=source.count("<<<") <= 1,
        cube="REGIST_MATMUL_OBJ" in source,
    )


def _compatible(ordered: list[Move]) -> list[Move]:
    """Moves that do not pull at the same field."""
    result: list[Move] = []
    for move in ordered:
        if all(move.field != other.field for other in result):
            result.append(move)
    return result


def _shown(move: Move, context: Context) -> bool:
    return any(shows(move.pattern, note.text) for note in context if _worth_following(note))


def _worth_following(note: object) -> bool:
    verdict = getattr(note, "verdict", None)
    return verdict is None or bool(verdict.feasible)


def _tried(move: Move, schedule: Any, told: str) -> bool:
    """True if a child's line says that this step was taken before."""
    return bool(told) and any(f"{move.field}={rung}" in told for rung in move.ladder[move.rung(schedule) + 1 :])


def _matters(move: Move, plan: Plan) -> bool:
    """True if the move changes anything in kernels for this plan."""
    nests = [nest for stage in plan.stages if (nest := _nest(stage)) is not None]
    if move.field == "batch" and any(suits(nest) for nest in nests):
        return True
    if move.field in ("batch", "resident"):
        return any(nest.reductions and nest.vector_reduced and not nest.reduced for nest in nests)
    if move.field == "fused":
        return plan.apart is not None
    if move.field == "bursts":
        return any(suits(nest) or (nest.vector_reduced and nest.kept) or _apart(nest) for nest in nests)
    if move.field == "immediate":
        return any(_takes_number(nest, step) for nest in nests for step in nest.steps)
    if move.field == "vector":
        return any(nest.scalar_possible for nest in nests)
    if move.field == "cube":
        return any(isinstance(stage, Either) and not stage.heavy for stage in plan.stages)
    return True


def _apart(nest: Nest) -> bool:
    """True if the nest loads elements that lie near each other, but not side by side."""
    return any(near(step.access.step) for step in nest.loads if step.access)


def _takes_number(nest: Nest, step: Step) -> bool:
    """True if an instruction on a tensor takes a number as well."""
    if not step.vector or step.function not in ("add", "sub", "mul", "div", "max", "min", "relu"):
        return False
    vectors = [isinstance(argument, Ref) and nest.steps[argument.step].vector for argument in step.arguments]
    return any(vectors) and (step.function == "relu" or not all(vectors))


def _nest(stage: Stage) -> Nest | None:
    if isinstance(stage, Either):
        return None if stage.heavy else stage.vector
    return stage if isinstance(stage, Nest) else None


def _sigmoid(odds: float) -> float:
    return 1 / (1 + exp(-odds))


#: A draft goes through loops over elements before it finds the vector unit.
_FIRST = replace(NAIVE, vector=False)
WAYS = Ways(_FIRST, BEST, moves, recorded, recognised, _matters)
