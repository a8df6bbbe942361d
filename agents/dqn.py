"""Show the author what a policy trained with DQN picks (RLlib).

Algorithm: RLlib's double Q-learning from prioritised replay on the lock-step environment that all agents share, with
the network of `scoring.py`. Illegal actions have the value -inf, which RLlib's exploration and loss ignore. Options of
`DQNAgent`: constants of the algorithm, the network's width, the address of a Ray cluster, and `settings` for everything
else that RLlib takes.
"""

from __future__ import annotations

from collections.abc import Mapping
from math import inf
from typing import Any

import numpy as np

from kernel_gym.agents.contract import Info, MakeEnv, Observation
from kernel_gym.agents.rllib import Credit, RLlibAgent  # first: its error says which extra is missing
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
    """The scorer as an RLModule: scores are values of actions. RLlib's own encoders and heads are not built."""

    def setup(self) -> None:
        """Build the network from `model_config`."""
        self.uses_dueling, self.uses_double_q, self.num_atoms = False, self.model_config["double_q"], 1
        self.epsilon_schedule = Scheduler(fixed_value_or_schedule=self.model_config["epsilon"], framework="torch")
        self.action_dist_cls = TorchCategorical
        self.scorer = CandidateScorer(ScorerSizes(**self.model_config["sizes"]))

    def get_non_inference_attributes(self) -> list[str]:
        """Return the names of attributes that acting does not need."""
        return ["_target_scorer"]

    def make_target_networks(self) -> None:
        """Make the target network."""
        self._target_scorer = make_target_network(self.scorer)

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Set the weights; a target network without weights of its own gets those of the scorer."""
        super().set_state(state)
        if hasattr(self, "_target_scorer") and not any(name.startswith("_target_scorer") for name in state):
            self._target_scorer.load_state_dict(self.scorer.state_dict())

    def get_target_network_pairs(self) -> list[tuple[Any, Any]]:
        """Return the scorer with its target network."""
        return [(self.scorer, self._target_scorer)]

    def compute_q_values(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the values of actions, -inf for illegal ones."""
        return {QF_PREDS: self.scorer.masked(batch[Columns.OBS], -inf)[0]}

    def forward_target(self, batch: dict[str, Any]) -> dict[str, Any]:
        """Return the target network's values of actions, -inf for illegal ones."""
        return {QF_PREDS: self._target_scorer.masked(batch[Columns.OBS], -inf)[0]}

    def get_initial_state(self) -> dict[str, Any]:
        """Return no state: the network is not recurrent."""
        return {}


class DQNAgent(RLlibAgent):
    """Deep Q-learning over picks, trained by RLlib.

    Constants are RLlib's except for the defaults below, which suit short budgets.

    Args:
        seed: Seed of training and of exploration in `act`.
        hidden: Width of the network's hidden layers.
        learning_rate: Learning rate.
        gamma: Discount of rewards per step.
        n_step: Rewards summed before the value of the next state is used. More than one did not keep the known optimum.
        epsilon: Final probability of a random action.
        explored_steps: Steps in which that probability falls from 1 to `epsilon`.
        intensity: How often every step is used in training.
        steps_per_report: Steps of every environment between two log entries.
        credit: `attempt`: a pick is credited with the reward of its attempt; `episode`: with all rewards until the end
            of its task, discounted.
        layers: Layers of self-attention over the candidates.
        weights: Packaged weights, or a file of `kernel-gym pretrain`, to train on from; empty: random ones.
        ray_address: Address of a Ray cluster to train on; empty for a local Ray.
        settings: More arguments for RLlib's `training(...)`.
    """

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
        credit: Credit = "attempt",
        layers: int = 0,
        weights: str = "",
        ray_address: str = "",
        settings: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(seed, hidden, ray_address, settings, credit, layers, weights)
        self.learning_rate, self.gamma, self.n_step = learning_rate, gamma, n_step
        self.epsilon, self.explored_steps = epsilon, explored_steps
        self.intensity, self.steps_per_report = intensity, steps_per_report

    def act(self, observation: Observation, info: Info) -> int:
        """Return the action with the highest value; with probability `epsilon`, or untrained, a random legal one."""
        values = self.scores(observation, -inf)
        if values is None or self.rng.random() < self.epsilon:
            return int(self.rng.choice(observation["action_mask"].nonzero()[0]))
        return int(values.argmax())

    def module(self) -> type:
        """Return the module class whose scores are values."""
        return MaskedQModule

    def config(self, num_envs: int) -> DQNConfig:
        """Return the algorithm; every environment makes one step, then the network is updated from replay."""
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
        # RLlib does not seed the replay buffer.
        algorithm.local_replay_buffer.rng = np.random.default_rng(self.seed)
        return algorithm
