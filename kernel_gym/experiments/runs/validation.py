"""Validate a run: verify every kernel again that its journal calls feasible.

The solve curve and the speedups rest on all feasible kernels, not on the fastest alone. Sources are read from
`kernels/`, those of the fastest from `best/`; each must have the digest that the journal names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kernel_gym import suites
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.run_plan import SIMULATED_DEVICES, environment_options
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.secret import fingerprint, known_secrets

#: Fraction by which a latency of a real device may differ; latencies of a simulator repeat exactly.
NOISE = 0.05


@dataclass(frozen=True)
class Claim:
    """A kernel that the journal calls feasible, with the recorded latency and the verifier's new verdict.

    Attributes:
        task: The task's id.
        kernel: The kernel's digest.
        claimed_us: The latency in the journal.
        attempts: The number of attempts that produced this kernel.
        best: Whether it is the fastest kernel of its task.
        noise: The fraction by which latencies may differ.
        now_us: The latency measured now; None if the kernel is not feasible.
        outcome: The outcome of the new verdict; empty if the run has not kept the kernel.
        secret: Fingerprint of the secret that the kernel was judged with; empty in journals of 0.1.0.
    """

    task: str
    kernel: str
    claimed_us: float
    attempts: int = 1
    best: bool = False
    noise: float = 0.0
    now_us: float | None = None
    outcome: str = ""
    secret: str = ""

    @property
    def holds(self) -> bool:
        """Whether the kernel is feasible and as fast as claimed."""
        return self.now_us is not None and abs(self.now_us - self.claimed_us) <= self.noise * self.claimed_us

    @property
    def word(self) -> str:
        """The result in words."""
        if not self.outcome:
            return "cannot be checked (its source was not kept)"
        return "holds" if self.holds else f"does not hold ({self.outcome})"


def claims(path: Path, unsafe: bool = False, best: bool = False, workers: int = 1) -> Iterator[Claim]:
    """Verify every feasible kernel of a run again, without cached verdicts.

    Args:
        path: The run folder.
        unsafe: Whether kernels may run in a weak sandbox. The folder may come from elsewhere, so its kernels are not
            trusted.
        best: Whether to check the fastest kernel of each task alone.
        workers: The number of verifications at a time.

    Yields:
        Each claim with the new verdict, in the order of the journal.

    Raises:
        KernelGymError: The folder holds no run, or its journal has no feasible kernel.
    """
    folder, config = RunFolder(path), load_config(path)
    claimed = [claim for claim in _read_claims(folder) if claim.best or not best]
    options = environment_options(config, folder)
    device, tasks = factories.device(options), _tasks(options, claimed)
    noise = 0.0 if config.env.device in SIMULATED_DEVICES else NOISE
    secret = _secret({claim.secret for claim in claimed} - {""})
    with Verifier(
        device, cache=False, unsafe=unsafe, workers=workers, secret=secret, policy=config.env.policy
    ) as verifier:
        kernels = _kernels(folder, claimed, device.language)
        verdicts = {i: verifier.submit(kernel, tasks[claimed[i].task]) for i, kernel in kernels.items()}
        for i, claim in enumerate(claimed):
            if i not in verdicts:
                yield claim
                continue
            verdict = verdicts[i].result()
            yield replace(claim, noise=noise, now_us=verdict.latency_us, outcome=verdict.outcome)


def _secret(fingerprints: set[str]) -> bytes | None:
    """Return the secret that a run was judged with; None for a journal of 0.1.0, which does not name it."""
    by_fingerprint = {fingerprint(secret): secret for secret in known_secrets()}
    if unknown := fingerprints - set(by_fingerprint):
        names = ", ".join(sorted(unknown))
        raise KernelGymError(f"the run was judged with another secret ({names}): set KERNEL_GYM_SECRET to it")
    return by_fingerprint[min(fingerprints)] if fingerprints else None


def _read_claims(folder: RunFolder) -> list[Claim]:
    """Return the feasible kernels of the journal, each once, in the order of their first attempts."""
    by_kernel: dict[tuple[str, str, float], Claim] = {}
    for record in Journal.read(folder.journal):
        if (latency := record["verdict"]["latency_us"]) is not None:
            key = (record["task"], record["kernel"], latency)
            by_kernel[key] = (
                replace(by_kernel[key], attempts=by_kernel[key].attempts + 1)
                if key in by_kernel
                else Claim(*key, secret=record["verdict"].get("secret", ""))
            )
    if not by_kernel:
        raise KernelGymError(f"{folder.path} claims no feasible kernel: there is nothing to validate")
    fastest: dict[str, Claim] = {}
    for claim in by_kernel.values():
        if claim.task not in fastest or claim.claimed_us < fastest[claim.task].claimed_us:
            fastest[claim.task] = claim
    return [replace(claim, best=claim is fastest[claim.task]) for claim in by_kernel.values()]


def _tasks(options: Options, claimed: Sequence[Claim]) -> dict[str, Task]:
    own = {task.id: task for task in factories.tasks(options)}
    return {name: own.get(name) or suites.find_task(name) for name in {claim.task for claim in claimed}}


def _kernels(folder: RunFolder, claimed: Sequence[Claim], language: str) -> dict[int, Kernel]:
    """Return the kernels by the index of their claim, as far as the run kept them unchanged."""
    kernels: dict[int, Kernel] = {}
    for i, claim in enumerate(claimed):
        file = folder.best(claim.task) if claim.best else folder.kernel(claim.kernel)
        if file.exists() and (kernel := Kernel(file.read_text(), language)).digest == claim.kernel:
            kernels[i] = kernel
    return kernels
