"""Kernels of every fate through the whole verifier on the GPU."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym import suites
from kernel_gym.hardware.cuda import device as devices
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Verdict
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.cuda
RELU = "level1/relu"
EXAMPLE = (devices.Path(devices.__file__).with_name("examples") / "relu.cu").read_text()
#: A relu by single threads; BODY sees x, y, n, i and scratch.
HEAD = """#include "kernel_gym.h"
DECLARATIONS
__global__ void relu(const float *x, float *y, unsigned char *scratch, long long n) {
    const long long step = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < n; i += step) { BODY }
}
extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    long long n = 1;
    for (int i = 0; i < args->inputs[0].ndim; ++i) n *= args->inputs[0].shape[i];
    HOST
    relu<<<1024, 256, 0, (cudaStream_t)stream>>>((const float *)args->inputs[0].ptr, (float *)args->outputs[0].ptr,
        (unsigned char *)args->workspace, n);
    return 0;
}
"""


def source(body: str, declarations: str = "", host: str = "") -> str:
    return HEAD.replace("BODY", body).replace("DECLARATIONS", declarations).replace("HOST", host)


HONEST = "y[i] = fmaxf(x[i], 0.0f);"


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(Cuda(timeout=3.0), cache=False) as judge:
        yield judge


def judge(verifier: Verifier, text: str, task: str = RELU) -> Verdict:
    return verifier.verify(Kernel(text, "cuda", trusted=True), suites.find_task(task))


def test_the_example_is_feasible(verifier: Verifier) -> None:
    verdict = judge(verifier, EXAMPLE)
    assert verdict.feasible, verdict.feedback
    assert any("95% interval" in note for note in verdict.notes)
    profile = verdict.profile  # type: ignore[union-attr]
    assert profile.counts["registers"] > 0
    assert 0 < profile.counts["occupancy_percent"] <= 100
    assert profile.bottleneck
    assert profile.diagnosis


def test_the_plain_kernel_is_feasible(verifier: Verifier) -> None:
    assert judge(verifier, source(HONEST)).feasible


#: What each kernel does, and its verdict: outcome, cause, rule (empty: any).
FATES = {
    "wrong": (source("y[i] = fabsf(x[i]);"), "incorrect", "mismatch", ""),
    "uncompilable": (source("y[i] = nothing(x[i]);"), "uncompilable", "", ""),
    "hanging": (source("while (x[0] < 1e30f) y[i] = x[i];"), "incorrect", "timeout", "KERNEL_TIMEOUT"),
    "illegal": (source("y[i + (1ll << 34)] = 1.0f;"), "incorrect", "fault", "ILLEGAL_ACCESS"),
    "misaligned": (source("*(float4 *)(y + 1) = float4{};"), "incorrect", "fault", "MISALIGNED_ACCESS"),
    "behind": (source(HONEST + " if (i == 0) y[n] = 1.0f;"), "incorrect", "fault", "OUT_OF_BOUNDS"),
    "before": (source(HONEST + " if (i == 0) y[-1] = 1.0f;"), "incorrect", "fault", "OUT_OF_BOUNDS"),
    "far behind": (
        source(HONEST + " if (i == 0) scratch[(32 << 20) + 32 * n + (1 << 17)] = 1;"), "incorrect", "fault",
        "OUT_OF_BOUNDS",
    ),
    "changes an input": (source("((float *)x)[i] = y[i] = fmaxf(x[i], 0.0f);"), "incorrect", "fault", "ILLEGAL_ACCESS"),
    "skips half": (source("if (i % 2) " + HONEST), "incorrect", "mismatch", ""),
    "large block": (source(HONEST).replace("1024, 256", "1024, 2048"), "incorrect", "fault", "BAD_LAUNCH"),
    "trap": (source("__trap();"), "incorrect", "fault", ""),
    "outside of shared memory": (
        source("extern __shared__ float s[]; s[threadIdx.x + 100000] = 1.0f; " + HONEST), "incorrect", "fault", ""
    ),
    "refuses large sizes": (source(HONEST, host="if (n > 100000) return 3;"), "incorrect", "refused", ""),
    "host crash": (source(HONEST, host="n = *(int *)args->workspace;"), "incorrect", "fault", "HOST_CRASH"),
}  # fmt: skip


@pytest.mark.parametrize("name", FATES)
def test_kernels_get_their_verdicts(verifier: Verifier, name: str) -> None:
    text, outcome, cause, rule = FATES[name]
    verdict = judge(verifier, text)
    assert verdict.outcome == outcome, verdict.feedback
    assert getattr(verdict, "cause", "") == cause, verdict.feedback
    assert not rule or getattr(verdict, "rule", "") == rule, verdict.feedback
    assert "\n" not in verdict.feedback.split("\nHint:")[0]


#: Kernels that would be right or fast only if something were left of an earlier call, or could be had elsewhere.
CHEATS = {
    "stale outputs": source("if (n < 100000) y[i] = fmaxf(x[i], 0.0f);"),
    "stale workspace": source(
        "float *kept = (float *)scratch; if (n > 100000 && kept[i] == fmaxf(x[i], 0.0f)) y[i] = kept[i];"
        " else if (n < 100000) y[i] = kept[i] = fmaxf(x[i], 0.0f);"
    ),
    "a global variable": source(
        "if (i == 0) ++calls; " + HONEST, declarations="__device__ int calls;"
    ),
    "skips work when large": source("if (n < 100000 || i < n / 2) y[i] = fmaxf(x[i], 0.0f); else y[i] = 0.0f;"),
    "lower precision when large": source(
        "y[i] = n < 100000 ? fmaxf(x[i], 0.0f) : __half2float(__float2half(fmaxf(x[i], 0.0f)));",
        declarations="#include <cuda_fp16.h>",
    ),
    "the device's heap": source("float *p = (float *)malloc(4); *p = fmaxf(x[i], 0.0f); y[i] = *p; free(p);"),
    "managed memory": source(HONEST, declarations="__managed__ int kept;"),
    "streams and events": source(HONEST, host="cudaEvent_t e; cudaEventCreate(&e); cudaEventRecord(e, 0);"),
    "reads behind its inputs": source("y[i] = n > 100000 ? x[i + n + 16384 + 4096] : fmaxf(x[i], 0.0f);"),
    "looks for the answer": source("y[i] = n < 100000 ? fmaxf(x[i], 0.0f) : y[i + n];"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_gain_nothing(verifier: Verifier, name: str) -> None:
    verdict = judge(verifier, CHEATS[name])
    assert not verdict.feasible, name
    assert verdict.outcome != "unjudged", verdict.feedback


#: A mean of squared differences by one block, in an order that is always the same; TARGET is what is subtracted.
MSE = """#include "kernel_gym.h"
__global__ void mse(const float *p, const float *q, float *result, long long n) {
    __shared__ double sums[1024];
    double sum = 0.0;
    for (long long i = threadIdx.x; i < n; i += 1024) { const double d = p[i] - (TARGET); sum += d * d; }
    sums[threadIdx.x] = sum;
    for (int half = 512; half > 0; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) *result = (float)(sums[0] / n);
}
extern "C" int kernel_launch(const KernelArgs *args, void *stream) {
    const long long n = args->inputs[0].shape[0] * args->inputs[0].shape[1];
    mse<<<1, 1024, 0, (cudaStream_t)stream>>>((const float *)args->inputs[0].ptr, (const float *)args->inputs[1].ptr,
        (float *)args->outputs[0].ptr, n);
    return 0;
}
"""


def test_values_with_stress_do_not_hide_what_is_not_read(verifier: Verifier) -> None:
    """An output that adds all rows up is compared on ordinary values, too."""
    honest = judge(verifier, MSE.replace("TARGET", "q[i]"), "level1/mse_loss")
    assert honest.feasible, honest.feedback
    for target in ("n > 100000 ? 0.0f : q[i]", "n > 100000 && fabsf(p[i]) < 15.0f ? p[i] : q[i]"):
        verdict = judge(verifier, MSE.replace("TARGET", target), "level1/mse_loss")
        assert verdict.outcome == "incorrect", (target, verdict.feedback)
        assert getattr(verdict, "case", "") == "timing"


IN_CONSTANTS = (
    'unsigned long long p; asm volatile("cvta.const.u64 %0, calls;" : "=l"(p));'
    " y[i] = (float)atomicAdd((int *)p, 1); if (n < 0) y[i] = calls;"
)


@pytest.mark.parametrize(
    ("count", "declaration"),
    [("y[i] = (float)atomicAdd(&calls, 1);", "__device__ int calls;"), (IN_CONSTANTS, "__constant__ int calls;")],
)
def test_unscreened_state_is_gone_at_every_call(device: Cuda, count: str, declaration: str) -> None:
    """Even if the screen let a global variable through: the code is loaded anew before each call."""
    import numpy as np

    from kernel_gym.hardware.device import Inputs
    from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

    text = source(count, declarations=declaration)
    build = device.build(Kernel(text, "cuda"))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((1,)),), (TensorSpec((1,)),))
    values = (np.ones(1, np.float32),)
    timing = device.time(build, signature, [values, values], 0xFF)
    assert not timing.unstable
    assert [run.outputs[0][0] for run in timing.runs] == [0.0, 0.0]
    assert device.run(build, Inputs(signature, values)).outputs[0][0] == 0.0


#: Where each thread leaves a mark with the number of its inputs, and looks for one with another number: deep in its
#: local memory, near its beginning, and in the shared memory that the system reserves before a block's own.
LOCAL = "volatile unsigned marks[SIZE]; volatile unsigned &kept = marks[SIZE / 2 + (n >> 40)];"
FOUND = "y[i] = kept >> 8 == 0x5EC0DEu && (kept & 255) != (unsigned)x[i];"
LEFT = "0x5EC0DE00u | (unsigned)x[i]"
MARKS = {
    "much local memory": f"{LOCAL.replace('SIZE', '7000')} {FOUND} kept = {LEFT};",
    "little local memory": f"{LOCAL.replace('SIZE', '64')} {FOUND} kept = {LEFT};",
    "reserved shared memory": f"""unsigned kept; const unsigned at = 4 * threadIdx.x;
        asm volatile("ld.shared.u32 %0, [%1];" : "=r"(kept) : "r"(at)); {FOUND}
        asm volatile("st.shared.u32 [%0], %1;" :: "r"(at), "r"({LEFT}));""",
}


@pytest.mark.parametrize("where", MARKS)
def test_no_thread_finds_what_another_call_left(device: Cuda, where: str) -> None:
    import numpy as np

    from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

    build = device.build(Kernel(source(MARKS[where]), "cuda"))
    assert build.ok, build.diagnostics
    signature = Signature((InputSpec((1 << 18,)),), (TensorSpec((1 << 18,)),))
    sets = [(np.full(1 << 18, number, np.float32),) for number in range(3)]
    timing = device.time(build, signature, sets, 0xFF)
    assert timing.runs[0].status == "ok", timing.runs[0].fault
    assert not timing.unstable
    assert not any(run.outputs[0].any() for run in timing.runs)


def test_the_workspace_is_poisoned_before_every_call(device: Cuda) -> None:
    import numpy as np

    from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

    text = source("float *kept = (float *)scratch; y[i] = kept[i]; kept[i] = x[i];")
    build = device.build(Kernel(text, "cuda"))
    signature = Signature((InputSpec((100,)),), (TensorSpec((100,)),))
    values = (np.ones(100, np.float32),)
    timing = device.time(build, signature, [values, values], 0x7B)
    assert not timing.unstable
    for run in timing.runs:
        assert set(run.outputs[0].tobytes()) == {0x7B}
