"""Independent tries: the published baseline without any memory."""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots


class PassAtKAgent(Agent):
    """Shows nothing: every attempt is an independent try. What the environment adds by itself (API pages) stays."""

    def act(self, observation: Observation, info: Info) -> int:
        """Generate at once; where a start point is due, the fastest."""
        return legal_slots(observation)[0] if info["start_due"] else generate(observation)
