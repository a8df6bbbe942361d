"""The contract of authors: a task and a context in, a kernel out.

An author sees text, never the memory bank: the environment turns the picked memories into notes. This separates the
learned part (which memories are shown) from the fixed part (who writes the kernel).

A minimal author:

    class Constant:
        language = "ascendc"

        def __init__(self, source: str) -> None:
            self.source = source

        def identity(self) -> str:
            return f"constant {Kernel(self.source).digest}"

        def write(self, task, context, start, rng) -> Kernel:
            return Kernel(self.source, self.language)

`kernel_gym.authors.conformance` tests whether a class keeps this contract.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol, runtime_checkable

import numpy as np

from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict

NoteKind = Literal["trace", "experience", "practice", "api"]
"""What kind of memory a note was."""


@dataclass(frozen=True)
class Note:
    """One memory as the author reads it.

    Args:
        kind: What the memory is: `trace` (a kernel with its verdict), `experience`, `practice` or `api` (an API page).
        text: Everything there is to read: prose, an API page, or a kernel's source with its verdict.
        code: The part of `text` that is kernel source; empty if there is none.
        verdict: What the verifier said about `code`; None if it was never verified.
        same_task: True for earlier attempts at the task at hand.

    Examples:
        >>> note = Note("practice", "Double buffering: give every queue two buffers.")
        >>> note.kind
        'practice'
    """

    kind: NoteKind
    text: str
    code: str = ""
    verdict: Verdict | None = None
    same_task: bool = False


@dataclass(frozen=True)
class StartPoint:
    """The kernel that an attempt begins from: a feasible one to refine or, with `repair`, a failed one to mend.

    Args:
        kernel: The kernel to refine or to mend.
        verdict: Its verdict; a feasible one has the profile of where the time goes.
        children: One line for each earlier attempt from this start point, with what was changed and what it gave, such
            as `cores=48; 2.00x as fast as the start point`.
    """

    kernel: Kernel
    verdict: Verdict
    children: tuple[str, ...] = ()


Context = tuple[Note, ...]
"""The notes that an author is shown in one attempt: the picked memories in the order of the picks, then API pages."""


@runtime_checkable
class Author(Protocol):
    """Writes kernels in one language.

    Any class with these members is an author. A package registers its authors under the entry-point group
    `kernel_gym.authors`; `module:Class` names one without registration.
    """

    #: The language of the kernels, such as `ascendc` or `cuda`. It must be one that the device runs.
    language: str

    def identity(self) -> str:
        """Return a string that names everything the output of `write` depends on besides its arguments.

        Returns:
            A string that changes whenever `write` could answer differently, for example with the model or the prompts.
        """

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Draft a kernel, refine `start`, or mend it if its verdict is not feasible.

        Args:
            task: The task to write a kernel for.
            context: The notes that the author is shown.
            start: The kernel to refine or to mend; None to draft a new one.
            rng: The source of all randomness: the same arguments and the same generator give the same kernel.

        Returns:
            A kernel in the author's language. An author that has no answer returns a kernel with an empty source.

        Raises:
            InfrastructureError: The author could not be reached; the environment may ask again.
        """


@dataclass(frozen=True)
class WriteRequest:
    """The arguments of one `write`, for authors that write several kernels at once.

    Args:
        task: The task to write a kernel for.
        context: The notes that the author is shown.
        start: The kernel to refine or to mend; None to draft a new one.
        rng: The source of all randomness of this kernel.
    """

    task: Task
    context: Context
    start: StartPoint | None
    rng: np.random.Generator


@runtime_checkable
class Batching(Protocol):
    """An author that writes several kernels at once faster than one after the other.

    An author may implement this in addition to `Author`. The vector environment then asks for all kernels of an
    iteration together.
    """

    def write_many(self, requests: Sequence[WriteRequest]) -> list[Kernel]:
        """Write a kernel for each request.

        Args:
            requests: The arguments of each `write`.

        Returns:
            What `write` returns for each request, in order. An author on a GPU may differ in the rounding of its
            arithmetic.

        Raises:
            InfrastructureError: The author could not be reached; the environment may ask again for all of them.
        """


@runtime_checkable
class Recording(Protocol):
    """An author that keeps a transcript of paid requests and counts what they cost.

    An author may implement this in addition to `Author`. A run then keeps the transcript in its run folder.
    """

    def record_to(self, path: Path) -> None:
        """Keep the transcript at `path`, and answer requests that it already holds from there.

        Args:
            path: The transcript file; it is created if it does not exist.
        """

    def usage(self) -> dict[str, float]:
        """Return what the requests so far have used.

        Returns:
            The totals by name: `tokens_in`, `tokens_out` and `dollars`.
        """


@runtime_checkable
class Checked(Protocol):
    """An author that can find out cheaply, before the work begins, whether its requests will be refused."""

    def check(self) -> None:
        """Try what all requests depend on, such as a key and the name of a model.

        Raises:
            ConfigError: If requests would be refused; in one line.
        """


@runtime_checkable
class Closing(Protocol):
    """An author that holds something to give back at the end, such as a server that it started."""

    def close(self) -> None:
        """Give it back; the author may be used again afterwards."""
