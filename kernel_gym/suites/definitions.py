"""Definitions of the packaged tasks, from which the text of each module is generated.

A `TaskDefinition` says what is computed (`forward`, `layers`), on which inputs (`inputs`) and at which sizes
(`CaseSizes`). `TaskDefinition.task` returns the task with its KernelBench-format text. Nothing here imports torch, so
that a suite loads quickly.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent, fill, indent

from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

#: Categories of tasks: those of MultiKernelBench, and `other` for files of an unknown category.
CATEGORIES = (
    "activation",
    "arch",
    "attention",
    "broadcast",
    "convolution",
    "fuse",
    "index",
    "loss",
    "math",
    "matmul",
    "normalization",
    "optimizer",
    "pooling",
    "reduce",
    "resize",
    "other",
)


@dataclass(frozen=True)
class CaseSizes:
    """The size constants of a module and their values at each case.

    `names` are the constants, separated by spaces; `public`, `timing` and each of `hidden` give one value for each.
    """

    names: str
    public: tuple[int, ...]
    hidden: tuple[tuple[int, ...], ...]
    timing: tuple[int, ...]

    def __post_init__(self) -> None:
        for values in (self.public, *self.hidden, self.timing):
            if len(values) != len(self.names.split()):
                raise ValueError(f"{values} does not give one value for each of {self.names!r}")

    def cases(self) -> tuple[Case, ...]:
        """Return the cases of the task: the public one, the hidden ones, the timing case."""
        names = self.names.split()
        hidden = [(f"hidden-{position}", "hidden", values) for position, values in enumerate(self.hidden, 1)]
        rows = [("public", "public", self.public), *hidden, ("timing", "timing", self.timing)]
        return tuple(Case(name, role, tuple(zip(names, values, strict=True))) for name, role, values in rows)  # type: ignore[arg-type]

    def constants(self) -> dict[str, object]:
        """Return the constants with their public values."""
        return dict(zip(self.names.split(), self.public, strict=True))


@dataclass(frozen=True)
class TaskDefinition:
    """One task of a packaged suite.

    `forward` is an expression, or statements that end in `return`; `inputs` maps its arguments to the expressions that
    draw them. `layers` maps attributes of the module to the expressions that construct them; `init` names the constants
    that the module is constructed with. `settings` are constants beside the sizes, as they are written in the text: a
    number that no case varies, or an expression over the sizes. `repaired` says what was mended in a defective
    original, `redundant` which of its steps do nothing. `reference` is the paper that defines the module, `published`
    the shapes and arguments of the set that it belongs to; both stand in the module's docstring. `modules` is the text
    of further modules that the layers are made of.
    """

    number: int | None
    name: str
    category: str
    description: str
    sizes: CaseSizes
    forward: str
    inputs: Mapping[str, str]
    layers: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    init: str = ""
    repaired: str = ""
    redundant: str = ""
    reference: str = ""
    published: str = ""
    modules: str = ""

    def task(self, suite: str, level: int | None = None) -> Task:
        """Return the task that is defined here."""
        return Task(
            id=f"{suite}/{self.name}",
            category=self.category,
            source=self.source(),
            cases=self.sizes.cases(),
            description=self.description,
            level=level,
            number=self.number,
            flags=self._flags(),
        )

    def _flags(self) -> tuple[str, ...]:
        flags = {"repaired": self.repaired, "redundant": self.redundant}
        return tuple(f"{flag}: {text}" for flag, text in flags.items() if text)

    def source(self) -> str:
        """Return the text of the module in KernelBench's format."""
        further = [f"\n{dedent(self.modules).strip()}\n"] if self.modules else []
        body = "\n".join([self._constants(), *further, self._model(), self._functions()])
        imports = [statement for use, statement in _IMPORTS.items() if use in body]
        return "\n".join([*imports, "", body])

    def _constants(self) -> str:
        constants = self.sizes.constants() | dict(self.settings)
        return "".join(f"{name} = {value}\n" for name, value in constants.items())

    def _model(self) -> str:
        docstring = indent(self._docstring(), " " * 4)
        return f"\nclass Model(nn.Module):\n{docstring}\n{self._constructor()}\n{self._forward()}"

    def _docstring(self) -> str:
        if not self.reference:
            return fill(f'"""{self.description}"""', width=112)
        facts = f"Number {self.number}, category {self.category}. Published shapes: {self.published}."
        paragraphs = [f'"""{self.description}', "", facts, f"Reference: {self.reference}.", '"""']
        return "\n".join(fill(paragraph, width=112) for paragraph in paragraphs)

    def _constructor(self) -> str:
        names = self.init.split()
        if not names and not self.layers:
            return ""
        kept = [name for name in names if f"self.{name}" in self.forward]
        lines = ["super().__init__()"]
        lines += [f"self.{name} = {name}" for name in kept]
        lines += [f"self.{name} = {layer}" for name, layer in self.layers.items()]
        body = indent("\n".join(lines), " " * 8)
        return f"\n    def __init__({', '.join(['self', *names])}):\n{body}\n"

    def _forward(self) -> str:
        text = dedent(self.forward).strip()
        body = text if "return " in text else f"return {text}"
        return f"    def forward({', '.join(['self', *self.inputs])}):\n{indent(body, ' ' * 8)}\n"

    def _functions(self) -> str:
        inputs = ", ".join(self.inputs.values())
        init = ", ".join(self.init.split())
        return f"\ndef get_inputs():\n    return [{inputs}]\n\n\ndef get_init_inputs():\n    return [{init}]\n"


#: Import statements of a module's text, by the name that needs them.
_IMPORTS = {
    "math.": "import math\n",
    "torch.": "import torch",
    "F.": "import torch.nn.functional as F",
    "nn.": "from torch import nn",
}
