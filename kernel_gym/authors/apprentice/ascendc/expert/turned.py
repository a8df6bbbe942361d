"""Arranges the filters of transposed convolutions: a gathering instruction collects the inputs of one place."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.operators.turned import ROOM
from kernel_gym.authors.apprentice.frontend.plan import Turned

_PROCESS = """\
__aicore__ inline void Process()
{{
    const uint32_t first = AscendC::GetBlockIdx() * t.perCore;
    const uint32_t last = Min(first + t.perCore, t.units);
    const AscendC::LocalTensor<int32_t> offsets(AscendC::TPosition::VECCALC, 0, t.row);
    const AscendC::LocalTensor<float> old(AscendC::TPosition::VECIN, t.row * sizeof(float), t.inputs * t.pitch);
    const AscendC::LocalTensor<float> arranged(AscendC::TPosition::VECOUT, (t.row + t.inputs * t.pitch) * sizeof(float),
                                               t.batch * {places} * t.row);
    for (uint32_t unit = first; unit < last; ++unit) {{
        const uint32_t output = unit * t.batch, outputs = Min(t.batch, t.outputs - output);
        const uint32_t bytes = outputs * {places} * sizeof(float);
        const uint32_t between = t.outputs * {places} * sizeof(float) - bytes, used = Align(outputs * {places}, 8);
        AscendC::DataCopyPad(
            old, {source}Gm[output * {places}],
            AscendC::DataCopyExtParams{{static_cast<uint16_t>(t.inputs), bytes, between, (t.pitch - used) / 8, 0}},
            AscendC::DataCopyPadExtParams<float>{{false, 0, 0, 0.0f}});
        if (unit == first) {{
            AscendC::ArithProgression(offsets, 0, static_cast<int32_t>(t.pitch * sizeof(float)), t.row);
        }}
        AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(0);
        AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(0);
        for (uint32_t place = 0; place < {places}; ++place) {{
            for (uint32_t o = 0; o < outputs; ++o) {{
                const uint32_t to = t.before[place] * outputs + o * t.length[place] + t.number[place];
                AscendC::Gather(arranged[to * t.row], old, offsets.ReinterpretCast<uint32_t>(),
                                (o * {places} + t.place[place]) * sizeof(float), t.inputs);
            }}
        }}
        AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(0);
        AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(0);
        for (uint32_t place = 0; place < {places}; place += t.length[place]) {{
            const uint32_t rows = outputs * t.length[place], pieces = t.row == t.inputs ? 1 : rows;
            const uint32_t to = t.before[place] * t.outputs + output * t.length[place];
            const uint32_t length = rows / pieces * t.inputs * sizeof(float);
            const AscendC::DataCopyExtParams whole{{static_cast<uint16_t>(pieces), length, 0, 0, 0}};
            AscendC::DataCopyPad({target}Gm[to * t.inputs], arranged[t.before[place] * outputs * t.row], whole);
        }}
        AscendC::PipeBarrier<PIPE_ALL>();
    }}
}}"""
#: For each place of the target: its place in the source, the places of all groups before its own, the places of its
#: group, and its number among these.
_PLACES = ("place", "before", "length", "number")


@dataclass
class TurnedWriter(StageWriter):
    """Writes the stage. A unit of work is some output channels."""

    stage: Turned = field(kw_only=True)
    piped = False

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(self.stage.source, "float"), (self.stage.target, "float")]

    def fields(self) -> list[tuple[str, str]]:
        return [("outputs", self.stage.outputs), ("inputs", self.stage.inputs)]

    def tile_fields(self) -> tuple[str, ...]:
        return ("row", "pitch", "batch", "units", "perCore", *(f"{name}[{self._places}]" for name in _PLACES))

    @property
    def _places(self) -> int:
        return sum(map(len, self.stage.groups))

    def process(self) -> None:
        names = {"source": self.stage.source, "target": self.stage.target, "places": self._places}
        self.code.add(_PROCESS.format(**names))

    def members(self) -> None:
        """Tensors on chip are local to Process."""

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        before = 0
        for group in self.stage.groups:
            for number, place in enumerate(group):
                values = zip(_PLACES, (place, before, len(group), number), strict=True)
                code.add(" ".join(f"t.{name}[{before + number}] = {value};" for name, value in values))
            before += len(group)
        room = f"{ROOM} / ({self._places} * (t.inputs + t.row))"
        code.add("t.row = (t.inputs + 7) / 8 * 8;")
        code.add(f"t.batch = AtLeast(1, AtMost(t.outputs / {self.schedule.cores}, {room}));")
        code.add(f"t.pitch = (t.batch * {self._places} + 7) / 8 * 8;")
        code.add("t.units = (t.outputs + t.batch - 1) / t.batch;")
        self.call(code)
