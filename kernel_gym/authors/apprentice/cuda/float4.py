"""Writes elementwise loop nests that move four floats at a time, as float4."""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.nest import NestWriter
from kernel_gym.authors.apprentice.cuda.schedule import CudaSchedule
from kernel_gym.authors.apprentice.frontend.plan import Nest


def suits(nest: Nest, schedule: CudaSchedule) -> bool:
    """Return whether the nest is one loop over contiguous floats."""
    accesses = [step.access for step in nest.loads if step.access] + [store.access for store in nest.stores]
    return (
        schedule.vector == 4
        and schedule.stride
        and not nest.kept
        and not nest.reductions
        and not any(step.index or (step.boolean and step.access) for step in nest.steps)
        and all(access.step in "01" and access.dtype == "float32" and access.offset == "0" for access in accesses)
        and all(store.access.step == "1" for store in nest.stores)
        and any(step.access and step.access.step == "1" for step in nest.steps)
    )


@dataclass
class Float4Writer(NestWriter):
    """Writes the arithmetic of one element as a function, called for the four parts of each float4 and for the tail."""

    def __post_init__(self) -> None:
        super().__post_init__()
        loads = [(index, step.access) for index, step in enumerate(self.nest.steps) if step.access]
        self.walked = [(index, access) for index, access in loads if access.step == "1"]
        self.single = [(index, access) for index, access in loads if access.step == "0"]

    def before(self) -> None:
        """Write the function of one element."""
        names = [f"{access.label}Value" for _, access in (*self.walked, *self.single)]
        sizes = [step.field for step in self.nest.steps if step.field]
        parameters = [f"float {name}" for name in names] + [f"{self.index} {self.named(name)}" for name in sizes]
        self.sizes_used = [self.named(name) for name in sizes]
        head = self.spelling.spell("device.function", type="float", name=f"{self.prefix}_element")
        with self.code.function(f"{head}({', '.join(parameters)})"):
            for index, access in (*self.walked, *self.single):
                self.steps.names[index] = f"{access.label}Value"
            for index in range(len(self.nest.steps)):
                self.steps.write(index)
            self.code.add(f"return {self.steps.names[self.nest.stores[0].step]};")
        self.code.add("")

    def body(self) -> None:
        """Write the loop over whole float4s, then the loop over the tail."""
        out, length = self.buffer(self.nest.stores[0].access.buffer), self.named(self.nest.vector)
        self.code.add(
            f"const {self.index} first = {self.spelling.spell('index.global')};",
            f"const {self.index} step = gridDim.x * blockDim.x;",
            f"const {self.index} quads = {length} / 4;",
        )
        self.code.add(
            *(f"const float {access.label}Value = {self.buffer(access.buffer)}[0];" for _, access in self.single)
        )
        with self.code.block(f"for ({self.index} i = first; i < quads; i += step)"):
            for _, access in self.walked:
                self.code.add(
                    f"const float4 {access.label}4 = reinterpret_cast<const float4 *>({self.buffer(access.buffer)})[i];"
                )
            self.code.add("float4 result;")
            for part in "xyzw":
                self.code.add(f"result.{part} = {self._element([f'{a.label}4.{part}' for _, a in self.walked])};")
            self.code.add(f"reinterpret_cast<float4 *>({out})[i] = result;")
        with self.code.block(f"for ({self.index} i = 4 * quads + first; i < {length}; i += step)"):
            self.code.add(f"{out}[i] = {self._element([f'{self.buffer(a.buffer)}[i]' for _, a in self.walked])};")

    def _element(self, values: list[str]) -> str:
        numbers = [f"{access.label}Value" for _, access in self.single]
        return f"{self.prefix}_element({', '.join([*values, *numbers, *self.sizes_used])})"

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a thread for each float4, or fewer that take several each."""
        self.set_fields(code)
        self.covering(code, f"({self.results} + 3) / 4")
        self.call(code, self.blocks(), self.spelling.spell("launch.threads", block=self.schedule.block))
