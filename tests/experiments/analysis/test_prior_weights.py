"""The weights that `context-value` begins with are computed, and the computation finds what was put in."""

import json
from pathlib import Path

import numpy as np
import pytest
from script import run_script

from kernel_gym.config import resolve
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.analysis import prior_weights
from kernel_gym.experiments.analysis.credit import CreditSettings
from kernel_gym.experiments.analysis.prior_weights import FITTED, TriedContexts, fit
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("weights") / "run"
    config = resolve(overrides={"agent": "random", "tasks": ["softmax", "l1_norm"], "budget": 3})
    train(config, RunFolder.open(path, config))
    return path


def test_known_weights_are_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    rng, true = np.random.default_rng(0), np.arange(len(FITTED)) - 2.0

    def tried(*_: object) -> list[TriedContexts]:
        rows = [rng.standard_normal((30, len(FITTED))) for _ in range(8)]
        return [
            TriedContexts(f"task {i}", one, one @ true + 0.1 * rng.standard_normal(30)) for i, one in enumerate(rows)
        ]

    monkeypatch.setattr(prior_weights, "_try_contexts", tried)
    fitted = fit([Path("one"), Path("other")], CreditSettings())
    assert list(fitted.weights.values()) == pytest.approx(true.tolist(), abs=0.05)
    assert fitted.explained > 0.99
    assert fitted.contexts == 2 * 8 * 30


@pytest.mark.slow
def test_the_command_fits_weights_to_a_run(run: Path) -> None:
    """Run by `make test-slow`."""
    done = run_script("credit", run, "--states", 6, "--fit", "--json", check=True)
    data = json.loads(done.stdout)
    assert list(data["weights"]) == list(FITTED)
    assert data["explained"] <= 1


@pytest.mark.slow
def test_one_task_is_not_enough(run: Path) -> None:
    with pytest.raises(KernelGymError, match="two tasks"):
        fit([run], CreditSettings(states=1))
