"""Builds the programs that every device needs, once, and keeps them in the user's cache.

`confine` runs a compiler within limits, `sandbox-probes` tries to break out of the sandbox, and `host-runner` runs the
host function of a kernel and records its launches. A cache folder is named after everything that goes into it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware import sandbox

HERE = Path(__file__).resolve().parent
#: Holds kernel_gym.h, which every kernel includes.
INCLUDE = HERE / "include"
CONFINEMENT = HERE.parent / "confinement"

_FLAGS = ("-std=c++17", "-O2", "-w", "-static-libstdc++", "-static-libgcc")
_PROGRAMS = {
    "confine": ("confine_main.cpp", "seccomp.cpp", "landlock.cpp"),
    "sandbox-probes": ("probes_main.cpp", "probes.cpp", "jail.cpp", "seccomp.cpp", "landlock.cpp"),
    "host-runner": ("runner_main.cpp", "jail.cpp", "seccomp.cpp", "landlock.cpp"),
}
#: The runner exports its one function and the mathematics that sizes may need, and no other symbol.
_RUNNER_LINK = (f"-Wl,--dynamic-list={HERE}/src/exports.list", "-Wl,--no-as-needed", "-lm", "-ldl")


@dataclass(frozen=True)
class HostPrograms:
    """The built programs and the C++ compiler that built them."""

    folder: Path
    compiler: str
    key: str

    @property
    def confine(self) -> Path:
        """The program that runs a compiler within limits."""
        return self.folder / "confine"

    @property
    def probes(self) -> Path:
        """The program that tries to break out of the sandbox."""
        return self.folder / "sandbox-probes"

    @property
    def runner(self) -> Path:
        """The program that runs host functions."""
        return self.folder / "host-runner"

    @property
    def confinement(self) -> sandbox.Confinement:
        """How kernel code is confined on this machine."""
        return sandbox.confinement(self.probes)


@cache
def runtime() -> HostPrograms:
    """Return the programs for these sources and this compiler; the first call builds them."""
    compiler = find_compiler()
    key = digest(compiler, _FLAGS, _sources())
    folder = cache_folder() / f"host-{key}"
    if not folder.is_dir():
        install(folder, lambda work: _build(compiler, work))
    return HostPrograms(folder, compiler, key)


def find_compiler() -> str:
    """Return the path of the C++ compiler: `$CXX` if set, else g++."""
    name = os.environ.get("CXX") or "g++"
    path = shutil.which(name)
    if path is None:
        raise DeviceUnavailable(f"no C++ compiler: {name!r} was not found; install g++ 10 or newer (apt install g++)")
    return path


def compiler_version(compiler: str) -> str:
    """Return the first line of the compiler's `--version`."""
    return version_text(compiler).splitlines()[0]


@cache
def version_text(compiler: str) -> str:
    """Return all lines of the compiler's `--version`."""
    return subprocess.run([compiler, "--version"], capture_output=True, check=True, text=True).stdout


def cache_folder() -> Path:
    """Return the folder that builds are kept in: `$XDG_CACHE_HOME` or `~/.cache`, then `kernel_gym`."""
    root = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(root) if root else Path.home() / ".cache") / "kernel_gym"
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DeviceUnavailable(
            f"cannot write {folder}: {error.strerror}; set XDG_CACHE_HOME to a folder you own"
        ) from error
    return folder


def digest(compiler: str, flags: object, files: Iterable[Path]) -> str:
    """Return a key that changes with the compiler, the machine, the flags and the files."""
    total = hashlib.sha256()
    for part in (version_text(compiler), platform.machine(), repr(flags)):
        total.update(part.encode() + b"\0")
    for path in files:
        total.update(path.name.encode() + b"\0" + path.read_bytes())
    return total.hexdigest()[:16]


def install(folder: Path, write: Callable[[Path], None]) -> None:
    """Fill a temporary folder by `write` and rename it to `folder`, unless another process has made it meanwhile."""
    work = Path(tempfile.mkdtemp(prefix=f"{folder.name}-", dir=folder.parent))
    try:
        write(work)
        work.chmod(0o755)
        os.rename(work, folder)
    except OSError:
        if not folder.is_dir():  # else another process was faster
            raise
    finally:
        shutil.rmtree(work, ignore_errors=True)


def link(compiler: str, sources: Iterable[Path], program: Path, *flags: str) -> None:
    """Compile and link one program."""
    command = [compiler, *_FLAGS, *map(str, sources), "-o", str(program), *flags]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise DeviceUnavailable(f"building {program.name} failed: {run.stderr.strip()[:300]}")


def _sources() -> list[Path]:
    return [path for folder in (HERE / "src", INCLUDE, CONFINEMENT) for path in sorted(folder.iterdir())]


def _build(compiler: str, work: Path) -> None:
    paths = {path.name: path for path in _sources()}

    def build(name: str) -> None:
        sources = [paths[source] for source in _PROGRAMS[name]]
        link(compiler, sources, work / name, *(_RUNNER_LINK if name == "host-runner" else ("-ldl",)))

    with ThreadPoolExecutor(len(_PROGRAMS)) as pool:
        list(pool.map(build, _PROGRAMS))
