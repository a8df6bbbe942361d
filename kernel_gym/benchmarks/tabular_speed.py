"""How fast the tabular environment is: figures for `make bench`."""

from __future__ import annotations

from time import process_time

import numpy as np

from kernel_gym.envs.tabular.environment import TabularVectorEnv


def benchmark(batches: tuple[int, ...] = (1, 16, 128), attempts: int = 6000) -> dict[str, float]:
    """Attempts a second of one core, by tasks worked on at once; picks are random, all observations and infos made.

    Processor time, the best of three: other processes only ever add to it.
    """
    rate(64, attempts)  # the author remembers what its decisions led to; long runs meet few new ones
    return {
        f"tabular_attempts_per_second_of_{count}": max(rate(count, min(attempts, 1000 * count)) for _ in range(3))
        for count in batches
    }


def rate(count: int, attempts: int) -> float:
    """Attempts a second with so many tasks at once, beginning with the seed knowledge alone."""
    envs, rng, done = TabularVectorEnv(count), np.random.default_rng(0), 0
    seen, _ = envs.reset(seed=0)
    started = process_time()
    while done < attempts:
        actions = (rng.random(seen["action_mask"].shape) * seen["action_mask"]).argmax(axis=1)
        seen, *_, infos = envs.step(actions)
        done += count * ("attempt" in infos)
    return done / (process_time() - started)
