"""What goes wrong around a run is one clear line and loses nothing: broken folders, missing extras, full disks."""

import errno
import os
import sys
from io import StringIO
from pathlib import Path

import pytest
from forecast_tasks import FIVE
from python_process import PythonProcess
from repository import ROOT
from rich.console import Console
from script import run_script

from kernel_gym import plugins
from kernel_gym.cli import command_line
from kernel_gym.config import RunConfig, resolve
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.isolated_run import describe_error
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.progress import bar
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config, reporting_disk_errors
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies.evaluation import evaluation_study
from kernel_gym.experiments.studies.study import Study

FULL = Path("/dev/full")


def settings() -> RunConfig:
    return resolve(overrides={"agent": "random", "tasks": ["relu"], "budget": 1, "workers": 1})


def line(error: pytest.ExceptionInfo[KernelGymError]) -> str:
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
def test_a_full_disk_ends_with_one_line_and_keeps_what_was_written(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    journal = Journal(path)
    journal.write({"task": "level1/relu", "verdict": {}})
    before = path.read_bytes()
    journal._file.close()
    journal._file = FULL.open("w")
    with pytest.raises(KernelGymError) as error, reporting_disk_errors(tmp_path):
        journal.write({"task": "level1/gelu", "verdict": {}})
    with pytest.raises(OSError, match="No space"):
        journal.close()
    assert "no space left" in line(error)
    assert "nothing is lost" in line(error)
    assert path.read_bytes() == before


@pytest.mark.slow
def test_a_run_on_a_full_disk_ends_with_one_line_and_goes_on_when_there_is_room(tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--forecast", "--tasks", ",".join(FIVE), "--agent", "random", "--budget", 40, "--out", run)
    short = PythonProcess(ROOT / "scripts" / "train.py", *words, file_bytes=100_000)
    _, errors = short.communicate()
    assert short.returncode == 2
    assert errors.count("\n") == 1
    assert "file too large; nothing is lost" in errors
    kept = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    assert 20 < len(kept) < 200
    assert run_script("train", *words).returncode == 0
    whole = (run / "results.jsonl").read_bytes().splitlines(keepends=True)
    assert len(whole) == 200
    assert whole[: len(kept) - 1] == kept[:-1]  # the last line was torn


@pytest.mark.parametrize("agent", ["ppo", "maskable-ppo"])
@pytest.mark.slow
def test_a_failure_keeps_its_reason_when_a_library_owns_the_loop(
    agent: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libraries wrap the exceptions of an environment; the error must still say the reason, such as a full disk."""
    pytest.importorskip({"ppo": "ray", "maskable-ppo": "sb3_contrib"}[agent])

    def broken(self: ForecastVectorEnv, actions: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device", "bank.sqlite")

    monkeypatch.setattr(ForecastVectorEnv, "step", broken)
    config = resolve(overrides={"agent": agent, "budget": 1, "tasks": list(FIVE), "env": {"forecast": True}})
    with pytest.raises(KernelGymError) as error:
        train(config, RunFolder.open(tmp_path, config))
    assert "cannot write bank.sqlite: no space left" in line(error)


def test_an_unexpected_failure_is_reported_with_its_cause() -> None:
    wrapped = RuntimeError()
    wrapped.__cause__ = ValueError("the verifier\nbroke")
    assert describe_error(wrapped) == "RuntimeError: , from ValueError: the verifier broke"
    assert describe_error(KeyError("x")) == "KeyError: 'x'"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_can_t_be_written_is_one_line(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(KernelGymError) as error:
        RunFolder.open(tmp_path / "run", settings())
    assert "permission denied" in line(error)


@pytest.mark.parametrize("text", ["{unclosed", "- a list", "agent: value\ncolour: blue\n", ""])
def test_an_invalid_configuration_is_a_one_line_error(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.yaml").write_text(text)
    (tmp_path / "results.jsonl").write_text("{}\n")
    for use in (lambda: load_config(tmp_path), lambda: RunFolder.open(tmp_path, settings())):
        with pytest.raises(KernelGymError) as error:
            use()
        assert "is not a run's configuration" in line(error)


def test_an_incomplete_run_marked_complete_says_what_to_do(tmp_path: Path) -> None:
    folder = RunFolder.open(tmp_path / "run", settings())
    (folder.path / "complete").touch()
    with pytest.raises(KernelGymError) as error:
        train(settings(), folder)
    assert "0 of 1 attempts" in line(error)
    assert "delete" in line(error)


@pytest.mark.parametrize(("script", "arguments", "says"), [
    ("compare", "--agents random,value --forecast --parallel 0 --out x", "--parallel: '0' is not a positive"),
    ("compare", "--agents random,value --forecast --seeds 0 --out x", "--seeds: '0' is not a positive"),
    ("study", "main --parallel -1", "--parallel: '-1' is not a positive"),
    ("evaluate", "x --tasks level1/relu --out y --parallel 0", "--parallel: '0' is not a positive"),
    ("train", "--agent random --out x --set env.picks=[", "train.py: the value of 'env.picks=[' is not YAML"),
    ("credit", "x --attempt first", "--attempt: 'first' is not a list of numbers"),
    ("credit", "x --states 5", "credit.py: x holds no run"),
])  # fmt: skip
def test_a_mistyped_word_is_one_line(script: str, arguments: str, says: str, tmp_path: Path) -> None:
    done = run_script(script, *arguments.split(), cwd=tmp_path)
    assert done.returncode == 2
    assert says in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr
    assert "━" not in done.stdout + done.stderr, "a bar before anything is done"
    assert list(tmp_path.iterdir()) == []


def test_a_bar_appears_with_the_first_update() -> None:
    file = StringIO()
    with pytest.raises(ConfigError), bar("attempts", Console(file=file)):
        raise ConfigError("refused")
    assert file.getvalue() == ""
    with bar("attempts", Console(file=file)) as show:
        show(3, 7, "made")
    assert "made" in file.getvalue()
    assert "3/7" in file.getvalue()


def test_zero_parallel_runs_are_refused() -> None:
    with pytest.raises(ConfigError, match="at least 1"):
        Study((), Path("x"), "").run(0, lambda done, total: None)


@pytest.mark.parametrize(("failure", "says"), [
    (FileNotFoundError(errno.ENOENT, "No such file or directory", "a/b.html"), "a/b.html: no such file or directory"),
    (OSError(errno.ENOSPC, "No space left on device"), "No space left on device"),
    (TimeoutError(), "TimeoutError"),
])  # fmt: skip
def test_an_error_of_the_operating_system_is_a_one_line_error(
    failure: OSError, says: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def main() -> int:
        raise failure

    monkeypatch.setattr(sys, "argv", ["scripts/report.py"])
    with pytest.raises(SystemExit) as ended:
        command_line.run(main)
    assert ended.value.code == 2
    assert capsys.readouterr().err == f"report.py: {says}\n"


@pytest.mark.parametrize("agent", ["value", "context-value"])
@pytest.mark.parametrize("content", [None, "{half", "[]"])
def test_an_agent_that_was_never_saved_is_one_line(agent: str, content: str | None, tmp_path: Path) -> None:
    file = f"{agent.replace('-', '_')}.json"
    if content is not None:
        (tmp_path / file).write_text(content)
    with pytest.raises(ConfigError) as error:
        plugins.make("kernel_gym.agents", agent, {}).load(tmp_path)
    assert file in line(error)


def test_a_run_whose_empty_folder_was_dropped_goes_on_and_is_evaluated(tmp_path: Path) -> None:
    config = resolve(overrides={"agent": "random", "budget": 2, "tasks": list(FIVE), "env": {"forecast": True}})
    folder = RunFolder.open(tmp_path, config)
    folder.agent.rmdir()
    train(config, folder)
    assert folder.agent.is_dir()
    folder.agent.rmdir()
    shard = evaluation_study([folder], ["basics/add"], 1, tmp_path / "out").shards[0]
    assert shard.config.initial_agent == ""


@pytest.mark.parametrize(("agent", "package", "extra"), [
    ("ppo", "ray", "rllib"), ("dqn", "ray", "rllib"), ("maskable-ppo", "sb3_contrib", "sb3"),
])  # fmt: skip
def test_a_missing_extra_is_named(
    agent: str, package: str, extra: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for module in [name for name in sys.modules if name.startswith("kernel_gym.agents.")]:
        monkeypatch.delitem(sys.modules, module)  # it is imported anew
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(SystemExit) as ended:
        command_line.run(lambda: plugins.load("kernel_gym.agents", agent))
    assert ended.value.code == 2
    errors = capsys.readouterr().err
    assert errors.count("\n") == 1
    assert f"kernel_gym[{extra}]" in errors
