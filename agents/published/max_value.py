"""The value agent with a max target: MaxCode (arXiv 2601.05475).

A search for one best kernel gains nothing from attempts that are merely good on average. MaxCode's value of a state
with the best reward u so far is V = E[max(u, G)], G being what is still to come: an attempt that is worse than u costs
nothing. Here the values of `value` move towards max(u, G) - u, the gain over the best so far.

Deviations from the paper:
1. Values are tabular, one for each stage and item as in `value`; theirs is a network that reads the code.
2. G is the reward of the attempt itself, not that of the rest of the episode: later attempts are shown other memories.
3. In refining the best so far has the reward 0 by definition, so the target is max(0, r2), not normalised. In drafting
   there is no kernel yet, u = -1, and the target is r1 as in `value`.
4. Own drafting: by the values of drafting, as `value` drafts.
"""

from __future__ import annotations

from typing import Any, get_args

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.published.tree_agent import Drafting, common_rule
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.value import ValueAgent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage


class MaxValueAgent(ValueAgent):
    """Pick epsilon-greedily on values of the gain over the best so far.

    Args:
        seed: Seed of the random picks.
        drafting: With `own`, the values of drafting pick; else the rule that all published agents share.
        **options: Options of `ValueAgent`: `alpha`, `epsilon`, `q0` and `key`.

    Raises:
        ConfigError: If an option is out of range.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic", **options: Any) -> None:
        super().__init__(seed, **options)
        if drafting not in get_args(Drafting):
            raise ConfigError(f"drafting is heuristic or own, not {drafting!r}")
        self.drafting = drafting

    def act(self, observation: Observation, info: Info) -> int:
        """Return the legal candidate with the greatest value; while drafting the common rule's pick, if it drafts."""
        drafting = info["stage"] is Stage.DRAFT
        if drafting and info["start_due"]:
            return generate(observation)  # a failed draft is not mended
        if not drafting or self.drafting == "own" or info.get("draft_due"):
            return super().act(observation, info)
        offered = {slot: info["candidates"][slot] for slot in legal_slots(observation)}
        slot = common_rule(offered, info)
        return generate(observation) if slot is None else slot

    def _target(self, attempt: Attempt) -> float:
        """Return the gain over the best so far; in drafting what `value` learns."""
        target = super()._target(attempt)
        return target if attempt.stage is Stage.DRAFT else max(0.0, attempt.reward)
