"""Pads images in one pass: lines are loaded with zeros beside them, and written with the lines of zeros around them."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.operators.images import ROOM
from kernel_gym.authors.apprentice.frontend.plan import Pad

_EXTENTS, _PADDED = ("planes", "lines", "width"), ("planesOut", "linesOut", "pitch")
_PROCESS = """\
__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    held = AscendC::LocalTensor<float>(AscendC::TPosition::VECIN, 0, {tiles} * t.tile);
    AscendC::Duplicate(held, 0.0f, {tiles} * t.tile);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(0);
    AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(1);
    for (uint32_t unit = first; unit < last; ++unit) {{
        PadLines(unit, unit % 2);
    }}
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(0);
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(1);
}}

__aicore__ inline void PadLines(uint32_t unit, int32_t half)
{{
    const uint32_t line = unit % t.blocks * t.batch, count = Min(t.batch, t.linesOut - line);
    const uint32_t planeOut = unit / t.blocks % t.planesOut, image = unit / t.blocks / t.planesOut;
    const uint32_t sample = image / t.channels, channel = image % t.channels, plane = planeOut - {deep};
    // Lines of zeros come before and after those of the source; in a plane of zeros there are no others.
    const uint32_t above = line < {down} ? Min(count, {down} - line) : 0;
    const uint32_t begin = line + above - {down};
    const uint32_t inside = plane < t.planes && begin < t.lines ? Min(count - above, t.lines - begin) : 0;
    const uint32_t from = ((image * t.planes + plane) * t.lines + begin) * t.width;
    AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(half);
    for (uint32_t copy = 0; copy < {copies} && inside > 0; ++copy) {{
        const uint32_t shift = {first} + copy * {step};
        const uint32_t left = shift < {across} ? {across} - shift : 0, skipped = left + shift - {across};
        const uint32_t some = t.width - skipped, end = Align(left + some, 8);
        const AscendC::DataCopyExtParams lines{{static_cast<uint16_t>(inside),
                                               static_cast<uint32_t>(some * sizeof(float)),
                                               static_cast<uint32_t>(skipped * sizeof(float)), (t.row - end) / 8, 0}};
        const AscendC::DataCopyPadExtParams<float> zeros{{true, static_cast<uint8_t>(left),
                                                         static_cast<uint8_t>(end - left - some), 0.0f}};
        const uint32_t to = (half * {copies} + copy) * t.tile + above * t.row;
        AscendC::DataCopyPad(held[to], {source}Gm[from + skipped], lines, zeros);
    }}
    AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE3>(half);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE3>(half);
    for (uint32_t copy = 0; copy < {copies}; ++copy) {{
        const uint32_t place = (sample * {copies} + copy) * t.channels + channel;
        const uint32_t to = ((place * t.planesOut + planeOut) * t.linesOut + line) * t.pitch;
        const uint32_t zeros = 2 * {copies} * t.tile, lines = (half * {copies} + copy) * t.tile;
        if (t.blocks == 1) {{
            // The lines of zeros of whole planes are always at the same places.
            Write(to, inside > 0 ? lines : zeros, count);
        }} else {{
            Write(to, zeros, above);
            Write(to + above * t.pitch, lines + above * t.row, inside);
            Write(to + (above + inside) * t.pitch, zeros, count - above - inside);
        }}
    }}
    AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(half);
}}

// Lines of a multiple of 8 elements are neighbours on chip, too.
__aicore__ inline void Write(uint32_t to, uint32_t tile, uint32_t lines)
{{
    if (lines > 0) {{
        const uint32_t pieces = t.row == t.pitch ? 1 : lines, bytes = lines / pieces * t.pitch * sizeof(float);
        const AscendC::DataCopyExtParams whole{{static_cast<uint16_t>(pieces), bytes, 0, 0, 0}};
        AscendC::DataCopyPad({target}Gm[to], held[tile], whole);
    }}
}}"""


@dataclass
class PadWriter(StageWriter):
    """Writes the stage. A unit of work is a block of neighbouring lines of a padded plane, in all copies."""

    stage: Pad = field(kw_only=True)
    piped = False

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.stage.source, "float"), (self.stage.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        stage = self.stage
        sizes = [("samples", stage.batch), ("channels", stage.channels)]
        return [*sizes, *zip(chain(_EXTENTS, _PADDED), chain(stage.extents, stage.padded), strict=True)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("row", "batch", "blocks", "tile", "units", "perCore")

    def process(self) -> None:
        stage, shifts = self.stage, self.stage.shifts
        names = dict(zip(("deep", "down", "across"), stage.before, strict=True))
        names |= {"copies": len(shifts), "tiles": 2 * len(shifts) + 1, "first": shifts[0]}
        step = shifts[1] - shifts[0] if len(shifts) > 1 else 0
        self.code.add(_PROCESS.format(source=stage.source, target=stage.target, step=step, **names))

    def members(self) -> None:
        self.code.add("AscendC::LocalTensor<float> held;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        code.add("t.row = (t.pitch + 7) / 8 * 8;")
        code.add("const uint32_t planes = t.samples * t.channels * t.planesOut;")
        code.add(f"const uint32_t share = planes * t.linesOut / {2 * self.schedule.cores} + 1;")
        room = f"{ROOM} / ({2 * len(self.stage.shifts) + 1} * t.row)"
        code.add(f"t.batch = AtMost(AtMost(share, t.linesOut), {room});")
        code.add("t.blocks = (t.linesOut + t.batch - 1) / t.batch;")
        code.add("t.tile = t.batch * t.row;")
        code.add("t.units = planes * t.blocks;")
        self.call(code)
