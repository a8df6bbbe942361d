"""Episodes with a model that writes bundles: as answers, as memories that are shown, and as start points."""

from __future__ import annotations

from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
from model_server import ModelServer, saying, serving
from repository import ROOT
from script import run_script

import kernel_gym  # noqa: F401
from kernel_gym.authors.model import ModelAuthor
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Uncompilable, Verdict

RELU = (ROOT / "tests" / "hardware" / "bundles" / "samples" / "relu.py").read_text()
BROKEN, FASTER = RELU.replace("Relu(y, x, n)", "Relu(y, x)"), RELU.replace("4096", "8192")
K = 20


class FormJudge:
    """Takes bundles only. The broken one does not compile, large tiles are faster."""

    def verify(self, kernel: Kernel, task: Task) -> Verdict:
        assert kernel.form == "bundle"
        if kernel.source == BROKEN:
            return Uncompilable("kernel line 27: no matching function for call to 'Relu'")
        return Feasible("Correct.", latency=5.0 if kernel.source == FASTER else 10.0)


def prompt(server: ModelServer, number: int) -> str:
    return str(server.requests[number]["messages"][1]["content"])


@pytest.mark.usefixtures("_no_endpoint")
def test_bundles_are_answers_memories_and_start_points() -> None:
    answers = [saying(f"Here it is:\n```python\n{text}```") for text in (BROKEN, RELU, FASTER)]
    with serving(*answers) as server:
        author = ModelAuthor(model="m", base_url=server.url, submission="bundle", context_tokens=64_000)
        parts = {"author": author, "verifier": FormJudge()}
        env = gym.make("kernel_gym/KernelSynthesis-v0", suite="level1", tasks=["relu"], budget=3, **parts)
        env.reset(seed=0)
        _, reward, *_, info = env.step(K)
        assert (reward, info["attempt"].verdict.outcome) == (-1.0, "uncompilable")
        traces = [slot for slot, item in enumerate(info["candidates"]) if item.kind == "trace"]
        assert [info["candidates"][slot].item.code for slot in traces] == [BROKEN]

        env.step(traces[0])  # the broken bundle is shown as a memory
        *_, info = env.step(K)
        assert info["attempt"].verdict.feasible
        assert info["stage"] is Stage.REFINE
        before, _, behind = prompt(server, 1).partition("\n" + BROKEN.strip())
        assert before.rpartition("```python\n")[2].startswith("# ")  # its verdict
        assert behind.startswith("\n```")

        env.step(np.int64(0))  # the feasible one is the start point
        *_, info = env.step(K)
        assert info["attempt"].verdict.latency_us == 5.0
        assert f"```python\n{RELU.strip()}" in prompt(server, 2)
        bank = env.unwrapped.bank  # type: ignore[attr-defined]
    kept = [item for item in bank.items() if item.kind is Kind.TRACE]
    assert [item.code for item in kept] == [BROKEN, RELU, FASTER]
    assert {Kernel(item.code, item.language).form for item in kept} == {"bundle"}


@pytest.fixture
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.mark.slow
@pytest.mark.usefixtures("_no_endpoint")
def test_a_run_with_bundles_on_the_simulator_and_its_replay(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    answers = [saying(f"```python\n{text}```") for text in (BROKEN, RELU, FASTER)]
    words = ("--suite", "level1", "--tasks", "relu", "--agent", "similarity", "--budget", 3, "--workers", 1)
    with serving(*answers) as server:
        options = (
            "--set",
            f"env.author_options.base_url={server.url}",
            "--set",
            "env.author_options.context_tokens=64000",
        )
        asked = ("--author", "openai", "--model", "m", "--submission", "bundle", "--policy", "reference", *options)
        done = run_script("train", *words, *asked, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    records = Journal.read(tmp_path / "run" / "results.jsonl")
    assert [record["verdict"]["outcome"] for record in records] == ["uncompilable", "feasible", "feasible"]
    assert [record["verdict"]["policy"] for record in records[1:]] == ["reference", "reference"]
    again = run_script("train", "--replay", tmp_path / "run", "--out", tmp_path / "again")
    assert again.returncode == 0, again.stderr
    assert [r["verdict"]["outcome"] for r in Journal.read(tmp_path / "again" / "results.jsonl")] == [
        record["verdict"]["outcome"] for record in records
    ]
