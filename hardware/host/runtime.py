"""Builds `host-runner`, once: it runs the host function of a kernel and records its launches."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym import activity
from kernel_gym.confinement import building, sandbox
from kernel_gym.confinement import programs as confinement_programs

HERE = Path(__file__).resolve().parent
#: Holds kernel_gym.h, which every kernel includes.
INCLUDE = HERE / "include"

_RUNNER = (
    HERE / "src" / "runner_main.cpp",
    *(confinement_programs.SOURCES / f"{part}.cpp" for part in ("jail", "seccomp", "landlock")),
)
#: The runner exports its one function and the mathematics that sizes may need, and no other symbol.
_RUNNER_FLAGS = (
    f"-Wl,--dynamic-list={HERE}/src/exports.list",
    "-Wl,--no-as-needed",
    "-lm",
    "-ldl",
    "-I",
    str(confinement_programs.SOURCES),
)


@dataclass(frozen=True)
class HostPrograms:
    """The built program, the C++ compiler that built it, and the programs that confine."""

    folder: Path
    compiler: str
    key: str

    @property
    def confine(self) -> Path:
        """The program that runs a compiler within limits."""
        return confinement_programs.programs().confine

    @property
    def runner(self) -> Path:
        """The program that runs host functions."""
        return self.folder / "host-runner"

    @property
    def confinement(self) -> sandbox.Confinement:
        """How untrusted code is confined on this machine."""
        return confinement_programs.programs().confinement


@cache
def runtime() -> HostPrograms:
    """Return the program for these sources and this compiler; the first call builds it."""
    compiler = building.find_compiler()
    key = building.digest(compiler, building.FLAGS, _sources())
    folder = building.cache_folder() / f"host-{key}"
    if not folder.is_dir():
        activity.prepare("building the runner of host code, once for this machine")
        building.install(folder, lambda work: building.link(compiler, _RUNNER, work / "host-runner", *_RUNNER_FLAGS))
    return HostPrograms(folder, compiler, key)


def _sources() -> list[Path]:
    own = [path for folder in (HERE / "src", INCLUDE) for path in sorted(folder.iterdir())]
    return own + confinement_programs.sources()
