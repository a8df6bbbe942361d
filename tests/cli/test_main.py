"""The command `kernel-gym`: its sub-commands are the scripts, with the same options, output and exit status."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from repository import ROOT

from kernel_gym.authors.apprentice import profile_names
from kernel_gym.cli import command_line, main
from kernel_gym.cli.analysis import credit, forecast
from kernel_gym.cli.run_options import PROFILES
from kernel_gym.version import __version__

SCRIPTS = sorted(path.stem for path in (ROOT / "scripts").glob("*.py"))
#: Newer commands are sub-commands of `kernel-gym` alone: `scripts/` has as many files as a folder may have.
WITHOUT_SCRIPT = {"completion", "leaderboard", "pretrain", "serve"}


def call(*words: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *words], capture_output=True, text=True, cwd=cwd, timeout=120)


def test_every_script_is_a_command_and_every_older_command_a_script() -> None:
    assert {name.replace("_", "-") for name in SCRIPTS} | WITHOUT_SCRIPT == set(main.COMMANDS)
    folders = [ROOT / "kernel_gym" / "cli" / name for name in ("commands", "analysis")]
    modules = {path.stem for folder in folders for path in folder.glob("[!_]*.py")}
    assert modules == {name.replace("-", "_") for name in main.COMMANDS}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_calls_its_command(name: str) -> None:
    text = (ROOT / "scripts" / f"{name}.py").read_text()
    assert f'script("{name.replace("_", "-")}")' in text
    assert len(text.splitlines()) < 8


def test_help_lists_every_command_without_loading_one() -> None:
    code = "import sys; from kernel_gym.cli.main import main\ntry: main(['--help'])\nexcept SystemExit: pass\n"
    packages = "('kernel_gym.cli.commands', 'kernel_gym.cli.analysis')"
    done = call("-c", f"{code}print([name for name in sys.modules if name.startswith({packages})])")
    assert all(f"\n  {name} " in done.stdout for name in main.COMMANDS)
    assert done.stdout.endswith("[]\n")


@pytest.mark.parametrize("name", main.COMMANDS)
def test_the_help_of_a_command_has_examples(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([name, "--help"])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert text.startswith(f"usage: kernel-gym {name} ")
    assert f"\n  kernel-gym {name}" in text.partition("examples:")[2]


def test_the_parsers_are_made_without_torch() -> None:
    done = call("-c", "import sys; from kernel_gym.cli.main import parser; parser(); print('torch' in sys.modules)")
    assert done.stdout == "False\n"


def test_a_reader_of_the_help_may_end_first() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as closed:
        done = subprocess.run(
            [sys.executable, "-m", "kernel_gym", "--help"], stdout=closed, stderr=subprocess.PIPE, cwd=ROOT, timeout=120
        )
    assert (done.returncode, done.stderr) == (0, b"")


def test_the_version() -> None:
    assert call("-m", "kernel_gym", "--version").stdout == f"kernel-gym {__version__}\n"


@pytest.mark.parametrize(
    ("word", "says"),
    [
        ("trian", "kernel-gym: unknown command 'trian'; did you mean 'train'?"),
        (
            "tabular",
            "kernel-gym: the tabular environment was removed: `kernel-gym forecast renew` measures for its successor",
        ),
        ("frobnicate", "kernel-gym: unknown command 'frobnicate'; kernel-gym --help lists the commands"),
        ("--verbose", "kernel-gym: unknown option '--verbose'; kernel-gym --help lists the commands"),
    ],
)
def test_an_unknown_command_is_one_line(word: str, says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([word])
    assert ended.value.code == 2
    assert capsys.readouterr().err == says + "\n"


def test_no_command_is_the_help_and_an_error(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main([])
    assert ended.value.code == 2
    assert capsys.readouterr().err == main.overview() + "\n"


def test_errors_begin_with_the_name_of_the_program(tmp_path: Path) -> None:
    words = ("--kernel", "missing.asc", "--task", "level1/relu")
    script = call(str(ROOT / "scripts" / "verify.py"), *words, cwd=tmp_path)
    command = call("-m", "kernel_gym", "verify", *words, cwd=tmp_path)
    assert script.stderr == "verify.py: no kernel file 'missing.asc'\n"
    assert command.stderr == "kernel-gym verify: no kernel file 'missing.asc'\n"
    assert (script.returncode, command.returncode) == (2, 2)


def test_options_that_do_not_go_together_are_below_the_usage(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["compare", "--out", "x"])
    assert ended.value.code == 2
    usage, *_, last = capsys.readouterr().err.splitlines()
    assert usage.startswith("usage: kernel-gym compare ")
    assert last == "kernel-gym compare: error: name either --agents or a --study"


def test_an_author_without_an_answer_is_status_1(tmp_path: Path) -> None:
    (tmp_path / "silent.py").write_text(
        "from kernel_gym.kernel import Kernel\n"
        "class Silent:\n    def write(self, task, context, start, rng): return Kernel('')\n"
    )
    done = call("-m", "kernel_gym", "author", "--task", "level1/relu", "--author", "silent:Silent", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr == "kernel-gym author: no kernel: the author has no answer\n"


def test_suite_list_is_the_same_both_ways() -> None:
    script = call(str(ROOT / "scripts" / "suite.py"), "list", "basics")
    command = call("-m", "kernel_gym", "suite", "list", "basics")
    assert script.stdout == command.stdout
    assert script.stdout.startswith("basics/")


@pytest.mark.parametrize("shell", ["bash", "zsh", "tcsh"])
def test_completion_knows_commands_and_options(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main.main(["completion", shell])
    assert ended.value.code == 0
    text = capsys.readouterr().out
    assert all(name in text for name in main.COMMANDS)
    assert "ray-address" in text


def test_the_completion_of_bash_completes(tmp_path: Path) -> None:
    file = tmp_path / "completion.bash"
    file.write_text(call("-m", "kernel_gym", "completion", "bash").stdout)
    code = (
        f"source {file}; COMP_WORDS=(kernel-gym ver); COMP_CWORD=1; _shtab_kernel_gym kernel-gym ver kernel-gym; "
        'echo "${COMPREPLY[@]}"; COMP_WORDS=(kernel-gym train --ray); COMP_CWORD=2; '
        '_shtab_kernel_gym kernel-gym --ray train; echo "${COMPREPLY[@]}"'
    )
    done = subprocess.run(["bash", "-c", code], capture_output=True, text=True)
    assert done.stdout.split() == ["verify", "--ray-address"], done.stderr


def test_profiles_in_the_help_are_those_of_the_package() -> None:
    assert profile_names() == PROFILES


def test_options_have_help() -> None:
    def without(parser: argparse.ArgumentParser) -> list[str]:
        names = []
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                names += [name for inner in action.choices.values() for name in without(inner)]
            elif not action.help:
                names.append(f"{parser.prog}: {action.dest}")
        return names

    assert without(main.parser()) == []


@pytest.mark.parametrize("parse", [command_line.count, credit.numbers, forecast._shard])
@pytest.mark.parametrize(
    "text", ["", "0/0", "-1", "\N{SUPERSCRIPT TWO}", "9" * 5000, f"0/{'9' * 5000}", "\N{SUPERSCRIPT TWO}/4"]
)
def test_texts_that_are_no_numbers_are_refused_by_the_parser(parse: Callable[[str], object], text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="is not"):
        parse(text)
