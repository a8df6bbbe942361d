"""Tests of studies whose author is a language model: the server of all runs, the archive, and its replay."""

import dataclasses
import json
import logging
import os
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import fake_llama
import pytest
from model_server import answering, serving
from repository import ROOT

from kernel_gym import suites
from kernel_gym.authors.contract import Note
from kernel_gym.authors.model import ModelAuthor
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.progress import activity_handler
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.experiments.studies import model_studies, study_commands, study_definition, tables
from kernel_gym.experiments.studies.study import Study
from kernel_gym.llm.local import server
from kernel_gym.llm.local.installation import DEFAULT
from kernel_gym.verdict import Uncompilable

REQUEST = study_commands.StudyRequest("model-agents", "quick", agents=("random",), budget=2)


@pytest.fixture(autouse=True)
def _no_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "KERNEL_GYM_SECRET", "KERNEL_GYM_UNSAFE"):
        monkeypatch.delenv(name, raising=False)


def run(study: Study) -> str:
    """Run the only shard of a study in this process; return its journal."""
    (shard,) = study.shards
    folder = RunFolder.open(study.path(shard), shard.config)
    train(shard.config, folder)
    return folder.journal.read_text()


def answer(body: dict[str, Any]) -> str:
    """An answer without a kernel, which needs no verifier; it tells the requests apart."""
    return f"no kernel today, {body['seed']}"


def test_runs_are_archived_and_replayed_without_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = REQUEST.study(tmp_path / "first")
    with serving(answering(answer)) as host:
        host.models = (DEFAULT.name,)
        monkeypatch.setenv("OPENAI_BASE_URL", host.url)
        journal = run(study)
        assert len(host.requests) == 6
    monkeypatch.delenv("OPENAI_BASE_URL")
    study_commands._write_study_file(REQUEST, tmp_path / "first")
    file = tmp_path / "first" / "random" / "seed-0" / "provenance.json"
    resumption = {"commit": "abc", "attempt": 3, "command": ["/home/me/kernel-gym"]}
    file.write_text(json.dumps(json.loads(file.read_text()) | {"resumed": [resumption]}))
    table = study_commands.write_results(REQUEST, tmp_path / "first")
    assert table.endswith(
        f"The author is the language model {DEFAULT.name} (prompt_version 3, context_tokens 4500, max_tokens 1000, "
        "temperature 0.7).\n"
    )
    archive = tmp_path / "first" / model_studies.ARCHIVE
    assert archive.stat().st_size < 20_000
    with tarfile.open(archive) as content:
        provenance = content.extractfile("random/seed-0/provenance.json")
        assert provenance is not None
        text = provenance.read()
        assert b"command" not in text  # it would have paths of the machine
        assert json.loads(text)["resumed"] == [{"commit": "abc", "attempt": 3}]

    model_studies.import_runs(archive, tmp_path / "again")
    again = REQUEST.study(tmp_path / "again")
    assert not again.complete()  # the replay is still to be made
    file = again.path(again.shards[0]) / "config.yaml"
    file.write_text(file.read_text().replace("layout: 2", "layout: 1"))  # as if the default had been another one
    with pytest.raises(KernelGymError, match="holds a run with another configuration"):
        run(again)
    assert run(model_studies.as_recorded(again)) == journal
    assert study_commands.write_results(REQUEST, tmp_path / "again") == table
    assert (tmp_path / "again" / model_studies.ARCHIVE).stat().st_size
    with pytest.raises(KernelGymError, match="the archive has no run random/seed-1"):
        model_studies.as_recorded(dataclasses.replace(REQUEST, seeds=("0", "1")).study(tmp_path / "again"))
    model_studies.import_runs(archive, tmp_path / "again")  # what is there stays
    assert again.complete()


def test_the_progress_of_a_replay_counts_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[tuple[int, ...]] = []

    @contextmanager
    def progress(title: str, already: int, unit: str) -> Iterator[Any]:
        assert (already, unit) == (0, "runs replayed")
        yield lambda done, total: lines.append((done, total))

    def replay(self: Study, parallel: int, watch: Any, *arguments: Any) -> list[Any]:
        watch(self.total, self.total)  # all attempts are on record
        for shard in self.shards[:2]:
            (self.path(shard) / "complete").touch()
        watch(self.total, self.total)
        return []

    monkeypatch.setattr(study_commands, "show_progress", progress)
    monkeypatch.setattr(Study, "run", replay)
    access = study_commands.ModelAccess(replay=RESULTS / "transcripts" / "model-agents.tar.xz")
    study_commands.run(study_commands.StudyRequest("model-agents", "full"), tmp_path, 2, access)
    assert lines == [(0, 25), (2, 25)]


def test_a_changed_answer_is_found_by_the_replay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    study = REQUEST.study(tmp_path / "first")
    with serving(answering(answer)) as host:
        host.models = (DEFAULT.name,)
        monkeypatch.setenv("OPENAI_BASE_URL", host.url)
        run(study)
    transcript = RunFolder(study.path(study.shards[0])).transcript
    code = "```cpp\\nint kernel_launch;\\n```"
    transcript.write_text(transcript.read_text().replace("no kernel today", code, 1))
    model_studies.export_runs(study, tmp_path / "changed.tar.xz")
    model_studies.import_runs(tmp_path / "changed.tar.xz", tmp_path / "again")
    monkeypatch.delenv("OPENAI_BASE_URL")
    with pytest.raises(KernelGymError, match="came out differently than recorded"):
        run(REQUEST.study(tmp_path / "again"))


def test_an_archive_of_something_else_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "text.xz").write_text("no archive")
    with pytest.raises(KernelGymError, match="is no archive of runs"):
        model_studies.import_runs(tmp_path / "text.xz", tmp_path / "out")
    with tarfile.open(tmp_path / "other.tar.xz", "w:xz") as other:
        other.add(__file__, "value/seed-0/complete")
    with pytest.raises(KernelGymError, match="other files than those of runs"):
        model_studies.import_runs(tmp_path / "other.tar.xz", tmp_path / "out")
    access = study_commands.ModelAccess(replay=tmp_path / "text.xz")
    with pytest.raises(ConfigError, match="main asks no model"):
        study_commands.run(study_commands.StudyRequest("main", "quick"), tmp_path / "main", 1, access)


@pytest.mark.parametrize(("author", "command"), [("local", "LLAMA"), ("batched", "BATCHED")])
def test_one_server_for_all_runs(author: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if author == "local":
        pytest.importorskip("xllamacpp", reason="needs the extra local")
    file = tmp_path / f"{DEFAULT.name}.gguf"
    file.touch()
    hosts: list[server.LlamaServer] = []

    class Host(server.LlamaServer):
        def __init__(self, *sizes: Any, command: tuple[str, ...] = server.LLAMA) -> None:
            self.asked = command
            super().__init__(*sizes, command=fake_llama.COMMAND)
            hosts.append(self)

    monkeypatch.setattr(model_studies, "LlamaServer", Host)
    monkeypatch.setattr(model_studies, "check_batched", lambda model: Path(model))
    shards = study_commands.StudyRequest("model-agents", "full").study(tmp_path / "out").shards
    with model_studies.serving(author, str(file), shards, parallel=3):
        (host,) = hosts
        assert os.environ["OPENAI_BASE_URL"] == host.url
        assert host.running
    assert "OPENAI_BASE_URL" not in os.environ
    assert not host.running
    assert host.asked == getattr(server, command)  # type: ignore[attr-defined]
    assert host.slots == (36 if author == "batched" else 1)  # three runs of twelve tasks
    assert host.context == 4950 + 1000 + 1000  # the prompt with a tenth to spare, a kernel to repair, the answer


def test_loading_the_model_is_part_of_the_progress(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    lines: list[str] = []

    @contextmanager
    def progress(title: str, already: int) -> Iterator[Any]:
        handler = logging.Handler()
        handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
        with activity_handler(handler):
            yield lambda done, total: None

    class Host(server.LlamaServer):
        def start(self) -> str:
            return "http://localhost:1/v1"

    file = tmp_path / f"{DEFAULT.name}.gguf"
    file.touch()
    monkeypatch.setattr(study_commands, "show_progress", progress)
    monkeypatch.setattr(model_studies, "LlamaServer", Host)
    monkeypatch.setattr(model_studies, "check_batched", lambda model: Path(model))
    monkeypatch.setattr(Study, "run", lambda self, *arguments: [])
    study_commands.run(REQUEST, tmp_path / "out", 1, study_commands.ModelAccess("batched", str(file)))
    assert lines == [f"loading {file.name}"]


def test_another_model_is_named_in_requests_and_in_the_folder(tmp_path: Path) -> None:
    request = study_commands.StudyRequest("model-agents", "quick", model="larger")
    study_commands._write_study_file(request, tmp_path)
    for again in (request, study_commands.StudyRequest("model-agents", "quick")):
        shards = again.study(tmp_path).shards
        options = [shard.config.env.author_options for shard in shards]
        assert {option["model"] for option in options} == {"larger"}
    with pytest.raises(ConfigError, match="ask for the model larger"), model_studies.serving("local", "", shards, 1):
        pass


def test_judging_is_the_same_on_every_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    with model_studies.judging(unsafe=False):
        assert os.environ["KERNEL_GYM_SECRET"] == model_studies.SECRET
        assert os.environ["KERNEL_GYM_UNSAFE"] != "1"
    monkeypatch.setenv("KERNEL_GYM_SECRET", "another")
    with model_studies.judging(unsafe=True):
        assert os.environ["KERNEL_GYM_SECRET"] == "another"
        assert os.environ["KERNEL_GYM_UNSAFE"] == "1"
    assert "KERNEL_GYM_UNSAFE" not in os.environ


@pytest.mark.parametrize("name", ["model-agents", "model-agents-cuda"])
def test_the_study_of_agents_is_as_the_issue_wants_it(name: str) -> None:
    definition = study_definition.load(name)
    assert model_studies.asks_model(definition)
    shards = study_definition.shards(definition, "full")
    assert len({shard.seed for shard in shards}) >= 5
    assert {"value", "random", "pass@k", "similarity-diverse", "context-value"} == {shard.agent for shard in shards}
    assert len({(shard.config.budget, shard.tasks) for shard in shards}) == 1
    assert {shard.config.env.device for shard in shards} == {"cuda" if name.endswith("cuda") else "ascend-sim"}


def test_the_demo_fits_into_twenty_minutes_on_two_slow_cores() -> None:
    """A core of a Neoverse N1 reads 3.7 tokens a second and writes 2.8. The server reads what requests share once."""
    shards = study_definition.shards(study_definition.load("model-agents"), "demo", ["random", "value"])
    options = shards[0].config.env.author_options
    author, task = ModelAuthor(**options), suites.find_task(shards[0].tasks[0])
    practices = (Note("practice", "w" * 350), Note("practice", "v" * 350))
    failed = Note("trace", "w" * 1400, "w" * 1400, Uncompilable("w" * 200), same_task=True)
    draft, repair = (
        "".join(message["content"] for message in author.messages(task, context, None))
        for context in (practices, (failed, *practices))
    )
    assert "w" * 350 in draft  # there is room for what agents pick
    shared = next(place for place, (left, right) in enumerate(zip(draft, repair, strict=False)) if left != right)
    # The first attempt of each agent has no failed attempt to repair. A token of code has about three characters.
    characters = shared + 2 * (len(draft) - shared) + 4 * (len(repair) - shared)
    attempts = sum(shard.config.budget * len(shard.tasks) for shard in shards)
    assert attempts == 6
    assert characters / 3 / (2 * 3.7) + attempts * options["max_tokens"] / (2 * 2.8) < 18 * 60


RESULTS = ROOT / "docs" / "results"
#: The studies whose runs are archived, and their pages.
PAGES = {"model-agents": "model_agents.md", "model-agents-cuda": "model_agents_cuda.md"}


@pytest.mark.parametrize("name", PAGES)
def test_the_page_has_the_figures_of_the_archived_runs(name: str, tmp_path: Path) -> None:
    model_studies.import_runs(RESULTS / "transcripts" / f"{name}.tar.xz", tmp_path)
    study = study_commands.StudyRequest(name, "full").study(tmp_path)
    assert len({shard.seed for shard in study.shards}) == 5
    for shard in study.shards:
        (study.path(shard) / "complete").touch()  # figures of the recorded attempts, without the replay
    page = (RESULTS / PAGES[name]).read_text()
    for title, runs in study.comparable().items():
        assert f"## {title}\n\n{tables.markdown(tables.figures_table(runs))}\n" in page


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_the_archived_runs_replay_to_the_page(name: str, tmp_path: Path) -> None:
    """Every choice and every request is made again; an attempt that differs is an error. No GPU is needed."""
    access = study_commands.ModelAccess(replay=RESULTS / "transcripts" / f"{name}.tar.xz")
    request = study_commands.StudyRequest(name, "full")
    assert study_commands.run(request, tmp_path, parallel=2, access=access) == []
    text = study_commands.write_results(request, tmp_path)
    begin = "## Contrasts named before the runs"
    assert text[text.index(begin) :] in (RESULTS / PAGES[name]).read_text()
