"""Depthwise convolutions of stride 1: a pooling of windows whose places have weights of their own in each channel.

Lines are loaded once. For each column of the window but the first they are gathered as often as there are columns,
shifted, so that all places of a window are aligned. Each place is then one instruction.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernel_gym.authors.apprentice.ascendc.expert.pooling import BEHIND, BESIDE, OUTSIDE, PoolingWriter
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.code_writer import CodeWriter

#: Where the results begin on chip, in bytes: their banks are not those of the lines. Most repeats of an instruction.
_RESULTS, _REPEATS = 131_072, 255
_LOAD_WEIGHTS = """
    AscendC::LocalTensor<float> weights = weightsQueue.AllocTensor<float>();
    AscendC::DataCopyPad(weights, {weights}Gm[at.image % t.channels * {places}],
                         AscendC::DataCopyExtParams{{1, {places} * sizeof(float), 0, 0, 0}}, {{false, 0, 0, 0.0f}});
    weightsQueue.EnQue(weights);"""
_COLUMNS = """\
    const AscendC::LocalTensor<float> moved = movedBuf.Get<float>();
    for (uint32_t across = 1; across < {across}; ++across) {{
        AscendC::Gather(moved[(across - 1) * t.tile], lines, places, across * {hop_across} * sizeof(float),
                        held * t.pitch);
    }}
    // Each weight fills a block, in either half of the banks, so that one of both is apart from the elements.
    AscendC::LocalTensor<float> weights = weightsQueue.DeQue<float>();
    const AscendC::LocalTensor<float> spread = spreadBuf.Get<float>();
    AscendC::Brcb(spread, weights, {blocks}, {{1, 16}});
    AscendC::Brcb(spread[64], weights, {blocks}, {{1, 16}});
    weightsQueue.FreeTensor(weights);
    const uint8_t repeats = static_cast<uint8_t>(Align(at.rows * t.pitch, 64) / 64);
    for (uint32_t place = 0; place < {places}; ++place) {{
        const uint32_t down = place / {across}, across = place % {across}, from = down * {hop_down} * t.pitch;
        const AscendC::LocalTensor<float> elements = across == 0 ? lines[from] : moved[(across - 1) * t.tile + from];
        const uint32_t half = (place % 8 + 24 - from / 8 % 16) % 16 < 8 ? 64 : 0;
        const AscendC::LocalTensor<float> weight = spread[place / 8 * 128 + place % 8 * 8 + half];
        if (place == 0) {{
            AscendC::Mul(out, elements, weight, 64, repeats, {{1, 1, 0, 8, 8, 0}});
        }} else {{
            AscendC::MulAddDst(out, elements, weight, 64, repeats, {{1, 1, 0, 8, 8, 0}});
        }}
    }}
"""
_INIT = """\
pipe.InitBuffer(linesQueue, 2, t.tile * sizeof(float));
pipe.InitBuffer(movedBuf, {copies} * t.tile * sizeof(float));
pipe.InitBuffer(placesBuf, (t.tile + 64) * sizeof(int32_t));
pipe.InitBuffer(spreadBuf, {blocks} * 512);
pipe.InitBuffer(weightsQueue, 2, {blocks} * 32);
pipe.InitBuffer(restBuf, {results} - ({tiles} * t.tile + 64) * sizeof(float) - {blocks} * 576);
pipe.InitBuffer(outQueue, 2, Align(t.batch * t.pitch, 64) * sizeof(float));
AscendC::ArithProgression(placesBuf.Get<int32_t>(), 0, static_cast<int32_t>(sizeof(float)), t.tile);"""


@dataclass
class DepthwiseWriter(PoolingWriter):
    """Writes the stage. A unit of work is a block of neighbouring lines of one channel."""

    def buffers_used(self) -> list[tuple[str, str]]:
        (source, target), weights = super().buffers_used(), (self.stage.weights, "float")
        return [source, weights, target]

    def fields(self) -> list[tuple[str, str]]:
        return [*super().fields(), ("channels", self.stage.channels)]

    @property
    def _sizes(self) -> dict[str, object]:
        places = self.stage.window[1] * self.stage.window[2]
        copies = max(1, self.stage.window[2] - 1)
        sizes = {"places": places, "blocks": -(-places // 8), "copies": copies, "tiles": copies + 3}
        return self.names_used | sizes | {"results": _RESULTS, "weights": self.stage.weights}

    def init_lines(self) -> None:
        self.code.add(_INIT.format(**self._sizes))

    def load_more(self) -> str:
        return _LOAD_WEIGHTS.format(**self._sizes)

    def compute(self) -> str:
        return "".join(text.format(**self._sizes) for text in (BESIDE, OUTSIDE, _COLUMNS))

    def members(self) -> None:
        super(PoolingWriter, self).members()
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 2> linesQueue, weightsQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;")
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> movedBuf, placesBuf, spreadBuf, restBuf;")

    def launch(self, code: CodeWriter) -> None:
        _, down, across = self.stage.window
        reach, tiles = (down - 1) * self.stage.hops[1], max(2, across) + 2
        self.set_fields(code)
        wide = f"t.widthOut + {(across - 1) * self.stage.hops[2]}"
        code.add(f"t.row = (AtLeast({self.stage.before[2]} + t.width, {wide}) + 7) / 8 * 8;")
        code.add("t.pitch = t.row;", "t.pitchOut = t.row;")
        lines = (_RESULTS // 4 - 1024) // tiles - BEHIND - 128
        results = min((BUDGET - _RESULTS) // 8 - 64, 64 * _REPEATS)
        with code.block(f"if ({1 + reach} * t.pitch > {lines} || t.pitch > {results})"):
            code.add("return 1;  // the lines of a window must fit on chip")
        code.add(f"const uint32_t most = AtMost({lines} / t.pitch - {reach}, {results} / t.pitch);")
        self.share(code, 1, reach + 1)
