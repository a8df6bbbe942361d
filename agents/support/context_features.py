"""What a context shows for a task, as numbers; what is known about a task from its attempts.

Features are those of a set of picks: code that is shown twice covers no more, and a second account of the same failure
says half as much. Texts are taken apart into statements, names of the interface and ways to fail, nothing else.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from math import fsum, log, log1p

import numpy as np
from numpy.typing import NDArray

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.pool import Candidate
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Verdict

Weights = NDArray[np.float64]

#: What a context is described by, with what is expected of each weight at the gates (compiles, correct, faster) before
#: anything is learned. From `verified` to `length` the first two gates have what `scripts/credit.py --fit` found on
#: operators of level 1, four fifths of it each, as a good kernel passes both; the others are guesses.
FEATURES: dict[str, tuple[float, float, float]] = {
    "bias": (0.0, 0.0, 0.0),
    "passed": (1.0, 1.0, 0.0),  # log-odds that attempts at this task passed the gate before
    "verified": (3.0, 3.0, 0.0),  # share of the code this task needs that picked code shows which passed every gate
    "compiled": (0.2, 0.2, 0.0),  # share that only code shows which compiled and then failed
    "failed": (-1.3, -1.3, 0.0),  # share that only code shows which did not compile
    "named": (1.5, 1.5, 0.0),  # share of the names this task's kernels use that picked code has: it brings their pages
    "answered": (0.5, 0.5, 0.0),  # how often this task is expected to fail in the ways that picks tell of
    "length": (-2.1, -2.1, 0.0),  # hundreds of thousands of characters of all picks
    "practices": (0.05, 0.05, 0.1),  # similarity of those picked, added up; here and below
    "practices that fit": (0.05, 0.05, 0.3),
    "examples": (0.4, 0.4, 0.2),  # of picks that tell of kernels that passed
    "slower": (0.0, 0.0, -0.5),  # log(latency of the start point / best latency); refining only
    "worn": (0.0, 0.0, -0.1),  # log(1 + attempts that began from the start point); refining only
}
#: How many attempts of a task's own weigh as much as what all tasks' attempts say of a way to fail.
BORROWED = 3.0
#: Characters of a text at which half of its lines are seen.
GLANCE = 10_000
_INDEX = {name: i for i, name in enumerate(FEATURES)}


@dataclass
class TaskRecord:
    """What attempts at one task came to: their statements, how they failed, which gates they passed."""

    attempts: int = 0
    compiled: int = 0
    correct: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def take(self, attempt: Attempt) -> None:
        """Count an attempt in."""
        self.attempts += 1
        self.compiled += bool(attempt.verdict.compiled)
        self.correct += attempt.verdict.feasible
        self.statements.update(statements(attempt.kernel.source))
        self.names.update(names(attempt.kernel.source))
        if not attempt.verdict.feasible:
            self.failures[failure(attempt.verdict).words] += 1

    def passed(self, gate: str) -> float:
        """Log-odds of passing a gate so far, one success and one failure assumed."""
        reached = self.attempts if gate == "compiles" else self.compiled
        passed = self.compiled if gate == "compiles" else self.correct
        return log((passed + 1) / (reached - passed + 1))


class TaskOutlook:
    """What is known about a task before an attempt: what its kernels need, and how they are going to fail.

    A task's kernels are taken to need the statements that they were seen to have and that other tasks' kernels have
    too, the more the oftener they were missing: one that some attempts have and others lack the author is unsure of.
    How often an attempt fails in some way is estimated from this task's own attempts and, as if these were `BORROWED`
    more attempts, from those of the tasks where it happened, if this one's kernels have a name the failure is about.
    """

    def __init__(self, task: str, records: Mapping[str, TaskRecord], known: Mapping[str, int]) -> None:
        self.record = records.get(task, TaskRecord())
        self._others = [record for name, record in records.items() if name != task]
        attempts, seen = max(1, self.record.attempts), self.record.statements.items()
        self._needs = {one: 1.05 - count / attempts for one, count in seen if known.get(one, 0) > 1}
        # Sums over sets of words: exact, so that their order, which differs from process to process, changes nothing.
        self._total = fsum(self._needs.values())
        self._rates: dict[Failure, float] = {}

    def covered(self, shown: Mapping[str, float]) -> float:
        """The share of what the task needs that these statements are, each counted as much as it is plain to see."""
        seen = fsum(plain * self._needs.get(one, 0.0) for one, plain in shown.items())
        return seen / self._total if self._total else 0.0

    def named(self, shown: frozenset[str]) -> float:
        """The share of the names in this task's kernels that are among these, each counted as often as it was used."""
        used = self.record.names
        return sum(used[one] for one in shown & used.keys()) / used.total() if used else 0.0

    def rate(self, way: Failure) -> float:
        """How often an attempt is expected to fail in a way."""
        if way not in self._rates:
            met = [record for record in self._others if record.failures[way.words]]
            concerned = met and (not way.names or any(name in self.record.names for name in way.names))
            total = sum(record.attempts for record in met)
            elsewhere = sum(record.failures[way.words] for record in met) / total if concerned else 0.0
            own = self.record.failures[way.words]
            self._rates[way] = (own + BORROWED * elsewhere) / (self.record.attempts + BORROWED)
        return self._rates[way]


def features(
    outlook: TaskOutlook, picks: Sequence[Candidate], start: Candidate | None, best_us: float | None
) -> Weights:
    """The numbers of `FEATURES` for a context, `passed` left at 0: it differs by gate."""
    passed = [pick for pick in picks if pick.item.feasible]
    compiled, failed = ([pick for pick in picks if _outcome(pick) is one] for one in (True, False))
    shown, half, wrong = _seen(passed), _seen(compiled), _seen(failed)
    practices = [pick for pick in picks if pick.kind == "practice"]
    fitting = [pick for pick in practices if _fits(pick, start)]
    row = {
        "bias": 1.0,
        "verified": outlook.covered(shown),
        "compiled": outlook.covered(_without(half, shown)),
        "failed": outlook.covered(_without(wrong, shown.keys() | half)),
        "named": outlook.named(frozenset[str]().union(*(names(pick.item.code) for pick in picks))),
        "answered": _answered(outlook, picks),
        "length": sum(len(pick.item.text) for pick in picks) / 100_000,
        "practices": sum(pick.similarity for pick in practices if pick not in fitting),
        "practices that fit": sum(pick.similarity for pick in fitting),
        "examples": sum(pick.similarity for pick in passed),
        "slower": log(start.latency_us / best_us) if start and start.latency_us and best_us else 0.0,
        "worn": log1p(start.outcome(Stage.REFINE).uses) if start else 0.0,
    }
    vector = np.zeros(len(FEATURES))
    vector[[_INDEX[name] for name in row]] = list(row.values())
    return vector


def _seen(picks: Sequence[Candidate]) -> dict[str, float]:
    """The statements that picks show, and how plainly: in a long text a line is easily missed."""
    plain: dict[str, float] = {}
    for pick in sorted(picks, key=lambda one: -len(one.item.text)):
        plain |= dict.fromkeys(statements(pick.item.text), 1 / (1 + len(pick.item.text) / GLANCE))
    return plain


def _answered(outlook: TaskOutlook, picks: Sequence[Candidate]) -> float:
    """The failures to be expected that experiences tell of; a second account of the same counts half, and so on."""
    words = (pick.item.verdict for pick in picks if pick.kind == "experience")
    told = Counter(failure(verdict) for verdict in words if verdict and not verdict.feasible)
    return sum(outlook.rate(way) * 2 * (1 - 0.5**count) for way, count in told.items())


def gate_features(row: Weights, record: TaskRecord, gate: str) -> Weights:
    """The features as one gate sees them."""
    mine = row.copy()
    mine[_INDEX["passed"]] = record.passed(gate) if gate != "faster" else 0.0
    return mine


def _without(seen: Mapping[str, float], known: Collection[str]) -> dict[str, float]:
    return {one: plain for one, plain in seen.items() if one not in known}


def _outcome(pick: Candidate) -> bool | None:
    """Whether the kernel that a pick shows or tells of compiled; None if it passed every gate or there is none."""
    verdict = pick.item.verdict
    return None if verdict is None or verdict.feasible else bool(verdict.compiled)


def _fits(practice: Candidate, start: Candidate | None) -> bool:
    bottleneck = getattr(getattr(start and start.item.verdict, "profile", None), "bottleneck", "")
    return bool(bottleneck) and bottleneck in practice.item.bottlenecks


_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")


@lru_cache(maxsize=8192)
def statements(text: str) -> frozenset[str]:
    """The statements of a kernel, without what is its own: names that begin in lower case, numbers, comments."""
    lines = (line.partition("//")[0].strip() for line in text.splitlines())
    return frozenset("".join(map(_plain, _WORD.findall(line))) for line in lines if "(" in line or ";" in line)


def _plain(word: str) -> str:
    return "v" if word[0].islower() or word[0] == "_" else "0" if word[0].isdigit() else word


@lru_cache(maxsize=8192)
def names(text: str) -> frozenset[str]:
    """The names of the interface in a text: those that begin with a capital, without the commonest types."""
    return frozenset(re.findall(r"\b[A-Z][A-Za-z]\w*", text)) - _TYPES


_TYPES = frozenset(("AscendC", "LocalTensor", "GlobalTensor", "TPosition", "Hint"))


@dataclass(frozen=True)
class Failure:
    """A way to fail: the gate and what was said, without numbers and arguments; and the names it is about."""

    words: str
    names: frozenset[str] = field(compare=False)


def failure(verdict: Verdict) -> Failure:
    """The way in which a kernel failed."""
    rule = getattr(verdict, "rule", "") or getattr(verdict, "cause", "")
    return _failure(verdict.outcome, rule, verdict.feedback)


@lru_cache(maxsize=8192)
def _failure(outcome: str, rule: str, said: str) -> Failure:
    first = re.sub(r"^line \d+: ", "", said.strip().partition("\n")[0]).partition("|")[0]
    about = first.partition("(")[0]
    words = rule or " ".join(re.findall(r"[A-Za-z_]+", about))
    return Failure(f"{outcome} {words}", names(about))
