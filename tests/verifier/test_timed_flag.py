"""A kernel that looks beside its arguments for a sign of the timed run finds none."""

from pathlib import Path

from kernel_gym import suites
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier

CHEAT = (Path(__file__).parent / "cheats" / "timed_flag.cpp").read_text()
LOOK = "((const uint32_t *)a->inputs)[-24]"


def test_reading_before_the_arguments_gains_nothing() -> None:
    assert LOOK in CHEAT
    task = suites.find("level1/gelu")
    with Verifier(AscendSim(), cache=False) as judge:
        honest = judge.verify(Kernel(CHEAT.replace(LOOK, "0")), task)
        cheating = judge.verify(Kernel(CHEAT), task)
    assert honest.feasible
    assert not cheating.feasible or cheating.latency_us == honest.latency_us
