"""The paper's ablation of values: similarity chooses the context, latency the start point.

Rule: the heuristic retrieval that the paper compares its values with (arXiv 2603.10846). It is
the rule of `similarity` under the paper's name. It has no options.
"""

from __future__ import annotations

from kernel_gym.agents.similarity import SimilarityAgent


class HeuristicAgent(SimilarityAgent):
    """Pick the most similar items and the fastest start point, as `SimilarityAgent` does.

    Args:
        seed: Not used: the rule is deterministic.
    """
