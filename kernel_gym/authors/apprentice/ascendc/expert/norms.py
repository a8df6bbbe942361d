"""Group norms whose groups fit on chip once: a group is read once and written from where it was loaded.

Its quarters go through a ring of five places. As soon as a quarter has been written, one of the next group takes its
place, so that loads hardly wait for the group to be computed.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.operators.reductions import HELD
from kernel_gym.authors.apprentice.frontend.plan import GroupNorm

_PROCESS = """\
__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    const uint32_t begin = first * 4, end = last * 4;
    ring = AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, 0, 5 * t.tile);
    const uint32_t behind = 5 * t.tile * sizeof(float), row = t.pitch * sizeof(float);
    sums = AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, behind, 2 * t.pitch);
    moved = AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, behind + 2 * row, t.pitch);
    stat = AscendC::LocalTensor<float>(AscendC::TPosition::VECCALC, behind + 3 * row, 24);
    for (uint32_t quarter = begin; quarter < Min(begin + 5, end); ++quarter) {{
        Load(quarter);
    }}
    for (uint32_t unit = first; unit < last; ++unit) {{
        Normalise(unit, end);
    }}
}}

// The channels of a quarter; the last ones may have fewer, or none.
__aicore__ inline uint32_t Channels(uint32_t quarter)
{{
    const uint32_t before = quarter % 4 * t.share;
    return before < t.axis ? Min(t.share, t.axis - before) : 0;
}}

__aicore__ inline void Load(uint32_t quarter)
{{
    const uint32_t channels = Channels(quarter), slot = quarter % 5;
    if (channels > 0) {{
        const AscendC::DataCopyExtParams rows{{static_cast<uint16_t>(channels),
                                              static_cast<uint32_t>(t.length * sizeof(float)), 0, 0, 0}};
        AscendC::DataCopyPad(ring[slot * t.tile], {source}Gm[Place(quarter)], rows, {{false, 0, 0, 0.0f}});
    }}
    AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(slot);
}}

__aicore__ inline uint32_t Place(uint32_t quarter)
{{
    return (quarter / 4 * t.axis + quarter % 4 * t.share) * t.length;
}}

__aicore__ inline void Normalise(uint32_t unit, uint32_t end)
{{
    const float part = 1.0f / static_cast<float>(static_cast<int32_t>(t.axis * t.length));
    // Sums of differences from one of the elements, and of their squares, while quarters arrive.
    const float shift = {source}Gm.GetValue(Place(unit * 4));
    AscendC::Duplicate(sums, 0.0f, 2 * t.pitch);
    for (uint32_t quarter = unit * 4; quarter < unit * 4 + 4; ++quarter) {{
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(quarter % 5);
        for (uint32_t c = 0; c < Channels(quarter); ++c) {{
            AscendC::Adds(moved, ring[quarter % 5 * t.tile + c * t.pitch], -shift, t.length);
            AscendC::Add(sums, sums, moved, t.length);
            AscendC::MulAddDst(sums[t.pitch], moved, moved, t.length);
        }}
    }}
    AscendC::ReduceSum(stat[8], sums[t.pitch], moved, t.length);
    AscendC::ReduceSum(stat, sums, moved, t.length);
    // The variance is the mean square less the square of the mean.
    AscendC::Muls(stat, stat, part, 16);
    AscendC::Mul(stat[16], stat, stat, 8);
    AscendC::Sub(stat[8], stat[8], stat[16], 8);
    AscendC::Adds(stat[8], stat[8], {epsilon}, 8);
    AscendC::Sqrt(stat[8], stat[8], 8);
    const float scale = 1.0f / stat.GetValue(8), mean = shift + stat.GetValue(0);
    for (uint32_t quarter = unit * 4; quarter < unit * 4 + 4; ++quarter) {{
        const uint32_t slot = quarter % 5, channels = Channels(quarter);
        for (uint32_t c = 0; c < channels; ++c) {{
            const uint32_t channel = unit % {groups} * t.axis + quarter % 4 * t.share + c;
            const float factor = {weight}Gm.GetValue(channel) * scale;
            const AscendC::LocalTensor<float> row = ring[slot * t.tile + c * t.pitch];
            AscendC::Muls(row, row, factor, t.length);
            AscendC::Adds(row, row, {bias}Gm.GetValue(channel) - mean * factor, t.length);
        }}
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(slot);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(slot);
        if (channels > 0) {{
            const AscendC::DataCopyExtParams rows{{static_cast<uint16_t>(channels),
                                                  static_cast<uint32_t>(t.length * sizeof(float)), 0, 0, 0}};
            AscendC::DataCopyPad({target}Gm[Place(quarter)], ring[slot * t.tile], rows);
        }}
        if (quarter + 5 < end) {{
            AscendC::SetFlag<AscendC::HardEvent::MTE3_MTE2>(slot);
            AscendC::WaitFlag<AscendC::HardEvent::MTE3_MTE2>(slot);
            Load(quarter + 5);
        }}
    }}
}}"""


@dataclass
class GroupNormWriter(StageWriter):
    """Writes the stage. A unit of work is a group of one sample."""

    stage: GroupNorm = field(kw_only=True)
    piped = False
    no_idle_cores = True

    def buffers_used(self) -> list[tuple[str, str]]:
        stage = self.stage
        return [(name, "float") for name in (stage.source, stage.weight, stage.bias, stage.target)]

    def fields(self) -> list[tuple[str, str]]:
        return [("units", self.stage.rows), ("axis", self.stage.axis), ("length", self.stage.length)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "share", "tile", "perCore")

    def process(self) -> None:
        stage = self.stage
        names = {"source": stage.source, "weight": stage.weight, "bias": stage.bias, "target": stage.target}
        self.code.add(_PROCESS.format(groups=stage.groups, epsilon=f"{stage.epsilon!r}f", **names))

    def members(self) -> None:
        self.code.add("AscendC::LocalTensor<float> ring, sums, moved, stat;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        code.add("t.pitch = (t.length + 7) / 8 * 8;")
        code.add("t.share = (t.axis + 3) / 4;")
        code.add("t.tile = t.share * t.pitch;")
        with code.block(f"if (5 * t.tile + 3 * t.pitch > {HELD})"):
            code.add("return 1;  // a group must fit on chip")
        self.call(code)
