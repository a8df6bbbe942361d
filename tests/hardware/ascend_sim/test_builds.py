"""Old builds go, those in use stay, whoever uses them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

from kernel_gym.hardware.ascend_sim import builds

HOLD = """
import sys
from pathlib import Path
from kernel_gym.hardware.ascend_sim import builds
print(builds.hold(Path(sys.argv[1])), flush=True)
sys.stdin.read()
"""


def make(cache: Path, name: str, age: float) -> Path:
    folder = cache / f"{builds.PREFIX}{name}"
    folder.mkdir(parents=True)
    (folder / "ascend-sim").write_text("a program")
    (folder / builds.USED).touch()
    os.utime(folder / builds.USED, (time.time() - age,) * 2)
    return folder


def names(cache: Path) -> set[str]:
    return {path.name.removeprefix(builds.PREFIX) for path in cache.glob(f"{builds.PREFIX}*")}


def test_the_newest_and_the_recent_are_kept(tmp_path: Path) -> None:
    for day in range(9):
        make(tmp_path, f"day{day}", day * 86400.0 + 60)
    assert {path.name for path in builds.prune(tmp_path)} == {f"{builds.PREFIX}day{day}" for day in range(4, 9)}
    assert names(tmp_path) == {"day0", "day1", "day2", "day3"}
    for hour in range(8):
        make(tmp_path, f"hour{hour}", hour * 3600.0)
    builds.prune(tmp_path)
    assert names(tmp_path) == {f"hour{hour}" for hour in range(8)} | {"day0"}


def test_what_another_process_uses_is_kept(tmp_path: Path) -> None:
    used = make(tmp_path, "used", 1e6)
    for i in range(builds.KEPT):
        make(tmp_path, f"newer{i}", 0)
    command = [sys.executable, "-c", HOLD, str(used)]
    user = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert user.stdout is not None
    assert user.stdout.readline() == "True\n"
    os.utime(used / builds.USED, (0, 0))  # as if it had begun to use it long ago
    assert used not in builds.prune(tmp_path)
    assert (used / "ascend-sim").is_file()
    user.communicate("")
    assert used in builds.prune(tmp_path)
    assert not builds.hold(used)


def test_remains_and_objects_go_after_a_day(tmp_path: Path) -> None:
    remains = tmp_path / f"{builds.PREFIX}key-interrupted"
    remains.mkdir()
    (tmp_path / "objects").mkdir()
    for i in range(builds.KEPT_OBJECTS + 5):
        (tmp_path / "objects" / f"{i}.o").touch()
    builds.prune(tmp_path)
    assert remains.is_dir()
    builds.prune(tmp_path, time.time() + 2 * builds.RECENT)
    assert not remains.exists()
    assert len(list((tmp_path / "objects").iterdir())) == builds.KEPT_OBJECTS
