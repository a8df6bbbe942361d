"""Running sums and products along rows: 16 rows are transposed on chip and then added up as vectors.

Eight neighbours of a row are a block. Its elements are merged lane by lane in all blocks at once. Then each block is
merged with the block before it, with the two blocks before those, with four, and so on.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.nest import CTYPES
from kernel_gym.authors.apprentice.ascendc.scans import MERGE, NEUTRAL
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Running

_PROCESS = """\
// A part of 16 rows.
struct Part {{
    uint32_t row, start, count;
    uint16_t rows;
    bool first;
}};

__aicore__ inline Part PartAt(uint32_t step)
{{
    const uint32_t begin = AscendC::GetBlockIdx() * t.perCore * 16, end = Min(begin + t.perCore * 16, t.rows);
    const uint32_t row = begin + step / t.parts * 16, start = {part} * t.part;
    return {{row, start, Min(t.part, t.axis - start), static_cast<uint16_t>(Min(16, end - row)), step % t.parts == 0}};
}}

__aicore__ inline void Process()
{{
    const uint32_t begin = AscendC::GetBlockIdx() * t.perCore * 16, end = Min(begin + t.perCore * 16, t.rows);
    const uint32_t steps = begin < end ? (end - begin + 15) / 16 * t.parts : 0;
    // The next part is on its way while this one is computed.
    for (uint32_t step = 0; step <= steps; ++step) {{
        if (step < steps) {{
            CopyIn(PartAt(step));
        }}
        if (step > 0) {{
            Compute(PartAt(step - 1));
            CopyOut(PartAt(step - 1));
        }}
    }}
}}

__aicore__ inline void CopyIn(const Part &at)
{{
    const uint32_t used = Align(at.count, 8), offset = at.row * t.axis + at.start, row = t.part + 32;
    AscendC::LocalTensor<float> in = inQueue.AllocTensor<float>();
    const AscendC::DataCopyExtParams rows{{at.rows, static_cast<uint32_t>(at.count * sizeof(float)),
                                          static_cast<uint32_t>((t.axis - at.count) * sizeof(float)),
                                          (row - used) / 8, 0}};
    AscendC::DataCopyPad(in, {source}Gm[offset], rows, {{true, 0, static_cast<uint8_t>(used - at.count), {neutral}}});
    inQueue.EnQue(in);{load_factor}
}}

__aicore__ inline void Compute(const Part &at)
{{
    AscendC::LocalTensor<float> in = inQueue.DeQue<float>();
    AscendC::LocalTensor<float> out = outQueue.AllocTensor<float>();
    const AscendC::LocalTensor<float> held = heldBuf.Get<float>()[64];
    // Rows and lanes begin 128 and 256 bytes apart modulo 512, so that instructions read from different banks.
    const uint32_t row = t.part + 32, wide = 2 * t.part, pitch = wide + 64;
    const uint8_t blocks = static_cast<uint8_t>(t.part / 8);{multiply}
    // `lanes` has the first elements of all blocks, then the second ones, each of 16 rows.
    const AscendC::LocalTensor<float> before = held, lanes = held[pitch];
    const uint64_t rowBytes = row * sizeof(float), pitchBytes = pitch * sizeof(float);
    uint64_t to[16], from[16], at0 = in.GetPhyAddr(), at1 = lanes.GetPhyAddr();
    for (uint32_t i = 0; i < 16; i += 2, at0 += 2 * rowBytes, at1 += pitchBytes) {{
        from[i] = at0, from[i + 1] = at0 + rowBytes;
        to[i] = at1, to[i + 1] = at1 + 32;
    }}
    AscendC::TransDataTo5HD<float>(to, from, AscendC::TransDataTo5HDParams(false, false, blocks, 2, 1));
    inQueue.FreeTensor(in);
    const uint32_t first = {first_lane} * pitch;
    for (uint32_t j = 1; j < 8; ++j) {{
        const AscendC::LocalTensor<float> last = j == 1 ? lanes[first] : out[{lane_before} * pitch];
        AscendC::{merge}(out[{lane} * pitch], last, lanes[{lane} * pitch], wide);
    }}
    MergeBlocks(at, out, lanes[{spare} * pitch]);
    AscendC::{merge}(lanes[first], lanes[first], before, wide);
    for (uint32_t j = 1; j < 8; ++j) {{
        AscendC::{merge}(lanes[{lane} * pitch], out[{lane} * pitch], before, wide);
    }}
    for (uint32_t half = 0; half < 2; ++half) {{
        at0 = {lanes}[half * 8].GetPhyAddr(), at1 = out[half * 8 * row].GetPhyAddr();
        for (uint32_t i = 0; i < 8; ++i, at0 += pitchBytes, at1 += rowBytes) {{
            from[i] = at0, from[i + 8] = at0 + 64;
            to[2 * i] = at1, to[2 * i + 1] = at1 + 32;
        }}
        AscendC::TransDataTo5HD<float>(to, from, AscendC::TransDataTo5HDParams(false, false, blocks / 2, 2, 4));
    }}
    outQueue.EnQue(out);
}}

// Writes the result of all blocks before each block to heldBuf. `spare` has room for two copies of the blocks.
__aicore__ inline void MergeBlocks(const Part &at, const AscendC::LocalTensor<float> &out,
                                   const AscendC::LocalTensor<float> &spare)
{{
    const AscendC::LocalTensor<float> carry = carryBuf.Get<float>(), results = heldBuf.Get<float>();
    const uint32_t wide = 2 * t.part, total = {last_lane} * (wide + 64);
    // Each copy is extended by 32 blocks at the end where merging starts. The nearest of them holds the carry.
    const uint32_t room = 512, next = room + wide;
    if (at.first) {{
        AscendC::Duplicate(carry, {neutral}, 16);
    }}{clear}
    AscendC::Duplicate(spare[{beyond}], {neutral}, room);
    AscendC::Duplicate(spare[next + {beyond}], {neutral}, room);
    AscendC::Adds(out[total {nearest}], carry, 0.0f, 16);
    AscendC::Adds(spare[{blocks} {nearest}], carry, 0.0f, 16);
    AscendC::Adds(spare[next + {blocks} {nearest}], carry, 0.0f, 16);
    AscendC::Adds(results[{result} {nearest}], carry, 0.0f, 16);
    AscendC::LocalTensor<float> from = out[total], before = out[total {by} 16];
    uint32_t copy = 0;
    for (uint32_t step = 16; 2 * step < wide; step *= 2, copy = next - copy) {{
        AscendC::{merge}(spare[copy + {blocks}], from, before, wide);
        from = spare[copy + {blocks}], before = spare[copy + {blocks} {by} 2 * step];
    }}
    AscendC::{merge}(results[{result}], from, before, wide);
    AscendC::{merge}(carry, results[{result} + {last_but_one}], out[total + {last}], 16);
}}

__aicore__ inline void CopyOut(const Part &at)
{{
    AscendC::LocalTensor<float> out = outQueue.DeQue<float>();
    const AscendC::DataCopyExtParams rows{{at.rows, static_cast<uint32_t>(at.count * sizeof(float)),
                                          (t.part + 32 - Align(at.count, 8)) / 8,
                                          static_cast<uint32_t>((t.axis - at.count) * sizeof(float)), 0}};
    AscendC::DataCopyPad({target}Gm[at.row * t.axis + at.start], out, rows);
    outQueue.FreeTensor(out);
}}"""
_LOAD_FACTOR = """
    AscendC::LocalTensor<{type}> factor = factorQueue.AllocTensor<{type}>();
    const AscendC::DataCopyExtParams same{{at.rows, static_cast<uint32_t>(at.count * sizeof({type})),
                                          static_cast<uint32_t>((t.axis - at.count) * sizeof({type})),
                                          (row - Align(at.count, {block})) / {block}, 0}};
    AscendC::DataCopyPad(factor, {factor}Gm[offset], same, {{false, 0, 0, 0}});
    factorQueue.EnQue(factor);"""
_MULTIPLY = """
    AscendC::LocalTensor<{type}> factor = factorQueue.DeQue<{type}>();{cast}
    AscendC::Mul(in, in, {number}, 16 * row);
    factorQueue.FreeTensor(factor);"""
_CAST = """
    AscendC::Cast(held.ReinterpretCast<half>(), factor, AscendC::RoundMode::CAST_NONE, 16 * row);
    AscendC::Cast(out, held.ReinterpretCast<half>(), AscendC::RoundMode::CAST_NONE, 16 * row);"""
#: What is behind the end of a row must not change a result that runs backwards.
_CLEAR = """
    if (at.count < t.part) {{
        AscendC::Duplicate(out[total + Align(at.count, 8) * 2], {neutral}, (t.part - Align(at.count, 8)) * 2);
    }}"""
#: Where elements of each level are, in the order of merging: from the first on, or from the last.
_FORWARDS = {
    "part": "step % t.parts", "lane": "j", "lane_before": "(j - 1)", "first_lane": "0", "last_lane": "7", "clear": "",
    "spare": "1", "blocks": "room", "beyond": "0", "by": "-", "nearest": "- 16", "result": "80",
    "last_but_one": "wide - 32", "last": "wide - 16",
}  # fmt: skip
_BACKWARDS = {
    "part": "(t.parts - 1 - step % t.parts)", "lane": "(7 - j)", "lane_before": "(8 - j)", "first_lane": "7",
    "last_lane": "0", "spare": "0", "blocks": "0", "beyond": "wide", "by": "+", "nearest": "+ wide", "result": "48",
    "last_but_one": "16", "last": "0",
}  # fmt: skip


@dataclass
class RunningWriter(StageWriter):
    """Writes the stage. A unit of work is 16 rows, which take the vector unit as long as one."""

    stage: Running = field(kw_only=True)
    no_idle_cores = True

    def buffers_used(self) -> list[tuple[str, str]]:
        factor = [(self.stage.factor, self._factor)] if self.stage.factor else []
        return [(self.stage.source, "float"), *factor, (self.stage.target, "float")]

    @property
    def _factor(self) -> str:
        return CTYPES[self.stage.factor_dtype]

    def fields(self) -> list[tuple[str, str]]:
        return [("rows", self.stage.rows), ("axis", self.stage.axis)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("part", "parts", "units", "perCore")

    def init_lines(self) -> None:
        self.code.add("pipe.InitBuffer(inQueue, 2, 16 * (t.part + 32) * sizeof(float));")
        if self.stage.factor:
            self.code.add(f"pipe.InitBuffer(factorQueue, 2, 16 * (t.part + 32) * sizeof({self._factor}));")
        self.code.add("pipe.InitBuffer(outQueue, 2, 8 * (2 * t.part + 64) * sizeof(float));")
        self.code.add("pipe.InitBuffer(heldBuf, (9 * (2 * t.part + 64) + 64) * sizeof(float));")
        self.code.add("pipe.InitBuffer(carryBuf, 16 * sizeof(float));")

    def process(self) -> None:
        stage, neutral = self.stage, NEUTRAL[self.stage.function]
        names = {"source": stage.source, "target": stage.target, "merge": MERGE[stage.function], "neutral": neutral}
        names |= {"clear": _CLEAR.format(neutral=neutral)} | (_BACKWARDS if stage.backwards else _FORWARDS)
        names |= {"lanes": "held" if stage.exclusive else "lanes", "load_factor": "", "multiply": ""}
        if stage.factor:
            plain = self._factor == "float"
            kind = {"type": self._factor, "factor": stage.factor, "block": 8 if plain else 32}
            kind |= {"cast": "" if plain else _CAST, "number": "factor" if plain else "out"}
            names |= {"load_factor": _LOAD_FACTOR.format(**kind), "multiply": _MULTIPLY.format(**kind)}
        self.code.add(_PROCESS.format(**names))

    def members(self) -> None:
        super().members()
        factor = ", factorQueue" if self.stage.factor else ""
        self.code.add(f"AscendC::TQue<AscendC::TPosition::VECIN, 2> inQueue{factor};")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;")
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> heldBuf, carryBuf;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        width = 0 if not self.stage.factor else 4 if self._factor == "float" else 1
        most = (BUDGET - 12288 - 1024 * width) // (4 * (4 * 16 + 18) + 2 * 16 * width) // 64 * 64
        code.add(f"t.parts = (t.axis + {most - 1}) / {most};")
        code.add("t.part = ((t.axis + t.parts - 1) / t.parts + 63) / 64 * 64;")
        code.add("t.units = (t.rows + 15) / 16;")
        self.call(code)
