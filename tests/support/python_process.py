"""Runs Python in a new process that is forked from one that has imported the libraries, which takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import resource
import runpy
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from types import ModuleType

from repository import ROOT

from kernel_gym.experiments.runs.isolated_run import LIBRARIES


class PythonProcess:
    """`python WORDS` in a session of its own; used like `subprocess.Popen`.

    Args:
        words: `-m MODULE`, `-c CODE` or a file, and the words after it.
        cwd: The folder that it runs in.
        environment: Variables beside those of this process; the folders of PYTHONPATH are searched first.
        file_bytes: The most that it may write to one file.
    """

    def __init__(
        self,
        *words: object,
        cwd: Path = ROOT,
        environment: Mapping[str, str] | None = None,
        file_bytes: int = resource.RLIM_INFINITY,
    ) -> None:
        self._folder = TemporaryDirectory()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload(list(LIBRARIES))
        variables = {**os.environ, **(environment or {})}
        arguments = ([str(word) for word in words], cwd, self._folder.name, variables, file_bytes)
        self._process = context.Process(target=_run, args=arguments)
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


def run_python(*words: object, cwd: Path = ROOT, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `python WORDS` to its end; return the exit status and what was printed."""
    process = PythonProcess(*words, cwd=cwd, environment=environment)
    output, errors = process.communicate()
    return subprocess.CompletedProcess(words, process.returncode or 0, output, errors)


def _run(words: list[str], cwd: Path, folder: str, environment: dict[str, str], file_bytes: int) -> None:
    os.setsid()
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(environment)
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(Path(folder, name), os.O_WRONLY | os.O_CREAT), number)
    resource.setrlimit(resource.RLIMIT_FSIZE, (file_bytes, resource.RLIM_INFINITY))
    sys.path[:0] = filter(None, environment.get("PYTHONPATH", "").split(os.pathsep))
    match words:
        case ["-m", module, *rest]:
            sys.argv, sys.path[:0] = [module, *rest], [str(cwd)]
            runpy.run_module(module, run_name="__main__", alter_sys=True)
        case ["-c", code, *rest]:
            sys.argv, sys.path[:0] = ["-c", *rest], [str(cwd)]
            _execute(code)
        case [file, *rest]:
            sys.argv, sys.path[:0] = [file, *rest], [str(Path(file).parent)]
            runpy.run_path(file, run_name="__main__")


def _execute(code: str) -> None:
    """Run a script for which kernel_gym is not yet imported, so that it must do so itself."""
    import gymnasium

    for name in [name for name in sys.modules if name.split(".")[0] == "kernel_gym"]:
        del sys.modules[name]
    for name in [name for name in gymnasium.registry if name.startswith("kernel_gym/")]:
        del gymnasium.registry[name]
    sys.modules["__main__"] = main = ModuleType("__main__")
    exec(code, vars(main))
