"""Builds C++ programs once and keeps them in the user's cache. A folder is named after everything that goes into it."""

from __future__ import annotations

import hashlib
import os
import platform
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path

from kernel_gym import disk_cache
from kernel_gym.errors import DeviceUnavailable

FLAGS = ("-std=c++17", "-O2", "-w", "-static-libstdc++", "-static-libgcc")


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
    """Return the folder that builds are kept in, see `disk_cache`; a DeviceUnavailable if it cannot be written."""
    folder = disk_cache.cache_folder()
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


def remove(folder: Path) -> None:
    """Remove a folder that confined code could write, with folders in it that are nested too deep for Python."""
    try:
        shutil.rmtree(folder)
    except FileNotFoundError:
        return
    except (OSError, RecursionError):
        subprocess.run(["rm", "-rf", "--", str(folder)], stderr=subprocess.DEVNULL, check=False)


def link(compiler: str, sources: Iterable[Path], program: Path, *flags: str) -> None:
    """Compile and link one program."""
    run([compiler, *FLAGS, *map(str, sources), "-o", str(program), *flags])


def run(command: list[str]) -> None:
    """Run the compiler on files of this package; a DeviceUnavailable has its words if it fails."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        raise DeviceUnavailable(f"building {Path(command[-1]).name} failed: {result.stderr.strip()[:300]}")
