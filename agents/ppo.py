"""Show the author what a policy trained with PPO picks (RLlib).

Algorithm: RLlib's proximal policy optimisation on the lock-step environment that all agents share, with the network of
`scoring.py`. Illegal actions have probability zero. Options of `PPOAgent`: constants of the algorithm, the network's
width, the address of a Ray cluster, and `settings` for everything else that RLlib takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.rllib import Credit, RLlibAgent  # first: its error says which extra is missing
from kernel_gym.agents.scoring import ILLEGAL, CandidateScorer, ScorerSizes

from ray.rllib.algorithms.ppo import PPOConfig  # isort: skip
from ray.rllib.core.columns import Columns  # isort: skip
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI  # isort: skip
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule  # isort: skip


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """The scorer as an RLModule: scores are logits."""

    def setup(self) -> None:
        """Build the network from `model_config`."""
        self.scorer = CandidateScorer(ScorerSizes(**self.model_config["sizes"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.scorer.masked(batch[Columns.OBS])[0]}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, values = self.scorer.masked(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Return the values of a batch; in training the forward pass has computed them already."""
        values: Tensor = self.scorer.masked(batch[Columns.OBS])[1] if embeddings is None else embeddings
        return values


class PPOAgent(RLlibAgent):
    """Proximal policy optimisation over picks, trained by RLlib.

    Constants are RLlib's except for the defaults below, which suit short budgets.

    Args:
        seed: Seed of training and of the draws in `act`.
        hidden: Width of the network's hidden layers.
        learning_rate: Learning rate.
        gamma: Discount of rewards per step.
        entropy: Coefficient of the entropy bonus.
        epochs: Passes over each batch.
        steps_per_batch: Steps of every environment in one batch; with five picks, about four attempts each.
        credit: `attempt`: a pick is credited with the reward of its attempt; `episode`: with all rewards until the end
            of its task, discounted.
        layers: Layers of self-attention over the candidates.
        weights: Packaged weights, or a file of `kernel-gym pretrain`, to train on from; empty: random ones.
        ray_address: Address of a Ray cluster to train on; empty for a local Ray.
        settings: More arguments for RLlib's `training(...)`.
    """

    file = "ppo.pt"

    def __init__(
        self,
        seed: int = 0,
        hidden: int = 64,
        learning_rate: float = 1e-3,
        gamma: float = 1.0,
        entropy: float = 0.01,
        epochs: int = 8,
        steps_per_batch: int = 24,
        credit: Credit = "attempt",
        layers: int = 0,
        weights: str = "",
        ray_address: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(seed, hidden, ray_address, settings, credit, layers, weights)
        self.learning_rate, self.gamma, self.entropy = learning_rate, gamma, entropy
        self.epochs, self.steps_per_batch = epochs, steps_per_batch

    def act(self, observation: Observation, info: Info) -> int:
        """Return an action drawn from the trained policy; a random legal one before training.

        The most probable action would never try memories about which nothing is known yet.
        """
        logits = self.scores(observation, ILLEGAL)
        if logits is None:
            return int(self.rng.choice(observation["action_mask"].nonzero()[0]))
        probabilities = torch.softmax(logits.double(), -1).numpy()
        return int(self.rng.choice(len(probabilities), p=probabilities))

    def module(self) -> type:
        """Return the module class whose scores are logits."""
        return MaskedModule

    def config(self, num_envs: int) -> PPOConfig:
        """Return the algorithm; a batch is a few attempts of every environment."""
        batch = self.steps_per_batch * num_envs
        return PPOConfig().training(
            train_batch_size_per_learner=batch,
            minibatch_size=min(batch, 128),
            num_epochs=self.epochs,
            lr=self.learning_rate,
            gamma=self.gamma,
            entropy_coeff=self.entropy,
            use_kl_loss=False,
        )
