"""Plans: how a module's graph is cut into stages, without a verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import sympy
import torch
from plan_values import plan_outputs

from kernel_gym.authors.apprentice import Unsupported, lower, oracle
from kernel_gym.authors.apprentice.frontend import plan_store
from kernel_gym.authors.apprentice.frontend.fusion import _labelled
from kernel_gym.authors.apprentice.frontend.plan import Access, Either, Nest, Plan, Product, Step
from kernel_gym.authors.apprentice.frontend.sizes import Sizes, c_expression, same_setting, sized_whole
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.suites import load_suite
from kernel_gym.suites.definitions import CaseSizes, TaskDefinition
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.hidden_sizes import edge_cases, hidden_cases
from kernel_gym.verifier.secret import PUBLISHED, Seeds

X = {"x": "torch.randn(rows, columns)"}


def made(forward: str, **sizes: tuple[int, int]) -> Task:
    cases = CaseSizes("rows columns", sizes["public"], (sizes["hidden"],), sizes["timing"])
    return TaskDefinition(1, "made", "math", "A task for a plan.", cases, forward, X).task("test")


def test_no_negative_number_is_divided_on_the_host() -> None:
    """C rounds a negative quotient up: a window of 9 elements, 3 apart, is once in 10 elements, not twice."""
    length, window = (sympy.Symbol(name, positive=True, integer=True) for name in ("length", "window"))
    count = sympy.floor((length - 4 * (window - 1) - 1) / 3) + 1
    assert c_expression(count) == "(6 + length - 4 * window) / 3"
    assert c_expression(count + length) == "length + ((6 + length - 4 * window) / 3)"
    assert c_expression(sympy.floor((length - 7) / 2) + 1) == "1 + ((length - 7) / 2)"


def test_a_view_has_the_sizes_that_hold_at_every_case() -> None:
    """48 columns are 3 blocks of 16: the number of blocks varies, although it is the smaller number."""
    task = made(
        "torch.softmax(x.unflatten(1, (-1, 16)), dim=2).flatten(1)", public=(5, 48), hidden=(2, 80), timing=(64, 256)
    )
    (stage,) = lower(task).stages
    assert isinstance(stage, Nest)
    assert dict(stage.fields)["length"] == "16"


def test_a_stored_plan_is_of_the_code_that_exports_graphs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reason why there is no plan does not outlive a change there."""
    monkeypatch.setattr(plan_store.tasks, "__file__", str(tmp_path / "__init__.py"))
    versions = set()
    for text in ("before", "after"):
        (tmp_path / "graph.py").write_text(text)
        versions.add(plan_store._version.__wrapped__())
    assert len(versions) == 2


def test_a_plan_that_does_not_fit_the_workspace_reads_results_that_are_in_memory() -> None:
    """A biased product is not computed again, so that the running sum takes the place of the bare product."""
    forward = """
y = x[:, :4] @ x[:, 4:8].t() + x[:, 8]
return torch.logsumexp(y + torch.cumsum(y, dim=1), dim=0)"""
    plan = agreeing_plan(made(forward, public=(5, 9), hidden=(3, 11), timing=(1800, 12)))
    assert sum("x.shape[0] * x.shape[0]" in buffer.elements for buffer in plan.buffers) == 2


def test_an_expert_uses_the_whole_workspace_of_an_npu() -> None:
    """A product that is 36 times as large as all tensors together."""
    task = made("torch.logsumexp(x @ x.t(), dim=0)", public=(5, 9), hidden=(3, 11), timing=(3600, 100))
    assert any("x.shape[0] * x.shape[0]" in buffer.elements for buffer in lower(task, expert=True).buffers)


def test_a_number_is_compared_at_a_case_where_all_sizes_differ() -> None:
    """A scale of 1 / columns is the same at the first hidden case."""
    forward = "x * (1.0 / x.shape[1])"
    cases = CaseSizes("rows columns", (4, 16), ((1, 16), (3, 11)), (64, 256))
    plan = agreeing_plan(TaskDefinition(1, "made", "math", "A task for a plan.", cases, forward, X).task("test"))
    (stage,) = plan.stages
    assert "x.shape[1]" in str(stage)


PAIRS = "torch.logsumexp(torch.bmm(x[:, :, None], x[:, None, :]), dim=1)"


def test_an_expert_computes_a_part_of_the_samples_at_a_time() -> None:
    """All pairs of the elements of all samples do not fit the workspace, and those of an eighth of the samples do."""
    task = made(PAIRS, public=(19, 9), hidden=(3, 11), timing=(64, 1024))
    plan = lower(task, expert=True)
    assert (plan.rounds, plan.batched) == (8, ("x", "out"))
    kernel = oracle(task)
    assert "done += together" in kernel.source
    with AscendSim() as device:
        build = device.build(kernel)
        for case in (task.public, *task.hidden):
            instance = task.instance(case)
            values = instance.own_inputs(1)
            run = device.run(build, Inputs(instance.signature, tuple(tensor.numpy() for tensor in values)))
            assert run.status == "ok", run.fault
            np.testing.assert_allclose(run.outputs[0], instance.evaluate(values)[0].numpy(), rtol=1e-4, atol=1e-4)


def test_samples_whose_number_never_changes_are_computed_together() -> None:
    """A size of a view may be their number, or another number that is as large."""
    task = made(PAIRS, public=(64, 9), hidden=(64, 11), timing=(64, 1024))
    with pytest.raises(Unsupported, match="does not hold"):
        lower(task, expert=True)


def test_samples_are_computed_in_parts_if_their_number_changes_at_some_case() -> None:
    """The timing case has as many samples as the public one; the plan holds for another number at a hidden case."""
    plan = lower(made(PAIRS, public=(64, 9), hidden=(3, 11), timing=(64, 1024)), expert=True)
    assert (plan.rounds, plan.batched) == (8, ("x", "out"))


def test_a_number_that_is_a_setting_is_not_computed_from_another_size() -> None:
    """At two cases a setting may be what a size lacks to whole blocks of 24, by chance."""
    sizes = Sizes()
    sizes.atom("x.shape[0]", 16)
    setting = sizes.setting("ints[0]", 8)
    elsewhere = [{"x.shape[0]": 512, "ints[0]": 16}]
    assert sized_whole(sizes, 8, [16], elsewhere) is not None
    assert same_setting(sizes, 8, [16], elsewhere) == setting
    assert same_setting(sizes, 8, [17], elsewhere) is None


@pytest.mark.parametrize("forward", ["(x[:, 0] * 2).view(1, -1)", "(x.sum(0, keepdim=True) * 2).view(-1)"])
def test_an_expert_views_a_row_with_and_without_a_first_dimension(forward: str) -> None:
    task = made(forward, public=(5, 9), hidden=(3, 11), timing=(64, 256))
    plan = lower(task, expert=True)
    for case in (task.public, *task.hidden):
        agrees(plan, task, case)


@pytest.mark.parametrize("forward", [f"{PAIRS}.cumsum(0)", f"{PAIRS} * torch.arange(rows)[:, None]"])
def test_samples_that_depend_on_each_other_are_computed_together(forward: str) -> None:
    task = made(forward.replace("rows", "x.shape[0]"), public=(19, 9), hidden=(3, 11), timing=(64, 1024))
    with pytest.raises(Unsupported, match="does not hold"):
        lower(task, expert=True)


def test_an_iteration_of_reductions_takes_one_stage_each() -> None:
    steps = """
for _ in range(10):
    x = x - torch.logsumexp(x, dim=0, keepdim=True)
    x = x - torch.logsumexp(x, dim=1, keepdim=True)
return x"""
    task = made(steps, public=(5, 7), hidden=(2, 9), timing=(64, 32))
    assert len(lower(task).stages) == 20


def test_a_mask_and_the_scale_of_a_head_are_idioms() -> None:
    masked = "x.masked_fill(x > 1, -torch.inf) * (x.shape[1] / 4) ** -0.5"
    (stage,) = lower(made(masked, public=(5, 48), hidden=(2, 80), timing=(64, 256))).stages
    assert isinstance(stage, Nest)
    assert {step.idiom for step in stage.steps if step.idiom} == {"attention.mask", "attention.head-depth"}


def agreeing_plan(task: Task) -> Plan:
    """Return the plan of a task, computed at the public and the hidden cases and compared with the module."""
    plan = lower(task)
    for case in (task.public, *task.hidden):
        agrees(plan, task, case)
    return plan


def agrees(plan: Plan, task: Task, case: Case) -> None:
    """Compare what a plan computes with the module at a case."""
    instance = task.instance(case)
    inputs = instance.own_inputs(1)
    for actual, expected in zip(plan_outputs(plan, inputs), instance.evaluate(inputs, torch.float64), strict=True):
        np.testing.assert_allclose(actual, expected.flatten().numpy(), rtol=1e-6, atol=1e-6, err_msg=case.name)


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param("x.unflatten(1, (4, -1))[:, 2:3] * 2", id="a slice ends at a number that a size has too"),
        pytest.param("x.repeat(x.shape[0], 1)", id="repetitions that follow the sizes"),
        pytest.param(
            "left, right = torch.split(torch.cat([x, x @ x.T], dim=1), [x.shape[1], x.shape[0]], dim=1)\n"
            "return left.sum(dim=1) - right.sum(dim=1)",
            id="a split into parts that follow the sizes",
        ),
        pytest.param(
            "y = x.unflatten(1, (4, -1))\nreturn (torch.softmax(y, dim=1) * y).flatten(1)",
            id="a softmax between two loops, stored whole",
        ),
        pytest.param("torch.stack([x, x * 2])[0] + 0 * x", id="the first part of a buffer"),
        pytest.param(
            "x[:1, :4].unsqueeze(1).expand(1, x.shape[1] // 4, 4).flatten(1) * x", id="repetitions by a part of a size"
        ),
        pytest.param(
            "y = torch.stack([x, x * 2])\nleft, right = (y[n : n + 1].squeeze(0) for n in (0, 1))\n"
            "return left.t() @ right",
            id="the last slice of a constant number, without its dimension",
        ),
    ],
)
def test_a_plan_computes_what_the_module_does(forward: str) -> None:
    agreeing_plan(made(forward, public=(3, 48), hidden=(5, 80), timing=(64, 256)))


@pytest.mark.parametrize(
    "forward",
    [
        pytest.param("x.flatten().view(x.shape[1], x.shape[0]).cumsum(1)", id="a dimension that is split"),
        pytest.param(
            "y = x[0][:, None, None] * x[0, :4][:, None] * x[:, 0]\nreturn y.view(4 * x.shape[0], -1).cumsum(1)",
            id="dimensions that are merged",
        ),
    ],
)
def test_a_view_holds_where_sizes_differ_that_are_equal_at_the_public_case(forward: str) -> None:
    agreeing_plan(made(forward, public=(8, 8), hidden=(5, 16), timing=(32, 64)))


def test_the_first_part_of_a_buffer_is_copied_to_the_output() -> None:
    plan = agreeing_plan(made("torch.stack([x, x * 2])[0]", public=(3, 48), hidden=(5, 80), timing=(64, 256)))
    assert isinstance(plan.stages[-1], Nest)
    assert [store.access.buffer for store in plan.stages[-1].stores] == ["out"]


def test_rows_that_do_not_join_in_memory_are_reduced_into_a_tensor_of_their_own() -> None:
    means = "torch.cat([x.mean(dim=1, keepdim=True), x.amax(dim=1, keepdim=True)], dim=1)"
    plan = agreeing_plan(made(means, public=(3, 48), hidden=(5, 80), timing=(64, 256)))
    assert all(stage.rows_join for stage in plan.stages if isinstance(stage, Nest) and stage.vector_reduced)


def test_a_batch_of_the_same_matrix_is_read_as_one() -> None:
    product = "torch.bmm(x.unflatten(1, (-1, 4)), x[:2, :2].flatten()[:, None].expand(x.shape[0], 4, 1))"
    plan = agreeing_plan(made(product, public=(3, 48), hidden=(5, 80), timing=(64, 256)))
    products = [part for stage in plan.stages if isinstance(stage, Either) for part in stage.cube]
    assert [part.right.count for part in products if isinstance(part, Product)] == ["1"]


def test_a_batch_of_the_same_matrix_whose_number_follows_the_sizes_is_read_as_one() -> None:
    product = """
y = x.unflatten(1, (-1, 4)).transpose(0, 1)
return torch.bmm(y, x[:2, :4].t().unsqueeze(0).expand(y.shape[0], -1, -1))"""
    plan = agreeing_plan(made(product, public=(3, 48), hidden=(5, 80), timing=(64, 256)))
    products = [part for stage in plan.stages if isinstance(stage, Either) for part in stage.cube]
    assert [part.right.count for part in products if isinstance(part, Product)] == ["1"]


def test_a_product_by_einsum_holds_at_a_batch_of_one() -> None:
    """Torch orders the dimensions of a product in another way where one of them is 1."""
    product = """
y = x.unflatten(1, (2, 4, -1))
return torch.einsum("bhwc,wk->bhkc", y, y[0, 0, :, :3])"""
    agreeing_plan(made(product, public=(3, 48), hidden=(1, 80), timing=(64, 256)))


def test_a_number_that_divides_a_size_is_its_exact_quotient() -> None:
    sizes = Sizes()
    height = sizes.atom("x.shape[0]", 21)
    quotient = sized_whole(sizes, 3, [2, 4], [{"x.shape[0]": 14}, {"x.shape[0]": 28}])
    assert quotient is not None
    assert quotient.subs(height, 42) == 6


def test_a_number_that_is_a_size_follows_that_size() -> None:
    """5 minus the batch fits as well, and the batch comes first."""
    sizes = Sizes()
    sizes.atom("x.shape[0]", 2)
    groups = sizes.atom("x.shape[1]", 3)
    assert sized_whole(sizes, 3, [2], [{"x.shape[0]": 3, "x.shape[1]": 2}]) == groups


def test_a_constant_may_be_zero_at_all_cases() -> None:
    """As `padding = 0` is in a problem file."""
    sizes = CaseSizes("rows columns padding", public=(3, 48, 0), hidden=((5, 80, 0),), timing=(64, 256, 0))
    inputs = {"x": "torch.rand(rows, columns + padding)"}
    agreeing_plan(TaskDefinition(None, "made", "other", "For the plan.", sizes, "x + 1", inputs).task("test"))


@pytest.mark.parametrize("shift", [-2, 3])
def test_a_shift_of_a_roll_is_taken_modulo_the_size(shift: int) -> None:
    """Torch adds the remainder of the shift, which is another number where the size is smaller than the shift."""
    sizes = Sizes()
    height = sizes.atom("x.shape[0]", 8)
    others = [11, 1, 64]
    start = sized_whole(sizes, -shift % 8, [-shift % n for n in others], [{"x.shape[0]": n} for n in others])
    assert start is not None
    assert [start.subs(height, n) for n in range(1, 9)] == [-shift % n for n in range(1, 9)]


@pytest.mark.parametrize("hidden", [(11, 83), (1, 83)])
def test_a_roll_holds_at_sizes_below_its_shift(hidden: tuple[int, int]) -> None:
    """Whether the cases of the task have such a size or not."""
    roll = "torch.roll(x, shifts=(-2, 3), dims=(0, 1))"
    plan = lower(made(roll, public=(8, 64), hidden=hidden, timing=(64, 256)))
    small = made(roll, public=(8, 64), hidden=(1, 2), timing=(64, 256))
    agrees(plan, small, small.hidden[0])


@pytest.mark.parametrize(
    "shared",
    [
        pytest.param("(x.unflatten(1, (y.shape[1], -1)) * y.unsqueeze(2)).sum(dim=2)", id="a view"),
        pytest.param(
            "y.unsqueeze(2).expand(-1, -1, x.shape[1] // y.shape[1], -1).flatten(1, 2) * x", id="a repetition"
        ),
    ],
)
def test_a_dimension_that_is_the_quotient_of_two_sizes(shared: str) -> None:
    """Heads that share keys: the batch has the same size, and twice the batch less two fits at both cases."""
    sizes = CaseSizes("batch heads groups", public=(2, 6, 3), hidden=((3, 8, 2),), timing=(4, 8, 4))
    inputs = {"x": "torch.randn(batch, heads, 5)", "y": "torch.randn(batch, groups, 5)"}
    task = TaskDefinition(1, "made", "math", "A task for a plan.", sizes, shared, inputs).task("test")
    plan = agreeing_plan(task)
    instance = task.instance(Case("other", "hidden", (("batch", 1), ("heads", 12), ("groups", 4))))
    tensors = instance.own_inputs(1)
    (actual,), (expected,) = plan_outputs(plan, tensors), instance.evaluate(tensors, torch.float64)
    np.testing.assert_allclose(actual, expected.flatten().numpy(), rtol=1e-6, atol=1e-6)


def test_a_row_that_may_be_too_long_for_the_chip_at_an_edge_is_read_in_passes() -> None:
    cubes = "torch.softmax((x[:, :, None, None] * x[:, None, :, None] * x[:, None, None, :]).flatten(1), dim=1)"
    task = made(cubes, public=(3, 12), hidden=(5, 10), timing=(64, 16))
    (*_, stage) = lower(task).stages
    assert isinstance(stage, Nest)
    assert stage.longest == 16**3 < stage.longest_at_edges
    assert "return 1;" not in oracle(task).source


def test_a_window_is_summed_along_its_neighbours() -> None:
    windows = "(x.unfold(1, 3, 1) * x[:1, None, :3]).sum(dim=2)"
    (stage,) = agreeing_plan(made(windows, public=(5, 48), hidden=(3, 80), timing=(64, 256))).stages
    assert isinstance(stage, Nest)
    assert not stage.vector_reduced
    assert dict(stage.fields)["axis"] == "3"


def test_a_quotient_that_is_rounded_is_exact() -> None:
    rounded = "torch.round(x * 127 / x.abs().amax(dim=1, keepdim=True))"
    text = oracle(made(rounded, public=(3, 48), hidden=(5, 80), timing=(64, 256))).source
    assert "AscendC::Div(" in text
    assert "1.0f / " not in text.replace("-1.0f / 0.0f", "")  # but minus infinity


def test_a_launch_without_work_is_left_out() -> None:
    """At a single column there is nothing to shift."""
    shifted = "torch.cat([x[:, 1:], x[:, :1]], dim=1) * x"
    task = made(shifted, public=(3, 47), hidden=(5, 80), timing=(64, 256))
    assert "if (x.shape[1] - 1 > 0) {" in oracle(task, "cuda").source
    with Verifier(AscendSim()) as verifier:
        verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.slow
def test_launches_of_the_same_code_share_a_class_and_a_host_function() -> None:
    layers = """
for _ in range(21):
    x = torch.softmax(x @ (x.t() @ x), dim=1)
return x"""
    task = made(layers, public=(3, 8), hidden=(5, 7), timing=(8, 16))
    kernel = oracle(task)
    assert len(lower(task).stages) > 42
    assert kernel.source.count("<<<") == kernel.source.count("static int Launch") <= 4
    with Verifier(AscendSim()) as verifier:
        verdict = verifier.verify(kernel, task)
    assert verdict.feasible, verdict.feedback


def test_a_long_sum_of_sizes_has_a_name() -> None:
    sizes = CaseSizes("rows columns", public=(7, 12), hidden=((6, 10),), timing=(16, 64))
    inputs = dict.fromkeys("abcdefg", "torch.randn(rows, columns)")
    joined = "torch.relu(torch.cat([a, b, c, d, e, f, g], dim=1))"
    plan = agreeing_plan(TaskDefinition(1, "made", "math", "A task for a plan.", sizes, joined, inputs).task("test"))
    assert [text.count("+") for name, text in plan.derived if name.startswith("joined")] == [6]
    assert all("+" not in buffer.elements for buffer in plan.buffers)


def test_a_transposed_sum_passes_every_gate() -> None:
    task = made("x.unflatten(1, (4, -1)).sum(dim=1).t()", public=(3, 48), hidden=(5, 80), timing=(64, 256))
    agreeing_plan(task)
    with Verifier(AscendSim()) as verifier:
        verdict = verifier.verify(oracle(task), task)
    assert verdict.feasible, verdict.feedback


def test_the_second_walk_of_a_buffer_is_not_called_like_another_buffer() -> None:
    walks = [Step("load", access=Access(name, "float32", (), (), "1")) for name in ("temp1", "temp11", "temp1")]
    labels = [step.access.label for step in _labelled(walks) if step.access]
    assert labels == ["temp1", "temp11", "temp12"]


@pytest.mark.parametrize(("hop", "together"), [(4, True), (1, False)])
def test_short_rows_at_a_literal_distance_are_copied_together_unless_they_overlap(hop: int, together: bool) -> None:
    task = made(f"x.unfold(1, 3, {hop}).flatten(1) + 1", public=(3, 48), hidden=(5, 80), timing=(64, 256))
    agreeing_plan(task)
    assert ("t.blocks" in oracle(task).source) == together


@pytest.mark.slow
@pytest.mark.parametrize(
    "task", [pytest.param(t, id=t.id) for suite in ("attention", "attention_parts", "mhc") for t in load_suite(suite)]
)
def test_a_plan_holds_at_every_size_that_a_kernel_may_meet(task: Task) -> None:
    """Run by `make test-suites`: sizes as they are drawn for kernels, without a device."""
    plan = lower(task)
    half = any(spec.dtype == "bfloat16" for spec in task.instance(task.public).signature.inputs)
    for kernel in ("first", "second", "third"):
        seeds = Seeds(PUBLISHED, task.digest, kernel)
        for case in (*hidden_cases(task, seeds), *edge_cases(task, seeds)):
            instance = task.instance(case)
            tensors = instance.own_inputs(1)
            pairs = zip(plan_outputs(plan, tensors), instance.evaluate(tensors, torch.float64), strict=True)
            for actual, expected in pairs:
                truth = expected.double().flatten().numpy()
                near = np.isclose(actual, truth, rtol=2e-2 if half else 1e-4, atol=1e-4 * (1 + np.abs(truth).max()))
                assert near.all(), (case.sizes, truth[~near][:3], actual[~near][:3])
