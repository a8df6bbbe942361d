"""A table of the verdicts on a folder of bundles."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rich.table import Table

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Verdict

if TYPE_CHECKING:
    from kernel_gym.verifier import Verifier

#: The name of a reference that lies beside its bundle: NAME.reference.py.
BESIDE = ".reference.py"


@dataclass(frozen=True)
class Row:
    """The verdict on one bundle; without one, `error` says why it could not be judged."""

    name: str
    verdict: Verdict | None = None
    error: str = ""

    @property
    def outcome(self) -> str:
        """How it ended."""
        return self.verdict.outcome if self.verdict else "unjudged"

    @property
    def text(self) -> str:
        """The first line of what there is to say."""
        return (self.verdict.feedback if self.verdict else self.error).partition("\n")[0]

    def to_json(self) -> dict[str, Any]:
        """Return the row as plain data."""
        verdict = self.verdict.to_json() if self.verdict else {"outcome": "unjudged", "feedback": self.error}
        return {"bundle": self.name} | verdict


def pairs(folder: Path, task: str | None) -> list[tuple[Path, str]]:
    """Return the bundles of a folder, each with the name of its reference.

    Args:
        folder: The folder.
        task: A task, or a folder or suite in which the reference has the bundle's name; None if references lie beside
            the bundles.

    Returns:
        The pairs in the order of names.

    Raises:
        KernelGymError: If the folder has no bundle, or if a bundle has no reference.
    """
    if not folder.is_dir():
        raise KernelGymError(f"no folder {str(folder)!r}")
    paths = [path for path in sorted(folder.glob("*.py")) if not path.name.endswith(BESIDE)]
    if not paths:
        raise KernelGymError(f"no bundle in {str(folder)!r}: bundles are .py files of six strings")
    return [(path, _reference(path, task)) for path in paths]


def _reference(path: Path, task: str | None) -> str:
    beside = path.with_name(path.stem + BESIDE)
    if beside.is_file():
        return str(beside)
    if task is None:
        raise KernelGymError(f"no reference for {path.name}: write {beside.name} beside it, or name a folder by --task")
    if Path(task).is_dir() or task in suites.SUITES:
        file = Path(task) / path.name
        return str(file) if file.is_file() else f"{task}/{path.stem}"
    return task


def verify(verifier: Verifier, path: Path, reference: str) -> Row:
    """Verify one bundle; a reference that cannot be loaded is the row's error."""
    try:
        kernel = Kernel(path.read_text(encoding="utf-8"), verifier.device.language, form="bundle")
        return Row(path.stem, verifier.verify(kernel, suites.find_task(reference)))
    except (KernelGymError, UnicodeDecodeError) as error:
        return Row(path.stem, error=str(error))


def table(rows: list[Row]) -> Table:
    """Return the rows as a table."""
    result = Table("bundle", "verdict", "latency us", "feedback")
    for row in rows:
        latency = row.verdict.latency_us if row.verdict else None
        result.add_row(row.name, row.outcome, "" if latency is None else f"{latency:.1f}", row.text)
    return result


def summary(rows: list[Row], policy: str) -> str:
    """Return how many bundles ended how."""
    counts = Counter(row.outcome for row in rows)
    return f"{len(rows)} bundles, policy {policy}: " + ", ".join(
        f"{n} {outcome}" for outcome, n in counts.most_common()
    )
