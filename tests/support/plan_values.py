"""Computes what a plan says with NumPy, in float64, so that a plan is tested without a kernel and a device."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from types import SimpleNamespace
from typing import Any

import numpy as np
import torch

from kernel_gym.authors.apprentice.frontend.plan import (
    Access,
    Either,
    Lookup,
    Matrix,
    Nest,
    Pieces,
    Plan,
    Product,
    Ref,
    Scan,
    Scatter,
    Step,
)

Array = np.ndarray[Any, Any]
FUNCTIONS: dict[str, Callable[..., Any]] = {
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "relu": lambda x: np.maximum(x, 0), "neg": np.negative, "abs": np.abs, "same": lambda x: x,
    "constant": lambda x: x, "leaky_relu": lambda x, slope: np.where(x > 0, x, x * slope), "exp": np.exp,
    "log": np.log, "sqrt": np.sqrt, "rsqrt": lambda x: 1 / np.sqrt(x), "reciprocal": np.reciprocal, "tanh": np.tanh,
    "sigmoid": lambda x: 1 / (1 + np.exp(-x)), "erf": lambda x: torch.erf(torch.as_tensor(x)).numpy(), "sin": np.sin,
    "cos": np.cos, "floor": np.floor, "ceil": np.ceil, "sign": np.sign, "round": np.round, "trunc": np.trunc,
    "gt": np.greater, "lt": np.less, "ge": np.greater_equal, "le": np.less_equal, "eq": np.equal, "ne": np.not_equal,
    "where": lambda condition, yes, no: np.where(condition != 0, yes, no), "fmod": np.fmod,
    "bitwise_and": lambda a, b: np.asarray(a).astype(np.int64) & np.asarray(b).astype(np.int64),
}  # fmt: skip
REDUCTIONS: dict[str, Callable[..., Any]] = {"sum": np.sum, "max": np.max, "min": np.min, "prod": np.prod}


class PlanError(AssertionError):
    """Raised for a plan that reads what nothing wrote, or beyond a buffer."""


def plan_outputs(
    plan: Plan, inputs: Sequence[torch.Tensor], *, cube: bool = True, ints: Sequence[int] = ()
) -> list[Array]:
    """Return the elements of a plan's outputs; `cube` chooses the products of matrices over those of vectors."""
    return _Run(plan, inputs, cube, {"ints": ints}).outputs()


@dataclass
class _Run:
    """A plan's buffers and variables while its stages run."""

    plan: Plan
    inputs: Sequence[torch.Tensor]
    cube: bool
    names: dict[str, Any] = field(default_factory=dict)
    memory: dict[str, Array] = field(default_factory=dict)
    advance: dict[str, int] = field(default_factory=dict)

    def outputs(self) -> list[Array]:
        """Run all stages; return the outputs in order."""
        for buffer in self.plan.buffers:
            if buffer.origin == "input":
                tensor = self.inputs[buffer.index]
                self.names[buffer.name] = SimpleNamespace(shape=tuple(tensor.shape))
                self.memory[buffer.name] = tensor.detach().double().flatten().numpy().copy()
        for name, text in self.plan.derived:
            self.names[name] = self.host(text)
        for buffer in self.plan.buffers:
            if buffer.origin != "input":
                self.memory[buffer.name] = np.full(self.host(buffer.elements), np.nan)
        with np.errstate(all="ignore"):
            for stage in self.plan.stages:
                self.stage(stage)
        results = sorted((b for b in self.plan.buffers if b.origin == "output"), key=lambda b: b.index)
        return [self.memory[buffer.name] for buffer in results]

    def host(self, text: str) -> int:
        """Return the value of the host's arithmetic."""
        return int(eval(_python(text), {"AtMost": min, "AtLeast": max}, self.names))

    def stage(self, stage: Any) -> None:
        """Run one stage."""
        match stage:
            case Either():
                for part in stage.cube if self.cube or stage.heavy else (stage.vector,):
                    self.stage(part)
            case Pieces():
                for _ in self.loops(stage.loops):
                    self.names.update({name: self.host(text) for name, text in stage.inside})
                    self.advance = {name: self.host(text) for name, text in stage.advance}
                    for part in stage.stages:
                        self.stage(part)
                self.advance = {}
            case Nest():
                _NestRun(self, stage).run()
            case Product():
                self.product(stage)
            case Scan():
                self.scan(stage)
            case Lookup() | Scatter():
                self.entries(stage)

    def loops(self, loops: tuple[tuple[str, str, str], ...]) -> Iterator[None]:
        """Count the host's loops."""
        if not loops:
            yield
            return
        (name, end, step), *rest = loops
        for value in range(0, self.host(end), self.host(step)):
            self.names[name] = value
            yield from self.loops(tuple(rest))

    def read(self, buffer: str, places: Array) -> Array:
        """Return elements of a buffer; they must be within it, and something must have written them."""
        places = places + self.advance.get(buffer, 0)
        held = self.memory[buffer]
        if places.size and (places.min() < 0 or places.max() >= held.size):
            raise PlanError(f"reads {places.min()}..{places.max()} of {buffer}, which has {held.size} elements")
        values = held[places]
        if buffer.startswith("temp") and np.isnan(values).any():
            raise PlanError(f"reads {buffer} where nothing was written")
        return values

    def write(self, buffer: str, places: Array, values: Array) -> None:
        """Write elements of a buffer, each once."""
        places = places + self.advance.get(buffer, 0)
        held = self.memory[buffer]
        if places.size and (places.min() < 0 or places.max() >= held.size):
            raise PlanError(f"writes {places.min()}..{places.max()} of {buffer}, which has {held.size} elements")
        held[places] = values

    def product(self, stage: Product) -> None:
        """Multiply matrices."""
        batch, m, n, k = (self.host(text) for text in (stage.batch, stage.m, stage.n, stage.k))
        left, right = self.matrices(stage.left, batch, m, k), self.matrices(stage.right, batch, k, n)
        pitch, step = (self.host(text) if text else size for text, size in ((stage.pitch, n), (stage.step, m * n)))
        places = np.arange(batch)[:, None, None] * step + np.arange(m)[:, None] * pitch + np.arange(n)
        self.write(stage.target, places, left @ right)

    def matrices(self, matrix: Matrix, batch: int, rows: int, columns: int) -> Array:
        """Return the operand of each product."""
        which = np.arange(batch) % self.host(matrix.count)
        shape = (columns, rows) if matrix.transposed else (rows, columns)
        flat = which[:, None] * (rows * columns) + np.arange(rows * columns)
        values = self.read(matrix.buffer, flat).reshape(batch, *shape)
        return values.swapaxes(1, 2) if matrix.transposed else values

    def scan(self, stage: Scan) -> None:
        """Compute running sums or products."""
        shape = [self.host(text) for _, text in stage.fields]
        values = self.read(stage.source, np.arange(prod(shape))).reshape(shape)
        running = (np.cumsum if stage.function == "sum" else np.cumprod)(values, axis=1)
        self.write(stage.target, np.arange(prod(shape)), running.reshape(-1))

    def entries(self, stage: Lookup | Scatter) -> None:
        """Copy entries from or to the places that indices name."""
        sizes = {name: self.host(text) for name, text in stage.fields}
        rows, count, axis, length = sizes["rows"], sizes["count"], sizes["axis"], sizes.get("length", 1)
        row = np.arange(rows)[:, None]
        index = self.read(stage.index, row % sizes["indexRows"] * count + np.arange(count)).astype(int)
        if index.size and (index.min() < 0 or index.max() >= axis):
            raise PlanError(f"an index of {stage.index} is not within 0..{axis - 1}")
        inner = np.arange(length)
        named = (row * axis + index)[..., None] * length + inner
        listed = (row * count + np.arange(count))[..., None] * length + inner
        if isinstance(stage, Lookup):
            self.write(stage.target, listed, self.read(stage.source, named))
            return
        update = self.read(stage.update, listed)
        for j in range(count):
            before = self.read(stage.target, named[:, j]) if stage.adds else 0.0
            self.write(stage.target, named[:, j], before + update[:, j])


@dataclass
class _NestRun:
    """One loop nest: dimensions are the kept loops, the reduced loops and the vector dimension."""

    run_: _Run
    nest: Nest

    def run(self) -> None:
        """Compute all steps; write the result."""
        nest = self.nest
        self.tiling = {"t": SimpleNamespace(**{name: self.run_.host(text) for name, text in nest.fields})}
        loops = [*nest.kept, *nest.reduced, nest.vector]
        self.extents = [getattr(self.tiling["t"], name) for name in loops]
        self.reduced = list(range(len(nest.kept), len(loops) - (not nest.vector_reduced)))
        values: list[Any] = []
        for step in nest.steps:
            arguments = [values[a.step] if isinstance(a, Ref) else a for a in step.arguments]
            values.append(self.value(step, arguments))
        for store in nest.stores:
            inside = nest.steps[store.step].inside
            places = self.places(store.access, skipped=() if inside else self.reduced)
            result = np.broadcast_to(np.asarray(values[store.step], dtype=float), places.shape)
            self.run_.write(store.access.buffer, places, result)

    def value(self, step: Step, arguments: list[Any]) -> Any:
        """Return the value of one step."""
        if step.access:
            return self.run_.read(step.access.buffer, self.places(step.access))
        if step.index:
            return self.places(step.index).astype(float)
        if step.field:
            return float(getattr(self.tiling["t"], step.field))
        if step.reduction:
            return self.reduction(step.reduction, arguments[0])
        if step.function.startswith("as_"):
            kind = getattr(torch, step.function.removeprefix("as_"))
            return torch.as_tensor(arguments[0]).to(kind).double().numpy()
        return FUNCTIONS[step.function](*arguments)

    def reduction(self, function: str, value: Any) -> Array:
        """Return a reduction over all reduced loops; a number counts once for each element."""
        shape = [extent if n in self.reduced else 1 for n, extent in enumerate(self.extents)]
        whole = np.asarray(value, dtype=float) + np.zeros(shape)
        if function in REDUCTIONS:
            return np.asarray(REDUCTIONS[function](whole, axis=tuple(self.reduced), keepdims=True))
        assert len(self.reduced) == 1
        return np.asarray(
            (np.argmax if function == "argmax" else np.argmin)(whole, axis=self.reduced[0], keepdims=True)
        )

    def places(self, access: Access, skipped: Sequence[int] = ()) -> Array:
        """Return where each element of the nest is in the buffer; dimensions without a stride are 1."""
        strides = [*access.kept, *access.reduced, access.step]
        total: Any = np.full([1] * len(strides), self.device(access.offset))
        for dimension, (extent, text) in enumerate(zip(self.extents, strides, strict=True)):
            stride = self.device(text)
            if dimension in skipped or stride == 0:
                continue
            shape = [extent if n == dimension else 1 for n in range(len(strides))]
            total = total + (np.arange(extent) * stride).reshape(shape)
        return np.asarray(total)

    def device(self, text: str) -> int:
        """Return the value of the device's arithmetic."""
        return int(eval(_python(text), {}, self.tiling))


def _python(text: str) -> str:
    """Return arithmetic of C on whole numbers as Python."""
    return re.sub(r"/", "//", text).replace("args->", "")
