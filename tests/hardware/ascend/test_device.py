"""The way of a kernel through the Ascend device, with stand-ins for CANN's compiler and for the NPU.

The stand-in compiler is g++ behind a script that takes bisheng's command line; the stand-in NPU is this process's
memory. They show that the parts fit together, not that the real ones do: `make test-npu` shows that.
"""

from __future__ import annotations

import json
import mmap
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend import device as ascend
from kernel_gym.hardware.ascend.device import INCLUDE, Ascend
from kernel_gym.hardware.ascend.halves import halves
from kernel_gym.hardware.ascend.health import Quarantine
from kernel_gym.hardware.ascend.toolkit import Cann
from kernel_gym.hardware.ascend.worker import answer
from kernel_gym.hardware.device import Clocked, Device, Inputs, PackedBuild
from kernel_gym.hardware.host import launches
from kernel_gym.hardware.host.calls import Hang
from kernel_gym.hardware.host.launches import kernels_in
from kernel_gym.hardware.host.runtime import runtime
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

ADD = """\
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

struct Sizes { uint32_t total; float factor; };

extern "C" __global__ __aicore__ void add(GM_ADDR x, GM_ADDR y, GM_ADDR z, Sizes sizes) {
    __gm__ float *a = (__gm__ float *)x, *b = (__gm__ float *)y, *c = (__gm__ float *)z;
    for (uint32_t i = 0; i < sizes.total; ++i) c[i] = a[i] + sizes.factor * b[i];
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    Sizes sizes{(uint32_t)args->inputs[0].shape[0], 1.0f};
    add<<<4, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->inputs[1].ptr,
                                (GM_ADDR)args->outputs[0].ptr, sizes);
    return 0;
}
"""
WORDS = """
#define __global__
#define __aicore__
#define __gm__
#include <stdint.h>
typedef uint8_t *GM_ADDR;
namespace AscendC {}
"""
BISHENG = """#!/bin/sh
# Takes bisheng's command lines; a launch becomes a call.
case "$*" in
*" -c "*)
    sed 's/kernel<<<blocks, nullptr, stream>>>(values...)/(void)blocks, (void)stream, kernel(values...)/' \\
        {include}/ascend_replay.h > ascend_replay.h
    exec g++ -std=c++17 -fPIC -w -I. -I{stub} -I{headers} -c device.cpp -o device.o ;;
*) exec g++ -shared device.o -o libkernel.so ;;
esac
"""
SIGNATURE = Signature((InputSpec((1000,)), InputSpec((1000,))), (TensorSpec((1000,)),))


class CpuNpu:
    """Memory and clock of this process in the place of an NPU's."""

    def buffer(self, size: int) -> Any:
        return np.zeros(size, np.uint8)

    def address(self, buffer: Any) -> int:
        return int(buffer.ctypes.data)

    def fill(self, buffer: Any, byte: int) -> None:
        buffer[:] = byte

    def upload(self, buffer: Any, offset: int, data: bytes) -> None:
        buffer[offset : offset + len(data)] = np.frombuffer(data, np.uint8)

    def download(self, buffer: Any) -> bytes:
        return bytes(buffer.tobytes())

    def stream(self) -> int:
        return 7

    def flush(self) -> None:
        pass

    def mark(self) -> Any:
        return time.perf_counter()

    def finish(self, event: Any, seconds: float) -> None:
        pass

    def microseconds(self, begin: Any, end: Any) -> float:
        return float(end - begin) * 1e6


class HungNpu(CpuNpu):
    def finish(self, event: Any, seconds: float) -> None:
        raise Hang


class FaultyNpu(CpuNpu):
    def finish(self, event: Any, seconds: float) -> None:
        raise RuntimeError("NPU function error: error code is 507035, errorStr: the ub address out of bounds")


class InProcess:
    """The trusted process's answers, given here."""

    def __init__(self, npu: CpuNpu) -> None:
        self.npu = npu

    def ask(self, request: str, memory: int, seconds: float) -> dict[str, Any]:
        with mmap.mmap(os.dup(memory), 0) as shared, memoryview(shared) as view:
            return answer(self.npu, json.loads(request), view)

    def close(self) -> None:
        pass


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Ascend]:
    home = tmp_path / "cann"
    (home / "bin").mkdir(parents=True)
    (home / "stub").mkdir()
    (home / "stub" / "kernel_operator.h").write_text(WORDS)
    script = BISHENG.format(include=INCLUDE, stub=home / "stub", headers=ascend.SHARED_INCLUDE)
    (home / "bin" / "bisheng").write_text(script)
    (home / "bin" / "bisheng").chmod(0o755)
    monkeypatch.setattr(ascend, "find_cann", lambda: Cann(home, (8, 0), home / "bin" / "bisheng"))
    device = Ascend(timeout=5.0)
    device._quarantine = Quarantine(0, tmp_path)
    use(device, CpuNpu())
    yield device
    device.close()


def use(device: Ascend, npu: CpuNpu) -> None:
    device._worker = lambda artifact: InProcess(npu)  # type: ignore[method-assign,assignment,return-value]


def inputs(seed: int = 0) -> Inputs:
    rng = np.random.default_rng(seed)
    return Inputs(SIGNATURE, tuple(rng.standard_normal(1000).astype(np.float32) for _ in range(2)))


def built(device: Ascend, source: str = ADD) -> Any:
    build = device.build(Kernel(source, trusted=True))
    assert build.ok, build.diagnostics
    return build


def test_the_npu_is_a_device_with_a_clock() -> None:
    assert isinstance(Ascend(), Device)
    assert isinstance(Ascend(), Clocked)


def test_a_kernel_is_built_run_and_timed(stand_in: Ascend) -> None:
    arguments = inputs()
    run = stand_in.run(built(stand_in), arguments)
    assert run.status == "ok", run.fault
    assert arguments.values is not None
    np.testing.assert_array_equal(run.outputs[0], arguments.values[0] + arguments.values[1])


def test_a_kernel_that_another_machine_compiled_is_run(stand_in: Ascend) -> None:
    other = stand_in.fork()
    build = built(other)
    packed = PackedBuild.of(build, other.identity())
    other.close()
    assert not build.artifact.exists()
    arguments = inputs()
    run = stand_in.run(stand_in.unpack(packed), arguments)
    assert run.status == "ok", run.fault
    assert arguments.values is not None
    np.testing.assert_array_equal(run.outputs[0], arguments.values[0] + arguments.values[1])


def test_many_timed_calls_on_several_sets(stand_in: Ascend) -> None:
    sets = [inputs(seed).values or () for seed in range(3)]
    timing = stand_in.time(built(stand_in), SIGNATURE, sets, 0xA5)
    assert len(timing.runs) == 3
    assert not timing.unstable
    assert len(timing.firsts) in (2, 3)  # the very first call is not timed
    assert len(timing.firsts) + len(timing.repeats) >= 21
    for values, run in zip(sets, timing.runs, strict=True):
        np.testing.assert_array_equal(run.outputs[0], values[0] + values[1])


def test_the_compilers_refusal_is_a_diagnostic_with_a_line(stand_in: Ascend) -> None:
    build = stand_in.build(Kernel(ADD.replace("a[i] + ", "a[i] + nothing + ")))
    assert not build.ok
    assert build.diagnostics[0].line == 9


def test_mistakes_of_the_host_function_are_reported_before_the_npu_is_used(stand_in: Ascend) -> None:
    assert stand_in.build(Kernel(ADD.replace("inputs[0].shape[0]", "inputs[0].sizes[0]"))).diagnostics[0].line == 13
    assert "no entry" in stand_in.build(Kernel("int x;")).diagnostics[0].message
    refused = stand_in.run(built(stand_in, ADD.replace("return 0;", "return 3;")), inputs())
    assert (refused.status, refused.code) == ("refused", 3)


def test_writing_outside_is_seen(stand_in: Ascend) -> None:
    run = stand_in.run(built(stand_in, ADD.replace("c[i] = ", "c[i + 8] = ")), inputs())
    assert run.fault is not None
    assert run.fault.rule == "OUT_OF_BOUNDS"


def test_writing_to_an_input_is_seen(stand_in: Ascend) -> None:
    run = stand_in.run(built(stand_in, ADD.replace("c[i] = ", "a[i] = c[i] = ")), inputs())
    assert run.fault is not None
    assert run.fault.rule == "INPUT_WRITTEN"


def test_results_that_change_are_seen(stand_in: Ascend) -> None:
    source = ADD.replace("for (", "static float more; more += 1.0f; for (").replace("c[i] = ", "c[i] = more + ")
    timing = stand_in.time(built(stand_in, source), SIGNATURE, [inputs().values or ()], 0xA5)
    assert timing.unstable


def test_a_hang_is_a_timeout_and_the_npu_is_checked(stand_in: Ascend) -> None:
    build = built(stand_in)
    use(stand_in, HungNpu())
    assert stand_in.run(build, inputs()).status == "timeout"
    assert stand_in._quarantine.reason() is not None  # there is no npu-smi here that says it is well


def test_a_fault_is_explained(stand_in: Ascend) -> None:
    build = built(stand_in)
    use(stand_in, FaultyNpu())
    run = stand_in.run(build, inputs())
    assert run.fault is not None
    assert (run.status, run.fault.rule) == ("fault", "UB_OVERFLOW")


def test_nothing_of_the_authors_host_code_is_in_the_npus_half() -> None:
    parts = halves(ADD)
    assert "kernel_launch" not in parts.device
    assert "KERNEL_GYM_REPLAY(0, add)" in parts.device
    assert "c[i] = a[i]" not in parts.host
    first = ADD.index('extern "C" __global__')
    assert parts.device.startswith(ADD[:first])  # line for line


@pytest.mark.parametrize("name", ["relu", "softmax", "layer_norm", "sum_reduction_over_a_dimension"])
def test_launches_of_real_kernels_are_written_down(name: str, tmp_path: Path) -> None:
    task = suites.find_task(f"level1/{name}")
    parts = halves(oracle(task).source)
    assert not parts.problem
    assert ascend.compile_host(tmp_path, parts.host, runtime()) == ()
    signature = task.instance(task.public).signature
    names = {
        place: str(parts.kernels.index(one))
        for place, one in kernels_in(tmp_path / "host.so", {*parts.kernels}).items()
    }
    plan = launches.plan(runtime(), tmp_path / "host.so", names, signature, ascend.npu_workspace_bytes(signature), 1000)
    assert plan.fault is None
    assert {launch.kernel for launch in plan.launches} == {str(n) for n in range(len(parts.kernels))}
    assert all(1 <= launch.grid[0] <= 48 for launch in plan.launches)
    touched = {tensor for launch in plan.launches for one in launch.arguments for _, tensor, _ in one.handles}
    assert touched >= set(range(len(signature.inputs) + len(signature.outputs)))


def test_structs_of_canns_own_are_refused_in_one_line() -> None:
    """Their layout is not ours to know: a record made without CANN's headers would be garbage to the kernel."""
    parts = halves(oracle(suites.find_task("level1/square_matrix_multiplication")).source)
    assert re.match(
        r"line \d+: this kernel takes CANN's own tiling structs or functions \(TCubeTiling\)", parts.problem
    )
