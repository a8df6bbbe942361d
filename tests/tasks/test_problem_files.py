"""Problem files of KernelBench and others: derived sizes, flags and errors."""

import warnings
from pathlib import Path

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensor

from kernel_gym.errors import ProblemFileDied, TaskError, TaskWarning
from kernel_gym.suites import find_task, load_suite, problem_files
from kernel_gym.suites.problem_files import CHECK_BYTES, HIDDEN_BYTES, TIMING_BYTES, check_form, derive, load_all
from kernel_gym.tasks import instance
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

PROBLEMS = Path(__file__).parent / "problems"


@pytest.fixture(autouse=True)
def _cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def problem(name: str) -> Task:
    return find_task(str(PROBLEMS / name))


def shapes(task: Task, case: Case) -> list[tuple[int, ...]]:
    return [spec.shape for spec in task.instance(case).signature.inputs]


def nbytes(task: Task, case: Case) -> int:
    signature = task.instance(case).signature
    return sum(spec.nbytes for spec in (*signature.inputs, *signature.outputs))


def test_sizes_are_shrunk_visibly():
    relu = problem("level1/19_ReLU.py")
    assert (relu.number, relu.level) == (19, 1)
    assert any(flag.startswith("shrunk: check batch_size 4096 to ") for flag in relu.flags)
    assert any(flag.startswith("shrunk: timing dim 393216 to ") for flag in relu.flags)
    assert nbytes(relu, relu.public) <= CHECK_BYTES
    assert TIMING_BYTES / 2 < nbytes(relu, relu.timing) <= TIMING_BYTES
    assert all(nbytes(relu, case) <= HIDDEN_BYTES for case in relu.hidden)


def test_an_affordable_timing_case_is_the_original():
    square = problem("level1/1_Square_matmul.py")
    assert shapes(square, square.timing) == [(4096, 4096)] * 2
    assert not any("timing" in flag for flag in square.flags)


SHORTCUT = """
import torch
from torch import nn

class Model(nn.Module):
    def __init__(self, width, out_width):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(width, out_width, 1), nn.ReLU(), nn.Conv2d(out_width, out_width, 1))
        self.shortcut = nn.Identity() if width == out_width else nn.Conv2d(width, out_width, 1)

    def forward(self, x):
        return torch.relu(self.layers(torch.tanh(x)) + self.shortcut(x))

in_channels, out_channels, height = 32, 64, 64

def get_inputs():
    return [torch.rand(4, in_channels, height, height)]

def get_init_inputs():
    return [in_channels, out_channels]
"""


SQUARE = """
import torch

class Model(torch.nn.Module):
    def forward(self, predictions, targets):
        return torch.mean(torch.clamp(1 - predictions * targets, min=0))

batch_size = 4096
input_shape = (4096,)

def get_inputs():
    return [torch.rand(batch_size, *input_shape), torch.randint(0, 2, (batch_size,)).float() * 2 - 1]

def get_init_inputs():
    return []
"""


def test_sizes_that_have_to_be_equal_are_halved_together():
    cases, flags = derive(SQUARE, trust=True)
    public = dict(cases[0].sizes)
    assert public["batch_size"] == public["input_shape[0]"] <= 256
    assert not any("large" in flag for flag in flags)


def test_smaller_sizes_take_the_same_branch():
    cases, _ = derive(SHORTCUT, trust=True)
    for case in cases:
        sizes = dict(case.sizes)
        assert sizes["in_channels"] != sizes["out_channels"]


@pytest.mark.parametrize(
    "name", ["level1/19_ReLU.py", "level1/95_Entropy.py", "level2/39_Linear_Scale_BatchNorm.py", "level1/7_Inline.py"]
)
def test_hidden_cases_are_other_shapes_with_the_same_parameters(name: str):
    task = problem(name)
    assert len(task.hidden) >= 2
    seen = [shapes(task, case) for case in (task.public, *task.hidden)]
    assert len({str(one) for one in seen}) == len(seen)
    states = [
        [(spec.name, spec.shape) for spec in task.instance(case).signature.inputs if spec.origin == "state"]
        for case in (task.public, *task.hidden)
    ]
    assert all(state == states[0] for state in states)


def test_a_size_of_one_and_odd_sizes_are_among_them():
    task = problem("level2/39_Linear_Scale_BatchNorm.py")
    batches = {shapes(task, case)[0][0] for case in task.hidden}
    assert 1 in batches
    assert any(batch > 1 and batch % 2 for batch in batches)


def test_no_variant_means_fixed_shape():
    fixed = problem("level2/60_Fixed.py")
    assert fixed.flags == ("fixed-shape",)
    assert fixed.hidden == ()


def test_divisibility_and_masks_are_respected():
    heads = problem("level2/50_Heads.py")
    for case in heads.cases:
        instance = heads.instance(case)
        assert instance.signature.ints[1] == 12
        assert instance.signature.ints[0] % 12 == 0
    instance = heads.instance(heads.public)
    (mask,) = instance.fixed_inputs().values()
    assert set(mask.unique().tolist()) == {0.0, 1.0}
    assert [spec.shape for spec in instance.signature.outputs][1] == ()


def test_targets_stay_below_the_number_of_classes():
    entropy = problem("level1/95_Entropy.py")
    for case in entropy.cases:
        predictions, targets = entropy.instance(case).signature.inputs
        assert (targets.domain.kind, targets.domain.limit) == ("index", predictions.shape[1])


def test_a_folder_loads_what_it_can_and_says_why_not():
    with pytest.warns(TaskWarning) as caught:
        tasks = load_suite(str(PROBLEMS / "level2"))
    assert [task.number for task in tasks] == [39, 50, 60]
    reasons = [str(item) for item in load_all(PROBLEMS / "level2") if isinstance(item, TaskError)]
    assert len(reasons) == 2
    assert [str(warning.message) for warning in caught] == [f"left out: {reason}" for reason in reasons]
    assert "61_Broken.py: forward() fails" in reasons[0]
    assert "62_Headless.py: the problem file defines no get_inputs" in reasons[1]


def test_kernelbench_home_is_searched(monkeypatch):
    monkeypatch.setenv("KERNELBENCH_HOME", str(PROBLEMS.parent))
    assert find_task("problems/level1/19").description == "ReLU"
    assert find_task("problems/level1/19_ReLU").number == 19
    with pytest.raises(TaskError, match="no problem file '20' in"):
        find_task("problems/level1/20")


def test_one_file_is_found_without_reading_the_others(monkeypatch):
    monkeypatch.setenv("KERNELBENCH_HOME", str(PROBLEMS.parent))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert find_task("problems/level2/39").number == 39


def test_derived_cases_are_kept(monkeypatch):
    first = problem("level2/60_Fixed.py")
    monkeypatch.setattr("kernel_gym.suites.problem_files.derive", lambda source: pytest.fail("derived again"))
    assert problem("level2/60_Fixed.py").digest == first.digest


def test_a_file_that_needs_no_shrinking_is_left_alone():
    source = (PROBLEMS / "level1/19_ReLU.py").read_text().replace("4096", "16").replace("393216", "64")
    cases, flags = derive(source)
    assert flags == ()
    assert cases[0].sizes == cases[-1].sizes == (("batch_size", 16), ("dim", 64))


def test_an_empty_folder_is_an_error(tmp_path):
    with pytest.raises(TaskError, match="could be loaded, it has no"):
        load_suite(str(tmp_path))
    (tmp_path / "1_Broken.py").write_text("class Model(")
    with pytest.raises(TaskError, match=r"could be loaded: .*1_Broken.py: the problem file is not Python"):
        load_suite(str(tmp_path))


#: Odd files that load: shapes of the inputs and outputs at the public case, whole and other numbers.
ODD = {
    "1_TwoInputsTwoOutputs": ([(128, 128), (128, 128)], [(128, 128), (128,)], (), ()),
    "2_NumbersAmongInputs": ([(32768,)], [(32768,)], (2, 1), (0.5,)),
    "3_HelperModules": ([(128, 128)] + [(128,)] * 5, [(128, 128)], (128, 3), ()),
    "4_ComputedConstants": ([(8, 8, 16, 16), (8,), (8,)], [(8, 8, 16, 16)], (8, 2), ()),
    "5_Targets": ([(128, 256), (128,), (256,)], [(128,)], (), ()),
    "6_KeywordInit": ([(128, 128), (128,)], [(128, 128)], (128,), (1e-3,)),
    "7_NestedInputs": ([(128, 128), (128, 128), (128,)], [(128, 128), (128,)], (), ()),
    "8_TrainingModule": ([(128, 128)] + [(128,)] * 4 + [()], [(128, 128)], (128,), (0.5,)),
    "9_Half": ([(256, 256)], [(256, 256)], (), ()),
}


@pytest.mark.parametrize("name", ODD)
def test_odd_files_load(name: str):
    task = problem(f"odd/{name}.py")
    inputs, outputs, ints, floats = ODD[name]
    signature = task.instance(task.public).signature
    assert [spec.shape for spec in signature.inputs] == inputs
    assert [spec.shape for spec in signature.outputs] == outputs
    assert (signature.ints, signature.floats) == (ints, floats)
    assert len(task.hidden) == 3
    assert any(flag.startswith("shrunk: check ") for flag in task.flags)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("10_NoModel", "defines no Model"),
        ("11_NotPython", "is not Python: line 1"),
        ("12_MissingLibrary", "imports a_library_that_nobody_has, which is not installed here"),
    ],
)
def test_odd_files_that_cannot_load_say_why(name: str, reason: str):
    with pytest.raises(TaskError, match=reason):
        problem(f"odd/{name}.py")


def test_dropout_of_an_odd_file_is_off():
    task = problem("odd/8_TrainingModule.py")
    assert not task.instance(task.public).model().training


def test_other_devices_state_between_calls_and_numbers_in_place():
    task = problem("level1/97_Device.py")
    assert len(task.hidden) >= 2
    for case in task.cases:
        signature = task.instance(case).signature
        assert [(spec.name, spec.dtype) for spec in signature.inputs] == [("x", "float16"), ("y", "float16")]
    instance = task.instance(task.public)
    x, y = (torch.ones(spec.shape, dtype=torch.float16) for spec in instance.signature.inputs)
    for _ in range(2):
        assert (instance.evaluate([x, y], torch.float64)[0] == 1.5).all()


def test_sizes_that_are_equal_differ_at_one_hidden_case():
    task = problem("forms/31_PadReflected.py")
    images = [shapes(task, case)[0] for case in task.hidden]
    assert any(height != width for *_, height, width in images)


def test_the_rounds_of_a_loop_do_not_vary():
    for name, varied in (("forms/35_NoiseAsStart.py", False), ("forms/43_Recurrent.py", True)):
        task = problem(name)
        rounds = {dict(case.sizes)["steps"] for case in (task.public, *task.hidden)}
        assert (len(rounds) > 1) == varied
        assert len(task.hidden) >= 2


LONG_CONSTRUCTOR = """
import torch

rows = 2048

class Model(torch.nn.Module):
    def __init__(self, rows):
        super().__init__()
        mask = torch.zeros(rows, 8)
        for row in range(rows):
            mask[row, row % 8] = 1
        self.register_buffer("mask", mask)
        self.scale = torch.nn.Parameter(torch.rand(8))

    def forward(self, x):
        return x * self.mask * self.scale

def get_inputs():
    return [torch.rand(rows, 8)]

def get_init_inputs():
    return [rows]
"""


@pytest.mark.slow
def test_a_long_constructor_runs_with_values(monkeypatch):
    """On fake tensors each of its steps takes milliseconds, at each of dozens of sizes."""
    made = []
    fakes = instance.with_fakes
    monkeypatch.setattr(instance, "with_fakes", lambda model: made.append(model.mask) or fakes(model))
    built = instance.ModuleInstance(LONG_CONSTRUCTOR, "0", Case("original", "timing", (("rows", 2048),)), ())
    assert not isinstance(made[0], FakeTensor)
    assert made[0].sum() == 2048
    assert isinstance(built.fake()[0].mask, FakeTensor)
    assert [spec.name for spec in built.signature.inputs] == ["x", "scale", "mask"]
    assert built.fixed_inputs()[2].sum() == 2048


def test_a_constructor_may_read_values():
    task = problem("forms/54_ValuesInTheConstructor.py")
    (x,) = task.instance(task.public).own_inputs(0)
    (result,) = task.instance(task.public).evaluate([x], torch.float64)
    expected = x.double()
    for rate in (0.5, 1.0, 1.5):
        expected = torch.tanh(rate * expected)
    assert torch.allclose(result, expected.mean(1))


def test_each_signature_is_computed_once(monkeypatch):
    """Looking at a module at its original sizes may take half a minute."""
    looked = []
    at = problem_files._Module._at
    monkeypatch.setattr(
        problem_files._Module, "_at", lambda self, case: looked.append((case.name, case.sizes)) or at(self, case)
    )
    derive((PROBLEMS / "level1/19_ReLU.py").read_text(), trust=True)
    signatures = [sizes for name, sizes in looked if name == "original"]
    assert len(signatures) == len(set(signatures)) > 1


@pytest.mark.parametrize("branches", ["if", "elif"])
def test_branches_inside_of_branches_are_read_once(branches: str):
    """Each level was read twice for every one around it: 60 levels took for ever."""
    if branches == "if":
        text = "".join(f"{' ' * level}if x:\n" for level in range(60)) + " " * 60 + "Model = 1\n"
    else:
        text = "if x:\n    pass\n" + "elif x:\n    pass\n" * 60 + "else:\n    Model = 1\n"
    with pytest.raises(TaskError, match="defines no get_inputs"):
        check_form(text)


def test_a_slow_file_has_a_limit_for_all_of_its_sizes(monkeypatch):
    monkeypatch.setattr(problem_files, "DERIVE_SECONDS", 0.0)
    with pytest.raises(ProblemFileDied, match="to be tried at its sizes"):
        derive(_with_sizes(3), trust=True)


def test_a_file_with_thousands_of_constants_and_large_ones_is_derived():
    cases, _ = derive(_with_sizes(5000) + "key = 999_999_999_989\n", trust=True)
    sizes = dict(cases[0].sizes)
    assert len(sizes) == problem_files.MOST_SIZES
    assert sizes["rows"] == 64


def _with_sizes(count: int) -> str:
    others = ", ".join("7" for _ in range(count))
    return f"""
import torch
rows = 64
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)
def get_inputs():
    return [torch.randn(rows, 16)]
def get_init_inputs():
    return []
stride = [{others}]
"""
