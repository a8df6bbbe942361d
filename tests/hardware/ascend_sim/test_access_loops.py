"""Scalar loops are recorded as loops and have the values, times, counts and faults of their accesses one by one."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from tests.support.kernels import Compiled, source

Array = NDArray[Any]
N = 4096

SETUP = """
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<> ta, tb; pipe.InitBuffer(ta, 16384); pipe.InitBuffer(tb, 16384);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
    DataCopy(a, in, 4096); Duplicate(b, 0.0f, 4096); PipeBarrier<PIPE_ALL>();
"""
STORE = "\n    PipeBarrier<PIPE_ALL>(); DataCopy(out, b, 4096);\n"

#: Loops of many forms: between loading `a` and storing `b`, unless they end with `return`.
LOOPS = {
    "a running sum": "float s = 0; for (int i = 0; i < 4096; ++i) { s += a(i); b(i) = s; }",
    "each element of the one before it": "b(0) = a(0); for (int i = 1; i < 4096; ++i) b(i) = b(i - 1) + a(i);",
    "backwards": "for (int i = 4095; i >= 0; --i) b(i) = a(4095 - i);",
    "columns": "for (int c = 0; c < 64; ++c) for (int r = 0; r < 64; ++r) b(c * 64 + r) = a(r * 64 + c);",
    "an inner loop of few": "for (int i = 0; i < 1024; ++i) { float s = 0;"
    " for (int k = 0; k < 4; ++k) s += a(4 * i + k); b(i) = s; }",
    "a branch that data decides": "for (int i = 0; i < 4096; ++i) { float v = a(i); if (v > 0) v *= 2; b(i) = v; }",
    "writes that data decides": "for (int i = 0; i < 4096; ++i) { float v = a(i); if (v > 0) b(i) = v; }",
    "more calls than a period holds": "for (int i = 0; i < 64; ++i) {"
    + "".join(f" b(64 * i + {k}) = a(64 * i + {63 - k});" for k in range(40))
    + "}",
    "batched": "for (int i = 0; i < 4096; i += 8) { float v[8]; for (int k = 0; k < 8; ++k) v[k] = a(i + k);"
    " for (int k = 0; k < 8; ++k) b(i + k) = v[k] + 1; }",
    "other types": "auto h = a.ReinterpretCast<half>(); auto w = b.ReinterpretCast<int16_t>();"
    " for (int i = 0; i < 8192; ++i) w(i) = (int16_t)i; for (int i = 0; i < 8192; i += 3) h(i) = (half)1.0f;",
    "one element": "for (int i = 0; i < 3000; ++i) { b(7) = a(7) + b(7); }",
    "global": "for (int i = 0; i < 4096; ++i) out(i) = in(i) * 2; return;",
    "global backwards": "for (int i = 4095; i >= 0; --i) out(i) = in(4095 - i); return;",
    "global columns": "for (int c = 0; c < 64; ++c) for (int r = 0; r < 64; ++r) out(r * 64 + c) = in(c * 64 + r);"
    " return;",
    "global, read again": "for (int i = 0; i < 4096; ++i) out(i) = 1; for (int k = 0; k < 3; ++k)"
    " for (int i = 1; i < 4096; ++i) out(i) = out(i - 1) + in(i); return;",
    "pointers": "auto p = (__gm__ float *)x0; auto q = (__gm__ float *)z0;"
    " for (int i = 0; i < 4096; ++i) q[i] = p[i] + 1; return;",
    "on chip and global": "for (int i = 0; i < 4096; ++i) { b(i) = in(i) + a(i); }",
    "a flag in each turn": "for (int i = 0; i < 64; ++i) { for (int k = 0; k < 64; ++k) b(64 * i + k) = a(64 * i + k);"
    " PipeBarrier<PIPE_ALL>(); }",
    "behind instructions": "Adds(a, a, 1.0f, 4096); for (int i = 0; i < 4096; ++i) b(i) = a(i);"
    " Muls(a, b, 2.0f, 4096); for (int i = 0; i < 4096; ++i) b(i) = a(4095 - i);",
}


#: A program of scalar loops that is written in `ints`: what each statement of a period does, and how often it runs.
PROGRAM = """
    float total = 0;
    for (int n = 0; n < 2; ++n) {
        const int64_t *l = p.v + 1 + n * 14;
        for (int i = 0; i < l[0]; ++i) {
            for (int s = 0; s < l[1]; ++s) {
                const int at = (l[3 + 3 * s] + i * l[4 + 3 * s]) & 4095;
                switch (l[2 + 3 * s]) {
                    case 0: total += a(at); break;
                    case 1: b(at) = total; break;
                    case 2: total += in(at); break;
                    case 3: out(at) = total; break;
                    case 4: if (total > 0) total = -1; else b(at) = 3; break;
                    default: total *= 0.5f; break;
                }
            }
            if (total > 100) total = 0;
        }
    }
    return;
"""

#: Loops that break a rule in the middle.
FAULTS = {
    "OUT_OF_BOUNDS": "for (int i = 0; i < 5000; ++i) b(i) = a(i);",
    "UNINITIALISED": "TBuf<> tc; pipe.InitBuffer(tc, 4096); auto c = tc.Get<float>();"
    " for (int i = 0; i < 900; ++i) c(i) = 1; for (int i = 0; i < 1024; ++i) b(i) = c(i);",
    "GM_OUT_OF_BOUNDS": "for (int i = 0; i < 9000; ++i) out(i) = 1.0f;",
    "WRITE_TO_INPUT": "for (int i = 0; i < 64; ++i) in(i) = 1.0f;",
    "BUDGET": "for (int i = 0;; ++i) b(i & 4095) = a(i & 4095);",
}

#: What cores do beside each other, and the rule that it breaks.
CORES: dict[str, tuple[str, str | None]] = {
    "parts of their own": ("for (int i = 0; i < 512; ++i) out(first + i) = in(first + i);", None),
    "parts that meet": (
        "for (int i = 0; i < 600; ++i) if (first + i < 4096) out(first + i) = in(first + i);",
        "GM_RACE",
    ),
    "elements of one line": ("for (int i = 0; i < 512; ++i) out(i * 8 + GetBlockIdx()) = in(i);", "CACHE_LINE"),
}
ON_CORES = """
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    const int first = GetBlockIdx() * 512;
"""

ONE_CORE = {**LOOPS, **FAULTS, "a program": PROGRAM}


def chosen(cases: list[str]) -> str:
    """Code that does what the first int says."""
    return "switch (p.v[0]) {\n" + "".join(f"case {i}: {{ {code} }} break;\n" for i, code in enumerate(cases)) + "}\n"


class Pair:
    """A kernel on a device that records loops, and on one that records every access."""

    def __init__(self, devices: list[AscendSim], text: str) -> None:
        self._kernels = [Compiled(device, text) for device in devices]

    def __call__(self, number: int, *ints: int, computes: bool = True) -> list[Run]:
        x = np.random.default_rng(number).standard_normal(N).astype(np.float32)
        return [kernel([x], [((N,), "float32")], computes, [number, *ints]) for kernel in self._kernels]


@pytest.fixture(scope="module")
def devices() -> Iterator[list[AscendSim]]:
    with AscendSim(budget=1_000_000) as loops, AscendSim(budget=1_000_000, record_loops=False) as plain:
        yield [loops, plain]


@pytest.fixture(scope="module")
def on_one_core(devices: list[AscendSim]) -> Pair:
    return Pair(devices, source(SETUP + chosen(list(ONE_CORE.values())) + STORE, 1))


@pytest.fixture(scope="module")
def on_cores(devices: list[AscendSim]) -> Pair:
    return Pair(devices, source(ON_CORES + chosen([code for code, _ in CORES.values()]), 1, blocks="8"))


def same(runs: list[Run]) -> Run:
    """Require the same of both runs, but for the time that they took; return the first.

    How far other cores have come when one of them ends at a fault is chance, and with it the code that was reached.
    """
    first, second = (
        replace(run, outputs=(), seconds=0.0, blocks=frozenset() if run.fault else run.blocks) for run in runs
    )
    assert first == second
    for output, other in zip(runs[0].outputs, runs[1].outputs, strict=True):
        assert np.array_equal(output, other, equal_nan=True)
    return runs[0]


@pytest.mark.parametrize("name", LOOPS)
def test_loops_have_the_results_of_their_accesses(on_one_core: Pair, name: str) -> None:
    run = same(on_one_core(list(ONE_CORE).index(name)))
    assert run.status == "ok", run.fault
    assert run.profile is not None
    assert run.profile.counts["scalar_accesses"] > 1000


def program(seed: int) -> list[int]:
    draw = random.Random(seed)
    numbers = []
    for _ in range(2):
        numbers += [draw.choice([3, 40, 300, 900]), draw.choice([1, 2, 3, 4])]
        for _ in range(4):
            kind, step = draw.choice([0, 0, 1, 1, 2, 3, 4, 5]), draw.choice([0, 1, 1, 1, -1, 2, 17, 64])
            numbers += [kind, draw.randrange(4096), step]
    return numbers


@pytest.mark.parametrize("seed", range(16))
@pytest.mark.parametrize("computes", [True, False])
def test_random_programs_have_the_results_of_their_accesses(on_one_core: Pair, seed: int, computes: bool) -> None:
    run = same(on_one_core(list(ONE_CORE).index("a program"), *program(seed), computes=computes))
    assert run.status == "ok", run.fault


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_in_a_loop_is_that_of_its_access(on_one_core: Pair, rule: str) -> None:
    faults = [run.fault for run in on_one_core(list(ONE_CORE).index(rule))]
    assert faults[0] == faults[1]
    assert faults[0] is not None
    assert faults[0].rule == rule


@pytest.mark.parametrize("name", CORES)
def test_cores_that_meet_in_loops(on_cores: Pair, name: str) -> None:
    run = same(on_cores(list(CORES).index(name)))
    assert (run.fault and run.fault.rule) == CORES[name][1]


FEW = ["a running sum", "backwards", "an inner loop of few", "a branch that data decides", "global"]


@pytest.mark.parametrize("name", FEW)
def test_a_loop_is_few_records(devices: list[AscendSim], name: str) -> None:
    x, signature = np.ones(N, np.float32), Signature((InputSpec((N,)),), (TensorSpec((N,)),))
    sent = []
    for device in devices:
        build = device.build(Kernel(source(SETUP + LOOPS[name] + STORE, 1)))
        memory = device._tensors.fill(signature, (x,))
        request = device._request(build, Inputs(signature, (x,)))
        sent.append(device._device().ask(request, memory, 30.0)["sent"])
    assert sent[1] > N
    assert sent[0] < sent[1] / 20
