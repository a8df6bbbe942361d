"""An agent, an author, an embedder and a device, each as short as can be."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.contract import Agent, Info, Observation
from kernel_gym.authors.apprentice import Unsupported, oracle
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task


class Newest(Agent):
    """Shows the newest memories, whatever they are."""

    def act(self, observation: Observation, info: Info) -> int:
        """The legal candidate with the highest id."""
        legal = np.flatnonzero(observation["action_mask"])
        candidates = [int(slot) for slot in legal if slot < len(info["candidates"])]
        return max(candidates, key=lambda slot: info["candidates"][slot].id) if candidates else int(legal[-1])


class Fluent:
    """Needs no memory: hands in the best kernel it knows of. `sign` is written above it."""

    language = "ascendc"

    def __init__(self, sign: str = "written without looking") -> None:
        self.sign = sign

    def identity(self) -> str:
        """Changes with the sign."""
        return f"fluent {self.sign}"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """The oracle's kernel, signed; nothing for a task that has none."""
        try:
            return Kernel(f"// {self.sign}\n{oracle(task).source}", self.language)
        except Unsupported:
            return Kernel("", self.language)


class Letters:
    """Counts pairs of letters: crude, and without any dependency."""

    dimension = 26 * 26

    def identity(self) -> str:
        """It has no settings."""
        return "letters"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """One unit row a text; an empty text is all zeros."""
        return np.stack([self._row(text.lower()) for text in texts]) if texts else np.zeros((0, 676), np.float32)

    def _row(self, text: str) -> NDArray[np.float32]:
        row = np.zeros(self.dimension, np.float32)
        letters = [ord(letter) - 97 for letter in text if "a" <= letter <= "z"]
        for one, two in pairwise(letters):
            row[26 * one + two] += 1
        norm = float(np.linalg.norm(row))
        return row / np.float32(norm) if norm else row


class PatientSim(AscendSim):
    """The simulator, with more patience by default."""

    name = "patient-sim"

    def __init__(self, timeout: float = 60.0) -> None:
        super().__init__(timeout=timeout)

    def fork(self) -> PatientSim:
        """Another one."""
        return PatientSim(self._timeout)
