"""Device code through NVRTC: what authors expect compiles, and what does not is explained in their lines."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.cuda.compiler import NO_ENTRY, NO_KERNEL, Binaries, compile_kernel, compile_trusted
from kernel_gym.hardware.cuda.runtime import runtime
from kernel_gym.hardware.cuda.toolkit import toolkit
from kernel_gym.hardware.device import Diagnostic


def _missing() -> str | None:
    try:
        toolkit()
    except DeviceUnavailable as error:
        return str(error)
    return None


pytestmark = pytest.mark.skipif(_missing() is not None, reason=str(_missing()))

ENTRY = """extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    float *y = (float *)args->outputs[0].ptr;
    LAUNCH
    return 0;
}
"""
HALF = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cstdint>
#include <algorithm>
__global__ void k(float *y, half h, int64_t n) { y[0] = __half2float(h) + __bfloat162float(__float2bfloat16(1.0f)); }
"""
TEMPLATE = """template <typename T, int N> __global__ void k(T *y) { y[0] = N; }
template <typename T> static void run(T *y) { k<T, 4><<<1, 1>>>(y); }
"""
TENSOR_CORES = """#include <mma.h>
using namespace nvcuda;
__global__ void k(const half *a, float *y) {
    wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major> left;
    wmma::fragment<wmma::accumulator, 16, 16, 16, float> sum;
    wmma::load_matrix_sync(left, a, 16);
    wmma::fill_fragment(sum, 0.0f);
    wmma::store_matrix_sync(y, sum, 16, wmma::mem_row_major);
}
"""


def compiled(text: str, launch: str, folder: Path) -> Binaries | tuple[Diagnostic, ...]:
    return compile_kernel(runtime(), toolkit(), "sm_90", text + ENTRY.replace("LAUNCH", launch), folder)


@pytest.mark.parametrize(
    ("text", "launch"),
    [
        pytest.param(HALF, "k<<<1, 1>>>(y, half{}, 3);", id="half"),
        pytest.param(TEMPLATE, "run(y);", id="template"),
        pytest.param(TENSOR_CORES, "k<<<1, 32>>>((const half *)args->inputs[0].ptr, y);", id="tensor-cores"),
        pytest.param("static __global__ void k(float *y) { *y = 1; }\n", "k<<<1, 1>>>(y);", id="static"),
        pytest.param("namespace { __global__ void k(float *y) { *y = 1; } }\n", "k<<<1, 1>>>(y);", id="anonymous"),
        pytest.param('extern "C" __global__ void k(float *y) { *y = 1; }\n', "k<<<1, 1>>>(y);", id="extern-c"),
    ],
)
def test_usual_language_features_compile(text: str, launch: str, tmp_path: Path) -> None:
    build = compiled(text, launch, tmp_path)
    assert isinstance(build, Binaries), build
    assert len(build.kernels) == 1
    assert not build.has_variables


def test_device_variables_are_detected(tmp_path: Path) -> None:
    build = compiled(
        "__device__ int calls;\n__global__ void k(float *y) { *y = ++calls; }\n", "k<<<1, 1>>>(y);", tmp_path
    )
    assert isinstance(build, Binaries)
    assert build.has_variables


@pytest.mark.parametrize(
    ("text", "launch", "line", "words"),
    [
        ("__global__ void k(float *y) {\n    *y = nothing;\n}\n", "k<<<1, 1>>>(y);", 2, "nothing"),
        ("__global__ void k(float *y) { *y = 1; }\n", "k<<<1, 1>>>(y, 3);", 4, "parameters (float*)"),
        ("__global__ void k(float *y) { *y = 1; }\n", "cudaMalloc(&y, 4);", 4, "cudaMalloc"),
        ("#include <no_such.h>\n__global__ void k(float *y) { *y = 1; }\n", "k<<<1, 1>>>(y);", 1, "no_such.h"),
    ],
)
def test_errors_have_the_authors_lines(text: str, launch: str, line: int, words: str, tmp_path: Path) -> None:
    build = compiled(text, launch, tmp_path)
    assert isinstance(build, tuple)
    assert words in build[0].message
    assert build[0].line == line


def test_device_and_host_part_are_required(tmp_path: Path) -> None:
    only_kernel = "__global__ void k(float *y) { *y = 1; }\n"
    assert compile_kernel(runtime(), toolkit(), "sm_90", only_kernel, tmp_path) == (Diagnostic(NO_ENTRY),)
    assert compiled("", "", tmp_path) == (Diagnostic(NO_KERNEL),)


def test_the_trusted_kernels_compile(tmp_path: Path) -> None:
    assert compile_trusted(runtime(), toolkit(), "sm_90", tmp_path / "sm_90").is_file()


def test_no_file_of_the_machine_reaches_the_diagnostics(tmp_path: Path) -> None:
    build = compiled('#include "/etc/passwd"\n__global__ void k(float *y) { *y = 1; }\n', "k<<<1, 1>>>(y);", tmp_path)
    assert isinstance(build, tuple)
    assert "root:" not in " ".join(one.message for one in build)
