"""A kernel that calls the border itself, with whatever arguments: the device answers with a fault and lives on."""

from __future__ import annotations

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim import marshal
from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.executor_fuzz import ENDS_A_CORE, FOLDER
from tests.support.kernels import Compiled, source

#: Arguments are filled byte by byte with words that are often plausible.
PRELUDE = """
struct Random {
    uint64_t state;
    uint64_t draw() { state = state * 6364136223846793005ull + 1442695040888963407ull; return state >> 24; }
    uint32_t word() {
        const uint32_t some[] = {0, 0, 1, 1, 2, 4, 8, 32, 64, 256, 1024, 4096, 196608, 0x80000000u, 0xffffffffu};
        return draw() % 8 ? some[draw() % 15] : (uint32_t)draw();
    }
    template <class T> T any() {
        union { T value; uint32_t words[(sizeof(T) + 3) / 4]; } u;
        for (uint32_t i = 0; i < sizeof u.words / 4; ++i) u.words[i] = word();
        return u.value;
    }
    asc_global address() {
        return ASC_GM_BASE + draw() % 4 * ASC_GM_STRIDE + (draw() % 4 ? 0 : word());
    }
};
"""
#: Types of which a random value is an address.
ADDRESSES = ("asc_global", "uint64_t")


def hostile() -> str:
    """Sixteen random calls, then the harmless end."""
    calls = marshal.parse((FOLDER / "include" / "abi.h").read_text())
    chosen = [call for call in calls if call.name not in ENDS_A_CORE | {"returned"}]
    cases = []
    for number, call in enumerate(chosen):
        drawn = (f"r.{'address' if item.type in ADDRESSES else f'any<{item.type}>'}()" for item in call.payload)
        arguments = ", ".join([*drawn, "1"])
        cases.append(f"case {number}: asc_{marshal.EXPORTED_AS.get(call.name, call.name)}({arguments}); break;")
    loop = f"for (int i = 0; i < 16; ++i) switch (r.draw() % {len(chosen)}) {{ {' '.join(cases)} }}"
    return source(f"Random r = {{(uint64_t)p.v[0]}}; for (int i = 0; i < 8; ++i) r.draw(); {loop}", 1, prelude=PRELUDE)


@pytest.mark.parametrize("compute", [True, False])
def test_hostile_records_end_in_a_fault(compute: bool) -> None:
    x = np.ones(1024, np.float32)
    with AscendSim() as device:
        kernel = Compiled(device, hostile())
        rules = set()
        for seed in range(150):
            run = kernel([x], [((1024,), "float32")], compute, ints=[seed])
            assert run.status in ("ok", "fault"), run
            rules |= {run.fault.rule} if run.fault else set()
        assert len(rules) > 6, rules
        assert not rules & {"CRASH", "BAD_POINTER"}, rules
        body = "GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float *)z0); z.SetValue(0, 1.0f);"
        after = Compiled(device, source(body, 1))([x], [((1,), "float32")])
        assert after.status == "ok"
        assert after.outputs[0][0] == 1
