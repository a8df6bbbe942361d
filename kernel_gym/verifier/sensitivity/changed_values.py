"""Changes to value sets, with which a further run shows what ordinary values hide.

Parameters are tilted or shifted, rows become alike or change places, means become large beside deviations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from kernel_gym.tasks.specs import InputSpec, Signature
from kernel_gym.verifier.values import Array, is_float, is_vector, stressed_input

#: The first of the draws that have small weights and low biases.
LOW = 8
#: Relative differences between rows that are nearly the same, below the rounding error of half precision.
ALIKE = 1e-4
#: What a bias is about where it is large beside the deviation: activations are no straight lines there. Shortest and
#: longest piece of an argument that has a mean of its own.
LEVEL, SPAN = 2.0, (1 << 10, 1 << 12)
#: Least number of dimensions of an argument that has images, or volumes.
IMAGES = 4


def tilted(values: tuple[Array, ...], signature: Signature, again: int) -> tuple[Array, ...]:
    """Return a value set with smaller weights and larger or smaller biases, by more powers of two every other time.

    A module may map every input to one result, such as the zero of a ReLU. With other parameters it may not. The last
    ones have small weights and low biases: then the rows' sums of a sigmoid or a softplus are near each other.
    """
    step, offset = again // 2, -(2.0 ** (again // 2)) if again % 2 else 2.0 ** (again // 2)
    if again >= LOW:
        step, offset = LOW // 2, LOW // 2 - float(again)
    return tuple(
        (array + offset if len(spec.shape) == 1 else array * 0.5**step).astype(array.dtype)
        if spec.origin == "state" and spec.domain.kind == "real" and is_float(spec.dtype)
        else array
        for array, spec in zip(values, signature.inputs, strict=True)
    )


def shifted(values: tuple[Array, ...], signature: Signature, offset: float) -> tuple[Array, ...]:
    """Return a value set with an offset added to all biases and scales."""
    return tuple(
        (array + offset).astype(array.dtype)
        if is_vector(spec) and spec.domain.kind == "real" and is_float(spec.dtype)
        else array
        for array, spec in zip(values, signature.inputs, strict=True)
    )


def has_vectors(signature: Signature) -> bool:
    """Return whether there are biases or scales, see `shifted`."""
    return any(map(is_vector, signature.inputs))


class Move(NamedTuple):
    """An input that is moved far from zero, and whether weights become small; without a position only they do."""

    position: int | None
    narrow: bool


def moves(signature: Signature, most: int) -> list[Move]:
    """Return how means may become large beside deviations, for so many biases and the like, and all arguments.

    Where there are biases, the first move has small weights alone.
    """
    real = [i for i, spec in enumerate(signature.inputs) if spec.domain.kind == "real" and is_float(spec.dtype)]
    vectors = [i for i in real if signature.inputs[i].origin == "state" and is_vector(signature.inputs[i])][:most]
    arguments = [i for i in real if signature.inputs[i].origin == "argument"]
    narrow: list[int | None] = [None, *vectors] if vectors else []
    return [Move(i, narrow=True) for i in narrow] + [Move(i, narrow=False) for i in arguments + vectors]


def far_from_zero(
    values: tuple[Array, ...], signature: Signature, move: Move, ratio: float, rng: np.random.Generator
) -> tuple[Array, ...]:
    """Return values of which an argument, or what a bias is added to, has a mean of about so many deviations.

    A narrow move makes a bias about `LEVEL`, and weights small. Neighbours in an argument have means of their own, so
    that their differences do not tell its variance.
    """
    if move.narrow:
        values = tuple(
            (each / ratio).astype(each.dtype) if _is_weight(spec) else each
            for each, spec in zip(values, signature.inputs, strict=True)
        )
    if move.position is None:
        return values
    array, spec = values[move.position], signature.inputs[move.position]
    if move.narrow:
        moved = LEVEL + array / ratio
    elif spec.origin == "argument":
        length = int(rng.integers(*SPAN))
        means = np.repeat(rng.standard_normal(-(-array.size // length)), length)[: array.size]
        moved = array + (means.reshape(array.shape) + ratio)
    else:
        moved = array + ratio
    return (*values[: move.position], moved.astype(array.dtype), *values[move.position + 1 :])


def _is_weight(spec: InputSpec) -> bool:
    return spec.origin == "state" and spec.domain.kind == "real" and is_float(spec.dtype) and not is_vector(spec)


def alike(values: tuple[Array, ...], signature: Signature, rng: np.random.Generator) -> tuple[Array, ...]:
    """Return values with nearly the same rows in the first argument, and nearly the same numbers all over its images.

    Errors of a product do not cancel in a sum over these: half precision rounds all in the same way.
    """
    position = stressed_input(signature)
    if position is None or values[position].ndim < 2:
        return values
    array = values[position]
    images = tuple(range(2, array.ndim)) if array.ndim >= IMAGES else ()
    first = np.take(array, [0], axis=0)
    for dimension in images:
        first = np.take(first, [0], axis=dimension)
    changed = (first * (1 + ALIKE * rng.standard_normal(array.shape))).astype(array.dtype)
    return (*values[:position], changed, *values[position + 1 :])


def rows_moved(values: tuple[Array, ...], signature: Signature) -> tuple[Array, ...]:
    """Return values with the rows of the first argument moved on by a quarter."""
    position = stressed_input(signature)
    if position is None or not values[position].ndim:
        return values
    moved = np.roll(values[position], -(-len(values[position]) // 4), axis=0)
    return (*values[:position], moved, *values[position + 1 :])
