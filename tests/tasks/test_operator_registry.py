"""Torch's registry during an export: the same graphs, the same errors, and nothing stays changed."""

from contextlib import nullcontext

import pytest
import torch
from torch._export import utils
from torch._ops import OperatorBase

from kernel_gym.suites import find_task
from kernel_gym.tasks import exported_graph
from kernel_gym.tasks.operator_registry import quick_registry


@pytest.mark.parametrize("name", ["level1/cross_entropy_loss", "level2/gemm_bias_add_hardtanh_mish_group_norm"])
def test_the_graph_is_that_of_torch_s_own_registry(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = find_task(name)
    graph = task.instance(task.public).graph()
    monkeypatch.setattr(exported_graph, "quick_registry", nullcontext)
    assert task.instance(task.public).graph() == graph


def test_torch_is_as_it_was_afterwards() -> None:
    before = OperatorBase.py_impl, utils._materialize_cpp_cia_ops
    with quick_registry():
        assert OperatorBase.py_impl is not before[0]
        assert utils._materialize_cpp_cia_ops is not before[1]
    assert (OperatorBase.py_impl, utils._materialize_cpp_cia_ops) == before


def test_a_kernel_is_registered_once() -> None:
    operator, key = torch.ops.aten.linear.default, torch._C.DispatchKey.AutogradIPU
    with quick_registry():
        operator.py_impl(key)(print)
        try:
            assert operator.py_kernels[key] is print
            with pytest.raises(RuntimeError, match="Trying to override a python impl"):
                operator.py_impl(key)(print)
        finally:
            del operator.py_kernels[key]
