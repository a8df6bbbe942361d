"""The code of the README, the quick starts and the guides with files runs as shown.

Python blocks with a title are saved under it, those without are run together as one script. Bash blocks are run with
small budgets against a local model server. `export` lines stand for settings that the test makes itself, `make`
targets must exist. A block after `<!-- not run: REASON -->` is only parsed; so are the commands of all other pages.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from code_blocks import Block, blocks, kernel_gym_commands
from model_server import saying, serving
from python_process import run_python
from repository import ROOT

from kernel_gym.cli import main

DOCS = ROOT / "docs"
RUN = [
    ROOT / "README.md",
    *sorted((DOCS / "quickstart").glob("*.md")),
    *(DOCS / "guides" / f"{name}.md" for name in ("agent", "author", "dataset", "task", "train-models")),
    DOCS / "concepts" / "author.md",
]
ALL = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
#: Pages whose blocks `make test-slow` runs: that of RLlib starts Ray four times, that on authors lowers every task,
#: that on agents repeats an example and the tests of agents, the others judge several kernels.
SLOW = (
    *("guides/agent", "guides/author", "guides/dataset", "guides/task", "guides/train-models", "concepts/author"),
    *("quickstart/kernels", "quickstart/language-models", "quickstart/rllib"),
)
NEEDS = {"rllib.md": "ray", "stable-baselines3.md": "sb3_contrib"}
#: The most that a test spends where a page has a larger number.
SMALL = {"--budget": 2, "--seeds": 1, "--rounds": 2}
#: Options of commands whose defaults take minutes.
SHORT = {("author", "fit"): ["--generations", "1", "--members", "4", "--persons", "1"]}


def name_of(page: Path) -> str:
    """Return the folder and the name of a page."""
    return f"{page.parent.name}/{page.stem}"


@pytest.fixture
def environment(tmp_path: Path) -> Iterator[dict[str, str]]:
    kernel = (DOCS / "walkthrough" / "04_vector.cpp").read_text()
    with serving(saying(f"```cpp\n{kernel}\n```")) as server:
        yield {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "none", "PYTHONPATH": os.pathsep.join(sys.path)}


@pytest.mark.timeout(1200)
@pytest.mark.parametrize(
    "page",
    [pytest.param(page, marks=[pytest.mark.slow] if name_of(page) in SLOW else [], id=page.stem) for page in RUN],
)
def test_every_block_runs(page: Path, tmp_path: Path, environment: dict[str, str]) -> None:
    if module := NEEDS.get(page.name):
        pytest.importorskip(module, reason=f"needs {module}")
    script = ""
    for block in blocks(page):
        if block.title:
            (tmp_path / block.title).write_text(block.code)
            if block.title.startswith("test_"):
                run(["-m", "pytest", "-q", "-p", "no:cacheprovider", block.title], tmp_path, environment)
        elif block.language == "python":
            script += block.code
        elif block.language == "bash" and not block.reason:
            run_all(block, tmp_path, environment)
    if script:
        run(["-c", script], tmp_path, environment)


def run_all(block: Block, folder: Path, environment: dict[str, str]) -> None:
    for line in block.commands:
        if line.startswith("make "):
            assert re.search(rf"^{line.split()[1]}:", (ROOT / "Makefile").read_text(), re.MULTILINE), line
        elif line.startswith("kernel-gym "):
            command, _, file = line.partition(" > ")
            words = small(shlex.split(command)[1:])
            output = run(["-m", "kernel_gym", *words], folder, environment)
            if file:
                (folder / file).write_text(output)
        else:
            assert line.startswith("export "), f"neither a command of ours nor a setting: {line}"


def small(words: list[str]) -> list[str]:
    """The command with at most the numbers of `SMALL`, and the options of `SHORT`."""
    for name, most in SMALL.items():
        if name in words:
            at = words.index(name) + 1
            words = [*words[:at], str(min(int(words[at]), most)), *words[at + 1 :]]
    return words + SHORT.get(tuple(words[:2]), [])


def run(words: list[str], folder: Path, environment: dict[str, str]) -> str:
    done = run_python(*words, cwd=folder, **environment)
    assert done.returncode == 0, f"{words}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.parametrize("page", [page for page in ALL if kernel_gym_commands(page)], ids=lambda page: page.stem)
def test_every_command_in_a_page_exists(page: Path) -> None:
    for words in kernel_gym_commands(page):
        main.parser().parse_args(words)


def test_blocks_that_are_not_run_say_why() -> None:
    reasons = {block.reason for page in ALL for block in blocks(page) if block.reason}
    assert reasons <= {"needs an NVIDIA GPU", "needs the public files", "takes half an hour"}


def test_the_agent_of_the_readme_is_short() -> None:
    (agent,) = [block for block in blocks(ROOT / "README.md") if block.title == "my_agent.py"]
    assert len(agent.code.splitlines()) < 30


@pytest.mark.parametrize("page", RUN, ids=lambda page: page.stem)
def test_files_that_a_page_has_saved_pass_the_linter_of_the_checkout(page: Path) -> None:
    for block in blocks(page):
        if block.title.endswith(".py"):
            for command in (["check"], ["format", "--check"]):
                words = [sys.executable, "-m", "ruff", *command, "--stdin-filename", str(ROOT / block.title), "-"]
                linted = subprocess.run(words, input=block.code, capture_output=True, text=True, cwd=ROOT, check=False)
                assert linted.returncode == 0, linted.stdout + linted.stderr
