"""Honest kernels in many styles: those of the folder `honest` with every change, and with every pair of changes."""

from collections.abc import Iterator
from itertools import combinations
from pathlib import Path

from kernel_gym.verifier.attacks.variants import CHANGES

SOURCES = {path.stem: path.read_text() for path in sorted((Path(__file__).parent / "honest").glob("*.cpp"))}


def variants() -> Iterator[tuple[str, str, str]]:
    """Name, the kernel it was made of, and text."""
    for name, text in SOURCES.items():
        yield name, name, text
        for change in CHANGES:
            yield f"{name}-{change.__name__}", name, change(text)
        for first, second in combinations(CHANGES, 2):
            yield f"{name}-{first.__name__}-{second.__name__}", name, second(first(text))
