"""Kernels that look for a sign of the timed run, or for the counts that they are judged by, and would change them."""

from pathlib import Path

import pytest

from kernel_gym import suites
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier import Verifier

CHEAT = (Path(__file__).parent / "cheats" / "timed_flag.cpp").read_text()
LOOK = "((const uint32_t *)a->inputs)[-24]"
LAUNCH = 'extern "C" int kernel_launch'

#: Each is called by the host function and says whether it has found out, by what it can reach from its own frame.
FORGERIES = {
    "up the stack": """
uint32_t forged(const KernelArgs *a) {
    const uint32_t *p = (const uint32_t *)&a;
    for (uint32_t i = 0; i < 1u << 20; ++i) if (p[i] == 1000) return 1;
    return 0;
}
""",
    "pointers found on the stack, followed": """
uint32_t forged(const KernelArgs *a) {
    union { uint64_t number; uint64_t *pointer; } bent;
    const uint64_t *p = (const uint64_t *)&a;
    for (uint32_t i = 0; i < 64; ++i) {
        bent.number = p[i];
        if (bent.number >> 40 == 0x7f || bent.number >> 40 == 0x55) *bent.pointer = 0;
    }
    return 0;
}
""",
    "addresses of the runtime, by the code's own": """
constexpr uint64_t here = 1;
uint32_t forged(const KernelArgs *a) {
    union { uint64_t number; uint64_t *pointer; } bent;
    const uint64_t *p = &here;
    for (uint32_t i = 0; i < 1u << 16; ++i) {
        bent.number = p[i];
        if (bent.number >> 32) bent.pointer[0] = 0;
    }
    return 0;
}
""",
    "one's own return address": """
uint32_t forged(const KernelArgs *a) {
    uint64_t frame[1] = {0};
    for (uint32_t i = 32; i > 0; --i) frame[i] = frame[0];
    return 0;
}
""",
}


@pytest.fixture(scope="module")
def judge():
    with Verifier(AscendSim(), cache=False) as judge:
        yield judge


def test_reading_before_the_arguments_gains_nothing(judge) -> None:
    assert LOOK in CHEAT
    task = suites.find_task("level1/gelu")
    honest = judge.verify(Kernel(CHEAT.replace(LOOK, "0")), task)
    cheating = judge.verify(Kernel(CHEAT), task)
    assert honest.feasible
    assert not cheating.feasible or cheating.latency_us == honest.latency_us


@pytest.mark.parametrize("name", FORGERIES)
def test_forged_addresses_are_faults(judge, name) -> None:
    text = CHEAT.replace(LOOK, "forged(a)").replace(LAUNCH, f"{FORGERIES[name]}\n{LAUNCH}")
    verdict = judge.verify(Kernel(text), suites.find_task("level1/gelu"))
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.rule == "BAD_POINTER", verdict.feedback
