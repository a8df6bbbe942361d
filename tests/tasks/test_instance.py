"""Instances: signatures, random parameters and evaluation of a task's module."""

from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from kernel_gym.errors import TaskError
from kernel_gym.tasks.instance import ModuleInstance
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

HEAD = "import torch\nfrom torch import nn\n"

RICH = (
    HEAD
    + """
rows, width = 6, 10
double = width * 2


class Model(nn.Module):
    def __init__(self, width, options):
        super().__init__()
        self.norm = nn.BatchNorm1d(width)
        self.linear = nn.Linear(width, width)
        self.register_buffer("table", torch.arange(width).float())
        self.register_buffer("hidden", torch.full((width,), 3.0), persistent=False)
        self.offset = torch.tensor([2.0])

    def forward(self, x, pair, scale, nothing):
        y = self.linear(self.norm(x)) * self.table + self.hidden + self.offset + pair[0]
        return {"sum": y * scale + torch.tensor(0.25), "others": (pair[1] + 1, y.argmax(1))}


def get_inputs():
    return [torch.randn(rows, double), [torch.randn(double), torch.randint(0, 5, (rows,))], 0.5, None]


def get_init_inputs():
    return [double, {"flags": [True, 7], "name": "skipped", "eps": (1e-3, None)}]
"""
)


def task(source: str, **timing: int) -> Task:
    cases = (
        Case("public", "public"),
        Case("small", "hidden", (("rows", 2),)),
        Case("timing", "timing", tuple(timing.items())),
    )
    return Task("test/problem", "other", source, cases)


def drawn(instance: ModuleInstance) -> list[torch.Tensor]:
    """Values for every input, fixed ones included."""
    generator = torch.Generator().manual_seed(7)
    fixed = instance.fixed_inputs()
    values = []
    for position, spec in enumerate(instance.signature.inputs):
        value = torch.rand(spec.shape, generator=generator) + 0.5
        value = value if "float" in spec.dtype else torch.zeros(spec.shape, dtype=getattr(torch, spec.dtype))
        values.append(fixed.get(position, value))
    return values


def simple(forward: str, init: str = "pass", inputs: str = "torch.randn(rows, 4)") -> Task:
    return task(
        f"{HEAD}\nrows = 8\n\nclass Model(nn.Module):\n"
        f"    def __init__(self):\n        super().__init__()\n        {init}\n"
        f"    def forward(self, x):\n        {forward}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n",
        rows=16,
    )


def test_signature_orders_arguments_then_state_then_constants():
    signature = task(RICH, rows=64).instance(Case("public", "public")).signature
    assert [(spec.name, spec.origin) for spec in signature.inputs] == [
        ("x", "argument"),
        ("pair[0]", "argument"),
        ("pair[1]", "argument"),
        ("table", "state"),
        ("norm.weight", "state"),
        ("norm.bias", "state"),
        ("norm.running_mean", "state"),
        ("norm.running_var", "state"),
        ("norm.num_batches_tracked", "state"),
        ("linear.weight", "state"),
        ("linear.bias", "state"),
        ("hidden", "constant"),
        ("offset", "constant"),
        ("lifted_tensor_0", "constant"),
    ]
    assert signature.inputs[0].shape == (6, 20)
    assert signature.ints == (20, 1, 7)
    assert signature.floats == (1e-3, 0.5)
    assert [(spec.shape, spec.dtype) for spec in signature.outputs] == [
        ((6, 20), "float32"),
        ((6,), "int64"),
        ((6,), "int64"),
    ]


STATEFUL = """
import torch
rows = 4
class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        self.state = torch.ones(rows, 3)
    def forward(self, x):
        self.state = self.state + x
        return self.state * 2
def get_inputs():
    return [torch.rand(rows, 3)]
def get_init_inputs():
    return [rows]
"""


@pytest.mark.parametrize("role", ["public", "timing"])
def test_tensors_that_a_module_keeps_have_values_at_all_sizes(role: str) -> None:
    instance = task(STATEFUL, rows=8).instance(Case(role, role))
    (state,) = instance.fixed_inputs().values()
    assert state.tolist() == [[1.0] * 3] * 4


def test_fixed_inputs_are_what_belongs_to_the_operator():
    instance = task(RICH, rows=64).instance(Case("public", "public"))
    names = {instance.signature.inputs[position].name: value for position, value in instance.fixed_inputs().items()}
    assert set(names) == {"table", "hidden", "offset", "lifted_tensor_0", "norm.num_batches_tracked"}
    assert torch.equal(names["table"], torch.arange(20).float())
    assert names["lifted_tensor_0"].item() == 0.25


DRAWING = (
    HEAD
    + """
rows, width = 6, 10


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mask", (torch.rand(width) < 0.5).float())
        self.register_buffer("features", torch.randn(width), persistent=False)
        self.noise = torch.randn(width)

    def forward(self, x):
        return x * self.mask + self.features + self.noise


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(width, width)
        self.layer = Layer()
        self.register_buffer("table", torch.arange(width).float())
        self.register_buffer("seeded", torch.rand(width, generator=torch.Generator().manual_seed(3)))

    def forward(self, x):
        return self.layer(self.linear(x)) + self.table + self.seeded + torch.tensor(0.25)


def get_inputs():
    return [torch.randn(rows, width)]


def get_init_inputs():
    return []
"""
)


def named(instance: ModuleInstance, tensors: dict[int, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {instance.signature.inputs[position].name: tensor for position, tensor in tensors.items()}


@pytest.mark.parametrize("role", ["public", "timing"])
def test_what_a_constructor_draws_is_not_what_the_module_defines(role: str) -> None:
    instance = task(DRAWING, rows=64).instance(Case(role, role))
    drawn = {position: instance.signature.inputs[position].name for position in instance.drawn_inputs()}
    assert set(drawn.values()) == {"layer.mask", "layer.features", "layer.noise"}
    assert set(named(instance, instance.fixed_inputs())) == {"table", "seeded", "lifted_tensor_0"}
    first, again, other = (named(instance, dict(enumerate(instance.own_inputs(seed)))) for seed in (1, 1, 2))
    for name in first:
        assert torch.equal(first[name], again[name])
        assert torch.equal(first[name], other[name]) is (name in ("table", "seeded", "lifted_tensor_0")), name


def test_what_a_constructor_draws_is_used_as_it_is_handed_in() -> None:
    instance = task(DRAWING).instance(Case("public", "public"))
    inputs = instance.own_inputs(1)
    (usual,) = instance.evaluate(inputs)
    for position in instance.drawn_inputs():
        changed = [tensor + (place == position) for place, tensor in enumerate(inputs)]
        assert not torch.equal(instance.evaluate(changed)[0], usual)


def test_a_module_is_built_once_more_only_if_its_constructor_may_draw(monkeypatch) -> None:
    builds = []
    build = ModuleInstance._build
    monkeypatch.setattr(ModuleInstance, "_build", lambda self: builds.append(self) or build(self))
    for text, count in ((RICH, 1), (DRAWING, 1), (simple("return self.n(x)", "self.n = nn.BatchNorm1d(4)").source, 0)):
        instance = ModuleInstance(text, f"{abs(hash(text)):064x}", Case("public", "public"), ())
        instance.model()
        builds.clear()
        for _ in range(2):
            instance.fixed_inputs()
            instance.drawn_inputs()
        assert len(builds) == count


def test_state_that_is_handed_in_is_the_state_that_is_used():
    instance = task(RICH, rows=64).instance(Case("public", "public"))
    values = drawn(instance)
    named = {spec.name: value.double() for spec, value in zip(instance.signature.inputs, values, strict=True)}
    normed = (named["x"] - named["norm.running_mean"]) / torch.sqrt(named["norm.running_var"] + 1e-5)
    normed = normed * named["norm.weight"] + named["norm.bias"]
    linear = normed @ named["linear.weight"].T + named["linear.bias"]
    expected = (linear * named["table"] + named["hidden"] + named["offset"] + named["pair[0]"]) * 0.5 + 0.25
    torch.testing.assert_close(instance.evaluate(values, torch.float64)[0], expected)


def test_timing_case_allocates_nothing():
    huge = task(RICH, rows=1 << 36)
    assert huge.instance(huge.timing).signature.inputs[0].shape == (1 << 36, 20)


def test_precision_is_asked_for():
    instance = simple("return x.exp().sum()").instance(Case("public", "public"))
    values = drawn(instance)
    exact, native = instance.evaluate(values, torch.float64)[0], instance.evaluate(values)[0]
    assert (exact.dtype, native.dtype) == (torch.float64, torch.float32)
    assert exact.item() == pytest.approx(native.item(), rel=1e-6)
    assert exact.item() != native.item()


def test_a_reference_that_writes_to_its_input_leaves_the_callers_unchanged():
    instance = simple("return x.relu_().mul_(self.w)", "self.w = nn.Parameter(torch.randn(4))").instance(
        Case("public", "public")
    )
    values = [torch.randn(8, 4), torch.randn(4)]
    before = [value.clone() for value in values]
    instance.evaluate(values)
    assert all(torch.equal(value, other) for value, other in zip(values, before, strict=True))


def test_threads_do_not_mix_their_parameters():
    instance = simple("return x * self.w", "self.w = nn.Parameter(torch.randn(4))").instance(Case("public", "public"))
    x = torch.ones(8, 4)

    def product(number: int) -> bool:
        return bool((instance.evaluate([x, torch.full((4,), float(number))])[0] == number).all())

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(product, range(200)))


def test_tied_parameters_are_two_inputs():
    tied = simple(
        "return self.b(self.a(x))",
        "self.a = nn.Linear(4, 4, bias=False); self.b = nn.Linear(4, 4, bias=False); self.b.weight = self.a.weight",
    )
    instance = tied.instance(Case("public", "public"))
    x, first, second = torch.randn(8, 4), torch.randn(4, 4), torch.randn(4, 4)
    torch.testing.assert_close(instance.evaluate([x, first, second])[0], x @ first.T @ second.T)


def test_recurrent_layers_take_the_given_weights():
    instance = simple(
        "return self.rnn(x)[0]", "self.rnn = nn.RNN(4, 4, bias=False)", "torch.randn(rows, 1, 4)"
    ).instance(Case("public", "public"))
    values = [torch.randn(8, 1, 4), torch.zeros(4, 4), torch.zeros(4, 4)]
    assert not instance.evaluate(values)[0].any()


def test_default_statistics_and_affine_are_randomised_and_repeatable():
    source = simple("return self.n(x)", "self.n = nn.BatchNorm1d(4)").source
    first, second = (
        Task("t/x", "other", source, simple("return x").cases).instance(Case("public", "public")) for _ in range(2)
    )
    state = first.model().state_dict()
    for name in ("n.weight", "n.bias", "n.running_mean", "n.running_var"):
        assert state[name].unique().numel() == 4
        assert torch.equal(state[name], second.model().state_dict()[name])
    assert (state["n.running_var"] > 0).all()
    assert not first.model().training


def test_arguments_are_the_same_at_every_call_and_the_global_generator_is_left_alone():
    instance = simple("return x").instance(Case("public", "public"))
    torch.manual_seed(3)
    before = torch.get_rng_state()
    first, second = instance.example_arguments(), instance.example_arguments()
    assert torch.equal(first[0], second[0])  # type: ignore[arg-type]
    assert torch.equal(torch.get_rng_state(), before)


def test_instances_are_cached_by_content():
    source = simple("return x")
    again = Task("other/name", "loss", source.source, source.cases)
    assert source.instance(source.public) is again.instance(again.public)


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("import torch\n", "defines no Model"),
        ("import nonexistent_module\n", "imports nonexistent_module, which is not installed here"),
        (
            simple("return x @ x", inputs="torch.randn(rows, 3)").source,
            "forward\\(\\) fails at case 'public': RuntimeError",
        ),
        (simple("return x", "raise ValueError('no such width')").source, "Model cannot be built .* no such width"),
        (simple("return x", inputs="open('/nonexistent')").source, "get_inputs\\(\\) fails .* FileNotFoundError"),
        (simple("return torch.fft.fft(x)").source, "tensors of complex64 are not supported"),
    ],
)
def test_a_bad_module_is_one_clear_line(source: str, message: str):
    with pytest.raises(TaskError, match=message) as caught:
        Task("t/bad", "other", source, (Case("public", "public"),)).instance(Case("public", "public"))
    assert "\n" not in str(caught.value)


def test_wrong_number_of_inputs_is_refused():
    with pytest.raises(TaskError, match="takes 1 tensors, not 2"):
        simple("return x").instance(Case("public", "public")).evaluate([torch.zeros(8, 4)] * 2)


def test_a_function_that_the_module_keeps_uses_the_parameters_of_the_call():
    init = "self.layer = layer = nn.Linear(4, 4, bias=False); self.double = lambda x: 2 * layer(x)"
    instance = simple("return self.double(x)", init).instance(Case("public", "public"))
    x, weight = torch.randn(8, 4), torch.randn(4, 4)
    torch.testing.assert_close(instance.evaluate([x, weight])[0], 2 * x @ weight.T)
    assert [item.label for item in instance.graph().inputs] == ["layer.weight", "x"]


def test_a_function_that_the_module_keeps_may_close_over_a_variable_without_a_value():
    init = "self.double = lambda x: 2 * x if True else later\n        if False: later = 1"
    instance = simple("return self.double(x)", init).instance(Case("public", "public"))
    torch.testing.assert_close(instance.evaluate([torch.ones(8, 4)])[0], torch.full((8, 4), 2.0))


def test_a_tensor_that_forward_changes_need_not_be_a_buffer():
    forward = "self.kept.copy_(x); self.kept = self.kept.to(x.device) + 1; return self.kept * 2"
    instance = simple(forward, "self.kept = torch.zeros(8, 4)").instance(Case("public", "public"))
    assert [item.label for item in instance.graph().inputs] == ["kept", "x"]
    assert len(instance.graph().outputs) == 1
