"""The spellings of one kernel: one for each idiom, chosen when the idiom is first needed and kept to the end."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Idioms, Spelling

Choose = Callable[[Idiom], Spelling]


class SpellingChoice:
    """Spells idioms for the code writers. `chosen` holds the spellings by idiom, in the order of first use."""

    def __init__(self, idioms: Idioms, choose: Choose) -> None:
        self._idioms = idioms
        self._choose = choose
        self.chosen: dict[str, Spelling] = {}

    def spell(self, idiom: str, **fields: object) -> str:
        """Return the idiom's text in the chosen spelling, with its fields filled in."""
        return self.spelling(idiom).text.format_map(fields)

    def right(self, idiom: str) -> bool:
        """Return whether the right spelling was chosen for this idiom."""
        return self.spelling(idiom).right

    def spelling(self, idiom: str) -> Spelling:
        """Return the spelling of an idiom; choose it if this is the first use."""
        if idiom not in self.chosen:
            self.chosen[idiom] = self._choose(self._idioms[idiom])
        return self.chosen[idiom]


def always_right(idioms: Idioms) -> SpellingChoice:
    """Return the oracle's choice: the right spelling of every idiom."""
    return SpellingChoice(idioms, lambda idiom: idiom.right)
