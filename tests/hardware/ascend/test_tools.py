"""What leads up to CANN's command lines and what comes behind its output; no NPU and no CANN is needed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from kernel_gym.errors import DeviceUnavailable, InfrastructureError
from kernel_gym.hardware.ascend import compiler, msprof
from kernel_gym.hardware.ascend.device import Ascend
from kernel_gym.hardware.ascend.faults import explain
from kernel_gym.hardware.ascend.health import Quarantine, health, parse
from kernel_gym.hardware.ascend.toolkit import Cann, cann_version, find_cann, missing

RECORDED = Path(__file__).with_name("recorded")


def recorded(name: str) -> str:
    return (RECORDED / name).read_text()


def installed(folder: Path, version: str) -> dict[str, str]:
    """A folder that looks like CANN's, and the environment that its script sets."""
    (folder / "bin").mkdir(parents=True)
    (folder / "bin" / "bisheng").write_text("#!/bin/sh\n")
    (folder / "bin" / "bisheng").chmod(0o755)
    (folder / "aarch64-linux").mkdir()
    note = f"package_name=Ascend-cann-toolkit\nversion={version}\narch=aarch64\n"
    (folder / "aarch64-linux" / "ascend_toolkit_install.info").write_text(note)
    return {"ASCEND_HOME_PATH": str(folder)}


# ---- finding --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("text", "version", "asc"), [("8.0.RC3", (8, 0), False), ("9.0.0", (9, 0), True)])
def test_cann_is_found_by_its_environment(tmp_path: Path, text: str, version: tuple[int, int], asc: bool) -> None:
    cann = find_cann(installed(tmp_path, text))
    assert (cann.home, cann.version, cann.has_asc) == (tmp_path, version, asc)


def test_a_runtime_without_a_compiler_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DeviceUnavailable, match="has no bisheng; install the CANN toolkit"):
        find_cann({"ASCEND_HOME_PATH": str(tmp_path)})


def test_an_installation_without_a_version_is_reported(tmp_path: Path) -> None:
    with pytest.raises(DeviceUnavailable, match="which version"):
        cann_version(tmp_path)


def test_everything_that_is_missing_is_named_with_a_remedy(tmp_path: Path) -> None:
    lacking = missing({"ASCEND_HOME_PATH": str(tmp_path)}, lambda _: None, lambda _: False)
    assert [one.mend.split()[0] for one in lacking] == ["install", "install", "pip"]
    assert missing(installed(tmp_path / "cann", "8.0.0"), lambda name: name, lambda _: True) == ()


def test_an_unusable_device_lists_all_reasons() -> None:
    reason = Ascend().unavailable_reason()
    if reason is None:
        pytest.skip("there is an NPU here")
    assert "npu-smi" in reason or "CANN" in reason or "torch_npu" in reason
    assert "\n" not in reason


# ---- building -------------------------------------------------------------------------------------------------------


def test_cann_8_compiles_and_links_one_file(tmp_path: Path) -> None:
    cann = Cann(Path("/opt/cann"), (8, 0), Path("/opt/cann/bin/bisheng"))
    compiled, linked = compiler.prepare(cann, "text", (Path("/ours"),), tmp_path)
    assert compiled[:6] == ("/opt/cann/bin/bisheng", "--npu-arch=dav-2201", "-xasc", "-std=c++17", "-O2", "-fPIC")
    assert compiled[-4:] == ("-c", "device.cpp", "-o", "device.o")
    assert {"-I/opt/cann/include", "-I/opt/cann/compiler/tikcpp/include", "-I/ours"} <= set(compiled)
    assert linked[:5] == ("/opt/cann/bin/bisheng", "-shared", "device.o", "-o", "libkernel.so")
    assert "-lascendc_runtime" in linked
    assert (tmp_path / "device.cpp").read_text() == "text"


def test_cann_9_builds_a_single_asc_file_by_cmake(tmp_path: Path) -> None:
    cann = Cann(Path("/opt/cann"), (9, 0), Path("/opt/cann/bin/bisheng"))
    configured, built = compiler.prepare(cann, "text", (Path("/ours"),), tmp_path)
    assert configured[:5] == ("cmake", "-S", ".", "-B", "build")
    assert "-DCMAKE_ASC_ARCHITECTURES=dav-2201" in configured
    assert built == ("cmake", "--build", "build")
    project = (tmp_path / "CMakeLists.txt").read_text()
    assert "find_package(ASC REQUIRED)" in project
    assert "project(kernel LANGUAGES ASC CXX)" in project
    assert "device.asc" in project
    assert (tmp_path / "device.asc").read_text() == "text"


def test_errors_of_bisheng_come_with_the_authors_line() -> None:
    errors = compiler.diagnostics(recorded("bisheng.txt"), lines=40)
    assert [(one.line, one.message.split("'")[0].strip()) for one in errors] == [
        (14, "no matching function for call to"),
        (22, "use of undeclared identifier"),
        (31, "no member named"),
        (None, "cast between floating and unsigned integer variable is not allowed in aicore function"),
    ]


def test_errors_through_cmake_are_found_too() -> None:
    assert [(one.line, one.message) for one in compiler.diagnostics(recorded("cmake.txt"), lines=20)] == [
        (7, "expected ';' after expression")
    ]


def test_errors_of_the_linker_have_no_line() -> None:
    errors = compiler.diagnostics("ld.lld: error: undefined symbol: expf\n", lines=20)
    assert [(one.line, one.message) for one in errors] == [(None, "undefined symbol: expf")]


# ---- faults and health ----------------------------------------------------------------------------------------------


def test_the_drivers_message_is_preferred_to_the_error_code() -> None:
    explained = explain(recorded("fault_ub.txt"))
    assert explained.fault.rule == "UB_OVERFLOW"
    assert explained.lost


@pytest.mark.parametrize(
    ("words", "rule", "timeout"),
    [
        ("error code is 507034", "KERNEL_TIMEOUT", True),
        ("error code is 507015", "CORE_EXCEPTION", False),
        ("error code is 507036 trap", "CORE_TRAP", False),
        ("507035: The MPU address access is invalid", "GM_OUT_OF_BOUNDS", False),
        ("something new", "NPU_ERROR", False),
        ("", "NPU_ERROR", False),
    ],
)
def test_codes_become_faults(words: str, rule: str, timeout: bool) -> None:
    explained = explain(words)
    assert (explained.fault.rule, explained.is_timeout) == (rule, timeout)


def test_too_little_memory_is_no_fault_of_the_device() -> None:
    assert not explain("error code is 207001").lost


def test_health_is_read_from_npu_smi() -> None:
    assert parse(recorded("health_ok.txt")).well
    alarm = parse(recorded("health_alarm.txt"))
    assert not alarm.well
    assert str(alarm) == "health Alarm, 80E18005 aicore watchdog timeout"
    with pytest.raises(DeviceUnavailable, match="nothing of the NPU's health"):
        parse("usage: npu-smi ...")


def test_npu_smi_is_asked_for_one_npu() -> None:
    commands: list[list[str]] = []

    def ask(arguments: list[str]) -> str:
        commands.append(arguments)
        return recorded("health_ok.txt")

    assert health(3, ask).well
    assert commands == [["info", "-t", "health", "-i", "3"]]


def test_a_healthy_npu_is_used_again_after_a_fault(tmp_path: Path) -> None:
    quarantine = Quarantine(0, tmp_path)
    quarantine.after_fault("CORE_EXCEPTION", lambda _: recorded("health_ok.txt"))
    assert quarantine.reason() is None


@pytest.mark.parametrize("answer", ["health_alarm.txt", None])
def test_an_unhealthy_npu_is_quarantined(tmp_path: Path, answer: str | None) -> None:
    def ask(_: list[str]) -> str:
        if answer is None:
            raise DeviceUnavailable("npu-smi does not answer: timeout")
        return recorded(answer)

    Quarantine(0, tmp_path).after_fault("CORE_EXCEPTION", ask)
    reason = Quarantine(0, tmp_path).reason()
    assert reason is not None
    assert "after CORE_EXCEPTION" in reason
    assert "npu-smi set -t reset -i 0 -c 0" in reason
    assert Quarantine(1, tmp_path).reason() is None


def test_a_device_in_quarantine_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    device = Ascend()
    device._quarantine = Quarantine(0, tmp_path)
    device._quarantine.impose("a test")
    with pytest.raises(InfrastructureError, match="in quarantine since"):
        device._worker(tmp_path)
    assert json.loads(device._quarantine.file.read_text())["why"] == "a test"


# ---- profiling ------------------------------------------------------------------------------------------------------


def test_msprof_is_called_as_documented() -> None:
    line = msprof.command(Path("/tmp/found"), 3, ["python", "program.py"])
    metrics = "--aic-metrics=PipeUtilization,Memory,L2Cache"
    assert line == ("msprof", "op", "--output=/tmp/found", metrics, "--launch-count=3", "python", "program.py")


def test_msprofs_tables_become_a_profile() -> None:
    assert msprof.durations(RECORDED / "msprof") == [41.26, 40.12, 40.88]
    assert msprof.pipes(RECORDED / "msprof") == {"vector": 6.2, "scalar": 1.1, "mte2": 34.8, "mte3": 21.9}
    profile = msprof.profile(RECORDED / "msprof")
    assert profile.bottleneck == "mte2"
    assert "34.8 of 40.9 us" in profile.diagnosis


def test_missing_tables_are_reported(tmp_path: Path) -> None:
    with pytest.raises(InfrastructureError, match="left no OpBasicInfo"):
        msprof.profile(tmp_path)
