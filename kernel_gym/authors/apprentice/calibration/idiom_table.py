"""The idioms that kernels for the tasks of a suite need, as arrays."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from kernel_gym import activity
from kernel_gym.authors.apprentice.author import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, idioms
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misread, misreading
from kernel_gym.authors.apprentice.behaviour.reading import Reading, read_note
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.prediction import needed_idioms
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.tasks.task import Task

#: Schedules that are drawn for each task.
SCHEDULES = 4


@dataclass(frozen=True)
class IdiomTable:
    """What kernels for some tasks need of the idioms; the last ones are the misreadings.

    `needed` is indexed by task, schedule and idiom. `uncompilable` and `harmful` give, for each idiom, the share of its
    mistakes that a compiler refuses, and of those that make a kernel infeasible.
    """

    idioms: tuple[Idiom, ...]
    needed: NDArray[np.bool_]
    suites: NDArray[np.str_]
    prior: NDArray[np.float64]
    uncompilable: NDArray[np.float64]
    harmful: NDArray[np.float64]
    #: The idioms that the demonstration shows, times how far they are noticed.
    demonstrated: NDArray[np.float64]

    @property
    def meaning(self) -> NDArray[np.bool_]:
        """The idioms that are misreadings of a task."""
        return np.array([idiom.meaning for idiom in self.idioms])


def idiom_table(tasks: Sequence[Task], base: Apprentice) -> IdiomTable:
    """Return the table of some tasks, for the schedules that `base` drafts when it is shown the demonstration."""
    shown = demonstration(base.language)
    columns = (*idioms(base.language).values(), *map(misreading, KINDS))
    index = {idiom.id: column for column, idiom in enumerate(columns)}
    needed = np.zeros((len(tasks), SCHEDULES, len(columns)), bool)
    for row, task in enumerate(tasks):
        activity.prepare(f"idioms of {task.id}")
        plan = lower(task)
        misreadable = [index[misreading(kind).id] for kind in KINDS if misread(plan, kind) is not None]
        for schedule in range(SCHEDULES):
            choice = base.choose_schedule(plan, (shown,), None, schedule)
            spelled = [index[idiom.id] for idiom in needed_idioms(base.language, plan, choice.schedule)]
            needed[row, schedule, spelled + misreadable] = True
    prior = np.array([idiom.prior.probability for idiom in columns])
    reading = read_note(shown, base.language)
    return IdiomTable(
        columns,
        needed,
        np.array([task.id.partition("/")[0] for task in tasks]),
        np.log(prior / (1 - prior)),
        np.array([_share(idiom, ("uncompilable",)) for idiom in columns]),
        np.array([_share(idiom, ("uncompilable", "fault", "mismatch")) for idiom in columns]),
        np.array([_noticed(idiom, reading, base) for idiom in columns]),
    )


def _share(idiom: Idiom, effects: tuple[str, ...]) -> float:
    """Return the share of an idiom's mistakes that have one of the effects."""
    total = sum(spelling.weight for spelling in idiom.wrong)
    return sum(spelling.weight for spelling in idiom.wrong if idiom.effect_of(spelling) in effects) / total


def _noticed(idiom: Idiom, reading: Reading, base: Apprentice) -> float:
    """Return how far the demonstration's right spelling of an idiom is noticed, between 0 and 1."""
    sight = reading.sights.get(idiom.id)
    if sight is None or not sight.right:
        return 0.0
    profile = base.profile
    attention = profile.span / (profile.span + reading.length) * profile.focus / (profile.focus + reading.length)
    return min(1.0, attention * (1 + profile.comment * sight.commented))
