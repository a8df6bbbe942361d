"""What the text of a kernel shows, computed without writing it.

A kernel is a schedule and some mistakes. The kernel of the schedule without mistakes is written and read once, and so
is one with each single mistake. What a mistake changes in the text is the difference of the two, and a kernel with
several mistakes shows what the sum of their differences says. Schedules that differ in numbers alone share one text.

Texts are read statement by statement, because kernels have most of their statements in common. What was read is kept
on disk (`fact_store`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling
from kernel_gym.authors.apprentice.behaviour.misreading import KINDS, misread, misreading
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.forecast.fact_store import FactStore
from kernel_gym.authors.apprentice.frontend.lowering import lower
from kernel_gym.authors.apprentice.frontend.plan import Plan, Unsupported
from kernel_gym.authors.apprentice.language_backend import LanguageBackend
from kernel_gym.tasks.task import Task

Counts = NDArray[np.int16]
SplitWords = Callable[[str], Iterator[str]]

_NAME = re.compile(r"[A-Za-z_]\w*")
#: Schedules whose kernels need, between them, nearly every idiom of a task. The first that needs an idiom shows what
#: its mistakes change.
CANONICAL = (
    Schedule(),
    Schedule(resident=False, batch=1),
    Schedule(bursts=False),
    Schedule(vector=False),
    Schedule(fused=False, immediate=False),
    Schedule(cube=False),
)


@dataclass(frozen=True)
class TextFacts:
    """What readers find in a text, or the difference of two such findings.

    `flags` has a column for each idiom whose right spelling shows, for each whose wrong one does, for each with a
    comment beside it, then one for each move and each API page whose names occur. `words` counts the words of the
    reader's vocabulary as it was when the text was read.
    """

    flags: NDArray[np.int8]
    length: int
    words: Counts

    def only(self, columns: slice) -> TextFacts:
        """Return the same with no other flags than those in these columns."""
        flags = np.zeros_like(self.flags)
        flags[columns] = self.flags[columns]
        return TextFacts(flags, self.length, self.words)

    def minus(self, other: TextFacts) -> TextFacts:
        """Return the difference to another text."""
        words = np.zeros(max(len(self.words), len(other.words)), np.int16)
        words[: len(self.words)] += self.words
        words[: len(other.words)] -= other.words
        return TextFacts(self.flags - other.flags, self.length - other.length, words)


@dataclass(frozen=True)
class _Statement:
    right: int
    wrong: int
    left_out: int
    #: Idioms with a comment beside the right spelling; those that have one if the line before has.
    commented: int
    begins: int
    shows: int
    pages: int
    words: NDArray[np.int64]
    ends_commented: bool


class TextReader:
    """Reads texts for what they show of idioms, moves and API pages, and counts their words."""

    def __init__(self, backend: LanguageBackend, pages: Sequence[frozenset[str]], split: SplitWords) -> None:
        #: The idioms of the language, then the misreadings of a task, which no text shows.
        self.idioms: list[Idiom] = [*backend.idioms.values(), *(misreading(kind) for kind in KINDS)]
        self.moves = backend.schedules.moves()
        self.vocabulary: dict[str, int] = {}
        self._pages, self._split = list(pages), split
        self._statements: dict[str, _Statement] = {}
        self.width = 3 * len(self.idioms) + len(self.moves) + len(self._pages)

    def columns(self) -> dict[str, slice]:
        """Return the columns of `TextFacts.flags` by what they hold."""
        sizes = {"right": len(self.idioms), "wrong": len(self.idioms), "commented": len(self.idioms)}
        sizes |= {"shows": len(self.moves), "pages": len(self._pages)}
        columns, at = {}, 0
        for name, size in sizes.items():
            columns[name], at = slice(at, at + size), at + size
        return columns

    def read(self, text: str, *, code: bool = True) -> TextFacts:
        """Return what a kernel's source shows, or another text: only code can lack what it needs."""
        right = wrong = left_out = commented = shows = pages = 0
        words, after_comment = [], False
        for statement in map(self._statement, _statements(text)):
            if new := statement.right & ~right:
                commented |= new & (statement.commented | (statement.begins if after_comment else 0))
            right, wrong, left_out = right | statement.right, wrong | statement.wrong, left_out | statement.left_out
            shows, pages, after_comment = shows | statement.shows, pages | statement.pages, statement.ends_commented
            words.append(statement.words)
        wrong |= left_out & ~right if code else 0
        counts = np.bincount(np.concatenate(words), minlength=1) if words else np.zeros(1, np.int64)
        bits = [
            *(_bits(mask, len(self.idioms)) for mask in (right, wrong, commented)),
            _bits(shows, len(self.moves)),
            _bits(pages, len(self._pages)),
        ]
        return TextFacts(np.concatenate(bits), len(text), counts.astype(np.int16))

    def packed(self, facts: TextFacts) -> dict[str, Any]:
        """Return facts as plain values, which do not depend on the vocabulary of this process."""
        known, used, flags = list(self.vocabulary), np.flatnonzero(facts.words), np.flatnonzero(facts.flags)
        return {
            "flags": dict(zip(map(str, flags.tolist()), facts.flags[flags].tolist(), strict=True)),
            "length": facts.length,
            "words": {known[number]: int(facts.words[number]) for number in used.tolist()},
        }

    def unpacked(self, plain: dict[str, Any]) -> TextFacts:
        """Return the facts that `packed` made plain."""
        flags = np.zeros(self.width, np.int8)
        flags[[int(column) for column in plain["flags"]]] = list(plain["flags"].values())
        numbers = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in plain["words"]]
        words = np.zeros(1 + max(numbers, default=0), np.int16)
        words[numbers] = list(plain["words"].values())
        return TextFacts(flags, plain["length"], words)

    def count_words(self, text: str) -> Counts:
        """Return how often each word occurs in a text."""
        numbers = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in self._split(text)]
        return np.bincount(np.array(numbers, np.int64), minlength=1).astype(np.int16)

    def shown_moves(self, text: str) -> NDArray[np.int8]:
        """Return the moves that a text shows."""
        return np.array([move.pattern.search(text) is not None for move in self.moves], np.int8)

    def pointed(self, text: str) -> NDArray[np.bool_]:
        """Return the idioms that a message points at."""
        patterns = (idiom.symptom_pattern for idiom in self.idioms)
        return np.array([pattern is not None and pattern.search(text) is not None for pattern in patterns])

    def _statement(self, text: str) -> _Statement:
        if text not in self._statements:
            self._statements[text] = self._read_statement(text)
        return self._statements[text]

    def _read_statement(self, text: str) -> _Statement:
        right = wrong = left_out = commented = begins = 0
        for place, idiom in enumerate(self.idioms):
            bit = 1 << place
            match = idiom.right.pattern.search(text) if idiom.right.pattern else None
            if match:
                right |= bit
                line = text.rfind("\n", 0, match.start())
                before = text.rfind("\n", 0, max(0, line))
                end = text.find("\n", match.start())
                commented |= bit * ("//" in text[before + 1 : end if end >= 0 else None])
                begins |= bit * (line < 0)
            wrong |= bit * any(s.pattern is not None and s.pattern.search(text) is not None for s in idiom.wrong)
            left_out |= bit * any(bool(s.when) and re.search(s.when, text) is not None for s in idiom.wrong)
        shows = sum(1 << i for i, move in enumerate(self.moves) if move.pattern.search(text))
        names = frozenset(_NAME.findall(text))
        pages = sum(1 << i for i, page in enumerate(self._pages) if not names.isdisjoint(page))
        numbers = [self.vocabulary.setdefault(word, len(self.vocabulary)) for word in self._split(text)]
        last = text[text.rfind("\n") + 1 :]
        return _Statement(
            right, wrong, left_out, commented, begins, shows, pages, np.array(numbers, np.int64), "//" in last
        )


def _statements(code: str) -> Iterator[str]:
    """Yield the statements of a source: lines up to one that ends a statement, a block or a comment."""
    held: list[str] = []
    for line in code.split("\n"):
        held.append(line)
        bare = line.strip()
        if not bare or bare[-1] in ";{}:" or bare.startswith(("//", "#")):
            yield "\n".join(held)
            held = []
    if held:
        yield "\n".join(held)


def _bits(mask: int, count: int) -> NDArray[np.int8]:
    return np.array([mask >> place & 1 for place in range(count)], np.int8)


@dataclass(frozen=True)
class KernelText:
    """The text of a schedule without mistakes: what it shows, and the columns of the idioms in order of first use."""

    facts: TextFacts
    needed: tuple[int, ...]
    #: What each mistake changes, as far as it was asked for.
    differences: dict[tuple[int, int], TextFacts] = field(default_factory=dict)


@dataclass(frozen=True)
class MistakeText:
    """What one mistake changes in a task's kernels, and the first line that it changes: its number and its text."""

    difference: TextFacts
    line: int
    code: str


class TaskTexts:
    """The kernels of one task, as text facts.

    Args:
        task: The task.
        backend: The language.
        reader: Reads the texts.
        store: Keeps what was read.
        find: Returns the texts of a task; copies are made by it, since what is kept here depends on texts alone.
    """

    def __init__(
        self,
        task: Task,
        backend: LanguageBackend,
        reader: TextReader,
        store: FactStore,
        find: Callable[[Task], TaskTexts],
    ) -> None:
        self.task, self._backend, self._reader, self._store, self._find = task, backend, reader, store, find
        #: What the texts depend on, the code apart.
        self.name = f"{task.digest} {task.name} {task.description}"
        self.plan: Plan | None
        try:
            self.plan = lower(task)
        except Unsupported:
            self.plan = None
        space = backend.schedules
        matter = [m for m in space.moves() if self.plan is not None and space.matters(m, self.plan)]
        #: The moves that change the task's kernels, and the fields of the schedule that they change.
        self.moves, self.fields = frozenset(m.id for m in matter), frozenset(m.field for m in matter)
        self._language_idioms = len(backend.idioms)
        #: The columns of the misreadings that the task allows.
        self.meanings = tuple(
            self._language_idioms + place
            for place, kind in enumerate(KINDS)
            if self.plan is not None and misread(self.plan, kind) is not None
        )
        self._texts: dict[tuple[Schedule, int], KernelText] = {}
        self._mistakes: dict[tuple[Schedule, int, int], MistakeText] = {}
        self._home: dict[int, Schedule | None] = {}
        self._sources: dict[Schedule, str] = {}
        #: Content addresses of kernels, by what tells them apart.
        self.digests: dict[tuple[Any, ...], str] = {}

    def __reduce__(self) -> tuple[Any, ...]:
        return self._find, (self.task,)

    def source(self, schedule: Schedule, wrong: dict[str, str]) -> str:
        """Write the kernel with these mistakes."""

        def choose(idiom: Idiom) -> Spelling:
            if idiom.id not in wrong:
                return idiom.right
            return next((spelling for spelling in idiom.wrong if spelling.name == wrong[idiom.id]), idiom.right)

        meanings = [column for column in self.meanings if self._reader.idioms[column].id in wrong]
        return self._written(schedule, choose, meanings[-1] if meanings else -1)[0]

    def text(self, schedule: Schedule, meaning: int = -1) -> KernelText:
        """Return the text of a schedule; numbers apart, it is that of its structure.

        Args:
            schedule: The schedule.
            meaning: The column of the misreading with which the kernel is written; -1 if the task is read right.

        Returns:
            The text without mistakes of spelling.
        """
        key = (structure(schedule), meaning)
        if key not in self._texts:
            self._texts[key] = self._text(*key)
        return self._texts[key]

    def _text(self, schedule: Schedule, meaning: int) -> KernelText:
        name = f"{self.name} {schedule.comment()} {meaning}"
        known = self._store.load(name)
        if known is None:
            source, chosen = self._written(schedule, lambda idiom: idiom.right, meaning)
            columns = {idiom.id: place for place, idiom in enumerate(self._reader.idioms)}
            facts = self._reader.packed(self._reader.read(_without_schedule(source)))
            known = {"facts": facts, "needed": [columns[idiom] for idiom in chosen]}
            self._store.keep(name, known)
        return KernelText(self._reader.unpacked(known["facts"]), tuple(known["needed"]))

    def differences(self, text: KernelText, schedule: Schedule, mistakes: Sequence[tuple[int, int]]) -> list[TextFacts]:
        """Return what each mistake of spelling changes in a text; misreadings have texts of their own."""
        known = text.differences
        for mistake in mistakes:
            if mistake not in known and mistake[0] not in self.meanings:
                known[mistake] = self.mistake(schedule, *mistake).difference
        return [known[mistake] for mistake in mistakes if mistake in known]

    def mistake(self, schedule: Schedule, column: int, code: int) -> MistakeText:
        """Return what mistake `code` (from 1) of an idiom changes, in the first canonical schedule that needs it."""
        key = (self.home(schedule, column), column, code)
        if key not in self._mistakes:
            self._mistakes[key] = self._mistake(*key)
        return self._mistakes[key]

    def _mistake(self, home: Schedule, column: int, code: int) -> MistakeText:
        name = f"{self.name} {home.comment()} {column}:{code}"
        known = self._store.load(name)
        if known is None:
            if home not in self._sources:
                self._sources[home] = self.source(home, {})
            source = self.mistaken_source(home, column, code)
            line, text = _first_change(self._sources[home], source)
            difference = self._reader.read(_without_schedule(source)).minus(self.text(home).facts)
            known = {"difference": self._reader.packed(difference), "line": line, "code": text}
            self._store.keep(name, known)
        return MistakeText(self._reader.unpacked(known["difference"]), known["line"], known["code"])

    def mistaken_source(self, schedule: Schedule, column: int, code: int) -> str:
        """Write the kernel with one mistake, in the schedule that shows it."""
        idiom = self._reader.idioms[column]
        return self.source(self.home(schedule, column), {idiom.id: idiom.wrong[code - 1].name})

    def home(self, schedule: Schedule, column: int) -> Schedule:
        """Return the schedule that shows an idiom's mistakes: the first canonical one that needs it, else its own."""
        if column >= self._language_idioms:
            return structure(CANONICAL[0])
        if column not in self._home:
            homes = (structure(canonical) for canonical in CANONICAL if column in self.text(canonical).needed)
            self._home[column] = next(homes, None)
        return self._home[column] or structure(schedule)

    def _written(
        self, schedule: Schedule, choose: Callable[[Idiom], Spelling], meaning: int = -1
    ) -> tuple[str, list[str]]:
        if self.plan is None:
            return "", []
        plan = self.plan if meaning < 0 else misread(self.plan, KINDS[meaning - self._language_idioms]) or self.plan
        spelling = SpellingChoice(self._backend.idioms, choose)
        source = self._backend.write(plan, schedule, spelling)
        return source, list(spelling.chosen)


@lru_cache(maxsize=65536)
def structure(schedule: Schedule) -> Schedule:
    """Return the schedule that stands for all whose kernels differ in numbers alone."""
    return replace(schedule, cores=Schedule.cores, tile=0, batch=1 if schedule.batch == 1 else 0)


def _without_schedule(source: str) -> str:
    """Return a source with an empty line for the one that records its schedule, which says numbers alone."""
    return re.sub(r"^// schedule:.*$", "", source, count=1, flags=re.MULTILINE)


def _first_change(before: str, after: str) -> tuple[int, str]:
    old, new = before.splitlines(), after.splitlines()
    for number, line in enumerate(new):
        if number >= len(old) or old[number] != line:
            return number + 1, line.strip()
    return len(new), ""
