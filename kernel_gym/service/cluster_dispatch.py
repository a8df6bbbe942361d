"""The driver's side of a cluster: which kernel is compiled and judged where, and what happens when a node is lost."""

from __future__ import annotations

import time
from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from threading import Condition
from typing import Any

from kernel_gym.errors import InfrastructureError, KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.service.cluster_workers import RESOURCES, Judge, compile_packed, room_for
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Policy, Verdict
from kernel_gym.verifier.cache import VerdictCache
from kernel_gym.verifier.secret import secret_for
from kernel_gym.verifier.verifier import verdict_key

#: How often a kernel is given to another actor after its actor was lost.
RETRIES = 5
#: Builds that the cluster keeps for kernels that are judged again, and builds that wait for each actor at most.
KEPT_BUILDS, BUILDS_AHEAD = 256, 2
#: Seconds between two looks at the cluster's cores.
LOOK = 1.0


@dataclass
class Request:
    """A kernel whose verdict somebody waits for."""

    kernel: Kernel
    task: Task
    future: Future[Verdict] = field(default_factory=Future)
    losses: int = 0
    #: Reference to its build; None if the actor compiles it.
    build: Any = None
    #: Whether it may still be compiled in a task.
    compilable: bool = True


class RequestQueue:
    """Requests that wait, filled by callers and emptied by the dispatcher's thread."""

    def __init__(self) -> None:
        self._requests: deque[Request] = deque()
        self.changed = Condition()
        self.closed = False

    def put(self, request: Request) -> None:
        """Add a request at the end."""
        with self.changed:
            if self.closed:
                raise InfrastructureError("the verifier is closed")
            self._requests.append(request)
            self.changed.notify()

    def close(self) -> None:
        """Take no more requests and let the dispatcher end."""
        with self.changed:
            self.closed = True
            self.changed.notify()

    def next(self) -> Request | None:
        """Return the oldest request; None if there is none."""
        with self.changed:
            return self._requests.popleft() if self._requests else None

    def wait(self, idle: Callable[[], bool]) -> bool:
        """Sleep while nothing waits and the dispatcher is idle; return False once closed."""
        with self.changed:
            while not self.closed and not self._requests and idle():
                self.changed.wait()
            return not self.closed


class Dispatcher:
    """Gives kernels to the cluster until its queue is closed; `run` is the only thread that knows tasks and actors.

    Args:
        ray: The module, connected.
        queue: The requests.
        device: Name of the device.
        options: Arguments of the device.
        policy: How kernels are judged.
        workers: Actors.
        patience: Seconds without any node for an actor after which kernels are given up.
    """

    def __init__(
        self, ray: Any, queue: RequestQueue, device: str, options: Mapping[str, Any], policy: Policy, workers: int,
        patience: float,
    ) -> None:  # fmt: skip
        self._ray, self._queue, self.workers, self._patience = ray, queue, workers, patience
        self._device, self._options, self._policy = device, dict(options), policy
        self._cache = VerdictCache()
        #: What verdicts of the device depend on, known from the first actor; and why no verdict can be had.
        self._context = self._failure = ""
        self._idle: list[Any] = []
        #: What to do with each reference when it is ready; actors that start, kernels that are compiled and judged.
        self._starting: dict[Any, Callable[[Any], None]] = {}
        self._compiling: dict[Any, list[Request]] = {}
        self._judging: dict[Any, tuple[Any, Request]] = {}
        self._actors: list[Any] = []
        self._compiled: deque[Request] = deque()
        self._builds: OrderedDict[str, tuple[Any, Any]] = OrderedDict()
        self._spare, self._room, self._looked = 0, 0, -LOOK
        #: The nodes that kernels were compiled on, with how many; and the tasks that are not counted yet.
        self.compiled_on: dict[str, int] = {}
        self._uncounted: set[Any] = set()

    def run(self) -> None:
        """Work until the queue is closed."""
        for _ in range(self.workers):
            self._start()
        alive = time.monotonic()
        while self._queue.wait(self._at_rest):
            self._look()
            if self._idle or self._judging or self._room:
                alive = time.monotonic()
            if time.monotonic() - alive > self._patience:
                self._give_up(f"the cluster has had no node for an actor for {self._patience:.0f} s")
            if self._failure:
                self._give_up(self._failure)
            self._start_judging()
            self._start_compiling()
            self._take_results()
        self._end()

    def _at_rest(self) -> bool:
        return not (self._judging or self._compiling or self._compiled) and len(self._idle) == self.workers

    def _look(self) -> None:
        """Count the cores that nobody holds, and the actors that the cluster would have room for if nobody used it.

        Without free cores the actors compile. An actor that waits for those of another run is not lost.
        """
        if time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self._spare = int(self._ray.available_resources().get("CPU", 0))
            self._room = room_for(self._device, self._ray.cluster_resources())

    # Actors

    def _start(self) -> None:
        """Start an actor where the cluster has room."""
        takes: dict[str, Any] = {"num_cpus": 1, "scheduling_strategy": "SPREAD"}
        if (resource := RESOURCES.get(self._device)) == "GPU":
            takes["num_gpus"] = 1
        elif resource:
            takes["resources"] = {resource: 1}
        actor = self._ray.remote(Judge).options(**takes).remote(self._device, self._options, self._policy)
        self._actors.append(actor)
        self._starting[actor.ready.remote()] = partial(self._join, actor)

    def _replace(self, actor: Any) -> None:
        self._actors.remove(actor)
        self._start()

    def _join(self, actor: Any, reference: Any) -> None:
        """Use an actor whose device is that of the others; with any other device all requests fail."""
        try:
            readiness = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._replace(actor)
            return
        self._context = self._context or readiness.context
        if readiness.reason:
            self._failure = f"{self._device} cannot be used on the cluster: {readiness.reason}"
        elif readiness.context != self._context:
            self._failure = f"the nodes differ, so would their verdicts: {self._context} and {readiness.context}"
        self._idle.append(actor)

    # Compiling

    def _start_compiling(self) -> None:
        """Begin with waiting kernels: as many as there are free cores, and no more than the actors need next.

        The device's context is not known before the first actor is there: nothing begins without it.
        """
        while self._context and self._may_begin() and (request := self._queue.next()):
            if (verdict := self._cache.get(self._key(request))) is not None:
                request.future.set_result(verdict)
            elif not self._spare or not request.compilable or request.kernel.form == "bundle":
                self._compiled.append(request)
                self._start_judging()
            else:
                self._compile(request)

    def _may_begin(self) -> bool:
        ahead = len(self._compiled) + len(self._compiling)
        if not self._spare:
            return len(self._compiled) < len(self._idle)
        return len(self._compiling) < self._spare and ahead < len(self._idle) + BUILDS_AHEAD * self.workers

    def _compile(self, request: Request) -> None:
        """Compile in a task, unless the cluster has the build."""
        key = request.kernel.digest
        if key not in self._builds:
            # The task holds no core: it would wait for one for ever if another run's actors took the last.
            task = self._ray.remote(compile_packed).options(
                num_returns=2, num_cpus=0, max_retries=0, scheduling_strategy="SPREAD"
            )
            self._builds[key] = task.remote(self._device, self._options, request.kernel, request.task)
            self._uncounted.add(self._builds[key][0])
            if len(self._builds) > KEPT_BUILDS:
                self._builds.popitem(last=False)
        node, request.build = self._builds[key]
        self._compiling.setdefault(node, []).append(request)

    def _take_build(self, reference: Any, requests: list[Request]) -> None:
        """Let a compiled kernel wait for an actor; one whose task was lost is compiled by its actor."""
        try:
            node = self._ray.get(reference)
        except self._ray.exceptions.RayError:
            self._compile_in_actors(requests)
            return
        if node and reference in self._uncounted:
            self.compiled_on[node] = self.compiled_on.get(node, 0) + 1
        self._uncounted.discard(reference)
        self._compiled.extend(requests)

    def _compile_in_actors(self, requests: list[Request]) -> None:
        for request in requests:
            self._builds.pop(request.kernel.digest, None)
            request.build, request.compilable = None, False
        self._compiled.extend(requests)

    # Judging

    def _key(self, request: Request) -> str:
        secret = secret_for(request.kernel)
        return verdict_key(request.kernel, request.task, self._context, secret, self._policy)

    def _start_judging(self) -> None:
        while self._idle and self._compiled:
            request, actor = self._compiled.popleft(), self._idle.pop()
            arguments = (request.kernel, request.task, secret_for(request.kernel), request.build)
            self._judging[actor.judge.remote(*arguments)] = actor, request

    def _take_verdict(self, reference: Any, actor: Any, request: Request) -> None:
        """Answer a request, or let it wait again if its actor or its build was lost."""
        errors = self._ray.exceptions
        try:
            verdict = self._ray.get(reference)
        except errors.ObjectLostError:
            self._compile_in_actors([request])
        except errors.RayTaskError as error:  # raised by the verifier, which goes on: bad input
            request.future.set_exception(error.cause if isinstance(error.cause, KernelGymError) else error)
        except errors.RayError as error:
            self._repeat(request, error)
            self._replace(actor)
            return
        else:
            self._cache.put(self._key(request), verdict)
            request.future.set_result(verdict)
        self._idle.append(actor)

    def _repeat(self, request: Request, error: Exception) -> None:
        request.losses += 1
        if request.losses > RETRIES:
            request.future.set_exception(InfrastructureError(f"lost with {request.losses} actors: {error}"))
        else:
            self._compiled.appendleft(request)

    def _take_results(self) -> None:
        """Wait for whatever ends first, a fraction of a second at most, and take all that has ended."""
        references = [*self._judging, *self._compiling, *self._starting]
        if not references:
            return
        ended, _ = self._ray.wait(references, num_returns=1, timeout=0.2)
        if ended:
            ended, _ = self._ray.wait(references, num_returns=len(references), timeout=0)
        for reference in ended:
            if reference in self._judging:
                self._take_verdict(reference, *self._judging.pop(reference))
            elif reference in self._compiling:
                self._take_build(reference, self._compiling.pop(reference))
            else:
                self._starting.pop(reference)(reference)

    # Ending

    def _give_up(self, reason: str) -> None:
        """End all requests that wait."""
        while request := self._queue.next():
            request.future.set_exception(InfrastructureError(reason))
        while self._compiled:
            self._compiled.popleft().future.set_exception(InfrastructureError(reason))

    def _end(self) -> None:
        self._give_up("the verifier was closed")
        for actor in self._actors:
            self._ray.kill(actor)
        for request in [*chain.from_iterable(self._compiling.values()), *(pair[1] for pair in self._judging.values())]:
            request.future.set_exception(InfrastructureError("the verifier was closed"))
