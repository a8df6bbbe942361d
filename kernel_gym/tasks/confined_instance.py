"""A task of a problem file whose code runs in a confined process.

A problem file is third-party code. One process for each file runs it with limits on time, memory, files and
network, as a kernel is run; this process only exchanges messages with it.
"""

from __future__ import annotations

import atexit
import os
import signal
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property, lru_cache
from math import prod
from threading import Lock

import torch

from kernel_gym.confinement import python_process
from kernel_gym.confinement.python_process import PythonProcess
from kernel_gym.errors import KernelGymError, ProblemFileDied, TaskError
from kernel_gym.tasks import messages
from kernel_gym.tasks.graph import Graph
from kernel_gym.tasks.messages import BrokenMessage, Request, Response
from kernel_gym.tasks.specs import DTYPES, Case, InputSpec, Signature
from kernel_gym.tasks.trials import Counts, Trial

#: Seconds that one call may take: to load the file and look at it, and to evaluate it at large sizes.
LOAD_SECONDS, EVALUATE_SECONDS = 45.0, 600.0
#: Bytes of all tensors of a case at which kernels are judged, and dimensions of a tensor.
MOST_BYTES, MOST_DIMENSIONS = 8 << 30, 8
#: Elements of a tensor, whose sizes in float64 have 64 bits, and the largest index, of which sums have.
MOST_ELEMENTS, LARGEST_INDEX = 1 << 60, 1 << 61
#: Characters of a name, and of a line that a problem file wrote.
LONGEST_NAME, LONGEST_LINE = 1000, 300
#: Confined processes that are kept; each holds some 300 MB.
MOST_PROCESSES = 8


class ConfinedInstance:
    """A task at one case, built and run in a confined process.

    Args:
        source: The text of the problem file.
        digest: Content address of the task.
        public: The case that tells the domains of the inputs; None to leave them out.
        case: The sizes.
    """

    def __init__(self, source: str, digest: str, public: Case | None, case: Case) -> None:
        self.case = case
        self._source, self._digest = source, digest
        self._public = public
        response, _ = self._call("signature")
        if response.signature is None:
            raise TaskError("the confined process answered without a signature")
        self.signature: Signature = _checked(response.signature, case, MOST_BYTES if public else None)

    def evaluate(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[torch.Tensor, ...]:
        """Run the reference on `inputs`; see `kernel_gym.tasks.task.Instance`."""
        return self._evaluate("evaluate", inputs, dtype, Trial())[0]

    def tried(
        self,
        inputs: Sequence[torch.Tensor],
        trial: Trial,
        dtype: torch.dtype | None = None,
        usual: torch.Tensor | None = None,
    ) -> tuple[tuple[torch.Tensor, ...], Counts]:
        """Run the reference as a trial says; see `kernel_gym.tasks.task.Instance`."""
        tensors = [*inputs, *(() if usual is None else (usual,))]
        outputs, response = self._evaluate("tried", tensors, dtype, trial)
        return outputs, _checked_counts(response.counts, self.case)

    def _evaluate(
        self, method: messages.Method, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None, trial: Trial
    ) -> tuple[tuple[torch.Tensor, ...], Response]:
        precision = str(dtype).removeprefix("torch.") if dtype is not None else None
        # In float64 an output may have eight bytes where the signature has one.
        limit = 8 * sum(spec.numel for spec in self.signature.outputs)
        response, outputs = self._call(method, inputs, precision, limit, EVALUATE_SECONDS, trial=trial)
        returned = [(tuple(tensor.shape), tensor.dtype.is_floating_point) for tensor in outputs]
        if returned != [(spec.shape, "float" in spec.dtype) for spec in self.signature.outputs]:
            raise TaskError(f"the reference returns other tensors than before at case {self.case.name!r}")
        return tuple(outputs), response

    def statistics(self, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        """Return the means and variances of what reaches each batch norm; see `kernel_gym.tasks.task.Instance`."""
        limit = 8 * sum(spec.numel for spec in self.signature.inputs)
        return self._by_position(*self._call("statistics", inputs, limit_bytes=limit, seconds=EVALUATE_SECONDS))

    def fixed_inputs(self) -> dict[int, torch.Tensor]:
        """Return the inputs whose values the module defines, by position in `signature.inputs`."""
        return {position: tensor.clone() for position, tensor in self._tables[0].items()}

    def drawn_inputs(self) -> frozenset[int]:
        """Return which inputs the module's constructor draws at random; see `kernel_gym.tasks.task.Instance`."""
        return self._tables[1]

    @cached_property
    def _tables(self) -> tuple[dict[int, torch.Tensor], frozenset[int]]:
        """The inputs that the module defines, and which ones its constructor draws; one message tells both."""
        limit = 2 * self.signature.nbytes
        response, tensors = self._call("fixed_inputs", limit_bytes=limit, seconds=EVALUATE_SECONDS)
        held = {position for position, spec in enumerate(self.signature.inputs) if spec.origin != "argument"}
        if not held.issuperset(response.drawn):
            raise TaskError(f"the module draws tensors that it does not have at case {self.case.name!r}")
        return self._by_position(response, tensors), frozenset(response.drawn)

    def _by_position(self, response: Response, tensors: list[torch.Tensor]) -> dict[int, torch.Tensor]:
        specs = dict(enumerate(self.signature.inputs))
        pairs = dict(zip(response.positions, tensors, strict=False))
        if any(p not in specs or specs[p].shape != tuple(tensor.shape) for p, tensor in pairs.items()):
            raise TaskError(f"the module's tables have other shapes than before at case {self.case.name!r}")
        return pairs

    def own_inputs(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return inputs as the problem file makes them, drawn from `seed`; see `kernel_gym.tasks.task.Instance`."""
        limit = sum(spec.nbytes for spec in self.signature.inputs)
        _, tensors = self._call("own_inputs", limit_bytes=limit, seconds=EVALUATE_SECONDS, seed=seed)
        drawn = [(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in tensors]
        if drawn != [(spec.shape, spec.dtype) for spec in self.signature.inputs]:
            raise TaskError(f"get_inputs() returns other tensors than before at case {self.case.name!r}")
        return tuple(tensors)

    def work(self) -> int:
        """Return about how many operations a plain kernel needs: multiply-adds of products, and elements."""
        return max(0, min(self._call("work")[0].work, 1 << 62))

    def nonlinear(self) -> bool:
        """Return whether `forward` computes what sums of products and clipping at zero cannot."""
        return self._call("work")[0].nonlinear

    def iterations(self) -> int:
        """Return the number of iterations that the module has; 0 if it does not have such a number."""
        return max(0, min(self._call("work")[0].iterations, 1 << 62))

    def graph(self, *, layers: bool = False) -> Graph:
        """Return the module's graph of core ATen operators as plain data; `layers` keeps recurrent layers whole."""
        response, _ = self._call("layers" if layers else "graph", seconds=EVALUATE_SECONDS)
        if response.graph is None:
            raise TaskError("the confined process answered without a graph")
        return response.graph

    def run_example(self) -> None:
        """Run the module once on its own example."""
        self._call("run_example")

    def _call(
        self,
        method: messages.Method,
        inputs: Sequence[torch.Tensor] = (),
        precision: str | None = None,
        limit_bytes: int = 0,
        seconds: float | None = None,
        seed: int = 0,
        trial: Trial | None = None,
    ) -> tuple[Response, list[torch.Tensor]]:
        request = Request(method, self._digest, self.case, self._public, precision, seed, trial or Trial())
        return _processes(os.getpid()).get(self._source).call(request, inputs, limit_bytes, seconds or LOAD_SECONDS)


def _checked(signature: Signature, case: Case, most: int | None) -> Signature:
    """Return a signature that tensors can have: what a problem file says of itself may be anything."""
    at = f"at case {case.name!r}"
    for spec in (*signature.inputs, *signature.outputs):
        if spec.dtype not in DTYPES or len(spec.shape) > MOST_DIMENSIONS or min(spec.shape, default=0) < 0:
            raise TaskError(f"a tensor of {one_line(spec.dtype)[:40]} with {len(spec.shape)} dimensions {at}")
        if prod(max(extent, 1) for extent in spec.shape) >= MOST_ELEMENTS:
            raise TaskError(f"a tensor with extents that no memory has {at}")
    for spec in signature.inputs:
        _check_domain(spec, at, most)
    if any(not -(2**63) <= value < 2**63 for value in (*signature.ints, signature.calls)):
        raise TaskError(f"an attribute of more than 64 bits {at}")
    names = (*(spec.name for spec in signature.inputs), *signature.changes, signature.structure)
    if any(len(name) > LONGEST_NAME or not name.isprintable() for name in names):
        raise TaskError(f"a name that cannot be printed {at}")
    if most is not None and signature.nbytes > most:
        raise TaskError(f"tensors of {signature.nbytes >> 20} MB {at}: at most {most >> 20} MB")
    return replace(signature, draws=tuple(map(one_line, signature.draws)))


def _check_domain(spec: InputSpec, at: str, most: int | None) -> None:
    """Raise a TaskError for a domain from which no values can be drawn."""
    domain = spec.domain
    if not 0 <= domain.factors < MOST_ELEMENTS:
        raise TaskError(f"an input of an impossible number of factors {at}")
    if domain.kind != "index" or spec.dtype == "bool":
        return
    least, largest = -LARGEST_INDEX, LARGEST_INDEX
    if "int" in spec.dtype:
        span = torch.iinfo(getattr(torch, spec.dtype))
        least, largest = max(least, span.min), min(largest, span.max)
    if not least <= domain.low < domain.limit <= largest + 1:
        raise TaskError(f"an input of indices without a range {at}")
    if domain.distinct and (not spec.shape or (most is not None and _drawn_bytes(spec) > most)):
        raise TaskError(f"an input of distinct indices of too wide a range {at}")


def _drawn_bytes(spec: InputSpec) -> int:
    """Return the size of all indices of a range in the order of each row."""
    rows = spec.numel // max(spec.shape[-1], 1)
    return 8 * rows * (spec.domain.limit - spec.domain.low)


def one_line(text: str) -> str:
    """Return a text of somebody else as one short line that can be printed."""
    words = "".join(letter if letter.isprintable() else " " for letter in text[: 4 * LONGEST_LINE]).split()
    return " ".join(words)[:LONGEST_LINE]


def _checked_counts(counts: Counts, case: Case) -> Counts:
    """Return the numbers of a run that a module can have."""
    weights = [(*shape, prod(shape)) for shape in counts.softmaxes]
    sizes = (*counts.products, *counts.additions, *(number for each in weights for number in each))
    numbers = (counts.constant_activations, counts.wide_products, *sizes)
    dimensions = {len(shape) for shape in counts.softmaxes}
    if not all(0 <= number < 1 << 62 for number in numbers) or not dimensions <= {*range(1, MOST_DIMENSIONS + 1)}:
        raise TaskError(f"the confined process answered with impossible counts at case {case.name!r}")
    return counts


@lru_cache(maxsize=2048)
def confined_instance(source: str, digest: str, public: Case, case: Case) -> ConfinedInstance:
    """Return the instance of a problem file at one case; cached by content."""
    return ConfinedInstance(source, digest, public, case)


class _ConfinedProcess(PythonProcess):
    """The confined process of one problem file. Calls wait for each other."""

    def __init__(self, source: str) -> None:
        super().__init__("kernel_gym.tasks.confined_server", "problem file", torch.get_num_threads())
        text = source.encode()
        self._lock = Lock()
        self._requests.write(f"{len(text)}\n".encode() + text)

    @property
    def is_busy(self) -> bool:
        """Whether a call runs or waits."""
        return self._lock.locked()

    def call(
        self, request: Request, tensors: Sequence[torch.Tensor], limit_bytes: int, seconds: float
    ) -> tuple[Response, list[torch.Tensor]]:
        """Return the response to a request and its tensors."""
        with self._lock:
            try:
                with self._alarm(seconds):
                    messages.send_request(self._requests, request, tensors)
                    response, outputs = messages.receive_response(self._responses, limit_bytes)
            except (OSError, EOFError, BrokenMessage) as error:
                raise self._end(request.case, seconds, error) from error
        if response.error is not None:
            raise TaskError(one_line(response.error))
        return response, outputs

    def _end(self, case: Case, seconds: float, error: Exception) -> KernelGymError:
        """End the process and return the reason why it did not answer."""
        status, words = self._wait(0.0 if isinstance(error, BrokenMessage) else 5.0)
        if self._late:
            return ProblemFileDied(f"the problem file took longer than {seconds:.0f} s at case {case.name!r}")
        if isinstance(error, BrokenMessage):
            return ProblemFileDied(f"the problem file wrote to a pipe that is not its own at case {case.name!r}")
        if status is not None and status < 0:
            name = signal.Signals(-status).name
            limit = f"it may use {python_process.MEMORY_BYTES >> 30} GB of memory"
            return ProblemFileDied(f"the problem file was ended by {name} at case {case.name!r}; {limit}")
        last = f": {one_line(words.splitlines()[-1])}" if words else ""
        return ProblemFileDied(f"the problem file ended its process (status {status}) at case {case.name!r}{last}")


class _Processes:
    """The confined processes of this process by problem file; the least recently used one is ended first."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._owner = os.getpid()
        self._processes: OrderedDict[str, _ConfinedProcess] = OrderedDict()

    def get(self, source: str) -> _ConfinedProcess:
        """Return the running process of a problem file; the first call starts it."""
        with self._lock:
            process = self._processes.get(source)
            if process is None or not process.alive:
                process = _ConfinedProcess(source)
                self._processes[source] = process
            self._processes.move_to_end(source)
            self._end_idle()
            return process

    def _end_idle(self) -> None:
        """End the processes beyond those that are kept, but none that somebody waits for."""
        idle = [source for source, process in self._processes.items() if not process.is_busy]
        for source in idle[: max(0, len(self._processes) - MOST_PROCESSES)]:
            self._processes.pop(source).close()

    def close(self) -> None:
        """End all processes."""
        while self._owner == os.getpid() and self._processes:
            self._processes.popitem()[1].close()


@lru_cache(maxsize=1)
def _processes(process_id: int) -> _Processes:
    """Return the confined processes of a process; a forked one starts its own."""
    processes = _Processes()
    atexit.register(processes.close)
    return processes
