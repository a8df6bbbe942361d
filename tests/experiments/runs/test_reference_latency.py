"""References that a latency is compared with: the floor, and the oracle's latency, which is kept on disk."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from kernel_gym import suites
from kernel_gym.authors import apprentice
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.reference_latency import ReferenceLatencies, floor_us, oracle_us
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.hardware.ascend_sim import chip
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Verdict
from kernel_gym.verifier.cache import VerdictCache


class Counting:
    """A verifier that says 42 us and counts its verdicts."""

    def __init__(self, cache: VerdictCache | None, identity: str = "a device") -> None:
        self.cache, self.judged, self.policy = cache, 0, "strict"
        self.device = SimpleNamespace(language="ascendc", identity=lambda: identity, floor_us=lambda signature: 13.0)

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        self.judged += 1
        return Feasible("", latency=42.0)


@pytest.fixture(scope="module")
def relu() -> Task:
    return suites.find_task("level1/relu")


def test_the_oracle_is_written_and_judged_once_for_a_task_and_a_device(
    relu: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Counting(VerdictCache(tmp_path))
    assert oracle_us(relu, first) == 42.0
    monkeypatch.setattr(apprentice, "oracle", None)  # a second process neither writes nor judges it
    second = Counting(VerdictCache(tmp_path))
    assert oracle_us(relu, second) == 42.0
    assert (first.judged, second.judged) == (1, 0)


def test_another_device_or_task_has_an_oracle_of_its_own(relu: Task, tmp_path: Path) -> None:
    cache = VerdictCache(tmp_path)
    oracle_us(relu, Counting(cache))
    other = Counting(cache, "another device")
    oracle_us(relu, other)
    oracle_us(suites.find_task("level1/sigmoid"), other)
    assert other.judged == 2


def test_without_a_cache_no_latency_is_kept(relu: Task) -> None:
    verifier = Counting(None)
    assert [oracle_us(relu, verifier) for _ in range(2)] == [42.0, 42.0]
    assert verifier.judged == 2


def test_a_separate_cache_serves_a_verifier_without_one(relu: Task, tmp_path: Path) -> None:
    verifier = Counting(None)
    assert [oracle_us(relu, verifier, VerdictCache(tmp_path)) for _ in range(2)] == [42.0, 42.0]
    assert verifier.judged == 1


def test_a_task_without_an_oracle_has_none(relu: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unsupported(*_: Any) -> Kernel:
        raise apprentice.Unsupported("no such operator")

    monkeypatch.setattr(apprentice, "oracle", unsupported)
    assert oracle_us(relu, Counting(VerdictCache(tmp_path))) is None


def test_the_floor_is_the_device_s(relu: Task) -> None:
    assert floor_us(relu, Counting(None).device) == 13.0


@pytest.mark.parametrize(("compute", "floor"), [(5.0, 13.0), (50.0, 50.0)])
def test_the_floor_is_that_of_the_tensors_or_of_the_arithmetic(compute: float, floor: float) -> None:
    task = suites.find_task("level1/standard_matrix_multiplication")
    device, asked = Counting(None).device, list[int]()
    device.compute_us = lambda signature, work: asked.append(work) or compute
    assert floor_us(task, device) == floor
    assert asked == [task.instance(task.timing).work()]


def test_a_device_with_a_roofline_has_no_other_floor(relu: Task) -> None:
    device = Counting(None).device
    device.compute_us, device.roofline_us = (lambda signature, work: 50.0), (lambda signature, work, nonlinear: 20.0)
    assert floor_us(relu, device) == 20.0


def test_the_roofline_knows_whether_a_task_is_more_than_sums_of_products() -> None:
    device, asked = Counting(None).device, list[bool]()
    device.roofline_us = lambda signature, work, nonlinear, whole=None: asked.append(nonlinear) or 20.0
    for name in ("conv2d_relu_bias_add", "gemm_scale_batch_norm", "conv2d_mish_mish", "conv3d_min_softmax"):
        floor_us(suites.find_task(f"level2/{name}"), device)
    assert asked == [False, True, True, True]


@pytest.mark.parametrize(("name", "whole"), [("cross_entropy_loss", {0, 1}), ("batch_norm", {0, 1, 2, 3, 4})])
def test_the_roofline_knows_what_is_read_whole_beside_indices(name: str, whole: set[int]) -> None:
    """A norm counts its batches, which its results do not depend on."""
    device, asked = Counting(None).device, list[frozenset[int]]()
    device.roofline_us = lambda signature, work, nonlinear, whole: asked.append(whole) or 20.0
    floor_us(suites.find_task(f"level1/{name}"), device)
    assert asked == [whole]


def test_a_large_product_is_bound_by_the_cube_and_a_relu_by_the_memory(relu: Task) -> None:
    product = suites.find_task("level1/standard_matrix_multiplication")
    with AscendSim() as device:
        launch = chip.load()["launch.base_us"]
        signature = product.instance(product.timing).signature
        assert floor_us(product, device) > 2 * device.floor_us(signature)
        # 32 MiB read from HBM, and as much written by 30 cores: the fewest that write it in that time.
        reading = (32 << 20) / 1530e3
        assert floor_us(relu, device) == pytest.approx(0.5 + 30 * 0.18 + max(reading, (32 << 20) / (30 * 51e3)))
        # 24 cube cores of the 910B2 at 1800 MHz, with 16 x 16 x 16 multiply-adds of 16 bits a cycle.
        assert device.compute_us(signature, 24 * 1800 * 4096) == pytest.approx(launch + 1.0)
        assert device.compute_us(signature, 2 * 24 * 1800 * 4096) == pytest.approx(launch + 2.0)


def test_a_run_folder_keeps_the_oracles_latencies_and_an_old_one_has_none(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    assert folder.oracle_us == {}
    references = ReferenceLatencies(Counting(None))
    references.add("level1/relu", "activation", 84.0)
    references.add("my/task", "other", 1.0)  # a task that was passed as an object
    folder.keep_references(references.measured)
    assert folder.oracle_us == {"level1/relu": 42.0}
    (tmp_path / "references.json").write_text("[1]")
    with pytest.raises(KernelGymError, match="delete it"):
        _ = folder.oracle_us
