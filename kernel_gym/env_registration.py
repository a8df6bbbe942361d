"""Registration of the environments. Entry points are strings: an environment's module is imported by `make`."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register

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


def register_all() -> None:
    """Register every environment of the package."""
    for name, options in PRESETS.items():
        register(f"kernel_gym/{name}", entry_point=_SYNTHESIS, vector_entry_point=_VECTOR, kwargs=options)
    tabular = "kernel_gym.envs.tabular.environment"
    register(
        "kernel_gym/KernelSynthesisTabular-v0",
        entry_point=f"{tabular}:TabularEnv",
        vector_entry_point=f"{tabular}:TabularVectorEnv",
    )
    optimum = "kernel_gym.envs.known_optimum"
    register(
        "kernel_gym/KnownOptimum-v0",
        entry_point=f"{optimum}:KnownOptimumEnv",
        vector_entry_point=f"{optimum}:KnownOptimumVectorEnv",
    )
