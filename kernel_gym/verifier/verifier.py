"""The verifier: takes a kernel and a task and returns a verdict.

It adds to the gates (`gates.py`) what does not depend on one kernel: who may run here, a cache of verdicts and several
devices side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from typing import TypeAlias

from kernel_gym.errors import ConfigError, DeviceUnavailable, InfrastructureError, TaskError
from kernel_gym.hardware.device import Device, PackedBuild
from kernel_gym.hardware.worker_pool import WorkerPool
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import POLICIES, Policy, Unjudged, Verdict
from kernel_gym.verifier.cache import VerdictCache, key_of
from kernel_gym.verifier.gates import Gates
from kernel_gym.verifier.inspection import Inspect
from kernel_gym.verifier.secret import fingerprint, secret_for

#: Sandbox tiers at which untrusted kernels may run.
TRUSTWORTHY = ("A", "B")
#: Largest tensors, in bytes, on which a kernel is checked many times.
CHECKED_BYTES = 32 << 20

Pair: TypeAlias = tuple[Kernel, Task]
#: A kernel, its task and, if it was compiled on another machine, its build.
Request: TypeAlias = tuple[Kernel, Task, PackedBuild | None]


class Verifier:
    """Judges kernels on a device: source screen, compilation, binary screen, correctness, latency.

    The verifier owns the device: closing the verifier closes it. Use it as a context manager.

    Args:
        device: The device that builds and runs kernels.
        cache: True for the verdict cache of this machine, False for none, or the folder of a cache.
        inspect: Called for every kernel that passed all gates; its opinion is noted in the verdict.
        unsafe: Let untrusted kernels run although the sandbox of this machine is too weak for them.
        workers: Number of copies of the device that judge in parallel.
        inspection_decides: Let `inspect` refuse a kernel, instead of only noting its opinion.
        secret: What values and hidden sizes are drawn from; None for `KERNEL_GYM_SECRET` or, if that is not set, a
            published secret for kernels of this package and one of this machine for all others.
        policy: `strict`, or `reference`: at the reference's own shapes and inputs with atol = rtol = 1e-2.
    """

    def __init__(
        self,
        device: Device,
        cache: bool | Path | VerdictCache = True,
        inspect: Inspect | None = None,
        unsafe: bool = False,
        workers: int = 1,
        inspection_decides: bool = False,
        secret: bytes | None = None,
        policy: Policy = "strict",
    ) -> None:
        if policy not in POLICIES:
            raise ConfigError(f"policy is one of {', '.join(POLICIES)}, not {policy!r}")
        self.device, self.secret, self.policy = device, secret, policy
        self.cache = cache if isinstance(cache, VerdictCache) else _cache(cache)
        self.unsafe = unsafe
        self._gates = Gates(inspect, inspection_decides, secret, policy)
        self._pool: WorkerPool[Request, Verdict] = WorkerPool(device, self._judge, workers, give_up=self._unjudged)

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Judge one kernel.

        Args:
            kernel: The kernel; its language must be the device's.
            task: The task that the kernel is for.

        Returns:
            The verdict. If the verifier itself fails, it is `Unjudged`.

        Raises:
            ConfigError: If the kernel is written in another language than the device's.
            DeviceUnavailable: If the kernel is untrusted and the sandbox is too weak for it.
            TaskError: If the task cannot be judged by this policy.
        """
        return self.submit(kernel, task).result()

    def verify_all(self, pairs: Sequence[Pair]) -> list[Verdict]:
        """Judge several kernels, in parallel if there are several workers.

        Args:
            pairs: Kernels with their tasks. Equal pairs are judged once.

        Returns:
            The verdicts in the order of the pairs.

        Raises:
            ConfigError: As `verify`.
            DeviceUnavailable: As `verify`.
        """
        futures = {}
        for kernel, task in pairs:
            if (kernel.digest, task.digest) not in futures:
                futures[kernel.digest, task.digest] = self.submit(kernel, task)
        try:
            return [futures[kernel.digest, task.digest].result() for kernel, task in pairs]
        except BaseException:
            for future in futures.values():
                future.cancel()
            raise

    def submit(self, kernel: Kernel, task: Task, packed: PackedBuild | None = None) -> Future[Verdict]:
        """Start judging one kernel and return at once.

        Args:
            kernel: The kernel; its language must be the device's.
            task: The task that the kernel is for.
            packed: The kernel's build, if it was compiled on another machine.

        Returns:
            The future verdict; already done if the verdict is in the cache.

        Raises:
            ConfigError: As `verify`.
            DeviceUnavailable: As `verify`.
        """
        self._admit(kernel)
        self._admit_task(task)
        verdict = self.cache.get(self._key(kernel, task)) if self.cache else None
        if verdict is not None:
            return _done(verdict)
        return self._pool.submit((kernel, task, packed))

    def close(self) -> None:
        """End every process and remove every file of the device and its copies."""
        self._pool.close()

    def __enter__(self) -> Verifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _admit(self, kernel: Kernel) -> None:
        if kernel.language != self.device.language:
            raise ConfigError(f"{self.device.name} runs {self.device.language}, not {kernel.language}")
        if not kernel.trusted and not self.unsafe and self._tier not in TRUSTWORTHY:
            raise DeviceUnavailable(
                f"kernels of others run at sandbox tier A or B only, this machine offers {self._tier}: "
                "see `kernel-gym doctor` for what is missing, or allow it with unsafe=True (--unsafe)"
            )

    def _admit_task(self, task: Task) -> None:
        """Refuse a task that cannot be checked at small sizes and is too large to be checked as it is."""
        if self.policy == "strict" and any(flag.startswith("large:") for flag in task.flags):
            nbytes = task.instance(task.public).signature.nbytes
            if nbytes > CHECKED_BYTES:
                raise TaskError(
                    f"{task.id}: no constant makes its {nbytes >> 20} MB of tensors smaller, which strict checks need; "
                    "judge it by policy reference"
                )

    def _key(self, kernel: Kernel, task: Task) -> str:
        secret = secret_for(kernel) if self.secret is None else self.secret
        return verdict_key(kernel, task, self._context, secret, self.policy, self._gates.identity)

    @cached_property
    def _context(self) -> str:
        return f"{self.device.identity()} {self._tier}"

    @cached_property
    def _tier(self) -> str:
        return self.device.sandbox_tier()

    def _judge(self, device: Device, request: Request) -> Verdict:
        kernel, task, packed = request
        verdict = self._gates.judge(device, kernel, task, packed)
        if self.cache:
            self.cache.put(self._key(kernel, task), verdict)
        return verdict

    def _unjudged(self, error: InfrastructureError) -> Verdict:
        return Unjudged(f"not judged: {error}", self.device.name, self._tier, policy=self.policy)


def verdict_key(kernel: Kernel, task: Task, context: str, secret: bytes, policy: Policy, inspection: str = "") -> str:
    """Return the key of a verdict in the cache.

    Args:
        kernel: The kernel.
        task: Its task.
        context: Identity and sandbox tier of the device.
        secret: What values and hidden sizes are drawn from.
        policy: How the kernel is judged.
        inspection: Identity of the inspection; empty without one.

    Returns:
        The key.
    """
    return key_of(kernel.digest, task.digest, context, fingerprint(secret), policy, inspection)


def _cache(choice: bool | Path) -> VerdictCache | None:
    if choice is False:
        return None
    return VerdictCache(None if choice is True else choice)


def _done(verdict: Verdict) -> Future[Verdict]:
    future: Future[Verdict] = Future()
    future.set_result(verdict)
    return future
