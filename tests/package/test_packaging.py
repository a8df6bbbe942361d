"""What an installed copy holds: every package and every data file of the repository."""

import configparser
from pathlib import Path, PurePosixPath

from python_process import run_python
from repository import ROOT

FOLDERS = {"kernel_gym": "kernel_gym"} | {f: f"kernel_gym.{f}" for f in ("envs", "agents", "memory", "hardware")}

config = configparser.ConfigParser()
config.read(ROOT / "setup.cfg")


def packages() -> dict[str, Path]:
    """Every package of the repository by import name."""
    files = {}
    for folder, name in FOLDERS.items():
        for init in (ROOT / folder).rglob("__init__.py"):
            inner = init.parent.relative_to(ROOT / folder).parts
            files[".".join([name, *inner])] = init.parent
    return files


def test_every_package_is_declared() -> None:
    assert set(config["options"]["packages"].split()) == set(packages())


def test_every_data_file_is_carried() -> None:
    names = packages()
    patterns = {name: text.split() for name, text in config["options.package_data"].items()}
    missing = []
    for folder in FOLDERS:
        for file in (ROOT / folder).rglob("*"):
            if not file.is_file() or file.suffix in (".py", ".pyc") or "__pycache__" in file.parts:
                continue
            owner = max((p for p in names.items() if file.is_relative_to(p[1])), key=lambda p: len(p[1].parts))
            inside = PurePosixPath(file.relative_to(owner[1]).as_posix())
            if not any(inside.match(pattern) and len(inside.parts) == len(PurePosixPath(pattern).parts)
                       for pattern in patterns.get(owner[0], [])):  # fmt: skip
                missing.append(str(file.relative_to(ROOT)))
    assert not missing


def test_the_tests_run_where_xdist_is_not_installed() -> None:
    """As in the environment that `make test-verifiers` makes."""
    done = run_python("-m", "pytest", "-p", "no:xdist", "--collect-only", Path(__file__))
    assert done.returncode == 0, done.stderr
