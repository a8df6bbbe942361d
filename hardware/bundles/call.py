"""One call of a bundle's model: its launches on the device, and what came of them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from kernel_gym.hardware.bundles import host, launch_text
from kernel_gym.hardware.bundles.host import HostFailure, HostProgram, Parameter, TensorArgument
from kernel_gym.hardware.bundles.model_process import ModelFailure
from kernel_gym.hardware.bundles.text import Bundle
from kernel_gym.hardware.device import Array, Build, Fault, Inputs, Run, numpy_dtype
from kernel_gym.kernel import BUNDLE_TEXTS
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from kernel_gym.tasks.task import Task

#: Rules that a run of a bundle can break besides those of the device.
NO_LAUNCH, NOT_FROM_KERNEL = "NO_LAUNCH", "NOT_FROM_KERNEL"
#: How a warning begins that says which launches' values torch computed.
TORCH_COMPUTES = "TORCH_COMPUTES"
_BINDING, _HOST, _MODEL = (BUNDLE_TEXTS[name] for name in ("python_bind_src", "host_operator_src", "model_src"))
_NAN = 0xFF


@dataclass(frozen=True)
class BuiltBundle:
    """A bundle whose host code and kernel are compiled for a task."""

    bundle: Bundle
    program: HostProgram
    kernel: Build
    column: int
    task: Task


class Call:
    """One call of a bundle's model."""

    def __init__(
        self,
        built: BuiltBundle,
        source: str,
        inputs: Inputs,
        run: Callable[[Build, Inputs], Run],
        platform: Sequence[int],
    ) -> None:
        self._built, self._source, self._inputs = built, source, inputs
        self._run, self._platform = run, platform
        self.runs: list[Run] = []
        self.failure: Run | None = None
        self.unlaunched: list[torch.Tensor] | None = None
        self._computed: list[str] = []
        self._results: list[Array] = []
        self._numbers: dict[int, int] = {}  # of tensors, by their addresses in the model's process

    def launch(self, name: str, arguments: list[Any], addresses: list[int]) -> dict[int, torch.Tensor] | None:
        """Run one launch on the device; None if it failed, and then `failure` says why."""
        try:
            return self._launch(name, arguments, addresses)
        except HostFailure as failure:
            self.failure = self._fault("HOST", str(failure), _HOST)
        except ModelFailure as failure:
            self.failure = self.failed(failure)
        return None

    def pretend(self, name: str, arguments: list[Any], addresses: list[int]) -> dict[int, torch.Tensor]:
        """Answer a launch with NaN, to see whether the model's outputs depend on it."""
        tensors = [argument for argument in arguments if isinstance(argument, torch.Tensor)]
        count = len(self._built.program.operator.outputs)
        positions = range(len(tensors) - count, len(tensors))
        return {position: _all_nan(tensors[position]) for position in positions}

    def result(self, outputs: list[torch.Tensor]) -> Run:
        """Return the run with the model's outputs."""
        specs = self._inputs.signature.outputs
        if not self.runs:
            return self._fault(NO_LAUNCH, "ModelNew launches no kernel of the bundle", _MODEL)
        shapes = [(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in outputs]
        expected = [(spec.shape, spec.dtype) for spec in specs]
        if shapes != expected:
            text = f"ModelNew returns {_describe(shapes)}, the reference {_describe(expected)}"
            return self._fault("OUTPUT_SHAPE", text, _MODEL)
        if self.unlaunched is not None:
            for index, (output, other) in enumerate(zip(outputs, self.unlaunched, strict=False)):
                if output.shape == other.shape and output.numel() and torch.equal(output, other):
                    text = f"output {index} is the same without the kernel: torch computes it"
                    return self._fault(NOT_FROM_KERNEL, text, _MODEL)
        arrays = tuple(_to_numpy(tensor) for tensor in outputs)
        return _merged(self.runs, arrays, self._notes(arrays))

    def failed(self, failure: ModelFailure) -> Run:
        """Return the run of a model or binding that fails."""
        rule = "BINDING" if failure.part == _BINDING else "MODEL"
        return self._fault(rule, failure.message, failure.part, failure.line)

    def _fault(self, rule: str, message: str, part: str, line: int | None = None) -> Run:
        return Run("fault", fault=self._placed(Fault(rule, message, line), part))

    def _placed(self, fault: Fault, part: str) -> Fault:
        """Return a fault whose line is one of a bundle's texts with the place in words and the line of the file."""
        place = f"{part} line {fault.line}" if fault.line else part
        line = self._built.bundle.line_in(self._source, part, fault.line)
        return replace(fault, place=place if fault.line or part != launch_text.PART else "", line=line)

    def _notes(self, outputs: tuple[Array, ...]) -> tuple[str, ...]:
        """Return which values torch computed: those that are in no tensor that it was given."""
        computed = list(self._computed)
        computed += [f"output {i}" for i, array in enumerate(outputs) if not _consists_of(array, self._results)]
        return (
            (f"{TORCH_COMPUTES}: torch computes {', '.join(computed)}; only the kernel is timed",) if computed else ()
        )

    def _launch(self, name: str, arguments: list[Any], addresses: list[int]) -> dict[int, torch.Tensor] | None:
        operator = self._built.program.operator
        if name != f"aclnn{operator.name}":
            raise ModelFailure(_BINDING, f"{name} does not exist: the bundle's operator is aclnn{operator.name}")
        counts = len(operator.inputs), len(operator.attributes), len(operator.outputs)
        if len(arguments) != sum(counts):
            text = f"{name} takes {counts[0]} inputs, {counts[1]} attributes and {counts[2]} outputs, in this order"
            raise ModelFailure(_BINDING, f"{text}, not {len(arguments)} arguments")
        inputs, outputs = arguments[: counts[0]], arguments[counts[0] + counts[1] :]
        values = arguments[counts[0] : counts[0] + counts[1]]
        specs = [
            _argument(p, value)
            for p, value in zip((*operator.inputs, *operator.outputs), [*inputs, *outputs], strict=True)
        ]
        self._check_types(specs)
        tiling = host.tile(self._built.program, specs[: counts[0]], specs[counts[0] :], values, self._platform)
        numbers = tuple(self._numbers.setdefault(address, len(self._numbers)) for address in addresses)
        return self._on_device(inputs, outputs, tiling, numbers)

    def _check_types(self, specs: Sequence[TensorArgument]) -> None:
        operator = self._built.program.operator
        for parameter, spec in zip((*operator.inputs, *operator.outputs), specs, strict=True):
            if spec.dtype is not None and parameter.dtypes and spec.dtype != parameter.dtypes[self._column(parameter)]:
                text = f"{parameter.name} is {spec.dtype}, the operator takes {', '.join(parameter.dtypes)}"
                raise ModelFailure(_BINDING, text)

    def _column(self, parameter: Parameter) -> int:
        return min(self._built.column, len(parameter.dtypes) - 1)

    def _on_device(
        self, inputs: list[Any], outputs: list[Any], tiling: host.Tiling, numbers: tuple[int, ...]
    ) -> dict[int, torch.Tensor] | None:
        given = [(i, _to_numpy(tensor)) for i, tensor in enumerate(inputs) if tensor is not None]
        results = [_to_numpy(tensor) for tensor in outputs]
        self._note_computed([array for _, array in given])
        signature = Signature(
            inputs=tuple(InputSpec(array.shape, _name(array)) for _, array in given),
            outputs=tuple(TensorSpec(array.shape, _name(array)) for array in results),
            ints=launch_text.integers(_indices(inputs, outputs), tiling),
        )
        call = replace(
            self._inputs,
            signature=signature,
            values=tuple(array for _, array in given),
            case=None,
            workspace=tiling.workspace,
            outputs=tuple(results),
            numbers=numbers,
            continues=bool(self.runs),
            scratch=self._scratch(signature),
        )
        run = self._run(self._built.kernel, call)
        if run.status != "ok":
            fault = run.fault and self._placed(run.fault, launch_text.PART)
            self.failure = replace(run, outputs=(), fault=fault)
            return None
        self.runs.append(replace(run, outputs=()))
        self._results += run.outputs
        first = len(given)
        return {first + i: to_torch(array) for i, array in enumerate(run.outputs)}

    def _scratch(self, signature: Signature) -> tuple[int, ...]:
        """Return the outputs of a launch that are none of the task's, of which others may read a part."""
        results = {(spec.shape, spec.dtype) for spec in self._inputs.signature.outputs}
        return tuple(i for i, spec in enumerate(signature.outputs) if (spec.shape, spec.dtype) not in results)

    def _note_computed(self, arrays: list[Array]) -> None:
        known = [*(self._inputs.values or ()), *self._results]
        for index, array in enumerate(arrays):
            if not _consists_of(array, known):
                self._computed.append(f"input {index} of launch {len(self.runs) + 1}")


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


def _consists_of(array: Array, known: Sequence[Array]) -> bool:
    """Return whether every element is zero, one, or an element of one of the known arrays."""
    if array.dtype.kind != "f" or not array.size:
        return True
    same = [np.ravel(other) for other in known if other.dtype == array.dtype]
    if any(other.size == array.size and np.array_equal(other, np.ravel(array)) for other in same):
        return True
    values = np.unique(array)
    values = values[np.isfinite(values) & (values != 0) & (values != 1)]
    return bool(np.isin(values, np.concatenate(same)).all()) if same else not values.size


def _merged(runs: list[Run], outputs: tuple[Array, ...], notes: tuple[str, ...]) -> Run:
    """Return all launches of a call as one run; its profile is that of the longest."""
    longest = max(runs, key=lambda run: run.latency_us or 0.0)
    return replace(
        longest,
        outputs=outputs,
        blocks=frozenset().union(*(run.blocks for run in runs)),
        mix=sum((Counter(run.mix) for run in runs), Counter()),
        latency_us=sum(run.latency_us or 0.0 for run in runs),
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
