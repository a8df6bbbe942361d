"""How an author puts things: for each idiom one spelling, chosen when it is first needed and kept for the kernel."""

from __future__ import annotations

from collections.abc import Callable

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Idioms, Spelling

Choose = Callable[[Idiom], Spelling]


class Voice:
    """Spells idioms. `spoken` holds what was chosen, in the order of need."""

    def __init__(self, idioms: Idioms, choose: Choose) -> None:
        self._idioms = idioms
        self._choose = choose
        self.spoken: dict[str, Spelling] = {}

    def say(self, idiom: str, **fields: object) -> str:
        """The idiom's text with its fields filled in."""
        return self.spelling(idiom).text.format_map(fields)

    def right(self, idiom: str) -> bool:
        """True if the author has this idiom right."""
        return self.spelling(idiom).right

    def spelling(self, idiom: str) -> Spelling:
        """The spelling chosen for an idiom."""
        if idiom not in self.spoken:
            self.spoken[idiom] = self._choose(self._idioms[idiom])
        return self.spoken[idiom]


def fluent(idioms: Idioms) -> Voice:
    """A voice that has everything right: the oracle's."""
    return Voice(idioms, lambda idiom: idiom.right)
