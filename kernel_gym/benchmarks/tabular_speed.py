"""Measures the speed of the tabular environment, in attempts per second of processor time on one core.

Picks are random. All observations and infos are made, as in training.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from kernel_gym.envs.tabular.environment import TabularVectorEnv


def benchmark(batches: tuple[int, ...] = (1, 16, 128), attempts: int = 6000) -> dict[str, float]:
    """Measure attempts per second for several numbers of simultaneous tasks.

    Args:
        batches: Numbers of simultaneous tasks.
        attempts: The most attempts of a measurement. The fastest of three measurements counts.

    Returns:
        Attempts per second by name.
    """
    rate(64, attempts)  # fills the author's caches, as in a long run
    return {
        f"tabular_attempts_per_second_of_{count}": max(rate(count, min(attempts, 1000 * count)) for _ in range(3))
        for count in batches
    }


def rate(count: int, attempts: int) -> float:
    """Return attempts per second with `count` simultaneous tasks, starting from the seed knowledge."""
    envs, rng, done = TabularVectorEnv(count), np.random.default_rng(0), 0
    observations, _ = envs.reset(seed=0)
    started = process_time()
    while done < attempts:
        actions = (rng.random(observations["action_mask"].shape) * observations["action_mask"]).argmax(axis=1)
        observations, *_, infos = envs.step(actions)
        done += count * ("attempt" in infos)
    return done / (process_time() - started)
