"""The contract that every agent implements.

In each step an agent reads the observation, or the structured view of it in `info`, and returns an action. After every
finished attempt it is given the `Attempt` once. Learners that own their training loop, such as RLlib's, implement `fit`
instead. This is a complete agent:

    from kernel_gym.agents.contract import Agent

    class FirstCandidateAgent(Agent):
        def act(self, observation, info):
            legal = observation["action_mask"].nonzero()[0]
            return int(legal[0])

It runs with `kernel-gym train --agent my_module:FirstCandidateAgent`. `kernel_gym.agents.conformance` tests it.
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

#: What the environment returns: `observations` (features) and `action_mask` (1 for legal actions, length `K + 1`).
Observation = Mapping[str, NDArray[np.float32]]
#: The structured view of the same state: `task`, `stage`, `candidates`, `picked`, `start`, `start_due`,
#: `draft_due`, `best_us`, ...
#: `start` is 0 and `first_us` and `best_us` are 0.0 while there is none.
Info = Mapping[str, Any]
#: Numbers by name, for the log.
Metrics = Mapping[str, float]


class BudgetSpent(BaseException):
    """Raised by `step` of the environments that `fit` trains on once the budget is spent.

    It is not an `Exception` because it is no error, and because libraries that own the loop catch or log those.
    """


class MakeEnv(Protocol):
    """Makes the environment that `fit` trains on, one task at a time or all tasks at once."""

    def __call__(self) -> gym.Env[Any, Any]:
        """Make an environment that works on one task after another.

        Returns:
            A new environment. Its `step` raises `BudgetSpent` once the budget is spent.
        """

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """Make a vector environment that works on all tasks in lock-step, on one memory bank.

        Returns:
            A new vector environment with one attempt per task and iteration. Its `step` raises `BudgetSpent` once the
            budget is spent.
        """


class Agent(ABC):
    """Base class of all agents.

    A subclass takes `seed` and its own options as keyword arguments; a run gives it `agent_options` from the
    configuration. Unknown options are errors.

    Args:
        seed: Seed of `self.rng`, from which everything random in the agent must come.

    Attributes:
        owns_loop: True for agents that own their training loop and implement `fit`.
        rng: The agent's random generator.

    Examples:
        >>> class FirstCandidateAgent(Agent):
        ...     def act(self, observation, info):
        ...         return int(observation["action_mask"].nonzero()[0][0])
        >>> FirstCandidateAgent(seed=0).act({"action_mask": np.array([0, 1, 1])}, {})
        1
    """

    owns_loop: bool = False

    def __init__(self, seed: int = 0) -> None:
        self.rng = np.random.default_rng(seed)

    @classmethod
    def options_for(cls, env: EnvConfig) -> Mapping[str, Any]:
        """Return constructor options that follow from a run's environment.

        Args:
            env: The environment's part of the run's configuration.

        Returns:
            Options by name. `agent_options` of the configuration take precedence.

        Raises:
            ConfigError: If the agent does not work with this environment.
        """
        return {}

    @abstractmethod
    def act(self, observation: Observation, info: Info) -> int:
        """Choose the next action.

        Args:
            observation: The environment's observation. It belongs to the environment and must not be changed.
            info: The structured view of the same state, with ids and texts.

        Returns:
            The slot of a candidate to pick, or `K` (the last action) to generate the kernel now. Where
            `info["start_due"]` is true the pick is the start point; in drafting it is an attempt to mend, and `K` means
            a new draft. Where `info["draft_due"]` is true it is the draft to verify. Only actions that the mask allows
            have an effect.
        """

    def candidate_values(self, observation: Observation, info: Info) -> Sequence[float] | None:
        """Return the agent's present value of every candidate, for analysis.

        The call must not change the agent or draw random numbers.

        Args:
            observation: The environment's observation.
            info: The structured view of the same state.

        Returns:
            One finite number per candidate in `info["candidates"]`, or None for an agent without values.
        """
        return None

    def learn(self, attempt: Attempt) -> Metrics:
        """Learn from a finished attempt.

        Args:
            attempt: The attempt with its context, verdict and reward. Attempts that the infrastructure failed, and
                those of an evaluation, are not given to the agent.

        Returns:
            Finite numbers by name, written to the log as `agent/NAME`.
        """
        return {}

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        """Train until the budget is spent. Only called on agents with `owns_loop`.

        Args:
            make_env: Makes the environments to train on; their `step` raises `BudgetSpent` at the end.
            budget: Attempts in all, over all tasks.
            log: Called with metrics and the agent's own step number. The run writes them at the number of attempts
                made by then.

        Raises:
            NotImplementedError: If the agent does not own its training loop.
        """
        raise NotImplementedError(f"{type(self).__name__} does not own its training loop")

    def remap_items(self, ids: Mapping[int, int]) -> None:  # noqa: B027
        """Change item ids to those of another memory bank.

        Called after `load` where a run continues from what was learned in another run. Agents that store nothing by
        item id ignore it.

        Args:
            ids: The ids in the present bank by those of the old one. Items that are not named are not in the present
                bank, so what was learned about them can be dropped. Where the run does not start with the old run's
                memories, `ids` names the seed items alone.
        """

    def use_fresh_memory(self, lasting: int) -> None:  # noqa: B027
        """Prepare for fresh memory, where every episode starts from the same items and gives its own the same ids.

        Called before the first attempt. An agent that stores anything by item id can tell items of different episodes
        apart with `kernel_gym.agents.support.item_numbers.ItemNumbers`.

        Args:
            lasting: Ids up to this one mean the same item in every episode; higher ones belong to one episode.
        """

    def save(self, path: Path) -> None:  # noqa: B027
        """Write what was learned. The default writes nothing.

        Args:
            path: The folder to write into; it is created if needed.
        """

    def load(self, path: Path) -> None:  # noqa: B027
        """Read back what `save` wrote.

        Args:
            path: The folder that `save` wrote.

        Raises:
            ConfigError: If the folder holds nothing that this agent can read.
        """
