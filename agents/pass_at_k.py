"""Show the author no memories: the paper's baseline "Pass@k".

Rule: the paper's baseline of independent attempts (arXiv 2603.10846). The API pages that the environment
adds by itself stay; `env.pages=demonstration` is the paper's protocol. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.memory.item import Stage


class PassAtKAgent(Agent):
    """Generate at once, without a pick.

    Args:
        seed: Not used: the rule is deterministic.
    """

    def act(self, observation: Observation, info: Info) -> int:
        """Return "generate now", the fastest start point in refining, or the first of several drafts.

        A failed attempt is not mended.
        """
        refining = info["start_due"] and info["stage"] == Stage.REFINE
        return legal_slots(observation)[0] if refining or info["draft_due"] else generate(observation)
