"""Writes running sums and products along an axis."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.stage import StageWriter
from kernel_gym.authors.apprentice.frontend.plan import Scan

_SIGNS = {"sum": "+", "prod": "*"}
_STARTS = {"sum": "0.0f", "prod": "1.0f"}


@dataclass
class ScanWriter(StageWriter):
    """Writes a scan in which one thread walks one line, element by element."""

    scan: Scan = field(kw_only=True)

    def buffers_used(self) -> dict[str, bool]:
        """Return source and target."""
        return {self.scan.source: False, self.scan.target: True}

    def fields(self) -> list[tuple[str, str]]:
        """Return the plan's sizes."""
        return list(self.scan.fields)

    @property
    def lines(self) -> str:
        """The number of lines."""
        return self.named("rows") if self.scan.last else f"{self.named('rows')} * {self.named('length')}"

    def body(self) -> None:
        """Write the scan of one line."""
        axis, length = self.named("axis"), self.named("length")
        self.code.add(f"const int i = {self.spelling.spell('index.global')};")
        self.code.add(self.spelling.spell("bounds.check", n=self.lines))
        start = f"i * {axis}" if self.scan.last else f"i / {length} * {axis} * {length} + i % {length}"
        step = "k" if self.scan.last or not self.spelling.right("axis.stride") else f"k * {length}"
        self.code.add(f"const int start = {start};", f"float running = {_STARTS[self.scan.function]};")
        with self.code.block(f"for (int k = 0; k < {axis}; ++k)"):
            self.code.add(
                f"running = running {_SIGNS[self.scan.function]} {self.buffer(self.scan.source)}[start + {step}];"
            )
            self.code.add(f"{self.buffer(self.scan.target)}[start + {step}] = running;")

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a thread for each line."""
        self.set_fields(code)
        self.covering(code, self.lines)
        self.call(code, "blocks", self.spelling.spell("launch.threads", block=self.schedule.block))


@dataclass
class BlockScanWriter(ScanWriter):
    """Writes a scan in which one block walks one row, an element per thread at a time, and carries the total on."""

    def body(self) -> None:
        """Write the scan within warps, then over the warps' totals, then the addition of the carry."""
        axis, sign, start = self.named("axis"), _SIGNS[self.scan.function], _STARTS[self.scan.function]
        source, target = self.buffer(self.scan.source), self.buffer(self.scan.target)
        add, spell = self.code.add, self.spelling.spell
        add(spell("shared.declare", type="float", name="totals", size=32))
        add("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;", f"float carried = {start};")
        with self.code.block(f"for (int k = 0; k < {axis}; k += blockDim.x)"):
            add(f"const int place = blockIdx.x * {axis} + k + threadIdx.x;")
            add(f"const bool inside = k + threadIdx.x < {axis};", f"float value = inside ? {source}[place] : {start};")
            self._within_warp("value", sign)
            with self.code.block("if (lane == 31)"):
                add("totals[warp] = value;")
            add(spell("sync.block"))
            add(f"float before = lane < blockDim.x / 32 ? totals[lane] : {start};")
            self._within_warp("before", sign)
            add("const float all = __shfl_sync(0xffffffffu, before, blockDim.x / 32 - 1);")
            add("const float earlier = __shfl_sync(0xffffffffu, before, warp - (warp > 0));")
            with self.code.block("if (warp > 0)"):
                add(f"value = value {sign} earlier;")
            with self.code.block("if (inside)"):
                add(f"{target}[place] = carried {sign} value;")
            add(f"carried = carried {sign} all;", spell("sync.block"))

    def _within_warp(self, name: str, sign: str) -> None:
        with self.code.block("for (int offset = 1; offset < 32; offset *= 2)"):
            self.code.add(f"const float below = __shfl_up_sync(0xffffffffu, {name}, offset);")
            with self.code.block("if (lane >= offset)"):
                self.code.add(f"{name} = below {sign} {name};")

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a block for each row."""
        self.set_fields(code)
        self.call(code, self.lines, self.spelling.spell("launch.threads", block=self.schedule.block))
