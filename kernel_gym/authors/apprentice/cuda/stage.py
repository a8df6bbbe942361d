"""The base of all stage writers: the device function, its parameters and the launch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.schedule import BLOCKS, CudaSchedule
from kernel_gym.authors.apprentice.cuda.steps import CTYPES
from kernel_gym.authors.apprentice.frontend.plan import Plan

#: From this many elements on, indices are long long.
INT_ELEMENTS = 1 << 30
#: Names of variables that device code declares.
_LOCAL = re.compile(
    r"[birmnkoey]|kk|[ikv]\d+|column|row|first|step|quads|result|left|right|top|edge|thread|sums?|total\d*|highest\d*|"
    r"lowest\d*|product\d*|place\w*|start|running|carried|lane|warp|value|before|below|all|earlier|inside|totals|partial\d*|"
    r"j|entry|inner"
)


@dataclass
class StageWriter:
    """Writes one stage as a device function and its launch. Subclasses write the body and the launch."""

    plan: Plan
    schedule: CudaSchedule
    spelling: SpellingChoice
    prefix: str
    code: CodeWriter = field(default_factory=CodeWriter)
    advance: dict[str, str] = field(default_factory=dict)
    #: The device helper functions that the body calls.
    helpers: set[str] = field(default_factory=set)

    # ---- for subclasses -----------------------------------------------------------------------------------------

    def body(self) -> None:
        """Write the statements of the device function."""
        raise NotImplementedError

    def buffers_used(self) -> dict[str, bool]:
        """Return the buffers that the stage uses; true for those that it writes."""
        raise NotImplementedError

    def fields(self) -> list[tuple[str, str]]:
        """Return the sizes that the device function receives, each as (name, host expression)."""
        raise NotImplementedError

    def launch(self, code: CodeWriter) -> None:
        """Write the host statements that start the kernel."""
        raise NotImplementedError

    def before(self) -> None:
        """Write device functions that the kernel calls."""

    @property
    def index(self) -> str:
        """The type of indices."""
        return "int"

    # ---- the device function ---------------------------------------------------------------------------------------

    @property
    def kernel(self) -> str:
        """The name of the device function."""
        return f"{self.prefix}_kernel"

    def write(self) -> str:
        """Write the device code and return it as text."""
        self.before()
        with self.code.function(
            self.spelling.spell("kernel.qualifier", kernel=self.kernel, parameters=self._parameters())
        ):
            self.body()
        return self.code.text()

    def _parameters(self) -> str:
        buffers = [f"{self.pointer_type(name)}{self.buffer(name)}" for name in self.buffers_used()]
        return ", ".join(buffers + [f"{self.index} {self.named(name)}" for name, _ in self.fields()])

    def pointer_type(self, buffer: str) -> str:
        """Return the C type of a buffer's address."""
        written = self.buffers_used()[buffer]
        return f"{'' if written else 'const '}{CTYPES[self.plan.buffer(buffer).dtype]} *"

    def buffer(self, name: str) -> str:
        """Return a buffer's name in device code: its own, unless a variable of the kernel has it."""
        return f"{name}Data" if _LOCAL.fullmatch(name) else name

    def named(self, size: str) -> str:
        """Return a size's name in the kernel: its own, unless a buffer has it."""
        return f"{size}Size" if any(buffer.name == size for buffer in self.plan.buffers) else size

    def sized(self, text: str) -> str:
        """Return arithmetic of the plan (`t.rows * t.length`) over the kernel's parameters."""
        return re.sub(r"\bt\.(\w+)", lambda match: self.named(match[1]), text)

    # ---- the launch ------------------------------------------------------------------------------------------------

    def set_fields(self, code: CodeWriter) -> None:
        """Write the host statements that compute the sizes."""
        for name, text in self.fields():
            code.add(f"const {self.index} {self.named(name)} = static_cast<{self.index}>({text});")

    def covering(self, code: CodeWriter, count: str) -> None:
        """Write the host statement that computes how many blocks cover `count` elements."""
        text = self.spelling.spell("launch.blocks", n=count, block=self.schedule.block)
        code.add(f"const {self.index} blocks = {text};")

    def blocks(self) -> str:
        """Return the number of blocks to start; with a grid-stride loop, at most as many as keep the GPU busy."""
        return f"AtMost(blocks, {BLOCKS})" if self.schedule.stride else "blocks"

    def call(self, code: CodeWriter, blocks: str, threads: str, shared: str = "0") -> None:
        """Write the launch itself."""
        arguments = [self.pointer(name) for name in self.buffers_used()] + [self.named(n) for n, _ in self.fields()]
        fields = {"kernel": self.kernel, "blocks": blocks, "threads": threads, "shared": shared}
        code.add(self.spelling.spell("launch.call", **fields, arguments=", ".join(arguments)))

    def pointer(self, buffer: str) -> str:
        """Return a buffer's address in host code."""
        kind = self.pointer_type(buffer).removesuffix(" *") + " *"
        held = self.plan.buffer(buffer)
        if held.origin == "workspace":
            base = f"reinterpret_cast<{kind}>({buffer})"
        else:
            base = self.spelling.spell("tensor.pointer", type=kind, tensor=buffer, element=CTYPES[held.dtype])
        return f"{base} + {self.advance[buffer]}" if buffer in self.advance else base
