"""Settings that all tests share."""

import gc
import os
import signal
from pathlib import Path

import pytest
from hypothesis import settings

# No wall-clock limits on examples: machines are noisy. The same examples every time: a red run can be repeated.
settings.register_profile("kernel_gym", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("kernel_gym")

# The problem files of the tests are ours. Those that test the confinement of others remove the variable.
os.environ["KERNEL_GYM_TRUST"] = "1"

# Collecting makes millions of objects that stay: `pytest_collection_finish` goes on from there.
gc.disable()

# The workers keep all cores busy: further threads of one worker would take time from the others.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

# Shells let what runs in the background ignore Ctrl-C, and what the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)

#: The files that take longest: with several workers, a long file that begins last would keep one of them alone.
LONGEST = (
    "authors/apprentice/test_oracles.py",
    "docs/test_code_blocks.py",
    "examples/test_examples.py",
    "verifier/test_honest.py",
    "verifier/test_simulator.py",
    "agents/test_ppo.py",
    "agents/test_dqn.py",
    "package/test_third_party.py",
    "tasks/test_confined_files.py",
    "experiments/runs/test_model_runs.py",
    "experiments/runs/test_training.py",
    "experiments/studies/test_study.py",
    "hardware/ascend_sim/executor/test_executor_fuzz.py",
    "authors/apprentice/test_idioms.py",
    "authors/apprentice/test_cuda.py",
    "authors/apprentice/test_plans.py",
    "envs/test_forecast.py",
    "experiments/analysis/test_credit.py",
    "experiments/pretraining/test_pretraining.py",
    "hardware/ascend_sim/test_rules.py",
    "tasks/test_suites.py",
    "verifier/test_attacks.py",
    "agents/test_value.py",
    "experiments/runs/test_forecast_runs.py",
    "verifier/test_feedback.py",
    "experiments/reports/test_report.py",
)


@pytest.hookimpl(optionalhook=True)  # xdist is not in every environment that tests run in
def pytest_xdist_auto_num_workers() -> int:
    """One worker more than cores: tests wait for processes and servers that they start."""
    return len(os.sched_getaffinity(0)) + 1


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the longest files; the others keep their order."""
    places = {Path(__file__).parent / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


def pytest_collection_finish() -> None:
    """Leave what was imported and collected out of garbage collection: walking it takes a second each time."""
    gc.freeze()
    gc.enable()
