"""Fused chains: a base layer (a convolution or a matrix product) followed by steps.

A step is an expression in `x`, or an assignment that keeps a value for later steps.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition


@dataclass(frozen=True)
class Base:
    """The layer that a chain begins with: its name, the expression that constructs it, its arguments and its sizes."""

    title: str
    layer: str
    constructor: str
    shape: str
    sizes: CaseSizes
    arguments: str
    settings: Mapping[str, object] = field(default_factory=dict)


def chain(
    base: Base,
    number: int,
    name: str,
    *steps: str,
    layers: Mapping[str, str] | None = None,
    inputs: Mapping[str, str] | None = None,
    constructor: str = "",
    keeps_input: bool = False,
    repaired: str = "",
    redundant: str = "",
    **settings: object,
) -> TaskDefinition:
    """Return the definition of one task of level 2.

    `layers` are further layers of the module, `inputs` further arguments of `forward`. `constructor` replaces the
    expression that constructs the base layer; `keeps_input` keeps its input as `original`.
    """
    constants = {**base.settings, **settings}
    return TaskDefinition(
        number,
        name,
        "fuse",
        f"{base.title}, then {'; '.join(_words(step) for step in steps)}.",
        base.sizes,
        forward="\n".join(["original = x"] * keeps_input + _statements(base.layer, steps)),
        inputs={"x": f"torch.randn({base.shape})", **(inputs or {})},
        layers={base.layer: constructor or base.constructor, **(layers or {})},
        settings=constants,
        init=" ".join([base.arguments, *constants]),
        repaired=repaired,
        redundant=redundant,
    )


def parameter(*shape: str) -> str:
    """Return the expression that constructs a random parameter of a shape."""
    return f"nn.Parameter(torch.randn({', '.join(shape)}))"


def _statements(layer: str, steps: tuple[str, ...]) -> list[str]:
    assigned = [step if _keeps(step) else f"x = {step}" for step in steps]
    return [f"x = self.{layer}(x)", *assigned[:-1], f"return {steps[-1]}"]


def _keeps(step: str) -> bool:
    return re.match(r"\w+ = ", step) is not None


def _words(step: str) -> str:
    return step.replace("self.", "").replace("torch.", "").replace("F.", "")
