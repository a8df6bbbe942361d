"""What tests of experiments share."""

import pytest

from kernel_gym.experiments.runs.tracking import events


@pytest.fixture(autouse=True)
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw figures twice in a run: drawing and packing ten takes longer than the attempts of a small run."""
    monkeypatch.setattr(events, "FIGURES", 2)
