"""A kernel: one self-contained source file."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Kernel:
    """Source text of a submission and the language it is written in.

    `trusted` is true only for kernels that our own code wrote (the apprentice, the oracles): they may run below
    sandbox tier B, a model's or a person's may not.
    """

    source: str
    language: str = "ascendc"
    trusted: bool = False

    @cached_property
    def digest(self) -> str:
        """Content address; two kernels with the same text in the same language are the same kernel."""
        return hashlib.sha256(f"{self.language}\0{self.source}".encode()).hexdigest()
