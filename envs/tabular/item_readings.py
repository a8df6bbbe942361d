"""What an author reads in items, as arrays. Reading takes hundredths of a second an item, so it is kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.behaviour.moves import Move
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.disk_cache import cache_folder
from kernel_gym.envs.prompt_context import note
from kernel_gym.memory.item import MemoryItem
from kernel_gym.tasks.task import Task

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class Readings:
    """One row an item and a row of nothing at the end. Columns are idioms: which spellings show, whether a message
    points at it, whether a page teaches it, whether a comment stands beside it. `shows`: columns are moves."""

    right: Flags
    wrong: Flags
    pointed: Flags
    taught: Flags
    commented: Flags
    shows: Flags
    lengths: NDArray[np.int64]


def readings(items: Sequence[MemoryItem], idioms: Sequence[Idiom], moves: Sequence[Move], language: str) -> Readings:
    """Read all items, or remember having done so."""
    key = hashlib.sha256(f"{Apprentice(language=language).identity()} {[idiom.id for idiom in idioms]}".encode())
    for item in items:
        said = item.verdict and (item.verdict.outcome, item.verdict.feedback)
        key.update(repr((item.kind, item.text, item.code, said)).encode())
    file = cache_folder() / "readings" / f"{key.hexdigest()}.npz"
    if file.is_file():
        with np.load(file) as known:
            return Readings(**{field.name: known[field.name] for field in fields(Readings)})
    made = _read(items, idioms, moves, language)
    _keep(file, made)
    return made


def _read(items: Sequence[MemoryItem], idioms: Sequence[Idiom], moves: Sequence[Move], language: str) -> Readings:
    def nothing() -> Flags:
        return np.zeros((len(items) + 1, len(idioms)), np.bool_)

    shows, lengths = np.zeros((len(items) + 1, len(moves)), np.bool_), np.zeros(len(items) + 1, np.int64)
    made = Readings(nothing(), nothing(), nothing(), nothing(), nothing(), shows, lengths)
    nobody = Task("", "", "", ())
    for place, item in enumerate(items):
        reading = read_note(note(item, nobody), language)
        made.lengths[place] = reading.length
        for column, idiom in enumerate(idioms):
            if sight := reading.sights.get(idiom.id):
                for name in ("right", "wrong", "pointed", "taught", "commented"):
                    getattr(made, name)[place, column] = getattr(sight, name)
        if item.verdict is None or item.verdict.feasible:
            made.shows[place] = [move.pattern.search(item.text) is not None for move in moves]
    return made


def _keep(file: Path, made: Readings) -> None:
    """Other processes see all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.npz")
    np.savez_compressed(draft, allow_pickle=False, **{field.name: getattr(made, field.name) for field in fields(made)})
    draft.replace(file)
