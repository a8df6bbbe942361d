"""What goes wrong around a run is one clear line and loses nothing: broken folders, missing extras, full disks."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_gym.agents.journal import Journal
from kernel_gym.agents.run_folder import RunFolder, keeping_what_is_written, load_config
from kernel_gym.agents.training import train
from kernel_gym.config import RunConfig, resolve
from kernel_gym.errors import KernelGymError

ROOT = Path(__file__).parents[2]
FULL = Path("/dev/full")


def settings() -> RunConfig:
    return resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 1, "workers": 1})


def line(error: pytest.ExceptionInfo[KernelGymError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_ends_with_one_line_and_keeps_what_was_written(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "results.jsonl")
    journal.write({"task": "level1/relu", "verdict": {}})
    journal._file.close()
    journal._file = FULL.open("w")
    with pytest.raises(KernelGymError) as error, keeping_what_is_written(tmp_path):
        journal.write({"task": "level1/gelu", "verdict": {}})
    with pytest.raises(OSError, match="No space"):
        journal.close()
    assert "no space left" in line(error)
    assert "nothing is lost" in line(error)
    assert [row["task"] for row in Journal(tmp_path / "results.jsonl").records] == ["level1/relu"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_t_be_written_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(KernelGymError) as error:
        RunFolder.open(tmp_path / "run", settings())
    assert "permission denied" in line(error)


@pytest.mark.parametrize("text", ["{unclosed", "- a list", "agent: value\ncolour: blue\n", ""])
def test_a_configuration_that_is_none_is_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "results.jsonl").write_text("{}\n")
    for use in (lambda: load_config(tmp_path), lambda: RunFolder.open(tmp_path, settings())):
        with pytest.raises(KernelGymError) as error:
            use()
        assert "is not a run's configuration" in line(error)


def test_a_run_marked_complete_that_isn_t_says_what_to_do(tmp_path: Path) -> None:
    folder = RunFolder.open(tmp_path / "run", settings())
    (folder.path / "complete").touch()
    with pytest.raises(KernelGymError) as error:
        train(settings(), folder)
    assert "0 of 1 attempts" in line(error)
    assert "delete" in line(error)


@pytest.mark.parametrize(("agent", "package", "extra"), [
    ("ppo", "ray", "rllib"), ("dqn", "ray", "rllib"), ("maskable-ppo", "sb3_contrib", "sb3"),
])  # fmt: skip
def test_a_missing_extra_is_named(agent: str, package: str, extra: str) -> None:
    code = (
        f"import sys; sys.modules[{package!r}] = None\n"
        "from kernel_gym import command_line, plugins\n"
        f"command_line.run(lambda: plugins.load('kernel_gym.agents', {agent!r}))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1
    assert f"kernel_gym[{extra}]" in done.stderr
