"""A network for pools: it scores every candidate in its situation, so that slots need no fixed meaning.

The observation describes K candidates by F numbers each and the situation by G; one small network scores each candidate
together with the situation, another scores "generate now" from what all legal candidates have in common.
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
    """K, F, G and the width of the hidden layers."""

    slots: int
    features: int
    situation: int
    hidden: int

    @classmethod
    def of(cls, layout: Layout, hidden: int) -> ScorerSizes:
        """The sizes that a layout asks for."""
        return cls(layout.slots, layout.candidate_width, layout.global_width, hidden)


class CandidateScorer(nn.Module):
    """Scores each candidate in its situation, and "generate now"; also estimates the value of the situation."""

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
        """Scores (B, K + 1), those of illegal actions included, and values (B,)."""
        flat, mask, sizes = observation["observations"], observation["action_mask"], self.sizes
        candidates = flat[:, : sizes.slots * sizes.features].reshape(-1, sizes.slots, sizes.features)
        situation = flat[:, sizes.slots * sizes.features :]
        spread = situation.unsqueeze(1).expand(-1, sizes.slots, -1)
        encoded = self.encode(torch.cat([candidates, spread], -1))
        legal = mask[:, :-1].unsqueeze(-1)
        pooled = (encoded * legal).sum(1) / legal.sum(1).clamp(min=1.0)
        whole = torch.cat([pooled, situation], -1)
        scores = torch.cat([self.score(encoded).squeeze(-1), self.generate(whole)], -1)
        return scores, self.value(whole).squeeze(-1)

    def masked(self, observation: Mapping[str, Tensor], illegal: float = ILLEGAL) -> tuple[Tensor, Tensor]:
        """The same with `illegal` in the place of illegal actions' scores."""
        scores, values = self(observation)
        return scores.masked_fill(observation["action_mask"] < 0.5, illegal), values


def save(scorer: CandidateScorer, file: Path) -> None:
    """Write a network's weights and sizes."""
    torch.save({"sizes": asdict(scorer.sizes), "weights": scorer.state_dict()}, file)


def load(file: Path) -> CandidateScorer:
    """Read them back."""
    try:
        saved = torch.load(file, weights_only=True)
        scorer = CandidateScorer(ScorerSizes(**saved["sizes"]))
        scorer.load_state_dict(saved["weights"])
    except (OSError, RuntimeError, KeyError, TypeError, EOFError) as error:
        raise ConfigError(f"{file} holds no trained network: train the agent first") from error
    return scorer
