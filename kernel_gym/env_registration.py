"""Registration of the environments. Entry points are strings: an environment's module is imported by `make`."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register

from kernel_gym.errors import ConfigError

_SYNTHESIS = "kernel_gym.envs.synthesis:KernelSynthesisEnv"
_VECTOR = "kernel_gym.envs.vector:KernelSynthesisVectorEnv"

#: Presets of the environment: an id of its own for some options.
PRESETS: dict[str, dict[str, Any]] = {
    "KernelSynthesis-v0": {},
    "KernelSynthesisDraft-v0": {"stages": "draft"},
    "KernelSynthesisStratified-v0": {"composition": "stratified"},
    "KernelSynthesisFresh-v0": {"memory": "fresh"},
    "KernelSynthesisLevel2-v0": {"suite": "level2"},
}

#: An id of earlier versions, which says what to use instead.
REMOVED = "kernel_gym/KernelSynthesisTabular-v0"


def removed(*arguments: Any, **options: Any) -> None:
    """Say that the tabular environment was removed."""
    raise ConfigError(f"{REMOVED} was removed: use kernel_gym/KernelSynthesisForecast-v0, which has all tasks")


def register_all() -> None:
    """Register every environment of the package."""
    for name, options in PRESETS.items():
        register(f"kernel_gym/{name}", entry_point=_SYNTHESIS, vector_entry_point=_VECTOR, kwargs=options)
    forecast = "kernel_gym.envs.forecast.environment"
    register(
        "kernel_gym/KernelSynthesisForecast-v0",
        entry_point=f"{forecast}:ForecastEnv",
        vector_entry_point=f"{forecast}:ForecastVectorEnv",
    )
    gone = f"{__name__}:removed"
    register(REMOVED, entry_point=gone, vector_entry_point=gone)
    register("kernel_gym/KernelWriting-v0", entry_point="kernel_gym.envs.writing:KernelWritingEnv")
    optimum = "kernel_gym.envs.known_optimum"
    register(
        "kernel_gym/KnownOptimum-v0",
        entry_point=f"{optimum}:KnownOptimumEnv",
        vector_entry_point=f"{optimum}:KnownOptimumVectorEnv",
    )
