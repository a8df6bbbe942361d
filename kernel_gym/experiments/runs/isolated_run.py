"""Run training in a child process, so that a crash of Ray is reported.

Ray ends the process that uses it, without a Python exception, when it loses a process of its own. And what a run leaves
behind (threads, Ray, memory) cannot affect the next run.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
from collections.abc import Sequence
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from kernel_gym import plugins
from kernel_gym.config import RunConfig
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from kernel_gym.experiments.runs.figures import RunOutcome
    from kernel_gym.experiments.runs.run_recorder import Progress

#: Seconds that an interrupted run has to end by itself.
PATIENCE = 20.0


def train(config: RunConfig, folder: RunFolder, progress: Progress) -> RunOutcome:
    """Train as `training.train` does; an agent that owns its loop, which may use Ray, trains in a child process.

    Args:
        config: The run's configuration.
        folder: The run folder, opened with the same configuration.
        progress: Called after every attempt with the attempts made, the attempts in all and the tasks solved.

    Returns:
        The run's figures.

    Raises:
        KernelGymError: The run failed; the message says why.
    """
    from kernel_gym.experiments.runs import training

    if folder.complete or not config.learning or not _owns_loop(config.agent):
        return training.train(config, folder, progress)
    messages, process = start_run(config, folder.path, watched=True)
    try:
        reason = wait_for_run(messages, process, progress)
    finally:
        end_runs([process])
    if reason:
        raise KernelGymError(reason)
    return training.train(config, folder)  # complete, so it is only read


def _owns_loop(agent: str) -> bool:
    return bool(getattr(plugins.load("kernel_gym.agents", agent), "owns_loop", False))


def start_run(config: RunConfig, path: Path, watched: bool = False) -> tuple[Connection, BaseProcess]:
    """Start a run in a new process; return the connection to it and the process.

    The process sends the reason of a failure, or an empty text, when it ends. A `watched` run sends its progress before
    that; a run that is not watched is one of several and uses one thread.
    """
    context = multiprocessing.get_context("spawn")
    messages, sender = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(config.model_dump_json(), path, sender, watched))
    process.start()
    sender.close()
    return messages, process


def wait_for_run(messages: Connection, process: BaseProcess, progress: Progress = lambda *_: None) -> str:
    """Wait for a run to end; return the reason of its failure, or an empty text."""
    try:
        while isinstance(message := messages.recv(), tuple):
            progress(*message)
    except EOFError:  # the process was killed
        message = ""
    messages.close()
    process.join()
    return str(message) or (_describe_exit(process.exitcode) if process.exitcode else "")


def end_runs(processes: Sequence[BaseProcess]) -> None:
    """Interrupt running processes as Ctrl-C does: Ray prints its stack at other signals."""
    for process in processes:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    for process in processes:
        process.join(PATIENCE)
        process.kill()
        process.join()


def _describe_exit(status: int) -> str:
    how = f"was killed by signal {-status}"
    if status > 0:
        how = f"ended with status {status}, as happens when a process of Ray's is lost"
    return f"the run's process {how}; nothing on record is lost: run the same command again to go on"


def _train(config: str, path: Path, sender: Connection, watched: bool) -> None:
    """Train in a child process."""
    signal.signal(signal.SIGINT, _interrupt)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        import torch

        from kernel_gym.experiments.runs.training import train

        if not watched:
            torch.set_num_threads(1)
        settings = RunConfig.model_validate_json(config)
        train(settings, RunFolder(path), lambda *counts: sender.send(counts) if watched else None)
    except KeyboardInterrupt:
        sender.send("it was interrupted; run the same command again to go on")
    except Exception as error:
        sender.send(describe_error(error))
        if not isinstance(error, KernelGymError):
            raise
    else:
        sender.send("")


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt once. On a terminal the parent gets Ctrl-C too and interrupts its children again."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def describe_error(error: BaseException) -> str:
    """Return an error in one line; an unexpected one with its root cause, because libraries wrap exceptions."""
    if isinstance(error, KernelGymError):
        return str(error)
    root = error
    while (before := root.__cause__ or root.__context__) is not None:
        root = before
    text = f"{type(error).__name__}: {error}" + (f", from {type(root).__name__}: {root}" if root is not error else "")
    return " ".join(text.split())


def _end_with_parent() -> None:
    """End this process when its parent ends: otherwise it would keep writing a run that is resumed elsewhere."""
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)
