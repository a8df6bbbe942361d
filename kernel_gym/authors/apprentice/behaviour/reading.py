"""Reads a note: finds what it shows of each idiom."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, idioms
from kernel_gym.authors.contract import Note


@dataclass(frozen=True)
class Sight:
    """What one note shows of one idiom.

    `right` and `wrong` say which spellings appear. `pointed`: a message of a failure points at the idiom. `taught`:
    the note is an API page about it. `commented`: a comment stands beside the right spelling.
    """

    right: bool = False
    wrong: bool = False
    pointed: bool = False
    taught: bool = False
    commented: bool = False


@dataclass(frozen=True)
class Reading:
    """A note as the apprentice reads it: what the verdict says of its code, and what it shows of each idiom."""

    kind: str
    length: int
    feasible: bool
    compiled: bool
    judged: bool
    sights: dict[str, Sight]


def read_note(note: Note, language: str = "ascendc") -> Reading:
    """Return what a note shows of a language's idioms; cached by its text."""
    verdict = note.verdict
    feedback = verdict.feedback if verdict else ""
    state = (bool(verdict and verdict.feasible), bool(verdict and verdict.compiled), verdict is not None)
    return _read(language, note.kind, note.text, note.code, feedback, *state)


@lru_cache(maxsize=16384)
def _read(
    language: str, kind: str, text: str, code: str, feedback: str, feasible: bool, compiled: bool, judged: bool
) -> Reading:
    prose = text.replace(code, " ") if code else text
    remarks = f"{prose}\n{feedback}"
    failed = judged and not feasible
    sights = {}
    for idiom in idioms(language).values():
        sight = _sight(idiom, kind, text, code, remarks, failed)
        if sight is not None:
            sights[idiom.id] = sight
    return Reading(kind, max(len(text), len(code)), feasible, compiled, judged, sights)


def _sight(idiom: Idiom, kind: str, text: str, code: str, remarks: str, failed: bool) -> Sight | None:
    source = code or text
    right = idiom.right.pattern.search(source) if idiom.right.pattern else None
    wrong = any(shows(spelling.pattern, source) for spelling in idiom.wrong)
    wrong = wrong or (right is None and bool(code) and _left_out(idiom, code))
    pointed = failed and shows(idiom.symptom_pattern, remarks)
    taught = kind == "api" and shows(idiom.teaching_pattern, text[:400])
    if not (right or wrong or pointed or taught):
        return None
    return Sight(right is not None, wrong, pointed, taught, right is not None and _commented(source, right.start()))


@lru_cache(maxsize=65536)  # the same start points and notes are read many times
def shows(pattern: re.Pattern[str] | None, text: str) -> bool:
    """Return whether the pattern occurs in a text."""
    return pattern is not None and pattern.search(text) is not None


def _left_out(idiom: Idiom, code: str) -> bool:
    """Return whether code needs the idiom and lacks it."""
    return any(spelling.when and re.search(spelling.when, code) for spelling in idiom.wrong)


def _commented(source: str, position: int) -> bool:
    """Return whether the line, or the one before it, has a comment."""
    start = source.rfind("\n", 0, max(0, source.rfind("\n", 0, position)))
    end = source.find("\n", position)
    return "//" in source[start + 1 : end if end >= 0 else None]
