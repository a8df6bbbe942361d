"""Both halves of a CUDA file: what each side gets, and that no line moves."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.hardware.cuda.runtime import HERE
from kernel_gym.hardware.host.split import Split, split

EXAMPLE = HERE / "examples" / "relu.cu"
MIXED = """#include <mma.h>
#include "kernel_gym.h"
namespace cg = cooperative_groups;
using namespace nvcuda;
#define CEIL(a, b) (((a) + (b) - 1) / (b))
constexpr int TILE = 32;
struct Params { const float *x; float *y; int n; __device__ float at(int i) const { return x[i]; } };
using Fragment = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
__device__ __forceinline__ float twice(float v) { return v + v; }
__host__ __device__ inline int rounded(int n) { return CEIL(n, TILE) * TILE; }
static int64_t count(const KernelTensor &t) { return t.shape[0]; }
template <typename T, int N>
__global__ void __launch_bounds__(256) scale(const T *__restrict__ x, T *y, Params p)
{
    extern __shared__ float s[];
    __shared__ T tile[N];
    asm volatile("mov.u32 %0, %%laneid;" : "=r"(p.n));
    y[0] = twice(x[0]) + rounded(3);
}
namespace inner { __global__ void plain(float *y) { y[0] = 1; } }
__global__ void unused(float *y) { y[0] = 2; }
static void run(const KernelArgs *a, cudaStream_t s) {
    Params p{(const float *)a->inputs[0].ptr, (float *)a->outputs[0].ptr, (int)count(a->inputs[0])};
    scale<float, TILE><<<dim3(CEIL(p.n, TILE)), TILE, 4 * TILE, s>>>(p.x, p.y, p);
}
extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    run(args, (cudaStream_t)stream);
    inner::plain<<<1, 1>>>((float *)args->outputs[0].ptr);
    return 0;
}
"""


@pytest.fixture(scope="module")
def mixed() -> Split:
    return split(MIXED)


@pytest.mark.parametrize("text", [MIXED, EXAMPLE.read_text()], ids=["mixed", "example"])
def test_no_line_moves(text: str) -> None:
    parts = split(text)
    lines = text.splitlines()
    for half in (parts.host, parts.device):
        assert len(half.splitlines()) == len(lines)
        for ours, theirs in zip(half.splitlines(), lines, strict=True):
            assert "launcher" in ours or all(word in theirs for word in re.findall(r"\w+", ours))


def test_the_host_keeps_what_it_reaches(mixed: Split) -> None:
    for kept in ("constexpr int TILE", "struct Params", "count(const KernelTensor", "static void run", "kernel_launch"):
        assert kept in mixed.host
    assert "::kernel_gym::launcher(24, scale<float, TILE>, dim3(CEIL(p.n, TILE)), TILE, 4 * TILE, s)(p.x" in mixed.host


def test_the_host_sees_no_device_code(mixed: Split) -> None:
    for gone in ("asm", "twice", "__shared__", "wmma", "at(int", "unused", "y[0] = 1", "<<<", "cooperative"):
        assert gone not in mixed.host


def test_the_device_sees_no_host_code(mixed: Split) -> None:
    for gone in ("kernel_launch", "static void run", "count(", "<<<"):
        assert gone not in mixed.device
    for kept in ("asm volatile", "twice(float", "wmma::fragment", "rounded(int", "at(int", "struct Params"):
        assert kept in mixed.device


def test_kernels_are_known_by_their_qualified_names(mixed: Split) -> None:
    assert mixed.kernels == ("inner::plain", "unused")
    assert mixed.templates == ("scale",)
    assert mixed.entry


def test_host_functions_that_launch_through_others_are_cut() -> None:
    text = (
        "__global__ void k(float *y) { y[0] = 1; }\n"
        "static int third(void *p) { k<<<1, 1>>>((float *)p); return 0; }\n"
        "static int second(void *p) { return third(p); }\n"
        'extern "C" int kernel_launch(const KernelArgs *a, void *s) { return second(a->outputs[0].ptr); }\n'
    )
    parts = split(text)
    assert parts.device.split() == text.splitlines()[0].split()
    assert "third" in parts.host


def test_names_in_comments_and_strings_are_no_code() -> None:
    text = '// kernel_launch k<<<1, 1>>>(x) __global__ void no() {}\nconst char *s = "k<<<1,1>>>()";\n'
    parts = split(text)
    assert not parts.entry
    assert parts.kernels == ()
    assert parts.device == text


def test_both_branches_of_a_conditional_are_read() -> None:
    text = "#if 1\n__global__ void a(float *y) {}\n#else\n__global__ void b(float *y) {}\n#endif\n"
    assert split(text).kernels == ("a", "b")


@given(st.text(alphabet='ab_<>(){};,*&"/\\\n #:1=', max_size=200))
def test_any_text_can_be_split(noise: str) -> None:
    parts = split(noise + "\n" + EXAMPLE.read_text())
    assert parts.host.count("\n") == parts.device.count("\n") == (noise + "\n" + EXAMPLE.read_text()).count("\n")


@pytest.mark.parametrize(
    "unit",
    [
        "int a;",
        "\n#define a 1",
        "__attribute__((",
        "namespace a {",
        "struct a {",
        "void f() { f(); }",
        "typedef struct a {",
    ],
)
def test_long_and_deep_files_are_split(unit: str) -> None:
    """A search through all tokens for each item needs minutes for this text, and recursion does not come back."""
    count = 6_000
    parts = split(EXAMPLE.read_text() + unit * count)
    assert parts.entry
    assert parts.device.count("\n") == EXAMPLE.read_text().count("\n") + unit.count("\n") * count


def test_callers_of_launching_functions_are_found_in_any_order() -> None:
    chain = "".join(f"void f{i}(float *y) {{ f{i + 1}(y); }}\n" for i in range(300))
    parts = split(
        f"__global__ void k(float *y) {{}}\n{chain}void f300(float *y) {{ k<<<1, 1>>>(y); }}\nvoid other() {{}}\n"
        'extern "C" int kernel_launch(const KernelArgs *a, void *s) { f0(nullptr); return 0; }\n'
    )
    assert "void f0" not in parts.device
    assert "void f299" in parts.host
