"""The rows of a table by number, with the schedules, idioms and moves that occur in them."""

from __future__ import annotations

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.moves import Move
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.apprentice.tabular.table import Row, Table


class TableIndex:
    """Rows are numbered over all tasks, task by task; schedules in the order in which they first occur."""

    def __init__(self, table: Table) -> None:
        self.table = table
        self.rows: list[tuple[int, Row]] = [(t, row) for t, task in enumerate(table.tasks) for row in task.rows]
        self.schedules = list(dict.fromkeys(row.schedule for _, row in self.rows))
        self.schedule_of = [self.schedules.index(row.schedule) for _, row in self.rows]
        language = backend(table.language)
        needed = {name for task in table.tasks for names in task.needed.values() for name in names}
        self.idioms: list[Idiom] = [idiom for idiom in language.idioms.values() if idiom.id in needed]
        self.moves: tuple[Move, ...] = language.schedules.moves()
