"""Rows of the suites: an operator as a few words of torch, from which the text of its module is written.

An `Operator` says what is computed (`forward`, `layers`), on what (`inputs`) and at which sizes (`Sizes`); `task()`
gives the task with its KernelBench-format text. Nothing here imports torch: a suite is loaded before a module is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from textwrap import dedent, fill, indent

from kernel_gym.tasks.task import Case, Task

#: What kinds of operators there are: the grouping of MultiKernelBench, and `other` for files that tell nothing.
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
class Sizes:
    """The size constants of an operator and the values they take.

    `names` are the constants; `public`, each of `hidden` and `timing` give one value for each of them.
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
        """The cases of a task: one public, the hidden ones, the timing case."""
        names = self.names.split()
        hidden = [(f"hidden-{position}", "hidden", values) for position, values in enumerate(self.hidden, 1)]
        rows = [("public", "public", self.public), *hidden, ("timing", "timing", self.timing)]
        return tuple(Case(name, role, tuple(zip(names, values, strict=True))) for name, role, values in rows)  # type: ignore[arg-type]

    def constants(self) -> dict[str, object]:
        """The constants with their public values."""
        return dict(zip(self.names.split(), self.public, strict=True))


@dataclass(frozen=True)
class Operator:
    """One row of a suite.

    `forward` is an expression, or statements that end in `return`; `inputs` maps its arguments to what draws them.
    `layers` maps attributes of the module to what makes them; `init` names the constants that the module is constructed
    with. `settings` are constants beside the sizes, as they stand in the text: a number that no case varies, or an
    expression over the sizes. `repaired` says what was mended in a defective original, `redundant` which of its steps
    do nothing.
    """

    number: int | None
    name: str
    category: str
    description: str
    sizes: Sizes
    forward: str
    inputs: Mapping[str, str]
    layers: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, object] = field(default_factory=dict)
    init: str = ""
    repaired: str = ""
    redundant: str = ""

    def task(self, suite: str, level: int | None = None) -> Task:
        """The task that this row describes."""
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
        """The module in KernelBench's format."""
        body = "\n".join([self._constants(), self._model(), self._functions()])
        imports = [statement for use, statement in _IMPORTS.items() if use in body]
        return "\n".join([*imports, "", body])

    def _constants(self) -> str:
        constants = self.sizes.constants() | dict(self.settings)
        return "".join(f"{name} = {value}\n" for name, value in constants.items())

    def _model(self) -> str:
        docstring = indent(fill(f'"""{self.description}"""', width=112), " " * 4)
        return f"\nclass Model(nn.Module):\n{docstring}\n{self._constructor()}\n{self._forward()}"

    def _constructor(self) -> str:
        names = self.init.split()
        if not names and not self.layers:
            return ""
        kept = [name for name in names if f"self.{name}" in self.forward]
        lines = ["super().__init__()"]
        lines += [f"self.{name} = {name}" for name in kept]
        lines += [f"self.{name} = {made}" for name, made in self.layers.items()]
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


#: What a module's text imports, by what it uses.
_IMPORTS = {
    "math.": "import math\n",
    "torch.": "import torch",
    "F.": "import torch.nn.functional as F",
    "nn.": "from torch import nn",
}
