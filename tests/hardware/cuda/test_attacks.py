"""The standing adversary on an NVIDIA GPU; what its text and its assembly give away is tested without one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_gym import suites
from kernel_gym.hardware.cuda.compiler import _OF_CUDA, HOST, HOST_SOURCE, _Compilation, _without
from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.hardware.cuda.runtime import runtime
from kernel_gym.hardware.cuda.toolkit import Toolkit
from kernel_gym.hardware.host import launches
from kernel_gym.hardware.host.launches import kernels_in
from kernel_gym.hardware.host.split import split
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.attacks import catalogue, trial
from kernel_gym.verifier.attacks.catalogue import Attack
from kernel_gym.verifier.screening import binary, screen
from kernel_gym.verifier.screening.source import read

ATTACKS = catalogue.load("cuda")
HONEST = [attack for attack in ATTACKS if attack.expected == "feasible"]
#: Attacks that the gates before correctness must stop, without a GPU.
IN_THE_HOST = [attack for attack in ATTACKS if attack.expected in ("screen", "compile", "binary")]


@pytest.fixture(scope="module")
def verifier(device: Cuda, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Verifier]:
    with Verifier(device, cache=tmp_path_factory.mktemp("verdicts"), unsafe=True) as judge:
        yield judge


@pytest.mark.cuda
@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.name)
def test_attack(verifier: Verifier, attack: Attack) -> None:
    (result,) = trial.run(verifier, [attack])
    assert result.fault == "", result.verdict


@pytest.mark.parametrize("attack", HONEST, ids=lambda attack: attack.name)
def test_honest_oddities_pass_the_screen(attack: Attack) -> None:
    finding = screen.screen(read(attack.kernel.source), language="cuda")
    assert finding is None, finding.describe()


def test_the_causes_of_the_simulator_are_tried_here_too() -> None:
    """S7 is about the simulator's timing model, S8 about texts, which are read in the same way for every language."""
    tried = {cause for attack in ATTACKS for cause in attack.causes}
    assert {"S1", "S2", "S3", "S4", "S5", "S6", "S9", "S10"} <= tried


def host_half(attack: Attack, folder: Path) -> _Compilation:
    parts = split(attack.kernel.source)
    (folder / HOST_SOURCE).write_text(_without(parts.host, _OF_CUDA))
    return _Compilation(runtime(), Toolkit(Path("/none"), Path("/none"), ()), "sm_90", folder, parts)


def stopped(attack: Attack, folder: Path) -> str:
    """The gate before correctness that stops the host half; empty if none does."""
    if screen.screen(read(attack.kernel.source), language="cuda"):
        return "screen"
    half = host_half(attack, folder)
    if half.host():
        return "compile"
    if screen.screen_preprocessed(half.preprocessed, "cuda"):
        return "screen"
    finding, mistakes = binary.screen(folder / HOST, "cuda")
    return "binary" if finding else "compile" if mistakes else ""


@pytest.mark.parametrize("attack", IN_THE_HOST, ids=lambda attack: attack.name)
def test_attacks_in_the_host_half_end_without_a_gpu(attack: Attack, tmp_path: Path) -> None:
    assert stopped(attack, tmp_path) == attack.expected


@pytest.mark.parametrize("attack", HONEST, ids=lambda attack: attack.name)
def test_the_host_half_of_honest_kernels_passes(attack: Attack, tmp_path: Path) -> None:
    assert stopped(attack, tmp_path) == ""


def test_what_is_behind_an_include_is_read_as_it_is_screened(tmp_path: Path) -> None:
    text = "#include <cuda_runtime.h> /*\nint hidden;\n*/ // \\\nint hidden;\n/*\n#include <cuda.h> */ int seen;\n"
    (tmp_path / HOST_SOURCE).write_text(_without(text, _OF_CUDA))
    half = _Compilation(runtime(), Toolkit(Path("/none"), Path("/none"), ()), "sm_90", tmp_path, split(text))
    assert half.host() == ()
    assert "hidden" not in half.preprocessed
    assert "int seen;" in half.preprocessed


def test_a_faulty_launch_names_no_line_of_the_authors_choice(tmp_path: Path) -> None:
    (attack,) = catalogue.select(ATTACKS, names=["S5_a_number_as_line"])
    half = host_half(attack, tmp_path)
    assert half.host() == ()
    names = kernels_in(tmp_path / HOST, {*half.parts.kernels})
    lines = launches.line_count(tmp_path / HOST_SOURCE)
    signature = suites.find_task(attack.task).instance(suites.find_task(attack.task).timing).signature
    plan = launches.plan(runtime().host, tmp_path / HOST, names, signature, 1 << 20, lines)
    assert [launch.block for launch in plan.launches] == [(4096, 1, 1)]
    assert [launch.line for launch in plan.launches] == [0]
