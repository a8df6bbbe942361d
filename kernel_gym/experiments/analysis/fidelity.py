"""How well a simulated device agrees with hardware, on a corpus of kernels that hardware has judged.

A corpus is a CSV file: a row for each kernel with its reference, the hardware's verdict and, if it passed, its latency.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy  # loads its parts when they are used

from kernel_gym import suites
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Incorrect, Verdict

if TYPE_CHECKING:
    from kernel_gym.verifier import Verifier

#: What hardware says of a kernel, and the outcomes of verdicts beside it.
HARDWARE = ("pass", "compile_error", "wrong", "fault")
OURS = (*HARDWARE, "cheated", "unjudged")
COLUMNS = ("kernel", "reference", "verdict", "latency_us", "group")
#: A latency is near if it is off by at most this share.
NEAR = 0.2
_LEVEL = 0.95


@dataclass(frozen=True)
class Entry:
    """A row of a corpus.

    Args:
        kernel: The file of the kernel, beside the corpus or absolute; a `.py` file is a bundle.
        reference: A task, or a problem file beside the corpus or absolute.
        verdict: What hardware said: `pass`, `compile_error`, `wrong` or `fault`.
        latency_us: The measured latency, if there is one.
        group: A group whose latencies are compared with each other.
    """

    kernel: str
    reference: str
    verdict: str
    latency_us: float | None = None
    group: str = ""


@dataclass(frozen=True)
class Comparison:
    """An entry beside the verdict on its kernel here."""

    kernel: str
    reference: str
    group: str
    hardware: str
    here: str
    hardware_us: float | None
    here_us: float | None
    reason: str

    @property
    def agrees(self) -> bool:
        """Whether both accept the kernel, or both refuse it."""
        return (self.hardware == "pass") == (self.here == "pass")


@dataclass(frozen=True)
class Rate:
    """A share with its 95% Wilson interval."""

    count: int
    total: int
    low: float
    high: float

    @property
    def text(self) -> str:
        """The share in words: `57 of 59, 96.6% [88.5, 99.1]`."""
        share = 100 * self.count / self.total if self.total else 0.0
        return f"{self.count} of {self.total}, {share:.1f}% [{100 * self.low:.1f}, {100 * self.high:.1f}]"


@dataclass(frozen=True)
class LatencyErrors:
    """Relative errors of the latencies of a group: (here - hardware) / hardware.

    Args:
        group: The group; empty for all.
        count: The number of kernels that pass on both and have a measured latency.
        median_error: The median of the errors' magnitudes.
        bias: The median of the errors.
        near: The share of errors of at most 20%.
        tau: Kendall's rank correlation of the latencies; None for fewer than two.
    """

    group: str
    count: int
    median_error: float
    bias: float
    near: float
    tau: float | None


def read_corpus(path: Path) -> list[Entry]:
    """Return the rows of a corpus; a ConfigError names the row that is wrong."""
    if not path.is_file():
        raise ConfigError(f"no corpus {str(path)!r}; it is a CSV file with the columns {', '.join(COLUMNS)}")
    with path.open(newline="", encoding="utf-8") as file:
        rows = csv.DictReader(file)
        missing = [name for name in COLUMNS[:3] if name not in (rows.fieldnames or ())]
        if missing:
            raise ConfigError(f"{path}: the column {missing[0]} is missing; columns are {', '.join(COLUMNS)}")
        return [_entry(path, number, row) for number, row in enumerate(rows, 2)]


def _entry(path: Path, line: int, row: dict[str, str | None]) -> Entry:
    if row["verdict"] not in HARDWARE:
        raise ConfigError(f"{path}:{line}: the verdict is one of {', '.join(HARDWARE)}, not {row['verdict']!r}")
    try:
        latency = float(row.get("latency_us") or 0) or None
    except ValueError:
        raise ConfigError(f"{path}:{line}: latency_us is a number, not {row['latency_us']!r}") from None
    return Entry(row["kernel"] or "", row["reference"] or "", row["verdict"], latency, row.get("group") or "")


def compare(verifier: Verifier, entry: Entry, folder: Path) -> Comparison:
    """Verify the kernel of an entry and return both verdicts side by side."""
    try:
        verdict: Verdict | None = _verify(verifier, entry, folder)
        reason = verdict.feedback.partition("\n")[0] if verdict else ""
    except (KernelGymError, OSError, UnicodeDecodeError) as error:
        verdict, reason = None, str(error)
    return Comparison(
        entry.kernel,
        entry.reference,
        entry.group,
        entry.verdict,
        outcome(verdict),
        entry.latency_us,
        verdict.latency_us if verdict else None,
        reason,
    )


def _verify(verifier: Verifier, entry: Entry, folder: Path) -> Verdict:
    path = folder / entry.kernel
    text = path.read_text(encoding="utf-8")
    kernel = Kernel(text, verifier.device.language, form="bundle" if path.suffix == ".py" else "file")
    beside = folder / entry.reference
    return verifier.verify(kernel, suites.find_task(str(beside) if beside.is_file() else entry.reference))


def outcome(verdict: Verdict | None) -> str:
    """Return which of hardware's verdicts a verdict corresponds to, or `cheated` or `unjudged`."""
    if isinstance(verdict, Incorrect):
        return "wrong" if verdict.cause == "mismatch" else "fault"
    names = {"feasible": "pass", "uncompilable": "compile_error", "cheated": "cheated"}
    return names.get(verdict.outcome, "unjudged") if verdict else "unjudged"


def confusion(comparisons: Sequence[Comparison]) -> dict[str, dict[str, int]]:
    """Return how many kernels of each of hardware's verdicts had which outcome here."""
    counts = Counter((c.hardware, c.here) for c in comparisons)
    return {hardware: {here: counts[hardware, here] for here in OURS} for hardware in HARDWARE}


def agreement(comparisons: Sequence[Comparison]) -> dict[str, Rate]:
    """Return for each of hardware's verdicts the share on which both accept or both refuse the kernel.

    Kernels that could not be judged count as not agreeing.
    """
    rates = {}
    for hardware in HARDWARE:
        rows = [c for c in comparisons if c.hardware == hardware]
        if rows:
            rates[hardware] = rate(sum(c.agrees and c.here != "unjudged" for c in rows), len(rows))
    return rates


def rate(count: int, total: int) -> Rate:
    """Return a share with its Wilson interval."""
    interval = scipy.stats.binomtest(count, total).proportion_ci(_LEVEL, method="wilson")
    return Rate(count, total, float(interval.low), float(interval.high))


def latency_errors(comparisons: Sequence[Comparison]) -> list[LatencyErrors]:
    """Return the errors of all latencies, then those of each group."""
    timed = [c for c in comparisons if c.hardware_us and c.here_us]
    groups = sorted({c.group for c in timed if c.group})
    tables = [_errors("", timed), *(_errors(name, [c for c in timed if c.group == name]) for name in groups)]
    return [table for table in tables if table.count]


def _errors(group: str, timed: Sequence[Comparison]) -> LatencyErrors:
    if not timed:
        return LatencyErrors(group, 0, 0.0, 0.0, 0.0, None)
    hardware = np.array([c.hardware_us for c in timed], dtype=float)
    here = np.array([c.here_us for c in timed], dtype=float)
    errors = here / hardware - 1
    tau = float(scipy.stats.kendalltau(hardware, here).statistic) if len(timed) > 1 else None
    return LatencyErrors(
        group,
        len(timed),
        float(np.median(np.abs(errors))),
        float(np.median(errors)),
        float(np.mean(np.abs(errors) <= NEAR)),
        tau,
    )


def disagreements(comparisons: Sequence[Comparison]) -> Iterator[Comparison]:
    """Yield the kernels that one side accepts and the other refuses, and those that could not be judged."""
    return (c for c in comparisons if not c.agrees or c.here == "unjudged")


def summary(comparisons: Sequence[Comparison]) -> dict[str, Any]:
    """Return all figures as plain data."""
    return {
        "kernels": len(comparisons),
        "confusion": confusion(comparisons),
        "agreement": {name: asdict(value) for name, value in agreement(comparisons).items()},
        "latency": [asdict(table) for table in latency_errors(comparisons)],
        "disagreements": [asdict(comparison) for comparison in disagreements(comparisons)],
    }
