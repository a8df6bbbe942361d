"""The high-level Matmul in its forms: whole, block by block, transposed, with bias, through UB, in batches."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

FILE = """#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "tiling/tiling_api.h"
using namespace AscendC;
using namespace matmul;
using A = MatmulType<TPosition::GM, CubeFormat::ND, half, @ta@>;
using B = MatmulType<TPosition::GM, CubeFormat::ND, half, @tb@>;
using C = MatmulType<TPosition::GM, CubeFormat::ND, float>;
extern "C" __global__ __aicore__ void product(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR ws, TCubeTiling t, uint32_t batch) {
    TPipe pipe;
    GlobalTensor<half> aGm, bGm;
    GlobalTensor<float> cGm, biasGm;
    aGm.SetGlobalBuffer((__gm__ half *)a);
    bGm.SetGlobalBuffer((__gm__ half *)b);
    biasGm.SetGlobalBuffer((__gm__ float *)bias);
    cGm.SetGlobalBuffer((__gm__ float *)c);
    Matmul<A, B, C> mm;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    if (GetBlockIdx() >= t.usedCoreNum) return;
    uint32_t down = (t.M + t.singleCoreM - 1) / t.singleCoreM;
    uint32_t m0 = GetBlockIdx() % down * t.singleCoreM, n0 = GetBlockIdx() / down * t.singleCoreN;
    mm.SetTensorA(aGm[@ta@ ? m0 : m0 * t.Ka]);
    mm.SetTensorB(bGm[@tb@ ? n0 * t.Kb : n0]);
    mm.SetTail(min(t.M - (int32_t)m0, t.singleCoreM), min(t.N - (int32_t)n0, t.singleCoreN));
    GlobalTensor<float> mine = cGm[m0 * t.N + n0];
    @body@
    mm.End();
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    auto *platform = platform_ascendc::PlatformAscendCManager::GetInstance();
    matmul_tiling::MultiCoreMatmulTiling cut(*platform);
    cut.SetDim(@cores@);
    cut.SetAType(matmul_tiling::TPosition::GM, matmul_tiling::CubeFormat::ND, matmul_tiling::DataType::DT_FLOAT16);
    cut.SetFixSplit(@split@);
    cut.SetShape(a->ints[0], a->ints[1], a->ints[2]);
    cut.SetOrgShape(a->ints[0], a->ints[1], a->ints[2]);
    TCubeTiling t;
    if (cut.GetTiling(t)) return 1;
    product<<<platform->GetCoreNumAic(), nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->inputs[2].ptr,
        (GM_ADDR)a->outputs[0].ptr, (GM_ADDR)a->workspace, t, (uint32_t)a->ints[3]);
    return 0;
}
"""  # noqa: E501
WHOLE = "mm.IterateAll(mine);"
BLOCKS = "while (mm.Iterate()) mm.GetTensorC(mine);"
THROUGH_UB = """
    TQue<TPosition::VECIN, 1> in; TQue<TPosition::VECOUT, 1> out;
    pipe.InitBuffer(in, 1, t.baseM * t.baseN * 4); pipe.InitBuffer(out, 1, t.baseM * t.baseN * 4);
    int32_t rows = (t.singleCoreM + t.baseM - 1) / t.baseM, step = 0;
    while (mm.Iterate()) {
        int32_t i = step % rows * t.baseM, j = step / rows * t.baseN; ++step;
        uint32_t m = min(t.baseM, min(t.M - (int32_t)m0, t.singleCoreM) - i), n = min(t.baseN, min(t.N - (int32_t)n0, t.singleCoreN) - j);
        LocalTensor<float> block = in.AllocTensor<float>(); mm.GetTensorC(block); in.EnQue(block); block = in.DeQue<float>();
        LocalTensor<float> result = out.AllocTensor<float>(); LeakyRelu(result, block, 0.5f, m * n); in.FreeTensor(block); out.EnQue(result);
        result = out.DeQue<float>();
        for (uint32_t row = 0; row < m; ++row) DataCopyPad(mine[(i + row) * t.N + j], result[row * n], DataCopyExtParams{1, n * 4, 0, 0, 0});
        out.FreeTensor(result);
    }
"""  # noqa: E501


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as opened:
        yield opened


def operands(m: int, n: int, k: int, batch: int = 1) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    generator = np.random.default_rng(m * n + k)
    a, b = generator.integers(-4, 5, (batch, m, k)), generator.integers(-4, 5, (batch, k, n))
    return a.astype(np.float16), b.astype(np.float16), generator.integers(-9, 10, n).astype(np.float32)


def multiply(
    device: AscendSim, body: str, shape: tuple[int, int, int], ta: bool = False, tb: bool = False, batch: int = 1,
    cores: int = 48, split: str = "32, 64",
) -> Run:  # fmt: skip
    a, b, bias = operands(*shape, batch)
    words = {"@ta@": str(ta).lower(), "@tb@": str(tb).lower(), "@body@": body, "@cores@": str(cores), "@split@": split}
    source = FILE
    for word, text in words.items():
        source = source.replace(word, text)
    build = device.build(Kernel(source))
    assert build.ok, build.diagnostics
    stored = (a.swapaxes(1, 2) if ta else a, b.swapaxes(1, 2) if tb else b, bias)
    specs = tuple(InputSpec(value.shape, str(value.dtype)) for value in stored)
    signature = Signature(specs, (TensorSpec((batch, shape[0], shape[1])),), ints=(*shape, batch))
    return device.run(build, Inputs(signature, tuple(map(np.ascontiguousarray, stored))))


def product(device: AscendSim, body: str, shape: tuple[int, int, int], *options: Any, **others: Any) -> np.ndarray:
    run = multiply(device, body, shape, *options, **others)
    assert run.status == "ok", run.fault
    result: np.ndarray = run.outputs[0]
    return result


def exact(shape: tuple[int, int, int], batch: int = 1) -> np.ndarray:
    a, b, _ = operands(*shape, batch)
    result: np.ndarray = a.astype(np.float32) @ b.astype(np.float32)
    return result


SHAPES = [(16, 16, 16), (100, 72, 40), (33, 130, 65)]


def test_a_matmul_takes_its_buffers_from_a_pipe(device: AscendSim, monkeypatch: pytest.MonkeyPatch) -> None:
    without = FILE.replace("    TPipe pipe;\n", "").replace("&pipe", "static_cast<TPipe *>(nullptr)")
    monkeypatch.setattr(sys.modules[__name__], "FILE", without)
    fault = multiply(device, WHOLE, SHAPES[0]).fault
    assert fault is not None
    assert fault.rule == "BUFFER_INIT"


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("body", [WHOLE, BLOCKS])
def test_whole_and_block_by_block(device: AscendSim, body: str, shape: tuple[int, int, int]) -> None:
    assert np.array_equal(product(device, body, shape), exact(shape))


@pytest.mark.parametrize(("ta", "tb"), [(True, False), (False, True), (True, True)])
def test_transposed_operands(device: AscendSim, ta: bool, tb: bool) -> None:
    for body in (WHOLE, BLOCKS):
        assert np.array_equal(product(device, body, SHAPES[1], ta, tb), exact(SHAPES[1]))


def test_bias_is_added_to_every_row(device: AscendSim) -> None:
    biased = multiply(device, "mm.SetBias(biasGm[n0]); " + WHOLE, SHAPES[1])
    plain = multiply(device, "mm.SetBias(biasGm[n0]); mm.ClearBias(); " + WHOLE, SHAPES[1])
    assert np.array_equal(biased.outputs[0], exact(SHAPES[1]) + operands(*SHAPES[1])[2])
    assert np.array_equal(plain.outputs[0], exact(SHAPES[1]))
    assert (biased.latency_us or 0) > (plain.latency_us or 0)  # it is fetched


@pytest.mark.parametrize("shape", SHAPES[:2])
def test_results_can_be_used_in_ub(device: AscendSim, shape: tuple[int, int, int]) -> None:
    whole = exact(shape)
    assert np.array_equal(product(device, THROUGH_UB, shape, cores=4), np.where(whole > 0, whole, whole / 2))


def test_an_operand_may_come_from_ub(device: AscendSim) -> None:
    body = """
    TQue<TPosition::VECIN, 1> in; TQue<TPosition::VECOUT, 1> out; pipe.InitBuffer(in, 1, 16 * 32 * 2); pipe.InitBuffer(out, 1, 16 * 32 * 2);
    LocalTensor<half> x = in.AllocTensor<half>(); DataCopy(x, aGm, 16 * 32); in.EnQue(x); x = in.DeQue<half>();
    LocalTensor<half> y = out.AllocTensor<half>(); Muls(y, x, half(2), 16 * 32); in.FreeTensor(x); out.EnQue(y); y = out.DeQue<half>();
    mm.SetTensorA(y); mm.IterateAll(mine); out.FreeTensor(y);
    """  # noqa: E501
    assert np.array_equal(product(device, body, (16, 48, 32), cores=1), 2 * exact((16, 48, 32)))


def test_batches_lie_one_behind_the_other(device: AscendSim) -> None:
    body = "mm.IterateBatch(cGm, batch, batch, false);"
    assert np.array_equal(product(device, body, (16, 32, 48), batch=3, cores=1), exact((16, 32, 48), 3))


def test_partial_products_add_up_atomically(device: AscendSim) -> None:
    body = "mm.IterateAll(mine); mm.IterateAll(mine, 1);"
    assert np.array_equal(product(device, body, SHAPES[1]), 2 * exact(SHAPES[1]))


def test_a_product_that_is_added_takes_longer_where_the_way_out_is_the_longest(device: AscendSim) -> None:
    bodies = ("mm.IterateAll(mine); mm.IterateAll(mine, 1);", "mm.IterateAll(mine); mm.IterateAll(mine);")
    added, stored = (multiply(device, body, (128, 128, 16), cores=1, split="128, 128") for body in bodies)
    assert (added.status, stored.status) == ("ok", "ok")
    assert (added.latency_us or 0) > (stored.latency_us or 0)


@pytest.mark.parametrize("call", ["IterateAll<false>(mine)", "Iterate(); mm.GetTensorC<false>(mine)"])
@pytest.mark.parametrize("access", ["DataCopy(x, mine, 16)", "DataCopy(mine, x, 16)"], ids=["read", "written"])
def test_a_product_that_is_not_waited_for_may_still_be_running(device: AscendSim, call: str, access: str) -> None:
    body = "TBuf<> room; pipe.InitBuffer(room, 64); LocalTensor<float> x = room.Get<float>(); Duplicate(x, 0.0f, 16);"
    early, late = (f"{body} mm.{call}; {wait} {access};" for wait in ("", "PipeBarrier<PIPE_ALL>();"))
    fault = multiply(device, early, (16, 16, 16), cores=1).fault
    assert fault is not None
    assert fault.rule == "GM_SYNC"
    assert "M may still be writing it" in fault.message
    assert multiply(device, late, (16, 16, 16), cores=1).status == "ok"


@pytest.mark.parametrize(
    "body", ["mm.Iterate(); mm.Iterate(true); mm.GetTensorC(mine);", "mm.IterateBatch(cGm, 1, 1, false, 0, 0, 1024);"]
)
def test_what_the_simulator_does_not_do_is_a_fault(device: AscendSim, body: str) -> None:
    fault = multiply(device, body, (16, 16, 16), cores=1).fault
    assert fault is not None
    assert fault.rule == "MISUSE"
