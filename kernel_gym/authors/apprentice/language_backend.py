"""What an author has to know to write one language: its idioms, its moves, and how a plan becomes text."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_gym.authors.apprentice.ascendc import kernel_file, schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idioms, idioms
from kernel_gym.authors.apprentice.behaviour.moves import WAYS as ASCENDC_WAYS
from kernel_gym.authors.apprentice.behaviour.moves import Ways
from kernel_gym.authors.apprentice.behaviour.spelling_choice import Voice
from kernel_gym.authors.apprentice.cuda import kernel_file as cuda_file
from kernel_gym.authors.apprentice.cuda import moves as cuda_moves
from kernel_gym.authors.apprentice.cuda import schedule as cuda_schedule
from kernel_gym.authors.apprentice.frontend.plan import Plan
from kernel_gym.errors import ConfigError


@dataclass(frozen=True)
class Craft:
    """One language: `write` puts a plan into text, `ways` are its schedules and the moves between them."""

    language: str
    ways: Ways
    best: Any
    naive: Any
    write: Callable[[Plan, Any, Voice], str]

    @property
    def idioms(self) -> Idioms:
        """The language's idioms."""
        return idioms(self.language)


CRAFTS = {
    "ascendc": Craft("ascendc", ASCENDC_WAYS, schedule.BEST, schedule.NAIVE, kernel_file.write_kernel),
    "cuda": Craft("cuda", cuda_moves.WAYS, cuda_schedule.BEST, cuda_schedule.NAIVE, cuda_file.write_kernel),
}


def craft(language: str) -> Craft:
    """The craft of a language."""
    if language not in CRAFTS:
        raise ConfigError(f"the apprentice writes {' and '.join(CRAFTS)}, not {language!r}: choose another author")
    return CRAFTS[language]
