"""Build a table: play on it, collect the missing kernels, have them judged, and repeat.

This way the table gets the kernels that the author writes most. Half of the added kernels have no harmful mistake,
because their latency counts. The other half are failures, of which there are more than any table can hold.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.apprentice.tabular.author import ChosenRow, TabularAuthor
from kernel_gym.authors.apprentice.tabular.table import Row, Table, TaskTable
from kernel_gym.envs.factories import exported_operators
from kernel_gym.envs.options import Options
from kernel_gym.envs.tabular.batched_episodes import BatchedEpisodes
from kernel_gym.envs.tabular.item_arrays import ItemArrays
from kernel_gym.errors import InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.embedding import Embedder
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged, Verdict
from kernel_gym.verifier.contract import KernelVerifier

KernelKey = tuple[int, Schedule, tuple[tuple[str, str], ...]]


@dataclass(frozen=True)
class Coverage:
    """How many attempts found their exact kernel in the table: of all, and of those without a harmful mistake."""

    attempts: int
    exact: int
    sound: int
    sound_exact: int

    def __str__(self) -> str:
        return (
            f"{100 * self.exact / max(1, self.attempts):.1f}% of {self.attempts} attempts exact, "
            f"{100 * self.sound_exact / max(1, self.sound):.1f}% of the {self.sound} without a harmful mistake"
        )


class TableBuilder:
    """Builds a table, kernel by kernel."""

    def __init__(
        self, tasks: Sequence[Task], verifier: KernelVerifier, embedder: Embedder, language: str = "ascendc"
    ) -> None:
        self.tasks, self._verifier, self._embedder = list(tasks), verifier, embedder
        self._backend = backend(language)
        self._plans = [lower(task) for task in self.tasks]
        self.table = Table(language, {}, [self._first(i) for i in range(len(self.tasks))])
        for i in range(len(self.tasks)):
            for schedule in (self._backend.schedules.naive, self._backend.schedules.best):
                self.add(i, schedule, {})

    def _first(self, i: int) -> TaskTable:
        schedules = self._backend.schedules
        moves = tuple(move.id for move in schedules.moves() if schedules.matters(move, self._plans[i]))
        return TaskTable(self.tasks[i].id, tuple(exported_operators(self.tasks[i])), moves)

    def add(self, i: int, schedule: Schedule, wrong: dict[str, str]) -> Verdict:
        """Write the kernel with these mistakes, have it judged and add it to the table."""
        source, chosen = self._written(i, schedule, wrong)
        task = self.table.tasks[i]
        _, needed = self._written(i, schedule, {})
        task.needed[schedule] = tuple(dict.fromkeys((*task.needed.get(schedule, ()), *needed, *chosen)))
        verdict = self._verifier.verify(Kernel(source, self.table.language, trusted=True), self.tasks[i])
        if isinstance(verdict, Unjudged):
            raise InfrastructureError(f"a kernel of {task.id} could not be judged: {verdict.feedback}")
        task.rows.append(Row(schedule, wrong, source, verdict))
        return verdict

    def _written(self, i: int, schedule: Schedule, wrong: dict[str, str]) -> tuple[str, tuple[str, ...]]:
        def choose(idiom: Idiom) -> Spelling:
            name = wrong.get(idiom.id)
            return next((spelling for spelling in idiom.wrong if spelling.name == name), idiom.right)

        spelling = SpellingChoice(self._backend.idioms, choose)
        source = self._backend.write(self._plans[i], schedule, spelling)
        return source, tuple(spelling.chosen)

    def play(self, profile: Profile, attempts: int, seed: int, **options: Any) -> Iterator[tuple[int, ChosenRow]]:
        """Play with random picks on the table as it is; yield the task and the author's choice of each attempt."""
        arrays = ItemArrays(self.table, self._embedder)
        episodes = BatchedEpisodes(arrays, Options.of(options), TabularAuthor(arrays, profile), 4 * len(self.tasks))
        yield from played(episodes, attempts, seed)

    def grow(self, missing: Counter[KernelKey], count: int, tell: Callable[[str], None]) -> int:
        """Add the kernels that were missing most often, half of them sound; return how many."""
        sound = [key for key, _ in missing.most_common() if not self._harmful(key)]
        rest = [key for key, _ in missing.most_common() if self._harmful(key)]
        half = min(len(sound), max(count // 2, count - len(rest)))
        chosen = sound[:half] + rest[: count - half]
        for i, schedule, wrong in chosen:
            verdict = self.add(i, schedule, dict(wrong))
            tell(f"{self.tasks[i].id} {schedule.comment()[3:]} {dict(wrong) or ''}: {verdict.outcome}")
        return len(chosen)

    def renew(self, old: Table, tell: Callable[[str], None]) -> None:
        """Write and judge all kernels of an older table again, with the same schedules and mistakes."""
        for i, task in enumerate(old.tasks):
            there = {(row.schedule, tuple(sorted(row.wrong.items()))) for row in self.table.tasks[i].rows}
            for row in task.rows:
                if (row.schedule, tuple(sorted(row.wrong.items()))) not in there:
                    self.add(i, row.schedule, row.wrong)
            tell(f"{task.id}: {len(self.table.tasks[i].rows)} kernels judged")

    def _harmful(self, key: KernelKey) -> bool:
        idioms = self._backend.idioms
        spelled = ((idioms[name], spelling) for name, spelling in key[2])
        return any(
            idiom.effect_of(mistake) != "slow"
            for idiom, name in spelled
            for mistake in idiom.wrong
            if mistake.name == name
        )

    def missing_kernels(self, choices: Iterator[tuple[int, ChosenRow]]) -> tuple[Counter[KernelKey], Coverage]:
        """Return how often each missing kernel was decided on, and how much the table covers."""
        missing: Counter[KernelKey] = Counter()
        attempts = exact = sound = sound_exact = 0
        for task, choice in choices:
            key = (task, choice.schedule, tuple(sorted(choice.wrong.items())))
            fine = not self._harmful(key)
            attempts, exact = attempts + 1, exact + choice.exact
            sound, sound_exact = sound + fine, sound_exact + (fine and choice.exact)
            if not choice.exact:
                missing[key] += 1
        return missing, Coverage(attempts, exact, sound, sound_exact)


def played(episodes: BatchedEpisodes, attempts: int, seed: int) -> Iterator[tuple[int, ChosenRow]]:
    """Make random picks until `attempts` attempts have ended; yield the task and the author's choice of each."""
    rng = np.random.default_rng(seed)
    episodes.restart(seed)
    everyone = np.arange(episodes.count)
    for i in range(episodes.count):
        episodes.begin(i)
    episodes.open_attempts(range(episodes.count))
    while attempts > 0:
        picking = everyone[~episodes.ready]
        if len(picking):
            scores = rng.random((episodes.count, episodes.options.slots + 1)) + 2 * episodes.mask()
            scores[:, -1] -= 1.5 * (rng.random(episodes.count) < 0.9)
            episodes.pick(picking, scores.argmax(axis=1)[picking])
            continue
        tasks = episodes.task.tolist()
        for task, result in zip(tasks, episodes.commit(), strict=True):
            yield task, result.chosen
        attempts -= episodes.count
        for i in np.flatnonzero(episodes.over).tolist():
            episodes.begin(i)
        episodes.open_attempts(range(episodes.count))
