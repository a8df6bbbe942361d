"""Play an episode and write it as pictures: a frame as PNG and, with `pip install 'kernel_gym[video]'`, a video."""

import sys
from importlib.util import find_spec

import gymnasium as gym
from PIL import Image

import kernel_gym  # noqa: F401  registers the environments

env = gym.make("kernel_gym/KernelSynthesisForecast-v0", render_mode="rgb_array", tasks=["level1/relu"], budget=12)
if find_spec("moviepy"):
    env = gym.wrappers.RecordVideo(env, "runs/video", episode_trigger=lambda episode: True)
observation, _ = env.reset(seed=0)
env.action_space.seed(0)
frames, done = [env.render()], False
while not done:
    mask = observation["action_mask"].astype("int8")
    mask[-1] = not mask[:-1].any()  # pick as long as there is something to pick
    observation, _, done, _, _ = env.step(env.action_space.sample(mask))
    frames.append(env.render())
env.close()
Image.fromarray(frames[-8]).save(sys.argv[1] if len(sys.argv) > 1 else "frame.png")
