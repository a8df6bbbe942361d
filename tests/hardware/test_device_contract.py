"""The simulator keeps the device contract, and the contract's tests can fail."""

from typing import ClassVar

import pytest

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.conformance import DeviceContract
from kernel_gym.hardware.device import Build, Inputs, Run

HEAD = '#include "kernel_operator.h"\n#include "kernel_gym.h"\nusing namespace AscendC;\n'
ADD = """
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, uint32_t total) {
    const uint32_t tile = 2048;
    TPipe pipe;
    TQue<TPosition::VECIN, 1> inX, inY;
    TQue<TPosition::VECOUT, 1> outZ;
    GlobalTensor<float> xGm, yGm, zGm;
    xGm.SetGlobalBuffer((__gm__ float *)x);
    yGm.SetGlobalBuffer((__gm__ float *)y);
    zGm.SetGlobalBuffer((__gm__ float *)z);
    pipe.InitBuffer(inX, 1, tile * 4);
    pipe.InitBuffer(inY, 1, tile * 4);
    pipe.InitBuffer(outZ, 1, tile * 4);
    for (uint32_t at = GetBlockIdx() * tile; at < total; at += GetBlockNum() * tile) {
        uint32_t n = at + tile < total ? tile : total - at;
        LocalTensor<float> a = inX.AllocTensor<float>(), b = inY.AllocTensor<float>();
        DataCopyExtParams copy{1, n * (uint32_t)sizeof(float), 0, 0, 0};
        DataCopyPadExtParams<float> pad{false, 0, 0, 0};
        DataCopyPad(a, xGm[at], copy, pad);
        DataCopyPad(b, yGm[at], copy, pad);
        inX.EnQue(a);
        inY.EnQue(b);
        a = inX.DeQue<float>();
        b = inY.DeQue<float>();
        LocalTensor<float> c = outZ.AllocTensor<float>();
        Add(c, a, b, n);
        outZ.EnQue(c);
        inX.FreeTensor(a);
        inY.FreeTensor(b);
        c = outZ.DeQue<float>();
        DataCopyPad(zGm[at], c, copy);
        outZ.FreeTensor(c);
    }
}
"""
LAUNCH = """
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    add<<<4, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->outputs[0].ptr,
                                (uint32_t)a->inputs[0].shape[0]);
    return 0;
}
"""


def _spoiled(body: str) -> str:
    """The adding kernel with something else in the place of its sum."""
    return HEAD + ADD.replace("Add(c, a, b, n);", body) + LAUNCH


class TestAscendSim(DeviceContract):
    """Held to everything; its clock is exact."""

    adding = HEAD + ADD + LAUNCH
    uncompilable = _spoiled("Plus(c, a, b, n);")
    refusing = HEAD + 'extern "C" int kernel_launch(const KernelArgs *a, void *stream) { return 42; }\n'
    idle = _spoiled("Add(c, a, b, n);").replace("DataCopyPad(zGm[at], c, copy);", "")
    faulting = _spoiled("*(volatile int *)8 = 1;")
    endless = _spoiled("for (;;) Add(c, a, b, n);")
    exact_latency: ClassVar[bool] = True

    def make(self) -> AscendSim:
        return AscendSim(timeout=20, budget=4_000_000)


class Forgetful(AscendSim):
    """A device that hands back what the caller gave it, whatever the kernel did."""

    def run(self, build: Build, inputs: Inputs) -> Run:
        run = super().run(build, inputs)
        return run if inputs.values is None else Run("ok", inputs.values[:1], run.latency_us)


class _Broken(TestAscendSim):
    def make(self) -> AscendSim:
        return Forgetful(timeout=20, budget=4_000_000)


@pytest.mark.parametrize(
    "broken",
    [
        "test_it_computes",
        "test_what_is_not_written_stays_poison",
        "test_a_refusal_carries_its_code",
        "test_a_fault_has_a_name_and_leaves_the_device_unharmed",
        "test_an_endless_kernel_is_ended",
    ],
)
def test_a_device_that_breaks_the_contract_fails_its_tests(broken: str) -> None:
    _Broken.setup_class()
    try:
        with pytest.raises(AssertionError):
            getattr(_Broken(), broken)()
    finally:
        _Broken.teardown_class()
