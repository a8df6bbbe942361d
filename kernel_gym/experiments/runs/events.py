"""Write a run to TensorBoard: curves, distributions, figures, settings with results, the fastest kernels."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.config import RunConfig
from kernel_gym.experiments.runs.figures import RunOutcome
from kernel_gym.experiments.runs.images import figures
from kernel_gym.experiments.runs.journal import Record

#: The most points of a curve; a longer run leaves some out.
POINTS = 2_000
#: How often figures are drawn in a run, evenly spaced over its attempts.
FIGURES = 10

Values = Mapping[tuple[Any, ...], float]
"""An agent's values; the first part of a key is the stage."""


class Events:
    """The TensorBoard writer of a run of so many attempts."""

    def __init__(self, folder: Path, config: RunConfig, attempts: int) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))
        self._config, self._attempts = config, attempts
        self._every = max(1, attempts // POINTS)
        self._last_agent_point = -1

    def close(self) -> None:
        """Write what is buffered and close the file."""
        self._writer.close()

    def scalars(self, prefix: str, metrics: Mapping[str, float], step: int) -> None:
        """Write one point of each curve."""
        for name, value in metrics.items():
            self._writer.add_scalar(f"{prefix}{name}", value, step)

    def attempt(self, metrics: Mapping[str, float], step: int) -> None:
        """Write the curves after an attempt, if a point is due."""
        if self._due(step):
            self.scalars("", metrics, step)

    def agent(self, metrics: Mapping[str, float], step: int) -> None:
        """Write what the agent reports about itself, at most once per point of a curve."""
        if step // self._every > self._last_agent_point:
            self._last_agent_point = step // self._every
            self.scalars("agent/", metrics, step)

    def _due(self, step: int) -> bool:
        return step % self._every == 0

    def values(self, values: Values, iteration: int, step: int) -> None:
        """Write the distribution of an agent's values for each stage, if a point is due."""
        if not self._due(iteration):
            return
        by_stage: dict[str, list[float]] = defaultdict(list)
        for (stage, *_), value in values.items():
            by_stage[stage].append(value)
        for stage, stage_values in by_stage.items():
            self._writer.add_histogram(f"values/{stage}", np.asarray(stage_values), step)

    def draws(self, step: int) -> bool:
        """Return whether figures are drawn after this attempt."""
        return step * FIGURES // self._attempts > (step - 1) * FIGURES // self._attempts

    def draw(self, records: Sequence[Record], categories: Mapping[str, str], step: int) -> None:
        """Write the figures of a round so far; `categories` has task -> category."""
        for name, image in figures(records, categories, self._config.budget).items():
            self._writer.add_image(name, image, step, dataformats="HWC")

    def round(self, result: RunOutcome, number: int) -> None:
        """Write the figures of a finished round."""
        self.scalars("round/", _available(result), number)

    def settings(self, result: RunOutcome) -> None:
        """Write the settings with the run's figures."""
        config = self._config
        settings: dict[str, int | str] = {"agent": config.agent, "budget": config.budget, "seed": config.seed}
        for key, value in config.env.model_dump().items():
            if isinstance(value, int | str):
                settings[key] = value
            elif key.endswith("_options"):
                settings |= {f"{key}.{name}": str(option) for name, option in value.items()}
        settings |= {f"agent.{key}": str(value) for key, value in config.agent_options.items()}
        results = {f"hparam/{name}": value for name, value in _available(result).items()}
        self._writer.add_hparams(settings, results, run_name=".")

    def kernel(self, name: str, source: str, step: int) -> None:
        """Write a kernel as text."""
        self._writer.add_text(f"kernel/{name}", "\n".join(f"    {line}" for line in source.splitlines()), step)


def _available(result: RunOutcome) -> dict[str, float]:
    """Return the figures that the run has."""
    return {name: value for name, value in result.figures.items() if value is not None}
