"""A run at Weights & Biases, for runs whose configuration names a project there; it needs the extra `wandb`.

A resumed run is the same run there: its id is kept in the run folder, and attempts that are replayed are not logged
again. `WANDB_MODE=offline` keeps everything in the run folder for `wandb sync`.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from kernel_gym.config import RunConfig
from kernel_gym.errors import ConfigError, KernelGymError

#: The file in a run folder that holds the run's id.
ID_FILE = "wandb-id"


def check_installed() -> None:
    """Raise a ConfigError if the package is not installed."""
    if find_spec("wandb") is None:
        raise ConfigError("Weights & Biases is not installed: pip install 'kernel_gym[wandb]', or leave wandb out")


class WandbRun:
    """A run at Weights & Biases, in the project that the configuration names; runs of one agent are a group.

    Args:
        folder: The run folder.
        config: The run's configuration.
        recorded: The number of attempts that the journal holds. A resumed run has logged them already.

    Raises:
        ConfigError: The package is not installed.
        KernelGymError: The run cannot be begun, for instance because nobody is logged in.
    """

    def __init__(self, folder: Path, config: RunConfig, recorded: int) -> None:
        check_installed()
        import wandb

        self._logged = recorded if (folder / ID_FILE).exists() else 0
        try:
            self._run: Any = wandb.init(
                project=config.wandb,
                name=f"{config.agent}, seed {config.seed}",
                group=config.agent,
                config=config.model_dump(mode="json"),
                id=_run_id(folder),
                resume="allow",
                dir=folder,
                settings=wandb.Settings(console="off", quiet=True),
            )
        except wandb.Error as error:
            reason = " ".join(str(error).split()).rstrip(".")
            raise KernelGymError(f"Weights & Biases: {reason} (WANDB_MODE=offline keeps the run here)") from error
        self._image = wandb.Image
        self._run.define_metric("*", step_metric="attempts")
        self._run.define_metric("round/*", step_metric="round")

    def log(self, metrics: Mapping[str, Any], attempts: int) -> None:
        """Log scalars or images after so many attempts."""
        if metrics and attempts > self._logged:
            self._run.log({"attempts": attempts, **metrics})

    def log_images(self, images: Mapping[str, Any], attempts: int) -> None:
        """Log images, arrays of height x width x channel."""
        self.log({name: self._image(pixels) for name, pixels in images.items()}, attempts)

    def summarise(self, figures: Mapping[str, float]) -> None:
        """Write the figures of the complete run."""
        self._run.summary.update({f"final/{name}": value for name, value in figures.items()})

    def close(self, failed: bool) -> None:
        """End the run."""
        self._run.finish(exit_code=int(failed))


def _run_id(folder: Path) -> str:
    """Return the id of the run, a new one the first time."""
    file = folder / ID_FILE
    if not file.exists():
        file.write_text(secrets.token_hex(8))
    return file.read_text()
