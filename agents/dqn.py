"""DQN through RLlib, on the same lock-step environment as everyone else; illegal actions have a value of -inf.

Double Q-learning from prioritised replay; RLlib's own exploration and loss leave actions of value -inf alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from kernel_gym.agents.contract import Info, MakeEnv, Observation
from kernel_gym.agents.rllib import RLlibAgent  # first: it says what is missing
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes

from ray.rllib.algorithms.algorithm import Algorithm  # isort: skip
from ray.rllib.algorithms.dqn import DQNConfig  # isort: skip
from ray.rllib.algorithms.dqn.default_dqn_rl_module import QF_PREDS  # isort: skip
from ray.rllib.algorithms.dqn.torch.default_dqn_torch_rl_module import DefaultDQNTorchRLModule  # isort: skip
from ray.rllib.core.columns import Columns  # isort: skip
from ray.rllib.core.learner.utils import make_target_network  # isort: skip
from ray.rllib.core.distribution.torch.torch_distribution import TorchCategorical  # isort: skip
from ray.rllib.utils.schedules.scheduler import Scheduler  # isort: skip


class MaskedQModule(DefaultDQNTorchRLModule):  # type: ignore[misc]
    """The scorer as RLlib wants it: scores are values of actions. Encoders and heads of RLlib's own are not built."""

    def setup(self) -> None:
        """Build the network from `model_config`."""
        self.uses_dueling, self.uses_double_q, self.num_atoms = False, self.model_config["double_q"], 1
        self.epsilon_schedule = Scheduler(fixed_value_or_schedule=self.model_config["epsilon"], framework="torch")
        self.action_dist_cls = TorchCategorical
        self.scorer = CandidateScorer(ScorerSizes(**self.model_config["sizes"]))

    def get_non_inference_attributes(self) -> list[str]:
        """What acting does not need."""
        return ["_target_scorer"]

    def make_target_networks(self) -> None:
        """A copy that follows slowly."""
        self._target_scorer = make_target_network(self.scorer)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Take weights; if they are those of a policy alone, the copy begins with them instead of at random."""
        super().set_state(state)
        if hasattr(self, "_target_scorer") and not any(name.startswith("_target_scorer") for name in state):
            self._target_scorer.load_state_dict(self.scorer.state_dict())

    def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
        """What follows what."""
        return [(self.scorer, self._target_scorer)]

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The value of every legal action."""
        return {QF_PREDS: self.scorer.masked(batch[Columns.OBS], -inf)[0]}

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """The same by the network that follows."""
        return {QF_PREDS: self._target_scorer.masked(batch[Columns.OBS], -inf)[0]}

    def get_initial_state(self) -> dict[str, Any]:
        """It remembers nothing."""
        return {}


class DQNAgent(RLlibAgent):
    """Deep Q-learning over picks. Constants are RLlib's but for those below, which suit short budgets."""

    file = "dqn.pt"

    def __init__(
        self,
        seed: int = 0,
        hidden: int = 64,
        learning_rate: float = 3e-4,
        gamma: float = 0.95,
        n_step: int = 1,
        epsilon: float = 0.1,
        explored_steps: int = 1500,
        intensity: float = 8.0,
        steps_per_report: int = 24,
        ray_address: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(seed, hidden, ray_address, settings)
        self.learning_rate, self.gamma = learning_rate, gamma
        #: rewards looked ahead before the value of what follows is trusted; more than one unlearned the known optimum
        self.n_step = n_step
        #: exploration falls from 1 to `epsilon` within `explored_steps` steps
        self.epsilon, self.explored_steps = epsilon, explored_steps
        #: how often every step is learned from
        self.intensity = intensity
        self.steps_per_report = steps_per_report

    def act(self, observation: Observation, info: Info) -> int:
        """The action of the highest value, with a little exploration left; a random legal one before training."""
        values = self.scores(observation, -inf)
        if values is None or self.rng.random() < self.epsilon:
            return int(self.rng.choice(observation["action_mask"].nonzero()[0]))
        return int(values.argmax())

    def module(self) -> type:
        """Scores as values."""
        return MaskedQModule

    def config(self, num_envs: int) -> DQNConfig:
        """One step of every environment at a time, then updates from replay."""
        return (
            DQNConfig()
            .training(
                lr=self.learning_rate,
                gamma=self.gamma,
                n_step=self.n_step,
                epsilon=[(0, 1.0), (self.explored_steps, self.epsilon)],
                dueling=False,
                double_q=True,
                num_atoms=1,
                train_batch_size_per_learner=64,
                training_intensity=self.intensity,
                target_network_update_freq=500,
                num_steps_sampled_before_learning_starts=200,
                replay_buffer_config={"type": "PrioritizedEpisodeReplayBuffer", "capacity": 50_000},
            )
            .reporting(min_sample_timesteps_per_iteration=self.steps_per_report * num_envs, min_time_s_per_iteration=0)
        )

    def _build(self, make_env: MakeEnv) -> Algorithm:
        algorithm = super()._build(make_env)
        # RLlib seeds everything but what is drawn from replay.
        algorithm.local_replay_buffer.rng = np.random.default_rng(self.seed)
        return algorithm
