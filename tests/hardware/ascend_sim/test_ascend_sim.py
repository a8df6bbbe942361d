"""The simulator as a device: what it builds, runs, refuses and survives."""

from __future__ import annotations

import os
import platform
import re
import signal
from collections.abc import Iterator

import numpy as np
import pytest

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend_sim import compiler
from kernel_gym.hardware.ascend_sim.assembly import guards
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Device, Inputs, Run
from kernel_gym.hardware.host.tensors import NPU_FACTOR, WORKSPACE_BYTES
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

COUNT = 5000
FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;
extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, GM_ADDR ws, uint32_t total, float scale) {
    TPipe pipe;
    TQue<TPosition::VECIN, 1> inX, inY;
    TQue<TPosition::VECOUT, 1> outZ;
    GlobalTensor<float> xGm, yGm, zGm, wGm;
    uint32_t share = (total + GetBlockNum() - 1) / GetBlockNum();
    uint32_t first = share * GetBlockIdx(), n = first + share < total ? share : total - first;
    xGm.SetGlobalBuffer((__gm__ float *)x + first);
    yGm.SetGlobalBuffer((__gm__ float *)y + first);
    zGm.SetGlobalBuffer((__gm__ float *)z + first);
    wGm.SetGlobalBuffer((__gm__ float *)ws);
    pipe.InitBuffer(inX, 1, 8192);
    pipe.InitBuffer(inY, 1, 8192);
    pipe.InitBuffer(outZ, 1, 8192);
    LocalTensor<float> a = inX.AllocTensor<float>(), b = inY.AllocTensor<float>();
    DataCopyExtParams copy{1, n * (uint32_t)sizeof(float), 0, 0, 0};
    DataCopyPadExtParams<float> pad{false, 0, 0, 0};
    DataCopyPad(a, xGm, copy, pad);
    DataCopyPad(b, yGm, copy, pad);
    inX.EnQue(a);
    inY.EnQue(b);
    a = inX.DeQue<float>();
    b = inY.DeQue<float>();
    LocalTensor<float> c = outZ.AllocTensor<float>();
    /*BODY*/ Add(c, a, b, n);
    outZ.EnQue(c);
    inX.FreeTensor(a);
    inY.FreeTensor(b);
    c = outZ.DeQue<float>();
    DataCopyPad(zGm, c, copy);
    outZ.FreeTensor(c);
}
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    /*HOST*/
    add<<<4, nullptr, stream>>>((GM_ADDR)a->inputs[0].ptr, (GM_ADDR)a->inputs[1].ptr, (GM_ADDR)a->outputs[0].ptr,
                                (GM_ADDR)a->workspace, (uint32_t)a->inputs[0].shape[0], 1.0f);
    return 0;
}
"""
BODY_LINE = FILE[: FILE.index("/*BODY*/")].count("\n") + 1
SIGNATURE = Signature(
    (InputSpec((COUNT,)), InputSpec((COUNT,))), (TensorSpec((COUNT,)),), ints=(7, -(1 << 40)), floats=(0.1,)
)
X, Y = np.random.default_rng(0).standard_normal((2, COUNT)).astype(np.float32)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim(timeout=20, budget=4_000_000) as opened:
        yield opened


def run(device: AscendSim, body: str = "Add(c, a, b, n);", host: str = "", values: bool = True, **more: int) -> Run:
    build = device.build(Kernel(FILE.replace("Add(c, a, b, n);", body).replace("/*HOST*/", host)))
    assert build.ok, build.diagnostics
    return device.run(build, Inputs(SIGNATURE, (X, Y) if values else None, **more))


def test_the_simulator_is_a_device(device: AscendSim) -> None:
    assert isinstance(device, Device)
    assert device.unavailable_reason() is None
    assert device.sandbox_tier() in "ABCD"
    assert "910B2" in device.identity() != AscendSim(chip="910B1").identity()


def test_a_good_kernel_computes_and_is_timed(device: AscendSim) -> None:
    result = run(device)
    assert result.status == "ok", result.fault
    assert np.array_equal(result.outputs[0], X + Y)
    assert result.latency_us is not None
    assert result.latency_us > device.floor_us(SIGNATURE)
    assert result.mix["Add"] == 4
    assert result.read == (4 * COUNT, 4 * COUNT)
    assert result.written == (4 * COUNT,)
    assert result.blocks
    assert result.profile is not None


def test_a_kernel_that_is_stopped_has_the_time_until_then(device: AscendSim) -> None:
    repeated = "for (int i = 0; i < {}; ++i) Add(c, a, b, n);"
    ended, stopped = run(device, repeated.format(1000)), run(device, repeated.format(10_000_000))
    assert stopped.status == "timeout"
    assert ended.latency_us is not None
    assert stopped.latency_us is not None
    assert stopped.latency_us > 10 * ended.latency_us
    assert run(device, repeated.format(10_000_000)).latency_us == stopped.latency_us


def test_without_values_it_is_timed_alike(device: AscendSim) -> None:
    computed, timed = run(device), run(device, values=False)
    assert timed.outputs == ()
    assert (timed.latency_us, timed.mix, timed.blocks, timed.written) == (
        computed.latency_us,
        computed.mix,
        computed.blocks,
        computed.written,
    )


def test_repetition_gives_the_same(device: AscendSim) -> None:
    first, second = run(device), run(device.fork())
    assert np.array_equal(first.outputs[0], second.outputs[0])
    assert (first.latency_us, first.blocks, first.profile) == (second.latency_us, second.blocks, second.profile)


def test_a_call_that_continues_another_finds_its_tensors_in_the_cache(device: AscendSim) -> None:
    """The launches of a bundle are calls of their own; a tensor that was an output may be an input of the next."""
    build = device.build(Kernel(FILE))

    def latency(numbers: tuple[int, ...], continues: bool) -> float:
        return device.run(build, Inputs(SIGNATURE, numbers=numbers, continues=continues)).latency_us or 0.0

    alone = latency((), False)
    assert latency((0, 1, 2), False) == alone
    others = latency((3, 4, 5), True)
    assert latency((5, 2, 6), True) < others == alone
    assert latency((5, 2, 6), False) == alone


def test_what_an_output_holds_before_the_call_can_be_added_to(device: AscendSim) -> None:
    """As `at::zeros` and SetAtomicAdd in a bundle; what `at::empty` leaves unwritten stays uninitialised."""
    body = "Add(c, a, b, n); SetAtomicAdd<float>();"
    build = device.build(Kernel(FILE.replace("Add(c, a, b, n);", body)))
    kept = np.arange(COUNT, dtype=np.float32)
    added = device.run(build, Inputs(SIGNATURE, (X, Y), outputs=(kept,)))
    assert added.status == "ok", added.fault
    assert np.array_equal(added.outputs[0], X + Y + kept)
    empty = np.full(4 * COUNT, 0xA5, np.uint8).view(np.float32)
    unwritten = device.run(build, Inputs(SIGNATURE, (X, Y), outputs=(empty,)))
    assert unwritten.fault is not None
    assert unwritten.fault.rule == "UNINITIALISED"


def test_scratch_may_keep_uninitialised_bytes_and_a_later_launch_recognises_them(device: AscendSim) -> None:
    """As padding that a bundle's model cuts off, or a workspace between two launches."""
    half = device.build(Kernel(FILE.replace("Add(c, a, b, n);", "Add(c, a, b, n / 2);")))
    strict = device.run(half, Inputs(SIGNATURE, (X, Y)))
    assert strict.fault is not None
    assert strict.fault.rule == "UNINITIALISED"
    empty = np.full(4 * COUNT, 0xA5, np.uint8).view(np.float32)
    left = device.run(half, Inputs(SIGNATURE, (X, Y), outputs=(empty,), scratch=(0,)))
    assert left.status == "ok", left.fault
    part = COUNT // 4
    assert np.array_equal(left.outputs[0][: part // 2], (X + Y)[: part // 2])
    assert np.array_equal(left.outputs[0][part // 2 : part].view(np.uint8), empty[part // 2 : part].view(np.uint8))
    adding = device.build(Kernel(FILE.replace("Add(c, a, b, n);", "Add(c, a, b, n); SetAtomicAdd<float>();")))
    again = device.run(adding, Inputs(SIGNATURE, (X, Y), outputs=left.outputs))
    assert again.fault is not None
    assert again.fault.rule == "UNINITIALISED"


SYSTEM_CALL = {
    "x86_64": 'asm volatile("syscall" ::"a"(39) : "rcx", "r11");',
    "aarch64": 'register long number asm("x8") = 172; asm volatile("svc #0" ::"r"(number) : "x0");',
}[os.uname().machine]
ASSEMBLY = re.compile(r"#APP\n(?:.*\n)*?#NO_APP\n")
CALL_OF_NOTHING = {"x86_64": "\tcall\tnothing\n", "aarch64": "\tbl\tnothing\n"}[os.uname().machine]
FAULTS = {
    "BAD_POINTER": "*(volatile int *)8 = 1;",
    "QUEUE_EMPTY": "Add(c, a, b, n); b = inY.DeQue<float>();",
    "QUEUE_FULL": "Add(c, a, b, n); inX.AllocTensor<float>();",
    "OUT_OF_BOUNDS": "Add(c, a, b, 3000);",
    "ASSERT": "ASSERT(n == 3);",
    "SYNC_DEADLOCK": "Add(c, a, b, n); if (GetBlockIdx() == 1) SyncAll();",
    "MISUSE": "Add(c, a, b, n); asc_launch(1, 0, nullptr, nullptr, 5);",
}  # fmt: skip


@pytest.mark.parametrize("rule", FAULTS)
def test_a_fault_names_the_rule_and_the_next_run_is_unharmed(device: AscendSim, rule: str) -> None:
    result = run(device, FAULTS[rule])
    assert result.status == "fault"
    assert result.fault is not None
    assert result.fault.rule == rule
    assert result.outputs == ()
    assert result.latency_us is None
    assert run(device).status == "ok"


def test_a_system_call_ends_a_run_even_if_the_guard_has_let_it_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    def passing(text: str) -> guards.Guarded:
        code = guards.guarded(ASSEMBLY.sub(CALL_OF_NOTHING, text))
        (assembly,) = ASSEMBLY.findall(text)
        return guards.Guarded(code.text.replace(CALL_OF_NOTHING, assembly), code.computed)

    with AscendSim() as own:
        refused = own.build(Kernel(FILE.replace("Add(c, a, b, n);", SYSTEM_CALL)))
        assert "has a line that is no instruction" in refused.diagnostics[0].message
        monkeypatch.setattr(compiler, "guarded", passing)
        result = run(own, SYSTEM_CALL)
        assert result.fault is not None
        assert result.fault.rule == "FORBIDDEN_SYSCALL"


def test_a_fault_names_the_line(device: AscendSim) -> None:
    fault = run(device, "Add(c, a, b, 3000);").fault
    assert fault is not None
    assert (fault.line, fault.core) == (BODY_LINE, 0)


@pytest.mark.parametrize(
    "body", ["for (int k = 0;;) ++k;", "for (;;) Add(c, a, b, n);", "for (;;) c.SetValue(0, a.GetValue(0));"]
)
def test_an_endless_kernel_runs_out_of_its_budget(device: AscendSim, body: str) -> None:
    result = run(device, body)
    assert result.status == "timeout"
    assert result.fault is not None
    assert result.fault.rule == "BUDGET"


def test_an_empty_loop_without_calls_is_a_timeout(device: AscendSim) -> None:
    result = run(device, "while (true) {}")
    assert result.status == "timeout"
    assert result.fault is not None
    assert "without an API call" in result.fault.message
    assert run(device).status == "ok"


def test_the_wall_clock_limit_ends_a_waiting_kernel() -> None:
    with AscendSim(timeout=1.5) as device:
        result = run(device, "for (;;) asc_queue_length(0);")  # no record, hardly any processor time left to it
        assert result.status == "timeout"
        assert result.fault is not None
        assert result.fault.rule in ("TIMEOUT", "BUDGET")
        assert run(device).status == "ok"


def test_a_refusal_carries_its_code(device: AscendSim) -> None:
    result = run(device, host="return 42;")
    assert (result.status, result.code, result.outputs) == ("refused", 42, ())


def test_the_host_function_is_handed_attributes_and_shapes(device: AscendSim) -> None:
    checks = (
        "if (a->abi != 1 || a->num_inputs != 2 || a->num_outputs != 1) return 1;"
        "if (a->num_ints != 2 || a->num_floats != 1) return 1;"
        "if (a->ints[0] != 7 || a->ints[1] != -(1ll << 40) || a->floats[0] != 0.1) return 2;"
        f"if (a->outputs[0].ndim != 1 || a->outputs[0].shape[0] != {COUNT}) return 3;"
        "if (a->outputs[0].dtype != KERNEL_FLOAT32) return 3;"
        f"if (a->workspace_bytes != {WORKSPACE_BYTES + NPU_FACTOR * 12 * COUNT}ull) return 4;"
    )
    assert run(device, host=checks).code == 0


def test_cores_exchange_data_through_the_workspace(device: AscendSim) -> None:
    body = """
    DataCopyParams one{1, 1, 0, 0};
    Duplicate(c, (float)(GetBlockIdx() + 1), 8);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID1); WaitFlag<HardEvent::V_MTE3>(EVENT_ID1);
    DataCopy(wGm[GetBlockIdx() * 8], c, one);
    PipeBarrier<PIPE_ALL>(); SyncAll();
    DataCopy(c, wGm[(GetBlockIdx() + 1) % 4 * 8], one);
    PipeBarrier<PIPE_ALL>();
    float other = c.GetValue(0);
    Duplicate(c, other, n);
    """.replace("\n", " ")
    result = run(device, body)
    assert result.status == "ok", result.fault
    expected = np.repeat(np.float32([2, 3, 4, 1]), (COUNT + 3) // 4)[:COUNT]
    assert np.array_equal(result.outputs[0], expected)


def test_every_synchronisation_of_the_cores_costs_the_same(device: AscendSim) -> None:
    latencies = [run(device, "SyncAll(); " * meetings + "Add(c, a, b, n);").latency_us or 0 for meetings in (1, 2, 5)]
    assert latencies[2] - latencies[1] == pytest.approx(3 * (latencies[1] - latencies[0]), rel=0.05)


def test_a_core_knows_its_kind(device: AscendSim) -> None:
    body = "ASSERT(ASCEND_IS_AIV && !ASCEND_IS_AIC && GetTaskRation() == 1 && GetSubBlockIdx() == 0); Add(c, a, b, n);"
    assert run(device, body).status == "ok"
    mixed = (
        "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2); "
        "ASSERT(ASCEND_IS_AIV && GetTaskRation() == 2 && GetSubBlockIdx() == GetBlockIdx() % 2 && GetBlockNum() == 4); "
        "if (GetBlockIdx() < 4) Add(c, a, b, n); else Duplicate(c, 0.0f, n);"
    )
    result = run(device, mixed)
    assert result.fault is not None
    assert result.fault.core == 5, "eight vector cores run the four blocks, and the sixth starts behind the end"
    macro = "\n#define CORES KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2)\nCORES; ASSERT(GetTaskRation() == 2); "
    behind = run(device, macro + "Add(c, a, b, n);").fault
    assert behind is not None
    assert behind.core == 5


def test_one_vector_core_runs_each_block_of_a_mixed_launch(device: AscendSim) -> None:
    kind = "KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1); "
    mixed = run(device, kind + "ASSERT(ASCEND_IS_AIV && GetTaskRation() == 1 && GetBlockNum() == 4); Add(c, a, b, n);")
    assert mixed.status == "ok", mixed.fault
    assert np.array_equal(mixed.outputs[0], X + Y)
    assert (mixed.latency_us or 0.0) > (run(device).latency_us or 0.0) + 9.5, "cube cores start as well"
    x = "(GM_ADDR)a->inputs[0].ptr"
    more = f"add<<<25, nullptr, stream>>>({x}, {x}, (GM_ADDR)a->outputs[0].ptr, nullptr, 25 * 64, 1.0f);"
    many = run(device, kind + "SyncAll(); Add(c, a, b, n);", host=more)
    assert many.fault is not None
    assert "25 blocks on 24 cores" in many.fault.message


def test_cross_core_flags_order_cores(device: AscendSim) -> None:
    body = "CrossCoreSetFlag<0, PIPE_MTE3>(3); CrossCoreWaitFlag(3); Add(c, a, b, n);"
    assert run(device, body).status == "ok"
    stuck = run(device, "if (GetBlockIdx()) CrossCoreWaitFlag(3); Add(c, a, b, n);")
    assert stuck.fault is not None
    assert stuck.fault.rule == "SYNC_DEADLOCK"


def test_scalar_reads_see_every_write(device: AscendSim) -> None:
    body = """
    float sum = 0;
    for (uint32_t k = 0; k < 64; ++k) { c.SetValue(k, a.GetValue(k) + b.GetValue(k)); sum += c.GetValue(k); }
    Muls(c, c, 2.0f, 64);
    for (uint32_t k = 0; k < 64; ++k) { c.SetValue(k, c.GetValue(k) * 0.5f); }
    Add(c[64], a[64], b[64], n - 64);
    ASSERT(sum != 0);
    """.replace("\n", " ")
    result = run(device, body)
    assert result.status == "ok", result.fault
    assert np.array_equal(result.outputs[0], X + Y)
    assert result.data_dependent


def test_scalar_reads_of_global_memory_see_every_write_and_keep_inputs(device: AscendSim) -> None:
    """Inputs are kept over other instructions, what can be written is not; places of two tensors collide here."""
    body = """
    for (uint32_t k = 0; k < n; ++k) {
        float sum = xGm.GetValue(k) + yGm.GetValue(k);
        c.SetValue(k, sum);
        Adds(a, a, 1.0f, 8);
        if (k % 100 == 0) {
            wGm.SetValue(GetBlockIdx() * 64, sum);
            Adds(a, a, 1.0f, 8);
            wGm.SetValue(GetBlockIdx() * 64, sum + 1.0f);
            ASSERT(wGm.GetValue(GetBlockIdx() * 64) == sum + 1.0f);
        }
    }
    """.replace("\n", " ")
    result = run(device, body)
    assert result.status == "ok", result.fault
    assert np.array_equal(result.outputs[0], X + Y)
    assert result.mix["GetValue global"] >= 2 * COUNT
    assert result.read == (4 * COUNT, 4 * COUNT)


def test_invented_scalars_depend_on_the_seed_only(device: AscendSim) -> None:
    body = "Add(c, a, b, n); for (int k = 0; k < 20; ++k) if (a.GetValue(k) < 0.75f) Add(c, a, b, n);"
    adds = [run(device, body, values=False, seed=seed).mix["Add"] for seed in (1, 1, 2, 3, 4, 5)]
    assert adds[0] == adds[1]
    assert len(set(adds)) > 1


@pytest.mark.parametrize("poison", [0, 0xA5])
def test_unwritten_outputs_stay_poison(device: AscendSim, poison: int) -> None:
    build = device.build(
        Kernel(FILE.replace("DataCopyPad(zGm, c, copy);", "if (GetBlockIdx()) DataCopyPad(zGm, c, copy);"))
    )
    result = device.run(build, Inputs(SIGNATURE, (X, Y), poison=poison))
    share = (COUNT + 3) // 4
    assert set(result.outputs[0][:share].tobytes()) == {poison}
    assert np.array_equal(result.outputs[0][share:], (X + Y)[share:])
    assert result.written == (4 * (COUNT - share),)


def test_prints_reach_the_author(device: AscendSim) -> None:
    result = run(
        device,
        'Add(c, a, b, n); if (GetBlockIdx() == 2) printf("core %d has %u, %.1f, %s\\n", 2, n, (half)1.5, "text");',
    )
    assert result.printed == f"core 2 has {(COUNT + 3) // 4}, 1.5, text\n"
    long = run(device, 'Add(c, a, b, n); if (GetBlockIdx() == 0) printf("%300d|", 7);')
    assert long.printed == f"{7:300d}|"


UNCOMPILABLE = {
    "Subs(c, a, 1.0f, n);": "'Subs' was not declared",
    "LocalTensor<int8_t> q; Add(q, q, q, n);": "Add takes int16_t, half, int32_t, float",
    "TBuf<> t; pipe.InitBuffer(t, 1, 32);": "not supports T as TBuf",
    "float e = expf(1.0f);": "'expf' was not declared",
}


@pytest.mark.parametrize("body", UNCOMPILABLE)
def test_compiler_errors_have_the_authors_lines(device: AscendSim, body: str) -> None:
    build = device.build(Kernel(FILE.replace("Add(c, a, b, n);", body)))
    assert not build.ok
    assert build.artifact is None
    assert UNCOMPILABLE[body] in build.diagnostics[0].message
    assert build.diagnostics[0].line == BODY_LINE


def test_a_kernel_without_an_entry_does_not_build(device: AscendSim) -> None:
    build = device.build(Kernel(FILE.replace("kernel_launch", "start")))
    assert "kernel_launch" in build.diagnostics[0].message


def test_mathematics_of_the_c_library_does_not_link(device: AscendSim) -> None:
    source = FILE.replace("Add(c, a, b, n);", "Adds(c, a, expf(a.GetValue(0)), n);")
    build = device.build(Kernel('extern "C" float expf(float);\n' + source))
    assert "expf does not exist in device code" in build.diagnostics[0].message


def test_the_compiler_cannot_be_made_to_show_files(device: AscendSim) -> None:
    build = device.build(Kernel('#include "/etc/passwd"\n' + FILE))
    assert not build.ok
    if device.sandbox_tier() in "AB":
        assert all("root" not in diagnostic.message for diagnostic in build.diagnostics)


def test_a_compiler_bomb_reaches_the_limits(device: AscendSim) -> None:
    build = device.build(Kernel("char bomb[1 << 30] = {1};\n" + FILE))
    assert "limits" in build.diagnostics[0].message


def test_a_file_without_a_function_has_no_entry(device: AscendSim) -> None:
    (error,) = device.build(Kernel("template <class T> void f(T) {}\n")).diagnostics
    assert error.message.startswith("no entry")


def test_characters_have_a_sign_on_every_machine(device: AscendSim) -> None:
    assert device.build(Kernel("static_assert(char{-1} < 0);\n" + FILE)).ok


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("unsigned __int128 Square(uint64_t n) { return (unsigned __int128)n * n; }", 1),
        ("#include <cstdint>\nusing Wide = __uint128_t;", 2),
        ("#define JOINED(a, b) a##b\nusing Wide = JOINED(__int, 128_t);", None),
    ],
)
def test_integers_of_128_bits_do_not_compile(device: AscendSim, text: str, line: int | None) -> None:
    build = device.build(Kernel(f"{text}\n{FILE}"))
    [diagnostic] = build.diagnostics
    assert diagnostic.message.startswith("integers of 128 bits do not exist")
    assert diagnostic.line == line


@pytest.mark.skipif(platform.machine() == "x86_64", reason="x86-64 has instructions for long double")
def test_long_double_is_a_compile_error(device: AscendSim) -> None:
    build = device.build(Kernel("float Third(unsigned n) { return n / (long double)3; }\n" + FILE))
    assert build.diagnostics[0].message.startswith("long double does not exist")


def test_other_languages_are_refused(device: AscendSim) -> None:
    assert not device.build(Kernel("", language="cuda")).ok


def test_a_dead_device_is_an_infrastructure_error_and_is_replaced(device: AscendSim) -> None:
    assert run(device).status == "ok"
    server = device._server
    assert server is not None
    assert server._process is not None
    os.kill(server._process.pid, signal.SIGKILL)
    server._process.wait()
    server._process = None  # as if its death had not been noticed yet
    with pytest.raises(InfrastructureError, match="device process failed"):
        run(device)
    assert run(device).status == "ok"


def test_close_leaves_nothing_and_the_device_opens_again() -> None:
    device = AscendSim()
    build = device.build(Kernel(FILE))
    assert device.run(build, Inputs(SIGNATURE, (X, Y))).status == "ok"
    assert build.artifact is not None
    assert device._server is not None
    process = device._server._process
    assert process is not None
    device.close()
    assert not build.artifact.exists()
    assert process.poll() is not None
    assert device.run(device.build(Kernel(FILE)), Inputs(SIGNATURE, (X, Y))).status == "ok"
    device.close()


def test_a_forked_process_gets_a_device_process_of_its_own(device: AscendSim) -> None:
    assert run(device).status == "ok"
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(run(device).outputs[0], X + Y) else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert np.array_equal(run(device).outputs[0], X + Y)


def test_a_large_tensor_needs_no_memory_when_only_timed(device: AscendSim) -> None:
    huge = Signature((InputSpec((COUNT,)), InputSpec((COUNT,)), InputSpec((1 << 36,), "int8")), (TensorSpec((COUNT,)),))
    build = device.build(Kernel(FILE))
    assert device.run(build, Inputs(huge)).status == "ok"
