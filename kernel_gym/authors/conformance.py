"""The contract of authors as tests that a plug-in author inherits.

    class TestMyAuthor(AuthorContract):
        def make(self) -> Generator:
            return MyAuthor()

Run with pytest. Nothing is compiled: an author is asked for kernels with and without a context.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kernel_gym import suites
from kernel_gym.authors.contract import Author, Context, Note, StartPoint
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Uncompilable

_NOTES: Context = (
    Note("api", "Adds(dst, src, scalar, count): adds a number to a tensor."),
    Note("practice", "Double buffering: give every queue two buffers."),
    Note(
        "trace", "// failed\nvoid f() {}", code="void f() {}", verdict=Uncompilable("line 1: no kernel_launch", line=1)
    ),
    Note("experience", "What worked: DataCopyPad for the tail."),
)


class AuthorContract:
    """What every author must do; inherit and say how yours is made."""

    task = "level1/relu"

    @abstractmethod
    def make(self) -> Author:
        """A new author."""

    def _task(self) -> Task:
        return suites.find_task(self.task)

    def test_is_a_generator(self) -> None:
        """It has a language, an identity and `write`."""
        author = self.make()
        assert isinstance(author, Author)
        assert author.language
        assert author.identity() == self.make().identity()

    def test_writes_its_language(self) -> None:
        """The answer is a Kernel in the author's language, with or without a context."""
        author = self.make()
        for context in ((), _NOTES):
            kernel = author.write(self._task(), context, None, np.random.default_rng(0))
            assert isinstance(kernel, Kernel)
            assert kernel.language == author.language

    def test_refines(self) -> None:
        """A start point is accepted, with and without children."""
        author = self.make()
        draft = author.write(self._task(), (), None, np.random.default_rng(0))
        for children in ((), ("cores=48; 2.00x as fast as the start point",)):
            start = StartPoint(draft, Feasible("Correct.", latency=10.0), children)
            assert isinstance(author.write(self._task(), _NOTES, start, np.random.default_rng(1)), Kernel)

    def test_same_seed_same_kernel(self) -> None:
        """All randomness comes from the generator that is passed in."""
        first = self.make().write(self._task(), _NOTES, None, np.random.default_rng(7))
        again = self.make().write(self._task(), _NOTES, None, np.random.default_rng(7))
        assert first.source == again.source
