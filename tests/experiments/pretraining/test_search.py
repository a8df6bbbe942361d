"""The search for constants with Ray Tune."""

from pathlib import Path

import pytest

from kernel_gym.experiments.pretraining.pretraining import Settings

pytest.importorskip("ray", reason="needs Ray Tune: pip install 'kernel_gym[rllib]'")


@pytest.mark.slow
def test_a_search_tries_constants_and_goes_on(tmp_path: Path) -> None:
    from kernel_gym.experiments.pretraining.search import search

    settings = Settings(attempts=8, cloned=0, tasks=2, budgets=(1,), batches=1, hidden=8)
    rows = search(settings, tmp_path, trials=2, workers=1)
    assert len(rows) == 2
    assert rows[0]["reward"] >= rows[1]["reward"]
    assert {"learning_rate", "entropy", "epochs"} <= set(rows[0])
    assert rows[0]["learning_rate"] != rows[1]["learning_rate"]
    assert search(settings, tmp_path, trials=2, workers=1) == rows
