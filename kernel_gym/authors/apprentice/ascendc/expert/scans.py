"""Running sums and products along rows: 16 rows are transposed on chip and then added up as vectors.

Eight neighbours of a row are a block, and several blocks are a run. Their elements are merged lane by lane in all
blocks at once, then the results of blocks in eight runs at once, and last those of runs. What was merged is put back
in the same order.
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
    const uint32_t begin = AscendC::GetBlockIdx() * t.perCore, end = Min(begin + t.perCore, t.rows);
    const uint32_t row = begin + step / t.parts * 16, start = {part} * t.part;
    return {{row, start, Min(t.part, t.axis - start), static_cast<uint16_t>(Min(16, end - row)), step % t.parts == 0}};
}}

__aicore__ inline void Process()
{{
    const uint32_t begin = AscendC::GetBlockIdx() * t.perCore, end = Min(begin + t.perCore, t.rows);
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
    MergeBlocks(at, before, out[{last_lane} * pitch]);
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

// Leaves what comes before each block. The eight blocks of an instruction are those of eight runs.
__aicore__ inline void MergeBlocks(const Part &at, const AscendC::LocalTensor<float> &before,
                                   const AscendC::LocalTensor<float> &total)
{{
    const AscendC::LocalTensor<float> runs = runsBuf.Get<float>(), sums = runs[128];
    const uint32_t run = t.part / 64;
    const uint8_t gap = static_cast<uint8_t>(2 * run);
    if (at.first) {{
        AscendC::Duplicate(sums[{carry_in}], {neutral}, 16);
    }}{clear}
    AscendC::Duplicate(before[{first_block} * 16], {neutral}, 64, 2, gap, 1);
    for (uint32_t n = 1; n < run; ++n) {{
        AscendC::{merge}(before[{block} * 16], before[{block_before} * 16], total[{block_before} * 16], 64, 2,
                     {{gap, gap, gap, 1, 1, 1}});
    }}
    AscendC::{merge}(runs, before[{last_block} * 16], total[{last_block} * 16], 64, 2, {{2, gap, gap, 1, 1, 1}});
    for (uint32_t n = 0; n < 8; ++n) {{
        AscendC::{merge}(sums[{sum} * 16], sums[{sum_before} * 16], runs[{run} * 16], 16, 1, {{1, 1, 1, 8, 8, 8}});
    }}
    for (uint32_t half = 0; half < 2; ++half) {{
        AscendC::{merge}(before[half * 8], before[half * 8], sums[{first_sum} + half * 8], 64, run,
                     {{gap, gap, 2, 2, 2, 0}});
    }}
    AscendC::Adds(sums[{carry_in}], sums[{carry_out}], 0.0f, 16, 1, {{1, 1, 8, 8}});
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
        AscendC::Duplicate(total[Align(at.count, 8) * 2], {neutral}, (t.part - Align(at.count, 8)) * 2);
    }}"""
#: Where elements of each level are, in the order of merging: from the first on, or from the last.
_FORWARDS = {
    "part": "step % t.parts", "lane": "j", "lane_before": "(j - 1)", "first_lane": "0", "last_lane": "7",
    "block": "n", "block_before": "(n - 1)", "first_block": "0", "last_block": "(run - 1)", "run": "n",
    "sum": "(n + 1)", "sum_before": "n", "first_sum": "0", "carry_in": "0", "carry_out": "128", "clear": "",
}  # fmt: skip
_BACKWARDS = {
    "part": "(t.parts - 1 - step % t.parts)", "lane": "(7 - j)", "lane_before": "(8 - j)", "first_lane": "7",
    "last_lane": "0", "block": "(run - 1 - n)", "block_before": "(run - n)", "first_block": "(run - 1)",
    "last_block": "0", "run": "(7 - n)", "sum": "(7 - n)", "sum_before": "(8 - n)", "first_sum": "16",
    "carry_in": "128", "carry_out": "0",
}  # fmt: skip


@dataclass
class RunningWriter(StageWriter):
    """Writes the stage. A unit of work is a row; a core takes 16 of its rows together."""

    stage: Running = field(kw_only=True)

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
        self.code.add("pipe.InitBuffer(runsBuf, 17 * 16 * sizeof(float));")

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
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> heldBuf, runsBuf;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        width = 0 if not self.stage.factor else 4 if self._factor == "float" else 1
        most = ((BUDGET - 12288 - 1024 * width) // (4 * (4 * 16 + 18) + 2 * 16 * width) // 64 - 1) // 2 * 128 + 64
        code.add(f"t.parts = (t.axis + {most - 1}) / {most};")
        # An odd number of blocks in a run: the blocks of one instruction in MergeBlocks lie in different banks.
        code.add("t.part = (((t.axis + t.parts - 1) / t.parts + 63) / 64 | 1) * 64;")
        code.add("t.units = t.rows;")
        self.call(code)
