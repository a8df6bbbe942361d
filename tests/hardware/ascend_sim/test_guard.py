"""Kernel code touches its stack, its constants and its arguments; whatever else it reaches for ends the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from kernel_gym.hardware.ascend_sim import chip, compiler, gimple
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec
from kernel_gym.verifier.screening import binary

FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
#include <algorithm>
struct Large { uint64_t words[64]; };
union Bent { uint64_t number; uint64_t *pointer; const Large *large; };
constexpr uint64_t TABLE[4] = {1, 2, 3, 4};
@outside@
__global__ __aicore__ void fill(GM_ADDR y, uint64_t *hosts) {
    AscendC::TPipe pipe;
    AscendC::TBuf<AscendC::TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 256);
    uint64_t own[4] = {0, 1, 2, 3};
    uint64_t sum = 0;
    @core@
    AscendC::LocalTensor<float> ones = buffer.Get<float>();
    AscendC::Duplicate(ones, 1.0f, 64);
    AscendC::PipeBarrier<PIPE_ALL>();
    AscendC::GlobalTensor<float> out;
    out.SetGlobalBuffer((__gm__ float *)y, 64);
    AscendC::SetFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::WaitFlag<AscendC::HardEvent::V_MTE3>(EVENT_ID0);
    AscendC::DataCopy(out, ones, 64);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    uint64_t own[4] = {0, 1, 2, 3};
    uint64_t sum = 0;
    int n = a->outputs[0].shape[0];
    @host@
    fill<<<1, nullptr, stream>>>((GM_ADDR)a->outputs[0].ptr, own);
    return 0;
}
"""
BEND = "Bent bent; bent.pointer = own;"

#: Where, and what it does there that an honest kernel may do too.
HONEST = {
    "own array": ("core", "for (int i = 0; i < 4; ++i) { sum += own[i]; own[i] = sum; }"),
    "a pointer to it": ("core", "uint64_t *p = own + 3; while (p != own) *p-- = sum;"),
    "constants": ("core", "for (int i = 0; i < 4; ++i) sum += TABLE[i];"),
    "arguments of the host function": ("core", "for (int i = 0; i < 4; ++i) sum += hosts[i];"),
    "large objects": ("core", "Large one{}; Large two = one; one = two; own[0] = one.words[63];"),
    "copies of the library": ("core", "uint64_t two[4]; std::copy(own, own + 4, two); std::fill(two, two + 4, 7ull);"),
    "a recursive function": (
        "host",
        "struct F { static uint64_t f(uint64_t *p) { return *p > 2 ? 0 : f(p + 1) + (*p += 1); } }; F::f(own);",
    ),
    "printing": ("core", 'AscendC::printf("%5.2f %d %s %lu%%\\n", 1.5f, 3, "text", sum);'),
    "a switch": (
        "host",
        "switch (n) { case 1: sum = 1; break; case 3: sum = 4; break; case 5: sum = 6; break; case 64: ++sum; }",
    ),
}

STRAYS = {
    "below the arguments": ("host", "sum = ((const uint64_t *)a)[-1];"),
    "above the arguments": ("host", "sum = ((const uint64_t *)a)[1 << 20];"),
    "an input that the task does not have": ("host", "sum = a->inputs[n / 32].ndim;"),
    "an output that the task does not have": ("host", "sum = a->outputs[n / 64].shape[0];"),
    "into the arguments": ("host", "((KernelTensor *)a->inputs)[0].ndim = 0;"),
    "up the host's stack": ("host", "uint64_t *p = own; for (int i = 4; i < 100000; ++i) sum += p[i];"),
    "up a core's stack": ("core", "uint64_t *p = own; for (int i = 4; i < 100000; ++i) sum += p[i];"),
    "beyond an array": ("core", "for (int i = 0; i < 5; ++i) sum += own[i];"),
    "beyond an array in an object": ("host", "Large one{}; one.words[n] = 1;"),
    "below an array": ("host", "sum = own[3 - n];"),
    "a return address": ("host", "uint64_t *p = own; for (int i = 63; i >= 4; --i) p[i] = 0;"),
    "a return address by offset": ("core", "uint64_t *p = own; for (int i = 63; i >= 4; --i) p[i] ^= 1;"),
    "the host's stack from a core": ("core", "hosts[0] = 1;"),
    "the host's stack behind a read": ("core", "uint64_t *p = hosts; *p += 1;"),
    "a return address behind a read": ("core", "for (uint64_t *p = own + 4; p < own + 64; ++p) *p += 1;"),
    "a constant behind a read": ("core", "uint64_t *p = (uint64_t *)TABLE; *p += 1;"),
    "an argument behind a read": ("host", "int32_t *p = (int32_t *)&a->num_inputs; *p += 1;"),
    "a pointer bent to read": ("core", f"{BEND} bent.number ^= 1ull << 40; sum = *bent.pointer;"),
    "a pointer bent to write": ("host", f"{BEND} bent.number ^= 1ull << 40; *bent.pointer = 1;"),
    "a large object from elsewhere": (
        "host",
        f"{BEND} bent.number -= 1ull << 30; Large copy = *bent.large; sum = copy.words[3];",
    ),
    "a copy of the library's": (
        "host",
        f"{BEND} bent.number -= 1ull << 30; std::copy(bent.pointer, bent.pointer + n, own);",
    ),
    "a fill of the library's": ("host", f"{BEND} bent.number -= 1ull << 30; std::fill_n((char *)bent.pointer, n, 0);"),
    "through the constants": ("host", "const uint64_t *p = TABLE; for (int i = 0; i < 1 << 20; ++i) sum += p[i];"),
    "global memory": ("host", "sum = *(const uint64_t *)a->inputs[0].ptr;"),
    "nothing": ("core", f"{BEND} bent.number = 0; sum = *bent.pointer;"),
    "below its stack pointer": ("core", "uint64_t *p = own; p -= 4096; sum = *p;"),
    "into a frame that is still to come": ("host", "uint64_t *p = own; p -= 64; *p = sum;"),
}

POINTERS = {
    "a function pointer": ("uint64_t f(uint64_t x) { return x; }", "uint64_t (*p)(uint64_t) = f; sum = p(3);"),
    "a virtual function": (
        "struct V { virtual uint64_t f() { return 1; } }; struct W : V { uint64_t f() override { return 2; } };",
        "W w; V *v = &w; sum = v->f();",
    ),
    "a computed goto": ("", "void *where[2] = {&&here, &&there}; goto *where[n % 2]; here: sum = 1; there: ++sum;"),
}


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as opened:
        yield opened


def source(place: str, statement: str, outside: str = "") -> str:
    text = FILE.replace("@outside@", outside).replace(f"@{place}@", statement)
    return text.replace("@core@", "").replace("@host@", "")


def run(device: AscendSim, place: str, statement: str, compute: bool, outside: str = "") -> Run:
    build = device.build(Kernel(source(place, statement, outside)))
    assert build.ok, build.diagnostics
    assert build.binary is not None
    finding, mistakes = binary.screen(build.binary)
    assert finding is None, finding
    assert not mistakes
    signature = Signature((InputSpec((64,)),), (TensorSpec((64,)),))
    return device.run(build, Inputs(signature, (np.zeros(64, np.float32),) if compute else None))


@pytest.mark.parametrize("name", HONEST)
def test_accesses_to_the_kernels_own_memory_run(device: AscendSim, name: str) -> None:
    result = run(device, *HONEST[name], compute=True)
    assert result.status == "ok", result.fault
    assert (result.outputs[0] == 1).all()


@pytest.mark.parametrize("name", STRAYS)
def test_accesses_to_other_memory_are_faults(device: AscendSim, name: str) -> None:
    result = run(device, *STRAYS[name], compute=len(name) % 2 == 0)
    assert result.fault is not None
    assert result.fault.rule == "BAD_POINTER", result.fault


def test_an_array_of_variable_length_does_not_compile(device: AscendSim) -> None:
    """Its function keeps the stack pointer in a word of its frame."""
    build = device.build(Kernel(source("core", "uint64_t n = AscendC::GetBlockNum(); uint64_t wide[n]; wide[0] = 1;")))
    assert not build.ok
    assert "variable length array" in build.diagnostics[0].message


#: Each block writes its half of the output, unless it finds something on its stack.
LEAVE = """
__aicore__ inline uint64_t Exchange(uint64_t *word, uint64_t value) {
    const uint64_t old = *word;
    *word = value;
    return old;
}
__aicore__ inline uint64_t Leave(uint64_t value) {
    uint64_t words[512];
    return Exchange(words + 7, value);
}
"""
FIND = """
    if (AscendC::GetBlockIdx() == 1 && Leave(0) == 77) return;
    Leave(77);
    y += 128 * AscendC::GetBlockIdx();
"""


def test_a_core_finds_nothing_that_another_one_has_left_on_its_stack(device: AscendSim) -> None:
    text = source("core", FIND, LEAVE).replace("fill<<<1,", "fill<<<2,").replace(", 64)", ", 32)")
    build = device.build(Kernel(text))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((64,)),), (TensorSpec((64,)),))
    result = device.run(build, Inputs(signature, (np.zeros(64, np.float32),)))
    assert result.status == "ok", result.fault
    assert (result.outputs[0] == 1).all()


def test_the_stack_of_a_core_lies_at_no_fixed_distance_from_other_memory(device: AscendSim) -> None:
    """A read at a constant distance behind a variable, should the guard overlook one, would find other cores' words."""
    distance = "sum = ((uint64_t)own - (uint64_t)TABLE) >> 16;"
    build = device.build(Kernel(source("core", distance).replace("1.0f", "(float)(int)(sum % 65536)")))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((64,)),), (TensorSpec((64,)),))
    inputs = Inputs(signature, (np.zeros(64, np.float32),))
    assert len({float(device.run(build, inputs).outputs[0][0]) for _ in range(3)}) > 1


@pytest.mark.parametrize(("index", "array"), [("4", "own[4]"), ("-1", "own[-1]"), ("64", "Large{}.words[64]")])
def test_a_constant_index_beyond_an_array_does_not_compile(device: AscendSim, index: str, array: str) -> None:
    build = device.build(Kernel(source("core", f"sum = {array};")))
    assert not build.ok
    assert build.diagnostics[0].message == f"index {index} is beyond the end of its array"


@pytest.mark.parametrize(
    ("version", "bounds", "beyond"),
    [(12, "2, 3", []), (12, "3, 3", []), (12, "4, 3", [4]), (13, "3, 4", []), (13, "4, 4", [4]), (14, "-1, 4", [-1])],
)
def test_dumps_have_the_last_index_or_the_number_of_elements(version: int, bounds: str, beyond: list[int]) -> None:
    dump = f"gimple_call <.UBSAN_BOUNDS, NULL, 0B, {bounds}>"
    assert list(gimple.beyond_arrays(dump, version)) == beyond


def test_an_array_without_values_holds_no_value_twice(device: AscendSim) -> None:
    """A kernel that takes one of its elements for zero would clear it for nothing."""
    sums = "uint64_t many[64]; int same = 0; uint64_t *p = many; for (int i = 1; i < 64; ++i) same += p[i] == p[0];"
    result = run(device, "core", sums + " if (same) sum = *(uint64_t *)8;", compute=True)
    assert result.status == "ok", result.fault


#: Returns a word that an array without values holds.
FILL = """
__aicore__ inline uint64_t Held() {
    uint64_t many[64];
    const uint64_t *p = many;
    return p[AscendC::GetBlockNum()];
}
"""


def held(device: AscendSim, blocks: int = 1, by_core: int = 0, by_host: int = 0, launches: int = 1, **more: Any) -> Any:
    """Return what an array holds in each core of the last launch, after core 0 and the host function filled others."""
    statement = "if (AscendC::GetBlockIdx() == 0) for (int i = 0; i < (int)hosts[0]; ++i) sum += Held();"
    text = source("core", f"{statement} sum = Held(); y += 256 * AscendC::GetBlockIdx();", FILL)
    text = text.replace("1.0f", "(float)(int)(sum % 65536)").replace("fill<<<1,", "fill<<<(uint32_t)a->ints[0],")
    before = "own[0] = a->ints[1]; for (int i = 0; i < a->ints[2]; ++i) own[1] += Held();\n"
    text = text.replace("    fill<<<", f"{before}    for (int i = 0; i < a->ints[3]; ++i) fill<<<")
    build = device.build(Kernel(text))
    assert build.ok, build.diagnostics
    values = (np.full(64, more.pop("value", 0.0), np.float32),)
    ints = (blocks, by_core, by_host, launches)
    signature = Signature((InputSpec((64,)),), (TensorSpec((64 * blocks,)),), ints=ints)
    result = device.run(build, Inputs(signature, values, **more))
    assert result.status == "ok", result.fault
    return tuple(result.outputs[0][::64])


def test_what_an_array_without_values_holds_follows_from_the_key_alone(device: AscendSim) -> None:
    """A model of a bundle chooses the values of its launches, and which of them are the same tensor."""
    found = {held(device, key=7), held(device, key=7, value=1.0), held(device, key=7, numbers=(1, 0))}
    assert len(found) == 1
    others = ({"key": 8}, {"poison": 90}, {"launch": 1}, {"effort": 2})
    found |= {held(device, **{"key": 7} | other) for other in others}
    assert len(found) == 1 + len(others)


def test_no_core_can_tell_how_many_variables_others_have_filled(device: AscendSim) -> None:
    """Cores that can would pass each other sums without waiting for each other."""
    first, second = held(device, blocks=2)
    assert first != second
    changed, same = held(device, blocks=2, by_core=5)
    assert (changed != first, same) == (True, second)
    assert held(device, blocks=2, by_host=5) == (first, second)
    assert not set(held(device, blocks=2, launches=2)) & {first, second}


@pytest.mark.parametrize("array", ["int more[];", "int more[0];"])
def test_an_array_without_an_end_reaches_no_further_than_a_pointer(device: AscendSim, array: str) -> None:
    struct = f"struct Open {{ int n; {array} }};"
    result = run(
        device, "core", "Open open; open.n = 1; open.more[5000000 + (int)own[0]] = 1;", compute=False, outside=struct
    )
    assert result.fault is not None
    assert result.fault.rule == "BAD_POINTER"


def test_warnings_that_nobody_reads_are_a_compile_error(device: AscendSim) -> None:
    warned = "".join(f"const char own{k} = 1000;" for k in range(16_000))
    (error,) = device.build(Kernel(source("core", "", warned))).diagnostics
    assert "thousands of warnings" in error.message


def test_accesses_far_up_the_stack_end_at_the_limit_of_basic_blocks(device: AscendSim) -> None:
    deep = """__aicore__ uint64_t Deep(uint64_t *p, int n) {
        if (n) return Deep(p, n - 1) + *p;
        for (int i = 0; i < 20000; ++i) *p = *p + 1;
        return *p;
    }"""
    assert run(device, "core", "sum = Deep(own, 20);", compute=False, outside=deep).status == "ok"
    result = run(device, "core", "sum = Deep(own, 3000);", compute=False, outside=deep)
    assert result.fault is not None
    assert result.fault.rule == "BUDGET"


def test_a_kernel_with_more_code_than_dumps_can_describe_is_told_so(
    device: AscendSim, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = "g++: internal compiler error: File size limit exceeded signal terminated program cc1plus"
    monkeypatch.setattr(compiler, "call_confined", lambda *_: (1, words))
    (error,) = device.build(Kernel(source("core", "sum = 1;"))).diagnostics
    assert error.message.startswith("the kernel is compiled to more than about 800 KB of code: use fewer")


@pytest.mark.parametrize("name", POINTERS)
def test_calls_through_pointers_are_a_compile_error(device: AscendSim, name: str) -> None:
    outside, statement = POINTERS[name]
    build = device.build(Kernel(source("host", statement, outside)))
    (error,) = build.diagnostics
    assert "through a pointer, a cast or a virtual table" in error.message or "the address of a label" in error.message


def test_printing_writes_nothing_and_reads_no_more_than_the_kernel_may(device: AscendSim) -> None:
    statement = f'{BEND} bent.number ^= 1ull << 40; AscendC::printf("[%s] %n %d", (const char *)bent.pointer, own, 5);'
    result = run(device, "core", statement, compute=True)
    assert result.status == "ok", result.fault
    assert "[]" in result.printed


PEEK = """#include "kernel_operator.h"
#include "kernel_gym.h"
__aicore__ inline float one(const AscendC::GlobalTensor<float> &x) { return x.GetValue(5); }
__aicore__ inline uint32_t rest(float wanted) {
    volatile float stale[2048];
    uint32_t found = 0;
    for (uint32_t i = 0; i < 2048; ++i) found += stale[i] == wanted;
    return found;
}
__global__ __aicore__ void look(GM_ADDR x, GM_ADDR y) {
    AscendC::GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x, 64);
    out.SetGlobalBuffer((__gm__ float *)y, 64);
    float v = one(in);
    uint32_t neighbours = rest(1007.0f);
    for (uint32_t i = 0; i < 64; ++i) out.SetValue(i, v + neighbours);
    AscendC::DataCacheCleanAndInvalid<float, AscendC::CacheLine::ENTIRE_DATA_CACHE>(out);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    look<<<1, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    return 0;
}
"""


def test_a_read_leaves_no_neighbours_on_the_stack(device: AscendSim) -> None:
    build = device.build(Kernel(PEEK))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((64,)),), (TensorSpec((64,)),))
    values = np.arange(1000, 1064, dtype=np.float32)
    result = device.run(build, Inputs(signature, (values,)))
    assert result.status == "ok", result.fault
    assert (result.outputs[0] == 1005.0).all(), "the element asked for, and nothing of the rest"


@pytest.mark.parametrize("status", [0, 1, 101, 102, 125])
def test_the_exit_status_of_a_kernel_is_a_fault_of_the_kernel(device: AscendSim, status: int) -> None:
    """None of them is taken for a sandbox that could not be set up, which would be an error of the device."""
    text = f"""#include "kernel_gym.h"
extern "C" void _exit(int);
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {{ _exit({status}); return 0; }}
"""
    build = device.build(Kernel(text))
    assert build.ok, build.diagnostics
    run = device.run(build, Inputs(Signature((), (TensorSpec((64,)),)), ()))
    assert run.status == "fault"
    assert run.fault is not None
    assert run.fault.rule == ("LOAD" if status == 102 else "CRASH")


#: A temporary whose constructor sets nothing holds what lies on the stack: each core writes it out, behind its address.
LEFT = """#include "kernel_operator.h"
#include "kernel_gym.h"
struct Left { uint64_t words[600]; __aicore__ inline Left() {} };
__aicore__ inline void Show(const Left &left, AscendC::GlobalTensor<int32_t> &out) {
    uint64_t word = (uint64_t)&left;
    for (uint32_t i = 0; i < 600; ++i) {
        out.SetValue(2 * i, (int32_t)word);
        out.SetValue(2 * i + 1, (int32_t)(word >> 32));
        word = left.words[i];
    }
}
__aicore__ inline void Peek(AscendC::GlobalTensor<int32_t> &out) { Show(Left(), out); }
__global__ __aicore__ void look(GM_ADDR x, GM_ADDR y) {
    AscendC::GlobalTensor<int32_t> out;
    AscendC::GlobalTensor<float> in;
    const uint32_t core = AscendC::GetBlockIdx();
    out.SetGlobalBuffer((__gm__ int32_t *)y + core * 1200, 1200);
    in.SetGlobalBuffer((__gm__ float *)x, 64);
    @call@
    Peek(out);
    AscendC::DataCacheCleanAndInvalid<int32_t, AscendC::CacheLine::ENTIRE_DATA_CACHE>(out);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    look<<<4, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->outputs[0].ptr);
    return 0;
}
"""
CALLS = {
    "nothing": "",
    "a record": "AscendC::PipeBarrier<PIPE_ALL>();",
    "a read": "const float v = in.GetValue(5);",
    "a read by a pointer": "const float v = ((__gm__ float *)x)[7];",
    "a write by a pointer": "((__gm__ int32_t *)y)[core * 1200] = 5; const float v = in.GetValue(5);",
    "a queue": "AscendC::TPipe pipe; AscendC::TQue<AscendC::TPosition::VECIN, 2> q; pipe.InitBuffer(q, 2, 256);"
    "auto t = q.AllocTensor<float>(); q.FreeTensor(t);",
    "all cores": "AscendC::SyncAll();",
    "a flag": "AscendC::CrossCoreSetFlag<0, PIPE_MTE3>(core); AscendC::CrossCoreSetFlag<0, PIPE_MTE3>(3);"
    "AscendC::PipeBarrier<PIPE_ALL>();",
    "text": 'AscendC::printf("%d %f", 3, 2.5f);',
}


@pytest.mark.parametrize("call", CALLS)
def test_the_stack_holds_no_zeros_and_nothing_of_the_runtime(device: AscendSim, call: str) -> None:
    build = device.build(Kernel(LEFT.replace("@call@", CALLS[call])))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((64,)),), (TensorSpec((4, 1200), "int32"),))
    result = device.run(build, Inputs(signature, (np.arange(64, dtype=np.float32),)))
    assert result.status == "ok", result.fault
    left = result.outputs[0].astype(np.int32).view(np.uint64)
    address, words = left[:, :1], left[:, 1:]
    of_stack = (words > address - (1 << 20)) & (words < address + (1 << 20))  # which core it is may be known
    differ = ((words != words[0]) & ~of_stack).any(axis=0)
    assert not differ.any(), [hex(int(word)) for word in words[:, differ].ravel()[:8]]
    assert (words == 0).mean() < 0.05


@pytest.mark.parametrize("passes", [1, 2])
def test_a_core_pays_once_for_each_word_of_the_host_functions_stack(device: AscendSim, passes: int) -> None:
    """A table there, to which an argument points, costs as much as one that is copied as an argument."""
    table, arguments, free = 1000, 2, 64
    body = "for (int k = 0; k < {}; ++k) for (uint64_t i = 0; i < 1000; ++i) sum += hosts[i * hosts[0]];"
    text = source("core", body.format(passes)).replace("stream>>>((GM_ADDR)a->outputs[0].ptr, own)", "@launch@")
    text = text.replace("    fill<<<", "    uint64_t table[1024] = {(uint64_t)a->ints[0]};\n    fill<<<")
    build = device.build(Kernel(text.replace("@launch@", "stream>>>((GM_ADDR)a->outputs[0].ptr, table)")))
    assert build.ok, build.diagnostics
    one, all_of_them = (
        device.run(build, Inputs(Signature((), (TensorSpec((64,)),), ints=(stride,)))).latency_us or 0.0
        for stride in (0, 1)
    )
    cycles = (all_of_them - one) * chip.load("910B2")["clock_mhz"]
    assert cycles == pytest.approx(table + arguments - free, abs=0.01)
