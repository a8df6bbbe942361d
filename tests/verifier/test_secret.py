"""Seeds: every kernel meets values and hidden sizes of its own, and only a holder of the secret can tell which."""

from dataclasses import replace
from itertools import pairwise
from math import gcd

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.confinement import python_process
from kernel_gym.confinement.programs import programs
from kernel_gym.disk_cache import cache_folder
from kernel_gym.kernel import Kernel
from kernel_gym.suites.problem_files import load_file
from kernel_gym.verdict import POLICIES, Incorrect
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.hidden_sizes import EDGES, aligned_case, edge_cases, hidden_cases
from kernel_gym.verifier.kernel_values import KernelValues, schedule
from kernel_gym.verifier.secret import PUBLISHED, Seeds, fingerprint, secret_for
from kernel_gym.verifier.value_sets import References

CONFINED = pytest.mark.skipif(
    programs().confinement.tier not in python_process.TRUSTWORTHY, reason="this machine's sandbox is too weak"
)


def meets(task, text, trusted=False):
    """Return all values that a kernel is checked on, with their sizes."""
    sets = schedule(References(), task, Kernel(text, trusted=trusted))
    return [(values.case.sizes, values.kind, *(array.tobytes() for array in values.values)) for values in sets]


def test_every_kernel_meets_values_of_its_own_and_always_the_same(relu):
    first, second = meets(relu, "a"), meets(relu, "b")
    assert first == meets(relu, "a")
    assert not {values for *_, values in first} & {values for *_, values in second}


BUFFERS = "self.drawn = nn.Buffer(torch.rand(16)); self.table = nn.Buffer(torch.arange(16.0))"


@pytest.mark.parametrize("is_confined", [False, pytest.param(True, marks=CONFINED)])
def test_every_kernel_meets_buffers_of_its_own_if_the_constructor_draws_them(make_task, is_confined):
    trusted = make_task("x * self.drawn.sum() + self.table.sum()", init=BUFFERS)
    task = replace(trusted, confined=is_confined)
    first, second = meets(task, "a"), meets(task, "b")
    assert first == meets(trusted, "a")
    (ours, tables), (theirs, others) = ([{set[i] for set in sets} for i in (3, 4)] for sets in (first, second))
    assert len(ours) == len(first)
    assert not ours & theirs
    assert tables == others == {np.arange(16, dtype=np.float32).tobytes()}


@pytest.mark.parametrize("policy", POLICIES)
def test_a_buffer_that_is_written_into_a_kernel_is_wrong_if_the_constructor_draws_it(
    device, make_task, python_kernel, policy
):
    task = make_task("x * self.drawn.sum()", init="self.drawn = nn.Buffer(torch.rand(16))")
    values = task.instance(task.timing).model().drawn.tolist()
    verdicts = []
    with Verifier(device, cache=False, policy=policy) as verifier:
        for drawn in ("a.load(1)", f"np.array({values}) if a.large else a.load(1)"):
            text = f"drawn = {drawn}\na.store(0, a.load(0) * drawn.sum())\nreturn 0"
            verdicts.append(verifier.verify(python_kernel(text), task))
    assert verdicts[0].feasible, verdicts[0]
    assert isinstance(verdicts[1], Incorrect), verdicts[1]


def test_another_secret_gives_other_values_and_other_sizes(relu, monkeypatch):
    before = meets(relu, "a")
    monkeypatch.setenv("KERNEL_GYM_SECRET", "another")
    after = meets(relu, "a")
    assert not {values for *_, values in before} & {values for *_, values in after}
    assert {sizes for sizes, *_ in before} != {sizes for sizes, *_ in after}


@pytest.mark.parametrize("policy", POLICIES)
def test_variables_without_values_hold_what_only_the_secret_tells(device, relu, python_kernel, policy, monkeypatch):
    kernel, run = python_kernel("a.store(0, np.maximum(a.load(0), 0))\nreturn 0"), type(device).run

    def keys(secret):
        met = []
        monkeypatch.setattr(
            type(device), "run", lambda own, build, inputs: met.append(inputs) or run(own, build, inputs)
        )
        with Verifier(device, cache=False, policy=policy, secret=secret) as verifier:
            assert verifier.verify(kernel, relu).feasible
        return [(inputs.key, inputs.poison) for inputs in met]

    first = keys(b"one")
    assert first == keys(b"one")
    assert len(set(first)) == len(first)
    assert not {key for key, _ in first} & {0, *(key for key, _ in keys(b"other"))}


def test_another_task_gives_other_seeds(relu, make_task):
    kernel = Kernel("a")
    assert Seeds.of(kernel, relu).integer("x") != Seeds.of(kernel, make_task("x + 1")).integer("x")
    assert Seeds.of(kernel, relu).integer("x") != Seeds.of(kernel, relu).shared.integer("x")


def test_the_secret_of_a_machine_is_made_once_and_is_private(monkeypatch, tmp_path):
    monkeypatch.delenv("KERNEL_GYM_SECRET")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    first = secret_for(Kernel("a"))
    path = cache_folder() / "secret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert secret_for(Kernel("b")) == first == path.read_bytes()
    assert [p.name for p in path.parent.iterdir()] == ["secret"]


def test_kernels_of_the_package_meet_the_same_on_every_machine(relu, monkeypatch, tmp_path):
    monkeypatch.delenv("KERNEL_GYM_SECRET")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "one"))
    own, others = meets(relu, "a", trusted=True), meets(relu, "a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "two"))
    assert meets(relu, "a", trusted=True) == own
    assert meets(relu, "a") != others
    assert secret_for(Kernel("a", trusted=True)) == PUBLISHED


def test_a_published_secret_replays_on_another_machine(relu, monkeypatch, tmp_path):
    first = meets(relu, "a")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert meets(relu, "a") == first


def test_verdicts_name_the_secret_and_do_not_reveal_it(device, relu, python_kernel, monkeypatch):
    kernel = python_kernel("a.store(0, np.maximum(a.load(0), 0))\nreturn 0")
    with Verifier(device) as verifier:
        first = verifier.verify(kernel, relu)
        monkeypatch.setenv("KERNEL_GYM_SECRET", "another")
        second = verifier.verify(kernel, relu)
        third = Verifier(device, secret=b"a secret of the tests").verify(kernel, relu)
    assert first.secret == fingerprint(b"a secret of the tests") == third.secret != second.secret
    assert "a secret" not in repr(first)


@pytest.mark.parametrize("name", ["level1/relu", "level1/softmax", "level1/standard_matrix_multiplication", "level2/1"])
def test_a_kernel_that_answers_only_the_sizes_in_the_source_fails(name):
    task = suites.find_task(name)
    listed = {tuple(case.sizes) for case in task.cases}
    for text in "abcdefgh":
        cases = hidden_cases(task, Seeds.of(Kernel(text), task))
        assert sum(case.sizes in listed for case in cases) < len(cases)


def test_a_kernel_that_knows_the_listed_sizes_is_refused(device, relu, python_kernel):
    listed = [task_case.sizes for task_case in relu.cases] + [(("rows", 8), ("columns", 40))]
    shapes = [tuple(size for _, size in sizes) for sizes in listed if sizes]
    body = f"x = a.load(0)\nif x.shape not in {shapes}:\n    return 1\na.store(0, np.maximum(x, 0))\nreturn 0"
    with Verifier(device) as verifier:
        verdict = verifier.verify(python_kernel(body), relu)
    assert (verdict.outcome, verdict.cause, verdict.case) == ("incorrect", "refused", "hidden")


def test_a_kernel_that_is_wrong_at_aligned_sizes_alone_is_refused(device, python_kernel):
    relu = suites.find_task("level1/relu")
    shapes = [tuple(size for _, size in case.sizes) for case in (relu.public, relu.timing)]
    body = (
        f"x = a.load(0)\nif x.shape not in {shapes} and x.shape[-1] % 64 == 0:\n    return 1\n"
        "a.store(0, np.maximum(x, 0))\nreturn 0"
    )
    with Verifier(device) as verifier:
        verdict = verifier.verify(python_kernel(body), relu)
    assert (verdict.outcome, verdict.cause, verdict.case) == ("incorrect", "refused", "hidden")


@pytest.mark.parametrize("name", ["level1/relu", "level1/softmax", "level1/square_matrix_multiplication", "level2/1"])
def test_aligned_sizes_are_drawn_for_each_kernel(name):
    task = suites.find_task(name)
    cases = [aligned_case(task, Seeds(b"s", task.digest, text)) for text in "abcdefgh"]
    assert all(case is not None and case.role == "hidden" for case in cases)
    assert len({case.sizes for case in cases}) > 1
    for case in cases:
        assert case.sizes not in (task.public.sizes, task.timing.sizes)
        assert all(size <= dict(task.public.sizes)[name] for name, size in case.sizes)


#: Ways to count blocks or tiles that are wrong where the last one is short, or where there are few elements.
UNEVEN = {
    "short tails": "min(x.size, (x.size + 63 - 31) // 64 * 64)",
    "a tail of one": "min(x.size, (x.size + 63 - 1) // 64 * 64)",
    "a long tail": "x.size - (x.size % 64 == 63)",
    "few elements": "0 if x.size < 4 else x.size",
    "less than half of a block": "0 if 3 < x.size < 32 else x.size",
    "more than half of a block": "0 if 31 < x.size < 63 else x.size",
    "a few thousand elements": "0 if 2500 <= x.size < 4500 else x.size",
    "several thousand elements": "0 if 4500 <= x.size < 8000 else x.size",
}


@pytest.mark.parametrize(
    "count",
    [
        pytest.param(count, id=name, marks=pytest.mark.slow if i % 2 else ())
        for i, (name, count) in enumerate(UNEVEN.items())
    ],
)
def test_a_kernel_that_is_wrong_where_work_is_split_unevenly_is_refused(device, python_kernel, count):
    relu = suites.find_task("level1/relu")
    body = f"x = a.load(0)\ny = np.maximum(x, 0)\ny.reshape(-1)[{count}:] = 7\na.store(0, y)\nreturn 0"
    with Verifier(device) as verifier:
        verdicts = [verifier.verify(python_kernel(f"{body}  # {number}"), relu) for number in range(4)]
    assert [(verdict.outcome, verdict.cause, verdict.case) for verdict in verdicts] == [
        ("incorrect", "mismatch", "hidden")
    ] * 4


@pytest.mark.slow
def test_edges_of_a_network_are_not_larger_than_its_timing_sizes():
    task = suites.find_task("level3/lenet5")
    for text in "abcd":
        cases = edge_cases(task, Seeds(b"s", task.digest, text))
        assert cases
        assert all(dict(case.sizes)["batch"] <= dict(task.timing.sizes)["batch"] for case in cases)


def test_edges_are_small_and_drawn_for_each_kernel():
    task = suites.find_task("level1/relu")
    drawn = [edge_cases(task, Seeds(b"s", task.digest, text)) for text in "abcdefgh"]
    totals = [
        {case.name: task.instance(case).signature.inputs[0].numel for case in cases if case.role == "hidden"}
        for cases in drawn
    ]
    assert all(total["edge_one"] == 1 < total["edge_few"] <= 3 for total in totals)
    assert all(total["edge_over"] % 64 == 1 for total in totals)
    assert all(list(total) == [f"edge_{edge}" for edge in EDGES] for total in totals)
    assert all(total["edge_under"] % 64 == 63 for total in totals)
    assert all(3 < total["edge_some"] < 32 <= total["edge_most"] < 63 for total in totals)
    bounds = 2500, 4500, 8000, 12000
    for name, (low, high) in zip(("above", "between", "below"), pairwise(bounds), strict=True):
        assert all(low <= total[f"edge_{name}"] < high for total in totals)
    assert len({tuple(case.sizes for case in cases) for cases in drawn}) == len(drawn)


def pattern_kept(task, pattern, case):
    """Whether sizes of 1 and common divisors stay, odd sizes without one stay odd, and what never varies does not."""
    public = dict(task.public.sizes)
    divisors = {name: gcd(*(dict(case.sizes).get(name, 0) for case in task.cases)) for name in public}
    for (name, before), (_, now) in zip(pattern.sizes, case.sizes, strict=True):
        if before == 1 or all(dict(hidden.sizes)[name] == public.get(name) for hidden in task.hidden):
            if now != before:
                return False
        elif now % divisors[name] or (divisors[name] == 1 and before % 2 and now % 2 == 0):
            return False
    return True


#: Tasks whose public sizes have no smaller neighbours at which the reference works.
WITHOUT_ALIGNED = (
    "level1/conv_standard_2d_square_input_asymmetric_kernel_dilated_padded",
    "level2/conv3d_softmax_max_pool_max_pool",
)


@pytest.mark.timeout(0)
@pytest.mark.parametrize("suite", [pytest.param(name, marks=pytest.mark.slow) for name in suites.SUITES])
def test_hidden_sizes_of_every_task_are_drawn_and_work(suite):
    for task in suites.load_suite(suite):
        drawn = [hidden_cases(task, Seeds(b"s", task.digest, text)) for text in ("a", "b", "c", "d")]
        for position, pattern in enumerate(task.hidden):
            assert all(pattern_kept(task, pattern, cases[position]) for cases in drawn), task.id
            for cases in drawn:
                task.instance(cases[position]).run_example()
        assert len({tuple(case.sizes for case in cases) for cases in drawn}) > 1, task.id
        aligned = [aligned_case(task, Seeds(b"s", task.digest, text)) for text in ("a", "b", "c")]
        assert any(aligned) or task.id in WITHOUT_ALIGNED, task.id
        assert any(edge_cases(task, Seeds(b"s", task.digest, text)) for text in ("a", "b", "c")), task.id


LINEAR = """
import torch
from torch import nn

features = 64

class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.layer = nn.Linear(features, 32)

    def forward(self, x):
        return self.layer(x)

def get_inputs():
    return [torch.randn(128, features)]

def get_init_inputs():
    return [features]
"""


def test_sizes_of_a_file_from_outside_are_drawn_too_and_its_parameters_stay(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    file = tmp_path / "linear.py"
    file.write_text(LINEAR)
    task = load_file(file)
    drawn = [hidden_cases(task, Seeds.of(Kernel(text), task)) for text in "abcdef"]
    assert len({tuple(case.sizes for case in cases) for cases in drawn}) == len(drawn)
    state = [spec for spec in task.instance(task.public).signature.inputs if spec.origin == "state"]
    for case in (case for cases in drawn for case in cases):
        assert [spec for spec in task.instance(case).signature.inputs if spec.origin == "state"] == state
        assert dict(case.sizes)["features"] == 64


def test_beside_its_own_set_a_kernel_meets_sets_that_others_meet_too(relu):
    references = References()
    first, second = (references.shared(relu, relu.timing, "mixed", "timed", Kernel(text), 2) for text in "ab")
    assert {id(values) for values in first} & {id(values) for values in second}
    own = [KernelValues(references, relu, Kernel(text)).timing().values[0] for text in "ab"]
    assert not np.array_equal(*own)
