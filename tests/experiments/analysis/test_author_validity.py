"""The study that holds a model against the apprentice."""

import json
import os
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from model_server import answering, saying, serving
from repository import ROOT
from script import run_script

from kernel_gym import suites
from kernel_gym.authors.model import ModelAuthor
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import InfrastructureError
from kernel_gym.experiments.analysis import author_validity
from kernel_gym.experiments.analysis.author_validity import Case, Design, agreement, estimate, scores
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Unjudged

RELU = (ROOT / "tests" / "verifier" / "honest" / "relu_class.cpp").read_text()
KEY = "sk-validity-0123456789"
DESIGN = Design(contexts=4, picks=2, repeats=3)


@pytest.fixture(autouse=True)
def _environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


@pytest.fixture(scope="module")
def bank() -> MemoryBank:
    return factories.bank(Options(), "ascendc")


@pytest.fixture(scope="module")
def cases(bank: MemoryBank) -> list[Case]:
    return DESIGN.cases([suites.find_task("level1/relu"), suites.find_task("level1/softmax")], bank, "ascendc")


def some_cases(*counts: int) -> list[Case]:
    return [Case(Task(f"t/{i}", "c", "s", ()), (), ()) for i, count in enumerate(counts) for _ in range(count)]


def test_contexts_begin_with_nothing_and_are_the_same_again(cases: list[Case], bank: MemoryBank) -> None:
    assert [case.task.name for case in cases] == ["relu"] * 4 + ["softmax"] * 4
    assert [len(case.items) for case in cases] == [0, 2, 2, 2] * 2
    assert all(len({item.id for item in case.items}) == len(case.items) for case in cases)
    again = DESIGN.cases([suites.find_task("level1/relu")], bank, "ascendc")
    assert [case.items for case in again] == [case.items for case in cases[:4]]
    other = Design(contexts=4, picks=2, seed=1).cases([suites.find_task("level1/relu")], bank, "ascendc")
    assert [case.items for case in other] != [case.items for case in cases[:4]]


def test_the_estimate_counts_what_is_not_answered_yet(cases: list[Case], tmp_path: Path) -> None:
    with serving(saying("no code")) as server:
        author = ModelAuthor(model="m", base_url=server.url, max_tokens=100, price_in=1.0, price_out=10.0)
        author.record_to(tmp_path / "transcript.jsonl")
        before = estimate(DESIGN, cases, author)
        assert server.requests == []
        assert (before.questions, before.known, before.tokens_out_at_most) == (24, 0, 2400)
        assert before.dollars_at_most == pytest.approx((before.tokens_in + 24_000) / 1e6)
        credit = scores(DESIGN, cases[:4], author, lambda pairs: [])
        assert credit.tolist() == [0.0] * 4
        after = estimate(DESIGN, cases, author)
        assert (after.questions, after.known) == (24, 12)
        scores(DESIGN, cases[:4], author, lambda pairs: [])
        assert len(server.requests) == 12


def test_a_score_is_the_mean_credit(cases: list[Case]) -> None:
    verdicts = [Feasible("", latency=1.0), Incorrect(""), Incorrect("")]
    with serving(saying(f"```cpp\n{RELU}```")) as server:
        author = ModelAuthor(model="m", base_url=server.url)
        assert scores(DESIGN, cases[:1], author, lambda pairs: verdicts).tolist() == pytest.approx([2 / 3])
        with pytest.raises(InfrastructureError, match="run the same command again"):
            scores(DESIGN, cases[:1], author, lambda pairs: [Unjudged("a worker died")] * 3)


@pytest.mark.slow
def test_agreement_is_one_for_equal_and_minus_one_for_opposite_rankings() -> None:
    some, rising = some_cases(6, 6), np.tile(np.linspace(0, 1, 6), 2)
    same = agreement(some, rising, rising**2)
    assert (same.kendall.mean, same.spearman.mean) == (pytest.approx(1), pytest.approx(1))
    assert (same.operators, same.informative) == (2, 2)
    assert agreement(some, rising, -rising).kendall.high == pytest.approx(-1)


def test_agreement_is_within_tasks_not_across_them() -> None:
    """Both authors find the second task easier; within tasks they disagree."""
    up, down = np.array([0, 0.1, 0.2, 0.3]), np.array([0.3, 0.2, 0.1, 0])
    result = agreement(some_cases(4, 4), np.concatenate([up, up + 0.6]), np.concatenate([down, down + 0.6]))
    assert result.kendall.mean == pytest.approx(-1)


def test_noise_has_an_interval_around_zero_and_constants_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(author_validity, "RESAMPLES", 200)
    rng = np.random.default_rng(0)
    some = some_cases(*[10] * 8)
    result = agreement(some, rng.random(80), rng.random(80))
    assert result.kendall.low < 0 < result.kendall.high
    assert result.kendall.high - result.kendall.low < 0.8
    constant = agreement(some_cases(5, 5), np.zeros(10), rng.random(10))
    assert constant.informative == 0
    assert np.isnan(constant.kendall.mean)
    mixed = agreement(some_cases(5, 5), np.r_[np.zeros(5), np.arange(5)], np.r_[rng.random(5), np.arange(5)])
    assert (mixed.informative, mixed.spearman.mean) == (1, pytest.approx(1))


def test_the_statistics_are_the_usual_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(author_validity, "RESAMPLES", 20)
    from scipy.stats import kendalltau, spearmanr

    rng = np.random.default_rng(1)
    for _ in range(5):
        x, y = rng.integers(4, size=9) / 4.0, rng.integers(4, size=9) / 4.0
        result = agreement(some_cases(9), x, y)
        assert result.kendall.mean == pytest.approx(kendalltau(x, y).statistic)
        assert result.spearman.mean == pytest.approx(spearmanr(x, y).statistic)


def study(out: Path, url: str, *words: str) -> subprocess.CompletedProcess[str]:
    sizes = ("--model", "m", "--tasks", "relu", "--contexts", 3, "--picks", 2, "--repeats", 2, "--out", out)
    no_terminal = StringIO()
    with patch.dict(os.environ, {"OPENAI_BASE_URL": url}), patch.object(sys, "stdin", no_terminal):
        return run_script("author_validity", *sizes, "--set", "env.author_options.retries=0", *words)


@pytest.mark.slow
def test_the_command_asks_first_and_prints(tmp_path: Path) -> None:
    questions = []

    def helped_by_pages(body: dict[str, Any]) -> str:
        """Writes the kernel only where it is shown a practice."""
        questions.append(body)
        return f"```cpp\n{RELU}```" if "# Good practice" in body["messages"][1]["content"] else "no code"

    out = tmp_path / "study"
    with serving(answering(helped_by_pages)) as server:
        unasked = study(out, server.url)
        assert unasked.returncode == 2
        assert "6 questions, 0 of them answered already" in unasked.stderr
        assert (
            unasked.stderr.splitlines()[-1]
            == "author_validity.py: cannot ask whether to go on, because standard input is not a terminal; add --yes"
        )
        assert questions == []
        priced = ("--set", "env.author_options.price_in=5", "--yes", "--json")
        done = study(out, server.url, *priced)
        assert done.returncode == 0, done.stderr
        assert "at most $" in done.stderr
        assert len(questions) == 6
    result = json.loads(done.stdout)
    assert result == json.loads((out / "validity.json").read_text())
    assert [row["model"] for row in result["contexts"]] == [0.0, 1.0, 1.0]
    assert result["usage"]["tokens_in"] == 600
    assert KEY not in (out / "transcript.jsonl").read_text() + done.stderr


def test_credit_covers_every_verdict() -> None:
    assert set(author_validity.CREDIT) == {"feasible", "incorrect", "uncompilable", "cheated"}
