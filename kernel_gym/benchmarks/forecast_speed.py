"""Measures the speed of the forecast environment, in attempts per second of processor time on one core.

Picks are random, on the tasks of the suite `level1`. All observations and infos are made, as in training.
"""

from __future__ import annotations

from time import process_time

import numpy as np

from kernel_gym.envs.forecast.environment import ForecastVectorEnv


def benchmark(batches: tuple[int, ...] = (1, 16, 128), attempts: int = 3840) -> dict[str, float]:
    """Measure attempts per second for several numbers of simultaneous tasks.

    Args:
        batches: Numbers of simultaneous tasks.
        attempts: The most attempts of a measurement. The fastest of three measurements counts.

    Returns:
        Attempts per second by name.
    """
    for count in batches:  # writes and reads the kernels once; a long run has read nearly all of them
        rate(count, min(attempts, 300 * count))
    return {
        f"forecast_attempts_per_second_of_{count}": max(rate(count, min(attempts, 300 * count)) for _ in range(3))
        for count in batches
    }


def rate(count: int, attempts: int) -> float:
    """Return attempts per second with `count` simultaneous tasks, starting from the seed knowledge."""
    envs, rng, done = ForecastVectorEnv(count), np.random.default_rng(0), 0
    observations, _ = envs.reset(seed=0)
    started = process_time()
    while done < attempts:
        actions = (rng.random(observations["action_mask"].shape) * observations["action_mask"]).argmax(axis=1)
        observations, *_, infos = envs.step(actions)
        done += count * ("attempt" in infos)
    return done / (process_time() - started)
