"""Random generators that depend only on names and numbers, never on what happened before."""

from __future__ import annotations

import hashlib
import json

import numpy as np


def generator(*key: str | int) -> np.random.Generator:
    """Return the random generator of a key, such as (run seed, task, attempt); the same in every process."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest[:16], "big")))
