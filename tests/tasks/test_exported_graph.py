"""Export of tasks to ATen, and the cached list of their operators."""

import json

import pytest
import torch

from kernel_gym.errors import TaskError
from kernel_gym.suites import find_task
from kernel_gym.tasks import operators as task_operators
from kernel_gym.tasks.operators import operators
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    task_operators._operators.cache_clear()
    return tmp_path / "kernel_gym" / "operators"


def test_operators_in_the_order_of_the_graph():
    assert operators(find_task("level1/softmax")) == ("aten._softmax.default",)
    chain = operators(find_task("level2/gemm_multiply_leakyrelu"))
    assert chain == ("aten.permute.default", "aten.addmm.default", "aten.mul.Tensor", "aten.leaky_relu.default")


def test_operators_are_kept_on_disk(cache):
    task = find_task("level1/relu")
    operators(task)
    (file,) = cache.iterdir()
    file.write_text(json.dumps(["aten.kept.default"]))
    assert operators(task) == ("aten.relu.default",)
    task_operators._operators.cache_clear()
    assert operators(task) == ("aten.kept.default",)


def test_the_key_is_the_content(cache):
    task = find_task("level1/relu")
    other = Task("x/y", "other", task.source + "\n# another\n", task.cases)
    operators(task), operators(other)
    assert len(list(cache.iterdir())) == 2


def test_the_exported_graph_computes_what_the_module_does():
    instance = find_task("level2/conv2d_min_add_multiply").instance(find_task("level2/conv2d_min_add_multiply").public)
    arguments = instance.example_arguments()
    torch.testing.assert_close(instance.export().module()(*arguments), instance.model()(*arguments))


def test_dimensions_may_be_left_free():
    task = find_task("level1/softmax")
    program = task.instance(task.public).export(dynamic=True)
    (x,) = [node for node in program.graph.nodes if node.op == "placeholder"]
    assert all(not isinstance(size, int) for size in x.meta["val"].shape)


def test_the_timing_case_exports_without_memory():
    task = find_task("level1/relu")
    huge = Task("x/huge", "other", task.source, (task.public, Case("timing", "timing", (("rows", 1 << 40),))))
    (x,) = [node for node in huge.instance(huge.timing).export().graph.nodes if node.op == "placeholder"]
    assert x.meta["val"].shape[0] == 1 << 40


def test_a_module_that_cannot_be_exported_is_an_error_with_the_reason():
    source = find_task("level1/relu").source.replace("torch.relu(x)", "x * int(x.sum())")
    task = Task("x/data", "other", source, find_task("level1/relu").cases)
    with pytest.raises(TaskError, match=r"forward\(\) needs the values of a tensor at line \d+") as caught:
        operators(task)
    assert "\n" not in str(caught.value)
