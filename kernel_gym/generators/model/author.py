"""A model as the author: `--author openai --set env.author_options.model=NAME`; `replay` answers from a transcript."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import ValidationError

from kernel_gym.endpoint import Endpoint, EndpointSettings
from kernel_gym.errors import ConfigError
from kernel_gym.generators.contract import Context, StartPoint
from kernel_gym.generators.model.answer import kernel_source
from kernel_gym.generators.model.prompt import messages
from kernel_gym.kernel import Kernel
from kernel_gym.task import Task
from kernel_gym.transcript import Transcript


class ModelAuthor:
    """Asks a model for every kernel. `context_tokens` bounds the prompt; the other settings are the endpoint's."""

    language = "ascendc"

    def __init__(self, context_tokens: int = 24_000, **settings: Any) -> None:
        self.context_tokens = context_tokens
        self.endpoint = Endpoint(_settings(settings))

    def identity(self) -> str:
        """Model, sampling and prompt; not where it is reached."""
        asked = self.endpoint.settings.model_dump(include={"model", "temperature", "max_tokens"})
        return "openai " + hashlib.sha256(json.dumps([asked, self.context_tokens]).encode()).hexdigest()[:16]

    def record_to(self, path: Path) -> None:
        """Keep a transcript of every exchange; what it holds already is not asked again."""
        self.endpoint.record_to(path)

    def usage(self) -> dict[str, float]:
        """Tokens and dollars so far."""
        endpoint = self.endpoint
        return {"tokens_in": endpoint.tokens_in, "tokens_out": endpoint.tokens_out, "dollars": endpoint.spent}

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """One question, one kernel; an answer without code is a kernel without source."""
        nonce = int(rng.integers(2**31))
        reply = self.endpoint.chat(messages(task, context, start, self.context_tokens), nonce)
        return Kernel(kernel_source(reply.text, start.kernel.source if start else ""), self.language)


class ReplayAuthor(ModelAuthor):
    """Answers from a transcript alone: the same run again, without the endpoint."""

    def __init__(self, transcript: str, context_tokens: int = 24_000, **settings: Any) -> None:
        super().__init__(context_tokens, **settings)
        self.endpoint.transcript = Transcript(Path(transcript), read_only=True)

    def record_to(self, path: Path) -> None:
        """Nothing new can be said, so there is nothing to record."""


def _settings(given: dict[str, Any]) -> EndpointSettings:
    try:
        return EndpointSettings(**given)
    except ValidationError as error:
        first = error.errors()[0]
        name = ".".join(str(part) for part in first["loc"])
        raise ConfigError(f"author openai: {name}: {first['msg']} (for example --model gpt-5)") from error
