"""One call of a bundle's model: its launches on the device, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import torch

from kernel_gym.hardware.bundles import host, launch_text, tilings
from kernel_gym.hardware.bundles.host import HostFailure, HostProgram, Parameter, TensorArgument
from kernel_gym.hardware.bundles.model_process import ModelFailure
from kernel_gym.hardware.bundles.provenance import Origin, Probe
from kernel_gym.hardware.bundles.text import Bundle
from kernel_gym.hardware.bundles.tilings import Tilings
from kernel_gym.hardware.bundles.time_left import TimeLeft
from kernel_gym.hardware.device import Array, Build, Fault, Inputs, Run, numpy_dtype
from kernel_gym.kernel import BUNDLE_TEXTS
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from kernel_gym.tasks.task import Task

#: Rules that a run of a bundle can break besides those of the device.
NO_LAUNCH, NOT_FROM_KERNEL = "NO_LAUNCH", "NOT_FROM_KERNEL"
#: How warnings begin that say which launches' values torch computed, and which it put together.
TORCH_COMPUTES, TORCH_MOVES = "TORCH_COMPUTES", "TORCH_MOVES"
#: Most launches of one call.
MOST_LAUNCHES = 1000
#: Most characters of a message.
_LONGEST = 400
_BINDING, _HOST, _MODEL = (BUNDLE_TEXTS[name] for name in ("python_bind_src", "host_operator_src", "model_src"))
_NAN = 0xFF


@dataclass(frozen=True)
class BuiltBundle:
    """A bundle whose host code and kernel are compiled for a task; `all_calls` is the time of its verdict."""

    bundle: Bundle
    program: HostProgram
    kernel: Build
    column: int
    task: Task
    all_calls: TimeLeft
    tilings: Tilings = field(default_factory=Tilings)


@dataclass(frozen=True)
class Prices:
    """What a device asks for torch's work around the launches, in microseconds.

    Args:
        copy: Reads and writes so many bytes.
        reference: Does all of the task's work, at the highest rates of the device.
    """

    copy: Callable[[int], float]
    reference: Callable[[Signature, int], float]


class ProbeCall:
    """A call of a bundle's model without the device and without the values, see `provenance`."""

    def __init__(self, built: BuiltBundle, inputs: Inputs, platform: Sequence[int]) -> None:
        self.probe = Probe()
        #: What the launches ask the tiling function.
        self.requests: dict[str, None] = {}
        self._seen: dict[int, tuple[int, int]] = {}
        self._built, self._platform = built, platform
        self._outputs = len(built.program.operator.outputs)
        fixed = built.task.instance(inputs.case).fixed_inputs() if inputs.case else {}
        self.values = [self.probe.give(array, i in fixed) for i, array in enumerate(inputs.values or ())]

    def launch(self, name: str, arguments: list[Any], addresses: list[int], made: list[int]) -> dict[int, torch.Tensor]:
        """Answer a launch with values that are recognised later."""
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        if len(self.probe.attributes) >= MOST_LAUNCHES:
            raise ModelFailure(_MODEL, f"ModelNew makes more than {MOST_LAUNCHES} launches")
        self.probe.attributes.append(_plain_values(arguments))
        self.probe.same.append(_first_places(len(self.probe.same), addresses, self._seen))
        with suppress(ModelFailure, HostFailure):  # the call itself tells them
            self.requests[_Launch(self._built, name, arguments, self._platform).request] = None
        for tensor in tensors:
            self.probe.observe(_to_numpy(tensor))
        results = range(max(0, len(tensors) - self._outputs), len(tensors))
        return {i: to_torch(self.probe.give(np.zeros_like(_to_numpy(tensors[i])), result=True)) for i in results}

    def returned(self, outputs: list[torch.Tensor]) -> None:
        """Keep what the model returned."""
        for tensor in outputs:
            self.probe.observe(_to_numpy(tensor))


class Call:
    """One call of a bundle's model."""

    def __init__(
        self,
        built: BuiltBundle,
        source: str,
        inputs: Inputs,
        run: Callable[[Build, Inputs], Run],
        platform: Sequence[int],
        budget: int,
        probe: Probe,
    ) -> None:
        self._built, self._source, self._inputs = built, source, inputs
        self._run, self._platform, self._budget = run, platform, budget
        self._probe = probe
        self.runs: list[Run] = []
        self.failure: Run | None = None
        self.computed: list[str] = []
        self.moved: list[tuple[str, int]] = []  # names, and the bytes that are read and written for them
        self.results: list[list[Array]] = []
        self._tiling_left = tilings.limit(built.all_calls)
        self._sent = 0
        self._written: list[Origin] = []  # results of launches that others have written over
        self._tensors: dict[int, tuple[int, Array]] = {}  # number and content by their addresses in the model's process
        self._numbers = 0
        self._seen: dict[int, tuple[int, int]] = {}

    def launch(
        self, name: str, arguments: list[Any], addresses: list[int], made: list[int]
    ) -> dict[int, torch.Tensor] | None:
        """Run one launch on the device; None if it failed, and then `failure` says why, or if one before it failed."""
        if self.failure is not None:
            return None
        try:
            return self._launch(name, arguments, addresses, made)
        except HostFailure as failure:
            status: Literal["timeout", "fault"] = "timeout" if failure.late else "fault"
            self.failure = replace(self._fault("HOST", str(failure), _HOST), status=status)
        except ModelFailure as failure:
            self.failure = self.failed(failure)
        return None

    def pretend(
        self, name: str, arguments: list[Any], addresses: list[int], made: list[int]
    ) -> dict[int, torch.Tensor]:
        """Answer a launch with NaN, to see whether the model's outputs depend on it."""
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        count = len(self._built.program.operator.outputs)
        positions = range(max(0, len(tensors) - count), len(tensors))
        return {position: _all_nan(tensors[position]) for position in positions}

    def replay(self) -> Callable[[str, list[Any], list[int], list[int]], dict[int, torch.Tensor]]:
        """Return a function that answers launches with the results of this call."""
        remaining: Iterator[list[Array]] = iter(self.results)

        def answer(name: str, arguments: list[Any], addresses: list[int], made: list[int]) -> dict[int, torch.Tensor]:
            results = next(remaining, [])
            first = sum(isinstance(argument, torch.Tensor) for argument in arguments) - len(results)
            return {first + i: to_torch(array) for i, array in enumerate(results)}

        return answer

    def returned(self, outputs: list[torch.Tensor], made: list[int]) -> Run | None:
        """Look at what the model returned; return the run if there is nothing to compare.

        Args:
            outputs: What it returned.
            made: The positions of those that torch wrote.
        """
        if not self.runs:
            return self._fault(NO_LAUNCH, "ModelNew launches no kernel of the bundle", _MODEL)
        shapes = [(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in outputs]
        expected = [(spec.shape, spec.dtype) for spec in self._inputs.signature.outputs]
        if shapes != expected:
            text = f"ModelNew returns {_describe(shapes)}, the reference {_describe(expected)}"
            return self._fault("OUTPUT_SHAPE", text, _MODEL)
        for index, tensor in enumerate(outputs):
            self._note(f"output {index}", _to_numpy(tensor), "output", index in made)
        if len(self.runs) != len(self._probe.attributes):
            self.computed.append("the number of launches")
        return None

    def without_launches(self, outputs: list[torch.Tensor], others: list[torch.Tensor]) -> Run | None:
        """Return the run of a model that returns the same although its launches returned NaN; None if it does not."""
        for index, (output, other) in enumerate(zip(outputs, others, strict=False)):
            if output.shape == other.shape and output.numel() and torch.equal(output, other):
                text = f"output {index} is the same without the kernel: torch computes it"
                return self._fault(NOT_FROM_KERNEL, text, _MODEL)
        return None

    def result(self, outputs: list[torch.Tensor], torch_us: float) -> Run:
        """Return the run with the model's outputs; `torch_us` is the price of torch's work."""
        arrays = tuple(_to_numpy(tensor) for tensor in outputs)
        return _merged(self.runs, arrays, self._notes(), torch_us)

    def failed(self, failure: ModelFailure) -> Run:
        """Return the run of a model or binding that fails."""
        return failed(self._built, self._source, failure)

    def _fault(self, rule: str, message: str, part: str) -> Run:
        return _fault(self._built, self._source, Fault(rule, message), part)

    def _notes(self) -> tuple[str, ...]:
        """Return which values torch computed, and which it put together."""
        notes = []
        if self.computed:
            text = f"torch computes {', '.join(self.computed)}"
            notes.append(f"{TORCH_COMPUTES}: {text}; its work is timed at the highest rates of the device")
        if self.moved:
            text = f"torch puts together {', '.join(name for name, _ in self.moved)}"
            notes.append(f"{TORCH_MOVES}: {text}; each is timed as a copy")
        return tuple(notes)

    def _launch(
        self, name: str, arguments: list[Any], addresses: list[int], made: list[int]
    ) -> dict[int, torch.Tensor] | None:
        launch = _Launch(self._built, name, arguments, self._platform)
        if len(self.runs) >= MOST_LAUNCHES:
            raise ModelFailure(_MODEL, f"ModelNew makes more than {MOST_LAUNCHES} launches")
        self._note_attributes(_plain_values(arguments))
        self._note_same(_first_places(len(self.runs), addresses, self._seen))
        return self._on_device(launch.inputs, launch.outputs, self._tiling(launch.request), addresses, made)

    def _tiling(self, request: str) -> host.Tiling:
        """Return what the tiling function set for a request.

        For one that the second call did not make, the function runs now, while a process lives that knows the values:
        the tiling may tell them, so torch has computed it.
        """
        known = self._built.tilings.find(request)
        if known is None:
            self.computed.append(f"what launch {len(self.runs) + 1} asks the tiling function")
        return known or host.tile(self._built.program, request, self._tiling_left)

    def _on_device(
        self, inputs: list[Any], outputs: list[Any], tiling: host.Tiling, addresses: list[int], made: list[int]
    ) -> dict[int, torch.Tensor] | None:
        given = [_to_numpy(tensor) for tensor in inputs if tensor is not None]
        memory = [_to_numpy(tensor) for tensor in outputs]
        number = len(self.runs) + 1
        paid = [
            self._note(f"input {index} of launch {number}", array, "input", index in made)
            for index, array in enumerate(given)
        ]
        for index, array in enumerate(memory, len(given)):
            name = f"the content of output {index - len(given)} of launch {number}"
            inputs_there = _where_it_is(array, addresses[index], given, addresses)
            is_made = index in made and not inputs_there
            self._note(name, array, "memory", is_made, any(paid[place] for place in inputs_there))
            for place in inputs_there:
                paid[place] = False  # one copy is the memory of one output
        numbers = [self._number(address, array) for address, array in zip(addresses, given, strict=False)]
        for address, array in zip(addresses[len(given) :], memory, strict=True):
            numbers.append(self._number(address, array, numbers))
        signature = Signature(
            inputs=tuple(InputSpec(array.shape, _name(array)) for array in given),
            outputs=tuple(TensorSpec(array.shape, _name(array)) for array in memory),
            ints=launch_text.integers(_indices(inputs, outputs), tiling),
        )
        call = replace(
            self._inputs,
            signature=signature,
            values=tuple(given),
            case=None,
            workspace=tiling.workspace,
            outputs=tuple(memory),
            numbers=tuple(numbers),
            continues=bool(self.runs),
            scratch=self._scratch(signature),
            launch=len(self.runs),
        )
        run = self._run(self._built.kernel, call)
        if run.status != "ok" or self._is_over_budget(run):
            self.failure = self._stopped(run)
            return None
        self.runs.append(replace(run, outputs=()))
        self.results.append(list(run.outputs))
        first = len(given)
        for address, array in zip(addresses[first:], run.outputs, strict=True):
            self._tensors[address] = (self._tensors[address][0], array)
        return {first + i: to_torch(array) for i, array in enumerate(run.outputs)}

    def _is_over_budget(self, run: Run) -> bool:
        return run.spent + sum(earlier.spent for earlier in self.runs) > self._budget * self._inputs.effort

    def _stopped(self, run: Run) -> Run:
        """Return the run of a launch that failed, as that of the call; of its outputs nothing is written."""
        if run.status == "ok":
            run = Run("timeout", fault=Fault("BUDGET", "all launches together take more than one may"), spent=run.spent)
        fault = run.fault and _placed(self._built, self._source, run.fault, launch_text.PART)
        poison = bytes([self._inputs.poison & 0xFF])
        blanks = (
            np.frombuffer(poison * spec.nbytes, numpy_dtype(spec.dtype)).reshape(spec.shape)
            for spec in self._inputs.signature.outputs
        )
        return replace(run, outputs=tuple(blanks), fault=fault)

    def _number(self, address: int, array: Array, taken: Sequence[int] = ()) -> int:
        """Return the number of a tensor; the same address stands for the same tensor while its content is the same.

        An output gets none of the numbers that the launch has already: what is written there does not bring an input at
        the same address into the cache, because the device keeps them apart.
        """
        number, content = self._tensors.get(address, (self._numbers, array))
        if number == self._numbers or number in taken or not _is_same(content, array):
            number, self._numbers = self._numbers, self._numbers + 1
        self._tensors[address] = (number, array)
        return number

    def _note(
        self, name: str, array: Array, role: Literal["input", "memory", "output"], made: bool, is_paid: bool = False
    ) -> bool:
        """Note an array that torch computed, put together, copied or filled, and return whether that has a price.

        What a launch writes over is there no more: the next call needs constants and inputs of the task again, and a
        result that is used once more was copied before. A whole copy of what is still there looks like the original.

        Args:
            name: What it is.
            array: Its values.
            role: Whether it is an input of a launch, the memory of an output before the launch, or the model's output.
            made: Whether torch wrote it in this call, as the model's process says.
            is_paid: Whether it has its price already, as an input of the same launch.
        """
        known = [*(self._inputs.values or ()), *(array for results in self.results for array in results)]
        origin = self._probe.origin(self._sent, array, known)
        self._sent += 1
        price = 0
        if origin.kind == "computed":
            self.computed.append(name)
        elif origin.kind == "constant":
            price = array.nbytes if (made or role != "input") and not self._is_unset(array) else 0
        elif origin.kind == "moved" or made or self._is_gone(origin) or (origin.kind == "input" and role == "memory"):
            price = 2 * array.nbytes
        if origin.kind == "result" and role == "memory":
            self._written.append(origin)
        if price and not is_paid:
            self.moved.append((name, price))
        return price > 0

    def _is_gone(self, origin: Origin) -> bool:
        """Return whether a launch has written over what an array is: then it is a copy that was made before."""
        return any(origin.meets(written) for written in self._written)

    def _is_unset(self, array: Array) -> bool:
        """Return whether an array is memory that nobody has written."""
        return bool((_bytes(array) == self._inputs.poison & 0xFF).all())

    def _note_attributes(self, values: list[Any]) -> None:
        launch = len(self.runs)
        if self._probe.attributes[launch : launch + 1] != [values]:
            self.computed.append(f"an attribute of launch {launch + 1}")

    def _note_same(self, same: list[tuple[int, int]]) -> None:
        """Note a launch that gets other tensors in the second call: the choice of tensors could encode an answer."""
        launch = len(self.runs)
        if self._probe.same[launch : launch + 1] != [same]:
            self.computed.append(f"which tensors launch {launch + 1} gets")

    def _scratch(self, signature: Signature) -> tuple[int, ...]:
        """Return the outputs of a launch that are none of the task's, of which others may read a part."""
        results = {(spec.shape, spec.dtype) for spec in self._inputs.signature.outputs}
        return tuple(i for i, spec in enumerate(signature.outputs) if (spec.shape, spec.dtype) not in results)


class _Launch:
    """The arguments of one launch: its inputs, its outputs, and what they ask the tiling function.

    A ModelFailure or HostFailure if they are not those of the operator.
    """

    def __init__(self, built: BuiltBundle, name: str, arguments: list[Any], platform: Sequence[int]) -> None:
        operator = built.program.operator
        if name != f"aclnn{operator.name}":
            raise ModelFailure(_BINDING, f"{name} does not exist: the bundle's operator is aclnn{operator.name}")
        counts = len(operator.inputs), len(operator.attributes), len(operator.outputs)
        if len(arguments) != sum(counts):
            text = f"{name} takes {counts[0]} inputs, {counts[1]} attributes and {counts[2]} outputs, in this order"
            raise ModelFailure(_BINDING, f"{text}, not {len(arguments)} arguments")
        self.inputs, self.outputs = arguments[: counts[0]], arguments[counts[0] + counts[1] :]
        if any(output is None for output in self.outputs):
            raise ModelFailure(_BINDING, f"{name} needs a tensor for every output")
        values = arguments[counts[0] : counts[0] + counts[1]]
        parameters = (*operator.inputs, *operator.outputs)
        specs = [_argument(p, value) for p, value in zip(parameters, [*self.inputs, *self.outputs], strict=True)]
        for parameter, spec in zip(parameters, specs, strict=True):
            if spec.dtype is not None and spec.dtype not in _dtypes(built, parameter):
                text = f"{parameter.name} is {spec.dtype}, the operator takes {', '.join(parameter.dtypes)}"
                raise ModelFailure(_BINDING, text)
        self.request = host.request(operator, specs[: counts[0]], specs[counts[0] :], values, platform)


def _dtypes(built: BuiltBundle, parameter: Parameter) -> Collection[str]:
    """Return the element types that a tensor may have: that of the combination the kernel is compiled for."""
    own = parameter.dtypes
    return own[min(built.column, len(own) - 1) :][:1] if own else host.DATA_TYPES


def _where_it_is(array: Array, address: int, given: Sequence[Array], addresses: Sequence[int]) -> list[int]:
    """Return which inputs of the same launch an output is, too, as its address says and its bytes confirm."""
    pairs = enumerate(zip(given, addresses, strict=False))
    return [i for i, (other, at) in pairs if at == address and _is_same(other, array)]


def failed(built: BuiltBundle, source: str, failure: ModelFailure) -> Run:
    """Return the run of a model or binding that fails."""
    rule = "BINDING" if failure.part == _BINDING else "MODEL"
    run = _fault(built, source, Fault(rule, failure.message, failure.line), failure.part)
    return replace(run, status="timeout") if failure.late else run


def _fault(built: BuiltBundle, source: str, fault: Fault, part: str) -> Run:
    message = (
        fault.message[:_LONGEST].encode(errors="replace").decode()
    )  # Python has halves of characters, files do not
    return Run("fault", fault=_placed(built, source, replace(fault, message=message), part))


def _placed(built: BuiltBundle, source: str, fault: Fault, part: str) -> Fault:
    """Return a fault whose line is one of a bundle's texts with the place in words and the line of the file."""
    lines = built.bundle.parts.get(part, "").count("\n") + 1
    own = fault.line if fault.line is not None and 1 <= fault.line <= lines else None  # a model may tell any line
    place = f"{part} line {own}" if own else part
    line = built.bundle.line_in(source, part, own)
    return replace(fault, place=place if own or part != launch_text.PART else "", line=line)


def _all_nan(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor of the same shape and type whose bytes are those of NaN."""
    array = _to_numpy(tensor)
    return to_torch(np.frombuffer(bytes([_NAN]) * array.nbytes, array.dtype).reshape(array.shape).copy())


def _argument(parameter: Parameter, value: Any) -> TensorArgument:
    if value is None and parameter.optional:
        return TensorArgument((), None)
    if not isinstance(value, torch.Tensor):
        raise ModelFailure(
            _BINDING, f"EXEC_NPU_CMD passes {value!r} where the operator has the tensor {parameter.name}"
        )
    return TensorArgument(tuple(value.shape), str(value.dtype).removeprefix("torch."))


def _indices(inputs: list[Any], outputs: list[Any]) -> list[int]:
    """Return for each argument the index of its tensor; -1 for an absent one."""
    present = [tensor is not None for tensor in inputs]
    indices = [sum(present[:i]) if is_present else -1 for i, is_present in enumerate(present)]
    return indices + [sum(present) + i for i in range(len(outputs))]


def _plain_values(arguments: list[Any]) -> list[str]:
    """Return the arguments of a launch in a form in which NaN equals itself, with a mark in place of each tensor.

    The marks show the positions of the tensors, in which a model could encode a number.
    """
    return ["tensor" if isinstance(argument, torch.Tensor) else repr(argument) for argument in arguments]


def _first_places(launch: int, addresses: list[int], seen: dict[int, tuple[int, int]]) -> list[tuple[int, int]]:
    """Return where each tensor of a launch first occurred in the call, as launch and position. Updates `seen`."""
    return [seen.setdefault(address, (launch, place)) for place, address in enumerate(addresses)]


def _is_same(array: Array, other: Array) -> bool:
    """Return whether two arrays have the same bytes; one may be a view of the other with another shape."""
    return array.dtype == other.dtype and np.array_equal(_bytes(array), _bytes(other))


def _bytes(array: Array) -> Array:
    return np.ravel(array).view(np.uint8)


def _merged(runs: list[Run], outputs: tuple[Array, ...], notes: tuple[str, ...], torch_us: float) -> Run:
    """Return all launches of a call and torch's work as one run; its profile is that of the longest launch."""
    longest = max(runs, key=lambda run: run.latency_us or 0.0)
    return replace(
        longest,
        outputs=outputs,
        blocks=frozenset().union(*(run.blocks for run in runs)),
        mix=sum((Counter(run.mix) for run in runs), Counter()),
        latency_us=sum(run.latency_us or 0.0 for run in runs) + torch_us,
        warnings=(*(text for run in runs for text in run.warnings), *notes),
        printed="".join(run.printed for run in runs),
        spent=sum(run.spent for run in runs),
        seconds=sum(run.seconds for run in runs),
    )


def _describe(shapes: list[tuple[tuple[int, ...], str]]) -> str:
    return ", ".join(f"{dtype}{list(shape)}" for shape, dtype in shapes) or "no tensor"


def _name(array: Array) -> str:
    return str(array.dtype)


def to_torch(array: Array) -> torch.Tensor:
    """Return an array as a tensor, bfloat16 included."""
    array = np.ascontiguousarray(array).reshape(np.shape(array))
    if array.dtype.name == "bfloat16":
        return torch.from_numpy(array.view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


def _to_numpy(tensor: torch.Tensor) -> Array:
    plain = tensor.detach().contiguous()
    if plain.dtype == torch.bfloat16:
        return np.asarray(plain.view(torch.int16).numpy().view(numpy_dtype("bfloat16")))
    return np.asarray(plain.numpy())
