"""The policies: `strict` judges at sizes and on values that no author knows, `reference` as published harnesses do."""

import numpy as np
import pytest
import torch

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.errors import ConfigError, TaskError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.suites.problem_files import load_file
from kernel_gym.tasks.specs import model_seed
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import POLICIES, Incorrect, Uncompilable, from_json
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.reference_policy import CONSTANT

RELU = "a.store(0, np.maximum(a.load(0), 0))\nreturn 0"
#: Refuses every shape but the reference's own.
ONE_SHAPE = "x = a.load(0)\nif x.shape != (512, 1024):\n    return 1\na.store(0, np.maximum(x, 0))\nreturn 0"
#: Has the precision of half.
HALF = "a.store(0, np.maximum(a.load(0).astype(np.float16), 0))\nreturn 0"


def judge(device, kernel, task, policy):
    with Verifier(device, policy=policy) as verifier:
        return verifier.verify(kernel, task)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_verdict_names_its_policy(device, relu, python_kernel, policy):
    texts = {"feasible": RELU, "incorrect": "a.store(0, 7)\nreturn 0", "uncompilable": "return ("}
    for outcome, body in texts.items():
        verdict = judge(device, python_kernel(body), relu, policy)
        assert (verdict.outcome, verdict.policy) == (outcome, policy)
        assert verdict.to_json()["policy"] == policy
        assert from_json(verdict.to_json()) == verdict


def test_verdicts_without_a_policy_are_strict():
    data = Uncompilable("no").to_json()
    del data["policy"], data["secret"]
    assert from_json(data).policy == "strict"


@pytest.mark.parametrize("body", [ONE_SHAPE, HALF], ids=["one shape", "half precision"])
def test_kernels_that_published_harnesses_accept_pass_by_reference_alone(device, relu, python_kernel, body):
    kernel = python_kernel(body)
    assert judge(device, kernel, relu, "reference").feasible
    assert not judge(device, kernel, relu, "strict").feasible


@pytest.mark.parametrize(
    "body", ["a.store(0, np.maximum(a.load(0), 0) * 1.05)\nreturn 0", "a.store(0, 0)\nreturn 0", "return 0", "return 3"]
)
def test_kernels_that_published_harnesses_refuse_are_refused(device, relu, python_kernel, body):
    verdict = judge(device, python_kernel(body), relu, "reference")
    assert isinstance(verdict, Incorrect)
    assert verdict.case == "reference"
    assert "at the reference's shapes" in verdict.feedback


@pytest.mark.parametrize(
    ("task", "body", "noted"),
    [
        ("torch.softmax(x.flatten(), 0)", "a.store(0, 0)\nreturn 0", True),
        ("torch.relu(x) + 1e4", "a.store(0, 1e4)\nreturn 0", True),
        ("torch.relu(x)", RELU, False),
        ("torch.relu(x) + torch.inf", "a.store(0, np.inf)\nreturn 0", True),
        ("torch.where(x > 0, x, torch.inf)", "x = a.load(0)\na.store(0, np.where(x > 0, x, np.inf))\nreturn 0", False),
    ],
)
@pytest.mark.filterwarnings("error::RuntimeWarning")
def test_a_verdict_says_where_a_constant_passes(device, make_task, python_kernel, task, body, noted):
    verdict = judge(device, python_kernel(body), make_task(task, inputs="torch.randn(rows, columns)"), "reference")
    assert verdict.feasible
    assert (CONSTANT in verdict.notes) == noted


def test_a_kernel_that_remembers_the_first_inputs_fails(device, relu, python_kernel):
    verdict = judge(
        device, python_kernel("a.store(0, np.maximum(a.load(0), 0) * (a.poison == 0xFF))\nreturn 0"), relu, "reference"
    )
    assert isinstance(verdict, Incorrect)


def test_inputs_are_those_of_the_file_and_other_ones_for_every_kernel(device, make_task, python_kernel):
    task = make_task(
        "x + self.b", inputs="torch.full((rows, columns), 3.0)", init="self.b = nn.Parameter(torch.ones(1))"
    )
    seen = "x = a.load(0)\nb = a.load(1)\nassert (x == 3).all() and b == 1\na.store(0, x + b)\nreturn 0"
    assert judge(device, python_kernel(seen), task, "reference").feasible
    drawn = make_task("torch.relu(x)").instance(task.timing)
    first, again, other = (drawn.own_inputs(seed)[0] for seed in (1, 1, 2))
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_the_seed_of_a_model_does_not_give_the_inputs(make_task):
    """A bundle's model is built from a part of the seed: the same parameters, and no inputs to compute answers from."""
    task = make_task("self.f(x)", init="self.f = nn.Linear(columns, 24)", inputs="torch.randn(rows, columns)")
    instance, seed = task.instance(task.timing), 5 * 2**40 + 7
    drawn, told = instance.own_inputs(seed), instance.own_inputs(model_seed(seed))
    names = [spec.origin for spec in instance.signature.inputs]
    for origin, one, other in zip(names, drawn, told, strict=True):
        assert torch.equal(one, other) == (origin != "argument")


def test_a_verdict_is_cached_for_its_policy_alone(device, relu, python_kernel):
    kernel = python_kernel(ONE_SHAPE)
    assert judge(device, kernel, relu, "reference").feasible
    assert not judge(device, kernel, relu, "strict").feasible
    runs = device.runs
    assert judge(device, kernel, relu, "reference").feasible
    assert device.runs == runs


def test_the_latency_is_that_of_the_references_shapes(device, relu, python_kernel):
    by_policy = {policy: judge(device, python_kernel(RELU), relu, policy).latency_us for policy in POLICIES}
    assert by_policy["reference"] == by_policy["strict"]


def test_screening_is_on(relu):
    with Verifier(AscendSim(), policy="reference") as verifier:
        kernel = oracle(suites.find_task("level1/relu"))
        cheat = type(kernel)(kernel.source + '\n__asm__("nop");\n', kernel.language)
        verdict = verifier.verify(cheat, suites.find_task("level1/relu"))
    assert verdict.hack
    assert verdict.policy == "reference"


def test_an_unknown_policy_is_an_error(device):
    with pytest.raises(ConfigError, match="policy is one of strict, reference, not 'lax'"):
        Verifier(device, policy="lax")


FILE = """
import torch
from torch import nn

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.rand(64, 512)]

def get_init_inputs():
    return []
"""


def file_task(folder, text=FILE) -> Task:
    file = folder / "19_ReLU.py"
    file.write_text(text)
    return load_file(file)


#: Sizes that nothing can change.
LARGE = FILE.replace("torch.rand(64, 512)", "torch.rand(*(int(s) for s in '4096x4096'.split('x')))")


@pytest.mark.slow
def test_a_task_that_cannot_be_made_small_is_judged_by_reference_alone(device, tmp_path, monkeypatch, python_kernel):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = file_task(tmp_path, LARGE)
    assert any(flag.startswith("large:") for flag in task.flags)
    with pytest.raises(TaskError, match=r"128 MB of tensors smaller.*judge it by policy reference"):
        judge(device, python_kernel(RELU), task, "strict")
    assert judge(device, python_kernel(RELU), task, "reference").feasible


@pytest.fixture(scope="module")
def simulator():
    with AscendSim() as device:
        yield device


@pytest.mark.parametrize("policy", POLICIES)
def test_a_problem_file_is_judged_by_both(simulator, tmp_path, monkeypatch, policy):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task = file_task(tmp_path)
    with Verifier(simulator.fork(), policy=policy) as verifier:
        verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback
    assert verdict.policy == policy


def test_a_kernel_of_the_packaged_suite_is_judged_by_reference(simulator):
    task = suites.find_task("level1/layer_norm")
    with Verifier(simulator.fork(), policy="reference") as verifier:
        verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback
