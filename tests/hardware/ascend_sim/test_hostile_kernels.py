"""Kernel code that calls the border directly, with nonsense: the device answers every time and lives on."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim import marshal
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.ascend_sim.runtime import HERE
from kernel_gym.hardware.device import Build, Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

FILE = """#include "kernel_operator.h"
static uint64_t draw(uint64_t &state) { state ^= state << 13; state ^= state >> 7; return state ^= state << 17; }
// Small numbers, numbers near powers of two, and any.
static uint64_t number(uint64_t &s) {
    switch (draw(s) % 4) {
        case 0: return draw(s) % 16;
        case 1: return draw(s) % 4096 * 32;
        case 2: return (1ull << draw(s) % 64) - draw(s) % 3;
        default: return draw(s);
    }
}
template <class T> static T any(uint64_t &s) {
    T value;
    uint32_t *words = reinterpret_cast<uint32_t *>(&value);
    for (uint32_t i = 0; i < sizeof(T) / 4; ++i) words[i] = (uint32_t)number(s);
    return value;
}
template <> asc_local any<asc_local>(uint64_t &s) {
    if (draw(s) % 2) return {(uint32_t)(draw(s) % 64 * 32), 2048, ASC_UB};
    return {(uint32_t)number(s), (uint32_t)number(s), (uint32_t)(draw(s) % 9)};
}
template <> asc_global any<asc_global>(uint64_t &s) {
    return draw(s) % 2 ? ASC_GM_BASE + draw(s) % 4 * ASC_GM_STRIDE + draw(s) % 256 * 4 : number(s);
}
static void nonsense(uint64_t &s) {
    const int32_t line = 1 + draw(s) % 100;
    switch (draw(s) % @count@) {
@cases@
    }
}
__global__ __aicore__ void hostile(uint64_t seed) {
    AscendC::TPipe pipe;
    for (int i = 0; i < 200; ++i) nonsense(seed);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    uint64_t seed = (uint64_t)a->ints[0] * 0x9e3779b97f4a7c15ull + 1;
    if (a->ints[0] % 7 == 0) nonsense(seed);
    hostile<<<1 + a->ints[0] % 3, nullptr, stream>>>(seed);
    return 0;
}
"""


def source(skip: frozenset[str]) -> str:
    calls = [call for call in marshal.parse((HERE / "include" / "abi.h").read_text()) if call.name not in skip]
    cases = "\n".join(
        f"        case {k}: asc_{marshal.EXPORTED_AS.get(call.name, call.name)}"
        f"({''.join(f'any<{a.type}>(s), ' for a in call.payload)}line); break;"
        for k, call in enumerate(calls)
    )
    return FILE.replace("@count@", str(len(calls))).replace("@cases@", cases)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim(timeout=20, budget=4_000_000) as opened:
        yield opened


def strike(device: AscendSim, build: Build, seed: int, compute: bool) -> Run:
    signature = Signature((InputSpec((256,)),), (TensorSpec((256,)),), ints=(seed,))
    return device.run(build, Inputs(signature, (np.zeros(256, np.float32),) if compute else None))


#: What ends a run at once when it comes out of order; left out in half of the runs so that the others are reached.
CONTROL = frozenset(
    {
        "launch_begin",
        "core_begin",
        "core_resume",
        "core_end",
        "launch_end",
        "returned",
        "stuck",
        "misuse",
        "assert_failed",
    }
)


@pytest.mark.parametrize("skip", [frozenset(), CONTROL], ids=["any call", "calls of a core"])
def test_nonsense_calls_leave_the_device_process_alive(device: AscendSim, skip: frozenset[str]) -> None:
    build = device.build(Kernel(source(skip)))
    assert build.ok, build.diagnostics
    rules: Counter[str] = Counter()
    for seed in range(60):
        result = strike(device, build, seed, compute=seed % 2 == 0)
        rules[result.fault.rule if result.fault else result.status] += 1
    assert len(rules) >= 4, rules
    assert device._server is not None
    assert device._server._process is not None
    assert device._server._process.poll() is None, "the first device process still serves"
