"""Ask an agent for its actions: what is no action is an error, and picks that the mask forbids are counted."""

from __future__ import annotations

import operator
import reprlib
import warnings

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.errors import AgentWarning, KernelGymError


class AgentActions:
    """The actions of one agent in one run.

    Args:
        agent: The agent.
        name: The agent's name in messages.
    """

    def __init__(self, agent: Agent, name: str) -> None:
        self._agent, self._name = agent, name
        #: Picks so far, and how many of them the mask forbade.
        self.picks = self.masked = 0
        self._first_masked = ""

    def ask(self, observation: Observation, info: Info, attempt: int) -> int:
        """Return the agent's next action.

        Args:
            observation: The observation.
            info: The structured view of the same state.
            attempt: The number of the attempt at the task, from 1 on, for messages.

        Returns:
            The action.

        Raises:
            KernelGymError: If the agent returned something that is no action.
        """
        answer, mask = self._agent.act(observation, info), observation["action_mask"]
        last = len(mask) - 1
        try:
            action = operator.index(answer)
        except TypeError:
            action = -1
        if not 0 <= action <= last:
            raise KernelGymError(
                f"agent {self._name!r} returned {' '.join(reprlib.repr(answer).split())} "
                f"({info['task']}, attempt {attempt}): act must return an int in 0..{last}; "
                f"0..{last - 1} pick a candidate, {last} generates the kernel now"
            )
        if mask[:-1].any():  # else there is nothing to pick: the episode waits for others or the pool is used up
            self.picks += 1
            if not mask[action]:
                self.masked += 1
                self._first_masked = self._first_masked or f"action {action}, {info['task']}, attempt {attempt}"
        return action

    def warn_of_masked(self) -> None:
        """Warn if the agent made picks that the mask forbids: they pick nothing."""
        if self.masked:
            warnings.warn(
                f"agent {self._name!r} chose {self.masked} masked actions in {self.picks} picks (first: "
                f"{self._first_masked}): they picked nothing; choose where observation['action_mask'] is 1",
                AgentWarning,
                stacklevel=2,
            )
