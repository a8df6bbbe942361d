"""What forward() does beside returning tensors: changed buffers, random numbers, values that shapes depend on."""

from __future__ import annotations

import pytest
import torch

from kernel_gym.errors import TaskError
from kernel_gym.tasks.instance import ModuleInstance
from kernel_gym.tasks.specs import Case

TEXT = """
import torch
from torch import nn
import torch.nn.functional as F

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.BatchNorm1d(3)
        self.register_buffer("cache", torch.zeros(4, 3))

    def forward(self, x):
        BODY

def get_inputs():
    return [torch.randn(4, 3)]

def get_init_inputs():
    return []
"""


def instance(body: str, norm: str = "nn.BatchNorm1d(3)") -> ModuleInstance:
    text = TEXT.replace("BODY", body.replace("\n", "\n        ")).replace("nn.BatchNorm1d(3)", norm)
    return ModuleInstance(text, f"{abs(hash(body)):016x}" * 4, Case("public", "public"), ())


def test_a_buffer_that_changes_is_an_output() -> None:
    module = instance("self.cache[1:2] = x[:1]\nreturn x @ self.cache.T")
    assert module.signature.changes == ("cache",)
    assert [spec.shape for spec in module.signature.outputs] == [(4, 4), (4, 3)]
    inputs = [torch.ones(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in module.signature.inputs]
    inputs[0] = torch.full((4, 3), 5.0)
    _, cache = module.evaluate(inputs)
    assert torch.equal(cache, torch.tensor([[1.0] * 3, [5.0] * 3, [1.0] * 3, [1.0] * 3]))
    assert [tensor.shape for _, tensor in module.graph().outputs if tensor] == [(4, 4), (4, 3)]


def test_statistics_of_a_norm_in_training_are_outputs() -> None:
    module = instance("self.norm.train()\nreturn self.norm(x)")
    assert module.signature.changes == ("norm.running_mean", "norm.running_var", "norm.num_batches_tracked")


def test_an_argument_that_changes_is_an_output_unless_it_is_returned() -> None:
    assert instance("x.add_(1)\nreturn x").signature.changes == ()
    assert instance("y = x * 2\nx.add_(1)\nreturn y").signature.changes == ("x",)


def test_random_numbers_are_the_same_at_every_call() -> None:
    module = instance("return x + torch.randn_like(x)")
    assert module.signature.draws == ("torch.randn_like at line 13 (return x + torch.randn_like(x))",)
    inputs = [torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in module.signature.inputs]
    (first,), (second,), (exact,) = (module.evaluate(inputs, dtype) for dtype in (None, None, torch.float64))
    assert first.std() > 0
    assert torch.equal(first, second)
    assert torch.equal(first.double(), exact)
    drawn = [tensor for position, tensor in module.fixed_inputs().items() if tensor.shape == (4, 3)]
    assert any(torch.equal(tensor, first) for tensor in drawn)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("return F.dropout(x, 0.5, training=True)", r"draws random numbers with aten.\S+ at line 13"),
        ("return x[x > 0]", r"needs the values of a tensor at line 13 \(return x\[x > 0\]\)"),
        ("if x.sum() > 0:\n    return x\nreturn -x", r"needs the values of a tensor at line 13 \(if x.sum\(\) > 0:\)"),
        ("return torch.nonzero(x)", "needs the values of a tensor at line 13"),
        ("return x.to(torch.float8_e4m3fn)", "tensors of float8_e4m3fn are not supported"),
    ],
)
def test_what_no_kernel_can_repeat_is_refused_with_its_line(body: str, reason: str) -> None:
    with pytest.raises(TaskError, match=reason):
        instance(body)


def test_a_module_in_half_precision_has_a_signature() -> None:
    module = instance("return self.norm(x.half())", norm="nn.BatchNorm1d(3).half()")
    assert module.signature.outputs[0].dtype == "float16"


def test_the_structure_changes_with_a_loop() -> None:
    bodies = ("return x + 1", "return x + 1", "return x + 1 + 1")
    first, second, third = (instance(body).signature.structure for body in bodies)
    assert first == second != third


def test_a_number_of_a_tensor_stays_in_the_graph() -> None:
    module = instance("return x / x.abs().max().item()")
    assert "aten.max.default" in [call.operator for call in module.graph().calls]
    inputs = [torch.ones(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in module.signature.inputs]
    (quotient,) = module.evaluate([torch.full((4, 3), -5.0), *inputs[1:]])
    assert torch.equal(quotient, torch.full((4, 3), -1.0))


@pytest.mark.parametrize(
    ("body", "unordered"),
    [
        ("return torch.topk(x, 2, dim=0).indices", True),
        ("return torch.sort(x, dim=0).values", True),
        ("return torch.sort(x, dim=0, stable=True).values", False),
        ("return torch.argmax(x, dim=0)", False),
    ],
)
def test_operators_that_leave_the_order_of_equal_elements_open_are_known(body: str, unordered: bool) -> None:
    assert instance(body).signature.unordered == unordered


def test_tensors_that_forward_makes_have_the_precision_of_the_evaluation() -> None:
    module = instance("return torch.ones(4, 3) @ x.T, torch.full((2,), 0.5, dtype=torch.float16)")
    inputs = [torch.ones(spec.shape, dtype=getattr(torch, spec.dtype)) for spec in module.signature.inputs]
    for dtype, expected in ((torch.float64, torch.float64), (None, torch.float32)):
        product, half = module.evaluate(inputs, dtype)
        assert (product.dtype, half.dtype) == (expected, torch.float16)
        assert torch.equal(product, torch.full((4, 4), 3.0, dtype=expected))


@pytest.mark.parametrize("kind", ["LSTM", "GRU", "RNN"])
def test_a_recurrent_layer_of_many_steps_is_seen_by_its_shapes(kind: str) -> None:
    """At 100,000 steps, one by one would take minutes."""
    text = TEXT.replace("nn.BatchNorm1d(3)", f"nn.{kind}(3, 5, bidirectional=True)").replace("torch.randn(4, 3)", "X")
    text = text.replace("BODY", "return self.norm(x)")
    few, many = (
        ModuleInstance(text.replace("X", f"torch.randn({n}, 2, 3)"), f"{n:064x}", Case("public", "public"), ())
        for n in (4, 100_000)
    )
    assert [spec.shape for spec in many.signature.outputs][:2] == [(100_000, 2, 10), (2, 2, 5)]
    assert few.signature.structure != many.signature.structure
    assert many.nonlinear()
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
    assert few.work() > 4 * 2 * 2 * gates * 5 * (3 + 5)
    torch.testing.assert_close(few.run_example()[0].shape, torch.Size(few.signature.outputs[0].shape))
