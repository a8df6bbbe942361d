"""Products on the cube unit whose blocks keep all cube cores equally busy, and convolutions as sums of products."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.products import ProductWriter
from kernel_gym.authors.apprentice.ascendc.schedule import CORES
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter, wrapped
from kernel_gym.authors.apprentice.frontend.plan import Matrix, Taps

#: The host's choice of blocks.
BLOCKS = """\
static uint32_t Shared(uint32_t n, uint32_t parts)
{
    return ((n + parts - 1) / parts + 15) / 16 * 16;
}

// Chooses the part of C that one call computes so that the busiest of 24 cube cores ends first. A call takes as long as
// its multiplications, its loads or its stores, whichever takes most cycles. Blocks are up to 256 columns wide and 64
// deep, or up to 512 wide and 32 deep. Sums are shared by up to `most` calls, whose results are added up.
static void EvenBlocks(TCubeTiling &cube, uint32_t m, uint32_t n, uint32_t k, uint32_t batch, uint32_t most = 1)
{
    uint64_t best = ~0ull;
    for (uint32_t choice = 0; choice < 2 * most; ++choice) {
        const uint32_t wide = 1 + choice % 2, parts = 1 + choice / 2, part = ((k + parts - 1) / parts + 7) / 8 * 8;
        const uint64_t steps = (part + 64 / wide - 1) / (64 / wide), depth = ((part + steps - 1) / steps + 7) / 8 * 8;
        for (uint32_t down = 1; down <= AtMost((m + 15) / 16, 32); ++down) {
            for (uint32_t across = 1; across <= AtMost((n + 15) / 16, 128); ++across) {
                const uint32_t rows = Shared(m, down), columns = Shared(n, across), width = 256 * wide;
                const uint64_t a = Shared(rows, (rows * wide + 127) / 128);
                const uint64_t b = Shared(columns, (columns + width - 1) / width);
                const uint64_t blocks = ((rows + a - 1) / a) * ((columns + b - 1) / b);
                const uint64_t multiply = blocks * steps * (16 + a * b * depth / 1024);
                const uint64_t load = blocks * steps * (11 + (a / 2 + depth) * 6 / 5 + (a + b) * depth * 4 / 117);
                const uint64_t store = blocks * (20 + a * 6 / 5 + a * b * (most > 1 ? 8 : 4) / 60);
                const uint64_t larger = multiply > load ? multiply : load, slowest = larger > store ? larger : store;
                const uint64_t units =
                    1ull * batch * ((m + rows - 1) / rows) * ((n + columns - 1) / columns) * ((k + part - 1) / part);
                const uint64_t cycles = (units + 23) / 24 * (1000 + slowest * 21 / 20);
                if (cycles < best) {
                    best = cycles;
                    cube.singleCoreM = rows;
                    cube.singleCoreN = columns;
                    cube.baseM = a;
                    cube.baseN = b;
                    cube.baseK = depth;
                    cube.singleCoreK = AtMost(part, k);
                }
            }
        }
    }
    cube.M = m;
    cube.N = n;
    cube.Ka = k;
    cube.Kb = k;
    cube.depthA1 = 8;
    cube.depthB1 = 8;
}
"""
#: The first unit of a vector core. The cube cores get units in turn, each first through one of its two vector cores.
_FIRST = (
    "const uint32_t blocks = AscendC::GetBlockNum();",
    "const uint32_t first = AscendC::GetBlockIdx() / 2 + AscendC::GetBlockIdx() % 2 * blocks;",
)
_CUBE_LOOP = "for (uint32_t unit = AscendC::GetBlockIdx(); unit < t.units; unit += AscendC::GetBlockNum())"
_LOOP = "for (uint32_t unit = first; unit < t.units; unit += 2 * blocks)"
_PLACE = (
    "const uint32_t which = unit / (t.rowBlocks * t.columnBlocks);",
    "const uint32_t row = unit / t.columnBlocks % t.rowBlocks * t.cube.singleCoreM;",
    "const uint32_t column = unit % t.columnBlocks * t.cube.singleCoreN;",
)
_SPLIT_PLACE = (
    "const uint32_t begin = unit % t.parts * t.cube.singleCoreK, block = unit / t.parts;",
    *(line.replace("unit", "block") for line in _PLACE),
)
_EXTENT = "mm.SetTail(Min(t.cube.singleCoreM, t.m - row), Min(t.cube.singleCoreN, t.n - column), t.k);"


@dataclass
class EvenProductWriter(ProductWriter):
    """Writes a product. A unit of work is a part of one result matrix that is as large as that of any other core."""

    #: True if no vector core has to be started, because the file has no other stage.
    cube_only: bool = False

    def process(self) -> None:
        add = self.code.add
        if self.halves:
            self._process_half()
            return
        with self.code.function("__aicore__ inline void Process()"):
            add(*([] if self.cube_only else _FIRST))
            with self.code.block(_CUBE_LOOP if self.cube_only else _LOOP):
                add(*(_SPLIT_PLACE if self.product.split else _PLACE))
                self._operand("A", self.product.left, "m", "row", True)
                self._operand("B", self.product.right, "n", "column", False)
                self._add_bias()
                step, pitch = ("t.step", "t.pitch") if self.product.pitch else ("t.m * t.n", "t.n")
                target = f"{self.product.target}Gm[which * {step} + row * {pitch} + column]"
                if self.product.split:
                    depth = "Min(t.cube.singleCoreK, t.k - begin)"
                    add(_EXTENT.replace("t.k)", f"{depth})"), f"mm.IterateAll({target}, true);", "mm.End();")
                else:
                    add(_EXTENT, f"mm.IterateAll({target});", "mm.End();")

    def _process_half(self) -> None:
        """Write the start of half a product, which the caller waits for."""
        add, place = self.code.add, "t.early * half + unit / t.columnBlocks * t.cube.singleCoreM"
        with self.code.function(self.process_head):
            add(*_FIRST, "const uint32_t end = half == 0 ? t.early : t.m;")
            with self.code.block(_LOOP):
                add("Wait();", f"const uint32_t which = 0, row = {place};", _PLACE[2])
                with self.code.block("if (row < end)"):
                    self._operand("A", self.product.left, "m", "row", True)
                    self._operand("B", self.product.right, "n", "column", False)
                    self._add_bias()
                    add(_EXTENT.replace("t.m", "end"))
                    add(f"mm.template IterateAll<false>({self.product.target}Gm[row * t.n + column]);", "busy = true;")
        add("")
        with self.code.function("__aicore__ inline void Wait()"):
            with self.code.block("if (busy)"):
                add("mm.WaitIterateAll();", "mm.End();")
            add("busy = false;")

    def members(self) -> None:
        super().members()
        self.code.add(*["bool busy = false;"] * self.halves)

    def _first(self, matrix: Matrix, extent: str, place: str, left: bool) -> str:
        first = super()._first(matrix, extent, place, left)
        if not self.product.split:
            return first
        return f"{first} + begin" if matrix.transposed != left else f"{first} + begin * t.{extent}"

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        if self.halves:
            code.add("t.early = AtMost(Shared(t.m, 2), t.m);")
        _count_units(code, parts=CORES // 2 if self.product.split else 1, rows="t.early" if self.halves else "t.m")
        if self.product.split:
            code.add("t.parts = (t.k + t.cube.singleCoreK - 1) / t.cube.singleCoreK;", "t.units *= t.parts;")
        _call(self, code)

    def tile_fields(self) -> tuple[str, ...]:
        return ("rowBlocks", "columnBlocks", *["parts"] * self.product.split, "units")

    def core_type(self) -> list[str]:
        return ["KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);"] if self.cube_only else super().core_type()


@dataclass
class TapsWriter(StageWriter):
    """Writes a convolution. A unit of work is a part of the result of one sample; a call adds one tap to it."""

    stage: Taps = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        stage = self.stage
        return [(name, "float") for name in dict.fromkeys((stage.filters, stage.source, stage.target))]

    def fields(self) -> list[tuple[str, str]]:
        stage = self.stage
        names = ("m", "n", "depth", "batch", "pitch")
        return [(name, getattr(stage, name)) for name in names]

    def tile_fields(self) -> tuple[str, ...]:
        taps, phases = sum(len(phase.taps) for phase in self.stage.phases), len(self.stage.phases)
        return (
            "rowBlocks",
            "columnBlocks",
            "units",
            *(f"{name}[{phases}]" for name in ("k", "begin", "end")),
            *(f"{name}[{taps}]" for name in _TAP),
        )

    def struct_lines(self) -> list[str]:
        return [*super().struct_lines(), "    TCubeTiling cube;"]

    def init_lines(self) -> None:
        self.code.add("REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t.cube);")

    def members(self) -> None:
        super().members()
        self.code.add("using Matrix = AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>;")
        self.code.add("AscendC::Matmul<Matrix, Matrix, Matrix> mm;")

    def process(self) -> None:
        add, stage = self.code.add, self.stage
        with self.code.function("__aicore__ inline void Process()"):
            add(*_FIRST)
            with self.code.block(_LOOP):
                add(*_PLACE)
                add("const uint32_t sample = which % t.batch, phase = which / t.batch, k = t.k[phase];")
                add("mm.SetOrgShape(t.m, t.pitch, k, k, t.pitch);", _EXTENT.replace("t.k", "k"))
                with self.code.block("for (uint32_t tap = t.begin[phase]; tap < t.end[phase]; ++tap)"):
                    add(f"mm.SetTensorA({stage.filters}Gm[t.filter[tap] + row * k]);")
                    add(f"mm.SetTensorB({stage.source}Gm[sample * t.depth * t.pitch + t.later[tap] + column]);")
                    target = f"{stage.target}Gm[(which * t.m + row) * t.pitch + column]"
                    add(f"mm.IterateAll({target}, tap > t.begin[phase]);", "mm.End();")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        end = 0
        for number, phase in enumerate(self.stage.phases):
            for n, values in enumerate(phase.taps, end):
                code.add(*(f"t.{name}[{n}] = {text};" for name, text in zip(_TAP, values, strict=True)))
            code.add(f"t.begin[{number}] = {end};", f"t.end[{number}] = {end + len(phase.taps)};")
            code.add(f"t.k[{number}] = {phase.k};")
            end += len(phase.taps)
        longest = max(range(len(self.stage.phases)), key=lambda number: len(self.stage.phases[number].taps))
        _count_units(code, f"t.k[{longest}]", f"{len(self.stage.phases)} * t.batch")
        _call(self, code)


#: The fields of a tap: where its filters begin, and its columns.
_TAP = ("filter", "later")


def _count_units(code: CodeWriter, k: str = "t.k", batch: str = "t.batch", parts: int = 1, rows: str = "t.m") -> None:
    code.add(f"EvenBlocks(t.cube, {rows}, t.n, {k}, {batch}{f', {parts}' if parts > 1 else ''});")
    code.add(*["t.cube.M = t.m;"] * (rows != "t.m"))
    code.add(f"t.rowBlocks = ({rows} + t.cube.singleCoreM - 1) / t.cube.singleCoreM;")
    code.add("t.columnBlocks = (t.n + t.cube.singleCoreN - 1) / t.cube.singleCoreN;")
    code.add(f"t.units = {batch} * t.rowBlocks * t.columnBlocks;")


def _call(writer: StageWriter, code: CodeWriter) -> None:
    """Write the launch; each of its blocks has one cube core and two vector cores."""
    code.add(f"const uint32_t blocks = AtMost(t.units, {CORES // 2});", "t.cube.usedCoreNum = 2 * blocks;")
    if writer.joined:
        code.add("lanes = AtLeast(2 * blocks, lanes);")
        return
    arguments = [f"(GM_ADDR)({writer.pointer(name)})" for name, _ in writer.buffers_used()]
    text = wrapped("", ", ".join([*arguments, "t"]), "", used=len(writer.kernel) + 40)
    code.add(f"{writer.kernel}<<<blocks, nullptr, stream>>>({text});")
