"""An agent that does not keep to the contract is told so in one line that names it and the place."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import pytest

import kernel_gym  # noqa: F401
from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import AgentWarning, ConfigError, KernelGymError
from kernel_gym.experiments.runs.play import play
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import make_agent
from kernel_gym.experiments.runs.training import train


class Legal(Agent):
    def act(self, observation: Observation, info: Info) -> Any:
        return observation["action_mask"].nonzero()[0][0]


class Faulty(Legal):
    """Returns `answer` from the second attempt on."""

    def __init__(self, seed: int = 0, answer: Any = None) -> None:
        super().__init__(seed)
        self.answer = answer

    def act(self, observation: Observation, info: Info) -> Any:
        return self.answer if info["attempts_left"] < 2 else super().act(observation, info)


class Blind(Agent):
    """Always picks slot 0: the first of its five picks has an effect."""

    def act(self, observation: Observation, info: Info) -> int:
        return 0


class Looping(Faulty):
    """Owns its loop and steps with what is no action."""

    owns_loop = True

    def fit(self, make_env: Any, budget: int, log: Any) -> None:
        env = make_env()
        env.reset(seed=0)
        env.step(999)


class Unfinished(Agent):  # type: ignore[misc]
    pass


class NoAct:
    def __init__(self, seed: int = 0) -> None: ...


class NoAgent(NoAct):
    def act(self, observation: Observation, info: Info) -> int:
        return 0


def not_an_agent(seed: int = 0) -> NoAgent:
    return NoAgent()


CONSTANT = 3


def config(agent: str, **options: Any) -> RunConfig:
    return resolve(
        overrides={
            "agent": f"{__name__}:{agent}",
            "agent_options": options,
            "tasks": ["level1/relu"],
            "budget": 2,
            "env": {"forecast": True},
        }
    )


def run(folder: Path, settings: RunConfig) -> None:
    train(settings, RunFolder.open(folder, settings))


@pytest.mark.parametrize("answer", [999, -1, 21, 1.5, "first", [0, 1], None])
def test_an_invalid_action_is_an_error_with_agent_task_attempt_and_range(tmp_path: Path, answer: Any) -> None:
    with pytest.raises(KernelGymError) as error:
        run(tmp_path, config("Faulty", answer=answer))
    text = str(error.value)
    assert text == (
        f"agent '{__name__}:Faulty' returned {answer!r} (level1/relu, attempt 2): act must return an int in 0..20; "
        "0..19 pick a candidate, 20 generates the kernel now"
    )


def test_an_agent_that_owns_its_loop_is_named_too(tmp_path: Path) -> None:
    with pytest.raises(KernelGymError, match=r":Looping' chose no action: 999 is not an action; they are 0\.\.20"):
        run(tmp_path, config("Looping"))


def test_the_simple_loop_says_the_same() -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", budget=2)
    with pytest.raises(KernelGymError, match=r"agent 'Faulty' returned 999 \(known/task-0, attempt 2\).* 0\.\.12"):
        list(play(env, Faulty(answer=999), 3, seed=0))


def test_masked_picks_are_counted_and_reported_once(tmp_path: Path) -> None:
    with pytest.warns(AgentWarning) as caught:
        run(tmp_path, config("Blind"))
    (warning,) = caught
    text = str(warning.message)
    assert text.startswith(
        f"agent '{__name__}:Blind' chose 8 masked actions in 10 picks (first: action 0, level1/relu, "
    )
    assert "attempt 1" in text
    assert "\n" not in text


@pytest.mark.filterwarnings("error")
def test_legal_actions_of_any_integer_type_are_silent(tmp_path: Path) -> None:
    run(tmp_path, config("Legal"))
    assert isinstance(Legal().act({"action_mask": np.ones(2, np.float32)}, {}), np.integer)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("Unfinished", "lacks act: define act(self, observation, info) that returns an action"),
        ("NoAct", "lacks act: define act(self, observation, info) that returns an action"),
        ("NoAgent", "is not an Agent: derive NoAgent from kernel_gym.Agent"),
        ("not_an_agent", "makes a NoAgent, which is not a kernel_gym.Agent"),
        ("CONSTANT", "is not a class"),
    ],
)
def test_a_class_that_cannot_be_an_agent_is_refused_with_what_it_lacks(name: str, reason: str) -> None:
    with pytest.raises(ConfigError) as error:
        make_agent(config(name))
    assert str(error.value) == f"agent '{__name__}:{name}' {reason}"


def test_options_that_an_agent_does_not_take_are_still_reported() -> None:
    with pytest.raises(ConfigError, match="does not take these options"):
        make_agent(config("Legal", colour="red"))
