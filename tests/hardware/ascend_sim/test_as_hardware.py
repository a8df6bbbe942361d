"""Kernels of our own in forms that an NPU and its compiler accept, and one form that they refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernel_gym.hardware.ascend_sim.calibration import FOLDER
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from tests.support.kernels import Compiled, source

Array = NDArray[Any]
N = 64
SETUP = """
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<> ta, tb; pipe.InitBuffer(ta, 256); pipe.InitBuffer(tb, 256);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>();
    DataCopy(a, in, 64); PipeBarrier<PIPE_ALL>();
    {0}
    PipeBarrier<PIPE_ALL>(); DataCopy(out, b, 64);
"""


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as made:
        yield made


def run(device: AscendSim, body: str, prelude: str = "") -> Run:
    x = np.linspace(-2, 2, N, dtype=np.float32)
    return Compiled(device, source(body, 1, prelude=prelude))([x], [((N,), "float32")])


X = np.linspace(-2, 2, N, dtype=np.float32)
#: Code between loading `a` and storing `b`, and what it computes.
ACCEPTED: dict[str, tuple[str, Array]] = {
    "tensors are added and multiplied": ("b = a + a; PipeBarrier<PIPE_ALL>(); b = b * a;", 2 * X * X),
    "tensors are compared": (
        "TBuf<> tm; pipe.InitBuffer(tm, 256); LocalTensor<uint8_t> bits = tm.Get<uint8_t>(); Duplicate(b, 0.5f, 64);"
        " PipeBarrier<PIPE_ALL>(); bits = a < b; PipeBarrier<PIPE_ALL>();"
        " Select(b, bits, a, b, SELMODE::VSEL_TENSOR_TENSOR_MODE, 64);",
        np.minimum(X, 0.5),
    ),
    "an element is assigned to an element": ("for (int i = 0; i < 64; ++i) b(i) = a(63 - i);", X[::-1]),
    "an element is added to": ("for (int i = 0; i < 64; ++i) { b(i) = a(i); b(i) += 1.5f; b(i) -= 0.5f; }", X + 1),
    "an element is scaled": ("for (int i = 0; i < 64; ++i) { b(i) = a(i); b(i) *= 3.0f; b(i) /= 2.0f; }", X * 3 / 2),
    "elements are assigned in a chain": (
        "for (int i = 0; i < 64; i += 2) b(i) = b(i + 1) = a(i);",
        np.repeat(X[::2], 2),
    ),
    "an element of integers": (
        "auto c = b.ReinterpretCast<int32_t>();"
        " for (int i = 0; i < 64; ++i) { c(i) = i; c(i) %= 7; ++c(i); c(i) |= 8; }"
        " PipeBarrier<PIPE_ALL>(); Cast(b, c, RoundMode::CAST_NONE, 64);",
        ((np.arange(N) % 7 + 1) | 8).astype(np.float32),
    ),
    "a global element is assigned": (
        "Duplicate(b, 0.0f, 64); PipeBarrier<PIPE_ALL>(); out(0) = in(3); out(1) = out(0); out(1) += 1.0f; return;",
        np.array([X[3], X[3] + 1], np.float32),
    ),
    "a TBuf hands out a tensor": (
        "auto t = tb.AllocTensor<float>(); Adds(t, a, 1.0f, 64); tb.FreeTensor(t);",
        X + 1,
    ),
    "Compare writes bits into a tensor of floats": (
        "CompareScalar(b, a, 0.0f, CMPMODE::GT, 64); auto m = b.ReinterpretCast<uint8_t>();"
        " Duplicate(a, 1.0f, 64); Select(a, m, a, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, 64); Adds(b, a, 0.0f, 64);",
        (X > 0).astype(np.float32),
    ),
    "more than eight tensors are allocated and freed": (
        "TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 11, 32); LocalTensor<float> t[11];"
        " for (int i = 0; i < 11; ++i) t[i] = q.AllocTensor<float>(); for (int i = 0; i < 11; ++i) q.FreeTensor(t[i]);"
        " Adds(b, a, 0.0f, 64);",
        X,
    ),
    "the tail of a copy is dropped and not needed": (
        "DataCopy(b, in, 13); PipeBarrier<PIPE_ALL>(); Adds(b, a, 0.0f, 64);",
        X,
    ),
    "a constant of cfloat": ("Duplicate(b, FLT_MAX, 64);", np.full(N, np.finfo(np.float32).max)),
    "a constant of math.h": ("Duplicate(b, -INFINITY, 64);", np.full(N, -np.inf)),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_code_that_hardware_accepts_runs(device: AscendSim, name: str) -> None:
    code, want = ACCEPTED[name]
    result = run(device, SETUP.replace("{0}", code), prelude="#include <cfloat>\n#include <math.h>\n")
    assert result.status == "ok", result.fault
    assert np.allclose(result.outputs[0][: len(want)], want, rtol=1e-6)


def test_the_pipe_may_be_initialised_again(device: AscendSim) -> None:
    result = run(device, "pipe.Init();" + SETUP.replace("{0}", "Adds(b, a, 1.0f, 64);"))
    assert result.status == "ok", result.fault
    assert np.allclose(result.outputs[0], X + 1)


def test_the_line_of_an_element_is_the_authors(device: AscendSim) -> None:
    body = SETUP.replace("{0}", "\n\nb(64) = 1.0f;")
    fault = run(device, body).fault
    assert fault is not None
    assert fault.rule == "OUT_OF_BOUNDS"
    assert source(body, 1).splitlines()[(fault.line or 0) - 1] == "b(64) = 1.0f;"


RAW = """
    __gm__ float *from = (__gm__ float *)x0, *to = (__gm__ float *)z0;
    for (int i = 0; i < 64; ++i) to[i] = from[63 - i];
    for (int i = 0; i < 64; ++i) to[i] += 1.0f;
"""
BY_TENSOR = """
    GlobalTensor<float> from, to; from.SetGlobalBuffer((__gm__ float *)x0); to.SetGlobalBuffer((__gm__ float *)z0);
    for (int i = 0; i < 64; ++i) to.SetValue(i, from.GetValue(63 - i));
    for (int i = 0; i < 64; ++i) to.SetValue(i, to.GetValue(i) + 1.0f);
"""


@pytest.mark.parametrize("raw_text", [RAW, RAW.replace("to[i] += 1.0f;", "{ __gm__ float *p = to + i; *p += 1.0f; }")])
def test_a_pointer_into_global_memory_is_followed_at_the_price_of_a_scalar_access(
    device: AscendSim, raw_text: str
) -> None:
    raw, by_tensor = run(device, raw_text), run(device, BY_TENSOR)
    assert raw.status == "ok", raw.fault
    assert np.allclose(raw.outputs[0], X[::-1] + 1)
    assert raw.mix["GetValue global"] == by_tensor.mix["GetValue global"] == 128
    assert raw.mix["SetValue global"] == by_tensor.mix["SetValue global"] == 128
    assert raw.latency_us == pytest.approx(by_tensor.latency_us, rel=0.1)


def test_values_that_are_read_before_one_of_them_is_written_may_lie_in_many_pages(device: AscendSim) -> None:
    n = 1 << 18
    body = """
    __gm__ float *from = (__gm__ float *)x0, *to = (__gm__ float *)z0;
    for (uint32_t i = 0; i < 1 << 18; i += 512) to[i] = 1.0f;
    for (uint32_t i = 0; i < 1 << 18; i += 512) {
        __gm__ float *p = to + i, *q = from + i;
        const float a = *p, b = *q;
        *p = a + b;
    }
    """
    x = np.arange(n, dtype=np.float32)
    result = Compiled(device, source(body, 1))([x], [((n,), "float32")])
    assert result.status == "ok", result.fault
    assert np.array_equal(result.outputs[0][::512], x[::512] + 1)


STRUCT = """
struct Pair { float first, second; };
__aicore__ inline Pair Sums(__gm__ float *from) {
    Pair pair, *sums = &pair;
    sums->first = 0;
    sums->second = 2;
    for (int i = 0; i < 40; ++i) sums->first += from[i];
    return pair;
}
"""
#: Stores to global memory that the compiler does not announce, because the same code has accessed their place before;
#: or that it announces before a call. All elements are 1 before them.
UNANNOUNCED = {
    "behind another store": ("__gm__ float *a = to, *b = to + 1; *a = 5; *b = 6; *a = 7;", {0: 7, 1: 6}),
    "behind a store and a read": ("__gm__ float *a = to, *b = to + 1; *a = 5; float v = *b; *a = 7 + v;", {0: 8}),
    "in a branch": ("__gm__ float *a = to; float v = *a; if (v > 0) *a = 9;", {0: 9}),
    "behind reads of many places": (
        "".join(f"__gm__ float &a{i} = to[{i}];" for i in range(18))
        + f"a0 = {' + '.join(f'a{i}' for i in range(18))}; a1 = a0 + a17;",
        {0: 18, 1: 19},
    ),
    "behind reads of many pages": (
        "".join(f"__gm__ float &a{i} = to[{i} * 1024];" for i in range(80))
        + f"a0 = {' + '.join(f'a{i}' for i in range(80))};",
        {0: 80},
    ),
    "behind a store to a part": (
        "__gm__ uint64_t *whole = (__gm__ uint64_t *)to; __gm__ uint32_t *part = (__gm__ uint32_t *)to;"
        "const uint64_t v = *whole; *part = 7; *whole = v + (1ull << 55);",
        {1: 2.0},
    ),
    "at the end of a call": ("__gm__ Pair *a = (__gm__ Pair *)to; *a = Sums(to + 2);", {0: 40, 1: 2}),
    "before a wait for other cores": ("to[0] += 1; CrossCoreSetFlag<0, PIPE_MTE3>(3); CrossCoreWaitFlag(3);", {0: 2}),
    "behind a copy": (
        "__gm__ float *a = to; __gm__ Pair *b = (__gm__ Pair *)to + 1, *c = b + 1; *a += 1; *b = *c; *a += 1; *c = *b;",
        {0: 3},
    ),
}


@pytest.mark.parametrize("name", UNANNOUNCED)
def test_a_store_through_a_pointer_into_global_memory_is_seen(device: AscendSim, name: str) -> None:
    statements, changed = UNANNOUNCED[name]
    n = 80 * 1024
    body = f"""
    __gm__ float *to = (__gm__ float *)z0;
    for (int i = 0; i < {n}; i += 1024) for (int j = i; j < i + 64; ++j) to[j] = 1;
    {{ {statements} }}
    """
    result = Compiled(device, source(body, 1, prelude=STRUCT))([np.zeros(n, np.float32)], [((n,), "float32")])
    assert result.status == "ok", result.fault
    assert {i: v for i, v in enumerate(result.outputs[0][:64]) if v != 1} == changed


COPIED_OUT = """
    GlobalTensor<uint16_t> out; out.SetGlobalBuffer((__gm__ uint16_t *)z0);
    TBuf<> memory; pipe.InitBuffer(memory, 256); LocalTensor<uint16_t> ones = memory.Get<uint16_t>();
    Duplicate(ones, (uint16_t)0x3c00, 128);
    TEventID event = GetTPipePtr()->FetchEventID(HardEvent::V_MTE3);
    SetFlag<HardEvent::V_MTE3>(event); WaitFlag<HardEvent::V_MTE3>(event);
    DataCopy(out, ones, 128);
"""
PARTS = """
struct Bits { uint32_t low : 8, high : 24; };
struct Number { float v; };
__aicore__ inline Number Next(__gm__ Number *p) { Number n, *to = &n; to->v = p->v + 3; return n; }
"""
ONES = np.full(128, 1, np.float16).view(np.uint32)
#: Stores of objects that calls return, and to bit-fields: they are announced before their own place is read. A copy has
#: filled it with ones in half precision.
READ_AFTER_THE_CHECK = {
    "of a sum": ("__gm__ half *p = (__gm__ half *)z0, *q = p + 4; *p = *p + *q;", {0: 0x3C004000}),
    "of sums in a loop": (
        "__gm__ half *p = (__gm__ half *)z0; for (int i = 0; i < 4; ++i) p[i] = p[i] + p[i];",
        {0: 0x40004000, 1: 0x40004000},
    ),
    "to bit-fields": (
        "__gm__ Bits *p = (__gm__ Bits *)z0; p->low = 1; p[1].low = 1; p[1].high = 5;",
        {0: 0x3C003C01, 1: 0x501},
    ),
    "of the result of a call": ("__gm__ Number *p = (__gm__ Number *)z0; *p = Next(p);", {0: 0x4040803C}),
}


@pytest.mark.parametrize("name", READ_AFTER_THE_CHECK)
def test_a_store_through_a_pointer_finds_what_the_device_has_there(device: AscendSim, name: str) -> None:
    statements, changed = READ_AFTER_THE_CHECK[name]
    result = Compiled(device, source(f"{COPIED_OUT} {{ {statements} }}", 1, prelude=PARTS))([X], [((64,), "float32")])
    assert result.status == "ok", result.fault
    words = result.outputs[0].view(np.uint32)
    assert {i: v for i, v in enumerate(words) if v != ONES[i]} == changed


def test_what_a_store_finds_has_the_price_and_the_wait_of_a_read(device: AscendSim) -> None:
    kept = "__gm__ Bits *p = (__gm__ Bits *)z0; p->low = 1; int v = p->high; if (!v) Duplicate(ones, (uint16_t)0, 128);"
    read = "uint16_t v = out.GetValue(0); if (v == 0) Duplicate(ones, (uint16_t)0, 128);"
    latencies = [
        Compiled(device, source(f"{COPIED_OUT} {{ {text} }}", 1, prelude=PARTS))([X], [((64,), "float32")]).latency_us
        for text in ("", read, kept)
    ]
    assert latencies[2] == pytest.approx(latencies[1], rel=0.01)
    assert latencies[2] > 1.05 * latencies[0]


def test_a_store_does_not_find_zeros_where_nothing_was_written(device: AscendSim) -> None:
    result = run(device, "for (int i = 0; i < 128; ++i) { __gm__ half *p = (__gm__ half *)z0 + i; *p = *p + *p; }")
    assert result.fault or np.isnan(result.outputs[0].view(np.float16)).all()


@pytest.mark.parametrize(
    ("access", "broken"),
    [
        ("float v = ((__gm__ float *)x0)[4096]; if (v > 0) ((__gm__ float *)z0)[0] = v;", "GM_OUT_OF_BOUNDS"),
        ("((__gm__ float *)x0)[0] = 1.0f;", "WRITE_TO_INPUT"),
        ("float v = *(__gm__ float *)z0; if (v > 0) ((__gm__ float *)z0)[0] = v;", "UNINITIALISED"),
        ("uint64_t v = *(__gm__ uint64_t *)(x0 + 4); if (v) ((__gm__ float *)z0)[0] = 1.0f;", "BAD_POINTER"),
        ("float v = *(__gm__ float *)(x0 - 4); if (v > 0) ((__gm__ float *)z0)[0] = v;", "BAD_POINTER"),
    ],
)
def test_a_pointer_that_strays_is_a_fault(device: AscendSim, access: str, broken: str) -> None:
    fault = run(device, access).fault
    assert fault is not None
    assert fault.rule == broken


@pytest.mark.parametrize(
    ("statement", "compiles"),
    [
        ("uint32_t n = p.v[0]; DataCopyParams copy{n, 1, 0, 0};", False),
        ("uint32_t n = p.v[0]; DataCopyExtParams copy{n, 4, 0, 0, 0};", False),
        ("uint32_t n = p.v[0]; DataCopyParams copy{(uint16_t)n, 1, 0, 0};", True),
        ("uint32_t n = p.v[0]; DataCopyExtParams copy{1, n, n, 0, 0};", True),
    ],
)
def test_braces_do_not_narrow(device: AscendSim, statement: str, compiles: bool) -> None:
    build = device.build(Kernel(source(statement, 1)))
    assert build.ok == compiles
    assert compiles or "narrowing conversion" in build.diagnostics[0].message


def test_single_shapes_are_aligned_as_asked(device: AscendSim) -> None:
    text = source("", 1, prelude='#include "tiling/tiling_api.h"').replace(
        "    Ints ints{};",
        "    Ints ints{}; TCubeTiling t; matmul_tiling::MultiCoreMatmulTiling m;\n"
        "    m.SetDim(4); m.SetShape(256, 256, 64);\n"
        "    m.SetAlignSplit(64, 32, -1); if (m.GetTiling(t) || t.singleCoreM % 64 || t.singleCoreN % 32) return 7;",
    )
    result = Compiled(device, text)([X], [((N,), "float32")])
    assert result.code == 0, result


# ---- what kernels that ran on hardware tell about time -------------------------------------------------------------

READS = " ".join(f"float v{k} = a.GetValue(i + {k});" for k in range(8))
WRITES = " ".join(f"b.SetValue(i + {k}, v{k} + 1.0f);" for k in range(8))
BATCHED = f"for (int n = 0; n < N; n += 64) for (int i = 0; i < 64; i += 8) {{ {READS} {WRITES} }}"
AWAITED = "for (int n = 0; n < N; n += 64) for (int i = 0; i < 64; ++i) b.SetValue(i, a.GetValue(i) + 1.0f);"


@pytest.mark.parametrize(
    ("loop", "least", "most"), [(BATCHED, 11, 12.6), (AWAITED, 28, 37)], ids=["batched", "awaited"]
)
def test_a_scalar_read_addition_and_write_costs_more_if_the_load_is_awaited(
    device: AscendSim, loop: str, least: float, most: float
) -> None:
    """Published: 11 to 12.6 cycles with batched loads, about 37 if each store waits for its load."""
    short, long = (run(device, SETUP.replace("{0}", loop.replace("N", str(n)))) for n in (1024, 5120))
    assert short.latency_us is not None
    assert long.latency_us is not None
    assert least <= (long.latency_us - short.latency_us) * 1800 / 4096 <= most


def test_a_stream_that_reads_and_writes_alike_is_as_fast_as_measured(device: AscendSim) -> None:
    """Published: 1.27 to 1.35 TB/s; here in the steady state, without what stays in L2 at the end."""
    build = device.build(Kernel((FOLDER.parent / "examples" / "relu.asc").read_text()))

    def latency(count: int) -> float:
        return device.run(build, Inputs(Signature((InputSpec((count,)),), (TensorSpec((count,)),)))).latency_us or 0.0

    count = 1 << 26
    assert 1.27 <= 8 * count / (latency(2 * count) - latency(count)) / 1e6 <= 1.35


# ---- flags that the compiler inserts --------------------------------------------------------------------------------

UNORDERED = SETUP.replace("DataCopy(a, in, 64); PipeBarrier<PIPE_ALL>();", "DataCopy(a, in, 64);").replace(
    "PipeBarrier<PIPE_ALL>(); DataCopy(out", "DataCopy(out"
)


def test_missing_flags_are_a_fault_unless_they_are_inserted(device: AscendSim) -> None:
    body = UNORDERED.replace("{0}", "Adds(b, a, 1.0f, 64);")
    fault = run(device, body).fault
    assert fault is not None
    assert fault.rule == "MISSING_SYNC"
    with AscendSim(auto_sync=True) as inserting:
        result = run(inserting, body)
        assert result.status == "ok", result.fault
        assert np.allclose(result.outputs[0], X + 1)
        by_hand = run(inserting, SETUP.replace("{0}", "Adds(b, a, 1.0f, 64);"))
        assert inserting.identity() != device.identity()
        assert result.latency_us is not None
        assert by_hand.latency_us is not None
        assert 0.9 * by_hand.latency_us < result.latency_us <= by_hand.latency_us
