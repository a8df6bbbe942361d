"""An environment whose best policy is known: one useful memory among many. Learners are tested on it.

It is `KernelSynthesisEnv` with a scripted author and an arithmetic verifier. So a learner that solves it has used the
real spaces, masks, bank and attempt logic. It needs no compiler and no torch; thousands of attempts take seconds.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs.options import Options
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.envs.vector import KernelSynthesisVectorEnv
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict

#: What the useful memories say, by stage; only they help.
DRAFT_SECRET, REFINE_SECRET = "the queue needs its event", "double the buffer"
#: Latency of a first feasible kernel, and the factors of a refinement with and without the secret.
FIRST_US, FASTER, SLOWER = 1000.0, 0.9, 1.1


class ScriptedAuthor:
    """Drafts a feasible kernel if and only if the context holds the drafting secret; refines likewise."""

    language = "text"

    def identity(self) -> str:
        """Return a fixed name: kernels depend on the arguments alone."""
        return "scripted"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Return a kernel that states its own latency, or that it is wrong."""
        text = "\n".join(note.text for note in context)
        if start is None:
            return Kernel(f"latency {FIRST_US!r}" if DRAFT_SECRET in text else "wrong", self.language)
        factor = FASTER if REFINE_SECRET in text else SLOWER
        return Kernel(f"latency {(start.verdict.latency_us or FIRST_US) * factor!r}", self.language)


#: Landscapes of `LandscapeAuthor`: latencies over steps.
TRAP_US, PATH_US, VALLEY_US = 500.0, 900.0, (1000.0, 1100.0, 1200.0, 100.0)


class LandscapeAuthor:
    """Refines as a landscape has it, whatever it is shown; every draft is feasible.

    Args:
        landscape: `hill`: every refinement is 10% faster than its start point, so the fastest is the best start point.
            `trap`: the first refinement of a draft is a trap (500 us, from where everything is slower), the others
            are the beginning of a path (900 us, each further step is 30% faster), so the fastest is a bad start point.
            `valley`: 1000, 1100, 1200 and then 100 us, so only who goes on from slower kernels arrives.
    """

    language = "text"

    def __init__(self, landscape: str) -> None:
        self._step = {"hill": _hill, "trap": _trap, "valley": _valley}[landscape]
        self._landscape = landscape

    def identity(self) -> str:
        """Return a name: kernels depend on the landscape and the arguments alone."""
        return f"landscape-{self._landscape}"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Return a kernel that states its own latency and its place in the landscape."""
        if start is None:
            return Kernel(f"latency {FIRST_US!r} draft", self.language)
        _, latency, place = start.kernel.source.split(" ", 2)
        latency_us, place = self._step(float(latency), place, len(start.children))
        return Kernel(f"latency {latency_us!r} {place}", self.language)


def _hill(latency: float, place: str, tried: int) -> tuple[float, str]:
    return latency * FASTER, "hill"


def _trap(latency: float, place: str, tried: int) -> tuple[float, str]:
    # The words make kernels of the trap and of the path differ for agents that read sources.
    if place == "draft":
        return (PATH_US, "path EnQue EnQue DeQue DeQue SyncAll") if tried else (TRAP_US, "trap" + " InitBuffer" * 3)
    return (TRAP_US * SLOWER, place) if place.startswith("trap") else (latency * 0.7, place)


def _valley(latency: float, place: str, tried: int) -> tuple[float, str]:
    step = min(len(VALLEY_US) - 1, 1 + (0 if place == "draft" else int(place)))
    return VALLEY_US[step], str(step)


class ArithmeticJudge:
    """A verifier that returns the result that a scripted kernel states."""

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Return `Feasible` with the latency that the kernel states, else `Incorrect`."""
        word, *rest = kernel.source.split() or [""]
        if word != "latency":
            return Incorrect("the kernel computes something else")
        return Feasible("feasible", latency=float(rest[0]))


class HashEmbedder:
    """Embeds texts as unrelated unit vectors, so that similarity carries no information."""

    dimension = 32

    def identity(self) -> str:
        """Return a fixed name."""
        return "hash-32"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one row for each text."""
        return np.stack([self._row(text) for text in texts]) if texts else np.zeros((0, self.dimension), np.float32)

    def _row(self, text: str) -> NDArray[np.float32]:
        signs = np.unpackbits(np.frombuffer(hashlib.sha256(text.encode()).digest()[: self.dimension // 8], np.uint8))
        return (signs.astype(np.float32) * 2 - 1) / np.float32(np.sqrt(self.dimension))


class KnownOptimumEnv(KernelSynthesisEnv):
    """
    Find the one memory that helps.

    ## Description
    `KernelSynthesisEnv` with a scripted author. The bank holds `memories` practices and is frozen; one of them
    makes every draft feasible, another makes every refinement 10% faster, the others do nothing (a refinement
    without help is 10% slower). `secret` decides which ones. Pools hold all memories, in an order that
    differs from task to task and carries no information, so an agent must learn from outcomes.

    ## Rewards
    As in `KernelSynthesisEnv`. `optimum` is the best return of an episode: 1 in drafting alone, where it ends at
    once. An attempt without the useful memory pays -1, so a policy that picks at random loses about `K / N - 2` an
    episode.

    ## Arguments
    `memories` (default: as many as there are slots), `tasks_count`, `secret`, `landscape` and the options of
    `KernelSynthesisEnv`. With a `landscape` (`hill`, `trap` or `valley`) memories do not matter: the start points do,
    and `optimum` does not apply.

    ## Version History
    * v0: initial version
    """

    def __init__(self, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(render_mode, **known_options(**options))

    @property
    def optimum(self) -> float:
        """The return of the best policy."""
        return optimum(self.options)


class KnownOptimumVectorEnv(KernelSynthesisVectorEnv):
    """The vector form of `KnownOptimumEnv`: several tasks, one useful memory, one bank."""

    def __init__(self, num_envs: int = 1, render_mode: str | None = None, **options: Any) -> None:
        super().__init__(num_envs, render_mode, **known_options(**options))

    @property
    def optimum(self) -> float:
        """The return of the best policy, for one sub-environment."""
        return optimum(self.options)


def known_options(
    memories: int | None = None, tasks_count: int = 4, secret: int = 0, landscape: str = "", **options: Any
) -> dict[str, Any]:
    """Return the options of `KernelSynthesisEnv` that make it one with a known optimum."""
    defaults: dict[str, Any] = {
        "budget": 10,
        "picks": 2,
        "pool_factor": 6,
        "stages": "draft",
        "memory": "frozen",
    } | options
    return {
        "tasks": [Task(f"known/task-{i}", "math", f"task {i}", ()) for i in range(tasks_count)],
        "author": LandscapeAuthor(landscape) if landscape else ScriptedAuthor(),
        "verifier": ArithmeticJudge(),
        "bank": _bank(memories or defaults["picks"] * defaults["pool_factor"], secret),
        "operators": _no_operators,
    } | defaults


def optimum(options: Options) -> float:
    """Return the best return of an episode: the first draft is feasible, then every refinement is faster."""
    refined = 0 if options.stages == "draft" else options.budget - 1
    return 1.0 + refined * float(np.tanh(-np.log(FASTER)))


def _no_operators(task: Task) -> Sequence[str]:
    return ()


def _bank(memories: int, secret: int) -> MemoryBank:
    """Return a bank of practices that differ in their words alone."""
    first, second = np.random.default_rng(secret).permutation(memories)[:2] if memories > 1 else (0, 0)
    helps = {int(first): DRAFT_SECRET, int(second): REFINE_SECRET}
    bank = MemoryBank(None, HashEmbedder())
    bank.add(
        [
            MemoryItem(Kind.PRACTICE, f"advice {i}", f"Advice {i}: {helps.get(i, 'mind the gap')}.", language="text")
            for i in range(memories)
        ],
        attempt=False,
    )
    return bank
