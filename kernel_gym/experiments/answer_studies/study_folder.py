"""The folder of an answer study: its questions, prompts, transcript and verdicts, all of them appended to.

    study.yaml          which study, and the settings that requests depend on
    prompts.jsonl       the messages, by their digest
    questions.jsonl     condition, task, number and prompt of every question
    transcript.jsonl    the model's answers, as runs keep them
    verdicts.jsonl      the verdict on each answer

`export` writes questions and answers into one compressed file, and `import_archive` makes a folder of it, so that
anyone can judge the answers again without the model.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import Reply
from kernel_gym.llm.transcript import Transcript, key_of
from kernel_gym.verdict import Unjudged, Verdict, from_json

Messages = list[dict[str, str]]
#: Fields of `study.yaml` that requests depend on.
REQUEST_FIELDS = ("model", "temperature", "max_tokens", "extra")


@dataclass(frozen=True)
class Question:
    """A question to the model.

    Args:
        condition: Name of the condition.
        task: Id of the task.
        number: Number of the answer to this task in this condition.
        device: The device that judges the answer.
        nonce: The seed of the answer.
        prompt: Digest of the messages.
        mistake: The mistake of the failed attempt that is shown; empty if none is.
    """

    condition: str
    task: str
    number: int
    device: str
    nonce: int
    prompt: str
    mistake: str = ""

    @property
    def language(self) -> str:
        """The language of the kernel."""
        return "cuda" if self.device == "cuda" else "ascendc"


@dataclass(frozen=True)
class Answer:
    """A question with the model's reply and its verdict, as far as they exist."""

    question: Question
    key: str
    reply: Reply | None = None
    verdict: Verdict | None = None

    @property
    def kernel(self) -> Kernel:
        """The kernel in the reply; its source is empty if there is none."""
        return Kernel(kernel_source(self.reply.text) if self.reply else "", self.question.language)


class StudyFolder:
    """The files of an answer study.

    Args:
        path: The folder.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.transcript_file = path / "transcript.jsonl"

    @classmethod
    def open(cls, path: Path, study: str, request_settings: dict[str, Any]) -> StudyFolder:
        """Open or make the folder of a study.

        Args:
            path: The folder.
            study: Name of the study.
            request_settings: The settings that requests depend on, for a new folder.

        Returns:
            The folder.

        Raises:
            ConfigError: The folder holds another study.
        """
        folder = cls(path)
        if not folder._study_file.exists():
            path.mkdir(parents=True, exist_ok=True)
            folder._study_file.write_text(yaml.safe_dump({"study": study} | request_settings, sort_keys=False))
        if (present := folder.content.get("study")) != study:
            raise ConfigError(f"{path} holds the study {present}; choose another --out")
        return folder

    @property
    def _study_file(self) -> Path:
        return self.path / "study.yaml"

    @cached_property
    def content(self) -> dict[str, Any]:
        """What `study.yaml` says."""
        try:
            content: dict[str, Any] = yaml.safe_load(self._study_file.read_text())
        except (OSError, yaml.YAMLError) as error:
            raise KernelGymError(f"{self.path} holds no answer study: {error}") from error
        return content

    @property
    def request_settings(self) -> dict[str, Any]:
        """The settings that requests depend on."""
        return {name: self.content[name] for name in REQUEST_FIELDS if name in self.content}

    def questions(self) -> list[Question]:
        """Return all questions, in the order in which they were planned."""
        return [Question(**line) for line in _lines(self.path / "questions.jsonl")]

    def prompts(self) -> dict[str, Messages]:
        """Return the messages by their digest."""
        return {line["digest"]: line["messages"] for line in _lines(self.path / "prompts.jsonl")}

    def add(self, questions: Iterable[tuple[Question, Messages]]) -> None:
        """Append questions with their messages."""
        known = set(self.prompts())
        with (self.path / "questions.jsonl").open("a") as file, (self.path / "prompts.jsonl").open("a") as texts:
            for question, messages in questions:
                if question.prompt not in known:
                    known.add(question.prompt)
                    texts.write(json.dumps({"digest": question.prompt, "messages": messages}) + "\n")
                file.write(json.dumps(asdict(question)) + "\n")

    def request(self, question: Question, messages: Messages) -> dict[str, Any]:
        """Return a question as transcripts store it."""
        return self.request_settings | {"messages": messages, "nonce": question.nonce}

    def answers(self) -> list[Answer]:
        """Return all questions with replies and verdicts as far as they exist."""
        prompts = self.prompts()
        replies = {exchange["key"]: Reply(**exchange["reply"]) for exchange in self.transcript()}
        verdicts = {line["key"]: from_json(line["verdict"]) for line in _lines(self.path / "verdicts.jsonl")}
        keys = [(question, key_of(self.request(question, prompts[question.prompt]))) for question in self.questions()]
        return [Answer(question, key, replies.get(key), verdicts.get(key)) for question, key in keys]

    def transcript(self) -> Transcript:
        """Return the transcript; it must not be open elsewhere."""
        return Transcript(self.transcript_file)

    def add_verdicts(self, verdicts: Sequence[tuple[str, Verdict]]) -> None:
        """Append verdicts by the key of their answer; those that failed for other reasons than the kernel are left."""
        with (self.path / "verdicts.jsonl").open("a") as file:
            for key, verdict in verdicts:
                if not isinstance(verdict, Unjudged):
                    file.write(json.dumps({"key": key, "verdict": verdict.to_json()}) + "\n")

    def export(self, path: Path) -> None:
        """Write questions and answers into one file, compressed with xz; replays read it as a transcript."""
        exchanges = {exchange["key"]: exchange for exchange in self.transcript()}
        path.parent.mkdir(parents=True, exist_ok=True)
        with lzma.open(path, "wt", preset=6) as file:
            for answer in self.answers():
                if answer.key in exchanges:
                    file.write(json.dumps(exchanges[answer.key] | {"question": asdict(answer.question)}) + "\n")


def prompt_digest(messages: Messages) -> str:
    """Return the digest of messages."""
    return hashlib.sha256(json.dumps(messages).encode()).hexdigest()[:16]


def import_archive(archive: Path, path: Path, study: str) -> StudyFolder:
    """Make the folder of a study from a file that `export` wrote; a folder that has questions is left as it is.

    Args:
        archive: The file.
        path: The folder.
        study: Name of the study.

    Returns:
        The folder, with questions and answers and without verdicts.

    Raises:
        KernelGymError: The file cannot be read.
    """
    exchanges = list(Transcript(archive, read_only=True))
    if not exchanges or any("question" not in exchange for exchange in exchanges):
        raise KernelGymError(f"{archive} holds no answers of a study")
    first = exchanges[0]["request"]
    folder = StudyFolder.open(path, study, {name: first[name] for name in REQUEST_FIELDS if name in first})
    if folder.questions():
        return folder
    folder.add((Question(**exchange["question"]), exchange["request"]["messages"]) for exchange in exchanges)
    with folder.transcript_file.open("w") as file:
        for exchange in exchanges:
            line = {name: value for name, value in exchange.items() if name != "question"}
            file.write(json.dumps(line) + "\n")
    return folder


def _lines(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the whole lines of a file; an interrupted last one is not counted."""
    if not path.exists():
        return
    with path.open() as file:
        for line in file:
            if line.endswith("\n"):
                yield json.loads(line)
