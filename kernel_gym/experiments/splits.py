"""The fixed splits of tasks and authors: one half of the tasks and the first authors are for training.

Nothing that is trained or tuned sees the other half. Each half has both levels and all categories in about the same
proportion, because the tasks of a level are dealt out in a random order that never changes.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

import numpy as np

from kernel_gym import suites

Split = Literal["training", "test"]

LEVELS = ("level1", "level2")
#: Numbers of the sampled authors in each split.
AUTHORS: dict[Split, range] = {"training": range(1, 201), "test": range(201, 251)}
#: The profiles that authors are drawn around, in turn.
PROFILES = ("middle", "strong", "weak")


@lru_cache(maxsize=4)
def split_tasks(split: Split) -> tuple[str, ...]:
    """Return the ids of the tasks in a split, sorted."""
    halves: list[str] = []
    for number, level in enumerate(LEVELS):
        names = sorted(task.id for task in suites.load_suite(level))
        order = np.random.default_rng([20240607, number]).permutation(len(names))
        halves += [names[i] for i in order[int(split == "test") :: 2]]
    return tuple(sorted(halves))


def author(number: int) -> str:
    """Return the profile of an author by its number: a draw around one of three profiles."""
    return f"{PROFILES[number % len(PROFILES)]}~{number}"
