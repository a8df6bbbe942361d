"""The Agent contract.

An agent reads the observation (or the structured view in `info`) and answers with an action. It is told once about
every finished attempt. Learners that own their loop, such as RLlib's, implement `fit`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import gymnasium as gym
import numpy as np
from numpy.typing import NDArray

from kernel_gym.config import EnvConfig
from kernel_gym.envs.attempt import Attempt

Observation = Mapping[str, NDArray[np.float32]]
Info = Mapping[str, Any]
Metrics = Mapping[str, float]


class BudgetSpent(BaseException):
    """Raised by `step` of an environment that `fit` made once the budget is spent.

    Not an Exception: libraries that own the loop swallow or log those, and this is no error.
    """


class MakeEnv(Protocol):
    """Makes what `fit` trains on: the environment, or its vector form, which works on all tasks in lock-step."""

    def __call__(self) -> gym.Env[Any, Any]:
        """The environment, one task after another."""

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """All tasks at once, one attempt each an iteration, on one bank."""


class Agent(ABC):
    """Base of all agents. `seed` drives everything random in it; `options` are its own, unknown ones are errors."""

    #: True for agents that own their training loop and implement `fit`.
    owns_loop: bool = False

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    @classmethod
    def options_for(cls, env: EnvConfig) -> Mapping[str, Any]:
        """Constructor arguments that follow from a run's environment; options that the configuration has go first."""
        return {}

    @abstractmethod
    def act(self, observation: Observation, info: Info) -> int:
        """Pick a candidate, or `K` to generate now. Only actions that the mask allows make sense."""

    def candidate_values(self, observation: Observation, info: Info) -> Sequence[float] | None:
        """What each candidate is worth to the agent now, one number a slot; None for an agent without values.

        For looking in only: changes nothing, draws nothing at random.
        """
        return None

    def learn(self, attempt: Attempt) -> Metrics:
        """Take note of a finished attempt; what comes back is logged."""
        return {}

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train for `budget` attempts in all; only for agents with `owns_loop`.

        `log` takes metrics and a step of the agent's own; a run writes them at the number of attempts made by then.
        """
        raise NotImplementedError(f"{type(self).__name__} does not own its training loop")

    def remap_items(self, ids: Mapping[int, int]) -> None:  # noqa: B027
        """Learn that items have other ids in the bank at hand: new ones by old ones, those not named are not in it.

        Called after `load`, where a run goes on from what was learned in another; if it doesn't begin with that one's
        memories, the seed knowledge alone is named. Only what is known by item id changes.
        """

    def use_fresh_memory(self, lasting: int) -> None:  # noqa: B027
        """Learn that memory is fresh: ids up to `lasting` mean the same item in every episode, the others don't.

        Called before the first attempt; whoever keeps something by item id can tell items apart with `ItemNumbers`.
        """

    def save(self, path: Path) -> None:  # noqa: B027
        """Write what was learned into the folder `path`; nothing to write by default."""

    def load(self, path: Path) -> None:  # noqa: B027
        """Read back what `save` wrote."""
