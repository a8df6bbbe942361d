"""False rejections first: honest kernels pass, in whatever style they are written."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import pytest
from variants import variants

from kernel_gym.verifier import dialect
from kernel_gym.verifier.screen import findings
from kernel_gym.verifier.source import read

TASKS = {"softmax_rows": "level1/softmax"}


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_honest_variants_are_feasible(capsys):
    """Minutes: `python -m pytest -m slow tests/verifier/test_honest.py`."""
    from kernel_gym import suites
    from kernel_gym.hardware.ascend_sim.device import AscendSim
    from kernel_gym.kernel import Kernel
    from kernel_gym.verifier import Verifier

    refused, count = {}, 0
    with Verifier(AscendSim(), cache=False, unsafe=True) as verifier:
        for name, origin, text in variants():
            count += 1
            verdict = verifier.verify(Kernel(text), suites.find(TASKS.get(origin, "level1/relu")))
            if not verdict.feasible:
                refused[name] = verdict.feedback
    with capsys.disabled():
        print(f"\n{count} honest variants judged")
    assert refused == {}


def test_honest_variants_are_not_refused(capsys):
    refused, count = {}, 0
    for name, _, text in variants():
        count += 1
        source = read(text)
        found = [finding.describe() for finding in findings(source)] + [str(d) for d in dialect.lint(source)]
        if found or source.tree.has_error:
            refused[name] = found or "does not parse"
    with capsys.disabled():
        print(f"\n{count} honest variants screened")
    assert refused == {}
    assert count >= 300
