"""Puts the phases of a transposed convolution between each other, line by line, by one gathering instruction a tile."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.operators.taps import ROOM
from kernel_gym.authors.apprentice.frontend.plan import Interleave

_LENGTHS, _EXTENTS = ("planes", "lines", "length"), ("planesOut", "linesOut", "lengthOut")
_PITCHES = ("phasePitch", "resultPitch", "planePitch", "linePitch")
_PLACES = ("resultPlace", "planePlace", "linePlace")
_PROCESS = """\
__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    for (uint32_t unit = first; unit < last; ++unit) {{
        const uint32_t phase = unit / t.blocks % {outer}, plane = unit / t.blocks / {outer} % t.planes;
        const uint32_t result = unit / t.blocks / {outer} / t.planes;
        // The lines of this phase that are results, and where they go.
        const uint32_t end = Min(t.lines, (t.linesOut + {crop_down} + {down} - 1 - phase % {down}) / {down});
        const uint32_t line = ({crop_down} + {down} - 1 - phase % {down}) / {down} + unit % t.blocks * t.batch;
        const uint32_t planeOut = plane * {deep} + phase / {down} - {crop_deep};
        const uint32_t lineOut = line * {down} + phase % {down} - {crop_down};
        if (line < end && planeOut < t.planesOut) {{
            const uint32_t rows = Min(t.batch, end - line);
            CopyIn(phase * {across} * t.phasePitch + result * t.resultPitch + plane * t.planePitch + line * t.linePitch,
                   (rows - 1) * t.linePitch + t.length);
            Compute(rows * t.row);
            CopyOut(result * t.resultPlace + planeOut * t.planePlace + lineOut * t.linePlace, rows);
        }}
    }}
}}

__aicore__ inline void CopyIn(uint32_t offset, uint32_t count)
{{
    AscendC::LocalTensor<float> phasesIn = phasesQueue.AllocTensor<float>();
    for (uint32_t phase = 0; phase < {across}; ++phase) {{
        AscendC::DataCopyPad(phasesIn[phase * t.tile], {source}Gm[offset + phase * t.phasePitch],
                             AscendC::DataCopyExtParams{{1, static_cast<uint32_t>(count * sizeof(float)), 0, 0, 0}},
                             AscendC::DataCopyPadExtParams<float>{{false, 0, 0, 0}});
    }}
    phasesQueue.EnQue(phasesIn);
}}

__aicore__ inline void Compute(uint32_t count)
{{
    AscendC::LocalTensor<float> phasesLocal = phasesQueue.DeQue<float>();
    AscendC::LocalTensor<float> linesLocal = linesQueue.AllocTensor<float>();
    AscendC::Gather(linesLocal, phasesLocal, placesBuf.Get<uint32_t>(), 0, count);
    linesQueue.EnQue(linesLocal);
    phasesQueue.FreeTensor(phasesLocal);
}}

__aicore__ inline void CopyOut(uint32_t offset, uint32_t rows)
{{
    AscendC::LocalTensor<float> linesLocal = linesQueue.DeQue<float>();
    const uint16_t lines = static_cast<uint16_t>(rows);
    const uint32_t bytes = t.lengthOut * sizeof(float), gap = {down} * t.linePlace * sizeof(float) - bytes;
    AscendC::DataCopyPad({target}Gm[offset], linesLocal, AscendC::DataCopyExtParams{{lines, bytes, 0, gap, 0}});
    linesQueue.FreeTensor(linesLocal);
}}"""
_INIT = """\
pipe.InitBuffer(phasesQueue, 2, {across} * t.tile * sizeof(float));
pipe.InitBuffer(linesQueue, 2, t.batch * t.row * sizeof(float));
pipe.InitBuffer(placesBuf, t.batch * t.row * sizeof(int32_t));
// The byte offset of every element of a tile: the first ones one by one, the others as those before them.
AscendC::LocalTensor<int32_t> places = placesBuf.Get<int32_t>();
for (uint32_t i = 0; i < Min({first}, t.row); ++i) {{
    const uint32_t at = i + {crop};
    places.SetValue(i, static_cast<int32_t>((at % {across} * t.tile + at / {across}) * sizeof(float)));
}}
for (uint32_t known = {first}; known < t.row; known *= 2) {{
    AscendC::Adds(places[known], places, static_cast<int32_t>(known / {across} * sizeof(float)),
                  Min(known, t.row - known));
}}
for (uint32_t line = 1; line < t.batch; ++line) {{
    AscendC::Adds(places[line * t.row], places, static_cast<int32_t>(line * t.linePitch * sizeof(float)), t.row);
}}"""


@dataclass
class InterleaveWriter(StageWriter):
    """Writes the stage. A unit of work is a block of neighbouring lines of one combination of outer phases."""

    stage: Interleave = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.stage.source, "float"), (self.stage.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        stage = self.stage
        values = (stage.lengths, stage.extents, stage.pitches, stage.places)
        names = (_LENGTHS, _EXTENTS, _PITCHES, _PLACES)
        return [("count", stage.count), *zip(chain(*names), chain(*values), strict=True)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("row", "batch", "blocks", "tile", "units", "perCore")

    def init_lines(self) -> None:
        across = self.stage.strides[-1]
        self.code.add(_INIT.format(across=across, first=8 * across, crop=self.stage.crops[-1]))

    def process(self) -> None:
        deep, down, across = self.stage.strides
        names = {"deep": deep, "down": down, "across": across, "outer": deep * down}
        names |= dict(zip(("crop_deep", "crop_down"), self.stage.crops, strict=False))
        self.code.add(_PROCESS.format(source=self.stage.source, target=self.stage.target, **names))

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 1> phasesQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> linesQueue;")
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> placesBuf;")

    def launch(self, code: CodeWriter) -> None:
        deep, down, across = self.stage.strides
        self.set_fields(code)
        code.add("t.row = (t.lengthOut + 7) / 8 * 8;")
        code.add(f"const uint32_t results = t.count * t.planes * {deep * down};")
        code.add(f"const uint32_t share = results * t.lines / {2 * self.schedule.cores} + 1;")
        room = f"{ROOM} / ({2 * across} * t.linePitch + 3 * t.row)"
        code.add(f"t.batch = AtLeast(1, AtMost(AtMost(share, t.lines), {room}));")
        code.add("t.blocks = (t.lines + t.batch - 1) / t.batch;")
        code.add("t.tile = (t.batch * t.linePitch + 7) / 8 * 8 + 8;")
        code.add("t.units = results * t.blocks;")
        self.call(code)
