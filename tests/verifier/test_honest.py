"""False rejections first: honest kernels pass every gate, in whatever style they are written."""

import shutil

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import oracle
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.screening import dialect
from kernel_gym.verifier.screening.screen import findings
from kernel_gym.verifier.screening.source import read
from tests.verifier.variants import variants

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
TASKS = {"softmax_rows": "level1/softmax"}
VARIANTS = list(variants())
#: Five, spread over all kernels and all pairs of changes.
SAMPLE = VARIANTS[:: len(VARIANTS) // 5]


def refused(kernels) -> dict[str, str]:
    """Which of the kernels (name, task, text) are not feasible, and why."""
    reasons = {}
    with Verifier(AscendSim(), cache=False, unsafe=True, workers=2) as verifier:
        futures = {name: verifier.submit(Kernel(text), suites.find_task(task)) for name, task, text in kernels}
        for name, future in futures.items():
            if not future.result().feasible:
                reasons[name] = future.result().feedback
    return reasons


def judge(chosen, capsys) -> None:
    reasons = refused((name, TASKS.get(origin, "level1/relu"), text) for name, origin, text in chosen)
    with capsys.disabled():
        print(f"\n{len(chosen) - len(reasons)} of {len(chosen)} honest variants are feasible")
    assert reasons == {}


@needs_compiler
def test_a_sample_of_honest_variants_is_feasible(capsys):
    assert len(SAMPLE) >= 5
    judge(SAMPLE, capsys)


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(0)
def test_all_honest_variants_are_feasible(capsys):
    """Minutes: `python -m pytest -m slow tests/verifier/test_honest.py`."""
    assert len(VARIANTS) >= 300
    judge(VARIANTS, capsys)


@needs_compiler
@pytest.mark.slow
@pytest.mark.timeout(0)
@pytest.mark.parametrize("suite", ["basics", "level1", "level2"])
def test_every_oracle_is_feasible(suite, capsys):
    """Half an hour: `python -m pytest -m slow tests/verifier/test_honest.py -k oracle`."""
    tasks = suites.load_suite(suite)
    reasons = refused((task.id, task.id, oracle(task).source) for task in tasks)
    with capsys.disabled():
        print(f"\n{len(tasks) - len(reasons)} of {len(tasks)} oracles of {suite} are feasible")
    assert reasons == {}


@pytest.mark.parametrize("share", [16, pytest.param(1, marks=pytest.mark.slow)])
def test_honest_variants_are_not_refused(share, capsys):
    refused_by_text, chosen = {}, VARIANTS[::share]
    for name, _, text in chosen:
        source = read(text)
        reasons = [finding.describe() for finding in findings(source)] + [str(d) for d in dialect.lint(source)]
        if reasons or source.tree.has_error:
            refused_by_text[name] = reasons or "does not parse"
    with capsys.disabled():
        print(f"\n{len(chosen)} honest variants screened")
    assert refused_by_text == {}
    assert len(chosen) >= 300 // share
