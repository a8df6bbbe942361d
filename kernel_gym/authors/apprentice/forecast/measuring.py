"""Measure what the forecast needs: latencies of schedules for each task, and the verdict of every mistake."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import islice

import numpy as np

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.author import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import Spelling
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misread, misreading
from kernel_gym.authors.apprentice.behaviour.profile import load_profile
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice, always_right
from kernel_gym.authors.apprentice.forecast.kernel_texts import CANONICAL
from kernel_gym.authors.apprentice.forecast.latency_model import relevant
from kernel_gym.authors.apprentice.forecast.measurements import Message, Point
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Unjudged, Verdict

VerifyAll = Callable[[Sequence[tuple[Kernel, Task]]], Sequence[Verdict]]

#: Tasks that are tried until a mistake shows its declared effect.
CARRIERS = 6


class Measuring:
    """Writes kernels and has them judged; whatever the infrastructure fails to judge is left out."""

    def __init__(self, verify_all: VerifyAll, language: str = "ascendc") -> None:
        self._verify_all, self._backend = verify_all, backend(language)

    def points(self, tasks: Sequence[Task], count: int, seed: int = 0) -> dict[str, list[Point]]:
        """Return the verdicts of `count` schedules of each task, all without mistakes; none if it cannot be lowered.

        The kernels of all tasks are judged together, so that a slow one does not hold up the others.
        """
        asked = [(task, schedule, kernel) for task in tasks for schedule, kernel in self._samples(task, count, seed)]
        verdicts = self._verify_all([(kernel, task) for task, _, kernel in asked])
        points: dict[str, list[Point]] = {task.id: [] for task in tasks}
        for (task, schedule, _), verdict in zip(asked, verdicts, strict=True):
            points[task.id] += [] if isinstance(verdict, Unjudged) else [_point(schedule, verdict)]
        return points

    def _samples(self, task: Task, count: int, seed: int) -> list[tuple[Schedule, Kernel]]:
        try:
            plan = lower(task)
        except Unsupported:
            return []
        return [(schedule, self._kernel(plan, schedule, {})) for schedule in sampled_schedules(plan, count, seed)]

    def messages(self, tasks: Sequence[Task]) -> dict[str, Message]:
        """Return the verdict of every mistake, from the first task on which it has its declared effect.

        Args:
            tasks: Tasks to look for the mistake in; at most `CARRIERS` of them are tried.

        Returns:
            The messages by `idiom:spelling`; a mistake that never had its declared effect is left out.
        """
        carriers = self._carriers(tasks)
        left = [(idiom, wrong) for idiom in self._backend.idioms.values() for wrong in idiom.wrong]
        messages: dict[str, Message] = {}
        for turn in range(CARRIERS):
            tried = [(i, wrong, *carriers[i.id][turn]) for i, wrong in left if turn < len(carriers[i.id])]
            kernels = [(self._kernel(lower(task), s, {i.id: wrong}), task) for i, wrong, task, s in tried]
            for (idiom, wrong, task, schedule), verdict in zip(tried, self._verify_all(kernels), strict=True):
                if idiom.effect_of(wrong) == "slow" and verdict.latency_us is not None:
                    messages[f"{idiom.id}:{wrong.name}"] = self._slow(verdict, task, schedule)
                elif _effect(verdict) == idiom.effect_of(wrong):
                    messages[f"{idiom.id}:{wrong.name}"] = _message(verdict)
            left = [(idiom, wrong) for idiom, wrong in left if f"{idiom.id}:{wrong.name}" not in messages]
        return messages | self._misreadings(tasks)

    def _misreadings(self, tasks: Sequence[Task]) -> dict[str, Message]:
        """Return the verdict of every kind of misreading."""
        messages: dict[str, Message] = {}
        for kind in KINDS:
            idiom = misreading(kind)
            plans = ((misread(lower(task), kind), task) for task in tasks)
            carriers = list(islice(((plan, task) for plan, task in plans if plan is not None), CARRIERS))
            kernels = [(self._kernel(plan, Schedule(), {}), task) for plan, task in carriers]
            wrong = [verdict for verdict in self._verify_all(kernels) if _effect(verdict) == idiom.effect]
            messages |= {f"{idiom.id}:{idiom.wrong[0].name}": _message(verdict) for verdict in wrong[:1]}
        return messages

    def _slow(self, verdict: Verdict, task: Task, schedule: Schedule) -> Message:
        """Return the message of a mistake that is only slow: how many times as long the kernel takes."""
        (right,) = self._verify_all([(self._kernel(lower(task), schedule, {}), task)])
        latency, sound = verdict.latency_us or 1.0, right.latency_us or verdict.latency_us or 1.0
        return Message(verdict.outcome, "", ratio=round(max(1.0, latency / sound), 4))

    def _carriers(self, tasks: Sequence[Task]) -> dict[str, list[tuple[Task, Schedule]]]:
        """Return, for each idiom, the first tasks whose kernels need it, with a schedule that does."""
        carriers: dict[str, list[tuple[Task, Schedule]]] = {name: [] for name in self._backend.idioms}
        for task in tasks:
            for schedule in CANONICAL:
                for name in self.needed(lower(task), schedule):
                    if len(carriers[name]) < CARRIERS and all(task is not other for other, _ in carriers[name]):
                        carriers[name].append((task, schedule))
        return carriers

    def needed(self, plan: Plan, schedule: Schedule) -> tuple[str, ...]:
        """Return the idioms that a kernel of this schedule needs."""
        spelling = always_right(self._backend.idioms)
        self._backend.write(plan, schedule, spelling)
        return tuple(spelling.chosen)

    def _kernel(self, plan: Plan, schedule: Schedule, wrong: dict[str, Spelling]) -> Kernel:
        spelling = SpellingChoice(self._backend.idioms, lambda idiom: wrong.get(idiom.id, idiom.right))
        return Kernel(self._backend.write(plan, schedule, spelling), self._backend.language, trusted=True)


def sampled_schedules(plan: Plan, count: int, seed: int = 0) -> list[Schedule]:
    """Return distinct schedules as the apprentice comes to write them: drafts, and steps of their refinement."""
    author, rng = Apprentice(load_profile("middle")), np.random.default_rng(seed)
    space = author.backend.schedules
    moves = [move for move in space.moves() if space.matters(move, plan)]
    names = frozenset(move.field for move in moves)
    chosen = dict.fromkeys(relevant(schedule, names) for schedule in (space.best, space.naive))
    for _ in range(50 * count):
        if len(chosen) >= count:
            break
        schedule = author.choose_schedule(plan, (), None, int(rng.integers(2**63))).schedule
        for _ in range(int(rng.integers(0, 6))):
            move = moves[int(rng.integers(len(moves)))]
            if move.rung(schedule) + 1 < len(move.ladder):
                schedule = move.at(schedule, int(rng.integers(move.rung(schedule) + 1, len(move.ladder))))
        chosen.setdefault(relevant(schedule, names))
    return list(chosen)[:count]


def _point(schedule: Schedule, verdict: Verdict) -> Point:
    if isinstance(verdict, Feasible):
        return Point(schedule, verdict.latency, verdict.profile.bottleneck, verdict.profile.diagnosis)
    return Point(schedule, 0.0, "", verdict.feedback, verdict.outcome)


def _effect(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome


def _message(verdict: Verdict) -> Message:
    feedback = re.sub(r"\bline \d+", "line {line}", verdict.feedback.replace("{", "(").replace("}", ")"), count=1)
    feedback = re.sub(r" \| .*", " | {code}", feedback)
    if isinstance(verdict, Incorrect):
        return Message(verdict.outcome, feedback, verdict.cause, verdict.rule, verdict.case)
    return Message(verdict.outcome, feedback)
