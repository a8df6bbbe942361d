"""What the items of a forecast memory show: readings, words and vectors, without writing most of their texts.

A trace is the kernel's text under a line with its verdict. What it shows is put together from the facts of the kernel's
text and of its mistakes (`kernel_texts`). Experiences are short; one is written for each failure of a task and each
structure of its feasible kernels, and read as the live author reads it.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym import plugins
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.reading import read_note, shows
from kernel_gym.authors.apprentice.forecast.author import Decision, Failure
from kernel_gym.authors.apprentice.forecast.fact_store import FactStore
from kernel_gym.authors.apprentice.forecast.kernel_texts import TaskTexts, TextFacts, TextReader, structure
from kernel_gym.authors.apprentice.forecast.measurements import load
from kernel_gym.authors.apprentice.forecast.verdicts import VerdictForecast
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.disk_cache import cache_folder
from kernel_gym.envs import factories
from kernel_gym.envs.forecast.variants import ForecastItem, Variant
from kernel_gym.envs.pool import UNVERIFIED, draft_item
from kernel_gym.envs.prompt_context import note
from kernel_gym.kernel import Kernel
from kernel_gym.memory import api_pages
from kernel_gym.memory import experience as memory_experience
from kernel_gym.memory import words as memory_words
from kernel_gym.memory.bank import HEADLINE_SHARE, headline
from kernel_gym.memory.embedding import Embedder, StaticEmbedder, Vectors
from kernel_gym.memory.experience import experience, trace, verdict_line
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.memory.words import weight, words
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Verdict

LANGUAGE = "ascendc"
_NO_TASK = Task("", "", "", ())
#: Sights of an idiom in a note, as the author's readings have them.
SIGHTS = ("right", "wrong", "pointed", "taught", "commented")


@dataclass(frozen=True)
class Description:
    """One row for each of some items: what they show, their words (counts), vectors and lengths."""

    sights: dict[str, NDArray[np.bool_]]
    shows: NDArray[np.bool_]
    pages: NDArray[np.bool_]
    length: NDArray[np.int64]
    words: NDArray[np.int16]
    vectors: Vectors


@dataclass(frozen=True)
class _Line:
    """What a part of a text shows, and the idioms that it points at as a message."""

    facts: TextFacts
    pointed: NDArray[np.bool_]


@dataclass(frozen=True)
class _Row:
    """What one item shows: the sum of some facts, a length to be added, idioms pointed at, the headline's vector."""

    facts: list[TextFacts]
    length: int
    pointed: NDArray[np.bool_]
    headline: Vectors
    #: Whether API pages are looked up for the names in it.
    coded: bool


class Descriptions:
    """Describes items; everything that it works out is kept for the life of the process."""

    def __init__(self, measurements: str | Path, embedder: Embedder) -> None:
        self.embedder, self._backend = embedder, backend(LANGUAGE)
        self.origin: tuple[Any, ...] = (Descriptions, (measurements, embedder))
        self.seeds = seed_items(LANGUAGE)
        api = [place for place, item in enumerate(self.seeds) if item.kind is Kind.API]
        basics = [place for place in api if self.seeds[place].category == api_pages.LANGUAGE]
        #: Places of the pages that every context has, and of the others.
        self.basics = np.array(basics[: api_pages.BASICS])
        self.others = np.array([place for place in api if self.seeds[place].category != api_pages.LANGUAGE])
        names = [frozenset(self.seeds[place].names) for place in self.others]
        self.reader = TextReader(self._backend, names, words)
        self.columns = self.reader.columns()
        self.forecast = VerdictForecast(load(measurements), self.reader.idioms)
        self._store = FactStore(cache_folder() / "forecast" / f"texts-{_version(tuple(names))}.sqlite")
        #: `_write`, with the items that were read last: agents that read texts read the same ones in many attempts.
        self._written = lru_cache(maxsize=4096)(self._write)
        self._texts: dict[str, TaskTexts] = {}
        self._operators: dict[str, tuple[str, ...]] = {}
        self._schedules: dict[Schedule, TextFacts] = {}
        self._lines: dict[tuple[Kind, str, str], _Line] = {}
        self._lessons: dict[tuple[Any, ...], _Line] = {}
        self._headlines: dict[tuple[Kind, str, str], Vectors] = {}
        self._word_vectors = np.zeros((0, embedder.dimension))
        self._telling = np.zeros(0, np.bool_)

    def __deepcopy__(self, memo: dict[int, Any]) -> Descriptions:
        return self  # what it keeps depends on texts alone

    def __reduce__(self) -> tuple[Any, ...]:
        return self.origin

    def texts(self, task: Task) -> TaskTexts:
        """Return the kernels of a task."""
        if task.id not in self._texts:
            self._texts[task.id] = TaskTexts(task, self._backend, self.reader, self._store, self.texts)
        return self._texts[task.id]

    def variant(self, texts: TaskTexts, decision: Decision) -> Variant:
        """Return the kernel of a decision with its forecast verdict."""
        ends = self.forecast.decisive(decision.mistakes)
        verdict = self.forecast.verdict(texts, decision.schedule, decision.mistakes, ends)
        return Variant(texts, decision.schedule, decision.mistakes, ends, decision.text, verdict, self.reader.idioms)

    def verdict(self, texts: TaskTexts, decision: Decision) -> Verdict:
        """Return the forecast verdict of a decision."""
        ends = self.forecast.decisive(decision.mistakes)
        return self.forecast.verdict(texts, decision.schedule, decision.mistakes, ends)

    def failure(self, variant: Variant) -> Failure:
        """Return what a kernel to mend shows; it is read in full, because only its facts are known."""
        source = variant.source
        right = np.array([shows(idiom.right.pattern, source) for idiom in self.reader.idioms])
        return Failure(right, self.reader.pointed(variant.verdict.feedback))

    def operators(self, task: Task) -> tuple[str, ...]:
        """Return the ATen operators of a task, sorted."""
        if task.id not in self._operators:
            self._operators[task.id] = tuple(sorted(factories.exported_operators(task)))
        return self._operators[task.id]

    @cached_property
    def seed_description(self) -> Description:
        """What the seed knowledge shows; kept on disk, since reading it takes seconds."""
        author = Apprentice(language=LANGUAGE).identity()
        texts = [(item.kind.value, item.title, item.text) for item in self.seeds]
        key = hashlib.sha256(repr((author, self.embedder.identity(), texts)).encode()).hexdigest()
        file = cache_folder() / "forecast" / f"{key}.npz"
        if not file.is_file():
            described = self.describe(self.seeds)
            _keep(file, described, list(self.reader.vocabulary))
            return described
        with np.load(file) as arrays:
            numbers = [self.reader.vocabulary.setdefault(str(w), len(self.reader.vocabulary)) for w in arrays["known"]]
            counts = np.zeros((len(self.seeds), len(self.reader.vocabulary)), np.int16)
            counts[:, numbers] = arrays["words"]
            sights = {name: arrays[name] for name in SIGHTS}
            shows, pages, length = arrays["shows"], arrays["pages"], arrays["length"]
            return Description(sights, shows, pages, length, counts, arrays["vectors"])

    # Items

    def item(self, kind: int, object: MemoryItem | Variant) -> MemoryItem:
        """Return a seed item as it is, or the item of this kind that a kernel leaves (0: experience, 1: trace)."""
        if isinstance(object, MemoryItem):
            return object
        return self.trace_item(object) if kind else self.experience_item(object)

    def trace_item(self, variant: Variant) -> ForecastItem:
        """Return the trace of a kernel."""
        return ForecastItem(partial(self._written, Kind.TRACE, variant), self._fields(Kind.TRACE, variant))

    def experience_item(self, variant: Variant) -> ForecastItem:
        """Return the experience of a kernel."""
        return ForecastItem(partial(self._written, Kind.EXPERIENCE, variant), self._fields(Kind.EXPERIENCE, variant))

    def draft_item(self, variant: Variant, number: int) -> ForecastItem:
        """Return a kernel that may be verified, without its verdict; its number counts from 1."""
        fields = self._fields(Kind.TRACE, variant) | {"verdict": UNVERIFIED, "operators": ()}
        return ForecastItem(lambda: draft_item(variant.texts.task, variant.source, LANGUAGE, number), fields)

    def _write(self, kind: Kind, variant: Variant) -> MemoryItem:
        """Write the item of a kind that a kernel leaves."""
        if kind is Kind.EXPERIENCE:
            return self._experience(variant)
        return self._trace(variant.texts.task, variant.source, variant.verdict)

    def _fields(self, kind: Kind, variant: Variant) -> dict[str, Any]:
        task = variant.texts.task
        return {
            "kind": kind,
            "verdict": variant.verdict,
            "task": task.id,
            "category": task.category,
            "operators": self.operators(task),
            "language": LANGUAGE,
        }

    def _trace(self, task: Task, source: str, verdict: Verdict) -> MemoryItem:
        kernel = Kernel(source, LANGUAGE, trusted=True)
        return trace(task, kernel, verdict, Stage.DRAFT, operators=self.operators(task))

    def _experience(self, variant: Variant) -> MemoryItem:
        """Write the experience; that of a failure is about the kernel with the decisive mistake alone."""
        texts, ends = variant.texts, variant.ends
        source = variant.source if ends is None else texts.mistaken_source(variant.schedule, *ends)
        return experience(self._trace(texts.task, source, variant.verdict))

    # Descriptions

    def describe_variants(self, items: Sequence[tuple[Kind, Variant]]) -> Description:
        """Describe the traces and experiences of some kernels."""
        rows = [self._trace_row(v) if kind is Kind.TRACE else self._experience_row(v) for kind, v in items]
        feasible = np.array([variant.verdict.feasible for _, variant in items])
        return self._described(rows, feasible, lambda i: self.item(items[i][0] is Kind.TRACE, items[i][1]).text)

    def describe_memories(self, items: Sequence[MemoryItem]) -> Description:
        """Describe traces and experiences of an earlier run by their texts."""
        headlines = self.embedder.embed([headline(item) for item in items])
        rows = [self._memory_row(item, vector) for item, vector in zip(items, headlines, strict=True)]
        return self._described(rows, np.array([item.feasible for item in items]), lambda i: items[i].text)

    def _memory_row(self, item: MemoryItem, headline: Vectors) -> _Row:
        """Return the row of a trace or an experience, read from its text."""
        assert item.verdict is not None
        prose = item.text.replace(item.code, " ") if item.code else item.text
        facts = [self.reader.read(prose, code=False)]
        if item.code:  # in a trace the author looks for spellings in the code alone
            facts = [facts[0].only(self.columns["shows"]), self.reader.read(item.code)]
        length = len(item.text) - sum(fact.length for fact in facts)
        pointed = self._pointed(f"{prose}\n{item.verdict.feedback}", item.verdict)
        return _Row(facts, length, pointed, headline, bool(item.code))

    def _described(self, rows: Sequence[_Row], feasible: NDArray[np.bool_], text: Callable[[int], str]) -> Description:
        """Return what rows show; `text` gives the text of one, for embedders that need it."""
        flags = np.zeros((len(rows), self.reader.width), np.int8)
        counts = np.zeros((len(rows), len(self.reader.vocabulary)), np.int16)
        length = np.array([row.length for row in rows])
        for number, row in enumerate(rows):
            for facts in row.facts:
                flags[number] += facts.flags
                counts[number, : len(facts.words)] += facts.words
                length[number] += facts.length
        shown = flags > 0
        sights = {name: shown[:, self.columns[name]] for name in ("right", "wrong", "commented")}
        sights["commented"] &= sights["right"]  # a mistake takes the comment's spelling away and leaves the comment
        sights |= {"pointed": np.stack([row.pointed for row in rows]), "taught": np.zeros_like(sights["right"])}
        headlines = np.stack([row.headline for row in rows])
        if isinstance(self.embedder, StaticEmbedder):
            self._learn_words()
            # In double precision, so that the order of the vocabulary does not show in the result.
            used = np.flatnonzero((counts > 0).any(axis=0))
            summed = np.sqrt(np.maximum(counts[:, used], 0), dtype=np.float64) @ self._word_vectors[used]
            vectors = _mixed(headlines, _unit(summed))
        else:
            vectors = _mixed(headlines, self.embedder.embed([text(i) for i in range(len(rows))]))
        coded = np.array([row.coded for row in rows])
        shows = shown[:, self.columns["shows"]] & feasible[:, None]
        pages = shown[:, self.columns["pages"]] & coded[:, None]
        return Description(sights, shows, pages, length, counts, vectors)

    def _trace_row(self, variant: Variant) -> _Row:
        """Return the row of a trace: the line with its verdict, the schedule's line, the kernel and its mistakes."""
        texts, line = variant.texts, self._line(Kind.TRACE, variant)
        facts = [line.facts, self._schedule_line(variant.schedule)]
        if variant.text is not None:
            facts.append(variant.text.facts)
            facts += texts.differences(variant.text, variant.schedule, variant.mistakes)
        length = len(_first_line(Kind.TRACE, texts.task, variant.verdict)) + 1 - line.facts.length
        return _Row(facts, length, line.pointed, self._headline(Kind.TRACE, variant), True)

    def _experience_row(self, variant: Variant) -> _Row:
        """Return the row of an experience: the line with its verdict, and the lesson."""
        line, lesson = self._line(Kind.EXPERIENCE, variant), self._lesson(variant)
        said = len(_first_line(Kind.EXPERIENCE, variant.texts.task, variant.verdict)) + 1
        headline = self._headline(Kind.EXPERIENCE, variant)
        return _Row(
            [line.facts, lesson.facts], said - line.facts.length, line.pointed | lesson.pointed, headline, False
        )

    def _schedule_line(self, schedule: Schedule) -> TextFacts:
        """Return what the line that records a schedule shows."""
        if schedule not in self._schedules:
            self._schedules[schedule] = self.reader.read(schedule.comment(), code=False).only(self.columns["shows"])
        return self._schedules[schedule]

    def _line(self, kind: Kind, variant: Variant) -> _Line:
        """Return what the first line of an item shows; the number of microseconds in it counts for nothing."""
        verdict, task = variant.verdict, variant.texts.task
        about = verdict.feedback
        if isinstance(verdict, Feasible):
            about = verdict.profile.diagnosis or verdict.profile.bottleneck
        key = (kind, task.id, about)
        if key not in self._lines:
            verdict = replace(verdict, latency=1.0) if isinstance(verdict, Feasible) else verdict
            line = _first_line(kind, task, verdict)
            facts, pointed = self.reader.read(line, code=False), self._pointed(f"{line}\n{verdict.feedback}", verdict)
            # In a trace the author looks for spellings in the code alone, and for moves in the whole text.
            self._lines[key] = _Line(facts.only(self.columns["shows"]) if kind is Kind.TRACE else facts, pointed)
        return self._lines[key]

    def _lesson(self, variant: Variant) -> _Line:
        """Return what an experience shows below its first line."""
        ends = variant.ends
        home = structure(variant.schedule) if ends is None else variant.texts.home(variant.schedule, ends[0])
        key = (variant.texts.task.id, home, ends)
        if key not in self._lessons:
            plain = variant if ends is not None else replace(variant, schedule=home, mistakes=())
            self._lessons[key] = self._read_lesson(plain, home)
        return self._lessons[key]

    def _read_lesson(self, variant: Variant, home: Schedule) -> _Line:
        said = "" if variant.verdict.feasible else variant.verdict.feedback
        name = f"{variant.texts.name} {home.comment()} {variant.ends} {said}"
        known = self._store.load(name)
        if known is None:
            lesson = "\n".join(self._experience(variant).text.splitlines()[1:])
            columns = np.flatnonzero(self._pointed(lesson, variant.verdict)).tolist()
            known = {"facts": self.reader.packed(self.reader.read(lesson, code=False)), "pointed": columns}
            self._store.keep(name, known)
        pointed = np.zeros(len(self.reader.idioms), np.bool_)
        pointed[known["pointed"]] = True
        return _Line(self.reader.unpacked(known["facts"]), pointed)

    def _pointed(self, text: str, verdict: Verdict) -> NDArray[np.bool_]:
        if verdict.feasible:
            return np.zeros(len(self.reader.idioms), np.bool_)
        return self.reader.pointed(text)

    def _headline(self, kind: Kind, variant: Variant) -> Vectors:
        key = (kind, variant.texts.task.id, variant.verdict.outcome)
        if key not in self._headlines:
            verdict = variant.verdict
            still = replace(verdict, latency=1.0) if isinstance(verdict, Feasible) else verdict
            item = self._trace(variant.texts.task, "//", still)
            item = item if kind is Kind.TRACE else experience(item)
            self._headlines[key] = self.embedder.embed([headline(item)])[0]
        return self._headlines[key]

    def _learn_words(self) -> None:
        """Extend the arrays of weighted word vectors by the words that are new in the vocabulary."""
        known, vocabulary = len(self._telling), self.reader.vocabulary
        if known == len(vocabulary):
            return
        new = list(vocabulary)[known:]
        weights = np.array([weight(word) for word in new], np.float32)
        self._telling = np.concatenate([self._telling, weights == 1.0])
        if isinstance(self.embedder, StaticEmbedder):
            rows = self.embedder.word_vectors(new) * weights[:, None]
            self._word_vectors = np.concatenate([self._word_vectors, rows])

    @property
    def telling(self) -> NDArray[np.bool_]:
        """Which words of the vocabulary carry meaning."""
        self._learn_words()
        return self._telling

    def describe(self, items: Sequence[MemoryItem]) -> Description:
        """Describe items by their texts, as the live author reads them."""
        idioms = self.reader.idioms
        sights = {name: np.zeros((len(items), len(idioms)), np.bool_) for name in SIGHTS}
        shows = np.zeros((len(items), len(self.reader.moves)), np.bool_)
        length = np.zeros(len(items), np.int64)
        for row, item in enumerate(items):
            own = note(item, _NO_TASK)
            reading = read_note(own, LANGUAGE)
            length[row] = reading.length
            for column, idiom in enumerate(idioms):
                if sight := reading.sights.get(idiom.id):
                    for name in SIGHTS:
                        sights[name][row, column] = getattr(sight, name)
            if item.verdict is None or item.feasible:
                shows[row] = self.reader.shown_moves(item.text) > 0
        counts = [self.reader.count_words(item.text) for item in items]
        whole = np.zeros((len(items), len(self.reader.vocabulary)), np.int16)
        for row, some in enumerate(counts):
            whole[row, : len(some)] = some
        vectors = _mixed(
            self.embedder.embed([headline(item) for item in items]), self.embedder.embed([item.text for item in items])
        )
        pages = np.zeros((len(items), len(self.others)), np.bool_)
        return Description(sights, shows, pages, length, whole, vectors)


def _unit(vectors: NDArray[Any]) -> Vectors:
    norms = np.linalg.norm(vectors, axis=1, keepdims=True)
    unit: Vectors = (vectors / np.where(norms > 0, norms, 1)).astype(np.float32)
    return unit


def _keep(file: Path, about: Description, known: list[str]) -> None:
    """Write a description so that other processes see all of the file or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.npz")
    arrays = {name: getattr(about, name) for name in ("shows", "pages", "length", "words", "vectors")}
    words = np.array(known[: about.words.shape[1]])
    np.savez_compressed(draft, allow_pickle=False, known=words, **about.sights, **arrays)
    draft.replace(file)


def _first_line(kind: Kind, task: Task, verdict: Verdict) -> str:
    """Return the first line of an item's text, as `kernel_gym.memory.experience` writes it."""
    line = verdict_line(verdict)
    return f"// {line}" if kind is Kind.TRACE else f"{task.id} ({task.category or 'other'}), draft: {line}"


def _mixed(headlines: Vectors, texts: Vectors) -> Vectors:
    """Return the vectors that items have in a search, as `MemoryBank.embed_items` mixes them."""
    return _unit(HEADLINE_SHARE * headlines + (1 - HEADLINE_SHARE) * texts)


@lru_cache(maxsize=4)
def _version(pages: tuple[frozenset[str], ...]) -> str:
    """Return a hash of the code that writes and reads texts, and of the names that are looked for in them."""
    total = hashlib.sha256(repr((Apprentice(language=LANGUAGE).identity(), list(map(sorted, pages)))).encode())
    for module in (memory_words, memory_experience):
        total.update(Path(str(module.__file__)).read_bytes())
    return total.hexdigest()[:16]


@lru_cache(maxsize=4)
def _named(measurements: str | Path, embedder: str) -> Descriptions:
    made = Descriptions(measurements, plugins.load("kernel_gym.embedders", embedder)())
    made.origin = (descriptions, (measurements, embedder))
    return made


def descriptions(measurements: str | Path, embedder: str | Embedder = "static") -> Descriptions:
    """Return the descriptions; made once a process for an embedder that is given by name."""
    if isinstance(embedder, str):
        return _named(measurements, embedder)
    return Descriptions(measurements, embedder)
