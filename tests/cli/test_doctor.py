"""The doctor finds what is there, and its four kernels meet their known fates."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from python_process import run_python
from repository import ROOT
from script import run_script

from kernel_gym.cli.commands.doctor import _show, _torch_line


@pytest.fixture(scope="module")
def report() -> dict[str, Any]:
    """What the doctor finds on this machine; it judges eight kernels, so once is enough."""
    run = run_script("doctor", "--json")
    assert run.returncode == 0, run.stdout + run.stderr
    return dict(json.loads(run.stdout.splitlines()[-1]))


@pytest.mark.slow
def test_a_healthy_machine_passes_every_check(report: dict[str, Any]) -> None:
    assert report["healthy"]
    assert report["sandbox_tier"] in "ABCD"
    assert report["devices"]["ascend-sim"] is None
    assert (report["torch"]["version"], report["torch"]["cuda"]) == (torch.__version__, torch.version.cuda)
    library = sum(file.stat().st_size for file in Path(torch.__file__).parent.rglob("*.so*")) / 1e9
    assert library <= report["torch"]["gigabytes"] < 9
    assert {check["name"]: check["outcome"] for check in report["selftest"]} == {
        "good": "feasible",
        "wrong": "incorrect, mismatch",
        "uncompilable": "uncompilable",
        "hanging": "incorrect, timeout",
    }


@pytest.mark.slow
def test_devices_that_were_never_run_on_hardware_have_a_note(
    report: dict[str, Any], capsys: pytest.CaptureFixture[str]
) -> None:
    _show(report)
    lines = capsys.readouterr().out.splitlines()
    (place,) = [number for number, line in enumerate(lines) if line.startswith("device ascend:")]
    assert "not run on hardware yet; make test-npu" in lines[place + 1]
    if "usable" not in lines[place]:
        assert "; " in lines[place]  # what is missing, and what mends it


@pytest.mark.parametrize(
    ("cuda", "says"),
    [
        (None, "torch 9.1: CPU build, 0.6 GB on disk"),
        ("13.0", "torch 9.1: build for CUDA 13.0, 0.6 GB on disk; a CPU build is enough and takes about 0.7 GB"),
    ],
)
def test_the_build_of_torch_is_described(cuda: str | None, says: str) -> None:
    assert _torch_line({"version": "9.1", "cuda": cuda, "gigabytes": 0.64}).startswith(says)


def test_a_missing_compiler_is_reported_with_what_to_install() -> None:
    run = run_python(ROOT / "scripts" / "doctor.py", CXX="no-such-compiler")
    assert run.returncode == 1
    assert "install g++" in run.stdout
