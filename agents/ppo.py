"""PPO through RLlib, on the same lock-step environment as everyone else; illegal actions get no probability at all."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from kernel_gym.agents.contract import Info, Observation
from kernel_gym.agents.rllib import RLlibAgent  # first: it says what is missing
from kernel_gym.agents.scoring import ILLEGAL, CandidateScorer, ScorerSizes

from ray.rllib.algorithms.ppo import PPOConfig  # isort: skip
from ray.rllib.core.columns import Columns  # isort: skip
from ray.rllib.core.rl_module.apis.value_function_api import ValueFunctionAPI  # isort: skip
from ray.rllib.core.rl_module.torch.torch_rl_module import TorchRLModule  # isort: skip


class MaskedModule(TorchRLModule, ValueFunctionAPI):  # type: ignore[misc]
    """The scorer as RLlib wants it: scores are logits."""

    def setup(self) -> None:
        """Build the network from `model_config`."""
        self.scorer = CandidateScorer(ScorerSizes(**self.model_config["sizes"]))

    def _forward(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        return {Columns.ACTION_DIST_INPUTS: self.scorer.masked(batch[Columns.OBS])[0]}

    def _forward_train(self, batch: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        logits, values = self.scorer.masked(batch[Columns.OBS])
        return {Columns.ACTION_DIST_INPUTS: logits, Columns.EMBEDDINGS: values}

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Tensor:
        """Values of a batch; the train pass has computed them already."""
        values: Tensor = self.scorer.masked(batch[Columns.OBS])[1] if embeddings is None else embeddings
        return values


class PPOAgent(RLlibAgent):
    """Proximal policy optimisation over picks. Constants are RLlib's but for those below, which suit short budgets."""

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
        ray_address: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(seed, hidden, ray_address, settings)
        self.learning_rate, self.gamma, self.entropy = learning_rate, gamma, entropy
        #: passes over each batch
        self.epochs = epochs
        #: steps of every environment that make one batch: with five picks, about four attempts each
        self.steps_per_batch = steps_per_batch

    def act(self, observation: Observation, info: Info) -> int:
        """An action drawn from the trained policy; a random legal one before training.

        Drawn, not the most probable one: among memories that nothing is known of yet, a policy that always picks the
        same never finds out.
        """
        logits = self.scores(observation, ILLEGAL)
        if logits is None:
            return int(self.rng.choice(observation["action_mask"].nonzero()[0]))
        probabilities = torch.softmax(logits.double(), -1).numpy()
        return int(self.rng.choice(len(probabilities), p=probabilities))

    def module(self) -> type:
        """Scores as logits."""
        return MaskedModule

    def config(self, num_envs: int) -> PPOConfig:
        """A batch is a few attempts of every environment."""
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
