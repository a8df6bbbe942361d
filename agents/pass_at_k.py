"""Show the author no memories: the paper's baseline "Pass@k".

Rule: the paper's baseline of independent attempts (arXiv 2603.10846). The API pages that the environment
adds by itself stay. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots


class PassAtKAgent(Agent):
    """Generate at once, without a pick.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def act(self, observation: Observation, info: Info) -> int:
        """Return "generate now", or the fastest start point where one is due."""
        return legal_slots(observation)[0] if info["start_due"] else generate(observation)
