"""Domains of input tensors, from how `get_inputs()` draws them."""

import pytest
import torch

from kernel_gym.tasks.specs import Case, Domain
from kernel_gym.tasks.task import Task

HEAD = "import torch\nfrom torch import nn\nrows = 8\nclass Model(nn.Module):\n"
TAIL = "\ndef get_init_inputs():\n    return []\n"


def domains(forward: str, inputs: str, rows: int = 8) -> list[Domain]:
    source = f"{HEAD}    def forward(self, {forward}\ndef get_inputs():\n    return [{inputs}]\n{TAIL}"
    cases = (Case("public", "public"), Case("other", "hidden", (("rows", rows),)))
    instance = Task("test/domains", "other", source, cases).instance(cases[1])
    return [spec.domain for spec in instance.signature.inputs]


@pytest.mark.parametrize(
    ("forward", "inputs", "domain"),
    [
        ("x): return torch.relu(x)", "torch.randn(rows)", Domain("real")),
        # Drawn from [0, 1) but defined everywhere: a copy of the input would pass for ReLU.
        ("x): return torch.relu(x)", "torch.rand(rows)", Domain("real")),
        ("x): return torch.log(x)", "torch.rand(rows)", Domain("unit")),
        ("x): return torch.sqrt(x)", "torch.rand(rows) * 9", Domain("positive")),
        ("x): return torch.log(x)", "torch.rand(rows, 3).softmax(1)", Domain("unit")),
        ("x): return ~x", "torch.rand(rows) > 0.5", Domain("bool")),
        ("x): return x + 1", "torch.randint(0, 7, (rows,))", Domain("index", 7)),
        ("x): return x + 1", "torch.randint(7, (rows,)).unsqueeze(0).int()", Domain("index", 7)),
        ("x): return x * 1.0", "torch.randperm(rows)", Domain("index", 8, distinct=True)),
        ("x): return x * 1.0", "torch.randperm(rows)[:3]", Domain("index", 8, distinct=True)),
        (
            "x): return x * 1.0",
            "torch.argsort(torch.rand(3, rows), dim=1)[:, :2]",
            Domain("index", 8, distinct=True),
        ),
        ("x): return x * 1.0", "torch.argsort(torch.rand(3, rows), dim=1)[:, 0]", Domain("index", 8)),
        ("x): return x * 1.0", "torch.randperm(rows).unsqueeze(1).expand(rows, 4)", Domain("index", 8)),
        ("x): return x * 1.0", "torch.rand(rows, 5).argsort(0)", Domain("index", 8)),
    ],
)
def test_domain_of_what_is_drawn(forward: str, inputs: str, domain: Domain):
    assert domains(forward, inputs) == [domain]


def test_the_bound_of_an_index_follows_the_sizes():
    lookup = "x, i): return x[i]"
    assert domains(lookup, "torch.randn(rows), torch.randint(0, rows, (5,))", rows=1 << 40)[1] == Domain(
        "index", 1 << 40
    )


def test_the_bound_of_a_part_of_the_indices_follows_the_sizes():
    lookup = "x, i): return x[i]"
    assert domains(lookup, "torch.randn(rows), torch.randperm(rows)[:3]", rows=5)[1] == Domain(
        "index", 5, distinct=True
    )


def test_probability_kept_where_the_reference_refuses_others():
    refusing = "x, t): return nn.functional.binary_cross_entropy(x, t)"
    assert domains(refusing, "torch.rand(rows), torch.rand(rows)")[0] == Domain("unit")


def test_an_outside_value_is_not_finite():
    assert torch.isnan(torch.log(torch.tensor(-1.0)))


@pytest.mark.parametrize(
    ("forward", "factors"),
    [
        ("x): return torch.cumprod(x, dim=1)", 8),
        ("x): return x.flip(1).cumprod(1).flip(1)", 8),
        ("x): return x.t().prod(dim=-1)", 4),
        ("x): return x.prod()", 32),
        ("x): return torch.cumsum(x, dim=1)", 0),
        ("x): return torch.cumprod(x * 0.1 + 1, dim=1)", 0),
    ],
)
def test_a_domain_has_the_number_of_multiplied_values(forward: str, factors: int):
    assert domains(forward, "torch.randn(4, rows)") == [Domain("real", factors=factors)]
