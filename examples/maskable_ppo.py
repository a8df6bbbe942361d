"""Train sb3-contrib's MaskablePPO; its curves are in TensorBoard: tensorboard --logdir runs/maskable-ppo."""

import gymnasium as gym
from sb3_contrib import MaskablePPO

import kernel_gym  # noqa: F401  registers the environments

env = gym.make("kernel_gym/KnownOptimum-v0")
model = MaskablePPO("MultiInputPolicy", env, n_steps=512, gamma=1.0, seed=0, tensorboard_log="runs/maskable-ppo")
model.learn(6144)
model.save("runs/maskable-ppo/model")
returns = [episode["r"] for episode in model.ep_info_buffer]
print(f"mean return of the last {len(returns)} episodes: {sum(returns) / len(returns):.2f}; the best policy gets 1.00")
