"""Torch's registry during an export: the same graphs, the same errors, and nothing stays changed."""

from contextlib import nullcontext
from pathlib import Path

import pytest
import torch
from torch._decomp import decompositions
from torch._export import utils
from torch.export import exported_program

from kernel_gym.suites import find_task
from kernel_gym.tasks import exported_graph
from kernel_gym.tasks.operator_registry import RECURRENT, _operator, few_rules, quick_registry, whole_layers

FORMS = Path(__file__).parent / "problems" / "forms"


@pytest.mark.parametrize(
    "name",
    [
        "level1/cross_entropy_loss",
        "level1/scaled_dot_product_attention",
        "level2/gemm_bias_add_hardtanh_mish_group_norm",
        pytest.param("attention/s2_attention", marks=pytest.mark.slow),
        str(FORMS / "6_Bilinear.py"),
    ],
)
def test_the_graph_is_that_of_torch_s_own_registry(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = find_task(name)
    graph = task.instance(task.public).graph()
    monkeypatch.setattr(exported_graph, "quick_registry", nullcontext)
    monkeypatch.setattr(exported_graph, "few_rules", nullcontext)
    assert task.instance(task.public).graph() == graph


def test_torch_is_as_it_was_afterwards() -> None:
    before = utils._materialize_cpp_cia_ops, exported_program._override_composite_implicit_decomp
    program = torch.export.export(torch.nn.ReLU(), (torch.rand(2),))
    with quick_registry(), few_rules(program):
        assert utils._materialize_cpp_cia_ops is not before[0]
        assert exported_program._override_composite_implicit_decomp is not before[1]
    assert (utils._materialize_cpp_cia_ops, exported_program._override_composite_implicit_decomp) == before


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
