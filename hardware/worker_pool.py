"""A pool of workers, each of which owns a device and judges one request at a time.

Kernel code never runs in this process, so workers are threads. When a kernel crashes a device's process, the worker
gets a new device. `Workers` is the interface, so that a cluster can take the place of the threads.
"""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from threading import Lock, Thread, Timer
from typing import Generic, Protocol, TypeVar

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Device

Request = TypeVar("Request")
Result = TypeVar("Result")
_Request = TypeVar("_Request", contravariant=True)


class Workers(Protocol[_Request, Result]):
    """Interface of a pool of workers, in this process or elsewhere."""

    def submit(self, request: _Request) -> Future[Result]:
        """Queue a request.

        Args:
            request: The request to judge.

        Returns:
            The future result. It raises InfrastructureError if the request could not be judged.
        """

    def close(self) -> None:
        """Stop all work, end every process and remove every file."""


class WorkerPool(Generic[Request, Result]):
    """Threads that judge requests, each on its own device.

    A device on which a request failed with InfrastructureError is replaced before the worker's next request. The
    failed request is not tried again: the caller decides about that.
    """

    def __init__(
        self,
        device: Device,
        judge: Callable[[Device, Request], Result],
        workers: int = 1,
        patience: float = 1800.0,
        give_up: Callable[[InfrastructureError], Result] | None = None,
    ) -> None:
        """Make a pool; threads and devices are started by the first request.

        Args:
            device: The device that every worker forks its own from. The pool closes it.
            judge: Returns the result of a request on a device, or raises InfrastructureError.
            workers: Number of threads, at least one.
            patience: Seconds after which the device of a running request is closed.
            give_up: Turns an InfrastructureError into a result. Without it the future raises the error.
        """
        self._template = device
        self._judge = judge
        self._workers = max(1, workers)
        self._patience = patience
        self._give_up = give_up
        self._queue: queue.SimpleQueue[tuple[Request, Future[Result]] | None] = queue.SimpleQueue()
        self._threads: list[Thread] = []
        self._devices: dict[int, Device] = {}
        self._lock = Lock()
        self._closed = False

    def submit(self, request: Request) -> Future[Result]:
        """Queue a request.

        Args:
            request: What is to be judged.

        Returns:
            The future result.

        Raises:
            InfrastructureError: If the pool is closed.
        """
        if self._closed:
            raise InfrastructureError("the pool is closed")
        self._start()
        future: Future[Result] = Future()
        self._queue.put((request, future))
        return future

    def map(self, requests: Iterable[Request]) -> list[Result | InfrastructureError]:
        """Judge requests side by side. An interrupt cancels those that have not begun and closes the pool.

        Args:
            requests: What is to be judged.

        Returns:
            The results in the order of the requests, with the error in the place of a result that failed.
        """
        futures = [self.submit(request) for request in requests]
        try:
            return [self._outcome(future) for future in futures]
        except BaseException:
            for future in futures:
                future.cancel()
            self.close()
            raise

    def close(self) -> None:
        """End the workers and their devices."""
        self._closed = True
        for _ in self._threads:
            self._queue.put(None)
        with self._lock:
            devices = list(self._devices.values())
            self._devices.clear()
        for device in devices:
            device.close()
        self._template.close()
        for thread in self._threads:
            thread.join(timeout=5.0)
        self._threads.clear()

    def _start(self) -> None:
        with self._lock:
            while len(self._threads) < self._workers:
                index = len(self._threads)
                thread = Thread(target=self._work, args=(index,), name=f"kernel-gym-worker-{index}", daemon=True)
                self._threads.append(thread)
                thread.start()

    def _work(self, index: int) -> None:
        while (entry := self._queue.get()) is not None:
            request, future = entry
            if not future.set_running_or_notify_cancel():
                continue
            try:
                future.set_result(self._result(index, request))
            except BaseException as error:
                future.set_exception(error)

    def _result(self, index: int, request: Request) -> Result:
        device = self._device(index)
        alarm = Timer(self._patience, device.close)
        alarm.daemon = True
        alarm.start()
        try:
            return self._judge(device, request)
        except InfrastructureError as error:
            self._discard(index)
            if self._give_up is None:
                raise
            return self._give_up(error)
        finally:
            alarm.cancel()

    def _device(self, index: int) -> Device:
        with self._lock:
            if self._closed:
                raise InfrastructureError("the pool is closed")
            if index not in self._devices:
                self._devices[index] = self._template.fork()
            return self._devices[index]

    def _discard(self, index: int) -> None:
        with self._lock:
            device = self._devices.pop(index, None)
        if device is not None:
            device.close()

    def _outcome(self, future: Future[Result]) -> Result | InfrastructureError:
        try:
            return future.result()
        except InfrastructureError as error:
            return error
