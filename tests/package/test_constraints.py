"""constraints.txt: one version of a package for each machine, and no CUDA where PyPI has a CPU build of torch."""

from collections.abc import Mapping

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from repository import ROOT

REQUIREMENTS = [
    Requirement(line)
    for line in (ROOT / "constraints.txt").read_text().splitlines()
    if line.strip() and not line.startswith("#")
]
MACHINES = [
    {"platform_machine": machine, "python_version": version}
    for machine in ("x86_64", "aarch64")
    for version in ("3.11", "3.12", "3.13")
]


@pytest.mark.parametrize("machine", MACHINES, ids=lambda machine: "-".join(machine.values()))
def test_every_package_has_one_exact_version(machine: Mapping[str, str]) -> None:
    chosen = [one for one in REQUIREMENTS if one.marker is None or one.marker.evaluate(dict(machine))]
    assert sorted({one.name for one in chosen}) == sorted(one.name for one in chosen)
    assert {one.name for one in chosen} == {one.name for one in REQUIREMENTS}
    assert all(str(one.specifier).startswith("==") for one in chosen)
    (torch,) = [str(one.specifier) for one in chosen if one.name == "torch"]
    cpu_on_pypi = machine["platform_machine"] == "aarch64" and machine["python_version"] != "3.11"
    assert torch == ("==2.10.0" if cpu_on_pypi else "==2.13.0")


def test_the_extra_video_can_be_installed_with_the_pillow_that_is_pinned() -> None:
    """MoviePy 2 needs Pillow below 12, MoviePy 1 takes any."""
    pinned = {one.name: Version(next(iter(one.specifier)).version) for one in REQUIREMENTS if one.name != "torch"}
    assert pinned["moviepy"] < Version("2") or pinned["pillow"] < Version("12")
