"""Convolutions of stride 1 on cube cores alone: lines of the input are multiplied as they are loaded.

A line of the input takes part in a line of the results for every row of the window. It is brought to L0B once, and the
products of all these rows are added up in L0C, each at the line of its own. No vector core is started, and nothing but
the results is written.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter, wrapped
from kernel_gym.authors.apprentice.frontend.plan import Convolution, Filters

#: Cube cores.
CUBES = 24
#: Vector cores that arrange filters: a launch on more takes longer than these few rows.
ARRANGING = 4

#: The host's choice of lines.
LINES = """\
static uint32_t Blocks(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit;
}

// Chooses the part of the results that a cube core computes at a time so that the busiest of 24 ends first: `rows`
// lines of `span` columns of `block` channels. A product has `together` lines and at most `chunk` of `depth` places.
// It takes as long as its loads from global memory, its loads from L1, its multiplications or its stores. Filters stay
// in L1 where they fit.
template <class Tiling> static void EvenLines(Tiling &t, uint32_t deep, uint32_t down, uint32_t hop)
{
    uint64_t best = ~0ull;
    t.block = Blocks(Blocks(t.outputs, Blocks(t.outputs, 64)), 16) * 16;
    const uint32_t kept = deep * down * t.block * Blocks(t.depth, 8) * 8;
    t.stays = t.block >= t.outputs && kept <= 90000;
    t.half = t.stays ? (131072 - kept) / 512 * 256 : 65536;
    for (uint32_t parts = Blocks(t.widthOut, 512); parts <= Blocks(t.widthOut, 16) && parts <= 128; ++parts) {
        const uint32_t span = parts == 1 ? t.widthOut : Blocks(Blocks(t.widthOut, parts), 16) * 16;
        const uint32_t pitch = Blocks(span, 16) * 16, step = parts == 1 && t.width % 8 == 0 ? t.width : pitch;
        for (uint32_t rows = 1; rows <= AtMost(t.linesOut, 32); ++rows) {
            for (uint32_t together = 1; together <= (step == pitch ? AtMost(rows, 8) : 1); together *= 2) {
                const uint32_t count = rows + (down - 1) * hop, groups = Blocks(count, together);
                const uint32_t n = together * pitch, columns = (groups * together - 1) * step + AtLeast(step, pitch);
                const uint32_t held = columns + (t.stays ? 0 : down * t.block);
                const uint32_t most = AtMost(AtMost(8192 / n, 8192 / (down * t.block)), t.half / held) / 16 * 16;
                if (most == 0 || (rows + 2 * together - 2) * pitch * t.block > 16384) {
                    continue;
                }
                const uint32_t panels = Blocks(t.depth, most), chunk = Blocks(Blocks(t.depth, panels), 16) * 16;
                const uint64_t products = down * Blocks(rows + together - 1, together), steps = deep * panels;
                const uint64_t multiply = products * (6 + t.block / 16 * (n / 16) * (chunk / 8) * 2);
                const uint64_t filter = down * t.block * (112 + chunk) / 64;
                const uint64_t move = filter + groups * (chunk / 16) * (28 + n / 2);
                const uint64_t filters = down * t.block * (14 + (t.stays ? t.depth : chunk) / 10);
                // A burst that begins inside a sector of 512 bytes reads one more.
                const uint64_t bursts = step == t.width ? 1 : count, start = span % 128 == 0 ? 6 : 10;
                const uint64_t lines = chunk * (start * bursts + count * step / 15);
                const uint64_t load = chunk / 16 * 11 * bursts + lines + (t.stays ? 0 : filters);
                const uint64_t larger = multiply > move ? multiply : move, busy = larger > load ? larger : load;
                const uint64_t store = 20 + rows * t.block * (25 + span) / 21;
                const uint64_t units = 1ull * t.batch * t.planesOut * Blocks(t.outputs, t.block) *
                                       Blocks(t.linesOut, rows) * Blocks(t.widthOut, span);
                const uint64_t unit = steps * busy > store ? steps * busy : store;
                const uint64_t cycles = (units + 23) / 24 * unit + load + store + (t.stays ? deep * filters : 0);
                if (cycles < best) {
                    best = cycles;
                    t.rows = rows;
                    t.span = span;
                    t.pitch = pitch;
                    t.together = together;
                    t.chunk = chunk;
                    t.step = step;
                    t.slab = columns * 16;
                    t.panels = panels;
                    t.units = units;
                }
            }
        }
    }
    t.lineBlocks = Blocks(t.linesOut, t.rows);
    t.columnBlocks = Blocks(t.widthOut, t.span);
}
"""
_PROCESS = """\
// The part of the results, and the places of the window, that a step is about.
struct Step {{
    uint32_t channel, channels, sample, plane, line, lines, column, columns, deep, begin, depth;
    bool first, last;
}};

__aicore__ inline Step StepAt(uint32_t number)
{{
    Step at;
    const uint32_t panel = number % ({deep} * t.panels);
    uint32_t unit = AscendC::GetBlockIdx() + number / ({deep} * t.panels) * AscendC::GetBlockNum();
    at.column = unit % t.columnBlocks * t.span;
    at.columns = Min(t.span, t.widthOut - at.column);
    unit /= t.columnBlocks;
    at.line = unit % t.lineBlocks * t.rows;
    at.lines = Min(t.rows, t.linesOut - at.line);
    unit /= t.lineBlocks;
    at.plane = unit % t.planesOut;
    unit /= t.planesOut;
    at.sample = unit % t.batch;
    at.channel = unit / t.batch * t.block;
    at.channels = Min(t.block, t.outputs - at.channel);
    at.deep = panel / t.panels;
    at.begin = panel % t.panels * t.chunk;
    at.depth = Min(t.chunk, t.depth - at.begin);
    at.first = panel == 0;
    at.last = panel + 1 == {deep} * t.panels;
    return at;
}}

__aicore__ inline void Process()
{{
    const uint32_t blocks = AscendC::GetBlockNum(), own = (t.units - AscendC::GetBlockIdx() + blocks - 1) / blocks;
    const uint32_t steps = own * {deep} * t.panels;
    for (int32_t half = 0; half < 2; ++half) {{
        AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(half);
        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(half);
        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(2 + half);
        AscendC::SetFlag<AscendC::HardEvent::FIX_M>(half);
    }}
    // The next step is loaded while this one is multiplied.
    Load(0);
    for (uint32_t number = 0; number < steps; ++number) {{
        if (number + 1 < steps) {{
            Load(number + 1);
        }}
        Multiply(number, steps);
    }}
    for (int32_t half = 0; half < 2; ++half) {{
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(half);
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(half);
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(2 + half);
        AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(half);
    }}
}}

// Lines lie in L1 as fractals of 16 places by 8 columns, filters as fractals of 16 channels by 8 places.
__aicore__ inline void Load(uint32_t number)
{{
    const Step at = StepAt(number);
    const int32_t half = number % 2;
    const uint32_t count = at.lines + {reach}, volume = t.planes * t.height * t.width;
    const uint32_t corner = ((at.plane + at.deep * {hop_deep}) * t.height + at.line) * t.width + at.column;
    // Whole lines follow each other without gaps.
    const uint32_t pieces = t.step == t.width ? 1 : count, piece = (count - pieces) * t.width + at.columns;
    AscendC::WaitFlag<AscendC::HardEvent::MTE1_MTE2>(half);
{lines}
    // Filters that stay are loaded once, for all places along a row of the window.
    const bool fresh = !t.stays || (number < {deep} * t.panels && at.begin == 0);
    for (uint32_t down = 0; down < {down} && fresh; ++down) {{
        for (uint32_t row = 0; row < at.channels; row += 16) {{
            const uint32_t from = ((at.channel + row) * {outer} + at.deep * {down} + down) * t.depth + at.begin;
            const uint32_t rows = Min(16, at.channels - row), wide = t.stays ? t.depth : at.depth;
            AscendC::DataCopy(held[FilterAt(number, at, down, row)], {filters}Gm[from],
                              AscendC::Nd2NzParams(1, rows, wide, 0, {outer} * t.depth, 16, 1, 0));
        }}
    }}
    AscendC::SetFlag<AscendC::HardEvent::MTE2_MTE1>(half);
}}

// Where the filters of a step's places begin in L1, for 16 channels and one row of the window.
__aicore__ inline uint32_t FilterAt(uint32_t number, const Step &at, uint32_t down, uint32_t row)
{{
    if (t.stays) {{
        return 2 * t.half + ((at.deep * {down} + down) * t.block + row) * Align(t.depth, 8) + at.begin * 16;
    }}
    return number % 2 * t.half + t.chunk / 16 * t.slab + (down * t.block + row) * Align(at.depth, 8);
}}

__aicore__ inline void LoadFilters(uint32_t number, const Step &at)
{{
    const int32_t half = number % 2;
    const uint32_t high = Align(at.channels, 16) / 16, groups = Align(at.depth, 8) / 8;
    AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(2 + half);
    for (uint32_t down = 0; down < {down}; ++down) {{
        for (uint32_t row = 0; row < high; ++row) {{
            AscendC::LoadData(left[half * HALF + (down * high + row) * groups * 128],
                              held[FilterAt(number, at, down, row * 16)],
                              AscendC::LoadData2DParams(0, groups, 1, 0, 0, false, 0));
        }}
    }}
}}

__aicore__ inline void Multiply(uint32_t number, uint32_t steps)
{{
    const Step at = StepAt(number);
    const int32_t half = number % 2, tile = number / ({deep} * t.panels) % 2;
    const uint32_t high = Align(at.channels, 16) / 16, groups = Align(at.depth, 8) / 8;
    const uint32_t wide = t.together * t.pitch / 16, line = t.pitch * high * 16;
    // Many filters come before the last lines of the step before, which take part in few products, if L1 has them.
    const uint32_t next = number + 1;
    const bool many = {down} * high > 5 && t.stays && next < steps;
    const bool known = many && (next % t.panels != 0 || next >= {deep} * t.panels);
    AscendC::WaitFlag<AscendC::HardEvent::MTE2_MTE1>(half);
    if (!ahead) {{
        LoadFilters(number, at);
    }}
    ahead = false;
    const bool first = at.first, few = high * wide < 10;
    if (first) {{
        AscendC::WaitFlag<AscendC::HardEvent::FIX_M>(tile);
    }}
    const AscendC::LoadData2dTransposeParams turned(0, wide, 1, 0, wide - 1);
    AscendC::MmadParams by;
    by.m = at.channels;
    by.n = t.together * t.pitch;
    by.k = at.depth;
    for (uint32_t begin = 0; begin < at.lines + {reach}; begin += t.together) {{
        turn = 1 - turn;
        AscendC::WaitFlag<AscendC::HardEvent::M_MTE1>(turn);
        uint32_t from = half * t.half + begin * t.step * 16, to = turn * HALF;
        for (uint32_t row = 0; row < at.depth; row += 16) {{
            AscendC::LoadDataWithTranspose(right[to], held[from], turned);
            from += t.slab;
            to += wide * 256;
        }}
        AscendC::SetFlag<AscendC::HardEvent::MTE1_M>(turn);
        AscendC::WaitFlag<AscendC::HardEvent::MTE1_M>(turn);
        // The rows of the window for which one of these lines is above or among the lines of the results.
        const uint32_t least = begin < at.lines ? 0 : (begin - at.lines) / {hop_down} + 1;
        const uint32_t end = Min({down}, (begin + t.together - 1) / {hop_down} + 1);
        uint32_t sum = tile * SUMS + (begin + t.together - 1 - least * {hop_down}) * line;
        uint32_t filter = half * HALF + least * high * groups * 128;
        for (uint32_t down = least; down < end; ++down) {{
            by.cmatrixInitVal = first && down == 0;
            AscendC::Mmad(sums[sum], left[filter], right[turn * HALF], by);
            if (few) {{
                AscendC::PipeBarrier<PIPE_M>();
            }}
            sum -= {hop_down} * line;
            filter += high * groups * 128;
        }}
        AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(turn);
        if (known && !ahead && begin + t.together >= at.lines) {{
            LoadFilters(next, StepAt(next));
            ahead = true;
        }}
    }}
    AscendC::SetFlag<AscendC::HardEvent::M_MTE1>(2 + half);
    AscendC::SetFlag<AscendC::HardEvent::MTE1_MTE2>(half);
    if (at.last) {{
        Store(at, tile, high, line);
    }}
}}

__aicore__ inline void Store(const Step &at, int32_t tile, uint32_t high, uint32_t line)
{{
    const uint32_t volume = t.planesOut * t.linesOut * t.widthOut;
    const uint32_t corner = (at.plane * t.linesOut + at.line) * t.widthOut + at.column;
    AscendC::FixpipeParamsV220 to;
    to.nSize = at.columns;
    to.mSize = at.channels;
    to.srcStride = high * 16;
    to.dstStride = volume;
    to.ndNum = at.lines;
    to.srcNdStride = line / 256;
    to.dstNdStride = t.widthOut;
    AscendC::SetFlag<AscendC::HardEvent::M_FIX>(tile);
    AscendC::WaitFlag<AscendC::HardEvent::M_FIX>(tile);
    AscendC::Fixpipe<float, float, AscendC::CFG_ROW_MAJOR>(
        {target}Gm[(at.sample * t.outputs + at.channel) * volume + corner],
        sums[tile * SUMS + (t.together - 1) * line], to);
    AscendC::SetFlag<AscendC::HardEvent::FIX_M>(tile);
}}"""
#: The lines of a step's places, of which neighbours are those of neighbouring inputs, as the filters are arranged.
_BY_PLACE = """\
    uint32_t some = 0;
    for (uint32_t row = 0; row < at.depth; row += some) {{
        const uint32_t place = (at.begin + row) / t.inputs, input = (at.begin + row) % t.inputs;
        some = Min(Min(t.inputs - input, 16 - row % 16), at.depth - row);
        AscendC::DataCopy(held[half * t.half + row / 16 * t.slab + row % 16 * 8],
                          {source}Gm[(at.sample * t.inputs + input) * volume + corner + place * {hop_across}],
                          AscendC::Nd2NzParams(pieces, some, piece, t.width, volume, 16, 1, t.step * 16));
    }}"""
#: The same where neighbours are the places of one input, as in filters that are not arranged.
_BY_INPUT = """\
    for (uint32_t row = 0; row < at.depth; row += 16) {{
        const uint32_t rows = Min(16, at.depth - row);
        for (uint32_t first = 0; first < Min({across}, rows); ++first) {{
            const uint32_t input = (at.begin + row + first) / {across}, place = (at.begin + row + first) % {across};
            const uint32_t some = (rows - first + {across} - 1) / {across};
            AscendC::DataCopy(held[half * t.half + row / 16 * t.slab + first * 8],
                              {source}Gm[(at.sample * t.inputs + input) * volume + corner + place * {hop_across}],
                              AscendC::Nd2NzParams(pieces, some, piece, t.width, volume, 16, {across}, t.step * 16));
        }}
    }}"""
_MEMBERS = """\
// Halves of L0A and L0B, and of L0C, in elements.
static constexpr uint32_t HALF = 8192, SUMS = 16384;
AscendC::LocalTensor<float> held{AscendC::TPosition::A1, 0, 131072};
AscendC::LocalTensor<float> left{AscendC::TPosition::A2, 0, 2 * HALF};
AscendC::LocalTensor<float> right{AscendC::TPosition::B2, 0, 2 * HALF};
AscendC::LocalTensor<float> sums{AscendC::TPosition::CO1, 0, 2 * SUMS};
int32_t turn = 0;
// True if the filters of the next step are in L0A.
bool ahead = false;"""
_SIZES = ("batch", "inputs", "outputs")
_EXTENTS, _RESULTS = ("planes", "height", "width"), ("planesOut", "linesOut", "widthOut")


@dataclass
class ConvolutionWriter(StageWriter):
    """Writes a convolution. A unit of work is some lines of some channels of one sample."""

    stage: Convolution = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        stage = self.stage
        return [(name, "float") for name in dict.fromkeys((stage.filters, stage.source, stage.target))]

    def fields(self) -> list[tuple[str, str]]:
        stage = self.stage
        sizes = [(name, getattr(stage, name)) for name in _SIZES]
        extents = [*zip(_EXTENTS, stage.extents, strict=True), *zip(_RESULTS, stage.results, strict=True)]
        return [*sizes, *extents, ("depth", f"{stage.window[-1]} * ({stage.inputs})")]

    def tile_fields(self) -> tuple[str, ...]:
        part = ("block", "rows", "span", "pitch", "step", "together", "chunk", "slab")
        return (*part, "stays", "half", "panels", "lineBlocks", "columnBlocks", "units")

    def process(self) -> None:
        stage = self.stage
        (deep, down, across), (hop_deep, hop_down, hop_across) = stage.window, stage.hops
        names = {"deep": deep, "down": down, "outer": deep * down, "reach": (down - 1) * hop_down}
        names |= {"hop_deep": hop_deep, "hop_down": hop_down, "hop_across": hop_across}
        buffers = {"filters": stage.filters, "source": stage.source, "target": stage.target}
        load = _BY_PLACE if stage.arranged else _BY_INPUT
        lines = load.format(source=stage.source, across=across, hop_across=hop_across)
        self.code.add(_PROCESS.format(**names, **buffers, lines=lines))

    def core_type(self) -> list[str]:
        return ["KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);"]

    def members(self) -> None:
        self.code.add(_MEMBERS)

    def launch(self, code: CodeWriter) -> None:
        deep, down, _ = self.stage.window
        self.set_fields(code)
        code.add(f"EvenLines(t, {deep}, {down}, {self.stage.hops[1]});")
        arguments = [f"(GM_ADDR)({self.pointer(name)})" for name, _ in self.buffers_used()]
        text = wrapped("", ", ".join([*arguments, "t"]), "", used=len(self.kernel) + 40)
        code.add(f"{self.kernel}<<<AtMost(t.units, {CUBES}), nullptr, stream>>>({text});")


_ARRANGE = """\
__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    const AscendC::LocalTensor<float> old(AscendC::TPosition::VECIN, t.pitch * sizeof(float), t.batch * t.pitch);
    const AscendC::LocalTensor<float> arranged(
        AscendC::TPosition::VECOUT, (1 + t.batch) * t.pitch * sizeof(float), t.batch * t.pitch);
    for (uint32_t unit = first; unit < last; ++unit) {{
        const uint32_t row = unit * t.batch, rows = Min(t.batch, t.outputs - row), length = {places} * t.inputs;
        const uint32_t bytes = length * sizeof(float);
        const AscendC::DataCopyExtParams whole{{static_cast<uint16_t>(rows), bytes, 0, 0, 0}};
        AscendC::DataCopyPad(old, {source}Gm[row * length], whole, {{false, 0, 0, 0.0f}});
        if (unit == first) {{
            MakePlaces();
        }}
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
        for (uint32_t r = 0; r < rows; ++r) {{
            AscendC::Gather(arranged[r * t.pitch], old[r * t.pitch], places.ReinterpretCast<uint32_t>(), 0, length);
        }}
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
        AscendC::DataCopyPad({target}Gm[row * length], arranged, whole);
        AscendC::PipeBarrier<PIPE_ALL>();
    }}
}}

// The byte offset of every element of an arranged row in the old one.
__aicore__ inline void MakePlaces()
{{
    places = AscendC::LocalTensor<int32_t>(AscendC::TPosition::VECCALC, 0, t.pitch);
    for (uint32_t input = 0; input < t.inputs; ++input) {{
        places.SetValue(input, static_cast<int32_t>(input * {places} * 4));
    }}
    for (uint32_t place = 1; place < {places} && t.inputs % 8 == 0; ++place) {{
        AscendC::Adds(places[place * t.inputs], places, static_cast<int32_t>(place * 4), t.inputs);
    }}
    for (uint32_t i = t.inputs; i < {places} * t.inputs && t.inputs % 8 != 0; ++i) {{
        places.SetValue(i, static_cast<int32_t>((i % t.inputs * {places} + i / t.inputs) * 4));
    }}
}}"""


@dataclass
class FiltersWriter(StageWriter):
    """Writes the stage that arranges filters. A unit of work is some rows."""

    stage: Filters = field(kw_only=True)
    piped = False

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.stage.source, "float"), (self.stage.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        return [("outputs", self.stage.outputs), ("inputs", self.stage.inputs)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "batch", "units", "perCore")

    def process(self) -> None:
        stage = self.stage
        self.code.add(_ARRANGE.format(source=stage.source, target=stage.target, places=stage.places))

    def members(self) -> None:
        self.code.add("AscendC::LocalTensor<int32_t> places;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        code.add(f"t.pitch = ({self.stage.places} * t.inputs + 7) / 8 * 8;")
        share = f"(t.outputs + {ARRANGING - 1}) / {ARRANGING}"
        code.add(f"t.batch = AtMost(AtMost({share}, 40000 / (2 * t.pitch)), 4095);")
        code.add("t.units = (t.outputs + t.batch - 1) / t.batch;")
        cores, self.schedule = self.schedule, replace(self.schedule, cores=ARRANGING)
        self.call(code)
        self.schedule = cores
