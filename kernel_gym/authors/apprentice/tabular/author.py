"""The author of the tabular environment: it decides as the apprentice does and takes the kernel from a table.

For the same seed, attempt, context and start point it draws the same schedule and the same mistakes as
`Apprentice.explain`. Then it takes the kernel with this schedule and these mistakes from the table; if there is none,
the nearest one that fails at the same gate.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import log
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.author import named_stream
from kernel_gym.authors.apprentice.behaviour.moves import Move
from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.authors.apprentice.tabular.batched_rng import BatchedRng
from kernel_gym.authors.apprentice.tabular.item_readings import Flags, ItemReadings
from kernel_gym.authors.apprentice.tabular.table_index import TableIndex
from kernel_gym.verdict import Feasible

Codes = NDArray[np.uint8]
Numbers = NDArray[np.float64]
Places = NDArray[np.int64]

#: The gate at which a mistake ends a kernel, and the one at which a verdict says it ended; 2 is past all gates.
_GATE_OF_MISTAKE = {"uncompilable": 0, "fault": 1, "mismatch": 1, "slow": 2}
_GATE_OF_OUTCOME = {"cheated": 0, "uncompilable": 0, "incorrect": 1, "feasible": 2}


@dataclass(frozen=True)
class TabularRequest:
    """What the author is asked: a task, the attempt's number, the items shown, the row to refine.

    `shown` holds the places of the picks and then those of the API pages, padded with -1. `children` holds the numbers
    of the schedules that were tried from the start point.
    """

    task: int
    number: int
    shown: Places
    start: int = -1
    children: tuple[int, ...] = ()


@dataclass(frozen=True)
class ChosenRow:
    """The row that was taken, the schedule that was decided and the mistakes by idiom.

    `exact` is False if the table has no row with this schedule and these mistakes.
    """

    row: int
    exact: bool
    schedule: Schedule
    wrong: dict[str, str]


class TableItems(Protocol):
    """A table and the items that its kernels leave in memory."""

    @property
    def index(self) -> TableIndex:
        """The table's rows."""

    @property
    def readings(self) -> ItemReadings:
        """What an author reads in each item."""

    @property
    def traces(self) -> Places:
        """The place of the trace of each row."""

    @property
    def page_slots(self) -> int:
        """How many places at the end of a context are for API pages."""


class TabularAuthor:
    """Makes the apprentice's choices for many attempts at once and returns rows of the table."""

    def __init__(self, items: TableItems, profile: Profile) -> None:
        self.items, self.profile = items, profile
        self.index = items.index
        self.schedules = backend(items.index.table.language).schedules
        self.names = [idiom.id for idiom in self.index.idioms]
        self._drafting = [move for move in self.index.moves if move.draft]
        self._rngs: dict[tuple[int, int], BatchedRng] = {}
        self._rows = [_Rows(self.index, task) for task in range(len(self.index.table.tasks))]
        self._weigh()
        priors = np.array([idiom.prior.probability for idiom in self.index.idioms])
        self._prior = np.log(priors / (1 - priors)) + profile.skill
        self._mistakes = [np.cumsum([spelling.weight for spelling in idiom.wrong]) for idiom in self.index.idioms]
        self._thresholds = np.ones((len(self.index.idioms), max(map(len, self._mistakes), default=1)))
        for column, weights in enumerate(self._mistakes):
            self._thresholds[column, : len(weights)] = weights / weights[-1]
        self._last = np.array([len(weights) - 1 for weights in self._mistakes])
        self._risks = np.array([[name in move.risks for name in self.names] for move in self.index.moves])
        # Schedules are numbered, the table's first: looking a number up is cheaper than comparing ten fields.
        self._schedules = list(self.index.schedules)
        self._numbers = {schedule: number for number, schedule in enumerate(self._schedules)}
        fields = [move.field for move in self.index.moves]
        self._same_field = np.array([[field == other for other in fields] for field in fields])
        self._known_scores: dict[tuple[int, tuple[int, ...]], Numbers] = {}
        self._known_rungs: dict[tuple[int, int], int] = {}
        self._moved: dict[tuple[int, int, int], int] = {}
        self._drafted: dict[tuple[int, bytes], int] = {}
        self._best = self._number(self.schedules.best)

    def __deepcopy__(self, memo: dict[int, Any]) -> TabularAuthor:
        return self  # what it remembers depends on the table alone

    def __reduce__(self) -> tuple[Any, ...]:
        return TabularAuthor, (self.items, self.profile)

    def _weigh(self) -> None:
        """Compute, for each item and idiom, the evidence for and against the right spelling and how much is noticed."""
        profile, sights = self.profile, self.items.readings
        feasible, compiled, judged = sights.feasible[:, None], sights.compiled[:, None], sights.judged[:, None]
        checked = np.array([idiom.effect == "uncompilable" for idiom in self.index.idioms])
        shown = np.where(feasible, profile.verified, np.where(compiled & checked, profile.compiled, profile.shown))
        self._gain = np.maximum.reduce(
            [sights.right * shown, sights.taught * profile.page, sights.pointed * profile.hinted]
        )
        misled = sights.wrong & ~sights.pointed & ~(sights.right & feasible) & judged & ~feasible
        self._loss = misled * profile.misled
        noticed = profile.focus / (profile.focus + sights.lengths)
        self._noticed = noticed[:, None] * (1 + profile.comment * sights.commented)

    def write(self, seed: int, requests: Sequence[TabularRequest]) -> list[ChosenRow]:
        """Choose, for each request, the row of the table that holds the apprentice's kernel."""
        shown = np.stack([r.shown if self.profile.reads else np.full_like(r.shown, -1) for r in requests])
        doubles = np.stack([self._rng(seed, r.task).doubles(r.number) for r in requests])
        prompted: Numbers = np.where(self.items.readings.shows[shown].any(axis=1), self.profile.prompted, 0.0)
        drafts = self._drafts(prompted, doubles)
        starts = np.array([r.start if self.profile.reads else -1 for r in requests])
        touched = np.zeros((len(requests), len(self.names)), np.bool_)
        refined = np.flatnonzero(starts >= 0).tolist() if not self.profile.fluent else []
        schedules = [self._best if self.profile.fluent else -1] * len(requests)
        for i, moves in zip(refined, self._chosen(requests, refined, prompted, doubles), strict=True):
            schedules[i] = self._refined(requests[i], moves, self._rng(seed, requests[i].task))
            touched[i] = self._risks[moves].any(axis=0)
        for i, request in enumerate(requests):
            if schedules[i] < 0:
                schedules[i] = self._draft(request.task, drafts[i])
        uniform = doubles[:, : len(self.names)]
        right = uniform[..., 0] < self._probabilities(self._odds(shown), starts, touched)
        codes = self._spelled(right, uniform[..., 1])
        return [
            self._rows[request.task].take(number, self._schedules[number], codes[i])
            for i, (request, number) in enumerate(zip(requests, schedules, strict=True))
        ]

    def _odds(self, shown: Places) -> Numbers:
        """Return the log-odds of each idiom, one row per context: `SpellingOdds.estimate` without a start point."""
        profile = self.profile
        attention = profile.span / (profile.span + self.items.readings.lengths[shown].sum(axis=1))
        noticed = np.minimum(1.0, attention[:, None, None] * self._noticed[shown])
        gain = self._together(self._gain[shown] * noticed)
        # API pages come last and do not mislead.
        picks = shown.shape[1] - self.items.page_slots
        loss = self._together(self._loss[shown[:, :picks]] * noticed[:, :picks])
        odds: Numbers = self._prior + gain - loss - profile.conflict * np.minimum(gain, loss)
        return odds

    def _together(self, evidence: Numbers) -> Numbers:
        """Return the sum of the evidence, strongest first, each further piece discounted."""
        ordered = np.sort(evidence, axis=1)[:, ::-1]
        weights = self.profile.repetition ** np.arange(ordered.shape[1])
        total: Numbers = np.einsum("nci,c->ni", ordered, weights)
        return total

    def _probabilities(self, odds: Numbers, starts: Places, touched: Flags) -> Numbers:
        """Return the probability that each idiom is spelled right; what a start point spells right is copied."""
        if self.profile.fluent:
            return np.ones_like(odds)
        places = np.where(starts >= 0, self.items.traces[starts], -1)
        kept = np.where(touched, self.profile.care, self.profile.copying)
        probability: Numbers = np.where(self.items.readings.right[places], kept, 1 / (1 + np.exp(-odds)))
        return probability

    def _spelled(self, right: Flags, which: Numbers) -> Codes:
        """Return the code of each idiom's spelling: 0 if right, else the number of the mistake drawn."""
        number = np.minimum((which[..., None] >= self._thresholds).sum(axis=-1), self._last)
        return np.where(right, 0, number + 1).astype(np.uint8)

    # Schedules

    def _drafts(self, prompted: Numbers, doubles: Numbers) -> NDArray[np.int64]:
        """Return, for each draft and each drafting move, the rung that the draw reaches."""
        begin = len(self.names)
        rungs = np.zeros((len(doubles), len(self._drafting)), np.int64)
        for column, move in enumerate(self._drafting):
            place = self.index.moves.index(move)
            odds = log(move.draft / (1 - move.draft)) + self.profile.ambition + prompted[:, place]
            taken = doubles[:, begin + place, : len(move.ladder) - 1] < (1 / (1 + np.exp(-odds)))[:, None]
            rungs[:, column] = np.cumprod(taken, axis=1).sum(axis=1)
        return rungs

    def _draft(self, task: int, rungs: NDArray[np.int64]) -> int:
        """Return the number of the schedule that these rungs give; moves that don't matter take their last rung."""
        key = (task, rungs.tobytes())
        if key not in self._drafted:
            schedule = self.schedules.first
            for move, rung in zip(self._drafting, rungs.tolist(), strict=True):
                schedule = move.at(schedule, rung if move.id in self._rows[task].moves else len(move.ladder) - 1)
            self._drafted[key] = self._number(schedule)
        return self._drafted[key]

    def _chosen(
        self, requests: Sequence[TabularRequest], refined: Sequence[int], prompted: Numbers, numbers: Numbers
    ) -> list[list[int]]:
        """Return the moves of each refinement, at most two and of different fields: `moves.refine`, from the arrays."""
        if not refined:
            return []
        begin, count = len(self.names) + len(self.index.moves), len(self.index.moves)
        scores = np.stack([self._scores(requests[i]) for i in refined]) + prompted[refined]
        scores -= np.log(-np.log(1.0 - numbers[refined, begin : begin + count, 0]))
        first = scores.argmax(axis=1)
        others = np.where(self._same_field[first], -np.inf, scores)
        second = others.argmax(axis=1)
        bold = numbers[refined, -1, 0] < self.profile.boldness
        each = np.arange(len(refined))
        has_first, has_second = scores[each, first] > -np.inf, bold & (others[each, second] > -np.inf)
        return [
            [first_move] * makes_first + [second_move] * makes_second
            for first_move, second_move, makes_first, makes_second in zip(
                first.tolist(), second.tolist(), has_first.tolist(), has_second.tolist(), strict=True
            )
        ]

    def _refined(self, request: TabularRequest, moves: list[int], rng: BatchedRng) -> int:
        """Return the number of the schedule that these moves make of the start point's."""
        number, begin = self.index.schedule_of[request.start], len(self.names) + 2 * len(self.index.moves)
        for place in moves:
            rung, length = self._rung(number, place), len(self.index.moves[place].ladder)
            far = rng.integer(request.number, begin + place, rung + 1, length)
            if far is None:
                stream = named_stream(rng.root(request.number), f"far:{self.index.moves[place].id}")
                far = int(stream.integers(rung + 1, length))
            number = self._move(number, place, far)
        return number

    def _scores(self, request: TabularRequest) -> Numbers:
        """Return the score of each move from a start point, without the context's part; -inf if it is impossible."""
        key = (request.start, request.children)
        if key not in self._known_scores:
            if len(self._known_scores) > 100_000:
                self._known_scores.clear()
            self._known_scores[key] = self._scored(request)
        return self._known_scores[key]

    def _scored(self, request: TabularRequest) -> Numbers:
        verdict, number = self.index.rows[request.start][1].verdict, self.index.schedule_of[request.start]
        bottleneck = verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""
        schedule = self._schedules[number]
        changes = " ".join(_quoted_change(schedule, self._schedules[child]) for child in request.children)
        scores = np.full(len(self.index.moves), -np.inf)
        for place, move in enumerate(self.index.moves):
            further = move.ladder[move.rung(schedule) + 1 :]
            if further and move.id in self._rows[request.task].moves:
                tried = any(f"{move.field}={value}" in changes for value in further)
                scores[place] = self.profile.fitting * ((bottleneck in move.fits) - tried)
        return scores

    def _rung(self, number: int, place: int) -> int:
        key = (number, place)
        if key not in self._known_rungs:
            self._known_rungs[key] = self.index.moves[place].rung(self._schedules[number])
        return self._known_rungs[key]

    def _move(self, number: int, place: int, rung: int) -> int:
        key = (number, place, rung)
        if key not in self._moved:
            self._moved[key] = self._number(self.index.moves[place].at(self._schedules[number], rung))
        return self._moved[key]

    def _number(self, schedule: Schedule) -> int:
        if schedule not in self._numbers:
            self._numbers[schedule] = len(self._schedules)
            self._schedules.append(schedule)
        return self._numbers[schedule]

    def _rng(self, seed: int, task: int) -> BatchedRng:
        key = (seed, task)
        if key not in self._rngs:
            moves = [move.id for move in self.index.moves]
            names = [*self.names, *(f"move:{m}" for m in moves), *(f"refine:{m}" for m in moves)]
            names += [*(f"far:{m}" for m in moves), "refine"]
            if len(self._rngs) > 4 * len(self.index.table.tasks):
                self._rngs.clear()
            self._rngs[key] = BatchedRng(seed, self.index.table.tasks[task].id, names)
        return self._rngs[key]


def _quoted_change(start: Schedule, child: Schedule) -> str:
    """Return the change of schedule as a trace's title quotes it."""
    return f"`{start.comment()[:70]}` -> `{child.comment()[:70]}`" if start != child else ""


class _Rows:
    """The rows of one task, found by schedule and mistakes."""

    def __init__(self, index: TableIndex, task: int) -> None:
        self.index = index
        table = index.table.tasks[task]
        self.moves = frozenset(table.moves)
        self.numbers = [number for number, (t, _) in enumerate(index.rows) if t == task]
        self.schedules = list(table.needed)
        columns = {idiom.id: i for i, idiom in enumerate(index.idioms)}
        self._needed = np.zeros((len(self.schedules), len(columns)), np.uint8)
        for i, schedule in enumerate(self.schedules):
            self._needed[i, [columns[name] for name in table.needed[schedule]]] = 1
        self._rungs = np.array([_rungs(schedule, index.moves) for schedule in self.schedules])
        self._codes = np.stack([self._code(index.rows[number][1].wrong, columns) for number in self.numbers])
        self._of = np.array([self.schedules.index(index.rows[number][1].schedule) for number in self.numbers])
        self._gates = np.array([_GATE_OF_OUTCOME[index.rows[number][1].verdict.outcome] for number in self.numbers])
        self._exact = {(int(s), c.tobytes()): n for s, c, n in zip(self._of, self._codes, self.numbers, strict=True)}
        self._effects = [
            [3, *(_GATE_OF_MISTAKE[idiom.effect_of(spelling)] for spelling in idiom.wrong)] for idiom in index.idioms
        ]
        self._snapped: dict[int, tuple[int, bool]] = {}
        self._taken: dict[tuple[int, bytes], ChosenRow] = {}

    def _code(self, wrong: dict[str, str], columns: dict[str, int]) -> Codes:
        code = np.zeros(len(columns), np.uint8)
        for name, spelling in wrong.items():
            spellings = [mistake.name for mistake in self.index.idioms[columns[name]].wrong]
            code[columns[name]] = spellings.index(spelling) + 1
        return code

    def take(self, number: int, schedule: Schedule, codes: Codes) -> ChosenRow:
        """Return the row with this schedule and these mistakes, or the nearest one."""
        if number not in self._snapped:
            self._snapped[number] = self._snap(schedule)
        place, same = self._snapped[number]
        codes = codes * self._needed[place]
        key = (number, codes.tobytes())
        if key not in self._taken:
            if len(self._taken) > 100_000:
                self._taken.clear()
            exact = self._exact.get((place, key[1])) if same else None
            row = self._nearest(place, codes) if exact is None else exact
            self._taken[key] = ChosenRow(row, exact is not None, schedule, self._spellings(codes))
        return self._taken[key]

    def _snap(self, schedule: Schedule) -> tuple[int, bool]:
        """Return the place of the nearest schedule in the table, and whether it is the same schedule."""
        distances = np.abs(self._rungs - np.array(_rungs(schedule, self.index.moves))).sum(axis=1)
        place = int(np.argmin(distances))
        return place, self.schedules[place] == schedule

    def _nearest(self, schedule: int, codes: Codes) -> int:
        """Return the nearest row: first by the gate at which it fails, then by mistakes, then by schedule."""
        gate = min((self._effects[column][code] for column, code in enumerate(codes) if code), default=2)
        distance = 10_000 * (self._gates != gate)
        distance += 100 * (self._codes != codes).sum(axis=1)
        distance += np.abs(self._rungs[self._of] - self._rungs[schedule]).sum(axis=1)
        return self.numbers[int(np.argmin(distance))]

    def _spellings(self, codes: Codes) -> dict[str, str]:
        idioms = self.index.idioms
        return {idioms[i].id: idioms[i].wrong[code - 1].name for i, code in enumerate(codes) if code}


def _rungs(schedule: Schedule, moves: Sequence[Move]) -> list[int]:
    return [move.rung(schedule) for move in moves if move.draft]
