"""The packaged suites: names, numbers, cases and modules of their tasks."""

import subprocess
import sys

import pytest
import torch

from kernel_gym.errors import TaskError
from kernel_gym.suites import SUITES, find_task, load_suite, task_id
from kernel_gym.suites.definitions import CATEGORIES, CaseSizes, TaskDefinition
from kernel_gym.tasks.instance import ModuleInstance
from kernel_gym.tasks.task import Task

ALL = [task for name in SUITES for task in load_suite(name)]
ids = [task.id for task in ALL]
#: Modules of papers, which `test_formulations.py` and `test_networks.py` run too.
PUBLISHED = [task for task in ALL if task.suite in ("attention", "attention_parts", "mhc", "level3")]
QUICK = [task for task in ALL if task not in PUBLISHED]


def values(instance: ModuleInstance) -> list[torch.Tensor]:
    """The module's own example: its arguments, its state, its constants."""
    tensors = [leaf for leaf in instance.example_arguments() if isinstance(leaf, torch.Tensor)]
    state = instance.model().state_dict()
    fixed = instance.fixed_inputs()
    rest = list(enumerate(instance.signature.inputs))[len(tensors) :]
    return [*tensors, *(fixed[position] if position in fixed else state[spec.name] for position, spec in rest)]


@pytest.mark.parametrize(
    ("suite", "count"), [("level1", 100), ("level2", 100), ("level3", 50), ("attention", 79), ("mhc", 15)]
)
def test_a_suite_has_each_of_its_numbers_once(suite: str, count: int):
    assert [task.number for task in load_suite(suite)] == list(range(1, count + 1))
    assert len({task.name for task in load_suite(suite)}) == count


def test_a_module_of_a_paper_names_number_category_shapes_and_reference():
    for task in PUBLISHED:
        assert f"Number {task.number}, category {task.category}. Published shapes: " in task.source
        assert "Reference: " in task.source


@pytest.mark.parametrize(
    ("number", "name"),
    [
        ("19", "relu"),
        ("23", "softmax"),
        ("40", "layer_norm"),
        ("47", "sum_reduction_over_a_dimension"),
        ("89", "cumsum"),
    ],
)
def test_numbers_are_kernelbench_s(number: str, name: str):
    assert find_task(f"level1/{number}") is find_task(f"level1/{name}")


def test_a_bare_name_belongs_to_the_suite():
    relu = find_task("level1/relu")
    assert find_task("relu", "level1") is find_task("19", suite="level1") is relu
    assert find_task("level1/relu", "level2") is relu
    assert [task_id(name, "level1") for name in ("relu", "level2/x", "x.py")] == ["level1/relu", "level2/x", "x.py"]


def test_every_category_is_a_known_one():
    assert {task.category for task in ALL} <= set(CATEGORIES)


def test_a_suite_is_loaded_without_torch():
    code = "import sys; from kernel_gym.suites import load_suite; load_suite('level1'); print('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "False\n"


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("level1/rlu", "did you mean level1/relu"),
        ("softmx", "write suite/name .* did you mean level1/softmax"),
        ("levl1/relu", "no suite 'levl1'.*did you mean level1"),
        ("level1/101", "no task 'level1/101'"),
        ("level1/\N{SUPERSCRIPT TWO}", "no task 'level1/.'"),
        ("level1/\N{ARABIC-INDIC DIGIT ONE}", "no task 'level1/.'"),
        (f"level1/{'9' * 900}", "no task 'level1/9"),
        (f"level1/{'9' * 5000}", "at most 1000 characters, not 5007"),
        (f"{'x' * 5000}/relu.py", "at most 1000 characters"),
        ("nowhere/relu.py", "no problem file 'nowhere/relu.py'"),
    ],
)
def test_unknown_names_are_one_line_with_near_ones(name: str, message: str):
    with pytest.raises(TaskError, match=message) as caught:
        find_task(name)
    assert "\n" not in str(caught.value)


def test_sizes_must_be_complete():
    with pytest.raises(ValueError, match="one value for each of 'm n'"):
        CaseSizes("m n", public=(1, 2), hidden=((1,),), timing=(3, 4))


def test_an_operator_is_a_few_words_of_torch():
    sizes = CaseSizes("rows", public=(4,), hidden=((1,), (7,)), timing=(1000,))
    row = TaskDefinition(
        7,
        "twice",
        "math",
        "Twice x.",
        sizes,
        "x * self.factor",
        {"x": "torch.randn(rows)"},
        init="factor",
        settings={"factor": 2.0},
    )
    task = row.task("mine")
    instance = task.instance(task.hidden[1])
    (doubled,) = instance.evaluate([torch.ones(7)], torch.float64)
    assert torch.equal(doubled, torch.full((7,), 2.0, dtype=torch.float64))
    assert instance.signature.floats == (2.0,)


def is_built_and_runs(task: Task) -> None:
    """Two or more hidden cases; small tensors; finite answers of the promised shapes; a timing case without memory."""
    assert len(task.hidden) >= 2
    assert len({task.instance(case).signature for case in task.cases}) == len(task.cases)
    for case in (task.public, *task.hidden):
        instance = task.instance(case)
        specs = (*instance.signature.inputs, *instance.signature.outputs)
        # The parameters of a network have one size in all cases. Those of 201 layers take 2 MB.
        assert sum(spec.nbytes for spec in specs) < (1 << 22 if task.suite == "level3" else 1 << 20)
        outputs = instance.evaluate(values(instance), torch.float64)
        assert [tuple(tensor.shape) for tensor in outputs] == [spec.shape for spec in instance.signature.outputs]
        assert all(torch.isfinite(tensor).all() for tensor in outputs)
    assert all(spec.numel > 0 for spec in task.instance(task.timing).signature.outputs)


@pytest.mark.parametrize("task", QUICK, ids=lambda task: task.id)
def test_every_task_is_built_and_runs(task: Task):
    is_built_and_runs(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", PUBLISHED, ids=lambda task: task.id)
def test_every_published_module_is_built_and_runs(task: Task):
    """`make test-suites`."""
    is_built_and_runs(task)


def exports(task: Task) -> None:
    program = task.instance(task.public).export()
    targets = {str(node.target) for node in program.graph.nodes if node.op == "call_function"}
    assert targets
    assert all(target.startswith("aten.") or "getitem" in target for target in targets)


@pytest.mark.parametrize("task", QUICK[::17], ids=lambda task: task.id)
def test_a_sample_exports_to_aten(task: Task):
    exports(task)


@pytest.mark.slow
@pytest.mark.parametrize("task", ALL, ids=ids)
def test_every_task_exports_to_aten(task: Task):
    """`make test-suites`."""
    exports(task)


def test_repaired_originals_say_what_was_changed():
    repaired = {task.id for task in ALL if any(flag.startswith("repaired: ") for flag in task.flags)}
    assert repaired == {
        "level1/cumsum_exclusive",
        "level2/convtranspose3d_mean_add_softmax_tanh_scaling",
        "level2/matmul_dropout_mean_softmax",
        "level2/gemm_max_subtract_gelu",
        "level2/conv3d_group_norm_min_clamp_dropout",
        "attention/dy_quantize",
    }


def test_exclusive_sum_begins_with_zero():
    task = find_task("level1/cumsum_exclusive")
    instance = task.instance(task.public)
    x = torch.ones(instance.signature.inputs[0].shape)
    expected = torch.arange(x.shape[1]).double().expand(x.shape)
    assert torch.equal(instance.evaluate([x], torch.float64)[0], expected)
