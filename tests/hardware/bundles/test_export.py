"""Kernels in one file, exported as bundles: the round trip through the bundles' own path."""

import json
from dataclasses import replace

import numpy as np
import pytest
from script import run_script

from kernel_gym import suites
from kernel_gym.authors.apprentice.author import fluent
from kernel_gym.errors import BundleError
from kernel_gym.hardware.ascend_sim import chip
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.bundles.export import export
from kernel_gym.hardware.device import Inputs
from kernel_gym.hardware.host.tensors import npu_workspace_bytes, random_inputs
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier

COUNTING = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("count", torch.zeros(1))

    def forward(self, x):
        self.count += 1
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
"""


def small(task):
    """Return the task with the sizes of its public case as those of its timing case."""
    timing = replace(task.timing, sizes=task.public.sizes)
    return replace(task, cases=tuple(timing if case.role == "timing" else case for case in task.cases))


@pytest.mark.slow
def test_a_kernel_of_several_launches_computes_the_same_as_a_bundle_and_takes_as_long():
    """The second launch reads what the first left in the workspace, and in L2.

    As a bundle, a core copies the tiling data and takes its arguments from there. The copy of 304 bytes takes 6 cycles,
    the choice by key and the arguments a dozen.
    """
    task = small(suites.find_task("level2/gemm_multiply_leakyrelu"))
    kernel, signature = fluent(task), task.instance(task.timing).signature
    assert kernel.source.count("<<<") == 2
    inputs = Inputs(signature, random_inputs(signature, 0), case=task.timing)
    with AscendSim() as device:
        one_file, bundle = (
            device.run(device.build(form, task), inputs) for form in (kernel, Kernel(export(kernel, task)))
        )
    assert bundle.status == one_file.status == "ok", bundle.fault
    np.testing.assert_array_equal(bundle.outputs[0], one_file.outputs[0])
    assert f"{npu_workspace_bytes(signature)}" in export(kernel, task)
    assert 0 < (bundle.latency_us - one_file.latency_us) * chip.load()["clock_mhz"] <= 2 * 20


def test_the_tiling_data_of_an_exported_kernel_has_no_words_that_no_launch_needs():
    """Every core copies it."""
    task = suites.find_task("level1/relu")
    assert "TILING_DATA_FIELD_DEF_ARR(uint64_t, 2, words);" in export(fluent(task), task)


@pytest.mark.parametrize(
    ("name", "launches"),
    [
        pytest.param("level1/relu", 1, marks=pytest.mark.slow),
        pytest.param("level1/softmax", 1, marks=pytest.mark.slow),
        pytest.param("level1/square_matrix_multiplication", 1, marks=pytest.mark.slow),
        pytest.param("level1/mse_loss", 2, marks=pytest.mark.slow),
        pytest.param("level1/max_pooling_1d", 3, marks=pytest.mark.slow),
        pytest.param("level2/gemm_multiply_leakyrelu", 2, marks=pytest.mark.slow),
        pytest.param("level2/conv2d_relu_bias_add", 3, marks=pytest.mark.slow),
    ],
)
def test_an_exported_kernel_is_as_feasible_and_as_fast(name, launches):
    """The first is run by `make test`, all are run by `make test-slow`."""
    task = suites.find_task(name)
    kernel = fluent(task)
    assert kernel.source.count("<<<") == launches
    with Verifier(AscendSim(), cache=False, policy="reference", unsafe=True) as verifier:
        before, after = verifier.verify(kernel, task), verifier.verify(Kernel(export(kernel, task)), task)
    assert after.feasible, after.feedback
    assert after.latency_us == pytest.approx(before.latency_us, rel=1e-3)


@pytest.mark.slow
def test_the_commands_export_and_verify_go_together(tmp_path):
    """Run by `make test-slow`."""
    task, kernel, bundle = "level1/mse_loss", tmp_path / "kernel.asc", tmp_path / "bundle.py"
    kernel.write_text(fluent(suites.find_task(task)).source)
    done = run_script("export", "--task", task, "--kernel", kernel, "--out", bundle)
    assert done.returncode == 0, done.stderr
    words = ("--task", task, "--policy", "reference", "--no-oracle", "--json", "--unsafe")
    verdicts = [
        json.loads(run_script("verify", *words, *form).stdout.splitlines()[-1])
        for form in (("--kernel", kernel), ("--bundle", bundle))
    ]
    assert [verdict["outcome"] for verdict in verdicts] == ["feasible", "feasible"]
    assert verdicts[1]["latency_us"] == pytest.approx(verdicts[0]["latency_us"], rel=1e-3)


def test_tasks_that_change_buffers_are_refused(tmp_path):
    problem = tmp_path / "counting.py"
    problem.write_text(COUNTING)
    with pytest.raises(BundleError, match="changes count: a bundle's model returns outputs only"):
        export(Kernel(""), suites.find_task(str(problem), trust=True))


def test_a_kernel_that_launches_nothing_is_refused():
    with pytest.raises(BundleError, match="launches nothing"):
        export(
            Kernel('extern "C" int kernel_launch(const KernelArgs *a, void *s) { return 0; }'),
            suites.find_task("level1/relu"),
        )
