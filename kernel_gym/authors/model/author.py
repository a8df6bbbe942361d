"""A model as the author: `--author openai --model NAME`; `replay` answers from a transcript."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.authors.model.prompt import LANGUAGES, messages, prompts_digest
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings
from kernel_gym.llm.transcript import Transcript
from kernel_gym.tasks.task import Task


class ModelAuthor:
    """Asks a model for every kernel, in one of the languages that the prompts know.

    `context_tokens` bounds the prompt; the other settings are the endpoint's.
    """

    language = "ascendc"
    #: How many questions the vector environment asks at once unless it is told otherwise.
    writers = 8

    def __init__(self, context_tokens: int = 24_000, language: str = "ascendc", **settings: Any) -> None:
        if language not in LANGUAGES:
            raise ConfigError(f"author: there is no prompt for {language!r}; known: {', '.join(LANGUAGES)}")
        self.language = language
        if not isinstance(context_tokens, int) or context_tokens < 1:
            raise ConfigError(f"author: context_tokens is a number of tokens, not {context_tokens!r}")
        self.context_tokens = context_tokens
        self.endpoint = Endpoint(EndpointSettings.from_options(settings, "author"))

    def identity(self) -> str:
        """Model, sampling and prompts; not where it is reached."""
        asked = [self.endpoint.settings.answer_settings(), self.context_tokens, self.language, prompts_digest()]
        return "openai " + hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:16]

    def record_to(self, path: Path) -> None:
        """Keep a transcript of every exchange; what it holds already is not asked again."""
        self.endpoint.record_to(path)

    def usage(self) -> dict[str, float]:
        """Tokens and dollars so far."""
        return self.endpoint.usage()

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """One question, one kernel; an answer without code is a kernel without source."""
        reply = self.endpoint.chat(messages(task, context, start, self.context_tokens, self.language), nonce_of(rng))
        return Kernel(kernel_source(reply.text, start.kernel.source if start else ""), self.language)


class ReplayAuthor(ModelAuthor):
    """Answers from a transcript alone: the same run again, without the endpoint.

    Settings that the questions depend on are the transcript's, unless they are given.
    """

    writers = 1

    def __init__(
        self, transcript: str, context_tokens: int = 24_000, language: str = "ascendc", **settings: Any
    ) -> None:
        recorded = Transcript(Path(transcript), read_only=True)
        first = next(iter(recorded), {"request": {"model": "none"}})["request"]
        asked = {name: first[name] for name in ("model", "temperature", "max_tokens", "extra") if name in first}
        super().__init__(context_tokens, language, **asked | settings)
        self.endpoint.use_transcript(recorded)

    def record_to(self, path: Path) -> None:
        """Nothing new can be said, so there is nothing to record."""


def nonce_of(rng: np.random.Generator) -> int:
    """What tells a question from the same question in another attempt; servers take it as the seed."""
    return int(rng.integers(2**31))
