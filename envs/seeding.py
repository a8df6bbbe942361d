"""Make random generators from keys such as (run seed, task, attempt), independent of earlier draws."""

from __future__ import annotations

import hashlib
import json

import numpy as np


def generator(*key: str | int) -> np.random.Generator:
    """Return the random generator of a key, such as (run seed, task, attempt); the same in every process."""
    digest = hashlib.sha256(json.dumps(key).encode()).digest()
    return np.random.default_rng(np.random.SeedSequence(int.from_bytes(digest[:16], "big")))
