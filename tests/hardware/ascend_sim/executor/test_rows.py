"""Rows of bytes that two copies touch are compared exactly and at once."""

from __future__ import annotations

import subprocess
from pathlib import Path

import kept_programs
from repository import ROOT


def _program() -> Path:
    return kept_programs.build("rows", [ROOT / "tests" / "support" / "rows_main.cpp"], ["-std=c++17", "-O1"])


def _run(*arguments: str) -> str:
    return subprocess.run([_program(), *arguments], capture_output=True, text=True, check=False, timeout=60).stdout


def test_rows_meet_where_a_loop_over_all_pairs_finds_one() -> None:
    assert _run() == "equal\n"


def test_rows_are_compared_in_a_time_that_does_not_grow_with_their_number() -> None:
    """A loop over a thousand million rows does not end within the limit."""
    assert int(_run("many")) > 0
