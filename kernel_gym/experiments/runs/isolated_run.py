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
from collections.abc import Iterator, Sequence
from contextlib import nullcontext, suppress
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


def start_run(
    config: RunConfig, path: Path, watched: bool = False, keep_bank: bool = True
) -> tuple[Connection, BaseProcess]:
    """Start a run in a new process; return the connection to it and the process.

    The process sends what it is doing and, when the run ends, the reason of a failure or None. A `watched` run also
    sends its progress; a run that is not watched is one of several and uses one thread. A process whose run did not
    fail waits for another (`give_run`) until its connection is closed.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(list(LIBRARIES))
    messages, own = context.Pipe()
    process = context.Process(target=_serve, args=(own, watched, dict(os.environ)))
    process.start()
    own.close()
    give_run(messages, config, path, keep_bank)
    return messages, process


def give_run(messages: Connection, config: RunConfig, path: Path, keep_bank: bool = True) -> None:
    """Let a process whose run has ended make another, with what it has worked out about tasks and kernels."""
    messages.send((config.model_dump_json(), path, keep_bank))


def wait_for_run(messages: Connection, process: BaseProcess, progress: Progress = lambda *_: None) -> str:
    """Wait for a run to end; return the reason of its failure, or an empty text."""
    while not isinstance(message := receive(messages), str | None):
        if isinstance(message, logging.LogRecord):
            activity.LOGGER.handle(message)
        else:
            progress(*message)
    return exit_reason(messages, process, message or "")


def receive(messages: Connection) -> logging.LogRecord | tuple[int, int, int] | str | None:
    """Return what a run sent: its activity, its progress, or at its end None or why it failed (empty if killed)."""
    try:
        message: logging.LogRecord | tuple[int, int, int] | str | None = messages.recv()
        return message
    except (EOFError, ConnectionError):
        return ""


def exit_reason(messages: Connection, process: BaseProcess, last: str) -> str:
    """End a process; return why its run failed, given its last message; an empty text if it did not fail."""
    messages.close()
    process.join()
    return last or (_describe_exit(process.exitcode) if process.exitcode else "")


class RunProcesses:
    """Runs in processes, by name.

    Runs on forecasts are given to a process that has made one before: what it knows about the tasks' kernels costs
    more than most runs. Other runs have a process each.
    """

    def __init__(self) -> None:
        self._running: dict[Connection, tuple[str, RunConfig, BaseProcess]] = {}
        self._idle: list[tuple[Connection, BaseProcess]] = []

    def __enter__(self) -> RunProcesses:
        return self

    def __exit__(self, *failure: object) -> None:
        for messages, _ in self._idle:
            messages.close()
        end_runs([process for _, _, process in self._running.values()])
        for _, process in self._idle:
            process.join()

    @property
    def names(self) -> list[str]:
        """The names of the runs in progress."""
        return [name for name, _, _ in self._running.values()]

    def start(self, name: str, config: RunConfig, path: Path, keep_bank: bool = True) -> None:
        """Start a run; see `training.train`."""
        if shares_process(config) and self._idle:
            messages, process = self._idle.pop()
            give_run(messages, config, path, keep_bank)
        else:
            messages, process = start_run(config, path, keep_bank=keep_bank)
        self._running[messages] = name, config, process

    def ended(self, timeout: float) -> Iterator[tuple[str, str]]:
        """Wait for messages; yield the name of every run that has ended and why it failed, empty if it did not."""
        for messages in set(self._running) & set(wait(list(self._running), timeout) if self._running else ()):
            name, config, process = self._running[messages]
            message = receive(messages)
            if isinstance(message, logging.LogRecord):
                message.__dict__["run"] = name
                activity.LOGGER.handle(message)
            elif message is None and shares_process(config):
                del self._running[messages]
                self._idle.append((messages, process))
                yield name, ""
            elif isinstance(message, str | None):
                del self._running[messages]
                yield name, exit_reason(messages, process, message or "")


def shares_process(config: RunConfig) -> bool:
    """Return whether a run may share a process with others: without a device, and with an agent that uses no Ray."""
    return config.env.offline and not owns_loop(config.agent)


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


def _serve(connection: Connection, watched: bool, environment: dict[str, str]) -> None:
    """Make the runs that a connection names. The environment it is forked with may be older than that of its parent."""
    os.environ.clear()
    os.environ.update(environment)
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _interrupt)
    Thread(target=_end_with_parent, daemon=True).start()
    forward = _Forward(connection)
    try:
        import torch

        from kernel_gym.experiments.runs.training import train

        if not watched:
            torch.set_num_threads(1)
        for config, path, keep_bank in _runs(connection):
            with activity_handler(forward):
                train(config, RunFolder(path), lambda *counts: forward.send(counts) if watched else None, keep_bank)
            forward.send(None)
    except KeyboardInterrupt:
        with suppress(OSError):  # nobody listens to a process without a run
            forward.send("it was interrupted; run the same command again to go on")
    except Exception as error:
        forward.send(describe_error(error))
        if not isinstance(error, KernelGymError):
            raise


def _runs(connection: Connection) -> Iterator[tuple[RunConfig, Path, bool]]:
    """Yield the runs that a connection names, until it is closed."""
    with suppress(EOFError, ConnectionError):
        while True:
            config, path, keep_bank = connection.recv()
            yield RunConfig.model_validate_json(config), path, keep_bank


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
