"""What the author reads in items, as arrays. Reading an item takes hundredths of a second, so it is kept on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.authors.apprentice.tabular.table_index import TableIndex
from kernel_gym.authors.contract import Note
from kernel_gym.disk_cache import cache_folder

Flags = NDArray[np.bool_]
_SIGHTS = ("right", "wrong", "pointed", "taught", "commented")


@dataclass(frozen=True)
class ItemReadings:
    """Arrays of what the author reads in each item; the last row is empty.

    Columns of the first five are idioms: whether the right or a wrong spelling shows, whether a message points at it,
    whether a page teaches it, whether a comment stands beside it. Columns of `shows` are moves. `lengths`, `judged`,
    `compiled` and `feasible` have no columns: the length of the text and what the verdict says.
    """

    right: Flags
    wrong: Flags
    pointed: Flags
    taught: Flags
    commented: Flags
    shows: Flags
    lengths: NDArray[np.int64]
    judged: Flags
    compiled: Flags
    feasible: Flags


def read_items(notes: Sequence[Note], index: TableIndex) -> ItemReadings:
    """Read all items, each given as a note, or load what was read before."""
    author = Apprentice(language=index.table.language).identity()
    key = hashlib.sha256(f"{author} {[idiom.id for idiom in index.idioms]}".encode())
    for note in notes:
        verdict = note.verdict and (note.verdict.outcome, note.verdict.feedback)
        key.update(repr((note.kind, note.text, note.code, verdict)).encode())
    file = cache_folder() / "readings" / f"{key.hexdigest()}.npz"
    if file.is_file():
        with np.load(file) as arrays:
            return ItemReadings(**{field.name: arrays[field.name] for field in fields(ItemReadings)})
    readings = _read(notes, index)
    _keep(file, readings)
    return readings


def _read(notes: Sequence[Note], index: TableIndex) -> ItemReadings:
    def nothing(columns: int) -> Flags:
        return np.zeros((len(notes) + 1, columns), np.bool_)

    idioms = len(index.idioms)
    readings = ItemReadings(
        right=nothing(idioms),
        wrong=nothing(idioms),
        pointed=nothing(idioms),
        taught=nothing(idioms),
        commented=nothing(idioms),
        shows=nothing(len(index.moves)),
        lengths=np.zeros(len(notes) + 1, np.int64),
        judged=np.array([*(note.verdict is not None for note in notes), False]),
        compiled=np.array([*(bool(note.verdict and note.verdict.compiled) for note in notes), False]),
        feasible=np.array([*(bool(note.verdict and note.verdict.feasible) for note in notes), False]),
    )
    for place, note in enumerate(notes):
        reading = read_note(note, index.table.language)
        readings.lengths[place] = reading.length
        for column, idiom in enumerate(index.idioms):
            if sight := reading.sights.get(idiom.id):
                for name in _SIGHTS:
                    getattr(readings, name)[place, column] = getattr(sight, name)
        if note.verdict is None or note.verdict.feasible:
            readings.shows[place] = [move.pattern.search(note.text) is not None for move in index.moves]
    return readings


def _keep(file: Path, readings: ItemReadings) -> None:
    """Write the file so that other processes see all of it or nothing."""
    file.parent.mkdir(parents=True, exist_ok=True)
    draft = file.with_suffix(f".{os.getpid()}.npz")
    arrays = {field.name: getattr(readings, field.name) for field in fields(readings)}
    np.savez_compressed(draft, allow_pickle=False, **arrays)
    draft.replace(file)
