"""Writes running sums and products along an axis."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.nest import even_tile
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Scan

MERGE = {"sum": "Add", "prod": "Mul"}
NEUTRAL = {"sum": "0.0f", "prod": "1.0f"}
_CARRY = {"sum": "math.add-scalar", "prod": "math.scale"}


@dataclass
class ScanWriter(StageWriter):
    """The base of both scan writers: one tensor in, one out."""

    scan: Scan = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.scan.source, "float"), (self.scan.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        return list(self.scan.fields)

    def merge(self, dst: str, left: str, right: str, n: str) -> str:
        """Return the instruction that combines two parts."""
        return f"AscendC::{MERGE[self.scan.function]}({dst}, {left}, {right}, {n});"

    def load(self, offset: str) -> None:
        """Write the copy of a tile into its queue and out of it."""
        spell, name = self.spelling.spell, self.scan.source
        self.code.add(spell("queue.alloc", type="float", tensor=f"{name}In", queue=f"{name}Queue"))
        fields = {"dst": f"{name}In", "src": f"{name}Gm", "offset": offset, "n": "count", "pad": "false, 0, 0, 0"}
        self.code.add(spell("copy.in", type="float", **fields))
        self.code.add(spell("queue.enque", queue=f"{name}Queue", tensor=f"{name}In"))
        self.code.add(spell("queue.deque", type="float", tensor=f"{name}Local", queue=f"{name}Queue"))

    def store(self, offset: str) -> None:
        """Write the copy of the result's tile to global memory."""
        spell, name = self.spelling.spell, self.scan.target
        self.code.add(spell("queue.enque", queue=f"{name}Queue", tensor=f"{name}Local"))
        self.code.add(spell("queue.free", queue=f"{self.scan.source}Queue", tensor=f"{self.scan.source}Local"))
        self.code.add(spell("queue.deque", type="float", tensor=f"{name}Ready", queue=f"{name}Queue"))
        fields = {"dst": f"{name}Gm", "src": f"{name}Ready", "offset": offset, "n": "count"}
        self.code.add(spell("copy.out", type="float", **fields))
        self.code.add(spell("queue.free", queue=f"{name}Queue", tensor=f"{name}Ready"))

    def queue_lines(self, tile: str) -> None:
        """Write the statements that give both queues their buffers."""
        for name in (self.scan.source, self.scan.target):
            fields = {"queue": f"{name}Queue", "buffers": self.schedule.buffers, "bytes": f"{tile} * sizeof(float)"}
            self.code.add(self.spelling.spell("queue.init", **fields))

    def members(self) -> None:
        super().members()
        self.code.add(f"AscendC::TQue<AscendC::TPosition::VECIN, 1> {self.scan.source}Queue;")
        self.code.add(f"AscendC::TQue<AscendC::TPosition::VECOUT, 1> {self.scan.target}Queue;")


class RowScanWriter(ScanWriter):
    """Writes a scan along the last axis: each tile is scanned in doubling steps, then the carry is added.

    In `line`, eight neutral elements precede the tile. Steps shorter than a block of 32 bytes shift by Gather, longer
    ones by offset.
    """

    def process(self) -> None:
        add = self.code.add
        with self.code.function("__aicore__ inline void Process()"):
            add(self.spelling.spell("buffer.get", type="float", tensor="line", buffer="lineBuf", elements="t.tile"))
            add(self.spelling.spell("tensor.duplicate", dst="line", value=NEUTRAL[self.scan.function], n="8"))
            add("AscendC::ArithProgression(placeBuf.Get<int32_t>(), 0, 4, t.tile);")
            self.core_share()
            with self.code.block("for (uint32_t row = first; row < last; ++row)"):
                add(f"float carry = {NEUTRAL[self.scan.function]};")
                with self.code.block("for (uint32_t start = 0; start < t.axis; start += t.tile)"):
                    add("carry = ScanTile(row * t.axis + start, Min(t.tile, t.axis - start), carry);")
        add("")
        with self.code.function("__aicore__ inline float ScanTile(uint32_t offset, uint32_t count, float carry)"):
            self._tile()

    def _tile(self) -> None:
        add, spell, out = self.code.add, self.spelling.spell, f"{self.scan.target}Local"
        for name in ("line", "moved"):
            add(spell("buffer.get", type="float", tensor=name, buffer=f"{name}Buf", elements="t.tile"))
        add("AscendC::LocalTensor<uint32_t> places = placeBuf.Get<uint32_t>();")
        self.load("offset")
        add(spell("tensor.copy", dst="line[8]", src=f"{self.scan.source}Local", n="count"))
        near = self.merge("line[8]", "line[8]", "moved", "count")
        far = self.merge("line[8 + step]", "line[8 + step]", "moved", "count - step")
        add(spell("scan.doubling", line="line", moved="moved", places="places", n="count", near=near, far=far))
        add(spell("queue.alloc", type="float", tensor=out, queue=f"{self.scan.target}Queue"))
        add(spell(_CARRY[self.scan.function], dst=out, src="line[8]", value="carry", n="count"))
        add(f"carry = {spell('local.element', tensor=out, index='count - 1')};")
        self.store("offset")
        add("return carry;")

    def init_lines(self) -> None:
        spell, add = self.spelling.spell, self.code.add
        self.queue_lines("t.tile")
        add(spell("buffer.init", buffer="lineBuf", bytes="(t.tile + 8) * sizeof(float)"))
        add(spell("buffer.init", buffer="movedBuf", bytes="t.tile * sizeof(float)"))
        add(spell("buffer.init", buffer="placeBuf", bytes="t.tile * sizeof(int32_t)"))

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> lineBuf, movedBuf, placeBuf;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        capacity = min((BUDGET - 1024) // (4 * (2 * self.schedule.buffers + 3)) // 64 * 64, self.schedule.tile or 4096)
        code.add(self.spelling.spell("tile.fit", wanted="t.axis", capacity=capacity), "t.units = t.rows;")
        self.call(code)


class ColumnScanWriter(ScanWriter):
    """Writes a scan along another axis: a running vector for each tile of the inner dimensions."""

    def process(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        with self.code.function("__aicore__ inline void Process()"):
            add(spell("buffer.get", type="float", tensor="total", buffer="totalBuf", elements="t.tile"))
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t row = unit / t.tiles;", "const uint32_t start = (unit % t.tiles) * t.tile;")
                add("const uint32_t count = Min(t.tile, t.length - start);")
                add(spell("tensor.duplicate", dst="total", value=NEUTRAL[self.scan.function], n="count"))
                with self.code.block("for (uint32_t axis = 0; axis < t.axis; ++axis)"):
                    self._step()

    def _step(self) -> None:
        out = f"{self.scan.target}Local"
        self.code.add("const uint32_t offset = (row * t.axis + axis) * t.length + start;")
        self.load("offset")
        self.code.add(self.merge("total", "total", f"{self.scan.source}Local", "count"))
        self.code.add(self.spelling.spell("queue.alloc", type="float", tensor=out, queue=f"{self.scan.target}Queue"))
        self.code.add(self.spelling.spell("tensor.copy", dst=out, src="total", n="count"))
        self.store("offset")

    def init_lines(self) -> None:
        self.queue_lines("t.tile")
        self.code.add(self.spelling.spell("buffer.init", buffer="totalBuf", bytes="t.tile * sizeof(float)"))

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> totalBuf;")

    def tile_fields(self) -> tuple[str, ...]:
        return ("tile", "tiles", "units", "perCore")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        fits = (BUDGET - 1024) // (4 * (2 * self.schedule.buffers + 1)) // 64 * 64
        capacity = min(fits, self.schedule.tile or 8192)
        tile = even_tile("t.rows * t.length", 2 * self.schedule.cores, "t.length")
        code.add(self.spelling.spell("tile.fit", wanted=tile, capacity=capacity))
        code.add(f"t.tiles = {self.spelling.spell('loop.remainder', length='t.length', tile='t.tile')};")
        code.add("t.units = t.rows * t.tiles;")
        self.call(code)
