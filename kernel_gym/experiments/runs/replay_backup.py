"""What replaying a run writes anew lies aside until the replay has passed every recorded attempt.

A run that cannot be replayed (its code or compiler changed) gets back what it had. A process may be killed between any
two steps, so each is one renaming that the next start can tell from all others:

`aside.part`  on its way: these files and those beside the folder together are what the run had
`aside`       put away: these files are what the run had, those beside the folder are the replay's
`aside.gone`  not needed any more: the files beside the folder are the run's
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

#: What replaying writes anew.
REWRITTEN = ("bank.sqlite*", "events.out.tfevents.*", "best", "checkpoints", "complete")


class Aside:
    """The files of a run folder that lie aside; only the process that holds the journal may call this."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._moving, self._kept, self._gone = (folder / f"aside{state}" for state in (".part", "", ".gone"))

    @staticmethod
    def has(path: Path) -> bool:
        """Whether a file lies aside."""
        return path.parent.name in ("aside.part", "aside", "aside.gone")

    def put(self) -> None:
        """Put aside what the run had; what a replay that was killed left is removed."""
        if self._gone.exists():
            shutil.rmtree(self._gone)
        if self._kept.exists():
            self._remove_replayed()
            return
        self._moving.mkdir(exist_ok=True)
        for path in self._rewritten():
            path.rename(self._moving / path.name)
        self._moving.rename(self._kept)

    def drop(self) -> None:
        """The replay has passed: what it wrote takes the place of what lay aside."""
        if self._kept.exists():
            self._kept.rename(self._gone)
            shutil.rmtree(self._gone)

    def put_back(self) -> None:
        """The replay has failed: remove what it wrote and put back what the run had."""
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
