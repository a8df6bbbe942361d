"""A task at one case: its module built from the text, with its signature.

The text is executed in this process: it is that of a packaged task, or of a problem file that the user trusts.
Other files run in a confined process, see `confined_instance`. Signatures are computed on fake tensors, so that the
large timing case costs no memory; the module itself is built only when it is evaluated.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import linecache
import logging
import sys
import types
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from functools import cached_property, lru_cache
from operator import attrgetter
from typing import Any, TypeVar, cast

import torch
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensor,
    FakeTensorMode,
)
from torch.export import ExportedProgram
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils.flop_counter import FlopCounterMode

from kernel_gym.errors import KernelGymError, TaskError
from kernel_gym.tasks.exported_graph import TRACING, data_dependent, export_module, lifted_constants
from kernel_gym.tasks.forward_calls import FewCalls, ForwardCalls, FunctionalForward, Layers, TooManyCalls, same_memory
from kernel_gym.tasks.graph import Graph, graph_of
from kernel_gym.tasks.module_copy import as_floats, bound_copy, copied, tensor_attributes, with_fakes
from kernel_gym.tasks.size_constants import with_sizes
from kernel_gym.tasks.specs import DTYPES, Case, Domain, InputSpec, Signature, TensorSpec, input_seed, model_seed
from kernel_gym.tasks.trials import Counts, Trial, TrialModes
from kernel_gym.tasks.value_domains import OnHost, Products, Recorder, observed_domain, state_domain

#: Buffers that batch statistics fill, and those that count their batches. Every other buffer holds a value that the
#: module defines (a mask, a table), or one that its constructor draws.
STATISTICS, COUNTERS = frozenset({"running_mean", "running_var"}), frozenset({"num_batches_tracked"})

# Problem files draw from torch's global generator, which all threads share; and they are traced.
_BUILDING = TRACING

T = TypeVar("T")


class _built(cached_property[T]):  # noqa: N801 - used as a decorator
    """A cached property that is computed while nothing else is built.

    In Python 3.11 a cached property has a lock for all objects of the class. One thread would hold it and wait for
    `_BUILDING`, while another one builds a module and waits for the property.
    """

    def __get__(self, instance: Any, owner: type[Any] | None = None) -> T:  # type: ignore[override]
        with _BUILDING:
            value: T = super().__get__(instance, owner)
            return value


def instantiate(source: str, digest: str, public: Case, case: Case) -> ModuleInstance:
    """Return the module of a text at one case; cached by content. The public case tells the domains of its inputs."""
    with _BUILDING:
        return _instance(source, digest, public, case)


@lru_cache(maxsize=2048)
def _instance(source: str, digest: str, public: Case, case: Case) -> ModuleInstance:
    return ModuleInstance(source, digest, case, _domains(source, digest, public))


@lru_cache(maxsize=1024)
def _domains(source: str, digest: str, public: Case) -> tuple[Domain, ...]:
    """Return the domain of each tensor argument, from the values at the public case."""
    instance = ModuleInstance(source, digest, public, ())
    arguments, recorder = instance.draw()
    tensors = _tensors(arguments)
    domains = [recorder.domain_of(tensor) or observed_domain(tensor) for tensor in tensors]
    for position, domain in enumerate(domains):
        if domain.kind in ("unit", "positive") and instance.is_finite_beyond(tensors, position):
            domains[position] = Domain("real")
    return tuple(domains)


class ModuleInstance:
    """A task at one case: the module built from its text, and its signature."""

    def __init__(self, source: str, digest: str, case: Case, domains: tuple[Domain, ...]) -> None:
        self.case = case
        self.digest = digest
        self._names = _execute(source, digest, case)
        self._writes_tensors = _writes_tensors(source)
        self._mode = FakeTensorMode(allow_non_fake_inputs=True)
        self.signature = self._signature(domains)

    def evaluate(self, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None) -> tuple[torch.Tensor, ...]:
        """Run the reference on `inputs`; see `kernel_gym.tasks.task.Instance`."""
        return self._evaluate(self.model(), inputs, dtype, nullcontext())

    def tried(
        self,
        inputs: Sequence[torch.Tensor],
        trial: Trial,
        dtype: torch.dtype | None = None,
        usual: torch.Tensor | None = None,
    ) -> tuple[tuple[torch.Tensor, ...], Counts]:
        """Run the reference as a trial says; see `kernel_gym.tasks.task.Instance`."""
        model, modes = self.model(), TrialModes(trial, usual)
        if trial.fewer_iterations and self.iterations() > 0:
            model = copy(model)  # other threads use the module itself
            model.__dict__["iterations"] = max(0, self.iterations() - trial.fewer_iterations)
        return self._evaluate(model, inputs, dtype, modes), modes.counts

    def _evaluate(
        self,
        model: torch.nn.Module,
        inputs: Sequence[torch.Tensor],
        dtype: torch.dtype | None,
        modes: AbstractContextManager[None],
    ) -> tuple[torch.Tensor, ...]:
        if len(inputs) != len(self.signature.inputs):
            raise TaskError(f"the reference takes {len(self.signature.inputs)} tensors, not {len(inputs)}")
        module, arguments = self._bound(model, [_copy(tensor, dtype) for tensor in inputs], dtype)
        with (
            torch.no_grad(),
            OnHost(),
            self._draws(dtype),
            _task_error("the reference does not run", self.case),
            modes,
        ):
            outputs = _tensors(module(*arguments))
        names = [spec.name for spec in self.signature.inputs if spec.origin == "argument"]
        held = dict(zip(names, _tensors(arguments), strict=True))
        held |= dict(module.named_parameters()) | dict(module.named_buffers())
        changed = [held[name] for name in self.signature.changes]
        return tuple(tensor.detach().contiguous() for tensor in (*outputs, *changed))

    def statistics(self, inputs: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
        """Return the means and variances of what reaches each batch norm; see `kernel_gym.tasks.task.Instance`."""
        copies = [_copy(tensor, torch.float64) for tensor in inputs]
        module, arguments = self._bound(self.model(), copies, torch.float64)
        for layer in module.modules():
            if isinstance(layer, torch.nn.modules.batchnorm._BatchNorm) and layer.running_mean is not None:
                layer.register_forward_pre_hook(_take_statistics)
        with (
            torch.no_grad(),
            OnHost(),
            self._draws(torch.float64),
            _task_error("the reference does not run", self.case),
        ):
            module(*arguments)
        buffers = dict(module.named_buffers())
        positions = {spec.name: position for position, spec in enumerate(self.signature.inputs)}
        return {positions[name]: buffers[name] for name in positions if _last(name) in STATISTICS and name in buffers}

    def bound(self, inputs: Sequence[torch.Tensor], device: torch.device) -> Callable[[], object]:
        """Return a call of the reference on `inputs` (ordered as `signature.inputs`), on a device of torch's."""
        module, arguments = self._bound(self.model(), [tensor.to(device) for tensor in inputs])

        def call() -> object:
            with (
                torch.no_grad(),
                device,
                self._draws(),
                _task_error(f"the reference does not run on {device}", self.case),
            ):
                return module(*arguments)

        return call

    def _bound(
        self, model: torch.nn.Module, inputs: Sequence[torch.Tensor], dtype: torch.dtype | None = None
    ) -> tuple[torch.nn.Module, tuple[object, ...]]:
        """Return a copy of the module with these parameters, buffers and constants, and its arguments."""
        named = list(zip(self.signature.inputs, inputs, strict=True))
        held = {spec.name: tensor for spec, tensor in named if spec.origin != "argument"}
        arguments = [tensor for spec, tensor in named if spec.origin == "argument"]
        return bound_copy(model, held, dtype), _with_tensors(self._arguments, arguments)

    def model(self) -> torch.nn.Module:
        """Return the module in `eval()` with randomised parameters and buffers."""
        return self._model

    def iterations(self) -> int:
        """Return the number of iterations that the module has; 0 if it does not have such a number."""
        iterations = getattr(self._fake_model, "iterations", None)
        return max(0, iterations) if isinstance(iterations, int) else 0

    def example_arguments(self) -> tuple[object, ...]:
        """Return the arguments of `forward` that `get_inputs()` gives, tensors and scalars; the same at every call."""
        return self.draw()[0]

    def fixed_inputs(self) -> dict[int, torch.Tensor]:
        """Return the inputs whose values the module defines, by position in `signature.inputs`.

        These are masks and tables that the module keeps as buffers, counters, and the constants that export lifts. A
        check uses these values instead of random ones.
        """
        tables, drawn = dict(self.model().named_buffers()) | self._constants, self.drawn_inputs()
        return {
            position: tables[spec.name].detach().clone()
            for position, spec in enumerate(self.signature.inputs)
            if spec.origin != "argument"
            and spec.name in tables
            and _last(spec.name) not in STATISTICS
            and position not in drawn
        }

    def drawn_inputs(self) -> frozenset[int]:
        """Return which inputs the module's constructor draws at random; see `kernel_gym.tasks.task.Instance`."""
        specs = enumerate(self.signature.inputs)
        return frozenset(p for p, spec in specs if spec.origin != "argument" and spec.name in self._drawn)

    def own_inputs(self, seed: int) -> tuple[torch.Tensor, ...]:
        """Return inputs as the problem file makes them, drawn from `seed`; see `kernel_gym.tasks.task.Instance`."""
        with _BUILDING, torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(model_seed(seed))
            model = self._build()
            torch.default_generator.manual_seed(input_seed(seed))
            with OnHost(), _task_error("get_inputs() fails", self.case):
                arguments = iter(_tensors(tuple(self._names["get_inputs"]())))
        held = model.state_dict() | self._constants | {name: attrgetter(name)(model) for name in self._drawn}
        tensors = (next(arguments) if s.origin == "argument" else held[s.name] for s in self.signature.inputs)
        return tuple(tensor.detach().contiguous() for tensor in tensors)

    def fake(self) -> tuple[torch.nn.Module, tuple[object, ...]]:
        """Return module and arguments as fake tensors, without memory behind them; cheap at any size."""
        with _BUILDING, self._mode:
            return with_fakes(self._fake_model), self._arguments

    def export(self, *, dynamic: bool = False, decomposed: bool = True, layers: bool = False) -> ExportedProgram:
        """Export the module to an ATen graph, see `export_module`. The timing case is exported from fake tensors."""
        if self.case.role == "timing":
            with self._draws():
                return export_module(*self.fake(), dynamic=dynamic, decomposed=decomposed, layers=layers)
        # A copy: forward() may keep something in its module, and exporting runs it.
        model, arguments = copied(self.model()), self.example_arguments()
        with self._draws():
            return export_module(model, arguments, dynamic=dynamic, decomposed=decomposed, layers=layers)

    def graph(self, *, layers: bool = False) -> Graph:
        """Return the module's graph of core ATen operators as plain data; `layers` keeps recurrent layers whole."""
        names = [spec.name for spec in self.signature.inputs if spec.origin == "argument"]
        return replace(graph_of(self.export(layers=layers), self.signature.changes, names), ints=self.signature.ints)

    def draw(self) -> tuple[tuple[object, ...], Recorder]:
        """Return real arguments and the record of how they were drawn."""
        recorder = Recorder()
        with self._seeded("arguments"), OnHost(), recorder, _task_error("get_inputs() fails", self.case):
            return tuple(self._names["get_inputs"]()), recorder

    def run_example(self) -> tuple[torch.Tensor, ...]:
        """Run the module once on its own example."""
        arguments = self.example_arguments()
        with torch.no_grad(), OnHost(), self._draws(), _task_error("forward() fails", self.case):
            return tuple(_tensors(copied(self.model())(*arguments)))

    def is_finite_beyond(self, tensors: Sequence[torch.Tensor], position: int) -> bool:
        """Return whether the reference stays finite if one argument takes negative and large values too."""
        generator = torch.Generator().manual_seed(self._seed("beyond"))
        wide = list(tensors)
        wide[position] = (torch.randn(wide[position].shape, generator=generator) * 4).to(wide[position].dtype)
        try:
            with torch.no_grad(), OnHost(), self._draws():
                outputs = _tensors(copied(self.model())(*_with_tensors(self._arguments, wide)))
        except (RuntimeError, ValueError, IndexError):
            return False
        return all(bool(torch.isfinite(tensor).all()) for tensor in outputs)

    def work(self) -> int:
        """Return about how many operations a plain kernel needs: multiply-adds of products, and elements."""
        return self._work

    @_built
    def _work(self) -> int:
        counter, layers = FlopCounterMode(display=False), Layers()
        with _BUILDING, _unlogged(), self._mode, counter, torch.no_grad(), OnHost(), self._draws(), layers:
            with_fakes(self._fake_model)(*self._arguments)
        elements = sum(spec.numel for spec in (*self.signature.inputs, *self.signature.outputs))
        return int(counter.get_total_flops()) // 2 + layers.multiply_adds + elements

    def nonlinear(self) -> bool:
        """Return whether `forward` computes what sums of products and clipping at zero cannot."""
        return self._nonlinear

    @_built
    def _model(self) -> torch.nn.Module:
        with self._seeded("parameters"):
            return _randomised(self._build())

    @_built
    def _drawn(self) -> frozenset[str]:
        """The names of the tensors, besides parameters, that differ between two modules of other random numbers."""
        if not _tables(self._fake_model):  # large modules take seconds to build
            return frozenset()
        with self._seeded("other parameters"):
            others = _tables(self._build())
        return frozenset(name for name, table in _tables(self.model()).items() if not torch.equal(table, others[name]))

    @_built
    def _constants(self) -> dict[str, torch.Tensor]:
        if not (self._writes_tensors or self._places or _loose_tensors(self._fake_model)):
            return {}
        constants = lifted_constants(self.export(decomposed=False))
        # The timing case is exported without values: those of the module's own tensors are in the module.
        fakes = [name for name, value in constants.items() if isinstance(value, FakeTensor)]
        return constants | {name: attrgetter(name)(self.model()) for name in fakes}

    def _signature(self, domains: tuple[Domain, ...]) -> Signature:
        with _BUILDING, _unlogged(), self._mode:
            self._fake_model = self._without_values()
            self._arguments, recorder = self.draw()
            products, calls, draws, model = Products(), ForwardCalls(), self._draws(), with_fakes(self._fake_model)
            running = _task_error("forward() fails", self.case)
            with torch.no_grad(), OnHost(), draws, products, calls, Layers(calls), running:
                outputs = _tensors(model(*self._arguments))
            self._places, self._nonlinear = tuple(draws.places), calls.nonlinear
            changed = self._changed(model, outputs, calls)
        scalars = [*_scalars(self._names["get_init_inputs"]()), *_scalars(self._arguments)]
        arguments = self._argument_specs(domains, recorder, products)
        return Signature(
            inputs=(*arguments, *self._state_specs(), *self._constant_specs()),
            outputs=tuple(_spec(tensor) for tensor in (*outputs, *changed.values())),
            ints=tuple(int(value) for value in scalars if isinstance(value, int)),
            floats=tuple(value for value in scalars if isinstance(value, float)),
            changes=tuple(changed),
            draws=self._places,
            structure=calls.structure,
            calls=draws.calls,
            unordered=calls.unordered,
        )

    def _changed(
        self, model: torch.nn.Module, outputs: list[torch.Tensor], calls: ForwardCalls
    ) -> dict[str, torch.Tensor]:
        """Return the arguments, parameters and buffers that `forward` changed and did not return, by name."""
        names = _argument_names(model, self._arguments)
        held = dict(zip(names, _tensors(self._arguments), strict=True))
        held |= dict(model.named_parameters()) | dict(model.named_buffers())
        return {
            name: tensor
            for name, tensor in held.items()
            if calls.changed(tensor) and not any(same_memory(tensor, output) for output in outputs)
        }

    def _draws(self, dtype: torch.dtype | None = None) -> FunctionalForward:
        return FunctionalForward(self._seed("draws") % (1 << 48), dtype)

    def _argument_specs(self, domains: tuple[Domain, ...], recorder: Recorder, products: Products) -> list[InputSpec]:
        tensors = _tensors(self._arguments)
        names = _argument_names(self._fake_model, self._arguments)
        specs = []
        for position, (name, tensor) in enumerate(zip(names, tensors, strict=True)):
            domain = domains[position] if position < len(domains) else Domain()
            if domain.kind == "index":
                domain = recorder.domain_of(tensor) or domain
            if factors := products.factors_of(tensor):
                domain = replace(domain, factors=factors)
            specs.append(InputSpec(**vars(_spec(tensor)), name=name, domain=domain))
        return specs

    def _state_specs(self) -> list[InputSpec]:
        return [
            InputSpec(**vars(_spec(value)), name=name, origin="state", domain=state_domain(name, value))
            for name, value in self._fake_model.state_dict().items()
        ]

    def _constant_specs(self) -> list[InputSpec]:
        return [
            InputSpec(**vars(_spec(value)), name=name, origin="constant", domain=state_domain(name, value))
            for name, value in self._constants.items()
        ]

    def _without_values(self) -> torch.nn.Module:
        """Return the module with fake tensors; it is built with values if its constructor reads some, or is long."""
        try:
            with FewCalls():
                return self._build()
        except TaskError as error:
            if not isinstance(error.__cause__, DataDependentOutputException | TooManyCalls):
                raise
        with _disable_current_modes():
            model = self._build()
        return with_fakes(model)

    def _build(self) -> torch.nn.Module:
        with OnHost(), _swapping_fakes(), _task_error("Model cannot be built", self.case):
            model, (positional, named) = self._names["Model"], _init(self._names)
            return cast(torch.nn.Module, model(*positional, **named).eval())

    def _seed(self, what: str) -> int:
        return int.from_bytes(hashlib.sha256(f"{self.digest} {self.case.name} {what}".encode()).digest()[:7], "big")

    @contextmanager
    def _seeded(self, what: str) -> Iterator[None]:
        with _BUILDING, torch.random.fork_rng(devices=[]):
            torch.default_generator.manual_seed(self._seed(what))
            yield


def _take_statistics(layer: torch.nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
    """Give a batch norm the mean and the variance of its argument."""
    dimensions = [d for d in range(arguments[0].dim()) if d != 1]
    layer.running_var, layer.running_mean = torch.var_mean(arguments[0], dimensions, correction=0)


def _execute(source: str, digest: str, case: Case) -> dict[str, Any]:
    """Run the module's text with the case's sizes and return its namespace."""
    name = f"kernel_gym_problem_{digest[:16]}_{case.name}".replace("-", "_")
    tree = with_sizes(source, dict(case.sizes))
    module = types.ModuleType(name)
    # Dataclasses look their module up by name, tracebacks and torch.jit look up the text.
    sys.modules[name] = module
    linecache.cache[f"<{name}>"] = (len(source), None, source.splitlines(keepends=True), f"<{name}>")
    with _task_error("the problem file does not run", case):
        exec(compile(tree, f"<{name}>", "exec"), module.__dict__)
    for required in ("Model", "get_inputs", "get_init_inputs"):
        if required not in module.__dict__:
            raise TaskError(
                f"the problem file defines no {required}; the format is Model, get_inputs(), get_init_inputs()"
            )
    return module.__dict__


def _init(names: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return the module's constructor arguments; some collections write `[[positional], {"name": value}]`."""
    arguments = names["get_init_inputs"]()
    if len(arguments) == 2 and isinstance(arguments[0], list | tuple) and isinstance(arguments[1], dict):
        parameters = inspect.signature(names["Model"].__init__).parameters
        if all(name in parameters for name in arguments[1]):
            return arguments[0], arguments[1]
    return arguments, {}


@contextmanager
def _task_error(what: str, case: Case) -> Iterator[None]:
    """Raise any exception of a problem file as a TaskError that says what failed and at which case."""
    try:
        yield
    except KernelGymError:
        raise
    except ModuleNotFoundError as error:
        raise TaskError(f"the problem file imports {error.name}, which is not installed here") from error
    except (DataDependentOutputException, DynamicOutputShapeException, GuardOnDataDependentSymNode) as error:
        raise TaskError(data_dependent(error)) from error
    except Exception as error:
        reason = (str(error).strip().splitlines() or [""])[0]
        raise TaskError(f"{what} at case {case.name!r}: {type(error).__name__}: {reason}") from error


@contextmanager
def _swapping_fakes() -> Iterator[None]:
    """Let a module of fake tensors be converted (`.half()`); torch refuses, because weak references to them exist."""
    swap = torch.utils.swap_tensors

    def swap_fakes(left: torch.Tensor, right: torch.Tensor) -> None:
        if not isinstance(left, FakeTensor):
            swap(left, right)  # type: ignore[no-untyped-call]
            return
        left.__class__, right.__class__ = right.__class__, left.__class__  # type: ignore[assignment]
        left.__dict__, right.__dict__ = right.__dict__, left.__dict__
        torch._C._swap_tensor_impl(left, right)

    torch.utils.swap_tensors = swap_fakes
    try:
        yield
    finally:
        torch.utils.swap_tensors = swap


@contextmanager
def _unlogged() -> Iterator[None]:
    """Keep torch from logging a traceback for a failure that is raised as a TaskError anyway."""
    logger = logging.getLogger("torch._subclasses.fake_tensor")
    before = logger.disabled
    logger.disabled = True  # another level would clear what every logger has cached
    try:
        yield
    finally:
        logger.disabled = before


def _randomised(model: torch.nn.Module) -> torch.nn.Module:
    """Replace constant parameters and statistics by random ones: with the defaults a copy of the input could pass."""
    with torch.no_grad():
        for parameter in model.parameters():
            if (
                parameter.is_floating_point()
                and parameter.numel()
                and bool((parameter == parameter.flatten()[0]).all())
            ):
                parameter.add_(0.5 * torch.randn_like(parameter))
        for name, buffer in model.named_buffers():
            if _last(name) == "running_mean":
                buffer.copy_(0.5 * torch.randn_like(buffer))
            elif _last(name) == "running_var":
                buffer.copy_(0.5 + torch.rand_like(buffer))
    return model


def _tables(model: torch.nn.Module) -> dict[str, torch.Tensor]:
    """Return the tensors by name that a module keeps besides parameters, statistics and counters."""
    tables = dict(model.named_buffers())
    for prefix, module in model.named_modules():
        tables |= {f"{prefix}.{key}" if prefix else key: held for key, held in tensor_attributes(module).items()}
    return {name: table for name, table in tables.items() if _last(name) not in STATISTICS | COUNTERS}


def _loose_tensors(model: torch.nn.Module) -> bool:
    """Return whether the module keeps tensors that `state_dict()` does not show."""
    shown = set(model.state_dict())
    hidden = any(name not in shown for name, _ in model.named_buffers())
    return hidden or any(tensor_attributes(module) for module in model.modules())


@lru_cache(maxsize=1024)
def _writes_tensors(source: str) -> bool:
    """Return whether a function that `forward` may call has a tensor literal (`torch.tensor(0.5)`): export lifts it."""
    excluded = ("__init__", "get_inputs", "get_init_inputs")
    functions = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name not in excluded
    ]
    calls = [node.func for function in functions for node in ast.walk(function) if isinstance(node, ast.Call)]
    return any(ast.unparse(call) in ("torch.tensor", "torch.as_tensor", "torch.from_numpy", "tensor") for call in calls)


def _argument_names(model: torch.nn.Module, arguments: tuple[object, ...]) -> list[str]:
    """Return one name for each tensor argument, after the parameters of `forward`."""
    parameters = list(inspect.signature(model.forward).parameters)
    names: list[str] = []
    for position, argument in enumerate(arguments):
        name = parameters[position] if position < len(parameters) else f"argument{position}"
        count = len(_tensors(argument))
        names += [name] if count == 1 else [f"{name}[{index}]" for index in range(count)]
    return names


def _with_tensors(arguments: tuple[object, ...], tensors: Any) -> tuple[object, ...]:
    remaining = iter(tensors)
    leaves, structure = pytree.tree_flatten(arguments)
    filled = [next(remaining) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
    return cast(tuple[object, ...], pytree.tree_unflatten(filled, structure))


def _tensors(tree: object) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, torch.Tensor)]


def _scalars(tree: object) -> list[int | float]:
    return [leaf for leaf in pytree.tree_leaves(tree) if isinstance(leaf, int | float)]


def _spec(tensor: torch.Tensor) -> TensorSpec:
    dtype = str(tensor.dtype).removeprefix("torch.")
    if dtype not in DTYPES:
        raise TaskError(f"tensors of {dtype} are not supported; kernels take {', '.join(DTYPES)}")
    return TensorSpec(tuple(int(size) for size in tensor.shape), dtype)


def _copy(tensor: torch.Tensor, dtype: torch.dtype | None) -> torch.Tensor:
    cast = as_floats(tensor, dtype)
    return tensor.clone() if cast is tensor else cast


def _last(name: str) -> str:
    return name.rpartition(".")[2]
