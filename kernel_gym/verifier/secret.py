"""The verifier's secret, from which value sets are drawn: unknown to authors, the same at every repetition.

The secret is a random file of this machine, readable by its owner only. Numbers in a verdict's feedback may therefore
differ between machines; outcomes do not, except for kernels at the edge of a tolerance. Set `KERNEL_GYM_SECRET` to
share a secret between machines, for instance to reproduce a run bit for bit.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from functools import lru_cache
from pathlib import Path

import numpy as np

from kernel_gym.disk_cache import cache_folder

ENVIRONMENT = "KERNEL_GYM_SECRET"


def secret() -> bytes:
    """Return the secret of this machine; it is created on first use."""
    shared = os.environ.get(ENVIRONMENT)
    return shared.encode() if shared else _of_file(cache_folder() / "secret")


@lru_cache
def _of_file(path: Path) -> bytes:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"secret.{os.getpid()}.{secrets.token_hex(4)}")
    if not path.exists():
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
            file.write(secrets.token_bytes(32))
        try:
            os.link(fresh, path)  # unlike a rename it never replaces the secret that another process made meanwhile
        except FileExistsError:
            pass
        finally:
            fresh.unlink()
    return path.read_bytes()


def keyed_hash(*parts: object) -> int:
    """Return a number that only a holder of the secret can compute from `parts`."""
    return int.from_bytes(hmac.digest(secret(), repr(parts).encode(), "sha256")[:16], "big")


def generator(*parts: object) -> np.random.Generator:
    """Return a random generator derived from the secret and `parts`."""
    return np.random.default_rng(keyed_hash(*parts))


def fingerprint() -> str:
    """Return a digest that identifies the secret without revealing it."""
    return hashlib.sha256(b"fingerprint" + secret()).hexdigest()[:16]
