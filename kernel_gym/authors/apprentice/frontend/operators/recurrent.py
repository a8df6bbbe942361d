"""Recurrent layers: a product for the inputs of all steps, then a loop of the host over the steps."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Tensor, Value, contiguous, reorder
from kernel_gym.authors.apprentice.frontend.fusion import IterationSpace
from kernel_gym.authors.apprentice.frontend.operators.products import matrix_product
from kernel_gym.authors.apprentice.frontend.operators.table import apply, handles
from kernel_gym.authors.apprentice.frontend.operators.views import flipped, joined
from kernel_gym.authors.apprentice.frontend.plan import Matrix, Nest, Pieces, Product, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder
from kernel_gym.authors.apprentice.frontend.sizes import ONE, Size, c_expression, row_major, size

#: Weights of the inputs, weights of the state, and a bias of each.
WITH_BIASES, WITHOUT = 4, 2


@dataclass(frozen=True)
class _Weights:
    """The weights of one layer in one direction."""

    inputs: Value
    state: Value
    input_bias: Value | None = None
    state_bias: Value | None = None


@dataclass
class _Loop:
    """The stages of one step, which the host repeats."""

    plan: PlanBuilder
    steps: Size
    stages: list[Nest | Product]

    def compute(self, value: Value, target: Tensor) -> Tensor:
        """Add the stage that computes a value of this step, and those of the parts that have to be in memory."""
        plan, begin = self.plan, len(self.plan.stages)
        plan.add(*plan.nest(value, target))
        for stage in plan.stages[begin:]:
            assert isinstance(stage, Nest)
            named = replace(stage, name=f"step{begin}_{len(self.stages)}")
            plan.spaces[named.name] = plan.spaces.pop(stage.name)
            self.stages.append(named)
        del plan.stages[begin:]
        return target

    def finish(self, *moving: Tensor) -> None:
        """Add the loop; at every step the addresses of `moving`, which are slots of a step each, move by one slot."""
        advance = tuple((slot.buffer, f"step * ({c_expression(_elements(slot))})") for slot in moving)
        loops = (("step", c_expression(self.steps), "1"),)
        pieces = Pieces("", loops, (), advance, tuple(self.stages), role="Step")
        self.plan.add(pieces, IterationSpace(moving[0].shape[-1]))


def _elements(tensor: Tensor) -> Size:
    return tensor.shape[0] * tensor.shape[1]


@dataclass
class _Cell:
    """One step of a layer: what it computes from the parts of inputs and state, and the state before it."""

    plan: PlanBuilder
    parts: Callable[[int], Value]
    state_parts: Callable[[int], Value]
    before: Tensor
    loop: _Loop

    def gate(self, number: int) -> Value:
        """Return a gate: the sigmoid of what inputs and state add up to."""
        return apply(self.plan, "sigmoid", self.both(number))

    def both(self, number: int) -> Value:
        """Return the sum of one part of the inputs and of the state."""
        return apply(self.plan, "add", self.parts(number), self.state_parts(number))


def _lstm_step(cell: _Cell, memory: Tensor) -> Value:
    """Return the new state; `memory` is replaced by the new one at the end of the step."""
    plan = cell.plan
    kept = apply(plan, "mul", cell.gate(1), memory)
    added = apply(plan, "mul", cell.gate(0), apply(plan, "tanh", cell.both(2)))
    fresh = cell.loop.compute(apply(plan, "add", kept, added), plan.scratch(memory.shape))
    cell.loop.compute(plan.copied(fresh), memory)
    return apply(plan, "mul", cell.gate(3), apply(plan, "tanh", fresh))


def _gru_step(cell: _Cell) -> Value:
    plan = cell.plan
    reset, update = cell.gate(0), cell.gate(1)
    inner = apply(plan, "add", cell.parts(2), apply(plan, "mul", reset, cell.state_parts(2)))
    fresh = apply(plan, "tanh", inner)
    moved = apply(plan, "mul", update, apply(plan, "sub", cell.before, fresh))
    # In memory first: a launch must not read the slots that it writes.
    return plan.copied(cell.loop.compute(apply(plan, "add", fresh, moved), plan.scratch(cell.before.shape)))


def _plain_step(function: str) -> Callable[[_Cell], Value]:
    return lambda cell: apply(cell.plan, function, cell.both(0))


def _layer(plan: PlanBuilder, x: Value, state: Value, memory: Value | None, weights: _Weights, step: Any) -> _Layer:
    """Return what a layer computes in one direction; x is (steps, batch, inputs)."""
    steps, batch, width = x.shape
    gates, hidden = weights.state.shape
    given = matrix_product(plan, plan.reshape(x, (steps * batch, width)), reorder(weights.inputs, (1, 0)), 0)
    dense = plan.tensor(given if weights.input_bias is None else apply(plan, "add", given, weights.input_bias))
    states = plan.scratch((steps + 1, batch, hidden))
    before = contiguous(states.buffer, (batch, hidden), "float32")
    plan.computed(plan.copied(plan.strided(state)), before)
    cells = None if memory is None else plan.computed(plan.copied(plan.strided(memory)), plan.scratch((batch, hidden)))
    turned = plan.floats(weights.state)
    bias = None if weights.state_bias is None else plan.tensor(weights.state_bias)
    carried = plan.scratch((batch, gates))
    loop = _Loop(plan, steps, [])
    left, right = Matrix(states.buffer, False, "1", ""), Matrix(turned.buffer, True, "1", "")
    m, n, k = (c_expression(extent) for extent in (batch, gates, hidden))
    loop.stages.append(Product("", left, right, carried.buffer, "1", m, n, k))

    def part(buffer: str, number: int) -> Tensor:
        return Tensor((batch, hidden), "float32", buffer, (gates, size(1)), number * hidden)

    def state_part(number: int) -> Value:
        product = part(carried.buffer, number)
        if bias is None:
            return product
        return apply(plan, "add", product, Tensor((hidden,), "float32", bias.buffer, (size(1),), number * hidden))

    cell = _Cell(plan, lambda number: part(dense.buffer, number), state_part, before, loop)
    value = step(cell) if cells is None else step(cell, cells)
    after = Tensor((batch, hidden), "float32", states.buffer, row_major((batch, hidden)), batch * hidden)
    loop.compute(value, after)
    loop.finish(before, contiguous(dense.buffer, (batch, gates), "float32"))
    return _Layer(states, cells)


@dataclass(frozen=True)
class _Layer:
    """The states of one layer in one direction, the first one before all steps, and its last memory."""

    states: Tensor
    memory: Tensor | None

    @property
    def outputs(self) -> Tensor:
        """The states after each step."""
        before, batch, hidden = self.states.shape
        return replace(self.states, shape=(before - 1, batch, hidden), offset=batch * hidden)

    @property
    def last(self) -> Tensor:
        """The state after the last step, as one of several."""
        before, batch, hidden = self.states.shape
        return replace(self.states, shape=(ONE, batch, hidden), offset=(before - 1) * batch * hidden)


@dataclass
class _Results:
    """The results of a recurrent operator; states are gathered only if they are used."""

    plan: PlanBuilder
    outputs: Value
    layers: list[_Layer]

    def __getitem__(self, index: int) -> Value:
        return (self.outputs if index == 0 else self.states) if index < 2 else self.memories

    @cached_property
    def states(self) -> Value:
        """The last state of each layer and direction."""
        states: Value = joined(self.plan, [layer.last for layer in self.layers], 0)
        return states

    @cached_property
    def memories(self) -> Value:
        """The last memory of each layer and direction."""
        held = [layer.memory for layer in self.layers if layer.memory is not None]
        memories: Value = joined(self.plan, [reorder(memory, (None, 0, 1)) for memory in held], 0)
        return memories


def _recurrent(
    step: Any,
    plan: PlanBuilder,
    x: Value,
    first: Sequence[Value],
    parameters: list[Value],
    biases: bool,
    layers: int,
    dropout: float,
    train: bool,
    both_ways: bool,
    batch_first: bool,
) -> _Results:
    """Return the results of layers in one or both directions; `first` has the first states, and memories of LSTM."""
    if train and dropout:
        raise Unsupported("Unsupported: dropout between recurrent layers")
    count = WITH_BIASES if biases else WITHOUT
    directions = 2 if both_ways else 1
    if len(parameters) != count * layers * directions:
        raise Unsupported("Unsupported: a recurrent layer with a projection")
    x = reorder(x, (1, 0, 2)) if batch_first else x
    done: list[_Layer] = []
    weights = [_Weights(*parameters[at : at + count]) for at in range(0, len(parameters), count)]
    for start, end in pairwise(range(0, len(weights) + 1, directions)):
        results = []
        for number in range(start, end):
            backwards = number > start
            state, *memory = (_entry(plan, value, number) for value in first)
            source = flipped(plan, x, [0]) if backwards else x
            done.append(_layer(plan, source, state, memory[0] if memory else None, weights[number], step))
            outputs = done[-1].outputs
            results.append(flipped(plan, outputs, [0]) if backwards else outputs)
        x = results[0] if directions == 1 else joined(plan, results, 2)
    return _Results(plan, reorder(x, (1, 0, 2)) if batch_first else x, done)


def _entry(plan: PlanBuilder, value: Value, number: int) -> Tensor:
    """Return one of several states."""
    dense = plan.strided(value)
    offset = dense.offset + number * dense.strides[0]
    return Tensor(dense.shape[1:], dense.dtype, dense.buffer, dense.strides[1:], offset)


@handles("lstm.input")
def _lstm(plan: PlanBuilder, x: Value, first: list[Value], *settings: Any) -> _Results:
    return _recurrent(_lstm_step, plan, x, first, *settings)


@handles("gru.input")
def _gru(plan: PlanBuilder, x: Value, first: Value, *settings: Any) -> _Results:
    return _recurrent(_gru_step, plan, x, [first], *settings)


@handles("rnn_tanh.input")
def _tanh_layers(plan: PlanBuilder, x: Value, first: Value, *settings: Any) -> _Results:
    return _recurrent(_plain_step("tanh"), plan, x, [first], *settings)


@handles("rnn_relu.input")
def _relu_layers(plan: PlanBuilder, x: Value, first: Value, *settings: Any) -> _Results:
    return _recurrent(_plain_step("relu"), plan, x, [first], *settings)
