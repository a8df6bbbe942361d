"""Make the environment's parts from its options: tasks, author, bank, verifier.

Imports that take long (torch, compilers) happen when a part is made, not when the environment is imported.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym import activity, plugins
from kernel_gym.errors import ConfigError, DeviceUnavailable
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.authors.contract import Author
    from kernel_gym.envs.options import Options, Sizes
    from kernel_gym.hardware.device import Device
    from kernel_gym.memory.embedding import Embedder
    from kernel_gym.verifier.inspection import Inspect

#: The environment variable that lets kernels of a model run although the sandbox of this machine is weak.
UNSAFE = "KERNEL_GYM_UNSAFE"


def tasks(options: Options) -> list[Task]:
    """Return the tasks that `suite` and `tasks` name, with held-out timing sizes if the options ask for them."""
    named = _named_tasks(options)
    if options.sizes == "timing":
        return named
    from kernel_gym.verifier.hidden_sizes import held_out

    return [held_out(task) for task in named]


def _named_tasks(options: Options) -> list[Task]:
    names = [options.tasks] if isinstance(options.tasks, str) else options.tasks
    if names is not None and all(isinstance(task, Task) for task in names):
        return [task for task in names if isinstance(task, Task)]
    from kernel_gym import suites

    if names is None:
        return list(suites.load_suite(options.suite))
    return [task if isinstance(task, Task) else suites.find_task(task, options.suite) for task in names]


def author(options: Options) -> Author:
    """Return the author, made if it is given by name. One with several languages writes what the device runs."""
    if not isinstance(options.author, str):
        return options.author
    arguments = dict(options.author_options)
    needed = language(options)
    kind = plugins.load("kernel_gym.authors", options.author)
    if "language" in signature(kind).parameters and needed:
        arguments.setdefault("language", needed)
    author: Author = plugins.make("kernel_gym.authors", options.author, arguments)
    if needed and author.language != needed:
        raise ConfigError(f"the device {options.device} runs {needed}, but {options.author} writes {author.language}")
    return author


def author_on_cluster(author: Author, options: Options) -> Author:
    """Return an author that writes on the cluster of the options; a model, or without a cluster, the author itself."""
    from kernel_gym.authors.contract import Batching, Recording

    if not options.cluster or isinstance(author, Recording | Batching):
        return author
    from kernel_gym.service.cluster_author import ClusterAuthor

    return ClusterAuthor(author, options.cluster, options.writers)


def language(options: Options) -> str:
    """Return the language that the device runs. Empty when a custom verifier is given."""
    if options.verifier is not None:
        return ""
    return str(_device_kind(options).language)


def device_name(options: Options) -> str:
    """Return the device that verdicts come from. Empty when a custom verifier does not name it."""
    if (verifier := options.verifier) is not None:
        return str(getattr(verifier, "device_name", None) or getattr(getattr(verifier, "device", None), "name", ""))
    return str(getattr(_device_kind(options), "name", ""))


def judge_name(options: Options) -> str:
    """Return the name of what decides latencies: the device, its options, the sizes and the policy.

    Those that are the default are left out.

    Latencies by different ones are not compared. Empty when a custom verifier does not name its device.
    """
    policy = getattr(options.verifier, "policy", options.policy)
    return judged_by(device_name(options), policy, options.device_options, options.sizes)


def judged_by(
    device: str, policy: str, device_options: Mapping[str, Any] | None = None, sizes: Sizes = "timing"
) -> str:
    """Return the name of a device with options, sizes and a policy, as traces keep it."""
    notes = [f"{name}={value}" for name, value in sorted((device_options or {}).items())]
    notes += [f"{sizes} sizes"] if sizes != "timing" else []
    notes += [policy] if policy not in ("", "strict") else []
    return f"{device} ({', '.join(notes)})" if device and notes else device


def _device_kind(options: Options) -> Any:
    device = options.device
    return plugins.load("kernel_gym.devices", device) if isinstance(device, str) else device


def bank(options: Options, language: str) -> MemoryBank:
    """Return the bank; a new one is given the seed knowledge of the author's language."""
    if options.memory == "fresh" and _is_shared(options.bank):
        raise ConfigError("memory='fresh' restores the bank, which other runs share: use memory='shared' or 'frozen'")
    if isinstance(options.bank, MemoryBank):
        if options.bank.frozen or options.bank.read_only:
            raise ConfigError(
                "a frozen or read-only bank takes no start points: give a writable one and memory='frozen'"
            )
        return options.bank
    bank = _open_bank(options)
    if not len(bank):
        from kernel_gym.memory.seed import seed_items

        activity.prepare("reading the seed knowledge")
        bank.add(seed_items(language), attempt=False)
    return bank


def _is_shared(bank: str | Path | MemoryBank | None) -> bool:
    return bank.shared if isinstance(bank, MemoryBank) else str(bank).startswith("ray://")


def _open_bank(options: Options) -> MemoryBank:
    """Open the bank in memory, in a file or on a cluster that the options name."""
    if not _is_shared(options.bank):
        return MemoryBank(None if options.bank is None else Path(str(options.bank)), embedder(options))
    from kernel_gym.authors.contract import Recording
    from kernel_gym.service.shared_bank import SharedBank

    kind = embedder(options)
    if isinstance(kind, Recording):
        raise ConfigError("a shared bank embeds on the cluster, where exchanges are not recorded: use embedder static")
    return SharedBank(str(options.bank), kind)


def embedder(options: Options) -> Embedder:
    """Return the embedder, made if it is given by name."""
    if not isinstance(options.embedder, str):
        return options.embedder
    embedder: Embedder = plugins.make("kernel_gym.embedders", options.embedder, dict(options.embedder_options))
    return embedder


def device(options: Options) -> Device:
    """Return the device, made if it is given by name; raise DeviceUnavailable if it cannot be used here."""
    device: Device = options.device
    if isinstance(options.device, str):
        device = plugins.make("kernel_gym.devices", options.device, dict(options.device_options))
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(reason)
    return device


def verifier(options: Options) -> Any:
    """Return a verifier on the device, with one worker for each core unless the options say otherwise.

    With the option `service` or `cluster`, a service or the nodes of a cluster judge instead. Kernels of a model run in
    a weak sandbox only if the environment variable `KERNEL_GYM_UNSAFE` is 1.
    """
    if options.cluster:
        from kernel_gym.service.cluster import ClusterVerifier

        return ClusterVerifier(
            options.cluster, device_name(options), options.device_options, options.policy, options.workers
        )
    if options.service:
        from kernel_gym.service.client import RemoteVerifier

        return RemoteVerifier(options.service, device_name(options), options.policy, parallel=options.workers)
    from kernel_gym.verifier import Verifier

    inspect = inspector(options)
    return Verifier(
        device(options),
        workers=options.workers or len(os.sched_getaffinity(0)),
        unsafe=os.environ.get(UNSAFE) == "1",
        inspect=inspect,
        inspection_decides=getattr(inspect, "decides", False),
        policy=options.policy,
    )


def inspector(options: Options) -> Inspect | None:
    """Return the second reader of kernels that passed every gate; None if there is none."""
    if not isinstance(options.inspection, Mapping):
        return options.inspection
    if not options.inspection:
        return None
    from kernel_gym.verifier.model_inspector import ModelInspector

    return ModelInspector(**options.inspection)


def exported_operators(task: Task) -> Sequence[str]:
    """Return the ATen operators of a task, from its exported graph."""
    from kernel_gym.tasks.operators import operators

    return operators(task)
