"""Run training in a child process, so that a crash of Ray is reported.

Ray ends the process that uses it, without a Python exception, when it loses a process of its own. And what a run leaves
behind (threads, Ray, memory) cannot affect the next run. The processes are forked from one that has only imported the
libraries: importing them takes seconds, and a study has many runs.
"""

from __future__ import annotations

import logging
import multiprocessing
import os
import signal
from collections.abc import Sequence
from contextlib import nullcontext
from logging.handlers import QueueHandler
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING

from kernel_gym import activity
from kernel_gym.config import RunConfig
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.extension import owns_loop
from kernel_gym.experiments.runs.progress import activity_handler
from kernel_gym.experiments.runs.run_folder import RunFolder

if TYPE_CHECKING:
    from kernel_gym.experiments.runs.figures import RunOutcome
    from kernel_gym.experiments.runs.run_recorder import Progress

#: Seconds that an interrupted run has to end by itself.
PATIENCE = 20.0
#: What every run imports.
LIBRARIES = (
    "torch.utils.tensorboard",
    "kernel_gym.authors.apprentice",
    "kernel_gym.experiments.runs.training",
)


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

    if folder.finished(config) or not config.learning or not owns_loop(config.agent):
        return training.train(config, folder, progress)
    messages, process = start_run(config, folder.path, watched=True)
    try:
        reason = wait_for_run(messages, process, progress)
    finally:
        end_runs([process])
    if reason:
        raise KernelGymError(reason)
    return training.train(config, folder)  # complete, so it is only read


def start_run(config: RunConfig, path: Path, watched: bool = False) -> tuple[Connection, BaseProcess]:
    """Start a run in a new process; return the connection to it and the process.

    The process sends what it is doing and, when it ends, the reason of a failure or an empty text. A `watched` run also
    sends its progress; a run that is not watched is one of several and uses one thread.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    messages, sender = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(config.model_dump_json(), path, sender, watched, dict(os.environ)))
    process.start()
    sender.close()
    return messages, process


def wait_for_run(messages: Connection, process: BaseProcess, progress: Progress = lambda *_: None) -> str:
    """Wait for a run to end; return the reason of its failure, or an empty text."""
    while not isinstance(message := receive(messages), str):
        if isinstance(message, logging.LogRecord):
            activity.LOGGER.handle(message)
        else:
            progress(*message)
    return exit_reason(messages, process, message)


def receive(messages: Connection) -> logging.LogRecord | tuple[int, int, int] | str:
    """Return what a run sent: its activity, its progress, or a text when it has ended (empty if it was killed)."""
    try:
        message: logging.LogRecord | tuple[int, int, int] | str = messages.recv()
        return message
    except EOFError:
        return ""


def exit_reason(messages: Connection, process: BaseProcess, last: str) -> str:
    """Return why a run that has ended failed, given its last message; an empty text if it did not fail."""
    messages.close()
    process.join()
    return last or (_describe_exit(process.exitcode) if process.exitcode else "")


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


def _train(config: str, path: Path, sender: Connection, watched: bool, environment: dict[str, str]) -> None:
    """Train in a child process. The environment it is forked with may be older than that of its parent."""
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    Thread(target=_end_with_parent, daemon=True).start()
    forward = _Forward(sender)
    try:
        import torch

        from kernel_gym.experiments.runs.training import train

        if not watched:
            torch.set_num_threads(1)
        settings = RunConfig.model_validate_json(config)
        with activity_handler(forward):
            train(settings, RunFolder(path), lambda *counts: forward.send(counts) if watched else None)
    except KeyboardInterrupt:
        forward.send("it was interrupted; run the same command again to go on")
    except Exception as error:
        forward.send(describe_error(error))
        if not isinstance(error, KernelGymError):
            raise
    else:
        forward.send("")


class _Forward(QueueHandler):
    """Sends log records, and other messages, to the parent process; threads may share it."""

    def __init__(self, sender: Connection) -> None:
        super().__init__(sender)  # type: ignore[arg-type]
        self._sender = sender

    def enqueue(self, record: logging.LogRecord) -> None:
        """Send a record that was prepared for pickling."""
        self.send(record)

    def send(self, message: object) -> None:
        """Send a message; its type tells the parent what it is."""
        with self.lock or nullcontext():
            self._sender.send(message)


def _interrupt(number: int, frame: object) -> None:
    """Raise KeyboardInterrupt once. On a terminal the parent gets Ctrl-C too and interrupts its children again."""
    for other in (signal.SIGINT, signal.SIGTERM):
        signal.signal(other, signal.SIG_IGN)
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
