"""Features of a context for a task, computed from its picks and from earlier attempts at all tasks.

Features describe a set of picks: code that is shown twice covers no more, and a second experience of the same failure
counts half. Of the texts only statements, API names and kinds of failure are used.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
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

#: The features of a context, each with the prior mean of its weight at the gates (compiles, correct, faster). From
#: `verified` to `length` the weights of the first two gates are what `kernel-gym credit --fit` found on tasks of
#: level 1, four fifths of it each, because a good kernel passes both gates. The other weights are guesses.
FEATURES: dict[str, tuple[float, float, float]] = {
    "bias": (0.0, 0.0, 0.0),
    "passed": (1.0, 1.0, 0.0),  # log-odds that earlier attempts at this task passed the gate
    "verified": (3.0, 3.0, 0.0),  # share of the statements this task needs that occur in picked, feasible code
    "compiled": (0.2, 0.2, 0.0),  # share that occurs only in picked code that compiled and then failed
    "failed": (-1.3, -1.3, 0.0),  # share that occurs only in picked code that did not compile
    "named": (
        1.5,
        1.5,
        0.0,
    ),  # share of the API names of this task's kernels that occur in picked code
    "answered": (0.5, 0.5, 0.0),  # expected rate of the failures that picked experiences describe
    "length": (-2.1, -2.1, 0.0),  # length of all picks, in units of 100,000 characters
    "practices": (0.05, 0.05, 0.1),  # sum of similarities of picked practices; likewise below
    "practices that fit": (0.05, 0.05, 0.3),  # practices against the start point's bottleneck
    "examples": (0.4, 0.4, 0.2),  # picks about feasible kernels
    "slower": (0.0, 0.0, -0.5),  # log(latency of the start point / best latency); refining only
    "worn": (0.0, 0.0, -0.1),  # log(1 + attempts that began from the start point); refining only
}
#: Weight of the failure rate at other tasks, in attempts of the task itself.
BORROWED = 3.0
#: Length of a text, in characters, at which half of its statements count as seen.
GLANCE = 10_000
_INDEX = {name: i for i, name in enumerate(FEATURES)}


@dataclass
class TaskRecord:
    """Counts over the attempts at one task: gates passed, statements and API names used, kinds of failure."""

    attempts: int = 0
    compiled: int = 0
    correct: int = 0
    statements: Counter[str] = field(default_factory=Counter)
    names: Counter[str] = field(default_factory=Counter)
    failures: Counter[str] = field(default_factory=Counter)

    def add(self, attempt: Attempt) -> None:
        """Count an attempt."""
        self.attempts += 1
        self.compiled += bool(attempt.verdict.compiled)
        self.correct += attempt.verdict.feasible
        self.statements.update(statements(attempt.kernel.source))
        self.names.update(names(attempt.kernel.source))
        if not attempt.verdict.feasible:
            self.failures[failure(attempt.verdict).words] += 1

    def passed(self, gate: str) -> float:
        """Return the log-odds of passing a gate so far, with one success and one failure assumed."""
        reached = self.attempts if gate == "compiles" else self.compiled
        passed = self.compiled if gate == "compiles" else self.correct
        return log((passed + 1) / (reached - passed + 1))


class TaskOutlook:
    """What is known about a task before an attempt: which statements its kernels need, and how they tend to fail.

    A task needs the statements that its kernels had and that other tasks' kernels have too. A statement that some
    attempts lack weighs more: the author is unsure of it. The rate of a failure is estimated from the task's own
    attempts and, with the weight of `BORROWED` more attempts, from the tasks where it occurred, if this task's kernels
    use an API name that the failure mentions.

    Args:
        task: The task's id.
        records: Records of all tasks, by task.
        statement_tasks: How many tasks' kernels have a statement.
    """

    def __init__(self, task: str, records: Mapping[str, TaskRecord], statement_tasks: Mapping[str, int]) -> None:
        self.record = records.get(task, TaskRecord())
        self._others = [record for name, record in records.items() if name != task]
        attempts, seen = max(1, self.record.attempts), self.record.statements.items()
        self._needs = {line: 1.05 - count / attempts for line, count in seen if statement_tasks.get(line, 0) > 1}
        # Exact sums: the order of sets of strings differs from process to process and must not change the result.
        self._total = fsum(self._needs.values())
        self._needed: dict[str, frozenset[str]] = {}
        #: Most candidates change nothing of what the picks of one outcome cover.
        self._visible: dict[tuple[str, ...], dict[str, float]] = {}
        self._covered: dict[tuple[tuple[str, ...], tuple[str, ...]], float] = {}
        self._rates: dict[Failure, float] = {}

    def needed(self, text: str) -> frozenset[str]:
        """Return the needed statements that a text has."""
        if text not in self._needed:
            self._needed[text] = statements(text) & self._needs.keys()
        return self._needed[text]

    def visible(self, texts: tuple[str, ...]) -> Mapping[str, float]:
        """Return the needed statements of texts with their visibility in (0, 1], which falls with the text's length."""
        if texts not in self._visible:
            visibility: dict[str, float] = {}
            for text in sorted(texts, key=len, reverse=True):
                visibility |= dict.fromkeys(self.needed(text), 1 / (1 + len(text) / GLANCE))
            self._visible[texts] = visibility
        return self._visible[texts]

    def covered(self, texts: tuple[str, ...], others: tuple[str, ...] = ()) -> float:
        """Return the share of the needed statements that texts show and others do not, weighted by visibility."""
        if (texts, others) not in self._covered:
            shown, excluded = self.visible(texts), self.visible(others)
            seen = fsum(share * self._needs[line] for line, share in shown.items() if line not in excluded)
            self._covered[texts, others] = seen / self._total if self._total else 0.0
        return self._covered[texts, others]

    def named(self, shown: frozenset[str]) -> float:
        """Return the share of the API names in this task's kernels that are shown, weighted by their use."""
        used = self.record.names
        return sum(used[name] for name in shown & used.keys()) / used.total() if used else 0.0

    def rate(self, failure: Failure) -> float:
        """Return the expected rate of a failure in attempts at the task."""
        if failure not in self._rates:
            records = [record for record in self._others if record.failures[failure.words]]
            applies = records and (not failure.names or any(name in self.record.names for name in failure.names))
            total = sum(record.attempts for record in records)
            elsewhere = sum(record.failures[failure.words] for record in records) / total if applies else 0.0
            own = self.record.failures[failure.words]
            self._rates[failure] = (own + BORROWED * elsewhere) / (self.record.attempts + BORROWED)
        return self._rates[failure]


def features(
    outlook: TaskOutlook, picks: Sequence[Candidate], start: Candidate | None, best_us: float | None
) -> Weights:
    """Compute the features of a context.

    Args:
        outlook: What is known about the task.
        picks: The picked candidates.
        start: The start point in refining, else None.
        best_us: Best latency of the task so far, in microseconds; None while drafting.

    Returns:
        The values of `FEATURES` in order. `passed` is 0: it differs by gate, see `gate_features`.
    """
    passed = [pick for pick in picks if pick.item.feasible]
    compiled, failed = (_texts(pick for pick in picks if _compiled(pick) is outcome) for outcome in (True, False))
    feasible = _texts(passed)
    practices = [pick for pick in picks if pick.kind == "practice"]
    fitting = [pick for pick in practices if _fits(pick, start)]
    row = {
        "bias": 1.0,
        "verified": outlook.covered(feasible),
        "compiled": outlook.covered(compiled, feasible),
        "failed": outlook.covered(failed, feasible + compiled),
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


def _texts(picks: Iterable[Candidate]) -> tuple[str, ...]:
    return tuple(pick.item.text for pick in picks)


def _answered(outlook: TaskOutlook, picks: Sequence[Candidate]) -> float:
    """Return the summed rates of failures that experiences describe; a second experience of one counts half."""
    verdicts = (pick.item.verdict for pick in picks if pick.kind == "experience")
    failures = Counter(failure(verdict) for verdict in verdicts if verdict and not verdict.feasible)
    return sum(outlook.rate(kind) * 2 * (1 - 0.5**count) for kind, count in failures.items())


def gate_features(row: Weights, record: TaskRecord, gate: str) -> Weights:
    """Return the features with `passed` filled in for one gate."""
    filled = row.copy()
    filled[_INDEX["passed"]] = record.passed(gate) if gate != "faster" else 0.0
    return filled


def _compiled(pick: Candidate) -> bool | None:
    """Return whether a pick's infeasible kernel compiled; None if it is feasible or there is no kernel."""
    verdict = pick.item.verdict
    return None if verdict is None or verdict.feasible else bool(verdict.compiled)


def _fits(practice: Candidate, start: Candidate | None) -> bool:
    bottleneck = getattr(getattr(start and start.item.verdict, "profile", None), "bottleneck", "")
    return bool(bottleneck) and bottleneck in practice.item.bottlenecks


_WORD = re.compile(r"[A-Za-z_]\w*|\d[\w.]*|\S")


@lru_cache(maxsize=8192)
def statements(text: str) -> frozenset[str]:
    """Return the statements of a kernel, with names in lower case and numbers replaced and comments removed."""
    lines = (line.partition("//")[0].strip() for line in text.splitlines())
    return frozenset(_normalised(line) for line in lines if "(" in line or ";" in line)


@lru_cache(maxsize=65536)
def _normalised(line: str) -> str:
    # Kernels have most of their lines in common.
    return "".join(map(_placeholder, _WORD.findall(line)))


def _placeholder(word: str) -> str:
    return "v" if word[0].islower() or word[0] == "_" else "0" if word[0].isdigit() else word


@lru_cache(maxsize=8192)
def names(text: str) -> frozenset[str]:
    """Return the API names in a text: those that begin with a capital, without the most common types."""
    return frozenset(re.findall(r"\b[A-Z][A-Za-z]\w*", text)) - _TYPES


_TYPES = frozenset(("AscendC", "LocalTensor", "GlobalTensor", "TPosition", "Hint"))


@dataclass(frozen=True)
class Failure:
    """A kind of failure.

    Args:
        words: The outcome and the message without numbers and arguments.
        names: The API names in the message.
    """

    words: str
    names: frozenset[str] = field(compare=False)


def failure(verdict: Verdict) -> Failure:
    """Return the kind of failure of a verdict."""
    rule = getattr(verdict, "rule", "") or getattr(verdict, "cause", "")
    return _failure(verdict.outcome, rule, verdict.feedback)


@lru_cache(maxsize=8192)
def _failure(outcome: str, rule: str, feedback: str) -> Failure:
    first = re.sub(r"^line \d+: ", "", feedback.strip().partition("\n")[0]).partition("|")[0]
    about = first.partition("(")[0]
    words = rule or " ".join(re.findall(r"[A-Za-z_]+", about))
    return Failure(f"{outcome} {words}", names(about))
