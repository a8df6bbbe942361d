"""The networks of level 3: they run, and the apprentice has a plan for them."""

import pytest
import torch

from kernel_gym.authors.apprentice import lower, oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.suites import find_task, load_suite
from kernel_gym.verifier import Verifier

#: Small ones, of different kinds.
QUICK = ("mlp", "googlenet_inception_module", "net_vlad_no_ghost_clusters")
NAMES = [task.name for task in load_suite("level3")]


@pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in NAMES]
)
def test_a_network_runs_at_all_its_sizes_and_has_a_plan(name: str) -> None:
    task = find_task(f"level3/{name}")
    for case in (task.public, *task.hidden):
        outputs = task.instance(case).run_example()
        assert all(bool(torch.isfinite(tensor).all()) for tensor in outputs)
    assert lower(task).stages


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_the_oracle_of_a_network_passes_every_gate(name: str) -> None:
    """`make test-suites`."""
    task = find_task(f"level3/{name}")
    with Verifier(AscendSim()) as verifier:
        verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback
