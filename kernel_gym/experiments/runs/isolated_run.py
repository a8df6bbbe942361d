"""A run in a process of its own: whatever becomes of it, there is somebody left to say so.

Ray ends the process that uses it, without a word of Python's, once one of its own is lost. And what a run leaves behind
(threads, Ray, memory) can't reach the next.
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
    from kernel_gym.experiments.runs.comparison import RunOutcome
    from kernel_gym.experiments.runs.training import Progress

#: Seconds that a run is given to end by itself.
PATIENCE = 20.0


def train(config: RunConfig, folder: RunFolder, progress: Progress) -> RunOutcome:
    """As `training.train`, but who owns the loop, and may bring Ray along, works in another process."""
    from kernel_gym.experiments.runs import training

    if folder.complete or not config.learning or not _owns_loop(config.agent):
        return training.train(config, folder, progress)
    answer, process = begin(config, folder.path, watched=True)
    try:
        reason = reason_of(answer, process, progress)
    finally:
        end([process])
    if reason:
        raise KernelGymError(reason)
    return training.train(config, folder)  # complete: it is only read


def _owns_loop(agent: str) -> bool:
    return bool(getattr(plugins.load("kernel_gym.agents", agent), "owns_loop", False))


def begin(config: RunConfig, path: Path, watched: bool = False) -> tuple[Connection, BaseProcess]:
    """Begin a run in a fresh process. The one of several is given one thread; the only one, `watched`, tells progress.

    What it answers ends with why it failed, or nothing.
    """
    context = multiprocessing.get_context("spawn")
    answer, ours = context.Pipe(duplex=False)
    process = context.Process(target=_train, args=(config.model_dump_json(), path, ours, watched))
    process.start()
    ours.close()
    return answer, process


def reason_of(answer: Connection, process: BaseProcess, progress: Progress = lambda *_: None) -> str:
    """Wait for a run to end; why it failed, or nothing. One that was killed has closed the pipe without a word."""
    try:
        while isinstance(said := answer.recv(), tuple):
            progress(*said)
    except EOFError:
        said = ""
    answer.close()
    process.join()
    return str(said) or (_end(process.exitcode) if process.exitcode else "")


def end(processes: Sequence[BaseProcess]) -> None:
    """End runs that are under way, as Ctrl-C does: Ray prints its stack at any other signal that it may hear."""
    for process in processes:
        if process.pid is not None and process.is_alive():
            os.kill(process.pid, signal.SIGINT)
    for process in processes:
        process.join(PATIENCE)
        process.kill()
        process.join()


def _end(status: int) -> str:
    how = f"was killed by signal {-status}"
    if status > 0:
        how = f"ended with status {status}, as happens when a process of Ray's is lost"
    return f"the run's process {how}; nothing on record is lost: run the same command again to go on"


def _train(config: str, path: Path, answer: Connection, watched: bool) -> None:
    """One run, in a process of its own."""
    signal.signal(signal.SIGINT, _interrupt)
    Thread(target=_end_with_parent, daemon=True).start()
    try:
        import torch

        from kernel_gym.experiments.runs.training import train

        if not watched:
            torch.set_num_threads(1)
        settings = RunConfig.model_validate_json(config)
        train(settings, RunFolder(path), lambda *made: answer.send(made) if watched else None)
    except KeyboardInterrupt:
        answer.send("it was interrupted; run the same command again to go on")
    except Exception as error:
        answer.send(in_words(error))
        if not isinstance(error, KernelGymError):
            raise
    else:
        answer.send("")


def _interrupt(number: int, frame: object) -> None:
    """Once: on a terminal, Ctrl-C is heard by the parent, too, which then says the same to everybody."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise KeyboardInterrupt


def in_words(error: BaseException) -> str:
    """A failure in one line; an unexpected one with what it came from: libraries wrap what they don't know."""
    if isinstance(error, KernelGymError):
        return str(error)
    root = error
    while (before := root.__cause__ or root.__context__) is not None:
        root = before
    told = f"{type(error).__name__}: {error}" + (f", from {type(root).__name__}: {root}" if root is not error else "")
    return " ".join(told.split())


def _end_with_parent() -> None:
    """End this process when its parent has ended: an orphan would go on writing what somebody takes up again."""
    if (parent := multiprocessing.parent_process()) is not None:
        wait([parent.sentinel])
        os._exit(1)
