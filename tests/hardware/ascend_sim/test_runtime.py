"""The runtime is built once, whoever asks, and kept until something it is made of changes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.confinement import building
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.ascend_sim import runtime as runtimes
from kernel_gym.hardware.ascend_sim.device import AscendSim

ASK = "from kernel_gym.hardware.ascend_sim.runtime import runtime; print(runtime().folder)"


def start(cache: Path, **environment: str) -> subprocess.Popen[str]:
    settings = {**os.environ, "XDG_CACHE_HOME": str(cache), **environment}
    return subprocess.Popen(
        [sys.executable, "-c", ASK], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=settings
    )


@pytest.mark.slow
def test_three_processes_share_one_build(tmp_path: Path) -> None:
    runtimes.runtime()
    ours = tmp_path / "kernel_gym"
    ours.mkdir()
    # Compiled files of the build that is there already: this test is about who builds, not about g++.
    (ours / "objects").symlink_to(building.cache_folder() / "objects")
    answers = [process.communicate() for process in [start(tmp_path) for _ in range(3)]]
    folders = {folder.strip() for folder, _ in answers}
    assert len(folders) == 1
    assert sum("building the simulator" in notice for _, notice in answers) == 1
    built = Path(folders.pop())
    assert built.parent == ours
    assert {"ascend-sim", "include"} <= {path.name for path in built.iterdir()}
    assert sorted(path.suffix for path in ours.glob("ascend_sim-*")) == ["", ".lock"]


def test_the_key_follows_sources_compiler_and_flags(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = building.find_compiler()
    key = runtimes._key(compiler)
    assert runtimes._key(compiler) == key
    monkeypatch.setattr(runtimes, "KERNEL_FLAGS", (*runtimes.KERNEL_FLAGS, "-g"))
    assert runtimes._key(compiler) != key
    monkeypatch.undo()
    (tmp_path / "one_more.h").write_text("// new")
    monkeypatch.setattr(runtimes, "CONFINEMENT", tmp_path)
    assert runtimes._key(compiler) != key


def test_without_a_compiler_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(DeviceUnavailable, match="install g\\+\\+") as raised:
        building.find_compiler()
    assert "\n" not in str(raised.value)
    assert AscendSim().unavailable_reason() == str(raised.value)


def test_a_cache_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    process = start(tmp_path / "file")
    assert "set XDG_CACHE_HOME" in process.communicate()[1]


def test_the_header_of_the_executor_is_compiled_once_and_only_for_many_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(runtimes, "_call", lambda *command: calls.append(command))
    work = tmp_path / "work"
    (tmp_path / "objects").mkdir()
    work.mkdir()
    sources = sorted((runtimes.SOURCES / runtimes.EXECUTOR).glob("*.cpp"))
    assert runtimes._precompile_executor("g++", sources, work) == ["-include", str(work / "executor_common.h")]
    assert len(calls) == 1
    for source in sources[1:]:
        runtimes._kept("g++", source, work).touch()
    assert runtimes._precompile_executor("g++", sources, work) == []
    assert len(calls) == 1
