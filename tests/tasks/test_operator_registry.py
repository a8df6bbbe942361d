"""Torch's registry during an export: the same graphs, the same errors, and nothing stays changed."""

from contextlib import nullcontext

import pytest
import torch
from torch._decomp import decompositions
from torch._export import utils
from torch._ops import OperatorBase

from kernel_gym.suites import find_task
from kernel_gym.tasks import exported_graph
from kernel_gym.tasks.operator_registry import RECURRENT, _operator, quick_registry, whole_layers


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


class Recurrent(torch.nn.Module):
    """A layer whose first states are attributes of the module."""

    def __init__(self, kind: str, **settings: bool) -> None:
        super().__init__()
        self.layer = getattr(torch.nn, kind)(6, 5, 2, **settings)
        self.state = torch.rand(4 if settings.get("bidirectional") else 2, 3, 5)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        state = (self.state, self.state) if isinstance(self.layer, torch.nn.LSTM) else self.state
        outputs, states = self.layer(x, state)
        return outputs, *(states if isinstance(states, tuple) else (states,))


@pytest.mark.parametrize("layers", [False, True])
@pytest.mark.parametrize(
    ("kind", "settings"), [("LSTM", {"bidirectional": True, "batch_first": True}), ("GRU", {}), ("RNN", {})]
)
def test_a_recurrent_layer_is_traced_by_its_shapes(
    kind: str, settings: dict[str, bool], layers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, x = Recurrent(kind, **settings), torch.rand(3, 3, 6)
    steps: list[object] = []
    helper = decompositions._rnn_helper
    monkeypatch.setattr(decompositions, "_rnn_helper", lambda *rest: [steps.append(rest), helper(*rest)][1])
    program = exported_graph.export_module(model, (x,), decomposed=layers, layers=layers)
    assert not steps
    with torch.no_grad():
        torch.testing.assert_close(program.module()(x), model(x))
    assert [str(constant) for constant in exported_graph.lifted_constants(program)] == ["state"]


def test_recurrent_layers_are_as_they_were_afterwards() -> None:
    before = [dict(_operator(name).py_kernels) for name in RECURRENT]
    with whole_layers():
        assert [dict(_operator(name).py_kernels) for name in RECURRENT] != before
    assert [dict(_operator(name).py_kernels) for name in RECURRENT] == before
