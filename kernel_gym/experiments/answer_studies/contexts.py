"""Composes what the model is shown in each condition of an answer study."""

from __future__ import annotations

import shutil
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from kernel_gym import plugins, suites
from kernel_gym.agents.contract import Agent
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.contract import Context, Note
from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.episode import Episode
from kernel_gym.envs.options import Options
from kernel_gym.envs.prompt_context import describe, note
from kernel_gym.envs.seeding import generator
from kernel_gym.envs.services import Services
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.answer_studies.definition import AnswerStudy, Condition
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import make_agent
from kernel_gym.experiments.runs.run_recorder import Progress, no_progress
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import MemoryItem
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible

#: The devices of the conditions, by name; written out, so that no installation has to have registered them.
DEVICES = {
    "ascend-sim": "kernel_gym.hardware.ascend_sim.device:AscendSim",
    "cuda": "kernel_gym.hardware.cuda.device:Cuda",
}


class Contexts:
    """The contexts of one language.

    Args:
        study: The study.
        language: The language of the kernels.
        memory: Run folder of the attempts that agents pick from; see `learn_memory`.
    """

    def __init__(self, study: AnswerStudy, language: str, memory: Path) -> None:
        self.study, self.language, self.memory = study, language, memory
        self._bank = MemoryBank(None, StaticEmbedder())
        self._bank.add(seed_items(language), attempt=False)
        self._oracle = Apprentice("oracle", language=language)

    def context(self, condition: Condition, task: Task, number: int) -> Context:
        """Return what the model is shown, without failed attempts: those come from answers.

        Args:
            condition: The condition.
            task: The task.
            number: Number of the answer; agents that draw pick differently for each.

        Returns:
            The notes, API pages last.
        """
        notes: list[Note] = []
        if "relative" in condition.shows:
            notes.append(self.verified(self.relative(task), task))
        if "own" in condition.shows:
            notes.append(self.verified(task, task))
        if "picks" in condition.shows:
            picked = self._picked(condition, task, number)[: condition.picks]
            notes += [note(item, task) for item in (picked if condition.order == "forwards" else reversed(picked))]
        if "pages" in condition.shows:
            code = "\n".join(part.code for part in notes)
            pages = self._bank.api_pages(describe(task), code, self.language)
            notes += [note(page, task) for page in pages]
        return tuple(notes)

    def relative(self, task: Task) -> Task:
        """Return the nearest of the other tasks: of the same category if there is one, then by similarity."""
        others = [suites.find_task(name) for name in self.study.relatives]
        near = [other for other in others if other.category == task.category] or others
        vectors = self._bank.embedder.embed([describe(task), *map(describe, near)])
        return near[int(np.argmax(vectors[1:] @ vectors[0]))]

    def verified(self, source: Task, task: Task) -> Note:
        """Return the best kernel that the package has for a task; `kernel-gym oracles` verifies all of them."""
        kernel = self._oracle.write(source, (), None, np.random.default_rng(0))
        if not kernel.source:
            raise KernelGymError(f"there is no verified kernel of {source.id} in {self.language}")
        return Note("trace", kernel.source, kernel.source, Feasible("Correct.", latency=1.0), source.id == task.id)

    def _picked(self, condition: Condition, task: Task, number: int) -> list[MemoryItem]:
        draws = number if condition.agent == "random" else 0
        return list(_picked(self.memory, condition.agent, task.id, draws))


@cache
def _picked(memory: Path, agent: str, task: str, number: int) -> tuple[MemoryItem, ...]:
    """Return what an agent picks for a first draft of a task, from the memory that a run left."""
    with TemporaryDirectory() as folder:
        bank = Path(folder) / "bank.sqlite"
        shutil.copy(RunFolder(memory).bank, bank)
        options = Options(
            tasks=(task,),
            device=plugins.load("kernel_gym.devices", DEVICES["ascend-sim"]),
            author=Apprentice(),
            bank=bank,
            memory="frozen",
            stages="draft",
            statistics=False,
        )
        services = Services(options)
        try:
            services.begin(int(generator("answers", task, number).integers(2**31)))
            episode = Episode(services, services.bank)
            episode.begin(services.next_task(task))
            picker = _agent(memory, agent, number)
            while not episode.ready:
                episode.pick(picker.act(episode.observation(), episode.info()))
            return tuple(episode.pool[slot].item for slot in episode.picked)
        finally:
            services.close()


def _agent(memory: Path, name: str, seed: int) -> Agent:
    agent = make_agent(resolve(None, {"agent": name, "seed": seed}))
    if name == "value":
        agent.load(RunFolder(memory).agent)
    return agent


def memory_config(study: AnswerStudy, workers: int) -> RunConfig:
    """Return the run that fills the memory: `value` and the simulated author on the other tasks."""
    names = tuple(name.partition("/")[2] for name in study.relatives)
    overrides = {"agent": "value", "suite": "level1", "tasks": names, "budget": study.budget, "workers": workers}
    return resolve(None, overrides)


def learn_memory(study: AnswerStudy, path: Path, workers: int, progress: Progress = no_progress) -> None:
    """Run what fills the memory that agents pick from; a complete run is left as it is.

    Args:
        study: The study.
        path: The run folder.
        workers: Verifications at once.
        progress: Called after every attempt.
    """
    from kernel_gym.experiments.runs.training import train

    config = memory_config(study, workers)
    train(config, RunFolder.open(path, config), progress)
