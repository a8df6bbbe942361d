"""Operands of a vector instruction that overlap: no repeat reads what an earlier one wrote."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

X = np.random.default_rng(0).standard_normal(4096).astype(np.float32)
FRAME = """
    GlobalTensor<float> gx, gz;
    gx.SetGlobalBuffer((__gm__ float *)x0);
    gz.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<> ta, tb;
    pipe.InitBuffer(ta, 16384);
    pipe.InitBuffer(tb, 16384);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
    DataCopy(a, gx, 4096);
    DataCopy(b, gx, 4096);
    PipeBarrier<PIPE_ALL>();
    %s
    PipeBarrier<PIPE_ALL>();
    DataCopy(gz, a, 4096);
"""
TRANSPOSE = """
    TransDataTo5HDParams steps;
    steps.repeatTimes = 2, steps.dstRepStride = 16, steps.srcRepStride = 16;
    LocalTensor<half> h = a.ReinterpretCast<half>(), to[16], from[16];
    for (int i = 0; i < 16; ++i) to[i] = h[%d + 16 * i], from[i] = h[16 * i];
    TransDataTo5HD<half>(to, from, steps);
"""

BAD = {
    "the second repeat behind it": "Add(a[16], a, b, 64, 6, {8, 8, 8, 1, 1, 1});",
    "the next repeat, of an instruction that may accumulate": "Add(a[64], a, b, 64, 8, {1, 1, 1, 8, 8, 8});",
    "the second source": "Mul(a[128], b, a, 64, 8, {1, 1, 1, 8, 8, 8});",
    "rows in place that share blocks": "Adds(a, a, 1.0f, 64, 4, {1, 1, 1, 1});",
    "sums in place that share blocks": "Add(a, a, b, 64, 4, {1, 1, 1, 1, 1, 8});",
    "the last repeat, with other strides": "Adds(a[504], a, 1.0f, 8, 64, {1, 1, 0, 1});",
    "both sources accumulated": "Mul(a, a, a, 64, 4, {1, 1, 1, 0, 0, 0});",
    "a source beside the accumulated destination": "MulAddDst(a, a, b, 64, 4, {1, 1, 1, 0, 0, 8});",
    "a destination that is also read": "MulAddDst(a, b, b[512], 64, 4, {1, 1, 1, 1, 8, 8});",
    "a destination that does not accumulate": "FusedMulAdd(a, b, b[512], 64, 4, {1, 1, 1, 0, 8, 8});",
    "sums of sums": "BlockReduceSum(a[512], a, 9, 64, 1, 1, 8);",
    "a sum of sums": "WholeReduceSum(a[64], a, 64, 4, 1, 1, 8);",
    "transposed blocks": TRANSPOSE % 256,
    "compared bits": "CompareScalar(a[64].ReinterpretCast<uint8_t>(), a, 0.0f, CMPMODE::GT, 256);",
    "selecting bits": """CompareScalar(b.ReinterpretCast<uint8_t>(), a, 0.0f, CMPMODE::GT, 512);
        Select(b, b.ReinterpretCast<uint8_t>(), a, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 512);""",
    "copied rows": "DataCopy(a, a, DataCopyParams{8, 2, 0, 1});",
}

#: A destination that is its source, lies behind it, or is in other blocks.
GOOD = """
    Add(b, b, a, 64, 4, {1, 1, 1, 0, 0, 8});
    MulAddDst(b, a, a[512], 64, 4, {1, 1, 1, 0, 8, 8});
    Add(b, b, b, 64, 4, {1, 1, 1, 8, 8, 8});
    Adds(b, b, 1.0f, 8, 64, {1, 1, 1, 1});
    Adds(b, b[64], 1.0f, 64, 8, {1, 1, 8, 8});
    Adds(b, b[128], 1.0f, 64, 8, {1, 1, 8, 8});
    Add(b[16], b, a, 8, 8, {1, 1, 1, 8, 8, 8});
    Add(b[8], b, a, 64, 8, {8, 8, 8, 64, 64, 64});
    uint64_t upper[2] = {0xff00, 0};
    Add(b[16], b, a, upper, 8, {1, 1, 1, 4, 4, 4});
    WholeReduceSum(b, b, 64, 16, 1, 1, 8);
    WholeReduceMax(b, b, 8, 64, 1, 1, 1, ReduceOrder::ORDER_ONLY_VALUE);
    BlockReduceSum(b, b, 16, 64, 1, 1, 8);
    CompareScalar(b.ReinterpretCast<uint8_t>(), b, 0.0f, CMPMODE::GT, 512);
    DataCopy(b, b, DataCopyParams{8, 2, 1, 0});
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


def run(device: AscendSim, body: str) -> Run:
    return Compiled(device, source(FRAME % body, 1, "1"))([X], [((4096,), "float32")], True)


@pytest.mark.parametrize("body", BAD.values(), ids=list(BAD))
def test_no_repeat_reads_what_an_earlier_one_wrote(device: AscendSim, body: str) -> None:
    fault = run(device, body).fault
    assert fault is not None
    assert fault.rule == "OVERLAP", fault
    assert "earlier one" in fault.message


def test_what_was_read_before_may_be_written(device: AscendSim) -> None:
    result = run(device, GOOD + TRANSPOSE % 0)
    assert result.status == "ok", result.fault


def test_a_row_is_accumulated(device: AscendSim) -> None:
    result = run(device, "Add(a, a, b[64], 64, 20, {1, 1, 1, 0, 0, 8});")
    assert result.status == "ok", result.fault
    want = X[:64].copy()
    for row in range(1, 21):
        want += X[64 * row : 64 * row + 64]
    assert np.array_equal(result.outputs[0][:64], want)
