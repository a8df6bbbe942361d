"""The Generator contract: a task and a context in, a kernel out.

An author sees text, never the bank: the environment turns the picked memories into `Note`s. That keeps the learned part
(what is shown) and the frozen part (who writes) apart.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict

NoteKind = Literal["trace", "experience", "practice", "api"]


@dataclass(frozen=True)
class Note:
    """One memory as the author sees it.

    `text` is all there is to read: prose, an API page, or a kernel's source with its verdict. `code` is the part of it
    that is kernel source; `verdict` what the verifier said about that code. `same_task` marks the author's own earlier
    attempts.
    """

    kind: NoteKind
    text: str
    code: str = ""
    verdict: Verdict | None = None
    same_task: bool = False


@dataclass(frozen=True)
class StartPoint:
    """The feasible kernel that a refining attempt begins from, its verdict with the profile, what its children gave.

    `children` holds one line for each earlier attempt from this start point: what was changed and what came of it.
    """

    kernel: Kernel
    verdict: Verdict
    children: tuple[str, ...] = ()


Context = tuple[Note, ...]


@runtime_checkable
class Author(Protocol):
    """Writes kernels of one language. `identity` names everything its output depends on besides its arguments."""

    language: str

    def identity(self) -> str:
        """A string that changes whenever `write` could answer differently."""

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Draft a kernel, or refine `start`. An author that has no answer returns a Kernel with empty source."""


@runtime_checkable
class Recording(Protocol):
    """What an author that costs money adds: a transcript that answers what was asked before, and what it used."""

    def record_to(self, path: Path) -> None:
        """Keep the transcript at `path`, and answer from what is there already."""

    def usage(self) -> dict[str, float]:
        """`tokens_in`, `tokens_out`, `dollars` so far."""
