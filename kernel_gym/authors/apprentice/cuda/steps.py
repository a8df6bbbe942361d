"""Writes the steps of a loop nest as CUDA expressions on single numbers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter, literal
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Ref, Step

CTYPES = {
    "float32": "float", "float16": "half", "bfloat16": "__nv_bfloat16", "float64": "double", "int8": "signed char",
    "uint8": "unsigned char", "int16": "short", "int32": "int", "int64": "long long", "uint32": "unsigned int",
    "bool": "unsigned char",
}  # fmt: skip
#: Element types that need a header: its idiom, and the conversions to float and back.
HALVES = {
    "float16": ("half.include", "__half2float({0})", "__float2half({0})"),
    "bfloat16": ("bfloat16.include", "__bfloat162float({0})", "__float2bfloat16({0})"),
}
_FUNCTIONS = {
    "add": "{0} + {1}", "sub": "{0} - {1}", "mul": "{0} * {1}", "div": "{0} / {1}", "max": "fmaxf({0}, {1})",
    "min": "fminf({0}, {1})", "relu": "fmaxf({0}, 0.0f)", "neg": "-({0})", "same": "{0}", "constant": "{0}",
    "leaky_relu": "{0} > 0.0f ? {0} : {0} * {1}", "abs": "fabsf({0})", "exp": "expf({0})", "log": "logf({0})",
    "sqrt": "sqrtf({0})", "rsqrt": "rsqrtf({0})", "reciprocal": "1.0f / {0}", "tanh": "tanhf({0})",
    "sigmoid": "1.0f / (1.0f + expf(-{0}))", "erf": "erff({0})", "sin": "sinf({0})", "cos": "cosf({0})",
    "floor": "floorf({0})", "ceil": "ceilf({0})", "round": "rintf({0})", "trunc": "truncf({0})",
    "sign": "({0} > 0.0f ? 1.0f : 0.0f) - ({0} < 0.0f ? 1.0f : 0.0f)",
    "gt": "{0} > {1}", "lt": "{0} < {1}", "ge": "{0} >= {1}", "le": "{0} <= {1}", "eq": "{0} == {1}",
    "as_float16": "__half2float(__float2half({0}))", "as_bfloat16": "__bfloat162float(__float2bfloat16({0}))",
    "ne": "{0} != {1}", "where": "{0} ? {1} : {2}", "fmod": "fmodf({0}, {1})",
    "bitwise_and": "static_cast<float>(static_cast<int>({0}) & static_cast<int>({1}))",
}  # fmt: skip
#: Approximate intrinsics, for schedules with `fast`.
_FAST = {"exp": "__expf({0})", "log": "__logf({0})", "sigmoid": "__fdividef(1.0f, 1.0f + __expf(-{0}))"}
#: The names of results of reductions.
RESULTS = {
    "sum": "total", "max": "highest", "min": "lowest", "prod": "product", "argmax": "place", "argmin": "place",
}  # fmt: skip


@dataclass
class Steps:
    """Writes steps; `names` holds the name of each result."""

    nest: Nest
    spelling: SpellingChoice
    code: CodeWriter
    #: Returns the index of an access's element, as C.
    address: Callable[[Access], str]
    #: Returns a buffer's name in device code.
    buffer: Callable[[str], str]
    fast: bool = False
    names: dict[int, str] = field(default_factory=dict)
    #: For loads that come from shared memory: the element there, as C.
    held: dict[int, str] = field(default_factory=dict)

    def write(self, index: int) -> None:
        """Write the statement that computes a step, unless it was written before."""
        step = self.nest.steps[index]
        if index in self.names:
            return
        first = step.arguments[0] if step.arguments else None
        if step.idiom and isinstance(first, Ref) and step.function != "size" and not self.spelling.right(step.idiom):
            self.names[index] = self.names[first.step]
            return
        kind = "bool" if step.boolean else "float"
        name = f"{step.access.label}Value" if step.access else f"v{index}"
        self.code.add(f"const {kind} {name} = {self._expression(index, step)};")
        self.names[index] = name

    def _expression(self, index: int, step: Step) -> str:
        if index in self.held:
            return self.held[index]
        if step.access:
            return loaded(step.access.dtype, f"{self.buffer(step.access.buffer)}[{self.address(step.access)}]")
        if step.index:
            return f"static_cast<float>({self.address(step.index)})"
        if step.field:
            return f"static_cast<float>({step.field})"
        table = _FUNCTIONS | _FAST if self.fast else _FUNCTIONS
        return table[step.function].format(*(self.operand(argument) for argument in step.arguments))

    def operand(self, argument: Ref | float) -> str:
        """Return an argument as C."""
        return self.names[argument.step] if isinstance(argument, Ref) else number(float(argument))

    def forget(self, names: dict[int, str]) -> None:
        """Return to the names before a loop, at its end."""
        self.names = dict(names)


def loaded(dtype: str, element: str) -> str:
    """Return an element of memory as a float, or as a truth value."""
    if dtype == "float32":
        return element
    if dtype == "bool":
        return f"{element} != 0"
    return HALVES[dtype][1].format(element) if dtype in HALVES else f"static_cast<float>({element})"


def stored(dtype: str, value: str) -> str:
    """Return a number as an element of memory."""
    if dtype == "float32":
        return value
    if dtype == "bool":
        return f"{value} != 0.0f"
    return HALVES[dtype][2].format(value) if dtype in HALVES else f"static_cast<{CTYPES[dtype]}>({value})"


def number(value: float) -> str:
    """Return a number as CUDA; infinities by their bits."""
    if value == float("-inf"):
        return "__int_as_float(0xff800000)"
    return "__int_as_float(0x7f800000)" if value == float("inf") else literal(value)


def needed(nest: Nest, targets: list[int], written: Collection[int] = ()) -> list[int]:
    """Return the targets and the steps that they are computed from, in order, without those already written."""
    steps: set[int] = set()
    waiting = list(targets)
    while waiting:
        index = waiting.pop()
        if index not in steps and index not in written:
            steps.add(index)
            waiting += [argument.step for argument in nest.steps[index].arguments if isinstance(argument, Ref)]
    return sorted(steps)
