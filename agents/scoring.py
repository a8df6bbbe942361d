"""The network of `ppo` and `dqn`: one score for each candidate and one for "generate now".

The observation holds F features for each of K candidates and G features of the situation. One small network, shared by
all slots, scores each candidate together with the situation, so that slots need no fixed meaning. A second one scores
"generate now" from the mean over all legal candidates.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError

#: Score of an illegal action: probability exactly zero in float32, no NaN in an entropy.
ILLEGAL = -1e9


@dataclass(frozen=True)
class ScorerSizes:
    """Sizes of the network.

    Args:
        slots: Candidates in the pool (K).
        features: Features of a candidate (F).
        situation: Features of the situation (G).
        hidden: Width of the hidden layers.
    """

    slots: int
    features: int
    situation: int
    hidden: int

    @classmethod
    def of(cls, layout: Layout, hidden: int) -> ScorerSizes:
        """Return the sizes for an observation layout."""
        return cls(layout.slots, layout.candidate_width, layout.global_width, hidden)


class CandidateScorer(nn.Module):
    """Scores each candidate and "generate now", and estimates the value of the state.

    Args:
        sizes: Sizes of the observation and of the hidden layers.
    """

    def __init__(self, sizes: ScorerSizes) -> None:
        super().__init__()
        self.sizes = sizes
        hidden, situation = sizes.hidden, sizes.situation
        self.encode = nn.Sequential(
            nn.Linear(sizes.features + situation, hidden), nn.Tanh(), nn.Linear(hidden, hidden), nn.Tanh()
        )
        self.score = nn.Linear(hidden, 1)
        self.generate = nn.Sequential(nn.Linear(hidden + situation, hidden), nn.Tanh(), nn.Linear(hidden, 1))
        self.value = nn.Sequential(nn.Linear(hidden + situation, hidden), nn.Tanh(), nn.Linear(hidden, 1))

    def forward(self, observation: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
        """Compute scores and values of a batch.

        Args:
            observation: `observations` (B, K * F + G) and `action_mask` (B, K + 1).

        Returns:
            Scores (B, K + 1), illegal actions included, and values of the states (B,).
        """
        flat, mask, sizes = observation["observations"], observation["action_mask"], self.sizes
        candidates = flat[:, : sizes.slots * sizes.features].reshape(-1, sizes.slots, sizes.features)
        situation = flat[:, sizes.slots * sizes.features :]
        repeated = situation.unsqueeze(1).expand(-1, sizes.slots, -1)
        encoded = self.encode(torch.cat([candidates, repeated], -1))
        legal = mask[:, :-1].unsqueeze(-1)
        pooled = (encoded * legal).sum(1) / legal.sum(1).clamp(min=1.0)
        summary = torch.cat([pooled, situation], -1)
        scores = torch.cat([self.score(encoded).squeeze(-1), self.generate(summary)], -1)
        return scores, self.value(summary).squeeze(-1)

    def masked(self, observation: Mapping[str, Tensor], illegal: float = ILLEGAL) -> tuple[Tensor, Tensor]:
        """Return the same with `illegal` as the score of illegal actions."""
        scores, values = self(observation)
        return scores.masked_fill(observation["action_mask"] < 0.5, illegal), values


def save(scorer: CandidateScorer, file: Path) -> None:
    """Write a network's weights and sizes to `file`."""
    torch.save({"sizes": asdict(scorer.sizes), "weights": scorer.state_dict()}, file)


def load(file: Path) -> CandidateScorer:
    """Read back a network that `save` wrote.

    Raises:
        ConfigError: If the file is missing or holds no network.
    """
    try:
        saved = torch.load(file, weights_only=True)
        scorer = CandidateScorer(ScorerSizes(**saved["sizes"]))
        scorer.load_state_dict(saved["weights"])
    except (OSError, RuntimeError, KeyError, TypeError, EOFError) as error:
        raise ConfigError(f"{file} holds no trained network: train the agent first") from error
    return scorer
