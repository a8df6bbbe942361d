"""What an actor of a cluster does with a build that another machine made; without Ray."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Build, Diagnostic, PackedBuild
from kernel_gym.service.cluster_workers import Judge, room_for

RELU = suites.find_task("level1/relu")


def test_a_build_of_the_same_compiler_is_used_and_that_of_another_is_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path))
    kernel = oracle(RELU)
    with AscendSim() as device:
        refused = PackedBuild(Build(kernel, diagnostics=(Diagnostic("refused elsewhere"),)), device.identity())
    judge = Judge("ascend-sim", {}, "strict")
    assert "refused elsewhere" in judge.judge(kernel, RELU, b"secret", refused).feedback
    assert judge.judge(kernel, RELU, b"another", replace(refused, identity="another compiler")).feasible


def test_room_is_what_the_scarcest_resource_allows() -> None:
    assert room_for("ascend-sim", {"CPU": 3.0}) == 3
    assert room_for("ascend", {"CPU": 96.0, "NPU": 8.0}) == 8
    assert room_for("cuda", {"CPU": 96.0}) == 0
