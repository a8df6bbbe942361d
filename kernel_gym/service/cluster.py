"""A verifier whose devices are actors on a Ray cluster.

One actor owns one device and judges one kernel at a time. Kernels are compiled in tasks on any node, as many at a time
as there are cores that no actor holds. The driver keeps the queue: an actor is sent its next kernel when it has judged
the last, and few kernels are compiled ahead. An actor that is lost, with its node for instance, is started again where
the cluster has room, and its kernel goes back to the head of the queue. A verdict depends on kernel, task, secret and
device alone and is kept under their key, so a kernel that was judged twice has the same verdict.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from functools import cached_property
from threading import Thread
from typing import Any

from kernel_gym import plugins
from kernel_gym.errors import ConfigError
from kernel_gym.hardware.device import Device
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster_address import connect
from kernel_gym.service.cluster_dispatch import Dispatcher, Request, RequestQueue
from kernel_gym.service.cluster_workers import needed, room_for
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Verdict


class ClusterVerifier:
    """Judges kernels on the devices of a Ray cluster; takes the place of `Verifier`.

    Args:
        address: Address of the cluster: `HOST:PORT`, `ray://HOST:PORT`, or `auto` for that of this machine.
        device: Name of the device that every node has.
        device_options: Arguments of the device.
        policy: How kernels are judged.
        workers: Actors; 0 for as many as the cluster has room for. While cores are left, tasks compile.
        patience: Seconds without any node for an actor after which kernels are given up.

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
        self.device_name, self.policy = device, policy
        self._device_options = dict(device_options)
        self._ray = connect(address)
        self.workers = workers or self._room()
        self._queue = RequestQueue()
        arguments = (device, self._device_options, policy, self.workers, patience)
        self._dispatcher = Dispatcher(self._ray, self._queue, *arguments)
        self._thread = Thread(target=self._dispatcher.run, name="kernel-gym-cluster", daemon=True)
        self._thread.start()

    @cached_property
    def device(self) -> Device:
        """The device as this machine knows it, for its name, its language and its floor."""
        device: Device = plugins.make("kernel_gym.devices", self.device_name, self._device_options)
        return device

    @property
    def compiled_on(self) -> dict[str, int]:
        """How many kernels each node, by its id, has compiled beside the actors."""
        return dict(self._dispatcher.compiled_on)

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        """Judge one kernel; see `Verifier.verify`."""
        return self.submit(kernel, task).result()

    def verify_all(self, pairs: Sequence[tuple[Kernel, Task]]) -> list[Verdict]:
        """Judge several kernels on all devices, equal pairs once; see `Verifier.verify_all`."""
        futures: dict[tuple[str, str], Future[Verdict]] = {}
        for kernel, task in pairs:
            if (kernel.digest, task.digest) not in futures:
                futures[kernel.digest, task.digest] = self.submit(kernel, task)
        return [futures[kernel.digest, task.digest].result() for kernel, task in pairs]

    def submit(self, kernel: Kernel, task: Task) -> Future[Verdict]:
        """Queue a kernel and return its future verdict."""
        request = Request(kernel, task)
        self._queue.put(request)
        return request.future

    def close(self) -> None:
        """End the actors; kernels that wait get no verdict."""
        self._queue.close()
        self._thread.join()
        if "device" in self.__dict__:
            self.device.close()

    def __enter__(self) -> ClusterVerifier:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _room(self) -> int:
        """Return how many actors the cluster has room for."""
        room = room_for(self.device_name, self._ray.cluster_resources())
        if not room:
            names = " or no ".join(needed(self.device_name))
            raise ConfigError(f"the cluster has no {names}: start its nodes with these resources")
        return room
