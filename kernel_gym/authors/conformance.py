"""Tests that a class keeps the author contract; inherit them in the test of a new author.

    from kernel_gym.authors.conformance import AuthorContract


    class TestMyAuthor(AuthorContract):
        def make(self) -> Author:
            return MyAuthor()

Run them with pytest. They ask for kernels with and without a context and compile nothing.
"""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from kernel_gym import suites
from kernel_gym.authors.contract import Author, Batching, Context, Note, StartPoint, WriteRequest
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
    """What every author must do. Inherit and override `make`; override `task` if the author cannot write relu."""

    #: The id of the task that kernels are asked for.
    task = "level1/relu"

    @abstractmethod
    def make(self) -> Author:
        """Make the author to test.

        Returns:
            A new author, equal to those of earlier calls.
        """

    def _task(self) -> Task:
        return suites.find_task(self.task)

    def test_is_an_author(self) -> None:
        """The author has a language, a `write` method and the same identity each time it is made."""
        author = self.make()
        assert isinstance(author, Author)
        assert author.language
        assert author.identity() == self.make().identity()

    def test_writes_its_language(self) -> None:
        """`write` returns a kernel in the author's language, with and without a context."""
        author = self.make()
        for context in ((), _NOTES):
            kernel = author.write(self._task(), context, None, np.random.default_rng(0))
            assert isinstance(kernel, Kernel)
            assert kernel.language == author.language

    def test_refines(self) -> None:
        """`write` accepts a start point, with and without children."""
        author = self.make()
        draft = author.write(self._task(), (), None, np.random.default_rng(0))
        for children in ((), ("cores=48; 2.00x as fast as the start point",)):
            start = StartPoint(draft, Feasible("Correct.", latency=10.0), children)
            assert isinstance(author.write(self._task(), _NOTES, start, np.random.default_rng(1)), Kernel)

    def test_mends(self) -> None:
        """`write` accepts a start point that failed, as the option `repair` of the environment offers it."""
        author = self.make()
        draft = author.write(self._task(), (), None, np.random.default_rng(0))
        start = StartPoint(draft, Uncompilable("line 1: no kernel_launch", line=1))
        assert isinstance(author.write(self._task(), _NOTES, start, np.random.default_rng(1)), Kernel)

    def test_same_seed_same_kernel(self) -> None:
        """The same random generator gives the same kernel."""
        first = self.make().write(self._task(), _NOTES, None, np.random.default_rng(7))
        again = self.make().write(self._task(), _NOTES, None, np.random.default_rng(7))
        assert first.source == again.source

    def test_many_are_the_same_as_one_after_the_other(self) -> None:
        """`write_many`, if the author has it, returns what repeated `write` returns."""
        author = self.make()
        if not isinstance(author, Batching):
            return
        requests = [WriteRequest(self._task(), context, None, np.random.default_rng(5)) for context in ((), _NOTES)]
        together = author.write_many(requests)
        alone = [
            self.make().write(request.task, request.context, request.start, np.random.default_rng(5))
            for request in requests
        ]
        assert [kernel.source for kernel in together] == [kernel.source for kernel in alone]
        assert author.write_many([]) == []
