"""Folders stay small enough to be read."""

from collections import Counter
from pathlib import Path

import pytest
from repository import ROOT

FOLDERS = ("kernel_gym", "envs", "agents", "memory", "hardware", "scripts", "tests")


@pytest.mark.parametrize("top", FOLDERS)
def test_no_folder_has_more_than_25_modules(top: str) -> None:
    counts: Counter[Path] = Counter(path.parent for path in (ROOT / top).rglob("*.py"))
    assert {str(folder.relative_to(ROOT)): count for folder, count in counts.items() if count > 25} == {}
