"""Picks at random: what a policy must beat."""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots


class RandomAgent(Agent):
    """Fills the context with legal candidates, each as likely as any other; the start point likewise."""

    def act(self, observation: Observation, info: Info) -> int:
        """Any legal candidate; `K` only if there is none."""
        slots = legal_slots(observation)
        return int(self.rng.choice(slots)) if slots else generate(observation)
