"""Tests of answer studies: plan, generation, judging, figures and replay, with a model that answers by rote."""

import dataclasses
import json
import lzma
from collections import defaultdict
from pathlib import Path
from typing import Any

import pytest
from model_server import answering, serving
from repository import ROOT

from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.answer_studies import commands, definition, figures
from kernel_gym.experiments.answer_studies.commands import AnswerStudyRequest
from kernel_gym.experiments.answer_studies.definition import AnswerStudy, Condition
from kernel_gym.experiments.answer_studies.generation import Backend, generate
from kernel_gym.experiments.answer_studies.judging import judge
from kernel_gym.experiments.answer_studies.mistakes import mistake, same_mistake_key
from kernel_gym.experiments.answer_studies.planning import plan, tasks_of
from kernel_gym.experiments.answer_studies.profiles import predictions, profile_page
from kernel_gym.experiments.answer_studies.study_folder import StudyFolder, import_archive
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import Reply
from kernel_gym.llm.transcript import Transcript
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Verdict

STUDY = AnswerStudy(
    question="What?",
    answers=4,
    tasks=("level1/relu", "level1/softmax"),
    relatives=("level1/leaky_relu", "level1/log_softmax"),
    conditions=(
        Condition(name="nothing", about="nothing"),
        Condition(name="relative", about="a relative", shows=("relative", "pages")),
        Condition(name="message", about="a failure", shows=("message",), after="nothing"),
    ),
    pairs=(("nothing", "relative"),),
)
SETTINGS = {"model": "m", "temperature": 0.7, "max_tokens": 50}


@pytest.fixture
def folder(tmp_path: Path) -> StudyFolder:
    return StudyFolder.open(tmp_path / "study", "test", SETTINGS)


def reply(body: dict[str, Any]) -> str:
    """Has no kernel for softmax; for relu it uses a relative's name if it is shown one."""
    user = body["messages"][1]["content"]
    name = "LeakyReluKernelTiling" if "LeakyReluKernelTiling" in user else "Other"
    return "I cannot." if "torch.softmax" in user else f"```cpp\nint kernel_launch = {name};\n```"


def fake_verdicts(folder: StudyFolder) -> None:
    """Judge as the verifier would, without it: everything fails alike, except kernels that took a name over."""
    rows: list[tuple[str, Verdict]] = []
    for answer in folder.answers():
        if answer.reply is None or answer.verdict is not None:
            continue
        taken = "LeakyRelu" in answer.kernel.source
        failed = Uncompilable("line 1: 'Other' was not declared in this scope | int kernel_launch = Other;")
        rows.append((answer.key, Feasible("fine", latency=2.0) if taken else failed))
    folder.add_verdicts(rows)


def ask(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    with serving(answering(reply)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        return generate(folder, Backend("openai"), **options), len(server.requests)


def test_a_study_goes_through_its_stages(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert plan(STUDY, folder) == ["message"]
    assert [(q.condition, q.task, q.number) for q in folder.questions()[:4]] == [
        ("nothing", "level1/relu", 0),
        ("nothing", "level1/softmax", 0),
        ("nothing", "level1/relu", 1),
        ("nothing", "level1/softmax", 1),
    ]
    assert len(folder.prompts()) == 4  # two tasks in two conditions: equal prompts are kept once
    assert plan(STUDY, folder) == ["message"]
    assert len(folder.questions()) == 8

    first, asked = ask(folder, monkeypatch, limit=3)
    assert (first.answers, first.left, asked) == (3, 5, 3)
    second, asked = ask(folder, monkeypatch)
    assert (second.answers, second.left, asked) == (5, 0, 5)
    assert second.tokens == 50

    fake_verdicts(folder)
    assert plan(STUDY, folder) == []
    shown = [question for question in folder.questions() if question.condition == "message"]
    assert [(question.task, question.mistake) for question in shown] == [
        ("level1/relu", "undeclared name: Other"),
        ("level1/relu", "undeclared name: Other"),
    ]  # there is no failed kernel for softmax to show
    ask(folder, monkeypatch)
    fake_verdicts(folder)

    rows, (difference,) = figures.study_figures(STUDY, folder)
    by_name = {row.name: row for row in rows}
    assert by_name["nothing"].correct.mean == 0
    assert by_name["nothing"].taken is None
    assert by_name["relative"].correct.mean == difference.correct.mean
    taken, chance = by_name["relative"].taken, by_name["relative"].taken_by_chance
    assert taken is not None
    assert chance is not None
    assert taken.mean > chance.mean == 0
    persistence, without = by_name["message"].persistence, by_name["message"].chance
    assert persistence is not None
    assert without is not None
    assert (persistence.mean, without.mean) == (1.0, 1.0)
    assert by_name["nothing"].mistakes == {"undeclared name": 0.5, "no kernel": 0.5}
    assert by_name["relative"].correct.mean == 0.5

    archive = tmp_path / "answers.xz"
    folder.export(archive)
    again = import_archive(archive, tmp_path / "again", "test")
    assert [a.key for a in again.answers()] == [a.key for a in folder.answers()]
    assert all(answer.verdict is None for answer in again.answers())
    fake_verdicts(again)
    assert figures.study_figures(STUDY, again) == figures.study_figures(STUDY, folder)


def test_a_time_limit_keeps_what_was_answered(folder: StudyFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernel_gym.experiments.answer_studies.generation.WRITERS", 1)
    plan(STUDY, folder, ["nothing"])
    stopped, asked = ask(folder, monkeypatch, minutes=0.0)
    assert (stopped.answers, stopped.left, asked) == (1, 3, 1)
    assert len(folder.transcript()) == 1


def test_a_folder_of_another_study_is_refused(folder: StudyFolder) -> None:
    with pytest.raises(ConfigError, match="holds the study test; choose another --out"):
        StudyFolder.open(folder.path, "other", SETTINGS)


def test_a_transcript_of_a_run_is_no_archive_of_a_study(tmp_path: Path) -> None:
    file = tmp_path / "transcript.jsonl"
    file.write_text(json.dumps({"key": "k", "request": {"messages": []}, "reply": {"text": ""}}) + "\n")
    with pytest.raises(KernelGymError, match="holds no answers of a study"):
        import_archive(file, tmp_path / "out", "mechanism")


@pytest.mark.parametrize(
    ("verdict", "kind", "key"),
    [
        (Feasible("fine", latency=1.0), "", ""),
        (Cheated("no", rule="io"), "refused: io", "refused: io"),
        (Incorrect("bad", cause="timeout"), "timeout", "timeout"),
        (Incorrect("bad", cause="fault", rule="R7"), "fault: R7", "fault: R7"),
        (
            Uncompilable("line 3: 'Foo' was not declared in this scope | Foo();"),
            "undeclared name",
            "undeclared name: Foo",
        ),
        (Uncompilable("line 3: no matching function for call to 'Exp' | x"), "wrong arguments", "wrong arguments: Exp"),
        (Uncompilable("line 3: expected ';' before '}' token | x was not declared"), "syntax", "syntax"),
    ],
)
def test_mistakes_have_a_kind_and_a_name(verdict: Verdict, kind: str, key: str) -> None:
    assert mistake(verdict, Kernel("int x;")) == kind
    assert same_mistake_key(verdict, Kernel("int x;")) == key


def test_answers_without_a_kernel_and_cut_answers_are_kinds() -> None:
    failed = Uncompilable("line 3: expected '}' at end of input")
    assert mistake(failed, Kernel("")) == "no kernel"
    assert mistake(failed, Kernel("int x;"), Reply(text="", finish="length")) == "cut off"


@pytest.mark.parametrize("name", definition.names())
def test_the_packaged_studies_ask_about_tasks_that_exist(name: str) -> None:
    from kernel_gym import suites

    study = definition.load(name)
    for task in (*study.tasks, *study.relatives):
        suites.find_task(task)
    assert len(list(tasks_of(study))) == study.answers


def test_the_mechanism_study_is_as_the_issue_wants_it_and_shares_no_task_with_the_prompts() -> None:
    study = definition.load("mechanism")
    assert (study.answers, len(study.tasks)) == (200, 24)
    assert [condition.name for condition in study.conditions][:10] == [
        *("nothing", "pages", "relative", "relative-pages", "own", "failed", "failed-message"),
        *("random", "similarity-diverse", "value"),
    ]
    assert not {*study.tasks} & {*definition.load("prompts").tasks}


@pytest.mark.parametrize("wrong", [{"shows": ("picks",)}, {"shows": ("failed",)}, {"after": "x"}, {"agent": "value"}])
def test_conditions_that_contradict_themselves_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="condition x"):
        Condition(name="x", about="", **wrong)


def test_answers_are_judged_and_judged_again_to_the_same_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With real verdicts: a kernel that does not compile, and an answer without one."""
    monkeypatch.setattr(definition, "load", lambda name: STUDY)
    request = AnswerStudyRequest(
        "test", tmp_path / "study", "all", Backend("openai"), "m", conditions=("nothing",), unsafe=True
    )
    with serving(answering(reply)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        text = commands.run(request)
    assert "| nothing | nothing | 4 | 0.000 [0.000, 0.000] |" in text
    replay = AnswerStudyRequest(
        "test", tmp_path / "again", "all", Backend("openai"), unsafe=True, replay=tmp_path / "study" / commands.ARCHIVE
    )
    assert commands.run(dataclasses.replace(replay, stage="plan")).startswith("4 questions with their answers")
    assert all(answer.verdict is None for answer in StudyFolder(tmp_path / "again").answers())
    assert commands.run(replay) == text


def test_profiles_are_compared_with_the_answers_in_every_condition(
    folder: StudyFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan(STUDY, folder)
    ask(folder, monkeypatch)
    fake_verdicts(folder)
    plan(STUDY, folder)
    ask(folder, monkeypatch)
    fake_verdicts(folder)
    rows = predictions(STUDY, folder, ("weak", "oracle"), workers=1)
    assert [row.condition for row in rows] == ["nothing", "relative", "message"]
    for row in rows:
        assert row.profiles["oracle"] == (1.0, 1.0)  # it knows every spelling
        compiles, correct = row.profiles["weak"]
        assert 0 < correct < compiles < 1
    shares = {row.condition: row.profiles["weak"] for row in rows}
    assert shares["relative"] > shares["nothing"]  # a relative's kernel shows spellings
    assert rows[1].correct.mean == 0.5
    page = profile_page(rows)
    assert f"| nothing | 0.000 [0.000, 0.000] | {shares['nothing'][1]:.3f} | 1.000 |" in page
    assert "| relative | 0.500 [0.000, 1.000] |" in page
    assert "| **1.000** |" in page  # within the interval
    errors = [abs(row.correct.mean - 1) for row in rows]
    assert f" | {sum(errors) / 3:.3f} |\n| rank correlation |  | " in page.split("### Correct")[1]


def test_a_study_on_a_gpu_that_is_missing_is_one_line_before_the_work(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    monkeypatch.setattr("kernel_gym.llm.local.endpoints.find_spec", lambda name: True)
    (tmp_path / "m.gguf").touch()
    request = AnswerStudyRequest("mechanism", tmp_path / "out", "all", Backend("batched", str(tmp_path / "m.gguf")))
    with pytest.raises(ConfigError, match="needs an NVIDIA GPU, and torch finds none; use --author local"):
        commands.run(request)
    assert not (tmp_path / "out").exists()
    folder = StudyFolder.open(tmp_path / "half", "mechanism", SETTINGS | {"model": "m"})
    plan(STUDY, folder, ["nothing"])
    with pytest.raises(ConfigError, match="needs an NVIDIA GPU"):
        generate(folder, Backend("batched", str(tmp_path / "m.gguf")))


RESULTS = ROOT / "docs" / "results"


@pytest.mark.parametrize("name", ["mechanism", "prompts"])
def test_the_page_is_about_the_archived_answers(name: str) -> None:
    page = (RESULTS / f"{name}.md").read_text()
    replies: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for exchange in Transcript(RESULTS / "transcripts" / f"{name}.xz", read_only=True):
        replies[exchange["question"]["condition"]].append(exchange["reply"])
    study = definition.load(name)
    assert f"{sum(map(len, replies.values())):,} answers in {len(replies)} conditions" in page
    for condition, answers in replies.items():
        about = study.condition(condition).about
        (row,) = [line for line in page.splitlines() if line.startswith(f"| {condition} | {about} | {len(answers)} |")]
        means = (sum(reply[key] for reply in answers) / len(answers) for key in ("tokens_in", "tokens_out"))
        assert row.endswith("".join(f" {mean:,.0f} |" for mean in means))


@pytest.mark.slow
def test_an_archived_condition_is_judged_again_to_the_page(tmp_path: Path) -> None:
    """The answers that were shown the task's own kernel, because some of them are correct."""
    exchanges = Transcript(RESULTS / "transcripts" / "mechanism.xz", read_only=True)
    own = [exchange for exchange in exchanges if exchange["question"]["condition"] == "own"]
    with lzma.open(tmp_path / "own.xz", "wt") as file:
        file.writelines(json.dumps(exchange) + "\n" for exchange in own)
    folder = import_archive(tmp_path / "own.xz", tmp_path / "study", "mechanism")
    assert judge(folder, workers=2, unsafe=True) == {}
    (row,), _ = figures.study_figures(definition.load("mechanism"), folder)
    shares = (f"{share.mean:.3f} [{share.low:.3f}, {share.high:.3f}]" for share in (row.compiled, row.correct))
    line = " | ".join(("| own", "the task's own verified kernel", "200", *shares, f"{row.solved} of 24 |"))
    assert line in (RESULTS / "mechanism.md").read_text()
