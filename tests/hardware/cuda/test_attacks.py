"""The standing adversary on an NVIDIA GPU; what its text and its assembly give away is tested without one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.cuda.device import Cuda
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.attacks import catalogue, trial
from kernel_gym.verifier.attacks.catalogue import Attack
from kernel_gym.verifier.screening import screen
from kernel_gym.verifier.screening.source import read

ATTACKS = catalogue.load("cuda")
HONEST = [attack for attack in ATTACKS if attack.expected == "feasible"]


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
    assert {"S1", "S10"} <= {cause for attack in ATTACKS for cause in attack.causes}
