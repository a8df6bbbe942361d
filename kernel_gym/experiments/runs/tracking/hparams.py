"""The rows of TensorBoard's tab "HParams": one for each agent and its settings, with means of the figures over seeds.

All runs have the same columns, because TensorBoard takes the columns of any one run for those of all. So options of
agents, of which each has its own, are one column, and so are the other settings that differ from the defaults.
"""

from __future__ import annotations

from typing import Any

from kernel_gym.config import RunConfig, resolve

#: The figures in the order of their columns; TensorBoard shows the first five.
_FIGURES = ("correct", "area", "speedup", "reward", "compiled", "middle")


def columns(config: RunConfig) -> dict[str, str]:
    """Return the columns of a run: few, so that the figures beside them are on the screen."""
    keys = [key for key in config.differing_keys(resolve()) if key not in ("agent", "seed")]
    options = [key for key in keys if key.startswith("agent_options.")]
    return {
        "agent": config.agent,
        "agent options": config.describe(options).replace("agent_options.", ""),
        "settings": config.describe(key for key in keys if key not in options),
    }


def group(config: RunConfig) -> str:
    """Return the name of a run's row, which it shares with the runs that differ from it in the seed alone."""
    return f"{config.agent} {config.model_copy(update={'seed': 0}).digest[:6]}"


def summaries(config: RunConfig) -> tuple[Any, ...]:
    """Return what a complete run writes: the columns, its row and its end."""
    from tensorboard.plugins.hparams.summary_v2 import hparams_pb
    from torch.utils.tensorboard.summary import hparams

    figures = {f"hparam/{name}": 0.0 for name in _FIGURES}
    definition, _, end = hparams(columns(config), figures)  # type: ignore[no-untyped-call]
    return definition, hparams_pb(columns(config), trial_id=group(config)), end
