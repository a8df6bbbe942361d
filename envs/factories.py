"""Making the environment's parts from its options: tasks, author, bank, verifier.

Imports that cost time (torch, compilers) happen here, when a part is made, not when the environment is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym import plugins
from kernel_gym.errors import ConfigError, DeviceUnavailable
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.authors.contract import Author
    from kernel_gym.envs.options import Options
    from kernel_gym.hardware.device import Device
    from kernel_gym.memory.embedding import Embedder
    from kernel_gym.verifier.inspection import Inspect


def tasks(options: Options) -> list[Task]:
    """The tasks that `suite` and `tasks` name."""
    given = [options.tasks] if isinstance(options.tasks, str) else options.tasks
    if given is not None and all(isinstance(task, Task) for task in given):
        return [task for task in given if isinstance(task, Task)]
    from kernel_gym import suites

    if given is None:
        return list(suites.load_suite(options.suite))
    return [task if isinstance(task, Task) else suites.find_task(task, options.suite) for task in given]


def author(options: Options) -> Author:
    """The author, made if it was given by name, to write what the device runs if it has more than one language."""
    if not isinstance(options.author, str):
        return options.author
    given = dict(options.author_options)
    wanted = language(options)
    kind = plugins.load("kernel_gym.authors", options.author)
    if "language" in signature(kind).parameters and wanted:
        given.setdefault("language", wanted)
    made: Author = plugins.make("kernel_gym.authors", options.author, given)
    if wanted and made.language != wanted:
        raise ConfigError(f"the device {options.device} runs {wanted}, but {options.author} writes {made.language}")
    return made


def language(options: Options) -> str:
    """What the device runs; empty if somebody else judges, who does not say."""
    if options.verifier is not None:
        return ""
    return str(_device_kind(options).language)


def device_name(options: Options) -> str:
    """The device that verdicts come from; empty if somebody else judges, who does not say."""
    if (judge := options.verifier) is not None:
        return str(getattr(judge, "device_name", None) or getattr(getattr(judge, "device", None), "name", ""))
    return str(getattr(_device_kind(options), "name", ""))


def _device_kind(options: Options) -> Any:
    given = options.device
    return plugins.load("kernel_gym.devices", given) if isinstance(given, str) else given


def bank(options: Options, language: str) -> MemoryBank:
    """The bank; an empty one is given the seed knowledge of the author's language."""
    if isinstance(options.bank, MemoryBank):
        if options.bank.frozen or options.bank.read_only:
            raise ConfigError("a bank that takes in nothing has no start points: give a writable one, memory='frozen'")
        return options.bank
    made = MemoryBank(None if options.bank is None else Path(options.bank), embedder(options))
    if not len(made):
        from kernel_gym.memory.seed import seed_items

        made.add(seed_items(language), attempt=False)
    return made


def embedder(options: Options) -> Embedder:
    """The embedder, made if it was given by name."""
    if not isinstance(options.embedder, str):
        return options.embedder
    made: Embedder = plugins.make("kernel_gym.embedders", options.embedder, dict(options.embedder_options))
    return made


def device(options: Options) -> Device:
    """The device, made if it was given by name; a clear error if it can't be used here."""
    given = options.device
    made: Device = (
        plugins.make("kernel_gym.devices", given, dict(options.device_options)) if isinstance(given, str) else given
    )
    if reason := made.unavailable_reason():
        raise DeviceUnavailable(reason)
    return made


def verifier(options: Options) -> Any:
    """The verifier on the device, with a worker a core unless the options say otherwise."""
    from kernel_gym.verifier import Verifier

    inspect = inspector(options)
    return Verifier(
        device(options),
        workers=options.workers or len(os.sched_getaffinity(0)),
        inspect=inspect,
        inspection_decides=getattr(inspect, "decides", False),
    )


def inspector(options: Options) -> Inspect | None:
    """Who reads kernels that passed; None if nobody is asked to."""
    if not isinstance(options.inspection, Mapping):
        return options.inspection
    if not options.inspection:
        return None
    from kernel_gym.verifier.model_inspector import ModelInspector

    return ModelInspector(**options.inspection)


def exported_operators(task: Task) -> Sequence[str]:
    """The ATen operators of a task, from its exported graph."""
    from kernel_gym.tasks.operators import operators

    return operators(task)
