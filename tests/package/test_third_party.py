"""A third-party package is installed with pip, and its parts are used by name in the commands."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from python_process import run_python
from repository import ROOT

PACKAGE = ROOT / "tests" / "support" / "third_party"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder that the package is installed into; built from a copy, so that the repository stays clean."""
    folder: Path = tmp_path_factory.mktemp("third_party")
    shutil.copytree(PACKAGE, folder / "source", ignore=shutil.ignore_patterns("__pycache__"))
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--target", str(folder / "site"), str(folder / "source")],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder / "site"


def run(site: Path, *command: str) -> subprocess.CompletedProcess[str]:
    path = os.pathsep.join(filter(None, [str(site), os.environ.get("PYTHONPATH", "")]))
    return run_python(*command, PYTHONPATH=path)


def test_every_kind_of_part_is_used_by_name(site: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    done = run(
        site, "scripts/train.py", "--agent", "newest", "--author", "fluent", "--suite", "level1", "--tasks", "relu",
        "--set", "env.author_options.sign=signed", "--set", "env.embedder=letters", "--set", "env.device=patient-sim",
        "--set", "env.device_options.timeout=45", "--budget", "2", "--out", str(out),
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    first, second = (json.loads(line) for line in (out / "results.jsonl").read_text().splitlines())
    assert first["verdict"]["feasible"]
    assert first["verdict"]["device"] == "patient-sim"
    assert second["stage"] == "refine"
    assert second["start"] == first["produced"][0]
    assert (out / "best" / "level1-relu.cpp").read_text().startswith("// signed\n")
    listed = run(
        site, "scripts/memory.py", "search", str(out / "bank.sqlite"), "relu", "--embedder", "letters", "--json"
    )
    assert json.loads(listed.stdout)


def test_an_author_of_the_former_group_is_used_by_name(site: Path) -> None:
    done = run(site, "scripts/author.py", "--task", "level1/relu", "--author", "fluent-before")
    assert done.stdout.startswith("// written without looking\n"), done.stderr
    done = run(site, "scripts/author.py", "--task", "level1/relu", "--author", "fluent-befor")
    assert (
        "unknown author 'fluent-befor'; did you mean 'fluent-before'? known: apprentice, batched, fluent,"
        in done.stderr
    )


@pytest.mark.slow
def test_its_own_tests_inherit_the_contracts(site: Path) -> None:
    tests = site.parent / "source" / "tests"
    done = run(site, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tests), str(tests))
    assert done.returncode == 0, done.stdout


def test_options_that_a_part_does_not_take_are_one_line(site: Path, tmp_path: Path) -> None:
    done = run(
        site, "scripts/train.py", "--author", "fluent", "--set", "env.author_options.colour=red", "--suite", "level1",
        "--tasks", "relu", "--budget", "1", "--out", str(tmp_path / "run"),
    )  # fmt: skip
    assert done.returncode == 2
    assert done.stderr.strip().count("\n") == 0
    assert "fluent does not take these options" in done.stderr


def test_without_the_package_its_names_are_unknown(tmp_path: Path) -> None:
    done = run(Path(), "scripts/train.py", "--agent", "newest", "--tasks", "relu", "--out", str(tmp_path / "run"))
    assert done.returncode == 2
    assert "unknown agent 'newest'" in done.stderr
