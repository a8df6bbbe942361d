"""A kernel: one self-contained source file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Kernel:
    """Source text of a kernel and its language.

    Args:
        source: The text of one self-contained file. Halves of characters, which JSON can hold and no file can
            (`"\\ud800"`), become question marks.
        language: Language of the text: `ascendc` or `cuda`.
        trusted: True only for kernels that this package wrote (the apprentice, the oracles). Others, written by a model
            or a person, do not run below sandbox tier B.
    """

    source: str
    language: str = "ascendc"
    trusted: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "source", self.source.encode(errors="replace").decode())

    @cached_property
    def digest(self) -> str:
        """Content address: kernels with the same text in the same language have the same digest."""
        return hashlib.sha256(f"{self.language}\0{self.source}".encode()).hexdigest()
