"""Kernel synthesis as a Gymnasium environment.

`import kernel_gym` registers the environments. The names below are the public interface; each is imported when it is
first used, so that `import kernel_gym` stays quick.

Examples:
    >>> import gymnasium as gym
    >>> import kernel_gym
    >>> env = gym.make("kernel_gym/KernelSynthesis-v0", suite="level1", tasks=("relu",))
    >>> kernel_gym.find_task("level1/relu").category
    'activation'
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING

from kernel_gym.checkout_imports import install_finder as _install_finder
from kernel_gym.env_registration import register_all as _register_all
from kernel_gym.version import __version__

if TYPE_CHECKING:
    from kernel_gym.agents.contract import Agent
    from kernel_gym.authors.contract import Author, Context, Note, StartPoint
    from kernel_gym.envs.attempt import Attempt
    from kernel_gym.envs.options import Options
    from kernel_gym.envs.pool import Candidate
    from kernel_gym.envs.synthesis import KernelSynthesisEnv
    from kernel_gym.envs.vector import KernelSynthesisVectorEnv
    from kernel_gym.errors import ConfigError, KernelGymError
    from kernel_gym.hardware.device import Build, Device, Run
    from kernel_gym.kernel import Kernel
    from kernel_gym.memory.bank import MemoryBank
    from kernel_gym.memory.item import Kind, MemoryItem, Stage
    from kernel_gym.suites import find_task, load_suite
    from kernel_gym.tasks.task import Task
    from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Unjudged, Verdict
    from kernel_gym.verifier.verifier import Verifier

__all__ = [
    "Agent",
    "Attempt",
    "Author",
    "Build",
    "Candidate",
    "Cheated",
    "ConfigError",
    "Context",
    "Device",
    "Feasible",
    "Incorrect",
    "Kernel",
    "KernelGymError",
    "KernelSynthesisEnv",
    "KernelSynthesisVectorEnv",
    "Kind",
    "MemoryBank",
    "MemoryItem",
    "Note",
    "Options",
    "Run",
    "Stage",
    "StartPoint",
    "Task",
    "Uncompilable",
    "Unjudged",
    "Verdict",
    "Verifier",
    "__version__",
    "find_task",
    "load_suite",
]

#: The module that defines each public name.
_MODULES = {
    "agents.contract": ("Agent",),
    "authors.contract": ("Author", "Context", "Note", "StartPoint"),
    "envs.attempt": ("Attempt",),
    "envs.options": ("Options",),
    "envs.pool": ("Candidate",),
    "envs.synthesis": ("KernelSynthesisEnv",),
    "envs.vector": ("KernelSynthesisVectorEnv",),
    "errors": ("ConfigError", "KernelGymError"),
    "hardware.device": ("Build", "Device", "Run"),
    "kernel": ("Kernel",),
    "memory.bank": ("MemoryBank",),
    "memory.item": ("Kind", "MemoryItem", "Stage"),
    "suites": ("find_task", "load_suite"),
    "tasks.task": ("Task",),
    "verdict": ("Cheated", "Feasible", "Incorrect", "Uncompilable", "Unjudged", "Verdict"),
    "verifier.verifier": ("Verifier",),
}
_DEFINED_IN = {name: f"kernel_gym.{module}" for module, names in _MODULES.items() for name in names}

_install_finder()
_register_all()


if not TYPE_CHECKING:  # a type checker knows the names from the imports above, and reports any other

    def __getattr__(name: str) -> object:
        """Import a public name when it is first used."""
        if name not in _DEFINED_IN:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        value = getattr(_import_module(_DEFINED_IN[name]), name)
        globals()[name] = value
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
