"""The networks of level 3: they run, and the apprentice has a plan for them."""

import pytest
import torch

from kernel_gym.authors.apprentice import lower
from kernel_gym.suites import find_task, load_suite

#: Small ones, of different kinds.
QUICK = ("mlp", "net_vlad_no_ghost_clusters")
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
