"""Make the environments and the agent of a run on a device."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym

from kernel_gym import activity
from kernel_gym.agents.contract import Agent
from kernel_gym.authors.contract import Checked, Closing, Recording
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.envs.vector import KernelSynthesisVectorEnv
from kernel_gym.experiments.runs.recorded_verdicts import RecordedVerdicts
from kernel_gym.experiments.runs.recording_env import RecordingEnv, RecordingVectorEnv
from kernel_gym.experiments.runs.reference_latency import ReferenceLatencies
from kernel_gym.experiments.runs.run_plan import SIMULATED_DEVICES, RunPlan, environment_options, make_agent
from kernel_gym.experiments.runs.run_recorder import RunRecorder
from kernel_gym.memory.seed import seed_items

Part = TypeVar("Part")


class RunEnvironments:
    """Makes the environments and the agent of a run; a `MakeEnv` whose attempts are recorded."""

    def __init__(self, plan: RunPlan, recorder: RunRecorder) -> None:
        self.plan, self.recorder = plan, recorder
        #: The number of items that the memory begins with.
        self._initial_items = 0
        #: Ids, in the bank at hand, of the items that an earlier run had too, by their ids there.
        self._new_ids: dict[int, int] = {}

    def __enter__(self) -> RunEnvironments:
        self._stack = ExitStack()
        try:
            self._prepare()
        except BaseException:
            self._stack.close()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def _prepare(self) -> None:
        """Make the parts of the environment: author, embedder, inspection, memory, verifier."""
        folder = self.plan.folder
        options = environment_options(self.plan.config, folder)
        _connect(options)
        options = replace(
            options,
            author=self._recorded("author", factories.author(options), folder.transcript),
            embedder=self._recorded("embedder", factories.embedder(options), folder.embeddings),
            inspection=self._recorded("inspection", factories.inspector(options), folder.inspections) or {},
        )
        self._check_models()
        self._begin_with_seed_items(len(seed_items(factories.author(options).language)))
        if self.plan.config.initial_memory:
            self._import_memory(options)
        self._options = replace(options, verifier=self._make_verifier(options))

    def _recorded(self, name: str, part: Part, path: Path) -> Part:
        """Let a part that uses a model record its exchanges in the run folder; return the part."""
        if isinstance(part, Recording):
            part.record_to(path)
            self.recorder.paid_parts[name] = part
        if isinstance(part, Closing):
            self._stack.callback(part.close)
        return part

    def _check_models(self) -> None:
        """Let the parts that use a model try key and model name, before memory and device are prepared."""
        for name, part in self.recorder.paid_parts.items():
            if isinstance(part, Checked):
                activity.prepare(f"trying the model of the {name}")
                part.check()

    def _begin_with_seed_items(self, count: int) -> None:
        """Note that the bank begins with the seed knowledge alone: no other item is one of an earlier run."""
        self._initial_items, self._new_ids = count, {id: id for id in range(1, count + 1)}

    def _import_memory(self, options: Options) -> None:
        """Import the memories that the run begins with into its bank."""
        config = self.plan.config
        file = self.plan.folder.resolve(config.initial_memory)
        with factories.bank(options, factories.author(options).language) as bank:
            bank.import_(file)
            self._initial_items, self._new_ids = len(bank), bank.local_ids(file) if config.initial_agent else {}

    def _make_verifier(self, options: Options) -> RecordedVerdicts:
        """Make a verifier that repeats the journal's verdicts.

        On a simulator, also begin to compare latencies with the reference latencies.
        """
        device = factories.device_name(options)
        verifier = RecordedVerdicts(self.recorder.journal.records, device, lambda: factories.verifier(options))
        self._stack.callback(verifier.close)
        if self.plan.config.env.device in SIMULATED_DEVICES:
            self.recorder.reference = ReferenceLatencies(verifier)
        return verifier

    def agent(self) -> Agent:
        """Make the agent, with what it learned in an earlier run if the configuration says so."""
        config = self.plan.config
        agent = make_agent(config)
        if config.initial_agent:
            agent.load(self.plan.folder.resolve(config.initial_agent))
            agent.remap_items(self._new_ids)
        if config.env.memory == "fresh":
            agent.use_fresh_memory(self._initial_items)
        return agent

    def __call__(self) -> gym.Env[Any, Any]:
        """Make the environment that works on one task after another."""
        env = gym.make("kernel_gym/KernelSynthesis-v0", disable_env_checker=True, **keyword_arguments(self._options))
        self._stack.callback(env.close)
        return RecordingEnv(env, self.recorder)

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """Make the environment that works on all tasks of a batch in lock-step."""
        envs = KernelSynthesisVectorEnv(num_envs=self.plan.batch, **keyword_arguments(self._options))
        self._stack.callback(envs.close)
        return RecordingVectorEnv(envs, self.recorder)

    def save_memory(self) -> None:
        """Write the memory that the run leaves: a copy of a shared bank. Another bank is written all along."""
        if url := self.plan.config.env.bank:
            from kernel_gym.service.shared_bank import SharedBank

            SharedBank(url, factories.embedder(self._options)).copy_to(self.plan.folder.bank)


def _connect(options: Options) -> None:
    """Connect to the cluster that judges or keeps the memory, before an agent starts a Ray of this machine."""
    from kernel_gym.service import cluster_address, shared_bank

    shared = str(options.bank).startswith(shared_bank.SCHEME)
    for address in filter(None, (options.cluster, shared_bank.split(str(options.bank))[0] if shared else "")):
        cluster_address.connect(address)


def keyword_arguments(options: Options) -> dict[str, Any]:
    """Return options as keyword arguments."""
    return {field.name: getattr(options, field.name) for field in fields(options)}
