"""Runs with a model as the author, against a real server: kernels, outages, limits, keys, replay."""

import argparse
import json
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from model_server import Behaviour, Exchange, answering, embedding, failing, held, raw, saying, serving
from python_process import PythonProcess
from repository import ROOT

from kernel_gym.authors.model.local import BatchedAuthor, LocalAuthor
from kernel_gym.cli.run_options import add_replay_argument, add_run_arguments, run_config
from kernel_gym.config import INCIDENTAL, RunConfig, resolve
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import environment_options
from kernel_gym.experiments.runs.training import train
from kernel_gym.llm.endpoint import EndpointSettings, SpendingLimit

KEY = "sk-end-to-end-0123456789"
HONEST = ROOT / "tests" / "verifier" / "honest"
RELU, SOFTMAX = ((HONEST / name).read_text() for name in ("relu_class.cpp", "softmax_rows.cpp"))
#: What the model says about each task, attempt by attempt: nothing, something wrong, something right.
ANSWERS = {
    "relu": ["Use Relu.", f"```cpp\n{RELU.replace('Relu(y, x, n)', 'Abs(y, x, n)')}```", f"```cpp\n{RELU}```"],
    "softmax": [f"```cpp\n{SOFTMAX.replace('Exp(', 'Exq(')}```", f"Sure:\n```cpp\n{SOFTMAX}```", "I can't do better."],
}
OUTCOMES = {"relu": ["uncompilable", "incorrect", "feasible"], "softmax": ["uncompilable", "feasible", "uncompilable"]}
BUDGET, QUESTIONS = 3, 6


@pytest.fixture(scope="module", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", KEY)
        patch.delenv("OPENAI_BASE_URL", raising=False)
        patch.setenv("KERNEL_GYM_CACHE", str(tmp_path_factory.mktemp("verdicts")))
        yield


def model() -> Callable[[dict[str, Any]], str]:
    """A model that answers as listed; it counts the questions about each task."""
    questions: Counter[str] = Counter()
    lock = threading.Lock()

    def answer(body: dict[str, Any]) -> str:
        name = "softmax" if "softmax" in body["messages"][1]["content"].split("For example")[0] else "relu"
        with lock:
            questions[name] += 1
            return ANSWERS[name][questions[name] - 1]

    return answer


def configuration(**options: Any) -> RunConfig:
    author = {"model": "m", "retries": 0, "context_tokens": 6000, "price_in": 1000.0, "price_out": 0.0} | options
    return resolve(
        overrides={
            "agent": "similarity",
            "suite": "level1",
            "tasks": ["relu", "softmax"],
            "budget": BUDGET,
            "workers": 1,
            "env": {"author": "openai", "author_options": author},
        }
    )


def replayed(folder: Path, out: Path) -> list[dict[str, Any]]:
    parser = argparse.ArgumentParser()
    add_run_arguments(parser)
    add_replay_argument(parser)
    config = run_config(parser.parse_args(["--replay", str(folder)]))
    train(config, RunFolder.open(out, config))
    return records(out)


def run(folder: Path, **options: Any) -> list[dict[str, Any]]:
    config = configuration(**options)
    train(config, RunFolder.open(folder, config))
    return records(folder)


def records(folder: Path) -> list[dict[str, Any]]:
    return [
        record | {"verdict": {key: value for key, value in record["verdict"].items() if key != "seconds"}}
        for record in Journal.read(folder / "results.jsonl")
    ]


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that nothing disturbed."""
    folder = tmp_path_factory.mktemp("runs") / "undisturbed"
    with serving(answering(model())) as server:
        run(folder, base_url=server.url)
        assert len(server.requests) == QUESTIONS
    return folder


def test_a_model_finds_kernels_and_its_costs_are_kept(recorded: Path) -> None:
    for name, outcomes in OUTCOMES.items():
        task_outcomes = [row["verdict"]["outcome"] for row in records(recorded) if row["task"] == f"level1/{name}"]
        assert task_outcomes == outcomes
    assert (recorded / "best" / "level1-relu.cpp").read_text() == RELU
    used = json.loads((recorded / "usage.json").read_text())["author"]
    assert used == {"tokens_in": 600, "tokens_out": 60, "dollars": pytest.approx(0.6)}
    exchanges = [json.loads(line) for line in (recorded / "transcript.jsonl").read_text().splitlines()]
    assert len({exchange["request"]["nonce"] for exchange in exchanges}) == QUESTIONS


def test_tokens_and_dollars_are_in_tensorboard(recorded: Path) -> None:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(recorded))
    events.Reload()
    assert events.Scalars("author/tokens_in")[-1].value == 600
    assert events.Scalars("author/dollars")[-1].value == pytest.approx(0.6)


def test_replay_gives_the_same_journal_without_server_or_key(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    assert replayed(recorded, tmp_path / "again") == records(recorded)
    used, paid = ((folder / "usage.json").read_text() for folder in (tmp_path / "again", recorded))
    assert json.loads(used) == {"author": json.loads(paid)["author"] | {"replayed": 1}}
    assert replayed(tmp_path / "again", tmp_path / "once-more") == records(recorded)


@pytest.mark.slow
def test_a_replay_says_that_it_was_not_paid_for(recorded: Path, tmp_path: Path) -> None:
    words = ("--replay", str(recorded), "--out", str(tmp_path / "again"))
    output, errors = command(*words).communicate()
    assert "author 600 tokens in, 60 out, $0.60: replayed, not paid for" in output, errors


@pytest.mark.parametrize("part", ["author", "inspection"])
def test_a_wrong_model_name_is_found_before_anything_is_prepared(part: str, tmp_path: Path) -> None:
    plain = configuration(model="wrong" if part == "author" else "m").model_dump()
    refusal = json.dumps({"error": {"message": "The model `wrong` does not exist."}}).encode()
    with serving(raw(refusal, 404)) as server:
        plain["env"]["author_options"]["base_url"] = server.url
        if part == "inspection":
            plain["env"]["inspection"] = {"model": "wrong", "base_url": server.url, "retries": 0}
        config = RunConfig.model_validate(plain)
        folder = RunFolder.open(tmp_path / "run", config)
        with pytest.raises(ConfigError, match="refused the model 'wrong'"):
            train(config, folder)
        assert len(server.requests) == 1  # one token, and no kernel
    assert not folder.bank.exists()
    assert not folder.begun


@pytest.mark.slow
def test_inspections_and_embeddings_by_endpoint_are_replayed_too(tmp_path: Path) -> None:
    answers, opinion = model(), '{"opinion": "unsure", "reasons": "It is long."}'

    def everything(exchange: Exchange) -> None:
        if "input" in exchange.body:
            embedding(lambda text: [float(text.count(letter)) + 0.1 for letter in "aeioux;{"])(exchange)
        else:
            saying(opinion if exchange.body["model"] == "reader" else answers(exchange.body))(exchange)

    plain = configuration(model="writer").model_dump()
    with serving(everything) as server:
        plain["env"]["author_options"]["base_url"] = server.url
        plain["env"]["inspection"] = {"model": "reader", "base_url": server.url}
        plain["env"] |= {"embedder": "endpoint", "embedder_options": {"model": "vectors", "base_url": server.url}}
        config = RunConfig.model_validate(plain)
        train(config, RunFolder.open(tmp_path / "run", config))
    rows = records(tmp_path / "run")
    noted = [row["verdict"]["notes"] for row in rows if row["verdict"]["feasible"]]
    assert len(noted) == 2
    assert all("inspection: unsure; It is long." in notes for notes in noted)
    assert set(json.loads((tmp_path / "run" / "usage.json").read_text())) == {"author", "embedder", "inspection"}
    assert replayed(tmp_path / "run", tmp_path / "again") == rows


def test_an_outage_stops_the_run_with_one_line_and_running_again_resumes(recorded: Path, tmp_path: Path) -> None:
    folder, answers = tmp_path / "run", answering(model())
    working: list[Behaviour] = [answers] * 3
    with serving(*working, failing(503)) as server, pytest.raises(InfrastructureError) as error:
        run(folder, base_url=server.url)
    assert "could not be reached" in str(error.value)
    assert str(error.value).endswith("run the same command again to go on")
    assert "\n" not in str(error.value)
    assert records(folder) == records(recorded)[: len(records(folder))]
    exchanges = len((folder / "transcript.jsonl").read_text().splitlines())
    assert exchanges == 3
    with serving(answers) as server:
        assert run(folder, base_url=server.url) == records(recorded)
        assert len(server.requests) == QUESTIONS - exchanges


def test_a_restart_in_the_middle_does_not_change_the_run(recorded: Path, tmp_path: Path) -> None:
    answers, seen = answering(model()), Counter[int]()

    def restarting(exchange: Exchange) -> None:
        """The first time that a question comes the server is just going down."""
        with exchange.server.lock:
            seen[exchange.body["seed"]] += 1
            first = seen[exchange.body["seed"]] == 1
        (failing(503, Retry_After="0") if first else answers)(exchange)

    with serving(restarting) as server:
        assert run(tmp_path / "run", base_url=server.url, retries=2) == records(recorded)
    assert set(seen.values()) == {2}


def test_the_spending_limit_stops_and_a_higher_one_goes_on(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    with serving(answering(model())) as server:
        for _ in range(2):  # the second time nothing is asked at all
            with pytest.raises(SpendingLimit, match=r"limit is \$0.15: raise spending_limit and run again"):
                run(folder, base_url=server.url, spending_limit=0.15)
            assert len(server.requests) == 2
        assert run(folder, base_url=server.url, spending_limit=50.0) == records(recorded)
        assert len(server.requests) == QUESTIONS


def test_settings_that_decide_the_replies_cannot_change_during_a_run(recorded: Path) -> None:
    for options in ({"temperature": 0.1}, {"model": "other"}, {"context_tokens": 5000}):
        with pytest.raises(KernelGymError, match="another configuration"):
            RunFolder.open(recorded, configuration(**options))
    RunFolder.open(recorded, configuration(timeout_s=1.0, price_in=2.0))
    of_local_models = {*signature(LocalAuthor).parameters, *signature(BatchedAuthor).parameters}
    assert set(EndpointSettings.model_fields) | of_local_models >= INCIDENTAL
    assert not INCIDENTAL & set(EndpointSettings(model="m", extra={"a": 1}).answer_settings())


def test_a_wrong_option_leaves_the_folder_free(tmp_path: Path) -> None:
    with serving(failing(401)) as server, pytest.raises(ConfigError, match="OPENAI_API_KEY"):
        run(tmp_path / "run", base_url=server.url)
    with pytest.raises(ConfigError, match="colour"):
        run(tmp_path / "run", colour="red")
    assert RunFolder.open(tmp_path / "run", configuration(model="other")).path == tmp_path / "run"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["--author", "openai"], factories.author),
        (["--set", "env.embedder=endpoint"], factories.embedder),
        (["--set", "env.inspection.temperature=0.1"], factories.inspector),
    ],
)
def test_following_the_message_about_a_missing_model_works(
    words: list[str], part: Callable[[Options], Any], tmp_path: Path
) -> None:
    parser = argparse.ArgumentParser()
    add_run_arguments(parser)

    def trained(*more: str) -> Any:
        config = run_config(parser.parse_args([*words, *more]), agent="random", seed=0)
        return part(environment_options(config, RunFolder(tmp_path)))

    with pytest.raises(ConfigError, match="for example") as error:
        trained()
    advice = str(error.value).partition("for example ")[2].rstrip(")").partition(",")[0]
    assert trained(*advice.split())


def command(*words: str, script: str = "train", **environment: str) -> PythonProcess:
    return PythonProcess(ROOT / "scripts" / f"{script}.py", *words, environment=environment)


MODEL = ("--author", "openai", "--model", "m", "--suite", "level1")
TRAIN = ("--agent", "similarity", *MODEL, "--budget", "1")


@pytest.mark.slow
def test_ctrl_c_ends_the_run_while_requests_are_open(tmp_path: Path) -> None:
    arrived, released = threading.Event(), threading.Event()
    with serving(held(arrived, released)) as server:
        words = (*TRAIN, "--tasks", "relu,sigmoid", "--out", str(tmp_path / "run"))
        process = command(*words, OPENAI_BASE_URL=server.url)
        try:
            assert arrived.wait(200), process.returncode
            os.kill(process.pid, signal.SIGINT)
            _, errors = process.communicate()  # the server still holds its answers back
        finally:
            process.kill()
            released.set()
    assert process.returncode == 130
    assert errors.strip().splitlines()[-1] == "interrupted: the same command goes on"
    assert "Traceback" not in errors


def test_the_key_is_in_no_file_and_no_output(recorded: Path, tmp_path: Path) -> None:
    with serving(failing(500)) as server:
        words = (*TRAIN, "--tasks", "relu", "--set", "env.author_options.retries=0", "--out", str(tmp_path / "run"))
        output, errors = command(*words, OPENAI_BASE_URL=server.url).communicate()
        assert set(server.keys) == {f"Bearer {KEY}"}
    assert errors.strip().splitlines()[-1].startswith("train.py: the author could not be reached")
    options = ("--set", f"env.author_options.api_key={KEY}", "--out", str(tmp_path / "refused"))
    _, refused = command(*TRAIN, "--tasks", "relu", *options).communicate()
    assert "keys are not options" in refused
    assert not (tmp_path / "refused").exists()
    assert KEY not in output + errors + refused
    files = [file for folder in (recorded, tmp_path) for file in folder.rglob("*") if file.is_file()]
    assert len(files) > 8
    assert [file for file in files if KEY.encode() in file.read_bytes()] == []


def test_one_answer_serves_one_question(tmp_path: Path) -> None:
    """Two tasks with the same attempt number are two questions, though the model says the same."""
    with serving(saying("no code")) as server:
        rows = run(tmp_path / "run", base_url=server.url)
    assert len({row["kernel"] for row in rows}) == 1
    assert len({body["seed"] for body in server.requests}) == QUESTIONS


@pytest.mark.slow
def test_a_comparison_names_each_run_that_the_limit_stopped(tmp_path: Path) -> None:
    """`make test-slow`: RLlib's loop and a thread of our own stop alike, and a higher limit finishes both."""
    words = (*MODEL, "--tasks", "relu,softmax", "--agents", "random,ppo", "--seeds", "1", "--budget", "2")
    paid = ("--set", "env.author_options.price_in=1000", "--out", str(tmp_path / "study"))
    with serving(saying("no code")) as server:
        for limit, expected in (("0.15", 1), ("9", 0)):
            limited = ("--set", f"env.author_options.spending_limit={limit}")
            process = command(*words, *paid, *limited, script="compare", OPENAI_BASE_URL=server.url)
            output, errors = process.communicate()
            assert process.returncode == expected, errors
            for agent in ("random", "ppo"):
                line = f"{agent}/seed-0 failed: $0.20 spent, the limit is $0.15: raise spending_limit and run again"
                assert (line in errors) == (limit == "0.15"), errors
        assert len(server.requests) == 8
    assert "Traceback" not in errors
    assert KEY not in output + errors
