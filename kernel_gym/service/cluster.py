"""A verifier whose devices are actors on a Ray cluster.

One actor owns one device and judges one kernel at a time. The driver keeps the queue: an actor is sent its next kernel
when it has judged the last. An actor that is lost, with its node for instance, is started again where the cluster has
room, and its kernel goes back to the head of the queue. A verdict depends on kernel, task, secret and device alone, so
a kernel that was judged twice has the same verdict.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import cached_property
from threading import Condition, Thread
from typing import Any

from kernel_gym import plugins
from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster_address import check_reachable
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Verdict
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.secret import secret_for

#: What an actor takes of its node beside a core, by device, in Ray's names.
RESOURCES = {"ascend": "NPU", "cuda": "GPU"}
#: How often a kernel is given to another actor after its actor was lost.
RETRIES = 5


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

    def ready(self) -> str | None:
        """Return why the device cannot be used here; None if it can."""
        device: Device = plugins.make("kernel_gym.devices", self._device, dict(self._options))
        try:
            return device.unavailable_reason()
        finally:
            device.close()

    def judge(self, kernel: Kernel, task: Task, secret: bytes) -> Verdict:
        """Return the verdict of a kernel, drawn from the driver's secret."""
        if secret not in self._verifiers:
            device = plugins.make("kernel_gym.devices", self._device, dict(self._options))
            self._verifiers[secret] = Verifier(device, secret=secret, policy=self._policy)
        return self._verifiers[secret].verify(kernel, task)


@dataclass
class _Request:
    kernel: Kernel
    task: Task
    future: Future[Verdict] = field(default_factory=Future)
    losses: int = 0


class ClusterVerifier:
    """Judges kernels on the devices of a Ray cluster; takes the place of `Verifier`.

    Args:
        address: Address of the cluster: `HOST:PORT`, `ray://HOST:PORT`, or `auto` for that of this machine.
        device: Name of the device that every node has.
        device_options: Arguments of the device.
        policy: How kernels are judged.
        workers: Actors; 0 for as many as the cluster has room for.
        patience: Seconds without any actor after which kernels are given up.

    Raises:
        ConfigError: There is no cluster at the address, or it has no room for an actor.
        InfrastructureError: Ray cannot be used.
    """

    def __init__(
        self,
        address: str,
        device: str,
        device_options: Mapping[str, Any],
        policy: Policy = "strict",
        workers: int = 0,
        patience: float = 300.0,
    ) -> None:
        self.device_name, self.policy, self.patience = device, policy, patience
        self._arguments = (device, dict(device_options), policy)
        self._ray = _connect(address)
        self.workers = workers or self._room()
        self._waiting: deque[_Request] = deque()
        self._changed = Condition()
        self._closed = False
        self._thread = Thread(target=self._dispatch, name="kernel-gym-cluster", daemon=True)
        self._thread.start()

    @cached_property
    def device(self) -> Device:
        """The device as this machine knows it, for its name, its language and its floor."""
        device: Device = plugins.make("kernel_gym.devices", self.device_name, self._arguments[1])
        return device

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Judge one kernel; see `Verifier.verify`."""
        return self.submit(kernel, task).result()

    def verify_all(self, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
        """Judge several kernels on all devices; see `Verifier.verify_all`."""
        futures = [self.submit(kernel, task) for kernel, task in pairs]
        return [future.result() for future in futures]

    def submit(self, kernel: Kernel, task: Task) -> Future[Verdict]:
        """Queue a kernel and return its future verdict."""
        request = _Request(kernel, task)
        with self._changed:
            if self._closed:
                raise InfrastructureError("the verifier is closed")
            self._waiting.append(request)
            self._changed.notify()
        return request.future

    def close(self) -> None:
        """End the actors; kernels that wait get no verdict."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        if "device" in self.__dict__:
            self.device.close()

    def __enter__(self) -> ClusterVerifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _room(self) -> int:
        """Return how many actors the cluster has room for."""
        needed = ["CPU", *([RESOURCES[self.device_name]] if self.device_name in RESOURCES else [])]
        whole = self._ray.cluster_resources()
        room = int(min(whole.get(name, 0) for name in needed))
        if not room:
            raise ConfigError(f"the cluster has no {' or no '.join(needed)}: start its nodes with these resources")
        return room

    def _start(self) -> tuple[Any, Any]:
        """Start an actor where the cluster has room; return it with the reference that tells that it is ready."""
        takes: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
        if (resource := RESOURCES.get(self.device_name)) == "GPU":
            takes["num_gpus"] = 1
        elif resource:
            takes["resources"] = {resource: 1}
        actor = self._ray.remote(Judge).options(**takes).remote(*self._arguments)
        return actor, actor.ready.remote()

    def _dispatch(self) -> None:
        """Give kernels to actors until closed; runs in a thread of its own, the only one that knows the actors."""
        idle: list[Any] = []
        starting = {ready: actor for actor, ready in (self._start() for _ in range(self.workers))}
        running: dict[Any, tuple[Any, _Request]] = {}
        alive = time.monotonic()
        while self._wait_for_work(idle, running):
            if idle or running:
                alive = time.monotonic()
            if time.monotonic() - alive > self.patience:
                self._give_up(f"no node of the cluster had room for an actor for {self.patience:.0f} s")
            while idle and (request := self._next()):
                actor = idle.pop()
                secret = secret_for(request.kernel)
                running[actor.judge.remote(request.kernel, request.task, secret)] = actor, request
            done, _ = self._ray.wait([*running, *starting], timeout=0.2) if running or starting else ([], [])
            for reference in done:
                if reference in starting:
                    actor = starting.pop(reference)
                    survived = self._joined(reference)
                else:
                    actor, request = running.pop(reference)
                    survived = self._finished(reference, request)
                if survived:
                    idle.append(actor)
                else:
                    actor, ready = self._start()
                    starting[ready] = actor
        self._give_up("the verifier was closed")
        for actor in [*idle, *starting.values(), *(actor for actor, _ in running.values())]:
            self._ray.kill(actor)
        for _, request in running.values():
            request.future.set_exception(InfrastructureError("the verifier was closed"))

    def _wait_for_work(self, idle: Sequence[Any], running: Mapping[Any, Any]) -> bool:
        """Return whether to go on; sleep while every actor is idle and nothing waits."""
        with self._changed:
            while not self._closed and not self._waiting and not running and len(idle) == self.workers:
                self._changed.wait()
            return not self._closed

    def _next(self) -> _Request | None:
        with self._changed:
            return self._waiting.popleft() if self._waiting else None

    def _joined(self, reference: Any) -> bool:
        """Return whether a new actor is usable; a device that cannot be used on its node ends all requests."""
        try:
            reason = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            return False
        if reason:
            self._give_up(f"{self.device_name} cannot be used on the cluster: {reason}")
        return True

    def _finished(self, reference: Any, request: _Request) -> bool:
        """Answer a request, or queue it again if its actor was lost; return whether the actor lives."""
        try:
            request.future.set_result(self._ray.get(reference))
        except self._ray.exceptions.RayTaskError as error:  # raised by the verifier: bad input
            request.future.set_exception(error.cause if isinstance(error.cause, KernelGymError) else error)
        except self._ray.exceptions.RayError as error:
            request.losses += 1
            if request.losses > RETRIES:
                request.future.set_exception(InfrastructureError(f"lost with {request.losses} actors: {error}"))
            else:
                with self._changed:
                    self._waiting.appendleft(request)
            return False
        return True

    def _give_up(self, reason: str) -> None:
        """End all requests that wait."""
        while request := self._next():
            request.future.set_exception(InfrastructureError(reason))


def _connect(address: str) -> Any:
    """Return the module `ray`, connected to the cluster."""
    try:
        import ray
    except ImportError as error:
        raise ConfigError("a cluster needs Ray: pip install 'kernel-gym[rllib]'") from error
    if not ray.is_initialized():
        check_reachable(address)
        try:
            ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace="kernel_gym")
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise InfrastructureError(f"no Ray cluster at {address}: {error}") from error
    return ray
