"""The folder of this machine for files that can be computed again."""

from __future__ import annotations

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return `$XDG_CACHE_HOME/kernel_gym`, or `~/.cache/kernel_gym` if the variable is unset or empty."""
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "kernel_gym"


def write_whole(file: Path, text: str) -> None:
    """Write a file so that other processes see either all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    draft.write_text(text)
    draft.replace(file)
