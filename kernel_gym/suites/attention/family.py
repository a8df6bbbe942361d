"""Families of modules: the inputs, sizes and arguments that several modules share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernel_gym.suites.definitions import CaseSizes, TaskDefinition


@dataclass(frozen=True)
class Family:
    """Modules with the same inputs, sizes and arguments.

    `published` gives the shapes of the set's originals. `settings` are arguments that no case varies.
    """

    sizes: CaseSizes
    inputs: Mapping[str, str]
    init: str
    published: str
    settings: Mapping[str, object] = field(default_factory=dict)
    category: str = "attention"

    def module(
        self,
        number: int,
        name: str,
        description: str,
        reference: str,
        forward: str,
        layers: Mapping[str, str] | None = None,
        *,
        arguments: str = "",
        sizes: CaseSizes | None = None,
        inputs: Mapping[str, str] | None = None,
        init: str | None = None,
        published: str = "",
        category: str = "",
        repaired: str = "",
        redundant: str = "",
        **settings: object,
    ) -> TaskDefinition:
        """Return the definition of one module.

        `arguments` are the original's constructor arguments, `settings` further arguments of this module. `sizes`,
        `inputs`, `init`, `published` and `category` replace those of the family.
        """
        constants = {**self.settings, **settings}
        shapes = published or self.published
        return TaskDefinition(
            number,
            name,
            category or self.category,
            description,
            sizes or self.sizes,
            forward=forward,
            inputs=inputs or self.inputs,
            layers=layers or {},
            settings=constants,
            init=" ".join([*(self.init if init is None else init).split(), *constants]),
            repaired=repaired,
            redundant=redundant,
            reference=reference,
            published=f"{shapes}; arguments {arguments}" if arguments else shapes,
        )


def linear(inputs: str, outputs: str, bias: bool = True) -> str:
    """Return the expression that constructs a linear layer."""
    return f"nn.Linear({inputs}, {outputs})" if bias else f"nn.Linear({inputs}, {outputs}, bias=False)"


def pointwise(inputs: str, outputs: str, bias: bool = True) -> str:
    """Return the expression that constructs a convolution with windows of one element."""
    return f"nn.Conv2d({inputs}, {outputs}, 1)" if bias else f"nn.Conv2d({inputs}, {outputs}, 1, bias=False)"


def parameter(*shape: str) -> str:
    """Return the expression that constructs a random parameter."""
    return f"nn.Parameter(torch.randn({', '.join(shape)}))"
