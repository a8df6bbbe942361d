"""The host function in the sandbox: its launches are records, and nothing it writes is believed."""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.cuda.compiler import HOST, _Compilation
from kernel_gym.hardware.cuda.runtime import runtime
from kernel_gym.hardware.cuda.toolkit import Toolkit
from kernel_gym.hardware.host import launches
from kernel_gym.hardware.host.launches import Argument, NamesTooLong, Plan, expression, handle, kernels_in, plan
from kernel_gym.hardware.host.split import split
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

SIGNATURE = Signature((InputSpec((3, 5)),), (TensorSpec((3, 5)),), ints=(7,), floats=(0.5,))
HEAD = """
struct Pair { const float *x; float *y; int n; };
__global__ void k(const float *x, float *y, int n, float f) {}
template <int N> __global__ void t(Pair p) {}
__global__ void none() {}
"""
Plans = Callable[[str], Plan]


@pytest.fixture
def planned(tmp_path: Path) -> Plans:
    def build_and_call(body: str) -> Plan:
        source = f'{HEAD}extern "C" int kernel_launch(const KernelArgs *a, void *stream) {{\n{body}\n}}\n'
        parts = split(source)
        (tmp_path / "host.cpp").write_text(parts.host)
        no_gpu = Toolkit(Path("/none"), Path("/none"), ())
        assert _Compilation(runtime(), no_gpu, "sm_90", tmp_path, parts).host() == ()
        names = kernels_in(tmp_path / HOST, {*parts.kernels, *parts.templates})
        return plan(runtime().host, tmp_path / HOST, names, SIGNATURE, 1 << 20, lines=20)

    return build_and_call


def test_a_launch_becomes_a_record(planned: Plans) -> None:
    launched = planned(
        "k<<<dim3(2, 3), 64, 128, (cudaStream_t)stream>>>((const float *)a->inputs[0].ptr + 2,\n"
        "    (float *)a->outputs[0].ptr, a->ints[0], a->floats[0]);\nreturn 0;"
    )
    (launch,) = launched.launches
    assert (launch.kernel, launch.grid, launch.block, launch.shared, launch.line) == (
        "k",
        (2, 3, 1),
        (64, 1, 1),
        128,
        7,
    )
    x, y, n, f = launch.arguments
    assert x.handles == ((0, 0, 8),)
    assert y.handles == ((0, 1, 0),)
    assert n == Argument(struct.pack("<i", 7))
    assert f == Argument(struct.pack("<f", 0.5))  # converted to the kernel's type, as CUDA does


def test_structures_may_hold_tensors(planned: Plans) -> None:
    launched = planned(
        "Pair p{(const float *)a->inputs[0].ptr, (float *)a->workspace + 4, 3};\n"
        "t<4><<<1, 32>>>(p);\nnone<<<1, 1>>>();\nreturn 0;"
    )
    first, second = launched.launches
    assert first.kernel == "t<4>"
    assert first.arguments[0].handles == ((0, 0, 0), (8, 2, 16))
    assert second.arguments == ()


def test_a_line_that_the_author_does_not_have_is_not_told(planned: Plans) -> None:
    (launch,) = planned("::kernel_gym::launcher(424242, none, 1, 1)();\nreturn 0;").launches
    assert launch.line == 0
    launched = planned("int n = 0;\n::kernel_gym::launcher(424242, k, 1, 1)((float *)&n, nullptr, 0, 0);\nreturn 0;")
    assert launched.fault is not None
    assert launched.fault.line is None


def test_a_refusal_carries_its_code(planned: Plans) -> None:
    launched = planned("k<<<1, 1>>>(nullptr, nullptr, 0, 0);\nreturn 42;")
    assert (launched.code, launched.launches, launched.fault) == (42, (), None)


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ("return ((const float *)a->inputs[0].ptr)[0] > 0;", "HOST_CRASH"),
        ("return *(volatile int *)8;", "HOST_CRASH"),
        ("int n = 0; k<<<1, 1>>>((float *)&n, nullptr, 0, 0); return 0;", "BAD_POINTER"),
        ("k<<<1, 1>>>((float *)a->inputs[0].ptr + 100, nullptr, 0, 0); return 0;", "OUT_OF_TENSOR"),
        ("k<<<1, 1>>>((float *)((char *)a->workspace + (2l << 40)), nullptr, 0, 0); return 0;", "OUT_OF_TENSOR"),
        ("for (int i = 0; i < 5000; ++i) none<<<1, 1>>>();\nreturn 0;", "TOO_MANY_LAUNCHES"),
        ("for (;;) none<<<1, 1>>>();\nreturn 0;", "TOO_MANY_LAUNCHES"),
        ("::kernel_gym::launcher(1, (void (*)())(void *)kernel_launch, 1, 1)(); return 0;", "BAD_KERNEL"),
    ],
)
def test_forbidden_actions_of_a_host_function_are_faults(planned: Plans, body: str, rule: str) -> None:
    launched = planned(body)
    assert launched.fault is not None
    assert launched.fault.rule == rule
    assert launched.launches == ()


def test_an_endless_host_function_is_ended(planned: Plans, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launches, "WALL_SECONDS", 0.5)
    launched = planned("for (volatile int i = 0;; ) i = i + 1;")
    assert launched.timeout
    assert launched.fault is not None
    assert launched.fault.rule == "HOST_TIMEOUT"


def test_only_what_ends_before_the_kernel_is_loaded_is_an_error_of_the_device() -> None:
    """The answer is in memory that the kernel can write; the word before it is not."""
    memory = bytearray(launches._LOG_AT + launches.LOG_BYTES)
    launches._ANSWER.pack_into(memory, launches._ANSWER_AT, 2, 0, 0, 0, b"cannot open /dev/null")
    with pytest.raises(InfrastructureError, match="could not be confined: cannot open /dev/null"):
        launches._read(bytes(memory), 0, {}, (), 1)
    memory[0] = 1
    forged = launches._read(bytes(memory), 0, {}, (), 1)
    assert forged.fault is not None
    assert forged.fault.rule == "HOST_CRASH"


def test_an_empty_pointer_is_a_value(planned: Plans) -> None:
    (launch,) = planned("k<<<1, 1>>>(nullptr, (float *)a->outputs[0].ptr, 1, 2);\nreturn 0;").launches
    assert launch.arguments[0] == Argument(bytes(8))


@given(st.binary(max_size=400), st.integers(0, 8))
def test_damaged_records_are_faults_or_launches(data: bytes, count: int) -> None:
    launched = launches._Log(data, {0: "k"}, (60, 60, 1 << 20), 9).plan(count)
    assert launched.fault is not None or len(launched.launches) == count


def test_handles_are_no_addresses_of_a_host() -> None:
    assert handle(255, (1 << 40) - 1) >> 47 not in (0, (1 << 17) - 1)


@pytest.mark.parametrize(
    ("demangled", "expected"),
    [
        ("void f<int, 4>(int*)", "f<int, 4>"),
        ("space::g(float const*, int)", "space::g"),
        ("void (anonymous namespace)::h<float>(float*)", "h<float>"),
        ("void f<std::pair<int, float> >(int)", "f<std::pair<int, float> >"),
        ("plain", "plain"),
    ],
)
def test_expressions_of_demangled_names(demangled: str, expected: str) -> None:
    assert expression(demangled) == expected


@pytest.mark.slow
def test_names_that_double_with_every_level_are_refused_at_once(tmp_path: Path) -> None:
    levels = "".join(f"using T{i} = P<T{i - 1}, T{i - 1}>;\n" for i in range(1, 40))
    types = f"template <class A, class B> struct P {{}};\nusing T0 = P<int, int>;\n{levels}"
    kernel = "template <class T> __global__ void u(int n) {}\n"
    entry = 'extern "C" int kernel_launch(const KernelArgs *a, void *s) { u<T39><<<1, 1>>>(1); return 0; }\n'
    parts = split(f"{types}{kernel}{entry}")
    (tmp_path / "host.cpp").write_text(parts.host)
    assert _Compilation(runtime(), Toolkit(Path("/none"), Path("/none"), ()), "sm_90", tmp_path, parts).host() == ()
    with pytest.raises(NamesTooLong):
        kernels_in(tmp_path / HOST, {*parts.templates})
