"""Ctrl-C and SIGTERM: one line, status 130, and the same command goes on where that is true."""

import json
import os
import signal
import time
from dataclasses import asdict
from pathlib import Path

import pytest
from python_process import PythonProcess

from kernel_gym.cli import command_line, main
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.hardware.cuda.device import Cuda

GOES_ON = "interrupted: the same command goes on"
FORECAST = ("--forecast", "--tasks", "relu,sigmoid,softmax", "--budget", "400", "--rounds", "50")


def stopped(process: PythonProcess, journal: Path, number: int) -> str:
    """Stop a command once it has recorded something; return what it printed on stderr."""
    while not journal.exists() or not journal.stat().st_size:
        assert process.returncode is None, process.communicate()
        time.sleep(0.02)
    os.kill(process.pid, number)
    _, errors = process.communicate()
    assert process.returncode == 130
    return errors


@pytest.mark.parametrize(
    ("words", "journal", "number"),
    [
        (("train", "--agent", "random"), "results.jsonl", signal.SIGTERM),
        pytest.param(
            *(("compare", "--agents", "random", "--seeds", "1"), "random/seed-0/results.jsonl", signal.SIGINT),
            marks=pytest.mark.slow,
        ),
    ],
)
def test_an_interrupted_run_says_how_to_resume_and_loses_nothing(
    words: tuple[str, ...], journal: str, number: int, tmp_path: Path
) -> None:
    file = tmp_path / journal
    errors = stopped(PythonProcess("-m", "kernel_gym", *words, *FORECAST, "--out", tmp_path), file, number)
    assert errors.splitlines() == [GOES_ON]
    assert len(Journal.read(file)) > 0
    assert not (file.parent / "complete").exists()


@pytest.mark.parametrize("name", ["train", "compare", "study", "evaluate", "verify", "oracles"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_every_resumable_command_says_so_when_interrupted(
    name: str, number: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = main.load(name)
    monkeypatch.setattr(module, "run", lambda arguments: os.kill(os.getpid(), number) or time.sleep(60))
    words = {"evaluate": ["run", "--tasks", "x", "--out", "x"], "verify": ["--task", "x", "--kernel", "x"]}.get(
        name, ["--out", "x"]
    )
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended:
        command_line.execute(module, ["x", *words] if name in ("study", "oracles") else words)
    assert ended.value.code == 130
    assert capsys.readouterr().err == f"{GOES_ON}\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_a_command_that_cannot_resume_does_not_offer_to(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    module = main.load("validate")
    monkeypatch.setattr(module, "run", lambda arguments: os.kill(os.getpid(), signal.SIGTERM) or time.sleep(60))
    with pytest.raises(SystemExit) as ended:
        command_line.execute(module, ["run"])
    assert (ended.value.code, capsys.readouterr().err) == (130, "interrupted\n")


def test_a_second_sigterm_does_not_interrupt_the_end(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`timeout` sends one to the process and one to its group."""
    ended = []

    def work(arguments: object) -> None:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(60)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)
            ended.append("orderly")

    module = main.load("validate")
    monkeypatch.setattr(module, "run", work)
    with pytest.raises(SystemExit):
        command_line.execute(module, ["run"])
    assert (ended, capsys.readouterr().err) == (["orderly"], "interrupted\n")


def execute(*words: str) -> int:
    with pytest.raises(SystemExit) as ended:
        main.main(words)
    return int(str(ended.value.code))


def test_an_interrupted_audit_prints_its_results_and_resumes_from_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernel_gym.verifier import audit as auditing

    real, audited = auditing.audit, list[str]()

    def audit(task: object) -> auditing.Audit:
        audited.append(task.id)  # type: ignore[attr-defined]
        if len(audited) == 2:
            raise KeyboardInterrupt
        return real(task)  # type: ignore[arg-type]

    monkeypatch.setattr(auditing, "audit", audit)
    words = ("suite", "audit", "level1/relu", "level1/sigmoid")
    assert execute(*words, "--out", str(tmp_path / "audits.jsonl")) == 130
    output, errors = capsys.readouterr()
    assert "1 of 1 tasks are fit" in output
    assert errors.endswith(f"{GOES_ON}\n")
    with (tmp_path / "audits.jsonl").open("a") as file:
        file.write('{"task": "level')  # a kill in the middle of a line
    assert execute(*words, "--out", str(tmp_path / "audits.jsonl")) == 0
    assert "2 of 2 tasks are fit" in capsys.readouterr().out
    assert audited == ["level1/relu", "level1/sigmoid", "level1/sigmoid"]
    audited[:] = ["earlier"]
    assert execute(*words[:3]) == 130
    assert capsys.readouterr().err.endswith("interrupted\n")


def test_oracles_resumes_from_its_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernel_gym.experiments.analysis import oracle_margins

    real, measured = oracle_margins.measure, list[tuple[str, bool]]()

    def measure(task: object, verifier: object, quick: bool) -> oracle_margins.Margin:
        measured.append((task.id, quick))  # type: ignore[attr-defined]
        return real(task, verifier, quick=quick)  # type: ignore[arg-type]

    monkeypatch.setattr(oracle_margins, "measure", measure)
    out = ("--out", str(tmp_path / "margins.jsonl"), "--json")
    assert execute("oracles", "level1/relu", "--quick", *out) == 0
    assert execute("oracles", "level1/relu", "level1/sigmoid", "--quick", *out) == 0
    rows = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert [row["task"] for row in rows] == ["level1/relu", "level1/sigmoid"]
    assert measured == [("level1/relu", True), ("level1/sigmoid", True)]
    assert execute("oracles", "level1/relu", "level1/relu", "--quick", *out[:2], "--markdown") == 0
    head, _, line = capsys.readouterr().out.splitlines()
    assert head.startswith("| suite | category | judged | feasible | oracle / floor: least")
    over = rows[0]["fast_us"] / rows[0]["floor_us"]
    assert line.startswith(f"| `level1` | activation | 1 | 1 | {over:.1f} |")
    with (tmp_path / "margins.jsonl").open("a") as file:  # of another device: not what this one needs
        file.write(json.dumps(asdict(oracle_margins.Margin("level1/tanh", "level1", "", "feasible", device="cuda"))))
    execute("oracles", "level1/tanh", "--quick", *out)
    assert measured.pop() == ("level1/tanh", True)
    execute("oracles", "level1/relu", *out)
    assert measured[2:] == [("level1/relu", False)]  # the slowest kernel is not in the file yet
    (tmp_path / "margins.jsonl").write_text("no JSON\n")
    assert execute("oracles", "level1/relu", *out) == 2
    assert "holds no results of this command; choose another --out" in capsys.readouterr().err


def test_oracles_of_a_gpu_have_a_table_beside_torch() -> None:
    from kernel_gym.cli.analysis.oracles import _page_lines
    from kernel_gym.experiments.analysis.oracle_margins import Margin

    labels = ("level1", "activation", "feasible")
    relu, tanh = (
        Margin(name, *labels, fast_us=fast, device="cuda", torch_us=4.0, torch_float32_us=8.0)
        for name, fast in (("level1/relu", 2.0), ("level1/tanh", 6.0))
    )
    head, rule, line, total = _page_lines([relu, tanh])
    assert head.count("|") == rule.count("|") == line.count("|") == total.count("|")
    assert line == "| `level1` | activation | 2 | 2 | 0.5 | 1.5 | 1.5 | 0.2 | 0.8 | 0.8 | 1 |"
    assert total.startswith("| all |")


@pytest.mark.skipif(Cuda().unavailable_reason() is None, reason="there is a GPU")
def test_oracles_of_a_device_that_is_not_there_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert execute("oracles", "level1/relu", "--device", "cuda") == 2
    assert "cuda cannot be used here: " in capsys.readouterr().err


@pytest.mark.slow
def test_several_processes_audit(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Run by `make test-slow`."""
    out = tmp_path / "audits.jsonl"
    assert execute("suite", "audit", "level1/relu", "level1/sigmoid", "--workers", "2", "--out", str(out)) == 0
    assert "2 of 2 tasks are fit" in capsys.readouterr().out
    assert sorted(json.loads(line)["task"] for line in out.read_text().splitlines()) == [
        "level1/relu",
        "level1/sigmoid",
    ]
