"""An author that is a program, on the nodes of a Ray cluster.

What an author writes depends on its arguments and their generator alone, so it writes the same anywhere: a run is the
one that a single machine makes. Actors hold no core: in lock-step, authors write while devices wait. Kernels of an
actor that is lost are written here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from kernel_gym.authors.contract import Author, Context, StartPoint, WriteRequest
from kernel_gym.errors import InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster_address import connect
from kernel_gym.tasks.task import Task


class Writer:
    """The actor: an author.

    Args:
        author: The author.
    """

    def __init__(self, author: Author) -> None:
        self._author = author

    def write(self, requests: Sequence[WriteRequest]) -> list[Kernel]:
        """Write a kernel for each request."""
        return [self._author.write(ask.task, ask.context, ask.start, ask.rng) for ask in requests]


class ClusterAuthor:
    """Lets actors of a cluster write the kernels of an iteration; one kernel alone is written here.

    Args:
        author: The author, which is sent to the actors.
        address: Address of the cluster.
        writers: Actors; 0 for one a core of the cluster.
    """

    def __init__(self, author: Author, address: str, writers: int = 0) -> None:
        self.language = author.language
        self._author, self._address, self._writers = author, address, writers
        self._ray: Any = None
        self._actors: list[Any] = []

    def identity(self) -> str:
        """Return the identity of the author."""
        return self._author.identity()

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Write one kernel, on this machine; see `Author.write`."""
        return self._author.write(task, context, start, rng)

    def write_many(self, requests: Sequence[WriteRequest]) -> list[Kernel]:
        """Write a kernel for each request, on all nodes; see `Batching.write_many`."""
        actors = self._started()
        parts = [requests[i :: len(actors)] for i in range(len(actors))]
        answers = [actor.write.remote(part) if part else None for actor, part in zip(actors, parts, strict=True)]
        kernels: list[Kernel] = [Kernel("", self.language)] * len(requests)
        for i, (answer, part) in enumerate(zip(answers, parts, strict=True)):
            if answer is not None:
                kernels[i :: len(actors)] = self._taken(answer, i, part)
        return kernels

    def close(self) -> None:
        """End the actors."""
        for actor in self._actors:
            self._ray.kill(actor)
        self._actors = []

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"_ray": None, "_actors": []}

    def _started(self) -> list[Any]:
        if not self._actors:
            self._ray = connect(self._address)
            count = self._writers or max(1, int(self._ray.cluster_resources().get("CPU", 1)))
            self._actors = [self._start() for _ in range(count)]
        return self._actors

    def _start(self) -> Any:
        return self._ray.remote(Writer).options(num_cpus=0, scheduling_strategy="SPREAD").remote(self._author)

    def _taken(self, answer: Any, place: int, requests: Sequence[WriteRequest]) -> list[Kernel]:
        """Return what an actor has written; if it was lost, write it here and start another actor."""
        errors = self._ray.exceptions
        try:
            kernels: list[Kernel] = self._ray.get(answer)
            return kernels
        except errors.RayTaskError as error:
            if isinstance(error.cause, InfrastructureError):
                raise error.cause from None
            raise
        except errors.RayError:
            self._actors[place] = self._start()
            return Writer(self._author).write(requests)
