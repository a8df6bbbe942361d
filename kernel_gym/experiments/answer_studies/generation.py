"""Asks the model the questions of an answer study. An interrupted stage goes on where it stopped."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from kernel_gym.authors.model.local import PATIENCE
from kernel_gym.envs.concurrent_calls import concurrent_calls
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.answer_studies.study_folder import Messages, StudyFolder
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings
from kernel_gym.llm.local.endpoints import BatchedEndpoint, ServedEndpoint
from kernel_gym.llm.local.server import LlamaServer

#: How the model is asked: batches on a GPU, a llama.cpp server, or any endpoint.
BACKENDS = ("batched", "local", "openai")
#: Requests at once to an endpoint.
WRITERS = 8


@dataclass(frozen=True)
class Backend:
    """How the model is asked.

    Args:
        name: One of `BACKENDS`.
        model: The model file or the name of an installed model, for `batched` and `local`.
        batch_size: Answers under way at once, for `batched`.
        torch_device: Where the model runs, for `batched`.
        context_tokens: The longest prompt, for `local`.
    """

    name: str
    model: str = ""
    batch_size: int = 192
    torch_device: str = "cuda"
    context_tokens: int = 12_000

    def endpoint(self, request_settings: dict[str, Any]) -> Endpoint:
        """Return the client; what requests depend on is the study's."""
        if self.name == "openai":
            return Endpoint(EndpointSettings.from_options(request_settings, "author"))
        settings = EndpointSettings.from_options(request_settings | PATIENCE, "author")
        if self.name == "batched":
            return BatchedEndpoint(settings, self.model, self.batch_size, self.torch_device)
        if self.name == "local":
            context = self.context_tokens * 11 // 10 + settings.max_tokens
            return ServedEndpoint(settings, self.model, lambda file: LlamaServer(file, context))
        raise ConfigError(f"the author of an answer study is one of {', '.join(BACKENDS)}, not {self.name!r}")


@dataclass(frozen=True)
class Generated:
    """What a stage of generation did: new answers, their tokens, the seconds it took, and the questions left."""

    answers: int
    tokens: int
    seconds: float
    left: int

    @property
    def speed(self) -> float:
        """Tokens a second."""
        return self.tokens / self.seconds if self.seconds > 0 else 0.0


class _TimeUp(Exception):
    """Ends a stage at its time limit; answers that have ended are in the transcript."""


def generate(
    folder: StudyFolder,
    backend: Backend,
    minutes: float | None = None,
    limit: int | None = None,
    progress: Callable[[int, int, int, float], None] = lambda done, total, tokens, seconds: None,
) -> Generated:
    """Ask all questions that have no answer yet.

    Args:
        folder: The study's folder.
        backend: How the model is asked.
        minutes: Stop after this time; answers under way are lost.
        limit: Ask at most so many questions.
        progress: Called after each answer with the new answers, the missing ones at the start, tokens and seconds.

    Returns:
        What was done.
    """
    endpoint = backend.endpoint(folder.request_settings)
    endpoint.record_to(folder.transcript_file)
    prompts = folder.prompts()
    everything = [(prompts[question.prompt], question.nonce) for question in folder.questions()]
    missing = [(text, nonce) for text, nonce in everything if not endpoint.has_answer(text, nonce)]
    asked = missing[:limit]
    if asked and isinstance(endpoint, BatchedEndpoint):
        endpoint.load()  # not part of the speed
    started, state = time.monotonic(), [0, 0]

    def count(done: int, tokens: int) -> None:
        state[:] = done, tokens
        seconds = time.monotonic() - started
        progress(done, len(asked), tokens, seconds)
        if minutes is not None and seconds > 60 * minutes and done < len(asked):
            raise _TimeUp

    try:
        _ask(endpoint, asked, count)
    except _TimeUp:
        pass
    finally:
        if isinstance(endpoint, ServedEndpoint):
            endpoint.close()
    return Generated(state[0], state[1], time.monotonic() - started, len(missing) - state[0])


def _ask(endpoint: Endpoint, questions: list[tuple[Messages, int]], count: Callable[[int, int], None]) -> None:
    """Ask all questions, in batches or with several requests at once."""
    if not questions:
        return
    if isinstance(endpoint, BatchedEndpoint):
        endpoint.chat_many(questions, count)
        return
    at_once = 1 if isinstance(endpoint, ServedEndpoint) else WRITERS
    done = tokens = 0
    for start in range(0, len(questions), at_once):
        part = questions[start : start + at_once]
        replies = concurrent_calls(lambda question: endpoint.chat(*question), part, at_once)
        done, tokens = done + len(part), tokens + sum(reply.tokens_out for reply in replies)
        count(done, tokens)
