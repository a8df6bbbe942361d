"""What runs on the nodes of a Ray cluster: actors that judge on a device, and tasks that compile."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from kernel_gym import plugins
from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.device import Device, PackedBuild, Portable
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Verdict
from kernel_gym.verifier import Verifier

#: What an actor takes of its node beside a core, by device, in Ray's names.
RESOURCES = {"ascend": "NPU", "cuda": "GPU"}


def needed(device: str) -> list[str]:
    """Return the resources of which an actor takes one each, in Ray's names."""
    return ["CPU", *([RESOURCES[device]] if device in RESOURCES else [])]


def room_for(device: str, resources: Mapping[str, float]) -> int:
    """Return how many actors of a device these resources are enough for."""
    return int(min(resources.get(name, 0) for name in needed(device)))


@dataclass(frozen=True)
class Readiness:
    """Whether an actor can use its device.

    Args:
        reason: Why it cannot; empty if it can.
        context: What verdicts of the device depend on; the same on all nodes, or verdicts would differ.
    """

    reason: str = ""
    context: str = ""


class Judge:
    """The actor: a verifier on the device of its node.

    Args:
        device: Name of the device.
        options: Arguments of the device.
        policy: How kernels are judged.
    """

    def __init__(self, device: str, options: Mapping[str, Any], policy: Policy) -> None:
        self._device, self._options, self._policy = device, options, policy
        self._verifiers: dict[bytes, Verifier] = {}

    def ready(self) -> Readiness:
        """Try the device."""
        device = _make(self._device, self._options)
        try:
            if reason := device.unavailable_reason():
                return Readiness(reason)
            return Readiness(context=f"{device.identity()} {device.sandbox_tier()}")
        finally:
            device.close()

    def judge(self, kernel: Kernel, task: Task, secret: bytes, packed: PackedBuild | None = None) -> Verdict:
        """Return the verdict of a kernel, drawn from the driver's secret.

        The kernel is compiled here if it comes without a build, or with one by a compiler that differs from this one.
        """
        if secret not in self._verifiers:
            device = _make(self._device, self._options)
            self._verifiers[secret] = Verifier(device, secret=secret, policy=self._policy)
        verifier = self._verifiers[secret]
        if packed is not None and packed.identity != verifier.device.identity():
            packed = None
        return verifier.submit(kernel, task, packed).result()


def compile_packed(device: str, options: Mapping[str, Any], kernel: Kernel, task: Task) -> Any:
    """Compile a kernel on any node that has the device's compiler.

    Args:
        device: Name of the device.
        options: Its arguments.
        kernel: The kernel, in one file.
        task: Its task.

    Returns:
        The node's id, and the build; an empty id and None if this node cannot compile for the device.
    """
    import ray

    try:
        compiler = _compiler(device, json.dumps(options, sort_keys=True))
        if not isinstance(compiler, Portable):
            return "", None
        packed = PackedBuild.of(compiler.build(kernel, task), compiler.identity())
        return ray.get_runtime_context().get_node_id(), packed
    except KernelGymError:  # the node has no compiler for the device: the actor compiles
        return "", None


@cache
def _compiler(device: str, options: str) -> Device:
    return _make(device, json.loads(options))


def _make(device: str, options: Mapping[str, Any]) -> Device:
    made: Device = plugins.make("kernel_gym.devices", device, dict(options))
    return made
