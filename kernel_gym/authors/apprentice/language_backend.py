"""Language backends: the idioms, schedules and code writer of each language."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_gym.authors.apprentice.ascendc import kernel_file as ascendc_file
from kernel_gym.authors.apprentice.ascendc import moves as ascendc_moves
from kernel_gym.authors.apprentice.behaviour.idioms import Idioms, idioms
from kernel_gym.authors.apprentice.behaviour.moves import ScheduleSpace
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.cuda import kernel_file as cuda_file
from kernel_gym.authors.apprentice.cuda import moves as cuda_moves
from kernel_gym.authors.apprentice.frontend.plan import Plan
from kernel_gym.errors import ConfigError


@dataclass(frozen=True)
class LanguageBackend:
    """What the apprentice needs to write one language: its schedules, and `write`, which turns a plan into source."""

    language: str
    schedules: ScheduleSpace
    write: Callable[[Plan, Any, SpellingChoice], str]

    @property
    def idioms(self) -> Idioms:
        """The language's idioms."""
        return idioms(self.language)


BACKENDS = {
    "ascendc": LanguageBackend("ascendc", ascendc_moves.SCHEDULES, ascendc_file.write_kernel),
    "cuda": LanguageBackend("cuda", cuda_moves.SCHEDULES, cuda_file.write_kernel),
}


def backend(language: str) -> LanguageBackend:
    """Return the backend of a language; raise `ConfigError` if the apprentice does not write it."""
    if language not in BACKENDS:
        raise ConfigError(f"the apprentice writes {' and '.join(BACKENDS)}, not {language!r}: choose another author")
    return BACKENDS[language]
