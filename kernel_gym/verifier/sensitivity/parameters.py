"""Parameters of the reference that let the arguments show in the outputs.

Those that are drawn without regard to the network may saturate its activations: the outputs would be the same for all
arguments.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from kernel_gym.tasks.specs import InputSpec, Signature
from kernel_gym.tasks.task import Instance, Task
from kernel_gym.verifier.expected import BASE
from kernel_gym.verifier.reference import evaluate, to_torch, with_fixed
from kernel_gym.verifier.sensitivity.half_precision import rounded
from kernel_gym.verifier.values import Array, Rows, draw, stressed_input

#: Least number of weights from which on arguments may fade, and number of draws with which it is tried.
DEEP, FADING_DRAWS = 4, 3
#: How many standard deviations the running means of a deep network are off, and the factors of the variances.
NEAR_MEAN, NEAR_VARIANCE = 0.25, (0.5, 2.0)


def with_small_means(signature: Signature, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the values with weights whose mean adds no more to a sum of products than their deviations from it do.

    A larger one saturates activations. It is left where there are softmaxes: their arguments would be too small to show
    a maximum that is not subtracted.
    """
    return tuple(
        (array - (1.0 - (len(array) / array.size) ** 0.5) * array.mean()).astype(array.dtype)
        if is_weight(spec) and array.size
        else array
        for spec, array in zip(signature.inputs, values, strict=True)
    )


def centred(signature: Signature, values: tuple[Array, ...]) -> tuple[Array, ...]:
    """Return the values with weights of mean zero, and with twice the variance, of which a ReLU leaves half.

    With an offset, which the same layer has everywhere, whole layers behind a ReLU are zero.
    """
    return tuple(
        ((array - array.mean()) * 2**0.5).astype(array.dtype) if is_weight(spec) and array.size else array
        for spec, array in zip(signature.inputs, values, strict=True)
    )


def is_deep_and_normalised(signature: Signature) -> bool:
    """Return whether a network has several layers, and batch norms with running statistics."""
    statistics = any(spec.name.endswith("running_mean") for spec in signature.inputs)
    return statistics and sum(map(is_weight, signature.inputs)) >= DEEP


def settled_statistics(instance: Instance, values: tuple[Array, ...], rows: Rows | None) -> tuple[Array, ...]:
    """Return the values with running means and variances near those of the network's activations.

    Those that are drawn without regard to them make activations such as ReLU6 constant, and a deep network's outputs
    no longer depend on its arguments. Statistics are rounded, so that no order of summation shows in them.
    """
    settled = list(values)
    position = stressed_input(instance.signature)
    if rows is not None and position is not None:
        settled[position] = _without_stress(values[position], rows)
    found = instance.statistics([to_torch(array) for array in settled])
    settled[: len(values)] = values
    for mean, variance in _means_and_variances(instance.signature):
        means, variances = (np.asarray(found[place]) for place in (mean, variance))
        spread = np.sqrt(variances)
        means = means + NEAR_MEAN * spread * values[mean]
        variances = variances * np.clip(values[variance], *NEAR_VARIANCE)
        for place, array in ((mean, means), (variance, variances)):
            array = rounded(array.astype(np.float32))
            settled[place] = np.where(spread > 0, array, values[place]).astype(values[place].dtype)
    return tuple(settled)


def _means_and_variances(signature: Signature) -> list[tuple[int, int]]:
    """Return the positions of the running mean and variance of each batch norm."""
    places = {spec.name: place for place, spec in enumerate(signature.inputs)}
    means = (name for name in places if name.endswith("running_mean"))
    pairs = ((places[name], places.get(name.removesuffix("mean") + "var")) for name in means)
    return [(mean, variance) for mean, variance in pairs if variance is not None]


def _without_stress(array: Array, rows: Rows) -> Array:
    """Return an argument with ordinary rows in place of stressed and severe ones."""
    special = rows.special
    ordinary = np.flatnonzero(~special)
    if not ordinary.size:
        return array
    chosen = np.arange(special.size)
    chosen[special] = np.resize(ordinary, int(special.sum()))
    return np.asarray(array.reshape(special.size, -1)[chosen].reshape(array.shape))


def is_weight(spec: InputSpec) -> bool:
    """Return whether an input is the matrix or the filter of a layer."""
    return spec.origin == "state" and len(spec.shape) > 1 and spec.domain.kind == "real" and "float" in spec.dtype


@lru_cache(maxsize=1024)
def arguments_fade(task: Task) -> bool:
    """Return whether the outputs of a deep network may not depend on its arguments, because a layer's ReLUs are zero.

    It is tried at the public sizes, with other arguments for the same weights.
    """
    instance = task.instance(task.public)
    specs = instance.signature.inputs
    if sum(map(is_weight, specs)) < DEEP or any(spec.name.endswith("running_mean") for spec in specs):
        return False  # normalised activations are never all negative
    rng = np.random.default_rng(0)
    for _ in range(FADING_DRAWS):
        values, others = (with_fixed(instance, draw(instance.signature, "normal", 0, rng), rng) for _ in range(2))
        mixed = tuple(b if spec.origin == "argument" else a for spec, a, b in zip(specs, values, others, strict=True))
        pairs = zip(evaluate(instance, values), evaluate(instance, mixed), strict=True)
        if all(_nearly_same(left, right) for left, right in pairs):
            return True
    return False


def _nearly_same(left: Array, right: Array) -> bool:
    """Return whether two outputs differ by less than a kernel may err."""
    if left.dtype.kind != "f":
        return np.array_equal(left, right)
    scale = float(np.sqrt(np.mean(np.square(left), where=np.isfinite(left)))) if left.size else 0.0
    return np.allclose(left, right, rtol=BASE["float32"], atol=BASE["float32"] * scale, equal_nan=True)
