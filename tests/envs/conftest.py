"""Stand-ins for who writes and who judges, so that the environment's own logic can be tested to the letter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kernel_gym  # noqa: F401
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs.known_optimum import ArithmeticJudge, HashEmbedder
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.errors import InfrastructureError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Kind, MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Profile, Verdict


class ListedAuthor:
    """Answers with the listed sources, one after the other; remembers what it was shown."""

    language = "text"

    def __init__(self, *answers: str) -> None:
        self.answers = list(answers)
        self.asked: list[tuple[Task, Context, StartPoint | None, float]] = []

    def identity(self) -> str:
        return "listed"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        self.asked.append((task, context, start, float(rng.random())))
        answer = self.answers[(len(self.asked) - 1) % len(self.answers)]
        return Kernel(answer, self.language)


class LuckyAuthor:
    """Feasible or not, fast or slow, as its generator has it; reads nothing."""

    language = "text"

    def identity(self) -> str:
        return "lucky"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        if rng.random() < 0.5:
            return Kernel(["wrong", ""][int(rng.integers(2))], self.language)
        return Kernel(f"latency {float(rng.uniform(1, 100))!r}", self.language)


class FailingJudge(ArithmeticJudge):
    """Fails `failures` times before it judges; counts how often it was asked."""

    def __init__(self, failures: int) -> None:
        self.failures, self.asked = failures, 0

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        self.asked += 1
        if self.asked <= self.failures:
            raise InfrastructureError("a worker died")
        return super().verify(kernel, task)


class FailingAuthor(ListedAuthor):
    """A `ListedAuthor` that cannot be reached for its first `failures` requests."""

    def __init__(self, failures: int, *answers: str) -> None:
        super().__init__(*answers)
        self.failures = failures

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        kernel = super().write(task, context, start, rng)
        if len(self.asked) <= self.failures:
            raise InfrastructureError("the endpoint is down")
        return kernel


class ProfilingJudge(ArithmeticJudge):
    """Finds that every kernel is held up by memory."""

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        verdict = super().verify(kernel, task)
        if isinstance(verdict, Feasible):
            return Feasible("ok", latency=verdict.latency, profile=Profile(bottleneck="mte2", diagnosis="copies wait"))
        return verdict


def some_tasks(count: int = 3) -> list[Task]:
    return [
        Task(f"some/task-{i}", ["math", "reduce"][i % 2], f"source {i}", (), level=2 - i % 2, number=i)
        for i in range(count)
    ]


def some_bank(practices: int = 30, pages: int = 0) -> MemoryBank:
    bank = MemoryBank(None, HashEmbedder())
    items = [
        MemoryItem(
            Kind.PRACTICE,
            f"practice {i}",
            f"Practice {i}: {'alpha beta' if i % 2 else 'gamma'}",
            language="text",
            bottlenecks=("mte2",) if i % 7 == 0 else (),
        )
        for i in range(practices)
    ]
    items += [
        MemoryItem(Kind.API, f"Api{i}", f"Api{i}: does {i}", names=(f"Api{i}",), language="text") for i in range(pages)
    ]
    bank.add(items, attempt=False)
    return bank


def some_operators(task: Task) -> tuple[str, ...]:
    return ("aten.relu.default", f"aten.op{task.number}.default")


def parts(**options: Any) -> dict[str, Any]:
    """Options that make an environment of stand-ins; `options` come on top."""
    return {
        "tasks": some_tasks(),
        "author": LuckyAuthor(),
        "verifier": ArithmeticJudge(),
        "bank": some_bank(),
        "operators": some_operators,
        "picks": 3,
        "pool_factor": 4,
        "budget": 6,
    } | options


Make = Callable[..., KernelSynthesisEnv]


@pytest.fixture
def make() -> Make:
    """Makes the environment from stand-ins."""

    def make_env(**options: Any) -> KernelSynthesisEnv:
        return KernelSynthesisEnv(**parts(**options))

    return make_env


@pytest.fixture
def stand_ins() -> Any:
    """The stand-ins themselves."""
    from types import SimpleNamespace

    return SimpleNamespace(
        Listed=ListedAuthor,
        Lucky=LuckyAuthor,
        Failing=FailingJudge,
        FailingAuthor=FailingAuthor,
        Profiling=ProfilingJudge,
        tasks=some_tasks,
        bank=some_bank,
        parts=parts,
    )


def legal(observation: dict[str, Any], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(observation["action_mask"])))


@pytest.fixture
def rollout() -> Callable[..., list[Any]]:
    """Steps with random legal actions (or any, `legal_only=False`); everything the environment said."""

    def run(env: gym.Env[Any, Any], steps: int, seed: int, legal_only: bool = True) -> list[Any]:
        rng = np.random.default_rng(seed)
        returned: list[Any] = [env.reset(seed=seed)]
        observation = returned[0][0]
        for _ in range(steps):
            action = legal(observation, rng) if legal_only else int(rng.integers(env.action_space.n))  # type: ignore[attr-defined]
            returned.append(env.step(action))
            observation = returned[-1][0]
            if returned[-1][2] or returned[-1][3]:
                returned.append(env.reset())
                observation = returned[-1][0]
        return returned

    return run
