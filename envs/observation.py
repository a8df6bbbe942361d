"""The observation: candidate features and global features in one flat vector, addressable by name.

    layout = env.unwrapped.layout
    similarity = observation["observations"][layout.candidate("similarity")]     # one number a slot, shape (K,)
    outcome = observation["observations"][layout.candidate("recent.draft")]      # one part of a feature, shape (K,)
    left = observation["observations"][layout.globals("attempts_left")]          # one number, shape ()
    print(layout.describe())                                                     # every name with its meaning

All values are finite and lie in [-1, 1]. A slot without a candidate is all zeros. No item ids: those are in `info`.

There are two versions. Version 2 has more features of candidates and of the situation, after those of version 1 each.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from math import log, tanh
from typing import Any

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernel_gym.envs.pool import Candidate, telling_words
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage
from kernel_gym.suites.definitions import CATEGORIES
from kernel_gym.verdict import Verdict

Vector = NDArray[np.float32]

#: Numbers that the task's embedding is projected to.
EMBEDDING = 16
#: An item of this age (in attempts of the bank), or with this many uses, is half way up its scale.
HALF_AGE, HALF_USES = 100.0, 10.0
#: A text of this many characters is half way up its scale.
HALF_LENGTH = 10_000.0
#: Numbers that a candidate's embedding is projected to.
ITEM_EMBEDDING = 8


@dataclass(frozen=True)
class Feature:
    """A named group of numbers; `parts` names each of them, none if it is a single one."""

    name: str
    meaning: str
    parts: tuple[str, ...] = ()
    low: float = 0.0

    @property
    def width(self) -> int:
        """The number of values."""
        return len(self.parts) or 1


_STAGES = tuple(Stage)
STAGES = tuple(stage.value for stage in Stage)
OUTCOMES = ("uncompilable", "incorrect", "feasible")
VERDICTS = ("none", "cheated", "uncompilable", "incorrect", "feasible", "unjudged")

CANDIDATE_FEATURES = (
    Feature("kind", "what the candidate is", ("experience", "trace", "practice", "start")),
    Feature("similarity", "cosine of the item and the query", low=-1.0),
    Feature("same_task", "1 if it comes from the task at hand"),
    Feature("same_category", "1 if it comes from a task of the same category"),
    Feature("feasible", "1 if its kernel passed every gate"),
    Feature("relative_latency", "fastest latency known for its task / its own; 1 = fastest, 0 = it has none"),
    Feature("origin", "the stage it was produced in; zeros for seed knowledge", STAGES),
    Feature("age", f"a / (a + {HALF_AGE:g}) of the attempts since it joined"),
    Feature("uses", f"u / (u + {HALF_USES:g}) of the attempts it was shown in, by stage", STAGES),
    Feature("mean", "mean reward of the attempts it was shown in, by stage; 0 if none", STAGES, low=-1.0),
    Feature("recent", "exponentially averaged reward of those attempts, by stage; starts at 0", STAGES, low=-1.0),
    Feature("picked", "1 if it is in the context already"),
    Feature("overlap", "share of its words that the picks already show"),
    Feature("operators", "share of the task's ATen operators that the item's task has"),
    Feature("uncovered", "the same share of those operators that no pick has"),
    # From here on version 2.
    Feature("compiled", "1 if its kernel compiled"),
    Feature("length", f"l / (l + {HALF_LENGTH:g}) of the characters of its text"),
    Feature("covered", "share of the words of this episode's kernels that its text has"),
    Feature("named", "share of the words of this episode's failure messages that its text has"),
    Feature("unnamed", "the same share of those words that no pick has"),
    Feature("repeated", "share of this episode's failures that are of the same kind as its own"),
    Feature(
        "text",
        "its embedding under a fixed random projection",
        tuple(str(i) for i in range(ITEM_EMBEDDING)),
        low=-1.0,
    ),
)
GLOBAL_FEATURES = (
    Feature("stage", "drafting or refining", STAGES),
    Feature("attempts_left", "share of the budget that is left"),
    Feature("picks_left", "picks left in this attempt / (N + 1), the start point counted"),
    Feature("best_speedup", "tanh of log(first feasible latency / best latency); 0 until there is one"),
    Feature("last_verdict", "outcome of the last attempt at this task", VERDICTS),
    Feature("category", "category of the task", CATEGORIES),
    Feature("embedding", "the task's text: embedding under a fixed random projection", (), low=-1.0),
    # From here on version 2.
    Feature("outcomes", "shares of the attempts of this episode by outcome", OUTCOMES),
    Feature("author", "shares of all attempts of the run by outcome: what the author is like", OUTCOMES),
)
#: The number of candidate and of global features in each version.
VERSIONS = {1: (15, 7), 2: (len(CANDIDATE_FEATURES), len(GLOBAL_FEATURES))}


@dataclass(frozen=True)
class Situation:
    """The task, the progress of its episode and the state of the bank, which features are computed from.

    `embedding` is projected already; `fastest` maps task ids to the best latency that the bank holds for them; `clock`
    is the number of attempts that the bank has recorded. `kernel_words` are the words of the episode's kernels,
    `failure_words` those of its failure messages, `failures` its failures by kind, `outcomes` the outcomes of its
    attempts and `author` those of the whole run. `texts` holds the projected embeddings of items by id.
    """

    task: str
    category: str
    operators: frozenset[str]
    stage: Stage
    attempts_left: float
    picks_left: float
    first_us: float | None
    best_us: float | None
    last: Verdict | None
    embedding: Vector
    fastest: Mapping[str, float]
    clock: int
    kernel_words: frozenset[str] = frozenset()
    failure_words: frozenset[str] = frozenset()
    failures: Mapping[str, int] = field(default_factory=dict)
    outcomes: Mapping[str, int] = field(default_factory=dict)
    author: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[int, Vector] = field(default_factory=dict)


@dataclass
class History:
    """The attempts of an episode so far, as far as the observation shows them."""

    kernel_words: frozenset[str] = frozenset()
    failure_words: frozenset[str] = frozenset()
    failures: Counter[str] = field(default_factory=Counter)
    outcomes: Counter[str] = field(default_factory=Counter)

    def add(self, verdict: Verdict, trace: str) -> None:
        """Count an attempt; `trace` is the text of its trace, empty if it did not join the memory."""
        self.outcomes[verdict.outcome] += 1
        self.kernel_words |= telling_words(trace)
        if not verdict.feasible:
            self.failure_words |= telling_words(verdict.feedback)
            self.failures[failure_kind(verdict)] += 1


@dataclass(frozen=True)
class Layout:
    """Where each feature lies in `observations`: K x F candidate numbers, slot by slot, then G global ones.

    Args:
        slots: K, the number of candidates.
        embedding: Numbers that the task's embedding is projected to.
        version: The version of the observation.
    """

    slots: int
    embedding: int = EMBEDDING
    version: int = 2

    @classmethod
    def of_size(cls, slots: int, size: int) -> Layout:
        """Return the layout with K = `slots` whose observations have `size` numbers.

        Raises:
            ConfigError: No version has observations of this size.
        """
        layouts = [cls(slots, version=version) for version in VERSIONS]
        for layout in layouts:
            if layout.size == size:
                return layout
        sizes = " or ".join(str(layout.size) for layout in layouts)
        raise ConfigError(f"observations of {slots} candidates have {sizes} numbers, not {size}")

    @property
    def candidate_features(self) -> tuple[Feature, ...]:
        """The features of a candidate in this version."""
        return CANDIDATE_FEATURES[: VERSIONS[self.version][0]]

    @cached_property
    def candidate_columns(self) -> dict[str, int | slice]:
        """Columns of each candidate feature, and of each part as `feature.part`, within a slot."""
        return _columns(self.candidate_features)

    @cached_property
    def global_columns(self) -> dict[str, int | slice]:
        """The same for the global features."""
        return _columns(self._globals)

    @cached_property
    def _globals(self) -> tuple[Feature, ...]:
        parts = tuple(str(i) for i in range(self.embedding))
        features = GLOBAL_FEATURES[: VERSIONS[self.version][1]]
        return tuple(replace(feature, parts=parts) if feature.name == "embedding" else feature for feature in features)

    @cached_property
    def candidate_width(self) -> int:
        """F: the number of values for one candidate."""
        return sum(feature.width for feature in self.candidate_features)

    @cached_property
    def global_width(self) -> int:
        """G: the number of global values."""
        return sum(feature.width for feature in self._globals)

    @property
    def size(self) -> int:
        """K * F + G."""
        return self.slots * self.candidate_width + self.global_width

    def candidate(self, name: str) -> NDArray[np.intp]:
        """Return the indices of a candidate feature in `observations`: shape (K,), or (K, parts) for one with parts."""
        rows = np.arange(self.slots * self.candidate_width).reshape(self.slots, self.candidate_width)
        return rows[:, _column(self.candidate_columns, name)]

    def globals(self, name: str) -> NDArray[np.intp]:
        """Return the indices of a global feature in `observations`: shape (), or (parts,) for one with parts."""
        tail = np.arange(self.slots * self.candidate_width, self.size)
        return np.asarray(tail[_column(self.global_columns, name)])

    def space(self) -> gym.spaces.Dict:
        """Return the observation space."""
        low = np.concatenate([np.tile(_low(self.candidate_features), self.slots), _low(self._globals)])
        return gym.spaces.Dict(
            observations=gym.spaces.Box(low, np.ones_like(low), dtype=np.float32),
            action_mask=gym.spaces.Box(0.0, 1.0, (self.slots + 1,), np.float32),
        )

    def describe(self) -> str:
        """Return every name with its width and meaning, one on each line."""
        lines = [f"candidate.{f.name:<17}{f.width:>3}  {f.meaning}" for f in self.candidate_features]
        return "\n".join(lines + [f"globals.{f.name:<19}{f.width:>3}  {f.meaning}" for f in self._globals])

    def candidates(self, pool: tuple[Candidate, ...], now: Situation) -> Vector:
        """Return the K x F values of a pool before anything is picked; `mark` keeps them up to date."""
        rows = np.zeros((self.slots, self.candidate_width), np.float32)
        if pool:
            rows[: len(pool)] = [self._described(candidate, now) for candidate in pool]
        return rows

    def _described(self, candidate: Candidate, now: Situation) -> list[float]:
        more = _describe_more(candidate, now) if self.version > 1 else []
        return _describe(candidate, now) + more

    def drafts(self, count: int) -> Vector:
        """Return the K x F values of so many drafts: all that is known of them is their task."""
        rows = np.zeros((self.slots, self.candidate_width), np.float32)
        for name in ("kind.trace", "same_task", "same_category"):
            rows[:count, self.candidate_columns[name]] = 1.0
        return rows

    def mark(
        self,
        rows: Vector,
        pool: tuple[Candidate, ...],
        picked: tuple[int, ...],
        operators: frozenset[str],
        failure_words: frozenset[str] = frozenset(),
    ) -> None:
        """Update the features that depend on the picks (slot numbers), in place."""
        shown = frozenset().union(*(pool[slot].words for slot in picked))
        open_ops = operators.difference(*(pool[slot].operators for slot in picked))
        columns = self.candidate_columns
        rows[list(picked), columns["picked"]] = 1.0
        rows[: len(pool), columns["overlap"]] = [_share(candidate.words, shown) for candidate in pool]
        rows[: len(pool), columns["uncovered"]] = [_share(open_ops, candidate.operators) for candidate in pool]
        if self.version > 1:
            unnamed = failure_words - shown
            rows[: len(pool), columns["unnamed"]] = [_share(unnamed, candidate.words) for candidate in pool]

    def situation(self, now: Situation) -> Vector:
        """Return the G global values."""
        row = np.zeros(self.global_width, np.float32)
        columns = self.global_columns
        row[columns[f"stage.{now.stage}"]] = 1.0
        row[columns["attempts_left"]] = now.attempts_left
        row[columns["picks_left"]] = now.picks_left
        row[columns["best_speedup"]] = _speedup(now.first_us, now.best_us)
        row[columns[f"last_verdict.{now.last.outcome if now.last else 'none'}"]] = 1.0
        row[columns[f"category.{now.category if now.category in CATEGORIES else 'other'}"]] = 1.0
        row[columns["embedding"]] = now.embedding
        if self.version > 1:
            row[columns["outcomes"]], row[columns["author"]] = shares(now.outcomes), shares(now.author)
        return row


@lru_cache(maxsize=8)
def projection(dimensions: int, width: int = EMBEDDING) -> Vector:
    """Return the fixed random matrix that projects an embedding to `width` values; the same on every machine."""
    return np.random.default_rng(20240607).standard_normal((dimensions, width)).astype(np.float32)


def project(embedding: NDArray[Any], width: int = EMBEDDING) -> Vector:
    """Project a unit embedding; about three standard deviations fit into [-1, 1]."""
    projected: Vector = np.asarray(embedding, np.float32) @ projection(len(embedding), width)
    bounded: Vector = np.clip(projected / np.float32(3.0), -1.0, 1.0)
    return bounded


def project_items(vectors: NDArray[Any]) -> Vector:
    """Project the embeddings of items, one in each row, as the feature `text` shows them."""
    # In double precision, so that a row does not depend on how many are projected together.
    projected = np.asarray(vectors, np.float64) @ projection(vectors.shape[1], ITEM_EMBEDDING) / 3.0
    return np.clip(projected, -1.0, 1.0).astype(np.float32)


def _describe(candidate: Candidate, now: Situation) -> list[float]:
    """Return one candidate's values, in the order of CANDIDATE_FEATURES."""
    item, kind = candidate.item, candidate.kind
    draft, refine = (candidate.outcome(stage) for stage in _STAGES)
    age = max(0, now.clock - item.born)
    share = _share(now.operators, candidate.operators)
    return [
        *(kind == part for part in CANDIDATE_FEATURES[0].parts),
        _bounded(candidate.similarity),
        item.task == now.task,
        bool(item.category) and item.category == now.category,
        item.feasible,
        _relative_latency(candidate, now.fastest),
        item.stage is Stage.DRAFT,
        item.stage is Stage.REFINE,
        age / (age + HALF_AGE),
        draft.uses / (draft.uses + HALF_USES),
        refine.uses / (refine.uses + HALF_USES),
        _bounded(draft.mean),
        _bounded(refine.mean),
        _bounded(draft.recent),
        _bounded(refine.recent),
        0.0,
        0.0,
        share,
        share,
    ]


def _describe_more(candidate: Candidate, now: Situation) -> list[float]:
    """Return one candidate's values of version 2."""
    item, length = candidate.item, len(candidate.item.text)
    named = _share(now.failure_words, candidate.words)
    failed = item.verdict is not None and not item.feasible
    repeated = now.failures.get(failure_kind(item.verdict), 0) if failed and item.verdict is not None else 0
    return [
        item.verdict is not None and bool(item.verdict.compiled),
        length / (length + HALF_LENGTH),
        _share(now.kernel_words, candidate.words),
        named,
        named,
        repeated / max(1, sum(now.failures.values())),
        *now.texts.get(item.id, np.zeros(ITEM_EMBEDDING, np.float32)).tolist(),
    ]


def failure_kind(verdict: Verdict) -> str:
    """Return what failures have in common: the outcome and the first line of the message without numbers and quotes."""
    return f"{verdict.outcome} {_kind(verdict.feedback)}"


@lru_cache(maxsize=8192)
def _kind(feedback: str) -> str:
    first = feedback.strip().partition("\n")[0].partition(" | ")[0]
    return re.sub(r"\d+", "", first)


def shares(counts: Mapping[str, int]) -> list[float]:
    """Return the shares of `OUTCOMES` in counts by outcome; zeros if there are none."""
    total = max(1, sum(counts.values()))
    return [counts.get(outcome, 0) / total for outcome in OUTCOMES]


def _bounded(value: float) -> float:
    return min(1.0, max(-1.0, value))


def _relative_latency(candidate: Candidate, fastest: Mapping[str, float]) -> float:
    verdict = candidate.item.verdict
    latency = verdict.latency_us if verdict is not None else None
    return 0.0 if latency is None else min(1.0, fastest.get(candidate.item.task, latency) / latency)


def _speedup(first_us: float | None, best_us: float | None) -> float:
    return max(0.0, tanh(log(first_us / best_us))) if first_us and best_us else 0.0


def _share(whole: frozenset[str], part: frozenset[str]) -> float:
    """Return the share of `whole` that is in `part`; 0 if `whole` is empty."""
    return len(whole & part) / len(whole) if whole else 0.0


def _columns(features: tuple[Feature, ...]) -> dict[str, int | slice]:
    columns: dict[str, int | slice] = {}
    at = 0
    for feature in features:
        columns[feature.name] = slice(at, at + feature.width) if feature.parts else at
        columns |= {f"{feature.name}.{part}": at + i for i, part in enumerate(feature.parts)}
        at += feature.width
    return columns


def _column(columns: dict[str, int | slice], name: str) -> int | slice:
    if name not in columns:
        whole = ", ".join(key for key in columns if "." not in key)
        raise KeyError(f"no feature {name!r}; there are {whole}")
    return columns[name]


def _low(features: tuple[Feature, ...]) -> Vector:
    return np.concatenate([np.full(feature.width, feature.low, np.float32) for feature in features])
