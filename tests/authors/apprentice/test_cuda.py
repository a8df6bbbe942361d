"""Tests of the apprentice's CUDA: oracles compute what the reference computes, and every mistake has its effect.

Kernels run on the CPU here, with threads as fibers; on a GPU the same oracles pass the verifier (`tests/hardware` and
`make test-cuda`). Where there is an nvcc, it decides whether a text compiles.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
import pytest
from cuda_cpu import CudaOnCpu, has_nvcc, nvcc_errors
from cuda_exhibits import EXHIBITS, SCHEDULES, exhibits, with_mistake, without_mistake
from exhibits import task as make_task

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, Unsupported, lower, naive, oracle
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom, Spelling, idioms
from kernel_gym.authors.apprentice.behaviour.moves import moves
from kernel_gym.authors.apprentice.behaviour.reading import read_note
from kernel_gym.authors.apprentice.behaviour.spelling_choice import always_right
from kernel_gym.authors.apprentice.cuda.kernel_file import write_kernel
from kernel_gym.authors.apprentice.cuda.schedule import BEST, NAIVE, recognised, recorded
from kernel_gym.authors.conformance import AuthorContract
from kernel_gym.authors.contract import Author, Note, StartPoint
from kernel_gym.errors import ConfigError
from kernel_gym.hardware.device import Build
from kernel_gym.kernel import Kernel
from kernel_gym.memory.seed import seed_items
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect
from kernel_gym.verifier import correctness
from kernel_gym.verifier.correctness import Checked
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.value_sets import References

MISTAKES = [
    pytest.param(idiom, spelling, id=f"{idiom.id}:{spelling.name}")
    for idiom in idioms("cuda").values()
    for spelling in idiom.wrong
]
ALL = [pytest.param(idiom, id=idiom.id) for idiom in idioms("cuda").values()]
REFERENCES = References()


@pytest.fixture(scope="module")
def device() -> Iterator[CudaOnCpu]:
    device = CudaOnCpu()
    yield device
    device.close()


def outcome(device: CudaOnCpu, kernel: Kernel, task: Task) -> str:
    """Return the outcome of a kernel: `uncompilable`, `fault`, `mismatch`, `timeout`, or `right`."""
    if has_nvcc() and nvcc_errors(kernel.source):
        return "uncompilable"
    build = device.build(kernel, task)
    if not build.ok:
        return "uncompilable"
    verdict = checked(device, build, task)
    return verdict.cause if isinstance(verdict, Incorrect) else "right"


def checked(device: CudaOnCpu, build: Build, task: Task) -> Checked | Incorrect:
    with KernelValues(REFERENCES, task, build.kernel) as sets:
        return correctness.check(device, build, task, sets)


def computes(device: CudaOnCpu, kernel: Kernel, task: Task) -> None:
    build = device.build(kernel, task)
    assert build.ok, build.diagnostics
    verdict = checked(device, build, task)
    assert not isinstance(verdict, Incorrect), verdict.feedback


class TestCudaApprentice(AuthorContract):
    def make(self) -> Author:
        return Apprentice(language="cuda")


@pytest.mark.parametrize(
    "name",
    [
        "level1/gelu",
        *(
            pytest.param(name, marks=pytest.mark.slow)
            for name in ("level1/layer_norm", "level1/standard_matrix_multiplication")
        ),
    ],
)
def test_an_oracle_computes_what_the_reference_does(name: str, device: CudaOnCpu) -> None:
    task = suites.find_task(name)
    computes(device, oracle(task, "cuda"), task)


@pytest.mark.slow
@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: schedule.comment()[13:])
@pytest.mark.parametrize("task", [pytest.param(task, id=task.name) for task in EXHIBITS if "half" not in task.name])
def test_every_schedule_of_an_exhibit_computes_the_same(task: Task, schedule: object, device: CudaOnCpu) -> None:
    source = write_kernel(lower(task), schedule, always_right(idioms("cuda")))  # type: ignore[arg-type]
    computes(device, Kernel(source, "cuda", trusted=True), task)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("task", [pytest.param(t, id=t.id) for name in suites.SUITES for t in suites.load_suite(name)])
def test_every_oracle_computes_what_the_reference_does(task: Task, device: CudaOnCpu) -> None:
    """Run by `make test-suites`."""
    try:
        kernel = oracle(task, "cuda")
    except Unsupported as error:
        pytest.xfail(str(error))
    if any(f"#include <cuda_{kind}.h>" in kernel.source for kind in ("bf16", "fp16")):
        pytest.skip("half types need the headers of CUDA")
    computes(device, kernel, task)


@pytest.mark.slow
@pytest.mark.skipif(not has_nvcc(), reason="needs nvcc")
def test_every_oracle_and_every_beginners_kernel_compiles() -> None:
    """All are in one file, each in its own namespace, because nvcc takes as long for hundreds as for one."""
    texts = []
    for number, task in enumerate(suites.load_suite("level1")):
        for kernel in (oracle(task, "cuda"), naive(task, "cuda")):
            body = kernel.source.replace('#include "kernel_gym.h"', "").replace('extern "C" int', "int")
            texts.append(f"namespace n{number}_{len(texts) % 2} {{\n{body}\n}}\n")
    assert nvcc_errors('#include "kernel_gym.h"\n' + "".join(texts)) == ()


@pytest.mark.slow
@pytest.mark.parametrize(("idiom", "mistake"), MISTAKES)
def test_a_mistake_has_its_declared_effect(idiom: Idiom, mistake: Spelling, device: CudaOnCpu) -> None:
    declared = idiom.effect_of(mistake)
    effect = outcome(device, *with_mistake(idiom, mistake))
    assert effect == ("right" if declared == "slow" else declared)


@pytest.mark.slow
@pytest.mark.parametrize("idiom", ALL)
def test_without_the_mistake_the_same_kernel_is_right(idiom: Idiom, device: CudaOnCpu) -> None:
    kernel, task = without_mistake(idiom)
    if task.name.startswith("half"):
        pytest.skip("the CPU has no type of this name")
    assert outcome(device, kernel, task) == "right"


def test_every_idiom_is_shown_by_an_exhibit() -> None:
    assert set(exhibits()) == set(idioms("cuda"))


@pytest.mark.parametrize("idiom", ALL)
def test_the_right_spelling_is_recognised_in_a_kernel_that_uses_it(idiom: Idiom) -> None:
    kernel, _ = without_mistake(idiom)
    sight = read_note(Note("trace", kernel.source, kernel.source), "cuda").sights[idiom.id]
    assert sight.right
    assert not sight.wrong


@pytest.mark.parametrize(("idiom", "mistake"), MISTAKES)
def test_a_mistake_is_recognised_where_it_leaves_a_trace(idiom: Idiom, mistake: Spelling) -> None:
    if not mistake.seen and not mistake.when:
        pytest.skip("leaves no trace in the text")
    kernel, _ = with_mistake(idiom, mistake)
    assert read_note(Note("trace", kernel.source, kernel.source), "cuda").sights[idiom.id].wrong


@pytest.mark.parametrize("idiom", [param for param in ALL if param.values[0].teaches])  # type: ignore[union-attr]
def test_every_idiom_has_a_page(idiom: Idiom) -> None:
    pages = [item for item in seed_items("cuda") if item.kind == "api"]
    sights = [read_note(Note("api", page.text), "cuda").sights.get(idiom.id) for page in pages]
    assert any(sight and sight.taught for sight in sights)


def test_priors_are_marked_as_guesses() -> None:
    assert all(idiom.prior.guess is not None for idiom in idioms("cuda").values())


def test_risks_of_moves_are_idioms() -> None:
    assert {risk for move in moves("cuda") for risk in move.risks} <= set(idioms("cuda"))


@pytest.mark.parametrize("schedule", SCHEDULES)
def test_a_schedule_is_read_back_from_its_kernel(schedule: object) -> None:
    source = write_kernel(lower(EXHIBITS[0]), schedule, always_right(idioms("cuda")))  # type: ignore[arg-type]
    assert recorded(source) == schedule


def test_a_foreign_schedule_is_recognised() -> None:
    assert recognised(oracle(suites.find_task("level1/softmax"), "cuda").source.replace("schedule", "")).shuffle
    source = "const int threads = 128;\n const float4 v = ((const float4 *)x)[i];"
    assert recognised(source) == replace(NAIVE, block=128, vector=4)


def test_refining_goes_on_from_the_start_point() -> None:
    task = suites.find_task("level1/softmax")
    start = StartPoint(naive(task, "cuda"), Feasible("Correct.", latency=10.0))
    author = Apprentice(language="cuda")
    choices = [author.explain(task, (), start, np.random.default_rng(seed)).schedule_choice for seed in range(60)]
    assert all(choice and choice.moves for choice in choices)
    assert {move for choice in choices if choice for move in choice.moves} >= {"block", "shuffle", "resident"}


def test_the_oracle_profile_writes_the_oracle() -> None:
    task = suites.find_task("level1/softmax")
    kernel = Apprentice("oracle", "cuda").write(task, (), None, np.random.default_rng(0))
    assert kernel == oracle(task, "cuda")
    assert kernel.language == "cuda"
    assert recorded(kernel.source) == BEST


def test_spellings_shown_in_the_context_help() -> None:
    task = suites.find_task("level1/softmax")
    source = oracle(task, "cuda").source
    shown = (Note("trace", source, source, Feasible("Correct.", latency=1.0)),)

    def wrong(context: tuple[Note, ...]) -> int:
        author = Apprentice(language="cuda")
        attempts = [author.explain(task, context, None, np.random.default_rng(seed)).choices for seed in range(40)]
        return sum(not choice.right for choices in attempts for choice in choices)

    assert wrong(shown) < wrong(()) / 3


def test_an_unknown_language_is_one_clear_line() -> None:
    with pytest.raises(ConfigError, match="writes ascendc and cuda, not 'klingon'"):
        Apprentice(language="klingon")


def test_names_of_inputs_do_not_clash_with_the_kernels_own() -> None:
    """`a @ b`: the loop over the batch is called b, too."""
    source = oracle(suites.find_task("level1/square_matrix_multiplication"), "cuda").source
    assert "const float *bData" in source


def test_an_axis_of_one_is_no_reduction(device: CudaOnCpu) -> None:
    task = make_task("narrow", "torch.softmax(x, dim=1)", hidden=((5, 1), (1, 1)))
    computes(device, oracle(task, "cuda"), task)


@pytest.mark.slow
def test_a_row_that_does_not_fit_shared_memory_is_read_again(device: CudaOnCpu) -> None:
    """A row of products has more than 48 KB where no dimension of an input is long."""
    task = make_task(
        "pairs", "torch.softmax((x[:, :, None] * x[:, None, :]).flatten(1), dim=1)", hidden=((7, 61), (1, 57))
    )
    timing, long = (replace(task.timing, sizes=(("rows", 40), ("columns", columns))) for columns in (100, 130))
    kernel = oracle(replace(task, cases=(task.public, *task.hidden, timing)), "cuda")
    assert "extern __shared__ float row[]" in kernel.source
    computes(device, kernel, replace(task, cases=(task.public, replace(long, role="hidden"), timing)))


@pytest.mark.slow
def test_one_pass_finds_the_maximum_and_the_sum(device: CudaOnCpu) -> None:
    task = make_task("softmax", "torch.softmax(x, dim=1)")
    source = write_kernel(lower(task), replace(BEST, online=True), always_right(idioms("cuda")))
    assert source.count("column += blockDim.x") == 2  # one pass for both, one for the quotients
    computes(device, Kernel(source, "cuda", trusted=True), task)
    assert recognised(source).online


def test_nothing_is_copied_for_a_way_of_computing_a_product_that_is_not_taken() -> None:
    source = oracle(suites.find_task("level1/matmul_with_transposed_both"), "cuda").source
    assert source.count("__global__") == 2  # large tiles and small ones
    assert "workspace" not in source
