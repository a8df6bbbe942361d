"""Measures the speed of the forecast environment, in attempts per second.

Picks are random, on the tasks of the suite `level1`. All observations and infos are made, as in training. An
environment uses one core, so that figures for two cores are those of two processes at the same time, by the clock.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from multiprocessing import get_context
from time import perf_counter, process_time

import numpy as np

from kernel_gym.envs.forecast.environment import ForecastVectorEnv


def benchmark(batches: tuple[int, ...] = (1, 16, 128), attempts: int = 3840) -> dict[str, float]:
    """Measure attempts per second for several numbers of simultaneous tasks.

    Args:
        batches: Numbers of simultaneous tasks.
        attempts: The most attempts of a measurement. The fastest of three measurements counts.

    Returns:
        Attempts per second by name: of processor time on one core, and of time on two cores.
    """
    figures = {}
    for count in batches:
        some = min(attempts, 300 * count)
        rate(count, some)  # writes and reads the kernels once; a long run has read nearly all of them
        name = f"forecast_attempts_per_second_of_{count}"
        figures[name] = max(rate(count, some) for _ in range(3))
        figures[f"{name}_on_two_cores"] = max(rate_of_processes(2, count, some) for _ in range(3))
    return figures


def rate(count: int, attempts: int, clock: Callable[[], float] = process_time, seed: int = 0) -> float:
    """Return attempts per second with `count` simultaneous tasks, starting from the seed knowledge."""
    envs, rng, done = ForecastVectorEnv(count), np.random.default_rng(seed), 0
    observations, _ = envs.reset(seed=seed)
    started = clock()
    while done < attempts:
        actions = (rng.random(observations["action_mask"].shape) * observations["action_mask"]).argmax(axis=1)
        observations, *_, infos = envs.step(actions)
        done += count * ("attempt" in infos)
    return done / (clock() - started)


def rate_of_processes(processes: int, count: int, attempts: int) -> float:
    """Return attempts per second of several processes together; they share what this one has read of kernels."""
    with get_context("fork").Pool(processes) as pool:
        rates = pool.map(partial(rate, count, attempts, perf_counter), [0] * processes, chunksize=1)
        pool.close()  # leaving the block would interrupt the processes, which they report
        pool.join()
    return sum(rates)
