"""Holding a run to its claims: every kernel that its journal calls feasible is judged again.

What counts as solved, when, and how much faster than the first draft rests on all of them, not on the fastest alone.
Sources are those of `kernels/`, of the fastest ones those of `best/`; each must have the digest that the journal names.
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
from kernel_gym.experiments.runs.training import SIMULATED, environment_options
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier

#: Latencies of a simulator repeat exactly; a real device is allowed this share of noise.
NOISE = 0.05


@dataclass(frozen=True)
class Claim:
    """A kernel that the journal calls feasible: what it says, and what the verifier says now.

    `attempts` came to it, `best` is the fastest of its task, `noise` the share by which latencies may differ.
    """

    task: str
    kernel: str
    claimed_us: float
    attempts: int = 1
    best: bool = False
    noise: float = 0.0
    now_us: float | None = None
    #: what the verifier says now; empty if the run has not kept the kernel that its journal names
    outcome: str = ""

    @property
    def holds(self) -> bool:
        """Feasible, and as fast as claimed."""
        return self.now_us is not None and abs(self.now_us - self.claimed_us) <= self.noise * self.claimed_us

    @property
    def word(self) -> str:
        """How the claim stands."""
        if not self.outcome:
            return "cannot be checked (its source was not kept)"
        return "holds" if self.holds else f"does not hold ({self.outcome})"


def claims(path: Path, unsafe: bool = False, best: bool = False, workers: int = 1) -> Iterator[Claim]:
    """Judge every feasible kernel of a run again, without cached verdicts; with `best` the fastest of each task alone.

    Whoever made the folder, its kernels are kernels of others: `unsafe` lets them run in a weak sandbox.
    """
    folder, config = RunFolder(path), load_config(path)
    claimed = [claim for claim in _claimed(folder) if claim.best or not best]
    options = environment_options(config, folder)
    device, tasks = factories.device(options), _tasks(options, claimed)
    noise = 0.0 if config.env.device in SIMULATED else NOISE
    with Verifier(device, cache=False, unsafe=unsafe, workers=workers) as verifier:
        kernels = _kernels(folder, claimed, device.language)
        verdicts = {i: verifier.submit(kernel, tasks[claimed[i].task]) for i, kernel in kernels.items()}
        for i, claim in enumerate(claimed):
            if i not in verdicts:
                yield claim
                continue
            verdict = verdicts[i].result()
            yield replace(claim, noise=noise, now_us=verdict.latency_us, outcome=verdict.outcome)


def _claimed(folder: RunFolder) -> list[Claim]:
    """The feasible kernels of the journal, each once, in the order in which they were found."""
    found: dict[tuple[str, str, float], Claim] = {}
    for record in Journal.read(folder.journal):
        if (latency := record["verdict"]["latency_us"]) is not None:
            key = (record["task"], record["kernel"], latency)
            found[key] = replace(found[key], attempts=found[key].attempts + 1) if key in found else Claim(*key)
    if not found:
        raise KernelGymError(f"{folder.path} claims no feasible kernel: there is nothing to validate")
    fastest: dict[str, Claim] = {}
    for claim in found.values():
        if claim.task not in fastest or claim.claimed_us < fastest[claim.task].claimed_us:
            fastest[claim.task] = claim
    return [replace(claim, best=claim is fastest[claim.task]) for claim in found.values()]


def _tasks(options: Options, claimed: Sequence[Claim]) -> dict[str, Task]:
    own = {task.id: task for task in factories.tasks(options)}
    return {name: own.get(name) or suites.find_task(name) for name in {claim.task for claim in claimed}}


def _kernels(folder: RunFolder, claimed: Sequence[Claim], language: str) -> dict[int, Kernel]:
    """The kernels by claim, as far as the run kept them as they were."""
    found: dict[int, Kernel] = {}
    for i, claim in enumerate(claimed):
        kept = folder.best(claim.task) if claim.best else folder.kernel(claim.kernel)
        if kept.exists() and (kernel := Kernel(kept.read_text(), language)).digest == claim.kernel:
            found[i] = kernel
    return found
