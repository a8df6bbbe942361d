"""Runs a script of `scripts/` without importing its libraries anew, which costs seconds each time.

`run_script` runs it in the process of the tests. `ScriptProcess` is a process of its own, for tests that kill it, or
limit it; it is forked from a process that has imported the libraries.
"""

import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from repository import ROOT

from kernel_gym.cli import main
from kernel_gym.experiments.runs.isolated_run import LIBRARIES


def run_script(name: str, *words: object, cwd: Path = ROOT, check: bool = False) -> subprocess.CompletedProcess[str]:
    """Run `scripts/NAME.py` with some words.

    Args:
        name: The script's name without `.py`.
        words: The words of the command line.
        cwd: The folder that it runs in.
        check: Whether a status other than 0 is an error.

    Returns:
        The exit status and what was printed, as if it had been a process.
    """
    command = [str(ROOT / "scripts" / f"{name}.py"), *map(str, words)]
    output, errors = StringIO(), StringIO()
    with patch.object(sys, "argv", command), chdir(cwd), redirect_stdout(output), redirect_stderr(errors):
        try:
            main.script(name.replace("_", "-"))
        except SystemExit as ended:
            status = ended.code if isinstance(ended.code, int) else 1
    done = subprocess.CompletedProcess(command, status, output.getvalue(), errors.getvalue())
    if check:
        done.check_returncode()
    return done


class ScriptProcess:
    """`scripts/NAME.py` with some words, in a new process and a session of its own; used like `subprocess.Popen`.

    Args:
        name: The script's name without `.py`.
        words: The words of the command line.
        environment: Variables beside those of this process.
        file_bytes: The most that it may write to one file.
    """

    def __init__(
        self,
        name: str,
        *words: object,
        environment: Mapping[str, str] | None = None,
        file_bytes: int = resource.RLIM_INFINITY,
    ) -> None:
        self._folder = TemporaryDirectory()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        command = [str(ROOT / "scripts" / f"{name}.py"), *map(str, words)]
        variables = {**os.environ, **(environment or {})}
        self._process = context.Process(target=_run, args=(command, self._folder.name, variables, file_bytes))
        self._process.start()

    @property
    def pid(self) -> int:
        """The number of the process, and of its group."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """The exit status; minus the signal that ended it; None while it runs."""
        return self._process.exitcode

    def kill(self) -> None:
        """End the process and all of its group."""
        if self._process.is_alive():
            os.killpg(self.pid, signal.SIGKILL)
        self._process.join()

    def communicate(self) -> tuple[str, str]:
        """Return what it printed, to its output and as errors, when it has ended."""
        self._process.join()
        output, errors = (Path(self._folder.name, name).read_text() for name in ("output", "errors"))
        return output, errors


def _run(command: list[str], folder: str, environment: dict[str, str], file_bytes: int) -> None:
    os.setsid()
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT), number)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
    sys.argv = command
    main.script(Path(command[0]).stem.replace("_", "-"))
