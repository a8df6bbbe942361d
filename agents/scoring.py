"""The network of `ppo`, `dqn` and `trained`: one score for each candidate and one for "generate now".

The observation holds F features for each of K candidates and G features of the situation. One small network, shared by
all slots, encodes each candidate together with the situation, so that slots need no fixed meaning. Layers of
self-attention then let the candidates see each other and the picks: a candidate's score depends on the set that it is
in, and permuting the slots permutes the scores (Set Transformer, arXiv 1810.00825). A second network scores "generate
now" from the mean over all candidates on offer.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import resources
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
        layers: Layers of self-attention over the candidates; 0: each is scored for itself.
    """

    slots: int
    features: int
    situation: int
    hidden: int
    layers: int = 0

    @classmethod
    def of(cls, layout: Layout, hidden: int, layers: int = 0) -> ScorerSizes:
        """Return the sizes for an observation layout."""
        return cls(layout.slots, layout.candidate_width, layout.global_width, hidden, layers)


#: Attention heads of a layer.
HEADS = 4


class SetLayer(nn.Module):
    """Self-attention over the candidates of a pool, then a network applied to each; both are added to the input.

    Args:
        hidden: Width of the input and of the output.
    """

    def __init__(self, hidden: int) -> None:
        super().__init__()
        self.before_attention, self.before_network = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
        self.attention = nn.MultiheadAttention(hidden, HEADS, batch_first=True)
        self.network = nn.Sequential(nn.Linear(hidden, 2 * hidden), nn.GELU(), nn.Linear(2 * hidden, hidden))

    def forward(self, encoded: Tensor, absent: Tensor) -> Tensor:
        """Return the candidates (B, K, hidden) after the layer; nothing attends to those that are `absent` (B, K)."""
        normal = self.before_attention(encoded)
        encoded = encoded + self.attention(normal, normal, normal, key_padding_mask=absent, need_weights=False)[0]
        after: Tensor = encoded + self.network(self.before_network(encoded))
        return after


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
        self.layers = nn.ModuleList(SetLayer(hidden) for _ in range(sizes.layers))
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
        slots = mask.shape[1] - 1  # any number: the weights do not depend on it
        candidates = flat[:, : slots * sizes.features].reshape(-1, slots, sizes.features)
        situation = flat[:, slots * sizes.features :]
        repeated = situation.unsqueeze(1).expand(-1, slots, -1)
        encoded = self.encode(torch.cat([candidates, repeated], -1))
        legal = mask[:, :-1].unsqueeze(-1)
        if self.layers:
            # Picks are not legal any more, but the others see them. A pool without candidates attends to itself.
            there = (candidates != 0.0).any(-1)
            absent = ~there & there.any(-1, keepdim=True)
            for layer in self.layers:
                encoded = layer(encoded, absent)
            legal = there.unsqueeze(-1).to(encoded.dtype)
        pooled = (encoded * legal).sum(1) / legal.sum(1).clamp(min=1.0)
        summary = torch.cat([pooled, situation], -1)
        scores = torch.cat([self.score(encoded).squeeze(-1), self.generate(summary)], -1)
        return scores, self.value(summary).squeeze(-1)

    def masked(self, observation: Mapping[str, Tensor], illegal: float = ILLEGAL) -> tuple[Tensor, Tensor]:
        """Return the same with `illegal` as the score of illegal actions."""
        scores, values = self(observation)
        return scores.masked_fill(observation["action_mask"] < 0.5, illegal), values

    def check_fits(self, observation: Mapping[str, Tensor]) -> None:
        """Raise a ConfigError if the observation has another layout than the one that the network was trained on."""
        slots, sizes = observation["action_mask"].shape[-1] - 1, self.sizes
        expected, size = slots * sizes.features + sizes.situation, observation["observations"].shape[-1]
        if size != expected:
            raise ConfigError(
                f"the network was trained on observations of {expected} numbers, not {size}: set env.layout to the "
                "version that it was trained with"
            )


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


def weight_names() -> tuple[str, ...]:
    """Return the names of the packaged weights."""
    folder = resources.files("kernel_gym.agents").joinpath("weights")
    files = folder.iterdir() if folder.is_dir() else ()
    return tuple(sorted(file.name.removesuffix(".pt") for file in files if file.name.endswith(".pt")))


def load_weights(name: str) -> CandidateScorer:
    """Return the network with packaged weights, or with those of a file.

    Args:
        name: Name of packaged weights, or a file.

    Returns:
        The network.

    Raises:
        ConfigError: There are no such weights.
    """
    packaged = resources.files("kernel_gym.agents").joinpath("weights", f"{name}.pt")
    if packaged.is_file():
        with resources.as_file(packaged) as file:
            return load(file)
    if not Path(name).is_file():
        raise ConfigError(f"there are no weights {name!r}; packaged: {', '.join(weight_names())}; or name a file")
    return load(Path(name))
