"""Pooling of windows that overlap or are padded: lines are loaded once, with what does not change a result beside them.

The planes of a window are merged first, then its lines, then its columns. Lines and planes outside the image take no
part.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain

from kernel_gym.authors.apprentice.ascendc.passes import MERGE
from kernel_gym.authors.apprentice.ascendc.rows import LOWEST
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Pooling

_EXTENTS, _RESULTS = ("planes", "lines", "width"), ("planesOut", "linesOut", "widthOut")
#: Elements behind a tile that a window of unused columns may read.
BEHIND = 256
_PROCESS = """\
// Some lines of the results of one plane, and where the first line of their windows is: it may be above the image.
struct Part {{
    uint32_t image, plane, line, rows;
    int32_t top, front;
}};

__aicore__ inline Part PartAt(uint32_t unit)
{{
    Part at;
    at.line = unit % t.blocks * t.batch;
    at.rows = Min(t.batch, t.linesOut - at.line);
    at.plane = unit / t.blocks % t.planesOut;
    at.image = unit / t.blocks / t.planesOut;
    at.top = static_cast<int32_t>(at.line * {step_down}) - {before_down};
    at.front = static_cast<int32_t>(at.plane * {step_deep}) - {before_deep};
    return at;
}}

__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    for (uint32_t unit = first; unit <= last; ++unit) {{
        if (unit < last) {{
            CopyIn(PartAt(unit));
        }}
        if (unit > first) {{
            Compute(PartAt(unit - 1));
            CopyOut(PartAt(unit - 1));
        }}
    }}
}}

__aicore__ inline void CopyIn(const Part &at)
{{
    AscendC::LocalTensor<float> lines = linesQueue.AllocTensor<float>();
    const int32_t begin = at.top < 0 ? 0 : at.top, reach = at.top + (at.rows - 1) * {step_down} + {span_down};
    const int32_t end = reach < static_cast<int32_t>(t.lines) ? reach : t.lines;
    const uint32_t used = Align({left} + t.width, 8), pieces = t.pitch == t.width ? 1 : end - begin;
    const uint8_t behind = static_cast<uint8_t>(used - {left} - t.width);
    // Whole lines that need nothing beside them follow each other on chip, too.
    const uint32_t bytes = (end - begin) / pieces * t.width * sizeof(float);
    const AscendC::DataCopyExtParams some{{static_cast<uint16_t>(pieces), bytes, 0, (t.pitch - used) / 8, 0}};
    for (int32_t deep = 0; deep < {deep}; ++deep) {{
        const uint32_t plane = at.front + deep * {hop_deep};
        if (plane < t.planes && begin < end) {{
            const uint32_t from = ((at.image * t.planes + plane) * t.lines + begin) * t.width;
            AscendC::DataCopyPad(lines[(deep * t.held + begin - at.top) * t.pitch], {source}Gm[from], some,
                                 {{true, {left}, behind, {neutral}}});
        }}
    }}
    linesQueue.EnQue(lines);{load_more}
}}

__aicore__ inline void Compute(const Part &at)
{{
    AscendC::LocalTensor<float> lines = linesQueue.DeQue<float>();
    AscendC::LocalTensor<float> out = outQueue.AllocTensor<float>();
    const AscendC::LocalTensor<uint32_t> places = placesBuf.Get<uint32_t>();
{compute}    outQueue.EnQue(out);
    linesQueue.FreeTensor(lines);
}}

__aicore__ inline void CopyOut(const Part &at)
{{
    AscendC::LocalTensor<float> out = outQueue.DeQue<float>();
    const uint32_t to = ((at.image * t.planesOut + at.plane) * t.linesOut + at.line) * t.widthOut;
    const AscendC::DataCopyExtParams some{{static_cast<uint16_t>(at.rows),
                                          static_cast<uint32_t>(t.widthOut * sizeof(float)),
                                          (t.pitchOut - Align(t.widthOut, 8)) / 8, 0, 0}};
    AscendC::DataCopyPad({target}Gm[to], out, some);
    outQueue.FreeTensor(out);
}}"""
_PLANES = """\
    // The planes that are inside the image.
    uint32_t begin = 0;
    while (static_cast<uint32_t>(at.front + begin * {hop_deep}) >= t.planes) {{
        ++begin;
    }}
    const AscendC::LocalTensor<float> merged = lines[begin * t.held * t.pitch];
    for (uint32_t deep = begin + 1; deep < {deep} && at.front + deep * {hop_deep} < t.planes; ++deep) {{
        AscendC::{merge}(merged, merged, lines[deep * t.held * t.pitch], t.held * t.pitch);
    }}
"""
#: Windows may reach farther beyond the ends of lines than to the end of a block.
BESIDE = """\
    const uint32_t used = Align({left} + t.width, 8), count = (at.rows - 1) * {step_down} + {span_down};
    for (uint32_t line = 0; line < count && used < t.pitch; ++line) {{
        AscendC::Duplicate({merged}[line * t.pitch + used], {neutral}, t.pitch - used);
    }}
"""
#: Lines outside the image.
OUTSIDE = """\
    const int32_t held = (at.rows - 1) * {step_down} + {span_down}, inside = t.lines - at.top;
    if (at.top < 0) {{
        AscendC::Duplicate({merged}, {neutral}, Min(-at.top, held) * t.pitch);
    }}
    if (inside < held) {{
        AscendC::Duplicate({merged}[inside * t.pitch], {neutral}, (held - inside) * t.pitch);
    }}
"""
_MERGE_LINES = """\
    const AscendC::LocalTensor<float> rows = rowsBuf.Get<float>();
    MergeLines(rows[{margin}], {merged}, {merged}[{hop_down} * t.pitch], {step_down} * t.pitch, at.rows);
    for (uint32_t down = 2; down < {down}; ++down) {{
        MergeLines(rows[{margin}], rows[{margin}], {merged}[down * {hop_down} * t.pitch], t.row, at.rows);
    }}
"""
_COPY_LINES = """\
    const AscendC::LocalTensor<float> rows = rowsBuf.Get<float>();
    for (uint32_t r = 0; r < at.rows; ++r) {{
        AscendC::Adds(rows[r * t.row + {margin}], {merged}[r * {step_down} * t.pitch], 0.0f, t.pitch);
    }}
"""
#: Lines are repeats of an instruction, if these can be so far apart.
_LINES_FUNCTION = """

// Merges lines into rows; those on the left are `gap` apart.
__aicore__ inline void MergeLines(const AscendC::LocalTensor<float> &rows, const AscendC::LocalTensor<float> &left,
                                  const AscendC::LocalTensor<float> &right, uint32_t gap, uint32_t count)
{{
    const uint32_t step = {step_down} * t.pitch;
    if (t.row == step && gap == step) {{
        AscendC::{merge}(rows, left, right, count * step);
        return;
    }}
    if (t.row < 2048 && step < 2048) {{
        const AscendC::BinaryRepeatParams places{{1, 1, 1, static_cast<uint8_t>(t.row / 8),
                                                 static_cast<uint8_t>(gap / 8), static_cast<uint8_t>(step / 8)}};
        for (uint32_t c = 0; c < t.pitch; c += 64) {{
            AscendC::{merge}(rows[c], left[c], right[c], Min(64, t.pitch - c), count, places);
        }}
        return;
    }}
    for (uint32_t r = 0; r < count; ++r) {{
        AscendC::{merge}(rows[r * t.row], left[r * gap], right[r * step], t.pitch);
    }}
}}"""
_INIT = """\
// What an instruction reads together is 256 bytes apart modulo 512, in different banks.
const uint32_t results = Align(t.batch * t.pitchOut, 128);
pipe.InitBuffer(linesQueue, 2, t.tile * sizeof(float));
pipe.InitBuffer(outQueue, 2, (results + {behind}) * sizeof(float));
pipe.InitBuffer(placesBuf, (results + 64) * sizeof(int32_t));
pipe.InitBuffer(movedBuf, (results + 64) * sizeof(float));
// The byte offset of the first column of every window: one line, then others as those before them.
const AscendC::LocalTensor<int32_t> places = placesBuf.Get<int32_t>();
AscendC::ArithProgression(places, 0, static_cast<int32_t>({step_across} * sizeof(float)), t.pitchOut);
for (uint32_t known = 1; known < t.batch; known *= 2) {{
    AscendC::Adds(places[known * t.pitchOut], places, static_cast<int32_t>(known * {source_pitch} * sizeof(float)),
                  Min(known, t.batch - known) * t.pitchOut);
}}"""


@dataclass
class PoolingWriter(StageWriter):
    """Writes the stage. A unit of work is a block of neighbouring lines of a plane of results."""

    stage: Pooling = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.stage.source, "float"), (self.stage.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        values = chain(self.stage.extents, self.stage.results)
        return [("images", self.stage.count), *zip(chain(_EXTENTS, _RESULTS), values, strict=True)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("row", "pitch", "pitchOut", "held", "tile", "batch", "blocks", "units", "perCore")

    @property
    def names_used(self) -> dict[str, object]:
        """The numbers and names that the text has."""
        stage = self.stage
        names: dict[str, object] = {"source": stage.source, "target": stage.target}
        for name, values in (("step", stage.strides), ("hop", stage.hops), ("before", stage.before)):
            names |= {f"{name}_{way}": n for way, n in zip(("deep", "down", "across"), values, strict=True)}
        names["deep"], names["down"], names["across"] = stage.window
        sums = stage.function == "sum"
        return names | {
            "span_down": (stage.window[1] - 1) * stage.hops[1] + 1,
            "merge": MERGE[stage.function],
            "neutral": "0.0f" if sums else LOWEST,
            "merged": "merged" if stage.window[0] > 1 else "lines",
            "left": 0 if self._margin else stage.before[2],
            "margin": self._margin,
            "source_pitch": "t.row" if self._several_lines else "t.pitch",
        }

    @property
    def _margin(self) -> int:
        """The columns before the lines once these are merged; 0 if what comes before them is there as they are loaded.

        Windows that are some columns apart are gathered, from wherever they begin.
        """
        return 8 if self._several_lines and self.stage.strides[2] > 1 else 0

    @property
    def _several_lines(self) -> bool:
        """True if a result has other lines than those that are loaded."""
        return self.stage.window[1] > 1 or self.stage.strides[1] > 1 or self.stage.before[1] > 0

    def struct_lines(self) -> list[str]:
        sizes, tiles = (", ".join(names) for names in ([name for name, _ in self.fields()], self.tile_fields()))
        return [f"    uint32_t {sizes};", f"    uint32_t {tiles};"]

    def init_lines(self) -> None:
        self.code.add(_INIT.format(behind=BEHIND, **self.names_used))
        if self._several_lines:
            rows = f"t.batch * t.row + {BEHIND}"
            self.code.add(f"pipe.InitBuffer(rowsBuf, ({rows}) * sizeof(float));")
            self.code.add(f"AscendC::Duplicate(rowsBuf.Get<float>(), {self.names_used['neutral']}, {rows});")

    def process(self) -> None:
        self.code.add(_PROCESS.format(compute=self.compute(), load_more=self.load_more(), **self.names_used))
        if "MergeLines(" in self.compute():
            self.code.add(_LINES_FUNCTION.format(**self.names_used))

    def load_more(self) -> str:
        """Return the statements that load what comes with the lines of a part."""
        return ""

    def compute(self) -> str:
        """Return the statements that compute the results of a part."""
        names, (deep, down, _) = self.names_used, self.stage.window
        text = (_PLANES.format(**names) if deep > 1 else "") + ("" if self._margin else BESIDE.format(**names))
        if self._several_lines:
            text += OUTSIDE.format(**names) + (_MERGE_LINES if down > 1 else _COPY_LINES).format(**names)
        return text + self._columns()

    def _columns(self) -> str:
        """Return the statements that merge the columns of windows."""
        names, (*_, across), (*_, hop) = self.names_used, self.stage.window, self.stage.hops
        source = "rows" if self._several_lines else names["merged"]
        doubles = self.stage.strides[2] == 1 and (self.stage.function == "max" or across & (across - 1) == 0)
        count, merge, lines = "at.rows * t.pitchOut", names["merge"], list[str]()
        gather = "AscendC::Gather({}, {}, places, {} * sizeof(float), {});"
        if doubles and across > 1:
            merged, shifts = 1, list[int]()
            while merged < across:  # the largest of more columns may have some of them twice
                shifts.append(min(merged, across - merged) * hop)
                merged += min(merged, across - merged)
            for shift in shifts:
                lines.append(gather.format("moved", source, shift, count))
                lines.append(f"AscendC::{merge}(out, {source}, moved, {count});")
                source = "out"
        else:
            first = self._margin - self.stage.before[2] if self._margin else 0
            lines.append(gather.format("out", source, first, count))
            for place in range(1, across):
                lines.append(gather.format("moved", source, first + place * hop, count))
                lines.append(f"AscendC::{merge}(out, out, moved, {count});")
        if self.stage.scale != 1.0:
            lines.append(f"AscendC::Muls(out, out, {self.stage.scale!r}f, {count});")
        moved = ["const AscendC::LocalTensor<float> moved = movedBuf.Get<float>();"] if across > 1 else []
        return "".join(f"    {line}\n" for line in [*moved, *lines])

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 2> linesQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;")
        rows = ", rowsBuf" if self._several_lines else ""
        self.code.add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> movedBuf, placesBuf{rows};")

    def launch(self, code: CodeWriter) -> None:
        names, (deep, _, across) = self.names_used, self.stage.window
        step, reach = self.stage.strides[1], names["span_down"]
        self.set_fields(code)
        wide = f"(t.widthOut - 1) * {self.stage.strides[2]} + {(across - 1) * self.stage.hops[2] + 1}"
        beside = f"(AtLeast({self.stage.before[2]} + t.width, {wide}) + 7) / 8 * 8"
        code.add(f"t.row = {f'{beside} + {self._margin}' if self._margin else beside};")
        code.add(f"t.pitch = {'(t.width + 7) / 8 * 8' if self._margin else 't.row'};")
        code.add(f"t.pitchOut = {'t.row' if self.stage.strides[2] == 1 else '(t.widthOut + 7) / 8 * 8'};")
        # Both tiles of lines without those of the first result, then what each result takes.
        fixed, lines = f"{2 * deep * (int(str(reach)) - step)} * t.pitch", f"{2 * deep * step} * t.pitch"
        each = f"({lines}{' + t.row' * self._several_lines} + 4 * t.pitchOut)"
        room = (BUDGET - 8192) // 4 - 5 * BEHIND
        with code.block(f"if ({fixed} + {each} > {room})"):
            code.add("return 1;  // the lines of a window must fit on chip")
        code.add(f"const uint32_t most = ({room} - {fixed}) / {each};")
        self.share(code, step, int(str(reach)))

    def share(self, code: CodeWriter, step: int, reach: int) -> None:
        """Write the host statements that divide lines of results, of which `most` fit on chip, among cores."""
        code.add("const uint32_t results = t.images * t.planesOut;")
        code.add(f"const uint32_t share = results * t.linesOut / {2 * self.schedule.cores} + 1;")
        code.add("t.batch = AtMost(AtMost(share, 255), AtMost(most, t.linesOut));")
        code.add("t.blocks = (t.linesOut + t.batch - 1) / t.batch;")
        code.add("t.batch = (t.linesOut + t.blocks - 1) / t.blocks;")
        code.add(f"t.held = (t.batch - 1) * {step} + {reach};")
        code.add(f"t.tile = ({self.stage.window[0]} * t.held * t.pitch + 127) / 128 * 128 + {BEHIND};")
        code.add("t.units = results * t.blocks;")
        self.call(code)
