"""The verifier's secret, and the seeds of all that a kernel meets: values, hidden sizes, uninitialised variables.

All of it derives from a keyed hash of secret, task and kernel text (`Seeds`): every new kernel meets new values at new
sizes, and the same kernel always meets the same. Which secret is the key:

1. `KERNEL_GYM_SECRET`, if it is set. Studies and leaderboards set it and publish it when they are over.
2. Else `PUBLISHED`, for kernels that this package wrote: the apprentice is no adversary, and runs with it give the
   same results on every machine.
3. Else a random file in the user's cache folder, readable by its owner only, for kernels of models and people.
"""

from __future__ import annotations

import hashlib
import hmac
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

from kernel_gym.disk_cache import cache_folder
from kernel_gym.hardware.device import Array
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task

ENVIRONMENT = "KERNEL_GYM_SECRET"
#: The secret of kernels that this package wrote.
PUBLISHED = b"kernel-gym"
#: Elements of each input from which the key of uninitialised variables is derived.
KEY_ELEMENTS = 16384


def secret_for(kernel: Kernel) -> bytes:
    """Return the secret that a kernel is judged with; this machine's is created on first use."""
    shared = os.environ.get(ENVIRONMENT)
    if shared:
        return shared.encode()
    return PUBLISHED if kernel.trusted else _of_file(cache_folder() / "secret")


def known_secrets() -> list[bytes]:
    """Return the secrets that kernels are judged with on this machine, as it is set up."""
    return list(dict.fromkeys((secret_for(Kernel("")), secret_for(Kernel("", trusted=True)), PUBLISHED)))


def fingerprint(secret: bytes) -> str:
    """Return a digest that identifies a secret without revealing it; every verdict names it."""
    return hashlib.sha256(b"fingerprint" + secret).hexdigest()[:16]


@dataclass(frozen=True)
class Seeds:
    """The seeds of one kernel that is judged for one task. Only a holder of the secret can compute them.

    Args:
        secret: The key of the hash.
        task: The task's digest.
        kernel: The kernel's digest; empty for what all kernels of the task share.
    """

    secret: bytes
    task: str
    kernel: str = ""

    @classmethod
    def of(cls, kernel: Kernel, task: Task, secret: bytes | None = None) -> Seeds:
        """Return the seeds of a kernel, with its usual secret unless another is given."""
        return cls(secret_for(kernel) if secret is None else secret, task.digest, kernel.digest)

    @property
    def shared(self) -> Seeds:
        """The seeds of what all kernels of the task share."""
        return Seeds(self.secret, self.task)

    def integer(self, *purpose: object) -> int:
        """Return the seed for one purpose, named by numbers and words: a whole number of 128 bits."""
        message = repr((self.task, self.kernel, *purpose)).encode()
        return int.from_bytes(hmac.digest(self.secret, message, "sha256")[:16], "big")

    def variables(self, values: Iterable[Array]) -> int:
        """Return the key that determines the contents of uninitialised variables in a run on these inputs."""
        digest = hashlib.sha256()
        for value in values:
            digest.update(value.flat[:KEY_ELEMENTS].tobytes())
        return self.integer("variables", digest.hexdigest())

    def generator(self, *purpose: object) -> np.random.Generator:
        """Return the random generator for one purpose."""
        return np.random.default_rng(self.integer(*purpose))


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
