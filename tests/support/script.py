"""Runs a script of `scripts/` in the process of the tests: importing its libraries anew costs seconds each time."""

import subprocess
import sys
from contextlib import chdir, redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from unittest.mock import patch

from repository import ROOT

from kernel_gym.cli import main


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
