"""The wheel: what it holds, and that an installation of it works without the repository."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from repository import ROOT

from kernel_gym.checkout_imports import FOLDERS

PACKAGES = ("kernel_gym", *FOLDERS)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of a copy, so that the repository stays clean."""
    folder: Path = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    for name in PACKAGES:
        shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("setup.cfg", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-build-isolation", "--no-deps", "--no-index",
         "--disable-pip-version-check", "--wheel-dir", str(folder), str(source)],
        check=True, capture_output=True,
    )  # fmt: skip
    return next(folder.glob("*.whl"))


def installed_name(path: str) -> str:
    """Where a file of the repository lies when it is installed."""
    return path if path.startswith("kernel_gym/") else f"kernel_gym/{path}"


def test_every_file_of_the_package_is_in_the_wheel_and_no_other(wheel: Path) -> None:
    tracked = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "--", *PACKAGES],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    expected = {installed_name(path) for path in tracked.stdout.splitlines() if (ROOT / path).is_file()}
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    assert names == expected


@pytest.fixture(scope="module")
def environment(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A virtual environment with the wheel, and with the libraries of this one through a .pth file."""
    folder = tmp_path_factory.mktemp("environment")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    (site,) = folder.glob("lib/python*/site-packages")
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n")
    subprocess.run(
        [sys.executable, "-m", "pip", "--python", str(folder / "bin" / "python"), "install", "--quiet", "--no-deps",
         "--no-index", "--ignore-installed", "--disable-pip-version-check", str(wheel)],
        check=True, capture_output=True,
    )  # fmt: skip
    return folder


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_the_commands_work_from_another_folder(environment: Path, tmp_path: Path) -> None:
    """Run by `make test-wheel`."""
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}

    def call(program: str, *words: str) -> str:
        done = subprocess.run(
            [environment / "bin" / program, *words], cwd=tmp_path, env=variables, capture_output=True, text=True
        )
        assert done.returncode == 0, f"{words}: {done.stdout}{done.stderr}"
        return done.stdout

    modules = ("kernel_gym", *(f"kernel_gym.{name}" for name in FOLDERS))
    code = f"import importlib\nfor name in {modules}: print(importlib.import_module(name).__file__)"
    for file in call("python", "-c", code).split():
        assert Path(file).is_relative_to(environment)
    absent = "import importlib.util, kernel_gym; print(importlib.util.find_spec('kernel_gym.tests'))"
    assert call("python", "-c", absent) == "None\n"

    assert "self-test on ascend-sim, good kernel: feasible" in call("kernel-gym", "doctor")
    assert "\nlevel1/relu " in call("kernel-gym", "suite", "list")
    source = call("kernel-gym", "author", "--task", "level1/relu", "--profile", "oracle")
    (tmp_path / "relu.cpp").write_text(source)
    words = ("--task", "level1/relu", "--kernel", "relu.cpp", "--json", "--unsafe")
    assert json.loads(call("kernel-gym", "verify", *words))["feasible"]
    call("kernel-gym", "train", "--agent", "random", "--suite", "basics", "--budget", "2", "--out", "runs/x")
    journal = (tmp_path / "runs" / "x" / "results.jsonl").read_text().splitlines()
    assert {json.loads(line)["task"].partition("/")[0] for line in journal} == {"basics"}
    assert call("python", "-m", "kernel_gym", "--version") == call("kernel-gym", "--version")
