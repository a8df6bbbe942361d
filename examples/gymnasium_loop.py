"""Play one episode with random legal picks: the author writes real kernels, the verifier judges them."""

import gymnasium as gym

import kernel_gym  # noqa: F401  registers the environments

env = gym.make("kernel_gym/KernelSynthesis-v0", suite="basics", budget=2)
observation, info = env.reset(seed=0)
env.action_space.seed(0)
done = False
while not done:
    action = env.action_space.sample(observation["action_mask"].astype("int8"))
    observation, reward, terminated, truncated, info = env.step(action)
    if "attempt" in info:
        print(f"{info['task']}: {info['attempt'].verdict.outcome}, reward {reward:+.2f}")
    done = terminated or truncated
env.close()
