"""Show the author what a network picks that was trained before, on forecast attempts by sampled authors.

Algorithm: the network of `scoring.py` with the weights that `kernel-gym pretrain` wrote. It does not learn; its inputs
tell it how the attempts so far ended, so that it can adapt. `ppo` and `dqn` go on training the same weights with their
option `weights`. Options of `TrainedAgent`: `weights` and `greedy`.
"""

from __future__ import annotations

from pathlib import Path

import torch

from kernel_gym.agents import scoring
from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.agents.scoring import ILLEGAL, load_weights

#: The file that `save` writes.
FILE = "trained.pt"


class TrainedAgent(Agent):
    """Act by the scores of a trained network.

    Args:
        seed: Seed of the draws.
        weights: Name of packaged weights, or a file that `kernel-gym pretrain` wrote.
        greedy: Take the action with the highest score; else draw with the probabilities that the scores are logits of.
    """

    def __init__(self, seed: int = 0, weights: str = "ppo", greedy: bool = True) -> None:
        super().__init__(seed)
        self.greedy, self.scorer = greedy, load_weights(weights)

    def act(self, observation: Observation, info: Info) -> int:
        """Return the action with the highest score, or a drawn one."""
        scores = self._scores(observation)
        if self.greedy:
            return int(scores.argmax())
        probabilities = torch.softmax(scores.double(), -1).numpy()
        return int(self.rng.choice(len(probabilities), p=probabilities))

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return the score of each candidate."""
        scores: list[float] = self._scores(observation)[: len(info["candidates"])].tolist()
        return [0.0 if score == ILLEGAL else score for score in scores]

    def save(self, path: Path) -> None:
        """Write the network, so that a run folder holds what acted in it."""
        path.mkdir(parents=True, exist_ok=True)
        scoring.save(self.scorer, path / FILE)

    def load(self, path: Path) -> None:
        """Read back the network.

        Raises:
            ConfigError: If the folder has no network.
        """
        self.scorer = scoring.load(path / FILE)

    def _scores(self, observation: Observation) -> torch.Tensor:
        batch = {key: torch.as_tensor(value).unsqueeze(0) for key, value in observation.items()}
        self.scorer.check_fits(batch)
        with torch.no_grad():
            return self.scorer.masked(batch)[0][0]
