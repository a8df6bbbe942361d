"""Holding a run to its claims: every kernel it kept is judged again, and the verdict compared with the journal's."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from kernel_gym import suites
from kernel_gym.agents.journal import Journal
from kernel_gym.agents.run_folder import RunFolder, load_config
from kernel_gym.agents.training import environment_options
from kernel_gym.envs import parts
from kernel_gym.errors import KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier

#: Latencies of a simulator repeat exactly; a real device is allowed this share of noise.
NOISE = 0.05


@dataclass(frozen=True)
class Claim:
    """A kernel that a run kept as its fastest: what the journal says and what the verifier says now."""

    task: str
    claimed_us: float
    now_us: float | None
    outcome: str

    @property
    def holds(self) -> bool:
        """Feasible, and as fast as claimed."""
        return self.now_us is not None and abs(self.now_us - self.claimed_us) <= NOISE * self.claimed_us


def claims(path: Path, unsafe: bool = False) -> Iterator[Claim]:
    """Judge every best kernel of a run again, without cached verdicts.

    Whoever made the folder, its kernels are kernels of others: `unsafe` lets them run in a weak sandbox.
    """
    folder, config = RunFolder(path), load_config(path)
    fastest = _fastest(folder)
    device = parts.device(environment_options(config, folder))
    with Verifier(device, cache=False, unsafe=unsafe) as verifier:
        for task, claimed in fastest.items():
            kept = path / "best" / f"{task.replace('/', '-')}.cpp"
            if not kept.exists():
                yield Claim(task, claimed, None, f"there is no {kept.name}")
                continue
            kernel = Kernel(kept.read_text(), device.language)
            verdict = verifier.verify(kernel, suites.find(task))
            yield Claim(task, claimed, verdict.latency_us, verdict.outcome)


def _fastest(folder: RunFolder) -> dict[str, float]:
    found: dict[str, float] = {}
    for record in Journal.read(folder.journal):
        latency = record["verdict"]["latency_us"]
        if latency is not None:
            found[record["task"]] = min(latency, found.get(record["task"], latency))
    if not found:
        raise KernelGymError(f"{folder.path} claims no feasible kernel: there is nothing to validate")
    return found
