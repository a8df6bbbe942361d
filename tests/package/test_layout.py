"""Folders stay small enough to be read."""

from collections import Counter
from pathlib import Path

import pytest
from repository import ROOT

from tests.conftest import LONGEST

FOLDERS = ("kernel_gym", "envs", "agents", "memory", "hardware", "scripts", "tests")
PROBLEMS = ROOT / "tests" / "tasks" / "problems"  # files that tests load, no modules


@pytest.mark.parametrize("top", FOLDERS)
def test_no_folder_has_more_than_25_modules(top: str) -> None:
    modules = (path for path in (ROOT / top).rglob("*.py") if not path.is_relative_to(PROBLEMS))
    counts: Counter[Path] = Counter(path.parent for path in modules)
    assert {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > 25} == {}


def test_the_files_that_run_first_exist() -> None:
    assert all((ROOT / "tests" / name).is_file() for name in LONGEST)
