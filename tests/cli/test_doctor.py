"""The doctor finds what is there, and its four kernels meet their known fates."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from repository import ROOT

DOCTOR = ROOT / "scripts" / "doctor.py"


def doctor(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, DOCTOR, *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **environment},
    )


def test_a_healthy_machine() -> None:
    run = doctor("--json")
    assert run.returncode == 0, run.stdout + run.stderr
    report = json.loads(run.stdout.splitlines()[-1])
    assert report["healthy"]
    assert report["sandbox_tier"] in "ABCD"
    assert report["devices"]["ascend-sim"] is None
    assert {check["name"]: check["outcome"] for check in report["selftest"]} == {
        "good": "feasible",
        "wrong": "incorrect, mismatch",
        "uncompilable": "uncompilable",
        "hanging": "incorrect, timeout",
    }


def test_what_was_never_run_on_hardware_says_so() -> None:
    run = doctor()
    lines = run.stdout.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("device ascend:")]
    assert "not run on hardware yet; make test-npu" in lines[place + 1]
    if "usable" not in lines[place]:
        assert "; " in lines[place]  # what is missing, and what mends it


def test_without_a_compiler_it_says_what_to_install() -> None:
    run = doctor(CXX="no-such-compiler")
    assert run.returncode == 1
    assert "install g++" in run.stdout
