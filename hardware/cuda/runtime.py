"""Builds the programs of the CUDA device once: the runner of host functions and the compiler of device code.

The sandbox's own programs come with the simulator's runtime.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware import sandbox
from kernel_gym.hardware.ascend_sim import runtime as simulator

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"
_FLAGS = ("-std=c++17", "-O2", "-w", "-static-libstdc++", "-static-libgcc")
_PROGRAMS = {
    "cuda-host": ("host_main.cpp", "jail.cpp", "seccomp.cpp", "landlock.cpp"),
    "cuda-compile": ("compile_main.cpp",),
}
#: The runner offers its one function and the mathematics that sizes may need; nothing else is found by name.
_LINK = {
    "cuda-host": (f"-Wl,--dynamic-list={HERE}/src/exports.list", "-Wl,--no-as-needed", "-lm", "-ldl"),
    "cuda-compile": ("-ldl",),
}


@dataclass(frozen=True)
class Runtime:
    """The built programs, and the compiler and the sandbox that belong to them."""

    folder: Path
    compiler: str
    confine: Path
    confinement: sandbox.Confinement
    key: str

    @property
    def runner(self) -> Path:
        """Runs host functions."""
        return self.folder / "cuda-host"

    @property
    def nvrtc(self) -> Path:
        """Compiles device code."""
        return self.folder / "cuda-compile"


@cache
def runtime() -> Runtime:
    """The programs for these sources; built on first use."""
    base = simulator.runtime()
    key = _key(base.compiler)
    folder = simulator.cache_folder() / f"cuda-{key}"
    if not folder.is_dir():
        _build(base.compiler, folder)
    return Runtime(folder, base.compiler, base.confine, sandbox.confinement(base.probes), key)


def _sources() -> list[Path]:
    own = [path for folder in (HERE / "src", INCLUDE) for path in sorted(folder.rglob("*")) if path.is_file()]
    return [*own, *sorted(simulator.CONFINEMENT.glob("*"))]


def _key(compiler: str) -> str:
    digest = hashlib.sha256(f"{simulator.compiler_version(compiler)} {platform.machine()} {_FLAGS}".encode())
    for path in _sources():
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def _build(compiler: str, folder: Path) -> None:
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        for name, sources in _PROGRAMS.items():
            paths = [str(next(path for path in _sources() if path.name == source)) for source in sources]
            command = [compiler, *_FLAGS, *paths, "-o", str(work / name), *_LINK[name]]
            run = subprocess.run(command, capture_output=True, text=True, check=False)
            if run.returncode:
                raise DeviceUnavailable(f"building {name} failed: {run.stderr.strip()[:300]}")
        shutil.copytree(INCLUDE, work / "include")
        work.chmod(0o755)
        os.rename(work, folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)
