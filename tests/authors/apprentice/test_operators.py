"""Oracles of modules with operators that problem files use: indices, resizing, other element types, changed buffers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest

from kernel_gym.authors.apprentice import Unsupported, lower, oracle
from kernel_gym.authors.apprentice.frontend.plan import Lookup
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier

SIZES = CaseSizes("rows columns", public=(8, 64), hidden=((11, 83), (1, 37)), timing=(64, 512))


@dataclass(frozen=True)
class Module:
    """A module with the operator: its text, its inputs and its layers."""

    forward: str
    inputs: dict[str, str] = field(default_factory=lambda: {"x": "torch.rand(rows, columns)"})
    layers: dict[str, str] = field(default_factory=dict)


def _at(limit: str, *shape: str) -> str:
    return f"torch.randint(0, {limit}, ({', '.join(shape)},))"


X, U, IMAGE = "torch.rand(rows, columns)", "torch.rand(rows, 20)", {"x": "torch.rand(2, 3, rows, columns)"}
#: Judged in every run of the tests.
QUICK = {
    "embedding": Module("self.table(i)", {"i": _at("40", "rows", "columns")}, {"table": "nn.Embedding(40, 24)"}),
    "gather": Module("torch.gather(x, 1, i)", {"x": X, "i": _at("columns", "rows", "20")}),
    "scatter_add": Module("x.scatter_add(1, i, u)", {"x": X, "i": _at("columns", "rows", "20"), "u": U}),
    "index_add": Module("x.index_add(0, i, u)", {"x": X, "i": _at("rows", "20"), "u": "torch.rand(20, columns)"}),
    "rows backwards": Module("x.flip(0) * 2"),
}
SLOW = {
    "bilinear": Module("F.interpolate(x, scale_factor=2, mode='bilinear')", IMAGE),
    "sort": Module("torch.sort(x, dim=0, descending=True).values"),
    "sort with equal elements": Module("torch.sort(torch.round(x * 4), dim=1, stable=True)"),
    "topk": Module("torch.topk(x, 5, dim=1).values"),
    "topk of the smallest": Module("torch.topk(x, 1, dim=0, largest=False).values"),
    "kthvalue": Module("torch.kthvalue(x, 3, dim=1).values"),
    "gather along the first axis": Module("torch.gather(x, 0, i)", {"x": X, "i": _at("rows", "20", "columns")}),
    "take along": Module("torch.take_along_dim(x, i, dim=1)", {"x": X, "i": _at("columns", "rows", "20")}),
    "index_select": Module("torch.index_select(x, 1, i)", {"x": X, "i": _at("columns", "20")}),
    "two indices": Module("x[i, j]", {"x": X, "i": _at("rows", "20"), "j": _at("columns", "20")}),
    "a long row": Module(
        "torch.gather(x, 1, i)", {"x": "torch.rand(2, 20000 + rows)", "i": _at("20000", "2", "columns")}
    ),
    "scatter": Module("x.scatter(1, i, u)", {"x": X, "i": _at("columns", "rows", "20"), "u": U}),
    "index_copy": Module("x.index_copy(0, i, u)", {"x": X, "i": _at("rows", "20"), "u": "torch.rand(20, columns)"}),
    "assignment": Module("x[i] = u\nreturn x", {"x": X, "i": _at("rows", "20"), "u": "torch.rand(20, columns)"}),
    "nearest": Module("F.interpolate(x, scale_factor=2, mode='nearest')", IMAGE),
    "bicubic": Module("F.interpolate(x, scale_factor=2, mode='bicubic')", IMAGE),
    "corners": Module("F.interpolate(x, size=(24, 20), mode='bilinear', align_corners=True)", IMAGE),
    "antialias": Module("F.interpolate(x, size=(6, 9), mode='bilinear', antialias=True)", IMAGE),
    "long lines": Module(
        "F.interpolate(x, scale_factor=2, mode='bilinear')", {"x": "torch.rand(1, 1, rows, 600 + columns)"}
    ),
    "trilinear": Module(
        "F.interpolate(x, scale_factor=2, mode='trilinear')", {"x": "torch.rand(1, 2, 3, rows, columns)"}
    ),
    "grid_sample": Module(
        "F.grid_sample(x, g, align_corners=False)", IMAGE | {"g": "torch.rand(2, rows, columns, 2) * 2.4 - 1.2"}
    ),
    "reflection": Module("F.pad(x, (3, 2, 1, 4), mode='reflect')", {"x": "torch.rand(2, 3, rows + 4, columns)"}),
    "padding": Module("F.pad(x, (3, -2, 1, 4), value=1.5)", IMAGE),
    "roll": Module("torch.roll(x, shifts=(-2, 3), dims=(2, 3))", IMAGE),
    "softmax of rows backwards": Module("torch.softmax(x.flip(0), dim=1)"),
    "maximum of rows backwards": Module("torch.amax(x.flip(0) * x, dim=0)"),
    "chunks": Module("a, b = x.chunk(2, dim=0)\nreturn a * b", {"x": "torch.rand(2 * rows, columns)"}),
    "split": Module("a, b = x.split([3, 5], dim=1)\nreturn a.sum(1) + b.mean(1)", {"x": "torch.rand(rows, 8)"}),
    "steps": Module("x[:, ::2] - x[:, 1::2]", {"x": "torch.rand(rows, 2 * columns)"}),
    "unfold": Module("x.unfold(1, 8, 4).mean(dim=-1)"),
    "bounds": Module(
        "torch.clamp(x, l, h)", {"x": X, "l": "0.3 * torch.rand(columns)", "h": "0.7 + torch.rand(columns)"}
    ),
    "remainder": Module("x % 0.3", {"x": "100 * torch.randn(rows, columns)"}),
    "bits": Module(
        "(a | b) ^ (a & 12)",
        dict.fromkeys(("a", "b"), "torch.randint(0, 999, (rows, columns), dtype=torch.int32)"),
    ),
    "more values than places": Module("x.scatter(1, i, u)", {"x": X, "i": _at("columns", "rows", "1"), "u": U}),
    "truths": Module("(x > 0.5) & (y > 0.5)", {"x": X, "y": "torch.rand(columns)"}),
    "powers": Module("torch.pow(x, y)", {"x": "torch.rand(rows, columns) + 0.1", "y": "torch.rand(columns)"}),
    "product": Module("torch.prod(x, dim=0)"),
    "variance and mean": Module("torch.var_mean(x, dim=1, unbiased=False)"),
    "the logarithm of a size": Module("x / math.log(x.shape[1])"),
    "patches": Module("F.unfold(x, 3, padding=1, stride=2)", IMAGE),
    "a mean by hand": Module("x.sum((0, 1)) / (x.shape[0] * x.shape[1])"),
    "half": Module("x[:, : x.shape[1] // 2] * 2"),
    "mask": Module("n = x.shape[0]\nreturn (x @ x.T).masked_fill(torch.triu(torch.ones(n, n), 1).bool(), -1.0)"),
    "batch statistics": Module(
        "F.batch_norm(x, self.mean, self.spread, training=True)", IMAGE,
        {"mean": "nn.Buffer(torch.zeros(3))", "spread": "nn.Buffer(torch.ones(3))"},
    ),
    "a cache": Module(
        "self.cache[:, 5] = x\nreturn x @ self.cache", {"x": "torch.rand(4)"},
        {"cache": "nn.Buffer(torch.zeros(4, 16))"},
    ),
    "noise": Module("x + torch.randn_like(x)"),
    "float16": Module("F.gelu(self.l(x))", {"x": "torch.rand(rows, 24).half()"}, {"l": "nn.Linear(24, 40).half()"}),
    "bfloat16": Module(
        "F.scaled_dot_product_attention(x, x, x)", {"x": "torch.rand(2, rows, 16, dtype=torch.bfloat16)"}
    ),
    "int8": Module(
        "s = x.abs().amax(1, keepdim=True) / 127\nreturn torch.round(x / s).to(torch.int8), s",
        {"x": "torch.randn(rows, columns)"},
    ),
    "int8 in": Module(
        "q.float() * s",
        {"q": "torch.randint(-128, 128, (rows, columns), dtype=torch.int8)", "s": "torch.rand(rows, 1)"},
    ),
    "int32": Module("a + 3", {"a": "torch.randint(-99, 99, (rows, columns), dtype=torch.int32)"}),
    "int64": Module("a.sum(1)", {"a": "torch.randint(0, 99, (rows, columns))"}),
    "a tensor called t": Module("F.cross_entropy(x, t)", {"x": X, "t": _at("columns", "rows")}),
}  # fmt: skip


def task_of(name: str) -> Task:
    module = (QUICK | SLOW)[name]
    definition = TaskDefinition(
        None, "module", "other", f"{name}.", SIZES, module.forward, module.inputs, layers=module.layers
    )
    return definition.task("test")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


@pytest.mark.parametrize("name", [*QUICK, *(pytest.param(name, marks=pytest.mark.slow) for name in SLOW)])
def test_the_oracle_of_an_operator_passes_every_gate(name: str, verifier: Verifier) -> None:
    task = task_of(name)
    verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize("name", [*QUICK, *SLOW])
def test_the_operator_is_written_in_cuda(name: str) -> None:
    assert "__global__" in oracle(task_of(name), "cuda").source


@pytest.mark.slow
@pytest.mark.parametrize(
    ("forward", "reason"),
    [
        ("for row in x:\n    x = x + row\nreturn x", "a loop over a dimension"),
        ("x * math.sin(x.shape[0])", "changes with the sizes in an unknown way"),
        ("torch.fft.rfft(x, dim=-1).abs()", "aten._fft_r2c.default"),
        ("x.double() * 2", "float64"),
        ("x.to(torch.float8_e4m3fn).to(x.dtype) * 2", "a conversion to float8_e4m3fn"),
    ],
)
def test_a_module_without_an_oracle_says_why(forward: str, reason: str) -> None:
    definition = TaskDefinition(None, "module", "other", "None.", SIZES, forward, {"x": X})
    with pytest.raises(Unsupported, match=reason):
        oracle(definition.task("test"))


def test_stages_of_a_lookup_are_in_the_plan() -> None:
    names = [type(stage).__name__ for stage in lower(task_of("index_add")).stages]
    assert names.count("Scatter") == 1


def test_elements_of_short_rows_are_looked_up_together() -> None:
    """Row by row, a large batch of small images would take more instructions than the timing sizes allow."""
    lookups = {
        name: [stage.short for stage in lower(task_of(name)).stages if isinstance(stage, Lookup)]
        for name in ("bilinear", "long lines")
    }
    assert lookups == {"bilinear": [True, True, False, False], "long lines": [False] * 4}
