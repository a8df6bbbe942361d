"""Show the author candidates at random: the baseline that every policy must beat.

Rule: ours. Context and start point are drawn uniformly from the legal candidates. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots


class RandomAgent(Agent):
    """Fill the context with legal candidates drawn uniformly.

    Args:
        seed: Seed of the draws.
    """

    def act(self, observation: Observation, info: Info) -> int:
        """Return a legal candidate drawn uniformly; "generate now" only if there is none."""
        slots = legal_slots(observation)
        return int(self.rng.choice(slots)) if slots else generate(observation)
