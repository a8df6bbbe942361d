"""Runs an answer study from a command line: its stages with progress, and its results at the end."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from kernel_gym.authors.model.local import SAMPLING
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.answer_studies import definition, figures, profiles, tables
from kernel_gym.experiments.answer_studies.definition import AnswerStudy
from kernel_gym.experiments.answer_studies.generation import Backend, Generated, generate
from kernel_gym.experiments.answer_studies.judging import judge
from kernel_gym.experiments.answer_studies.planning import plan
from kernel_gym.experiments.answer_studies.study_folder import StudyFolder, import_archive
from kernel_gym.llm.local.installation import model_name

Stage = Literal["all", "plan", "generate", "judge", "results", "profiles"]
#: The stages of an answer study.
STAGES: tuple[Stage, ...] = get_args(Stage)
#: The files that a study leaves for others.
ARCHIVE, RESULTS, PROFILES = "transcript.xz", "results.md", "profiles.md"


@dataclass(frozen=True)
class AnswerStudyRequest:
    """What to do for an answer study.

    Args:
        name: Name of the study.
        folder: Its folder.
        stage: What to do; `all` does what is left, stage after stage.
        backend: How the model is asked.
        model: Name of the model in requests; empty for that of the backend's file.
        conditions: Names of the conditions to plan; empty for all.
        minutes: Time limit of the generation.
        limit: Most questions to ask.
        workers: Verifications at once.
        unsafe: Let kernels run although the sandbox of this machine is too weak for untrusted ones.
        replay: Archive of answers to judge again.
        profiles: Profiles of the simulated author to compare with the answers.
    """

    name: str
    folder: Path
    stage: Stage
    backend: Backend
    model: str = ""
    conditions: tuple[str, ...] = ()
    minutes: float | None = None
    limit: int | None = None
    workers: int = 1
    unsafe: bool = False
    replay: Path | None = None
    profiles: tuple[str, ...] = ()


def run(request: AnswerStudyRequest) -> str:
    """Do what a request asks for; return the results, or what is left to do."""
    study = definition.load(request.name)
    if request.replay is not None:
        folder = import_archive(request.replay, request.folder, request.name)
        if request.stage == "plan":
            return f"{len(folder.questions()):,} questions with their answers in {folder.path}"
        _judge(folder, request)
        return _results(request, study, folder)
    settings = _request_settings(request, study)
    if request.stage == "all" and not (request.folder / "questions.jsonl").exists():
        request.backend.endpoint(settings).check()  # before the work of planning
    folder = StudyFolder.open(request.folder, request.name, settings)
    if request.stage == "all":
        return _everything(request, study, folder)
    if request.stage == "plan":
        waiting = plan(study, folder, request.conditions, request.workers)
        left = f"; these wait for verdicts: {', '.join(waiting)}" if waiting else ""
        return f"{len(folder.questions()):,} questions in {folder.path}{left}"
    if request.stage == "generate":
        return _said(_generate(folder, request))
    if request.stage == "judge":
        return _judge(folder, request)
    if request.stage == "profiles":
        return _profiles(request, study, folder)
    return _results(request, study, folder)


def _profiles(request: AnswerStudyRequest, study: AnswerStudy, folder: StudyFolder) -> str:
    report = _Lines("conditions")
    rows = profiles.predictions(
        study, folder, request.profiles, request.workers, lambda done, total: report(done, total, "")
    )
    if not rows:
        raise KernelGymError(f"{folder.path} has no judged answer yet")
    text = profiles.profile_page(rows)
    (folder.path / PROFILES).write_text(text)
    return text


def _everything(request: AnswerStudyRequest, study: AnswerStudy, folder: StudyFolder) -> str:
    """Plan, generate and judge until nothing is left; conditions that show failures come in the second round."""
    deadline = None if request.minutes is None else time.monotonic() + 60 * request.minutes
    while True:
        before = len(folder.questions())
        waiting = plan(study, folder, request.conditions, request.workers)
        left = None if deadline is None else (deadline - time.monotonic()) / 60
        generated = _generate(folder, request, left)
        print(_said(generated), file=sys.stderr)
        print(_judge(folder, request), file=sys.stderr)
        out_of_time = deadline is not None and time.monotonic() > deadline
        if not waiting or generated.left or out_of_time or len(folder.questions()) == before:
            return _results(request, study, folder)


def _request_settings(request: AnswerStudyRequest, study: AnswerStudy) -> dict[str, object]:
    name = request.model or model_name(request.backend.model)
    return {"model": name, "max_tokens": study.max_tokens, **SAMPLING}


def _generate(folder: StudyFolder, request: AnswerStudyRequest, minutes: float | None = None) -> Generated:
    limit = request.minutes if minutes is None else max(0.1, minutes)
    report = _Lines("answers")

    def progress(done: int, total: int, tokens: int, seconds: float) -> None:
        speed = tokens / seconds if seconds else 0.0
        rest = seconds / done * (total - done) / 60 if done else 0.0
        report(done, total, f"{speed:,.0f} tokens a second, {rest:.1f} minutes left")

    return generate(folder, request.backend, limit, request.limit, progress)


def _said(generated: Generated) -> str:
    return (
        f"{generated.answers:,} answers, {generated.tokens:,} tokens in {generated.seconds:.0f} s: "
        f"{generated.speed:,.0f} tokens a second; {generated.left:,} questions left"
    )


def _judge(folder: StudyFolder, request: AnswerStudyRequest) -> str:
    report = _Lines("verdicts")
    unusable = judge(folder, request.workers, request.unsafe, lambda done, total: report(done, total, ""))
    answers = folder.answers()
    judged = sum(answer.verdict is not None for answer in answers)
    reasons = "".join(f"; {device} cannot be used here: {reason}" for device, reason in unusable.items())
    return f"{judged:,} of {len(answers):,} questions are judged{reasons}"


def _results(request: AnswerStudyRequest, study: AnswerStudy, folder: StudyFolder) -> str:
    rows, pairs = figures.study_figures(study, folder)
    if not rows:
        raise KernelGymError(f"{folder.path} has no judged answer yet")
    text = tables.results(request.name, study, str(folder.content.get("model", "")), rows, pairs)
    (folder.path / RESULTS).write_text(text)
    folder.export(folder.path / ARCHIVE)
    return text


class _Lines:
    """Prints progress as lines on stderr, at most one every few seconds.

    Args:
        what: What is counted.
        interval: Seconds between two lines.
    """

    def __init__(self, what: str, interval: float = 5.0) -> None:
        self.what, self.interval, self._last = what, interval, 0.0

    def __call__(self, done: int, total: int, more: str) -> None:
        """Print a line if enough time has passed."""
        now = time.monotonic()
        if now - self._last >= self.interval or done == total:
            self._last = now
            print(f"{done:,} of {total:,} {self.what}{': ' + more if more else ''}", file=sys.stderr, flush=True)
