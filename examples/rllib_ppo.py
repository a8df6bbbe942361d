"""Train RLlib's PPO with a network that knows the action mask, and print the mean return of each iteration."""

import gymnasium as gym
from ray.rllib.algorithms.ppo import PPOConfig
from ray.rllib.core.rl_module.rl_module import RLModuleSpec
from ray.tune.registry import register_env

import kernel_gym  # noqa: F401  registers the environments
from kernel_gym.agents.ppo import MaskedModule
from kernel_gym.agents.scoring import ScorerSizes
from kernel_gym.envs.observation import Layout

register_env("known-optimum", lambda options: gym.make("kernel_gym/KnownOptimum-v0", **options))
#: The environment has 12 candidates; the network is 64 wide.
sizes = ScorerSizes.of(Layout(12), 64)
config = (
    PPOConfig()
    .environment("known-optimum", env_config={"budget": 10})
    .env_runners(num_env_runners=0)
    .training(train_batch_size_per_learner=512, minibatch_size=128, num_epochs=10, lr=1e-3, gamma=1.0)
    .rl_module(rl_module_spec=RLModuleSpec(MaskedModule, model_config={"sizes": vars(sizes)}))
    .debugging(seed=0)
)
algorithm = config.build_algo()
for iteration in range(1, 7):
    result = algorithm.train()["env_runners"]
    print(f"iteration {iteration}: mean return {result['episode_return_mean']:.2f}; the best policy gets 1.00")
algorithm.stop()
