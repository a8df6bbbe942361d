"""C++ programs of the tests that take seconds to compile: built once for a machine and kept in the user's cache."""

from __future__ import annotations

import fcntl
import shutil
import subprocess
import time
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from kernel_gym.confinement import building
from kernel_gym.hardware.ascend_sim import chip

SIMULATOR = Path(chip.__file__).parent
#: Seconds after its last use during which a program is kept.
RECENT = 3 * 24 * 3600.0


def build(
    name: str,
    sources: Iterable[Path],
    flags: Iterable[str],
    generated: Mapping[str, str] | None = None,
    common: str = "",
) -> Path:
    """Return a program of the simulator's sources; the first call on a machine builds it.

    Args:
        name: The program's name.
        sources: Its C++ files.
        flags: The flags of the compiler.
        generated: Texts of further files, by the names that the sources include.
        common: A header of the simulator that most of the sources include; it is compiled once.

    Returns:
        The path of the program.
    """
    return _build(name, tuple(sources), tuple(flags), tuple((generated or {}).items()), common)


@cache
def _build(
    name: str, sources: tuple[Path, ...], flags: tuple[str, ...], generated: tuple[tuple[str, str], ...], common: str
) -> Path:
    compiler = building.find_compiler()
    headers = sorted(path for part in ("src", "include") for path in (SIMULATOR / part).rglob("*") if path.is_file())
    key = building.digest(compiler, (flags, generated, common), [*sources, *headers])
    programs = building.cache_folder() / "tests"
    programs.mkdir(exist_ok=True)
    folder = programs / f"{name}-{key}"
    with (programs / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not folder.is_dir():
            _remove_old(programs, name)
            command = [compiler, *flags, f"-I{SIMULATOR / 'src'}"]
            building.install(folder, lambda work: _compile(command, sources, dict(generated), common, work / name))
        folder.touch()
    return folder / name


def _compile(command: list[str], sources: Iterable[Path], generated: Mapping[str, str], common: str, out: Path) -> None:
    command = [*command, f"-I{out.parent}"]
    for file, text in generated.items():
        (out.parent / file).write_text(text)
    if common:
        header = out.parent / "common.h"
        header.write_text(f'#include "{common}"\n')
        subprocess.run([*command, "-x", "c++-header", header, "-o", f"{header}.gch"], check=True)
        command += ["-include", str(header)]
    subprocess.run([*command, *sources, "-o", out], check=True)


def _remove_old(programs: Path, name: str) -> None:
    for folder in programs.glob(f"{name}-*"):
        if folder.stat().st_mtime < time.time() - RECENT:
            shutil.rmtree(folder, ignore_errors=True)
