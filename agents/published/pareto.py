"""Draw memories from the Pareto front over tasks: GEPA (arXiv 2507.19457).

GEPA evolves prompts. For every task instance it keeps the prompts with the best score there, drops those that others
dominate, and draws one by the number of instances at which it is among the best. Here the prompt is what the author is
shown: a memory's score at an instance, a task in one stage, is the mean reward of the attempts that were shown it.

A memory is dominated if, at every instance where it is among the best, another memory that stays is too; memories with
the lowest total score are dropped first.

Deviations from the paper:
1. The first memory of a context is drawn from the front, as far as the pool has some of it. The common rule picks the
   others, from memories without a score at this instance as long as the pool has some: this is how new ones get a
   score. GEPA writes new prompts by reflection and merges them.
2. Scores are means over attempts with several memories, not evaluations of one prompt alone.
3. The paper has no start points: the fastest kernel is refined.
4. Own drafting: the same rule with the scores of drafting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from kernel_gym.agents.contract import Info, Metrics
from kernel_gym.agents.published.tree_agent import Drafting, Offered, Tree, TreeAgent, common_rule
from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.envs.attempt import Attempt

#: Scores that are closer than this are equal.
SAME = 1e-9
#: A task in one stage.
Instance = tuple[str, str]


class ParetoAgent(TreeAgent):
    """Show a memory of the front and fill the context by the common rule; refine the fastest kernel.

    Args:
        seed: Seed of the draws.
        drafting: With `own`, drafts are shown a memory of the front, too.

    Attributes:
        scores: Attempts and total reward of each memory at each instance.
    """

    def __init__(self, seed: int = 0, drafting: Drafting = "heuristic") -> None:
        super().__init__(seed, drafting)
        self.scores: dict[Instance, dict[int, tuple[int, float]]] = {}
        self._numbers = ItemNumbers()

    def choose_start(self, tree: Tree, kernels: Sequence[int]) -> int:
        """Return the fastest kernel."""
        return kernels[0]

    def pick(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Draw the first memory from the front by its number of instances; the common rule picks new ones."""
        fronts = self.front_counts(info["stage"].value) if not info["picked"] else Counter[int]()
        counts = {slot: fronts[self._number(info, item.id)] for slot, item in offered.items()}
        slots = [slot for slot, count in counts.items() if count]
        if slots:
            return self.draw(slots, [float(counts[slot]) for slot in slots])
        scored = self.scores.get((info["task"], info["stage"].value), {})
        new = {slot: item for slot, item in offered.items() if self._number(info, item.id) not in scored}
        return common_rule(new or offered, info)

    def _number(self, info: Info, id: int) -> int:
        return self._numbers.number(info["task"], id)

    def pick_for_draft(self, tree: Tree, offered: Offered, info: Info) -> int | None:
        """Draw the first memory from the front of drafting; the common rule picks the others."""
        return self.pick(tree, offered, info)

    def front_counts(self, stage: str) -> Counter[int]:
        """Return, for each memory that is not dominated, the number of instances at which it is among the best."""
        means = {
            instance: {item: total / count for item, (count, total) in scores.items()}
            for instance, scores in self.scores.items()
            if instance[1] == stage
        }
        fronts = [_best(row) for row in means.values()]
        totals: Counter[int] = Counter()
        for row in means.values():
            totals.update(row)
        staying = set().union(*fronts)
        for item in sorted(staying, key=lambda item: (totals[item], -item)):
            if all(front & (staying - {item}) for front in fronts if item in front):
                staying.discard(item)
        return Counter(item for front in fronts for item in front & staying)

    def learn(self, attempt: Attempt) -> Metrics:
        """Add the reward to the scores of all memories that were shown."""
        metrics = super().learn(attempt)
        if attempt.index == 0:
            gone = self._numbers.begin_episode(attempt.task)
            for scores in self.scores.values() if gone else ():
                for item in gone & scores.keys():
                    del scores[item]
        scores = self.scores.setdefault((attempt.task, attempt.stage.value), {})
        for id in attempt.context:
            item = self._numbers.number(attempt.task, id)
            count, total = scores.get(item, (0, 0.0))
            scores[item] = count + 1, total + attempt.reward
        return metrics

    def use_fresh_memory(self, lasting: int) -> None:
        """Keep the scores of different episodes' own items apart."""
        super().use_fresh_memory(lasting)
        self._numbers = ItemNumbers(lasting)

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Move scores to the new ids; those of items that are not in the bank are dropped."""
        super().remap_items(ids)
        self.scores = {
            instance: {ids[item]: score for item, score in row.items() if item in ids}
            for instance, row in self.scores.items()
        }

    def state(self) -> dict[str, Any]:
        """Return the scores of items that every episode has."""
        rows = [
            [*instance, item, *score]
            for instance, scores in self.scores.items()
            for item, score in scores.items()
            if item > 0
        ]
        return {"scores": rows}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back the scores."""
        self.scores = {}
        for task, stage, item, count, total in state["scores"]:
            self.scores.setdefault((task, stage), {})[item] = count, total


def _best(means: Mapping[int, float]) -> set[int]:
    """Return the items with the greatest mean."""
    greatest = max(means.values(), default=0.0)
    return {item for item, mean in means.items() if mean > greatest - SAME}
