"""The audit of tasks: null kernels that pass and arguments without effect are reported."""

import json
import subprocess

import pytest
from script import run_script

from kernel_gym.suites import SUITES, find_task, load_suite
from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.tasks.task import Task
from kernel_gym.verifier.audit import _ignored, audit
from kernel_gym.verifier.sensitivity.parameters import arguments_fade

SIZES = CaseSizes("rows columns", public=(8, 32), hidden=((3, 61), (1, 17)), timing=(64, 64))


def task_of(forward: str, **inputs: str) -> Task:
    arguments = inputs or {"x": "torch.randn(rows, columns)"}
    return TaskDefinition(None, "made", "other", "For the audit.", SIZES, forward, arguments).task("test")


@pytest.mark.parametrize(
    ("forward", "null"),
    [
        ("x * 0", "zeros"),
        ("torch.softmax(x.mean(dim=1, keepdim=True), dim=1)", "ones"),
        ("x * 1.00001", "copy of x"),
        ("x.flip(0).flip(1)", "reversal of x"),
        ("x.mean() + torch.zeros_like(x)", "mean of x"),
        ("(x * 0 + torch.arange(x.shape[1]))", "outputs of other values"),
        ("torch.sign(x)", "half precision"),
    ],
)
def test_the_audit_finds_a_degenerate_task(forward: str, null: str):
    assert null in audit(task_of(forward)).passing


def test_half_precision_is_no_defect_of_a_task_in_a_half_type():
    task = task_of("torch.exp(x)", x="torch.randn(rows, columns, dtype=torch.bfloat16)")
    assert audit(task).ok


def test_the_audit_finds_an_argument_without_effect():
    result = audit(task_of("torch.exp(x) + 0 * y", x="torch.randn(rows, columns)", y="torch.randn(rows, columns)"))
    assert result.ignored == ("y",)
    assert not result.ok


@pytest.mark.parametrize(
    "name", ["basics/vector_add", "level1/19", "level1/23", "level1/51", "level1/94", "level2/80", "level2/83"]
)
def test_a_sample_of_our_tasks_is_fit(name: str):
    assert audit(find_task(name)).ok


@pytest.mark.slow
@pytest.mark.parametrize("task", [pytest.param(t, id=t.id) for name in SUITES for t in load_suite(name)])
def test_all_our_tasks_are_fit(task: Task):
    """`make test-suites`."""
    assert audit(task).ok


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return run_script("suite", *arguments)


def test_command_line_lists_as_data():
    listed = json.loads(run("list", "level1", "--json").stdout)
    assert len(listed) == 100
    assert listed[18]["id"] == "level1/relu"


def test_command_line_shows_and_audits():
    shown = json.loads(run("show", "level1/19", "--json").stdout)
    assert shown["operators"] == ["aten.relu.default"]
    assert shown["cases"]["timing"]["inputs"][0]["name"] == "x"
    audited = run("audit", "level1/19")
    assert (audited.returncode, audited.stdout) == (0, "1 of 1 tasks are fit to be judged\n")


def test_command_line_refuses_in_one_line():
    refused = run("show", "level1/rlu")
    assert refused.returncode == 2
    assert refused.stderr == "suite.py: no task 'level1/rlu'; did you mean level1/relu, level1/elu, level1/selu?\n"


def test_command_line_fails_when_a_null_kernel_passes(tmp_path):
    file = tmp_path / "zero.py"
    file.write_text(task_of("x * 0").source)
    failed = run("audit", str(file))
    assert failed.returncode == 1
    assert "a null kernel passes: zeros" in failed.stdout


def test_arguments_matter_in_the_networks_whose_relus_would_be_zero():
    for name in ("level3/lenet5", "level3/deep_narrow_mlp"):
        task = find_task(name)
        assert arguments_fade(task)
        assert not any(_ignored(task))
    assert not arguments_fade(find_task("level3/mlp"))
