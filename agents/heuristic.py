"""The paper's ablation of values: similarity chooses the context, the latency the start point."""

from __future__ import annotations

from kernel_gym.agents.similarity import SimilarityAgent


class HeuristicAgent(SimilarityAgent):
    """What `similarity` does, which starts from the fastest kernel, too; the name is the paper's."""
