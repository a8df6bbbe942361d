"""Finds CUDA's parts on this machine: the compiler library, the headers, the binding of the driver."""

from __future__ import annotations

import os
import site
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from kernel_gym.errors import DeviceUnavailable

INSTALL = "pip install 'kernel_gym[cuda]'"
#: Headers that authors expect; a root without them is used only if there is no better one.
_EXPECTED = ("cuda_fp16.h", "cuda_bf16.h", "crt/mma.h", "cooperative_groups.h")


@dataclass(frozen=True)
class Toolkit:
    """One installation: the folder of the libraries, NVRTC's file, the folders of the headers."""

    libraries: Path
    nvrtc: Path
    headers: tuple[Path, ...]

    @property
    def missing(self) -> tuple[str, ...]:
        """Expected headers that are missing."""
        return tuple(name for name in _EXPECTED if not any((folder / name).is_file() for folder in self.headers))


@cache
def toolkit() -> Toolkit:
    """Return the most complete installation: `$CUDA_HOME`, the packages of this environment, the system's."""
    toolkits = [toolkit for root in _roots() if (toolkit := _toolkit(root))]
    if not toolkits:
        raise DeviceUnavailable(f"NVRTC, CUDA's run-time compiler, was not found; {INSTALL}, or set CUDA_HOME")
    return min(toolkits, key=lambda toolkit: len(toolkit.missing))


def _roots() -> Iterator[Path]:
    for name in ("CUDA_HOME", "CUDA_PATH"):
        if os.environ.get(name):
            yield Path(os.environ[name])
    packages = [*site.getsitepackages(), site.getusersitepackages(), *sys.path]
    for folder in dict.fromkeys(packages):
        yield from sorted(Path(folder).glob("nvidia/cu[0-9]*"), reverse=True)
    yield Path("/usr/local/cuda")


def _toolkit(root: Path) -> Toolkit | None:
    for libraries in (root / "lib64", root / "lib"):
        versions = sorted(libraries.glob("libnvrtc.so.[0-9]*"), key=lambda path: len(path.name))
        if versions:
            headers = tuple(path for path in (root / "include", root / "include" / "cccl") if path.is_dir())
            return Toolkit(libraries.resolve(), versions[0].resolve(), tuple(path.resolve() for path in headers))
    return None


def missing_binding() -> str | None:
    """Return one line if the binding of the driver is not installed, else None."""
    try:
        there = find_spec("cuda.bindings.driver") is not None
    except ModuleNotFoundError:
        there = False
    return None if there else f"cuda-bindings is not installed; {INSTALL}"
