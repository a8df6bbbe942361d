"""Finds CANN, torch_npu and the NPU's tools on this machine, and reports what is missing and how to install it."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from kernel_gym.errors import DeviceUnavailable

#: The default folders of CANN's installer.
USUAL = (
    "/usr/local/Ascend/ascend-toolkit/latest",
    "/usr/local/Ascend/cann",
    "~/Ascend/ascend-toolkit/latest",
    "~/Ascend/cann",
)
_VERSION = re.compile(r"^version\s*=\s*v?(\d+)\.(\d+)", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Cann:
    """One installation: its folder, its version, its compiler."""

    home: Path
    version: tuple[int, int]
    bisheng: Path

    @property
    def has_asc(self) -> bool:
        """True if CMake knows the language ASC: single .asc files, from version 9 on."""
        return self.version >= (9, 0)


@dataclass(frozen=True)
class Missing:
    """Something that is missing, and how to install it."""

    what: str
    mend: str

    def __str__(self) -> str:
        return f"{self.what}; {self.mend}"


def homes(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield folders that may hold CANN, starting with the one that set_env.sh names."""
    for name in ("ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"):
        if environment.get(name):
            yield Path(environment[name])
    yield from (Path(place).expanduser() for place in USUAL)


def find_cann(environment: Mapping[str, str] = os.environ) -> Cann:
    """Return the installation that is used; raises DeviceUnavailable if there is none."""
    for home in homes(environment):
        if not home.is_dir():
            continue
        compiler = _bisheng(home)
        if compiler is None:
            raise DeviceUnavailable(f"{home} has no bisheng; install the CANN toolkit, not only its runtime")
        return Cann(home, cann_version(home), compiler)
    raise DeviceUnavailable(
        "CANN was not found; install the CANN toolkit (8.0 or newer), then source set_env.sh of its folder"
    )


def _bisheng(home: Path) -> Path | None:
    places = [home / "bin", home / "compiler" / "ccec_compiler" / "bin", home / "tools" / "bisheng_compiler" / "bin"]
    compiler = shutil.which("bisheng", path=os.pathsep.join(map(str, places)))
    return Path(compiler) if compiler else None


def cann_version(home: Path) -> tuple[int, int]:
    """Return the version that the installer recorded."""
    for note in sorted((*home.glob("*_install.info"), *home.glob("*-linux/*_install.info"), *home.glob("version.cfg"))):
        if match := _VERSION.search(note.read_text(errors="replace")):
            return int(match[1]), int(match[2])
    raise DeviceUnavailable(f"{home} does not say which version of CANN it is; install the toolkit again")


def missing(
    environment: Mapping[str, str] = os.environ,
    which: Callable[[str], str | None] = shutil.which,
    installed: Callable[[str], bool] = lambda name: find_spec(name) is not None,
) -> tuple[Missing, ...]:
    """Return everything that is missing, in the order in which it is installed."""
    lacking = []
    if which("npu-smi") is None:
        lacking.append(Missing("no NPU driver (npu-smi was not lacking)", "install the Ascend driver and firmware"))
    try:
        cann = find_cann(environment)
    except DeviceUnavailable as error:
        what, _, mend = str(error).partition("; ")
        lacking.append(Missing(what, mend))
    else:
        if not environment.get("ASCEND_HOME_PATH"):
            lacking.append(Missing("CANN's environment is not set", f"source {cann.home.parent}/set_env.sh"))
    if not installed("torch_npu"):
        lacking.append(Missing("torch_npu is not installed", "pip install 'kernel_gym[npu]'"))
    return tuple(lacking)
