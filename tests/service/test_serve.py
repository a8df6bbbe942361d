"""The command `serve`, and the commands of its page."""

from __future__ import annotations

import os
import re
import shlex
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import requests
from code_blocks import blocks
from python_process import PythonProcess, run_python
from repository import ROOT
from script import run_script

from kernel_gym.suites.problem_files import TRUST

PAGE = ROOT / "docs" / "guides" / "service.md"


@contextmanager
def served(words: list[str], port: int) -> Iterator[PythonProcess]:
    process = PythonProcess("-m", "kernel_gym", *words, environment={TRUST: "0"})
    try:
        while True:
            assert process.returncode is None, process.communicate()
            try:
                requests.get(f"http://127.0.0.1:{port}/health", timeout=5).raise_for_status()
                break
            except requests.ConnectionError:
                time.sleep(0.1)
        yield process
    finally:
        process.kill()


@pytest.mark.slow
def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    serve, train = (
        shlex.split(block.code.replace("8100", str(port)).replace("\\\n", ""))[1:]
        for block in blocks(PAGE)
        if block.language == "bash"
    )
    with served(serve, port) as service:
        run = run_python("-m", "kernel_gym", *train, cwd=tmp_path)
        assert run.returncode == 0, run.stderr
        (code,) = (block.code for block in blocks(PAGE) if block.language == "python")
        (tmp_path / "relu.asc").write_text("not a kernel")
        asked = run_python("-c", code.replace("8100", str(port)), cwd=tmp_path)
        assert asked.stdout.startswith("line 1: "), asked.stderr
        figures = requests.get(f"http://127.0.0.1:{port}/metrics", timeout=5).text
        assert sum(float(value) for value in re.findall(r"verdicts_total{.*} (.*)", figures)) >= 1
        os.kill(service.pid, signal.SIGINT)
        output, errors = service.communicate()
    assert f"http://127.0.0.1:{port}" in output
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["--host", "0.0.0.0"], "--tokens FILE"),
        (["--tokens", "empty.txt"], "no token in it"),
        (["--tokens", "missing.txt"], "missing.txt"),
        (["--device", "ascend-sin"], "did you mean 'ascend-sim'"),
        (["--queue", "0"], "positive whole number"),
    ],
)
def test_bad_options_are_one_line(tmp_path: Path, words: list[str], line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(TRUST)
    (tmp_path / "empty.txt").write_text("# nobody\n\n")
    done = run_script("serve", *words, cwd=tmp_path)
    assert done.returncode == 2
    assert line in done.stderr.splitlines()[-1]


def test_a_service_does_not_start_where_problem_files_run_unconfined(tmp_path: Path) -> None:
    assert f"unset {TRUST}" in run_script("serve", cwd=tmp_path).stderr
