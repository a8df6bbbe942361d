"""Every instruction is paid by its pipe, each time, and in proportion to its operands."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml
from timeline_driver import V, launch, time

from kernel_gym.hardware.ascend_sim import chip, marshal
from kernel_gym.hardware.ascend_sim.device import AscendSim
from tests.support.kernels import Compiled, source

HERE = Path(__file__)
ABI = Path(chip.__file__).parent / "include" / "abi.h"
TABLE: dict[str, dict[str, Any]] = yaml.safe_load(HERE.with_name("instructions.yaml").read_text())
ENTRIES = {name: (kind, entry) for kind in ("vector", "cube", "mixed") for name, entry in TABLE[kind].items()}
SIZES = (1024, 2048, 4096)

#: Buffers by kind of core; `n` is the operand's size and `times` how often the code runs.
FRAMES = {
    "vector": """
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    TQue<TPosition::VECIN, 1> queue; TBuf<> ta, tb, tc, tm, tt, ti, th; TBufPool<TPosition::VECCALC> pool;
    pipe.InitBuffer(queue, 1, 32); pipe.InitBufPool(pool, 1024);
    pipe.InitBuffer(ta, 32768); pipe.InitBuffer(tb, 32768); pipe.InitBuffer(tc, 32768); pipe.InitBuffer(tm, 1024);
    pipe.InitBuffer(tt, 32768); pipe.InitBuffer(ti, 16384); pipe.InitBuffer(th, 32768);
    LocalTensor<float> a = ta.Get<float>(), b = tb.Get<float>(), c = tc.Get<float>();
    LocalTensor<uint8_t> m = tm.Get<uint8_t>(), t = tt.Get<uint8_t>();
    LocalTensor<int32_t> i = ti.Get<int32_t>(); LocalTensor<uint32_t> u = ti.Get<uint32_t>();
    LocalTensor<half> h = th.Get<half>();
    float total = 0;
""",
    "cube": """
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIC_ONLY);
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0); out.SetGlobalBuffer((__gm__ float *)z0);
    TBuf<TPosition::A1> t1; TBuf<TPosition::A2> ta; TBuf<TPosition::B2> tb; TBuf<TPosition::CO1> tc;
    pipe.InitBuffer(t1, 262144); pipe.InitBuffer(ta, 65536); pipe.InitBuffer(tb, 65536); pipe.InitBuffer(tc, 131072);
    LocalTensor<float> l1 = t1.Get<float>(), l0a = ta.Get<float>(), l0c = tc.Get<float>();
    LocalTensor<half> h1 = t1.Get<half>(), h0a = ta.Get<half>(), h0b = tb.Get<half>();
""",
    "mixed": """
    using A = MatmulType<TPosition::GM, CubeFormat::ND, float>;
    Matmul<A, A, A> mm; TCubeTiling t{};
    t.M = 256; t.N = t.Ka = t.Kb = t.singleCoreN = t.singleCoreK = 64; t.singleCoreM = 256;
    t.baseM = t.baseN = t.baseK = 16; t.depthA1 = t.depthB1 = 1;
    REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), mm, &t);
    GlobalTensor<float> in, out; in.SetGlobalBuffer((__gm__ float *)x0);
    out.SetGlobalBuffer((__gm__ float *)z0 + GetBlockIdx() * 65536);
""",
}


def body(kind: str) -> str:
    """One kernel for all entries of a kind: the first int chooses."""
    cases = "".join(
        f"case {number}: for (int r = 0; r < times; ++r) {{ {entry['code']} PipeBarrier<PIPE_ALL>(); }} break;\n"
        for number, entry in enumerate(TABLE[kind].values())
    )
    return FRAMES[kind] + f"const int n = p.v[1], times = p.v[2];\nswitch (p.v[0]) {{\n{cases}}}\n"


@pytest.fixture(scope="module")
def kernels() -> Iterator[dict[str, Compiled]]:
    with AscendSim() as device:
        include = {"mixed": '#include "lib/matmul_intf.h"\n'}
        yield {kind: Compiled(device, source(body(kind), 1, prelude=include.get(kind, ""))) for kind in FRAMES}


def busy(kernels: dict[str, Compiled], name: str, n: int, times: int) -> dict[str, float]:
    kind, _ = ENTRIES[name]
    run = kernels[kind](
        [np.ones(131072, np.float32)], [((131072,), "float32")], False, [list(TABLE[kind]).index(name), n, times]
    )
    assert run.status == "ok", run.fault
    assert run.profile is not None
    return dict(run.profile.pipes)


def test_every_call_of_the_interface_has_an_entry_on_its_cost() -> None:
    said = [*ENTRIES, *TABLE["elsewhere"], *TABLE["free"]]
    assert len(said) == len(set(said))
    assert set(said) == {call.name for call in marshal.parse(ABI.read_text())}


def test_tests_named_for_other_calls_exist() -> None:
    tests = "".join(path.read_text() for path in HERE.parent.glob("test_*.py"))
    assert [name for name in TABLE["elsewhere"].values() if f"def {name}(" not in tests] == []


@pytest.mark.parametrize("name", ENTRIES)
def test_every_call_takes_time_on_its_pipe(kernels: dict[str, Compiled], name: str) -> None:
    pipe = ENTRIES[name][1]["pipe"]
    empty, once, thrice = (busy(kernels, name, SIZES[0], times) for times in (0, 1, 3))
    paid = {key: once.get(key, 0.0) - empty.get(key, 0.0) for key in once}
    assert paid[pipe] > 0
    assert {key for key, value in paid.items() if value > 0 and key != "S"} <= {pipe} | OTHERS.get(name, set())
    assert thrice[pipe] - empty.get(pipe, 0.0) > 2.0 * paid[pipe]


#: Calls that need another unit, too: a Matmul is loads, moves, products and results.
OTHERS = {"matmul": {"MTE1", "MTE2", "FIX"}}


@pytest.mark.parametrize("name", [name for name, (_, entry) in ENTRIES.items() if entry.get("grows")])
def test_the_time_of_a_call_grows_with_its_operands(kernels: dict[str, Compiled], name: str) -> None:
    pipe = ENTRIES[name][1]["pipe"]
    small, middle, large = (busy(kernels, name, n, 1)[pipe] for n in SIZES)
    assert small < middle < large
    assert large - middle > 1.9 * (middle - small)


# ---- operations of each family --------------------------------------------------------------------------------------

FAMILIES = {"vector": 0, "library": 1, "tile": 14}


def names(enum: str) -> list[str]:
    """The members of an enumeration of abi.h, without its end."""
    text = re.search(rf"enum {enum} : \w+ \{{(.*?)\}};", ABI.read_text(), re.DOTALL)
    assert text is not None
    return re.findall(r"ASC_\w+", re.sub(r"//.*", "", text.group(1)))[:-1]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_operation_of_a_family_costs_its_repeats(family: str, tmp_path: Path) -> None:
    listed = names(f"asc_{family}_op")
    figures = {key.split(".")[1] for key in chip.load().figures if key.startswith(f"{family}.")}
    assert len(listed) == len(figures)
    number, sizes = FAMILIES[family], (8, 16, 32)
    records = [f"vector pipe={V} family={number} op={op} repeats={n}" for op in range(len(listed)) for n in sizes]
    time(launch([records]), None, str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    durations = [event["dur"] for event in events if event["ph"] == "X" and "line" in event.get("args", {})]
    assert len(durations) == len(records)
    for op, name in enumerate(listed):
        small, middle, large = durations[3 * op : 3 * op + 3]
        assert 0 < small < middle < large, name
        assert large - middle == pytest.approx(2 * (middle - small), rel=0.01), name


#: Instructions that compute the same as a function of the library, at least as fast as any other.
SAME = {
    "log": ["ln"],
    "log2": ["ln", "muls"],
    "log10": ["ln", "muls"],
    "exp": ["exp"],
    "clamp_max": ["mins"],
    "clamp_min": ["maxs"],
    "xor": ["or", "and", "not", "and"],
    "reglu": ["relu", "mul"],
    "sigmoid": ["muls", "exp", "adds", "reciprocal"],
    "silu": ["muls", "exp", "adds", "div"],
    "swish": ["muls", "exp", "adds", "div"],
    "swiglu": ["muls", "exp", "adds", "div", "mul"],
    "tanh": ["muls", "exp", "adds", "adds", "div"],
    "sinh": ["exp", "reciprocal", "sub", "muls"],
    "cosh": ["exp", "reciprocal", "add", "muls"],
    "asinh": ["mul", "adds", "sqrt", "add", "ln"],
    "acosh": ["mul", "adds", "sqrt", "add", "ln"],
    "atanh": ["adds", "muls", "adds", "div", "ln", "muls"],
    "faster_gelu": ["muls", "exp", "adds", "div"],
    "gelu": ["mul", "mul", "muls", "add", "muls", "exp", "adds", "div"],
    "geglu": ["mul", "mul", "muls", "add", "muls", "exp", "adds", "div", "mul"],
    "power": ["ln", "mul", "exp"],
}
#: There is none for words of 32 bits.
XOR = ("xor", "ASC_F32")


@pytest.mark.parametrize(
    ("function", "dtype"), [(name, dtype) for name in SAME for dtype in ("ASC_F32", "ASC_F16") if (name, dtype) != XOR]
)
@pytest.mark.slow
def test_a_function_of_the_library_costs_no_less_than_its_instructions(function: str, dtype: str) -> None:
    operations = {family: _figures(family) for family in ("vector", "library")}
    kind = names("asc_dtype").index(dtype)
    for repeats in (1, 2, 3, 5, 10, 30, 64, 128, 255):
        parts = [f"family=0 op={operations['vector'].index(part)}" for part in SAME[function]]
        whole = f"family=1 op={operations['library'].index(function)}"
        assert _on_v([whole], repeats, kind) > _on_v(parts, repeats, kind), repeats


def _figures(family: str) -> list[str]:
    """The rows of a family in a chip profile, in the order of its operations."""
    return list(yaml.safe_load((chip.CHIPS / "base.yaml").read_text())[family])


def _on_v(parts: list[str], repeats: int, dtype: int = 0) -> float:
    records = [f"vector pipe={V} repeats={repeats} dtype={dtype} {part}" for part in parts]
    return float(time(launch([records]))["pipes"]["V"])


def test_the_rows_of_a_profile_are_in_the_order_of_the_operations() -> None:
    for family in ("vector", "library"):
        rows = [row.replace("_", "").upper() for row in _figures(family)]
        listed = [name.removeprefix("ASC_").replace("EXPHIGH", "EXP") for name in names(f"asc_{family}_op")]
        assert rows == listed


#: Sort, TopK with k = p.v[2], and what they consist of: Sort32, then MrgSort of four lists at a time.
SORTING = (
    FRAMES["vector"]
    + """
    const int n = p.v[1], k = p.v[2];
    LocalTensor<float> tmp = tt.Get<float>();
    switch (p.v[0]) {
    case 0: Sort<float, true>(c, a, u, tmp, n / 32); break;
    case 1: TopK(c, i, a, i, tm.Get<bool>(), t, k, TopkTiling{}, TopKInfo{1, n, n}); break;
    case 2:
        Sort32(c, a, u, n / 32);
        for (int length = 32, lists = n / 32; lists > 1; length *= 4, lists = (lists + 3) / 4) {
            const int kept = length < k ? length : k, merged = lists < 4 ? lists : 4;
            MrgSort4Info how;
            how.ifExhaustedSuspension = false; how.validBit = (1 << merged) - 1; how.repeatTimes = lists / merged;
            for (int j = 0; j < 4; ++j) how.elementLengths[j] = kept;
            MrgSort(b, MrgSortSrcList<float>(c, c[2 * kept], c[4 * kept], c[6 * kept]), how);
        }
    }
"""
)


@pytest.fixture(scope="module")
def sorting() -> Iterator[Compiled]:
    with AscendSim() as device:
        yield Compiled(device, source(SORTING, 1))


@pytest.mark.parametrize(
    ("elements", "kept"), [(32, 32), (128, 128), (512, 512), (1024, 1024), (2048, 64), (2048, 2048), (4096, 4096)]
)
def test_sorting_costs_no_less_than_its_instructions(sorting: Compiled, elements: int, kept: int) -> None:
    values = [np.ones(131072, np.float32)]

    def on_v(what: int) -> float:
        run = sorting(values, [((131072,), "float32")], False, [what, elements, kept])
        assert run.status == "ok", run.fault
        assert run.profile is not None
        return run.profile.pipes["V"]

    if elements < 4096:  # for which TopK has too little temporary space
        assert on_v(1) >= on_v(2)
    if kept == elements:
        assert on_v(0) >= on_v(2)


# ---- set-up ---------------------------------------------------------------------------------------------------------


def test_more_cores_cost_their_launch() -> None:
    one, all_cores, cube = (
        time(launch([["plain_code a=1"]] * cores, kind))["latency_us"] for cores, kind in ((1, 0), (48, 0), (1, 1))
    )
    assert one < all_cores
    assert one < cube


def test_buffers_cost_their_set_up() -> None:
    for call in ("0", "1"):  # a TPipe, a buffer
        one, two = (time(launch([[f"overhead op={call}"] * times]))["pipes"]["S"] for times in (1, 2))
        assert 0 < one < two
