"""Damaged kernels: nothing breaks, nothing leaks, and what is called feasible is right by an independent check."""

import gc
import os
import shutil
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Unjudged
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.attacks import catalogue
from kernel_gym.verifier.attacks.damage import damaged
from kernel_gym.verifier.attacks.recheck import is_right
from kernel_gym.verifier.attacks.variants import bare, other_tiles

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

KERNELS = catalogue.load("ascendc")
RELU = catalogue.honest("ascendc", "relu").kernel


#: Bytes by which the process may grow over half of the kernels.
LEAK = 256 << 20


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children() -> list[str]:
    processes = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread may end meanwhile
            processes += (thread / "children").read_text().split()
    return processes


def leftovers(folder: Path) -> tuple[int, int, int]:
    gc.collect()  # files that earlier tests left to the garbage collector must not be closed in between
    return len(children()), len(os.listdir("/proc/self/fd")), len(list(folder.iterdir()))


def judge_damaged(count: int, seed: int, folder: Path) -> dict[str, int]:
    task = suites.find_task("level1/relu")
    outcomes: dict[str, int] = {}
    with Verifier(AscendSim(), cache=False, unsafe=True) as verifier, AscendSim() as second:
        verifier.verify(RELU, task)
        assert is_right(second, RELU, task, seed)
        before, warm = leftovers(folder), 0
        for index, attack in enumerate(damaged(KERNELS, count, seed)):
            if index == count // 2:
                warm = resident_bytes()
            kernel, own = attack.kernel, suites.find_task(attack.task)
            verdict = verifier.verify(kernel, own)
            assert not isinstance(verdict, Unjudged), (verdict.feedback, kernel.source)
            assert verdict.feedback
            assert not verdict.feasible or is_right(second, kernel, own, index), kernel.source
            outcomes[verdict.outcome] = outcomes.get(verdict.outcome, 0) + 1
        assert leftovers(folder) == before
        assert resident_bytes() - warm < LEAK, "memory that grows with every kernel"
        assert verifier.verify(RELU, task).feasible
    return outcomes


def test_damage_is_the_same_for_the_same_seed_and_not_nothing():
    some = [attack.kernel.source for attack in damaged(KERNELS, 30, 3)]
    assert some == [attack.kernel.source for attack in damaged(KERNELS, 30, 3)]
    assert some != [attack.kernel.source for attack in damaged(KERNELS, 30, 4)]
    assert len(set(some) - {attack.kernel.source for attack in KERNELS}) > 25


def test_a_variant_without_comments_keeps_what_a_string_says():
    text = 'printf("a // b \\" /* c */", x);  // gone\nint y; /* gone\n too */'
    assert bare(text) == 'printf("a // b \\" /* c */", x);  \nint y; '


def test_other_tiles_leave_a_text_that_asserts_their_size_as_it_is():
    asserted = "constexpr uint32_t BITS = Log2(4096);\nstatic_assert(BITS == 12);\n"
    assert other_tiles(asserted) == asserted
    assert other_tiles("t.tile = 4096;") == "t.tile = 2048;"


def test_a_kernel_without_tokens_cannot_be_damaged():
    empty = replace(KERNELS[0], kernel=Kernel("// nothing\n"))
    assert [attack.kernel.source for attack in damaged([empty], 3, 1)] == ["// nothing\n"] * 3


def test_the_second_opinion_finds_what_is_wrong_at_large_sizes_alone():
    text = RELU.source.replace("    t.tile = 4096;", "    t.tile = 4096;\n    if (t.total > 4000000) t.total -= 64;")
    assert text != RELU.source
    with AscendSim() as device:
        task = suites.find_task("level1/relu")
        assert is_right(device, RELU, task, 1)
        assert not is_right(device, Kernel(text), task, 1)


@pytest.mark.slow
def test_the_second_opinion_reads_types_that_numpy_lacks():
    task = suites.find_task("attention/rms_norm")
    with AscendSim() as device:
        assert is_right(device, oracle(task), task, 1)
        wrong = oracle(task).source.replace("AscendC::Muls(", "AscendC::Adds(")
        assert not is_right(device, Kernel(wrong), task, 1)


def test_damaged_kernels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outcomes = judge_damaged(20, 1, tmp_path)
    with capsys.disabled():
        print(f"\ndamaged kernels: {outcomes}")
    assert sum(outcomes.values()) == 20
    assert len(outcomes) >= 3


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_ten_thousand_damaged_kernels(tmp_path, monkeypatch, capsys):
    """Half an hour: `python -m pytest -m slow tests/verifier/test_garbage.py`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outcomes = judge_damaged(10_000, 2, tmp_path)
    with capsys.disabled():
        print(f"\ndamaged kernels: {outcomes}")


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 141])
def test_the_second_opinion_leaves_room_for_rounding_to_int8(seed: int) -> None:
    """The results of the honest kernel differ by one in a few elements, whose numbers are near a half."""
    task = suites.find_task("attention/dy_quantize")
    with AscendSim() as device:
        assert is_right(device, oracle(task, "ascendc"), task, seed)
