"""The environment on real tasks, with the real memory: suites, seed knowledge, embeddings, exported operators."""

import warnings
from typing import Any

import gymnasium as gym
import pytest
from gymnasium.utils.env_checker import check_env

import kernel_gym  # noqa: F401
from kernel_gym.envs.known_optimum import ArithmeticJudge
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind

TASKS = ["relu", "softmax", "sigmoid"]
K = 20


class Copyist:
    """Writes in the device's language; what it writes is made up."""

    language = "ascendc"

    def __init__(self, *answers: str) -> None:
        self.answers, self.contexts = list(answers), list[Any]()

    def identity(self) -> str:
        return "copyist"

    def write(self, task: Any, context: Any, start: Any, rng: Any) -> Kernel:
        self.contexts.append(context)
        return Kernel(self.answers[(len(self.contexts) - 1) % len(self.answers)], self.language)


def real_env(*answers: str, **options: Any) -> gym.Env[Any, Any]:
    return gym.make(
        "kernel_gym/KernelSynthesis-v0",
        suite="level1",
        tasks=TASKS,
        author=Copyist(*answers),
        verifier=ArithmeticJudge(),
        **options,
    )


def test_the_environment_checker_reports_nothing() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(real_env("wrong", "latency 5.0").unwrapped)


def test_the_bank_begins_with_seed_knowledge_and_only_practices_can_be_picked() -> None:
    env = real_env("wrong")
    _, info = env.reset(seed=0)
    assert info["task"] == "level1/relu"
    assert {item.kind for item in env.unwrapped.bank.items()} == {Kind.API, Kind.PRACTICE}  # type: ignore[attr-defined]
    assert info["candidates"]
    assert {candidate.kind for candidate in info["candidates"]} == {"practice"}


def test_api_pages_follow_the_names_in_what_is_shown() -> None:
    env = real_env("class K { void f() { AscendC::Exp(a, b, n); AscendC::DataCopyPad(a, b, p); } };")
    env.reset(seed=0)
    for _ in range(4):
        *_, info = env.step(K)
    slot = next(i for i, candidate in enumerate(info["candidates"]) if candidate.kind == "trace")
    env.step(slot)
    *_, info = env.step(K)
    bank = env.unwrapped.bank  # type: ignore[attr-defined]
    pages = [bank.get(i) for i in info["attempt"].api_pages]
    assert len(pages) <= 14
    assert {page.kind for page in pages} == {Kind.API}
    named = {name for page in pages for name in page.names}
    assert {"Exp", "DataCopyPad"} <= named


def test_the_next_task_sees_the_items_of_the_last_with_their_operators() -> None:
    env = real_env("latency 5.0", budget=1, composition="stratified")
    env.reset(seed=0)
    env.step(K)
    observation, info = env.reset()
    assert info["task"] == "level1/softmax"
    slot = next(i for i, candidate in enumerate(info["candidates"]) if candidate.kind == "trace")
    layout = env.unwrapped.layout  # type: ignore[attr-defined]
    box = observation["observations"]
    assert info["candidates"][slot].item.operators == ("aten.relu.default",)
    assert box[layout.candidate("feasible")][slot] == 1.0
    assert box[layout.candidate("relative_latency")][slot] == 1.0
    assert box[layout.candidate("same_task")][slot] == 0.0
    assert box[layout.globals("category.activation")] == 1.0


@pytest.mark.parametrize(
    "wrong", [{"tasks": ["rely"]}, {"suite": "level9"}, {"embedder": "none"}, {"author": "nobody"}]
)
def test_a_missing_part_is_a_one_line_error(wrong: dict[str, Any]) -> None:
    from kernel_gym.errors import KernelGymError

    with pytest.raises(KernelGymError) as caught:
        gym.make("kernel_gym/KernelSynthesis-v0", **({"author": Copyist("wrong")} | wrong))
    assert "\n" not in str(caught.value)
