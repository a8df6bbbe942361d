"""Builds the program that compiles device code, once, and gathers the headers that CUDA kernels see."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym.confinement import building
from kernel_gym.hardware.host import runtime as host

HERE = Path(__file__).resolve().parent
INCLUDE = HERE / "include"


@dataclass(frozen=True)
class CudaPrograms:
    """The built programs and headers of the CUDA device, and the programs that all devices share."""

    folder: Path
    host: host.HostPrograms
    key: str

    @property
    def nvrtc(self) -> Path:
        """The program that compiles device code."""
        return self.folder / "cuda-compile"


@cache
def runtime() -> CudaPrograms:
    """Return the programs for these sources; the first call builds them."""
    shared = host.runtime()
    key = building.digest(shared.compiler, shared.key, _sources())
    folder = building.cache_folder() / f"cuda-{key}"
    if not folder.is_dir():
        building.install(folder, lambda work: _build(shared.compiler, work))
    return CudaPrograms(folder, shared, key)


def _sources() -> list[Path]:
    return [path for folder in (HERE / "src", INCLUDE) for path in sorted(folder.iterdir())]


def _build(compiler: str, work: Path) -> None:
    building.link(compiler, [HERE / "src" / "compile_main.cpp"], work / "cuda-compile", "-ldl")
    for headers in (INCLUDE, host.INCLUDE):
        shutil.copytree(headers, work / "include", dirs_exist_ok=True)
