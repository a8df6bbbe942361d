"""What all episodes share: bank, author, verifier, curriculum, the run's seed and its count of attempts.

`Services` is made from `Options`. The environment runs one `Episode` on it, the vector form one for each task of the
batch. Episodes use the services; the services know nothing of episodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from kernel_gym import activity
from kernel_gym.authors.contract import Batching, Closing, WriteRequest
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.envs import factories
from kernel_gym.envs.concurrent_calls import concurrent_calls
from kernel_gym.envs.curriculum import Curriculum
from kernel_gym.envs.observation import Layout, Vector, project
from kernel_gym.envs.options import Options
from kernel_gym.envs.prompt_context import GenerationRequest, describe
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Unjudged, Verdict
from kernel_gym.verifier.contract import KernelVerifier, VerifyAll

#: How often the author or the verifier is asked again after an infrastructure error. No other layer retries.
RETRIES = 2


@dataclass(frozen=True)
class GenerationResult:
    """The kernel that the author wrote for a request, and its verdict; `Unjudged` if the infrastructure failed."""

    kernel: Kernel
    verdict: Verdict


@dataclass
class _Job:
    """A request with its kernel and verdict, as far as they exist.

    `number` counts the run's attempts at the task, `draft` the kernels written for one of them. With the run seed they
    decide everything random.
    """

    request: GenerationRequest
    number: int
    kernel: Kernel | None = None
    draft: int = 0
    verdict: Verdict = field(default_factory=lambda: Unjudged("not judged yet"))

    @property
    def unjudged(self) -> bool:
        return isinstance(self.verdict, Unjudged)

    def accept(self, kernel: Kernel) -> None:
        """Take the author's kernel; one without source needs no verifier."""
        self.kernel = kernel
        if not kernel.source.strip():
            self.verdict = Uncompilable("the author gave no answer: there is no source to compile")


class Services:
    """The parts that the options name, and the run's state: seed, bank, curriculum, attempts at each task."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.layout = Layout(options.slots, version=options.layout)
        #: Attempts of the run by outcome.
        self.outcomes: Counter[str] = Counter()
        self.curriculum = Curriculum(factories.tasks(options), options.curriculum)
        self.author = factories.author_on_cluster(factories.author(options), options)
        if options.pages == "demonstration":
            demonstration(self.author.language)  # raises now if the language has none
        self.bank = factories.bank(options, self.author.language)
        self.judge = factories.judge_name(options)
        self.seed = 0
        self._attempts: Counter[str] = Counter()
        self._verifier = options.verifier
        self._origin = self.bank.snapshot()
        self._operators: dict[str, frozenset[str]] = {}
        self._embeddings: dict[str, Vector] = {}

    def begin(self, seed: int) -> None:
        """Set the run seed, the count of attempts to zero and the curriculum to its start; the bank stays as it is."""
        self.seed = seed
        self._attempts.clear()
        self.outcomes.clear()
        self.curriculum.restart(seed)

    def restart(self, seed: int) -> None:
        """Restore everything as constructed, the bank too unless other runs share it, and set the run seed."""
        self.begin(seed)
        if not self.bank.shared:
            self.bank.restore(self._origin)

    def next_task(self, name: str | None = None) -> Task:
        """Return the curriculum's next task, or the one with this name."""
        return self.curriculum.next() if name is None else self.curriculum.named(name)

    @property
    def language(self) -> str:
        """The language that the author writes."""
        return self.author.language

    def judged_here(self, item: MemoryItem) -> bool:
        """Return whether an item's verdict, if it has one, comes from this device, these options, sizes and policy."""
        verdict = item.verdict
        if verdict is None or not verdict.device or not self.judge:
            return True
        # Traces of earlier versions name the device alone.
        named = verdict.device if "(" in verdict.device else factories.judged_by(verdict.device, verdict.policy)
        return named == self.judge

    def judged(self, verdict: Verdict) -> Verdict:
        """Return a verdict as the bank keeps it: with the options of its device, the sizes and its policy."""
        return replace(verdict, device=self.judge) if verdict.device and self.judge else verdict

    def operators(self, task: Task) -> frozenset[str]:
        """Return the ATen operators of a task."""
        if task.id not in self._operators:
            self._operators[task.id] = frozenset((self.options.operators or factories.exported_operators)(task))
        return self._operators[task.id]

    def embedding(self, task: Task) -> Vector:
        """Return the embedding of the task's text, projected as the observation shows it."""
        if task.id not in self._embeddings:
            self._embeddings[task.id] = project(self.bank.embedder.embed([describe(task)])[0])
        return self._embeddings[task.id]

    def write_drafts(self, requests: Sequence[GenerationRequest]) -> list[list[Kernel]]:
        """Let the author write `drafts` kernels for each request; nothing is verified, and no attempt is counted.

        Args:
            requests: What the author is asked.

        Returns:
            The kernels for each request; fewer where the author could not be reached.
        """
        numbers, jobs = self._attempts.copy(), list[list[_Job]]()
        for request in requests:
            number = numbers[request.task.id]
            jobs.append([_Job(request, number, draft=draft) for draft in range(self.options.drafts)])
            numbers[request.task.id] += 1
        for _ in range(1 + RETRIES):
            self._write([job for some in jobs for job in some if job.kernel is None])
        return [[job.kernel for job in some if job.kernel is not None] for some in jobs]

    def generate_and_verify(
        self, requests: Sequence[GenerationRequest], drafts: Sequence[Kernel | None] = ()
    ) -> list[GenerationResult]:
        """Let the author write and the verifier judge a kernel for each request, in parallel as far as both allow.

        An infrastructure error is retried `RETRIES` times. A retry asks only for what is missing: the author is not
        asked again for a kernel that it has written. A request that stays unjudged does not count as an attempt.

        Args:
            requests: What the author is asked.
            drafts: Kernels that are written already, one for each request; None for one that is not.

        Returns:
            A kernel and its verdict for each request, in order.
        """
        jobs = [_Job(request, self._count(request.task)) for request in requests]
        for job, draft in zip(jobs, drafts, strict=False):
            if draft is not None:
                job.accept(draft)
        for _ in range(1 + RETRIES):
            self._write([job for job in jobs if job.kernel is None])
            self._verify([job for job in jobs if job.kernel is not None and job.unjudged])
        self._attempts.subtract(job.request.task.id for job in jobs if job.unjudged)
        return [GenerationResult(job.kernel or Kernel("", self.language), job.verdict) for job in jobs]

    def _count(self, task: Task) -> int:
        """Count an attempt at a task and return its number."""
        self._attempts[task.id] += 1
        return self._attempts[task.id] - 1

    def _write(self, jobs: Sequence[_Job]) -> None:
        if len(jobs) > 1 and isinstance(self.author, Batching):
            self._write_together(jobs, self.author)
        else:
            concurrent_calls(self._write_one, jobs, self.options.writers or getattr(self.author, "writers", 1))

    def _write_one(self, job: _Job) -> None:
        ask = self._asked(job)
        try:
            job.accept(self.author.write(ask.task, ask.context, ask.start, ask.rng))
        except InfrastructureError as error:
            job.verdict = Unjudged(f"the author could not be reached: {error}")

    def _write_together(self, jobs: Sequence[_Job], author: Batching) -> None:
        try:
            for job, kernel in zip(jobs, author.write_many([self._asked(job) for job in jobs]), strict=True):
                job.accept(kernel)
        except InfrastructureError as error:
            for job in jobs:
                job.verdict = Unjudged(f"the author could not be reached: {error}")

    def _asked(self, job: _Job) -> WriteRequest:
        """Return what the author is asked; the generator depends on the run seed, the task and the attempt alone."""
        request = job.request
        activity.attempt(request.task.id, job.number + 1, "writing")
        rng = generator(self.seed, request.task.id, job.number * self.options.drafts + job.draft)
        return WriteRequest(request.task, request.context, request.start, rng)

    def _verify(self, jobs: Sequence[_Job]) -> None:
        pairs = [(job.kernel, job.request.task) for job in jobs if job.kernel is not None]
        for job in jobs:
            activity.attempt(job.request.task.id, job.number + 1, "verifying")
        if pairs:
            for job, verdict in zip(jobs, _verdicts(self.verifier, pairs), strict=True):
                job.verdict = verdict

    @property
    def verifier(self) -> KernelVerifier:
        """The verifier; the default one is made when the first kernel needs it."""
        if self._verifier is None:
            self._verifier = factories.verifier(self.options)
        return self._verifier

    def __getstate__(self) -> dict[str, Any]:
        # The default verifier has threads and processes; a copy makes itself another one.
        return self.__dict__ | {"_verifier": self.options.verifier}

    def close(self) -> None:
        """Close the parts that were made here; parts that were given as objects stay open."""
        if self.options.verifier is None and self._verifier is not None:
            self._verifier.close()  # type: ignore[attr-defined]
            self._verifier = None
        if self.author is not self.options.author and isinstance(self.author, Closing):
            self.author.close()
        if not isinstance(self.options.bank, MemoryBank):
            self.bank.close()


def _verdicts(verifier: KernelVerifier, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
    verify_all: VerifyAll | None = getattr(verifier, "verify_all", None)
    if len(pairs) == 1 or verify_all is None:
        return [_verdict(verifier, kernel, task) for kernel, task in pairs]
    try:
        return list(verify_all(pairs))
    except InfrastructureError as error:
        return [Unjudged(str(error)) for _ in pairs]


def _verdict(verifier: KernelVerifier, kernel: Kernel, task: Task) -> Verdict:
    try:
        return verifier.verify(kernel, task)
    except InfrastructureError as error:
        return Unjudged(str(error))
