"""Back up the files that replaying a run writes again, until the replay has passed every recorded attempt.

If a run cannot be replayed because its code or compiler changed, it gets its files back. The process may be killed
between any two steps. So each step is one renaming, and the next start can tell from the folder's name how far it came:

`aside.part`  the backup is being made: its files and those of the run folder together are the run's
`aside`       the backup is complete: its files are the run's, those of the run folder are the replay's
`aside.gone`  the backup is no longer needed: the files of the run folder are the run's
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

#: Files that replaying writes again.
REWRITTEN = ("bank.sqlite*", "events.out.tfevents.*", "best", "checkpoints", "complete")


class ReplayBackup:
    """The backup of a run folder's files; only the process that holds the journal may use it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moving, self._kept, self._gone = (folder / f"aside{state}" for state in (".part", "", ".gone"))

    @staticmethod
    def has(path: Path) -> bool:
        """Return whether a file is part of a backup."""
        return path.parent.name in ("aside.part", "aside", "aside.gone")

    def make(self) -> None:
        """Move the run's files into the backup; what a killed replay left is removed."""
        if self._gone.exists():
            shutil.rmtree(self._gone)
        if self._kept.exists():
            self._remove_replayed()
            return
        self._moving.mkdir(exist_ok=True)
        for path in self._rewritten():
            path.rename(self._moving / path.name)
        self._moving.rename(self._kept)

    def discard(self) -> None:
        """Remove the backup after a successful replay, whose files replace it."""
        if self._kept.exists():
            self._kept.rename(self._gone)
            shutil.rmtree(self._gone)

    def restore(self) -> None:
        """Remove what a failed replay wrote and move the run's files back."""
        if not self._kept.exists():
            return
        self._remove_replayed()
        self._kept.rename(self._moving)
        for path in list(self._moving.iterdir()):
            path.rename(self._folder / path.name)
        self._moving.rmdir()

    def _remove_replayed(self) -> None:
        for path in self._rewritten():
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    def _rewritten(self) -> Iterator[Path]:
        return (path for pattern in REWRITTEN for path in list(self._folder.glob(pattern)))
