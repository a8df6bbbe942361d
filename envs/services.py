"""What all attempts share: the bank, the author, the verifier, the curriculum and the run's seed.

A `Services` is made from `Options`. The environment has one `Episode` in it, the vector form a row of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs import factories
from kernel_gym.envs.concurrent_calls import side_by_side
from kernel_gym.envs.curriculum import Curriculum
from kernel_gym.envs.observation import Layout, Vector, project
from kernel_gym.envs.options import Options
from kernel_gym.envs.prompt_context import describe
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Uncompilable, Unjudged, Verdict

#: How often a kernel is tried again that the infrastructure kept from being judged.
RETRIES = 2

VerifyAll = Callable[[Sequence[tuple[Kernel, Task]]], Sequence[Verdict]]


class Verifying(Protocol):
    """Who judges. Raises InfrastructureError, or answers Unjudged, when it could not."""

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """The verdict on a kernel."""


@dataclass(frozen=True)
class GenerationRequest:
    """What the author is asked for: a kernel for `task`, shown `context`, refining `start` if there is one.

    `number` counts the run's attempts at the task; with the seed it decides everything random.
    """

    task: Task
    number: int
    context: Context
    start: StartPoint | None


@dataclass(frozen=True)
class GenerationResult:
    """The kernel that came of a commission and its verdict; `Unjudged` if the infrastructure failed."""

    kernel: Kernel
    verdict: Verdict


class Services:
    """The parts that the options name, and the run's state: seed, bank, curriculum, attempts made at each task."""

    def __init__(self, options: Options) -> None:
        self.options = options
        self.layout = Layout(options.slots)
        self.curriculum = Curriculum(factories.tasks(options), options.curriculum)
        self.author = factories.author(options)
        self.bank = factories.bank(options, self.author.language)
        self.device = factories.device_name(options)
        self.seed = 0
        self.attempts: Counter[str] = Counter()
        self._verifier = options.verifier
        self._origin = self.bank.snapshot()
        self._operators: dict[str, frozenset[str]] = {}
        self._embeddings: dict[str, Vector] = {}

    def begin(self, seed: int) -> None:
        """Take up a run seed: no attempt made yet, the curriculum at its beginning; the bank stays as it is."""
        self.seed = seed
        self.attempts.clear()
        self.curriculum.restart(seed)

    def restart(self, seed: int) -> None:
        """Everything as constructed, under a run seed; the bank too, whoever else has added to it."""
        self.begin(seed)
        self.bank.restore(self._origin)

    def next_task(self, name: str | None = None) -> Task:
        """The curriculum's next task, or the one that is asked for by name."""
        return self.curriculum.next() if name is None else self.curriculum.named(name)

    def operators(self, task: Task) -> frozenset[str]:
        """The ATen operators of a task."""
        if task.id not in self._operators:
            self._operators[task.id] = frozenset((self.options.operators or factories.exported_operators)(task))
        return self._operators[task.id]

    def embedding(self, task: Task) -> Vector:
        """The task's text as the observation shows it."""
        if task.id not in self._embeddings:
            self._embeddings[task.id] = project(self.bank.embedder.embed([describe(task)])[0])
        return self._embeddings[task.id]

    def generate_and_verify(self, commissions: Sequence[GenerationRequest]) -> list[GenerationResult]:
        """Have kernels written and judged, all of them side by side; retry what the infrastructure failed."""
        done = self._once(commissions)
        for _ in range(RETRIES):
            failed = [i for i, work in enumerate(done) if isinstance(work.verdict, Unjudged)]
            for i, work in zip(failed, self._once([commissions[i] for i in failed]), strict=True):
                done[i] = work
        return done

    def _once(self, commissions: Sequence[GenerationRequest]) -> list[GenerationResult]:
        writers = self.options.writers or getattr(self.author, "writers", 1)
        return self._judge(commissions, side_by_side(self._write, commissions, writers))

    def _write(self, commission: GenerationRequest) -> Kernel | Unjudged:
        rng = generator(self.seed, commission.task.id, commission.number)
        try:
            return self.author.write(commission.task, commission.context, commission.start, rng)
        except InfrastructureError as error:
            return Unjudged(f"the author could not be reached: {error}")

    def _judge(
        self, commissions: Sequence[GenerationRequest], written: Sequence[Kernel | Unjudged]
    ) -> list[GenerationResult]:
        """Judge what was written. An empty answer doesn't compile, and the verifier isn't troubled with it."""
        pending = {
            i: (kernel, commissions[i].task)
            for i, kernel in enumerate(written)
            if isinstance(kernel, Kernel) and kernel.source.strip()
        }
        verdicts = dict(zip(pending, self._verify(list(pending.values())), strict=True))
        return [self._work(kernel, verdicts.get(i)) for i, kernel in enumerate(written)]

    def _work(self, written: Kernel | Unjudged, verdict: Verdict | None) -> GenerationResult:
        if isinstance(written, Unjudged):
            return GenerationResult(Kernel("", self.author.language), written)
        return GenerationResult(
            written, verdict or Uncompilable("the author gave no answer: there is no source to compile")
        )

    def _verify(self, pairs: Sequence[tuple[Kernel, Task]]) -> Sequence[Verdict]:
        judge = self.verifier
        if len(pairs) > 1 and hasattr(judge, "verify_all"):
            return _verdicts(judge.verify_all, pairs)
        return [_verdict(judge, kernel, task) for kernel, task in pairs]

    @property
    def verifier(self) -> Verifying:
        """Who judges; the default one is made when the first kernel needs it."""
        if self._verifier is None:
            self._verifier = factories.verifier(self.options)
        return self._verifier

    def __getstate__(self) -> dict[str, Any]:
        # A verifier of our own making has threads and processes; a copy makes itself another one.
        return self.__dict__ | {"_verifier": self.options.verifier}

    def close(self) -> None:
        """Close what the workshop made itself; parts that were given as objects stay open."""
        if self.options.verifier is None and self._verifier is not None:
            self._verifier.close()  # type: ignore[attr-defined]
            self._verifier = None
        if not isinstance(self.options.bank, MemoryBank):
            self.bank.close()


def _verdicts(verify_all: VerifyAll, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
    try:
        return list(verify_all(pairs))
    except InfrastructureError as error:
        return [Unjudged(str(error)) for _ in pairs]


def _verdict(judge: Verifying, kernel: Kernel, task: Task) -> Verdict:
    try:
        return judge.verify(kernel, task)
    except InfrastructureError as error:
        return Unjudged(str(error))
