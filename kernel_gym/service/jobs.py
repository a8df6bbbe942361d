"""The jobs of the service: a bounded queue in front of a verifier.

A job is addressed by what it judges, so a request that is sent again meets its own job. The verdict is in the
verifier's cache before the job is done: a job that is forgotten costs a second look into the cache, not a second
verification.
"""

from __future__ import annotations

import hashlib
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Lock

from kernel_gym.errors import KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged, Verdict
from kernel_gym.verifier import Verifier

#: Jobs that are remembered after they are done.
REMEMBERED = 10_000


class Overloaded(KernelGymError):
    """The queue, or the share of one client, is full.

    Args:
        message: One line that says what is full.
        client: Whether it is the client's own share.
    """

    def __init__(self, message: str, client: bool) -> None:
        super().__init__(message)
        self.client = client


@dataclass
class Job:
    """A kernel that is judged, was judged or waits for it.

    Args:
        id: Hash of the kernel, the task and whether the kernel is trusted.
        client: Who asked first.
        future: The verdict to come.
        begun: The verifier's own future; None until it has taken the kernel.
    """

    id: str
    client: str
    future: Future[Verdict] = field(default_factory=Future)
    begun: Future[Verdict] | None = None

    @property
    def running(self) -> bool:
        return self.begun is not None and self.begun.running()

    def begin(self, begun: Future[Verdict]) -> None:
        """Take the verifier's answer when it comes."""
        self.begun = begun
        begun.add_done_callback(self._end)

    def _end(self, begun: Future[Verdict]) -> None:
        if begun.cancelled():
            self.future.cancel()
        elif (error := begun.exception()) is not None:
            self.future.set_exception(error)
        else:
            self.future.set_result(begun.result())

    @property
    def unfinished(self) -> bool:
        return not self.future.done()

    @property
    def failed(self) -> bool:
        """Whether the job ended without a verdict on the kernel, so that it is begun anew when it is asked for."""
        if self.unfinished:
            return False
        if self.future.cancelled() or self.future.exception() is not None:
            return True
        return isinstance(self.future.result(), Unjudged)


class Jobs:
    """Judges kernels in the order of their requests, with a limit on those that wait.

    Args:
        verifier: Judges the kernels.
        capacity: Jobs that may be unfinished at the same time.
        share: Unfinished jobs that one client may have.
        done: Called with the verdict and the seconds since the request when a job is done.
    """

    def __init__(self, verifier: Verifier, capacity: int, share: int, done: Callable[[Verdict, float], None]) -> None:
        self.verifier, self.capacity, self.share = verifier, capacity, share
        self._done = done
        self._jobs: OrderedDict[str, Job] = OrderedDict()
        self._places = Counter[str]()
        self._lock = Lock()

    def submit(self, kernel: Kernel, task: Task, client: str) -> Job:
        """Return the job that judges this kernel, begun now unless there is one.

        Raises:
            Overloaded: Too many jobs are unfinished.
            KernelGymError: The verifier does not accept the kernel or the task.
        """
        id = hashlib.sha256(f"{task.digest} {kernel.digest} {kernel.trusted}".encode()).hexdigest()[:32]
        began = time.monotonic()
        with self._lock:
            job = self._jobs.get(id)
            if job is not None and not job.failed:
                return job
            self._admit(client)
            job = self._jobs[id] = Job(id, client)
            self._jobs.move_to_end(id)
            self._forget()
        job.future.add_done_callback(lambda future: self._report(future, time.monotonic() - began))
        try:  # without the lock: the verifier may look at the task, whose code may be slow
            job.begin(self.verifier.submit(kernel, task))
        except BaseException as error:
            job.future.set_exception(error)
            raise
        return job

    @contextmanager
    def place(self, client: str) -> Iterator[None]:
        """Hold a place in the queue for a request whose task is not known yet.

        Raises:
            Overloaded: Too many jobs are unfinished.
        """
        with self._lock:
            self._admit(client)
            self._places[client] += 1
        try:
            yield
        finally:
            with self._lock:
                self._places[client] -= 1
                self._places += Counter()  # drops clients without a place

    def find(self, id: str) -> Job | None:
        """Return the job with this id; None if there is none any more."""
        with self._lock:
            return self._jobs.get(id)

    def unfinished(self) -> int:
        """Return the number of jobs that wait or run."""
        with self._lock:
            return sum(job.unfinished for job in self._jobs.values())

    def _admit(self, client: str) -> None:
        waiting = self._places + Counter(job.client for job in self._jobs.values() if job.unfinished)
        if waiting.total() >= self.capacity:
            raise Overloaded(f"the queue is full: {waiting.total()} kernels wait", client=False)
        if waiting[client] >= self.share:
            raise Overloaded(f"this client has {self.share} kernels in the queue already", client=True)

    def _forget(self) -> None:
        """Drop the oldest finished jobs beyond those that are remembered."""
        excess = len(self._jobs) - REMEMBERED
        for id in [id for id, job in self._jobs.items() if not job.unfinished][: max(0, excess)]:
            del self._jobs[id]

    def _report(self, future: Future[Verdict], seconds: float) -> None:
        try:
            self._done(future.result(), seconds)
        except (CancelledError, KernelGymError):  # the service is closing
            return
