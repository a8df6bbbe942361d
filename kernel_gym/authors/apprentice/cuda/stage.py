"""What all stages share when they are written: the device function around them, its parameters, the launch."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.schedule import BLOCKS, CudaSchedule
from kernel_gym.authors.apprentice.cuda.steps import CTYPES
from kernel_gym.authors.apprentice.frontend.plan import Plan

#: Beyond this many elements, indices need more than an int.
INT_ELEMENTS = 1 << 30
#: Names of variables that device code declares.
_LOCAL = re.compile(
    r"[birmnkoey]|kk|[ikv]\d+|column|row|first|step|quads|result|left|right|top|edge|thread|sums?|total\d*|highest\d*|"
    r"lowest\d*|product\d*|place\w*|start|running|carried|lane|warp|value|before|below|all|earlier|inside|totals|partial\d*"
)


@dataclass
class StageWriter:
    """Writes one stage as a device function and its launch. Subclasses write the body and spell how it is launched."""

    plan: Plan
    schedule: CudaSchedule
    spelling: SpellingChoice
    prefix: str
    code: CodeWriter = field(default_factory=CodeWriter)
    advance: dict[str, str] = field(default_factory=dict)
    #: Helper functions of the device that the body calls.
    helpers: set[str] = field(default_factory=set)

    # ---- what subclasses say ---------------------------------------------------------------------------------------

    def body(self) -> None:
        """Write the statements of the device function."""
        raise NotImplementedError

    def buffers_used(self) -> dict[str, bool]:
        """The buffers that the stage touches; true if it writes them."""
        raise NotImplementedError

    def fields(self) -> list[tuple[str, str]]:
        """Sizes that the device function is handed: name and host expression."""
        raise NotImplementedError

    def launch(self, code: CodeWriter) -> None:
        """Host statements that start the kernel."""
        raise NotImplementedError

    def before(self) -> None:
        """Device functions that come before the kernel."""

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
        """The device code."""
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
        """The C type of a buffer's address."""
        written = self.buffers_used()[buffer]
        return f"{'' if written else 'const '}{CTYPES[self.plan.buffer(buffer).dtype]} *"

    def buffer(self, name: str) -> str:
        """A buffer as device code calls it: by its name, unless the kernel needs that for itself."""
        return f"{name}Data" if _LOCAL.fullmatch(name) else name

    def named(self, size: str) -> str:
        """A size as the kernel calls it: by its name, unless a buffer has it."""
        return f"{size}Size" if any(buffer.name == size for buffer in self.plan.buffers) else size

    def sized(self, text: str) -> str:
        """Arithmetic of the plan (`t.rows * t.length`) over the kernel's parameters."""
        return re.sub(r"\bt\.(\w+)", lambda found: self.named(found[1]), text)

    # ---- the launch ------------------------------------------------------------------------------------------------

    def set_fields(self, code: CodeWriter) -> None:
        """Host statements that compute the sizes."""
        for name, text in self.fields():
            code.add(f"const {self.index} {self.named(name)} = static_cast<{self.index}>({text});")

    def covering(self, code: CodeWriter, count: str) -> None:
        """Host statements: how many blocks `count` elements take."""
        text = self.spelling.spell("launch.blocks", n=count, block=self.schedule.block)
        code.add(f"const {self.index} blocks = {text};")

    def blocks(self) -> str:
        """The number of blocks to start: as many as keep the GPU busy if threads take several elements each."""
        return f"AtMost(blocks, {BLOCKS})" if self.schedule.stride else "blocks"

    def call(self, code: CodeWriter, blocks: str, threads: str, shared: str = "0") -> None:
        """The launch itself."""
        arguments = [self.pointer(name) for name in self.buffers_used()] + [self.named(n) for n, _ in self.fields()]
        given = {"kernel": self.kernel, "blocks": blocks, "threads": threads, "shared": shared}
        code.add(self.spelling.spell("launch.call", **given, arguments=", ".join(arguments)))

    def pointer(self, buffer: str) -> str:
        """A buffer's address in host code."""
        kind = self.pointer_type(buffer).removesuffix(" *") + " *"
        held = self.plan.buffer(buffer)
        if held.origin == "workspace":
            base = f"reinterpret_cast<{kind}>({buffer})"
        else:
            base = self.spelling.spell("tensor.pointer", type=kind, tensor=buffer, element=CTYPES[held.dtype])
        return f"{base} + {self.advance[buffer]}" if buffer in self.advance else base
