"""Write a run to TensorBoard: curves, distributions, figures, settings with results, the fastest kernels.

The same scalars and images go to Weights & Biases if the configuration names a project there.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.config import RunConfig
from kernel_gym.experiments.runs.figures import RunOutcome
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.tracking import hparams
from kernel_gym.experiments.runs.tracking.images import figures
from kernel_gym.experiments.runs.tracking.wandb_run import WandbRun

#: The most points of a curve; a longer run leaves some out.
POINTS = 2_000
#: How often figures are drawn in a run, evenly spaced over its attempts; on forecasts once.
FIGURES = 10
#: The charts of a run in the tab "Custom Scalars", by category.
RUN_CHARTS: dict[str, dict[str, list[Any]]] = {
    "Every run": {
        "share of tasks solved": ["Multiline", ["solved/correct"]],
        "mean reward so far": ["Multiline", ["reward/mean"]],
        "speedup over the first feasible kernel": ["Multiline", ["speedup/first_draft"]],
    }
}
#: The charts of an agent's seeds, likewise; a category has one chart, because TensorBoard reverses their order.
SEED_CHARTS: dict[str, dict[str, list[Any]]] = {
    f"{title}: mean over seeds with its 95% interval": {
        title: ["Margin", [f"mean/{curve}", f"mean/{curve}/low", f"mean/{curve}/high"]]
    }
    for title, curve in (("Share of tasks solved", "solved"), ("Reward", "reward"), ("Speedup", "speedup"))
}

Values = Mapping[tuple[Any, ...], float]
"""An agent's values; the first part of a key is the stage."""


class Events:
    """The TensorBoard writer of a run of so many attempts.

    Args:
        folder: The run folder.
        config: The run's configuration.
        attempts: The number of attempts in the whole run.
        tracker: The run at Weights & Biases that gets scalars and images, too.
        batch: The number of tasks that are worked on in lock-step. On forecasts, whose attempts take no longer than
            writing them down, curves have at most one point for each of these iterations, and figures are drawn once.
    """

    def __init__(
        self, folder: Path, config: RunConfig, attempts: int, tracker: WandbRun | None = None, batch: int = 1
    ) -> None:
        from torch.utils.tensorboard import SummaryWriter

        self._writer = SummaryWriter(str(folder))
        self._writer.add_custom_scalars(RUN_CHARTS)
        self._config, self._attempts, self._tracker = config, attempts, tracker
        self._iterations = max(1, attempts // POINTS)
        self._every = max(self._iterations, batch if config.env.offline else 1)
        self._figures = 1 if config.env.offline else FIGURES
        self._last_agent_point = -1
        #: Curves that have changed since their last point.
        self._changed: dict[str, float] = {}

    def close(self) -> None:
        """Write what is buffered and close the file."""
        self._writer.close()

    def scalars(self, prefix: str, metrics: Mapping[str, float], step: int) -> None:
        """Write one point of each curve."""
        for name, value in metrics.items():
            self._writer.add_scalar(f"{prefix}{name}", value, step)
        if self._tracker is not None:
            self._tracker.log({f"{prefix}{name}": value for name, value in metrics.items()}, step)

    def attempt(self, metrics: Mapping[str, float], step: int) -> None:
        """Write all curves that have changed, if a point is due after this attempt."""
        self._changed |= metrics
        if step % self._every == 0:
            self.scalars("", self._changed, step)
            self._changed = {}

    def agent(self, metrics: Mapping[str, float], step: int) -> None:
        """Write what the agent reports about itself, at most once per point of a curve."""
        if step // self._every > self._last_agent_point:
            self._last_agent_point = step // self._every
            self.scalars("agent/", metrics, step)

    def values(self, values: Values, iteration: int, step: int) -> None:
        """Write the distribution of an agent's values for each stage, if a point is due."""
        if iteration % self._iterations:
            return
        by_stage: dict[str, list[float]] = defaultdict(list)
        for (stage, *_), value in values.items():
            by_stage[stage].append(value)
        for stage, stage_values in by_stage.items():
            self._writer.add_histogram(f"values/{stage}", np.asarray(stage_values), step)

    def draws(self, step: int) -> bool:
        """Return whether figures are drawn after this attempt."""
        return step * self._figures // self._attempts > (step - 1) * self._figures // self._attempts

    def draw(self, records: Sequence[Record], categories: Mapping[str, str], step: int) -> None:
        """Write the figures of a round so far; `categories` has task -> category."""
        images = figures(records, categories, self._config.budget)
        for name, image in images.items():
            self._writer.add_image(name, image, step, dataformats="HWC")
        if self._tracker is not None:
            self._tracker.log_images(images, step)

    def round(self, result: RunOutcome, number: int) -> None:
        """Write the figures of a finished round."""
        figures_of_round = {f"round/{name}": value for name, value in result.available.items()}
        for name, value in figures_of_round.items():
            self._writer.add_scalar(name, value, number)
        if self._tracker is not None:
            attempts = number * self._attempts // self._config.rounds
            self._tracker.log({"round": number, **figures_of_round}, attempts)

    def settings(self, result: RunOutcome) -> None:
        """Write the settings with the run's figures."""
        file: Any = self._writer.file_writer
        for summary in hparams.summaries(self._config):
            file.add_summary(summary)
        for name, value in result.available.items():
            self._writer.add_scalar(f"hparam/{name}", value, self._attempts)
        if self._tracker is not None:
            self._tracker.summarise(result.available)

    def kernel(self, name: str, source: str, step: int) -> None:
        """Write a kernel as text."""
        self._writer.add_text(f"kernel/{name}", "\n".join(f"    {line}" for line in source.splitlines()), step)
