"""The base of all stage writers: a tiling struct, a class with Init and Process, and a launch."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from functools import lru_cache
from typing import ClassVar

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter, wrapped
from kernel_gym.authors.apprentice.frontend.plan import Plan


@dataclass
class StageWriter:
    """Writes one stage as a kernel class and its launch. Subclasses fill in the parts."""

    plan: Plan
    schedule: Schedule
    spelling: SpellingChoice
    #: The name of the stage in camel case; all its names begin with it.
    prefix: str
    code: CodeWriter = field(default_factory=CodeWriter)
    #: True if other stages of the file use the cube unit and this one does not.
    vector_only: bool = False
    #: By buffer, the number of elements by which the host advances its address.
    advance: dict[str, str] = field(default_factory=dict)
    #: The plan's buffers by their names in the class, where these differ.
    names: dict[str, str] = field(default_factory=dict)
    #: True while the function that several launches call is written: its caller sets the sizes and knows the buffers.
    in_function: bool = False
    #: True if the stage shares a launch with others, which then has the device function.
    joined: bool = False
    #: True if the stage takes the first half of the rows while the second half is multiplied.
    halves: bool = False
    #: False if the stage divides the on-chip memory itself, without a TPipe.
    piped: ClassVar[bool] = True
    #: True to start only cores that get units.
    no_idle_cores: ClassVar[bool] = False

    # ---- for subclasses ---------------------------------------------------------------------------------------

    def buffers_used(self) -> list[tuple[str, str]]:
        """Return the global tensors, each as (name, C type), inputs first."""
        raise NotImplementedError

    def fields(self) -> list[tuple[str, str]]:
        """Return the fields of the tiling with their host expressions, sizes first."""
        raise NotImplementedError

    def process(self) -> None:
        """Write `Process` and the methods it calls."""
        raise NotImplementedError

    def init_lines(self) -> None:
        """Write the statements of `Init` that divide the on-chip memory."""

    def launch(self, code: CodeWriter) -> None:
        """Write the host statements that compute the tiling and start the kernel."""
        raise NotImplementedError

    def tile_fields(self) -> tuple[str, ...]:
        """Return the fields of the tiling that the host computes from the sizes."""
        return ("tile", "units", "perCore")

    def core_type(self) -> list[str]:
        """Return the statement that says on which cores the kernel runs, where the file leaves it open."""
        return [self.spelling.spell("matmul.core-type")] if self.vector_only else []

    def members(self) -> None:
        """Write the members of the class."""
        self.code.add(f"AscendC::TPipe {'&' * self.joined}pipe;")

    def struct_lines(self) -> list[str]:
        """Return the members of the tiling struct."""
        names = [name for name, _ in self.fields()] + list(self.tile_fields()) + ["early"] * self.halves
        return [f"    uint32_t {', '.join(names)};"]

    # ---- the class -----------------------------------------------------------------------------------------------

    @property
    def kernel(self) -> str:
        """The name of the device function."""
        return f"{snake(self.prefix)}_kernel"

    @property
    def function(self) -> str:
        """The name of the host function that several launches call."""
        return f"Launch{self.prefix}"

    @property
    def tiling(self) -> str:
        """The name of the tiling struct."""
        return f"{self.prefix}KernelTiling"

    def write(self) -> str:
        """Write the tiling struct, the class and the device function; return them as text."""
        outer, self.code = self.code, CodeWriter(depth=1)
        # Process is written first, because its needs decide which buffers Init makes.
        self.process()
        inner, self.code = self.code, outer
        self.code.add(f"struct {self.tiling} {{", *self.struct_lines(), "};", "")
        self._class(inner)
        if not self.joined:
            self._entry()
        return self.code.text()

    def _class(self, inner: CodeWriter) -> None:
        with self.code.block(f"class Kernel{self.prefix}", "};"):
            with self.code.outdented():
                self.code.add("public:")
            pipe, begin = ("AscendC::TPipe &pipe", " : pipe(pipe)") if self.joined and self.piped else ("", "")
            self.code.add(f"__aicore__ inline Kernel{self.prefix}({pipe}){begin} {{}}", "")
            self._init()
            self.code.add("")
            self.code.lines += inner.lines
            self.code.add("")
            with self.code.outdented():
                self.code.add("private:")
            self.members()
            for name, ctype in self.buffers_used():
                self.code.add(f"AscendC::GlobalTensor<{ctype}> {name}Gm;")
            self.code.add(f"{self.tiling} t;")
        self.code.add("")

    def _gm_parameters(self) -> str:
        return ", ".join(f"GM_ADDR {name}" for name, _ in self.buffers_used())

    def _init(self) -> None:
        parameters = f"{self._gm_parameters()}, const {self.tiling} &tiling"
        with self.code.function(wrapped("__aicore__ inline void Init(", parameters, ")")):
            self.code.add("t = tiling;")
            for name, ctype in self.buffers_used():
                self.code.add(self.spelling.spell("gm.buffer", gm=f"{name}Gm", type=ctype, pointer=name))
            self.init_lines()

    def _entry(self) -> None:
        parameters = f"{self._gm_parameters()}, {self.tiling} tiling"
        head = wrapped(f'extern "C" __global__ __aicore__ void {self.kernel}(', parameters, ")")
        names = ", ".join(name for name, _ in self.buffers_used())
        with self.code.function(head):
            self.code.add(*self.core_type())
            self.code.add(
                f"Kernel{self.prefix} op;", self.spelling.spell("launch.tiling", arguments=names), "op.Process();"
            )

    # ---- cores and launch ----------------------------------------------------------------------------------------

    @property
    def process_head(self) -> str:
        """The head of `Process`."""
        return f"__aicore__ inline void Process({'uint32_t half' * self.halves})"

    def core_share(self) -> None:
        """Write the statements that give every core its share of the units."""
        if self.halves:
            self.code.add(
                "const uint32_t first = half * t.early + AscendC::GetBlockIdx() * t.perCore;",
                "const uint32_t last = Min(first + t.perCore, half == 0 ? t.early : t.units);",
            )
            return
        self.code.add(self.spelling.spell("core.offset"), self.spelling.spell("core.last"))

    def early_units(self) -> str:
        """Return how many units need nothing but the first half of the rows, as host arithmetic."""
        raise NotImplementedError

    def set_fields(self, code: CodeWriter) -> None:
        """Write the host statements that set the sizes."""
        if not self.in_function:
            code.add(*(f"t.{name} = {text};" for name, text in self.fields()))

    def call(self, code: CodeWriter) -> None:
        """Write the host statements that share the units among cores and start the kernel."""
        arguments = [f"(GM_ADDR)({self.pointer(name)})" for name, _ in self.buffers_used()]
        code.add(f"const uint32_t cores = AtMost(t.units, {self.schedule.cores});")
        units = "t.units"
        if self.halves:
            code.add(f"t.early = {self.early_units()};")
            units = "AtLeast(t.early, t.units - t.early)"
        code.add(f"t.perCore = ({units} + cores - 1) / cores;")
        cores = "cores"
        if self.no_idle_cores:
            code.add(f"const uint32_t busy = ({units} + t.perCore - 1) / t.perCore;")
            cores = "busy"
        if self.joined:
            code.add(f"lanes = AtLeast({cores}, lanes);")
            return
        text = wrapped("", ", ".join([*arguments, "t"]), "", used=len(self.kernel) + 40)
        fields = {"kernel": self.kernel, "cores": cores, "arguments": text}
        code.add(self.spelling.spell("launch.call", **fields))

    def write_function(self) -> str:
        """Return the host function of launches that differ in sizes and buffers only, once the class is written."""
        apart, code = copy(self), CodeWriter()
        apart.in_function = True
        parameters = f"{self.tiling} t, {self._gm_parameters()}, void *stream"
        with code.function(wrapped(f"static int {self.function}(", parameters, ")")):
            apart.launch(code)
            code.add("return 0;")
        return code.text()

    def call_function(self, code: CodeWriter) -> None:
        """Write the host statements that set the sizes and call the function."""
        self.set_fields(code)
        arguments = ", ".join(["t", *(f"(GM_ADDR)({self.pointer(name)})" for name, _ in self.buffers_used()), "stream"])
        with code.block(wrapped(f"if ({self.function}(", arguments, ") != 0)")):
            code.add("return 1;")

    def pointer(self, buffer: str) -> str:
        """Return a buffer's address in host code."""
        if self.in_function:
            return buffer
        buffer = self.names.get(buffer, buffer)
        base = buffer if self.plan.buffer(buffer).origin == "workspace" else f"{buffer}.ptr"
        return f"(float *){base} + {self.advance[buffer]}" if buffer in self.advance else base


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return a name in camel case with underscores instead."""
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
