"""The programs that confine other programs: `confine` sets limits, `sandbox-probes` attacks them to test them.

`libconfine.so` is `confine` for a process that confines itself.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym.confinement import building, sandbox

#: The C++ of the confinement; parts of it are linked into the devices' programs.
SOURCES = Path(__file__).resolve().parent / "src"

_PROGRAMS = {
    "confine": ("confine_main.cpp", "confine.cpp", "seccomp.cpp", "landlock.cpp"),
    "libconfine.so": ("confine.cpp", "seccomp.cpp", "landlock.cpp"),
    "sandbox-probes": ("probes_main.cpp", "probes.cpp", "jail.cpp", "seccomp.cpp", "landlock.cpp"),
}


@dataclass(frozen=True)
class Programs:
    """The built programs."""

    folder: Path

    @property
    def confine(self) -> Path:
        """The program that runs another one within limits."""
        return self.folder / "confine"

    @property
    def library(self) -> Path:
        """The shared library with which a process confines itself."""
        return self.folder / "libconfine.so"

    @property
    def probes(self) -> Path:
        """The program that tries to break out of the sandbox."""
        return self.folder / "sandbox-probes"

    @property
    def confinement(self) -> sandbox.Confinement:
        """How untrusted code is confined on this machine."""
        return sandbox.confinement(self.probes)


@cache
def programs() -> Programs:
    """Return the programs for these sources and this compiler; the first call builds them."""
    compiler = building.find_compiler()
    folder = building.cache_folder() / f"confinement-{building.digest(compiler, building.FLAGS, sources())}"
    if not folder.is_dir():
        building.install(folder, lambda work: _build(compiler, work))
    return Programs(folder)


def sources() -> list[Path]:
    """Return the files of the confinement's C++."""
    return sorted(path for path in SOURCES.iterdir() if path.suffix in (".h", ".cpp"))


def _build(compiler: str, work: Path) -> None:
    def build(name: str) -> None:
        kind = ("-shared", "-fPIC") if name.endswith(".so") else ()
        building.link(compiler, [SOURCES / source for source in _PROGRAMS[name]], work / name, *kind, "-ldl")

    with ThreadPoolExecutor(len(_PROGRAMS)) as pool:
        list(pool.map(build, _PROGRAMS))
