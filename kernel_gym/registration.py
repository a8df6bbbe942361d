"""The registered environments. Entry points are strings: nothing heavy is imported before one is made."""

from __future__ import annotations

from typing import Any

from gymnasium.envs.registration import register

_SYNTHESIS = "kernel_gym.envs.synthesis:KernelSynthesisEnv"
_VECTOR = "kernel_gym.envs.vector:KernelSynthesisVectorEnv"

#: Presets of the environment: options under an id of their own.
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
    known = "kernel_gym.envs.known_optimum"
    register(
        "kernel_gym/KnownOptimum-v0",
        entry_point=f"{known}:KnownOptimumEnv",
        vector_entry_point=f"{known}:KnownOptimumVectorEnv",
    )
