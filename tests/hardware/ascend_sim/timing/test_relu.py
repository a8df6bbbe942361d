"""ReLU at a device-like size on the real parts: every step of optimisation pays, always with the same number."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

SHAPE = (4096, 4096)
SOURCE = """
#include "kernel_gym.h"
#include "kernel_operator.h"
using namespace AscendC;
struct ReluTiling { uint32_t perCore, tile, buffers, scalar; };
class ReluKernel {
public:
    __aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const ReluTiling &tiling) {
        t = tiling;
        from.SetGlobalBuffer((__gm__ float *)x + (uint64_t)t.perCore * GetBlockIdx(), t.perCore);
        to.SetGlobalBuffer((__gm__ float *)y + (uint64_t)t.perCore * GetBlockIdx(), t.perCore);
        pipe.InitBuffer(in, t.buffers, t.tile * sizeof(float));
        pipe.InitBuffer(out, t.buffers, t.tile * sizeof(float));
    }
    __aicore__ inline void Process() {
        for (uint32_t at = 0; at < t.perCore; at += t.tile) {
            const uint32_t count = t.perCore - at < t.tile ? t.perCore - at : t.tile;
            LocalTensor<float> x = in.AllocTensor<float>();
            DataCopy(x, from[at], count);
            in.EnQue(x);
            x = in.DeQue<float>();
            LocalTensor<float> y = out.AllocTensor<float>();
            if (t.scalar) {
                for (uint32_t i = 0; i < count; ++i) {
                    const float value = x.GetValue(i);
                    y.SetValue(i, value > 0 ? value : 0.0f);
                }
            } else {
                Relu(y, x, count);
            }
            in.FreeTensor(x);
            out.EnQue(y);
            y = out.DeQue<float>();
            DataCopy(to[at], y, count);
            out.FreeTensor(y);
        }
    }
private:
    ReluTiling t;
    TPipe pipe;
    TQue<QuePosition::VECIN, 2> in;
    TQue<QuePosition::VECOUT, 2> out;
    GlobalTensor<float> from, to;
};
extern "C" __global__ __aicore__ void relu_kernel(GM_ADDR x, GM_ADDR y, ReluTiling tiling) {
    ReluKernel op;
    op.Init(x, y, tiling);
    op.Process();
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    const uint32_t total = a->inputs[0].shape[0] * a->inputs[0].shape[1], cores = a->ints[0];
    ReluTiling tiling{total / cores, (uint32_t)a->ints[1], (uint32_t)a->ints[2], (uint32_t)a->ints[3]};
    relu_kernel<<<cores, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr, tiling);
    return 0;
}
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim(timeout=120.0, budget=2_000_000_000) as simulator:
        yield simulator


def relu(device: AscendSim, cores: int, tile: int, buffers: int, scalar: bool = False) -> Run:
    signature = Signature((InputSpec(SHAPE),), (TensorSpec(SHAPE),), ints=(cores, tile, buffers, int(scalar)))
    build = device.build(Kernel(SOURCE, trusted=True))
    assert build.ok, build.diagnostics
    run = device.run(build, Inputs(signature))
    assert run.status == "ok", run.fault
    return run


def latency(run: Run) -> float:
    assert run.latency_us is not None
    return run.latency_us


@pytest.mark.slow
def test_each_step_of_optimisation_is_faster(device: AscendSim) -> None:
    double_buffered = latency(relu(device, cores=32, tile=4096, buffers=2))
    multi_core = latency(relu(device, cores=32, tile=4096, buffers=1))
    single_core = latency(relu(device, cores=1, tile=4096, buffers=1))
    scalar_loop = latency(relu(device, cores=1, tile=4096, buffers=1, scalar=True))
    assert double_buffered < 0.95 * multi_core
    assert multi_core < 0.2 * single_core
    assert single_core < 0.2 * scalar_loop


def test_tiles_never_tie(device: AscendSim) -> None:
    times = [latency(relu(device, 32, tile, 2)) for tile in (512, 1024, 2048, 4096, 8192)]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(times)


def test_the_latency_is_the_same_number_every_time(device: AscendSim) -> None:
    runs = [relu(device, 32, 2048, 2) for _ in range(3)]
    with AscendSim(budget=2_000_000_000) as other:
        runs.append(relu(other, 32, 2048, 2))
    assert len({latency(run) for run in runs}) == 1
    assert len({repr(run.profile) for run in runs}) == 1


def test_the_diagnosis_fits_the_step(device: AscendSim) -> None:
    single = relu(device, cores=1, tile=4096, buffers=1).profile
    multi = relu(device, cores=32, tile=8192, buffers=2).profile
    assert single is not None
    assert multi is not None
    assert single.bottleneck == "balance"
    assert multi.bottleneck == "mte2"
    assert multi.bytes["hbm_read"] == multi.bytes["l2_write"] == 4 * SHAPE[0] * SHAPE[1]
