"""The tasks as a task set of the package `verifiers` (0.4): prompts, and rewards by the verifier of this package.

    # kernels.py
    from kernel_gym.integrations.verifiers import KernelTaskset

    __all__ = ["KernelTaskset"]

    PYTHONPATH=. vf-eval kernels --env.taskset.suite level1 --model NAME \\
        --env.agent.harness.id null --env.agent.runtime.type subprocess --no-push

The settings of `KernelTaskset` stand under `env.taskset`, those of its judge under `env.taskset.task`. Needs the extra
`verifiers`, in an environment of its own: the package needs another version of `openai` than `constraints.txt` names.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any

import verifiers.v1 as vf
from pydantic import Field

from kernel_gym import plugins, suites
from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.authors.model.prompt import messages
from kernel_gym.errors import InfrastructureError
from kernel_gym.integrations.grpo import outcome_reward
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Policy, Uncompilable, Unjudged, Verdict

__all__ = ["KernelTask", "KernelTaskData", "KernelTaskset", "KernelTasksetConfig"]


class JudgeConfig(vf.TaskConfig):
    """Who judges: the device, the policy, and the address of a verification service in place of this machine."""

    device: str = "ascend-sim"
    policy: Policy = "strict"
    service: str = ""


class KernelTaskData(vf.TaskData):
    """A prompt, with the id of its task under `id`."""


class KernelTask(vf.Task[KernelTaskData, vf.State, JudgeConfig]):
    """One task: the reply is searched for a kernel, which the verifier judges."""

    @property
    def key(self) -> str:
        """The id of the task."""
        return str(self.data.id)

    @vf.metric
    async def verdict(self, trace: Any) -> dict[str, float]:
        """Record whether the kernel compiled, was correct and feasible, and its latency if it was."""
        verdict = await asyncio.to_thread(self._judge, trace.last_reply)
        trace.info["verdict"] = verdict.to_json()
        gates = {"compiled": verdict.compiled, "correct": verdict.correct, "feasible": verdict.feasible}
        latency = {} if verdict.latency_us is None else {"latency_us": verdict.latency_us}
        return {name: float(bool(passed)) for name, passed in gates.items()} | latency

    @vf.reward
    async def kernel(self, trace: Any) -> float:
        """Return 1 for a feasible kernel, -0.5 for one that compiles and is wrong, -1 otherwise.

        Raises:
            InfrastructureError: The kernel could not be judged; the trace has no reward then.
        """
        verdict = await asyncio.to_thread(self._judge, trace.last_reply)
        reward = outcome_reward(verdict)
        if reward is None:
            raise InfrastructureError(verdict.feedback)
        return reward

    async def validate(self, runtime: Any) -> bool | None:
        """Return whether the oracle's kernel of the task is feasible; None if there is no oracle for its language."""
        if _language(self.config.device) != "ascendc":
            return None
        from kernel_gym.authors.apprentice import oracle

        kernel = await asyncio.to_thread(oracle, suites.find_task(str(self.data.id)))
        verdict = await asyncio.to_thread(self._judge, f"```cpp\n{kernel.source}\n```")
        return verdict.feasible

    def _judge(self, reply: str) -> Verdict:
        """Return the verdict of the kernel in a reply; asked again, it comes from the cache."""
        source = kernel_source(reply)
        if not source.strip():
            return Uncompilable("the reply has no source to compile")
        kernel = Kernel(source, _language(self.config.device))
        verdict: Verdict = _verifier(self.config.device, self.config.policy, self.config.service).verify(
            kernel, suites.find_task(str(self.data.id))
        )
        if isinstance(verdict, Unjudged):
            raise InfrastructureError(verdict.feedback)
        return verdict


class KernelTasksetConfig(vf.TasksetConfig):
    """Which tasks there are: a suite or some of its tasks, and about how many tokens a prompt may have."""

    suite: str = "level1"
    tasks: list[str] = Field(default_factory=list)  # the commands of the package fill lists only
    tokens: int = 8192
    task: JudgeConfig = JudgeConfig()


class KernelTaskset(vf.Taskset[KernelTask, KernelTasksetConfig]):
    """The tasks of a suite; a prompt is what an author that is a model would be asked without any memory."""

    def load(self) -> Iterator[KernelTask]:
        """Yield the tasks, in the order of the suite or of `tasks`."""
        names, suite = self.config.tasks, self.config.suite
        language = _language(self.config.task.device)
        for task in [suites.find_task(name, suite) for name in names] if names else suites.load_suite(suite):
            prompt = messages(task, (), None, self.config.tokens, language)
            data = KernelTaskData(id=task.id, name=task.name, **_texts(prompt))
            yield KernelTask(data, self.config.task)


def _texts(prompt: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return the text of each role under the name that the package has for it."""
    names = {"system": "system_prompt", "user": "prompt"}
    return {names[message["role"]]: message["content"] for message in prompt}


def _language(device: str) -> str:
    return str(plugins.load("kernel_gym.devices", device).language)


@cache
def _verifier(device: str, policy: Policy, service: str) -> Any:
    """Return the verifier that all tasks of this process share."""
    if service:
        from kernel_gym.service.client import RemoteVerifier

        return RemoteVerifier(service, device, policy)
    from kernel_gym.verifier import Verifier

    workers = len(os.sched_getaffinity(0))
    return Verifier(plugins.make("kernel_gym.devices", device, {}), workers=workers, policy=policy)
