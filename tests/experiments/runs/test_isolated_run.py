"""A run in a process of its own: lost, it is one line that says so, and the same command goes on; Ctrl-C is quiet."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest
from forecast_tasks import FIVE
from repository import ROOT

from kernel_gym.agents.contract import BudgetSpent, MakeEnv, Metrics
from kernel_gym.agents.random import RandomAgent
from kernel_gym.config import resolve
from kernel_gym.envs.vector import view
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs import isolated_run
from kernel_gym.experiments.runs.run_folder import RunFolder


class Fragile(RandomAgent):
    """Picks at random in a loop of its own; the first time, its process ends in the middle of it."""

    owns_loop = True

    def __init__(self, seed: int = 0, mark: str = "") -> None:
        super().__init__(seed)
        self.mark = Path(mark)

    def fit(self, make_env: MakeEnv, budget: int, log: Callable[[Metrics, int], None]) -> None:
        envs = make_env.vector()
        observations, infos = envs.reset()
        try:
            for step in range(10_000):
                if step == 20 and not self.mark.exists():
                    self.mark.write_text(str(os.getpid()))
                    os._exit(1)
                actions = [self.act(*view(observations, infos, i)) for i in range(envs.num_envs)]
                observations, _, _, _, infos = envs.step(np.asarray(actions))
        except BudgetSpent:
            return


@pytest.mark.slow
def test_a_lost_process_is_a_one_line_error_and_the_same_command_resumes(tmp_path: Path) -> None:
    agent = {"agent": f"{__name__}:Fragile", "agent_options": {"mark": str(tmp_path / "mark")}}
    settings = resolve(overrides=agent | {"tasks": list(FIVE), "budget": 4, "env": {"forecast": True}})
    folder = RunFolder.open(tmp_path / "run", settings)
    seen: list[tuple[int, int, int]] = []
    with pytest.raises(
        KernelGymError, match=r"ended with status 1, .*nothing on record is lost: run the same"
    ) as error:
        isolated_run.train(settings, folder, lambda *progress: seen.append(progress))
    assert "\n" not in str(error.value)
    assert (tmp_path / "mark").read_text() != str(os.getpid())
    kept = folder.journal.read_bytes()
    assert 0 < len(kept.splitlines()) == seen[-1][0] < 20
    outcome = isolated_run.train(settings, folder, lambda *progress: seen.append(progress))
    assert seen[-1][:2] == (20, 20)
    assert folder.complete
    assert folder.journal.read_bytes().startswith(kept)
    assert isolated_run.train(settings, folder, lambda *progress: None) == outcome


class Curious(RandomAgent):
    """Picks at random and writes down which process forked its own, and a variable."""

    def __init__(self, seed: int = 0, out: str = "") -> None:
        super().__init__(seed)
        Path(out).write_text(f"{os.getppid()} {os.environ.get('KERNEL_GYM_MOOD')}")


@pytest.mark.slow
def test_runs_are_forked_from_one_process_with_the_variables_of_the_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parents = set()
    for mood in ("calm", "hurried"):
        monkeypatch.setenv("KERNEL_GYM_MOOD", mood)
        options = {"agent": f"{__name__}:Curious", "agent_options": {"out": str(tmp_path / mood)}}
        config = resolve(overrides=options | {"tasks": list(FIVE), "budget": 1, "env": {"forecast": True}})
        process = isolated_run.start_run(config, RunFolder.open(tmp_path / f"run-{mood}", config).path)
        assert isolated_run.wait_for_run(*process) == ""
        parent, variable = (tmp_path / mood).read_text().split()
        parents.add(int(parent))
        assert variable == mood
    assert len(parents - {os.getpid()}) == 1


@pytest.mark.slow
def test_after_a_loss_of_ray_and_ctrl_c_the_same_command_resumes(tmp_path: Path) -> None:
    """`make test-slow`: a real Ray, whose raylet is killed."""
    pytest.importorskip("ray", reason="needs RLlib: pip install 'kernel_gym[rllib]'")
    run = tmp_path / "run"
    command = [sys.executable, str(ROOT / "scripts" / "train.py"), "--agent", "ppo", "--forecast", "--budget", "100"]
    command += ["--tasks", ",".join(FIVE)]

    def begun(attempts: int) -> subprocess.Popen[str]:
        """The command in a session of its own, as far as so many attempts."""
        began = subprocess.Popen(
            [*command, "--out", str(run)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        while not run.exists() or _lines(run) < attempts:
            assert began.poll() is None, began.communicate()
            time.sleep(0.05)
        return began

    interrupted = begun(10)
    others = list(_descendants(interrupted.pid))
    os.killpg(interrupted.pid, signal.SIGINT)  # its own group: as a terminal does
    assert (interrupted.communicate()[1], interrupted.returncode) == ("interrupted: the same command goes on\n", 130)
    kept = (run / "results.jsonl").read_bytes()

    lost = begun(_lines(run) + 10)
    (raylet,) = [pid for pid in _descendants(lost.pid) if _name(pid) == "raylet"]
    os.kill(raylet, signal.SIGKILL)
    output, error = lost.communicate()
    assert lost.returncode == 2
    assert error.count("\n") == 1
    assert "a process of Ray's is lost; nothing on record is lost: run the same command again" in error
    assert "raylet" not in output
    assert (run / "results.jsonl").read_bytes().startswith(kept)
    kept = (run / "results.jsonl").read_bytes()

    assert subprocess.run([*command, "--out", str(run)], capture_output=True).returncode == 0
    assert (run / "results.jsonl").read_bytes().startswith(kept)
    assert _lines(run) == 500
    while any(_name(pid) for pid in others):  # until the test's own timeout: nobody is left behind
        time.sleep(0.1)


def _lines(run: Path) -> int:
    journal = run / "results.jsonl"
    return journal.read_bytes().count(b"\n") if journal.exists() else 0


def _descendants(process: int) -> Iterator[int]:
    for task in Path(f"/proc/{process}/task").glob("*/children"):
        for child in map(int, task.read_text().split()):
            yield child
            yield from _descendants(child)


def _name(process: int) -> str:
    """What a process is called; empty if it has ended."""
    try:
        status = Path(f"/proc/{process}/stat").read_text()
    except FileNotFoundError:
        return ""
    name, _, rest = status.partition("(")[2].rpartition(")")
    return "" if rest.split()[0] == "Z" else name
