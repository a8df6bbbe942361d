"""A trace of the pipes on request: from the device, and from the command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from repository import ROOT
from script import run_script

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Build, Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import InputSpec, Signature, TensorSpec

KERNEL = ROOT / "docs" / "walkthrough" / "09_two_buffers.cpp"
SIGNATURE = Signature((InputSpec((1 << 18,)),), (TensorSpec((1 << 18,)),))


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.fixture(scope="module")
def build(device: AscendSim) -> Build:
    return device.build(Kernel(KERNEL.read_text()))


def test_a_trace_has_every_pipe_of_every_core_and_the_author_s_lines(
    device: AscendSim, build: Build, tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    run = device.trace(build, Inputs(SIGNATURE), path)
    plain = device.run(build, Inputs(SIGNATURE))
    assert run.latency_us == plain.latency_us
    assert plain.profile is not None
    events = json.loads(path.read_text())["traceEvents"]
    spans = [event for event in events if event["ph"] == "X" and event.get("cat") != "launch"]
    assert {event["pid"] for event in spans} == set(range(plain.profile.counts["cores"]))
    names = {event["args"]["name"] for event in events if event["name"] == "thread_name"}
    assert {"V", "MTE2", "MTE3"} <= names
    assert sum(event["name"] == "relu" for event in spans) == plain.profile.counts["V"]
    relu = next(event for event in spans if event["name"] == "relu")
    assert "Relu" in KERNEL.read_text().splitlines()[relu["args"]["line"] - 1]
    assert max(event["ts"] + event["dur"] for event in spans) <= 1.01 * (plain.latency_us or 0)


def test_cores_and_launches_are_named(device: AscendSim, build: Build, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    run = device.trace(build, Inputs(SIGNATURE), path)
    assert run.profile is not None
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    cores = run.profile.counts["cores"]
    assert [names[core] for core in range(cores)] == [f"core {core}" for core in range(cores)]
    (launch,) = [event for event in events if event.get("cat") == "launch"]
    assert names[launch["pid"]] == "launches"
    assert launch["name"] == "launch 1"
    assert launch["args"] == {"blocks": run.profile.counts["blocks"], "cores": cores}
    assert launch["ts"] + launch["dur"] == pytest.approx(run.latency_us, abs=1e-3)
    first = min(event["ts"] for event in events if event["ph"] == "X")
    assert launch["ts"] == first


def test_a_path_that_cannot_be_written_is_a_one_line_error(device: AscendSim, build: Build, tmp_path: Path) -> None:
    with pytest.raises(KernelGymError, match="cannot write the trace"):
        device.trace(build, Inputs(SIGNATURE), tmp_path / "nowhere" / "trace.json")


def test_the_command_line_writes_a_trace(tmp_path: Path) -> None:
    path = tmp_path / "relu.json"
    task = ROOT / "docs" / "walkthrough" / "small_relu.py"
    done = run_script("verify", "--task", task, "--kernel", KERNEL, "--trace", path)
    assert done.returncode == 0, done.stderr
    assert json.loads(path.read_text())["traceEvents"]
    broken = tmp_path / "broken.cpp"
    broken.write_text("int a = ;")
    done = run_script("verify", "--task", task, "--kernel", broken, "--trace", path)
    assert "no trace: the kernel does not compile" in done.stderr
    assert "Traceback" not in done.stderr
