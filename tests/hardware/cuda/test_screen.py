"""The screens for CUDA: honest style passes, what outlives a call or reaches for the host does not."""

from __future__ import annotations

import pytest

from kernel_gym.hardware.cuda.runtime import HERE
from kernel_gym.verifier.screening import screen
from kernel_gym.verifier.screening.source import read

EXAMPLE = (HERE / "examples" / "relu.cu").read_text()
HONEST = {
    "the example": EXAMPLE,
    "shared memory": EXAMPLE.replace(
        "    const long long step", "    extern __shared__ float s[];\n    __shared__ float t[32];\n    const long long step"
    ),
    "assembly": EXAMPLE.replace(
        "    const long long step", '    unsigned lane;\n    asm volatile("mov.u32 %0, %%laneid;" : "=r"(lane));\n    const long long step'
    ),
    "constants": "__constant__ float table[4] = {1, 2, 3, 4};\nconstexpr int N = 3;\n" + EXAMPLE,
    "bounds": EXAMPLE.replace("__global__ void", "__global__ void __launch_bounds__(256, 2)"),
    "unroll": EXAMPLE.replace("    for (long long i = first", "#pragma unroll 4\n    for (long long i = first"),
    "cooperative groups": "#include <cooperative_groups.h>\nnamespace cg = cooperative_groups;\n" + EXAMPLE,
}  # fmt: skip
# ruff: noqa: E501
CHEATS = {
    "a variable": ("__device__ float kept[64];\n" + EXAMPLE, "mutable-global"),
    "managed memory": ("__managed__ int kept;\n" + EXAMPLE, "reserved-name"),
    "the heap": (EXAMPLE.replace("    const long long quads", "    float *p = (float *)malloc(4);\n    const long long quads"), "host-function"),
    "events": (EXAMPLE.replace("    const int threads", "    cudaEventRecord(0, 0);\n    const int threads"), "reserved-name"),
    "a stream of its own": (EXAMPLE.replace("    const int threads", "    cudaStreamCreate(0);\n    const int threads"), "reserved-name"),
    "the clock": (EXAMPLE.replace("    const long long quads", "    long long t = clock64();\n    const long long quads"), "reserved-name"),
    "a file": ('#include "/etc/passwd"\n' + EXAMPLE, "include-path"),
    "a macro of two meanings": ("#ifdef A\n#define KEPT\n#else\n#define KEPT __device__ int kept;\n#endif\n" + EXAMPLE, "macro-redefined"),
    "pasted names": ("#define P(a, b) a##b\n" + EXAMPLE, "token-paste"),
    "the recorder": (EXAMPLE.replace("    const int threads", "    kernel_gym_launch(0, 0, 0, 0, 0, 0);\n    const int threads"), "reserved-name"),
}  # fmt: skip


@pytest.mark.parametrize("name", HONEST)
def test_honest_style_passes(name: str) -> None:
    finding = screen.screen(read(HONEST[name]), language="cuda")
    assert finding is None, finding.describe()


@pytest.mark.parametrize("name", CHEATS)
def test_cheats_are_refused_by_their_rule(name: str) -> None:
    text, rule = CHEATS[name]
    finding = screen.screen(read(text), language="cuda")
    assert finding is not None
    assert finding.rule.id == rule
    assert "Ascend" not in finding.describe()
