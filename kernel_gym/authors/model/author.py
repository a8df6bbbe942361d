"""The authors `openai`, which asks a model, and `replay`, which answers from a transcript."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, get_args

import numpy as np

from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.authors.model.answer import kernel_source
from kernel_gym.authors.model.prompt import LANGUAGES, VERSION, VERSIONS, messages, prompts_digest
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Form, Kernel
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings, LengthRefused, Reply
from kernel_gym.llm.transcript import Transcript
from kernel_gym.tasks.task import Task

#: Settings that only authors with a model on this machine have; they do not affect requests.
LOCAL_SETTINGS = frozenset({"threads", "gpu_layers", "batch_size", "torch_device"})


class ModelAuthor:
    """An author that asks a language model for every kernel.

    Args:
        context_tokens: The longest prompt, in tokens. Notes that do not fit are cut or left out.
        language: The language to write, `ascendc` or `cuda`.
        prompt_version: The version of the prompts, a number in `prompt.VERSIONS`.
        submission: The form of the kernels: `file`, or `bundle` for operator projects in Ascend C.
        **settings: The endpoint's settings, such as `model`, `base_url` and `temperature`; see `EndpointSettings`.

    Raises:
        ConfigError: There is no prompt for the language, or a setting is invalid.
    """

    language = "ascendc"
    #: How many requests the vector environment sends at once by default.
    writers = 8

    def __init__(
        self,
        context_tokens: int = 24_000,
        language: str = "ascendc",
        prompt_version: int = VERSION,
        submission: Form = "file",
        **settings: Any,
    ) -> None:
        if language not in LANGUAGES:
            raise ConfigError(f"author: there is no prompt for {language!r}; known: {', '.join(LANGUAGES)}")
        if submission not in get_args(Form) or (submission == "bundle" and language != "ascendc"):
            raise ConfigError(f"author: submission is file, or bundle for ascendc, not {submission!r} for {language}")
        self.language, self.submission = language, submission
        if not isinstance(context_tokens, int) or context_tokens < 1:
            raise ConfigError(f"author: context_tokens is a number of tokens, not {context_tokens!r}")
        if prompt_version not in VERSIONS:
            raise ConfigError(f"author: prompt_version is one of {VERSIONS}, not {prompt_version!r}")
        self.context_tokens, self.prompt_version = context_tokens, prompt_version
        self.endpoint = self._make_endpoint(settings)

    def _make_endpoint(self, settings: dict[str, Any]) -> Endpoint:
        return Endpoint(EndpointSettings.from_options(settings, "author"))

    def identity(self) -> str:
        """Return a string that changes with the model, the sampling and the prompts, but not with the address."""
        prompts = prompts_digest(self.prompt_version, self.submission)
        deciding = [self.endpoint.settings.answer_settings(), self.context_tokens, self.language, prompts]
        return "openai " + hashlib.sha256(json.dumps(deciding, sort_keys=True).encode()).hexdigest()[:16]

    def record_to(self, path: Path) -> None:
        """Keep a transcript of every exchange at `path`; requests that it already holds are answered from it."""
        self.endpoint.record_to(path)

    def usage(self) -> dict[str, float]:
        """Return the tokens and dollars used so far."""
        return self.endpoint.usage()

    @property
    def replays(self) -> bool:
        """Whether all answers come from the transcript of another run, so that nothing is paid."""
        return self.endpoint.replays

    def check(self) -> None:
        """Try key and model before the work begins; raise a ConfigError if the endpoint refuses them."""
        self.endpoint.check()

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        """Ask the model once for a kernel.

        Args:
            task: The task to write a kernel for.
            context: The notes that the model is shown.
            start: The kernel to refine; None to draft a new one.
            rng: Draws the nonce that distinguishes this request from the same request in another attempt.

        Returns:
            The kernel in the answer; its source is empty if the answer has no code.

        Raises:
            InfrastructureError: The endpoint failed.
            ConfigError: The endpoint refused the request, or the spending limit is reached. If it refused the length,
                the message says what to set `context_tokens` to.
        """
        try:
            reply = self.endpoint.chat(self.messages(task, context, start), nonce_of(rng))
        except LengthRefused as error:
            raise ConfigError(f"{error}; {self._shorter(error.limit)}") from error
        return self._kernel(reply, start)

    def messages(self, task: Task, context: Context, start: StartPoint | None) -> list[dict[str, str]]:
        """Return the messages that `write` sends for its arguments."""
        return messages(task, context, start, self.context_tokens, self.language, self.prompt_version, self.submission)

    def _kernel(self, reply: Reply, start: StartPoint | None) -> Kernel:
        source = kernel_source(reply.text, start.kernel.source if start else "")
        return Kernel(source, self.language, form=self.submission if source else "file")

    def _shorter(self, limit: int | None) -> str:
        """Return which options to set, and to what, so that prompt and reply fit into the model's limit."""
        reply = self.endpoint.settings.max_tokens
        if limit is None:
            return f"lower author_options.context_tokens, now {self.context_tokens}, or max_tokens, now {reply}"
        options = [] if 2 * reply <= limit else [f"max_tokens={limit // 2}"]  # the prompt gets at least half
        reply = min(reply, limit // 2)
        options.insert(0, f"context_tokens={(limit - reply) * 9 // 10}")  # the prompt is measured by its characters
        return " ".join(("run with", *(f"--set env.author_options.{option}" for option in options)))


class ReplayAuthor(ModelAuthor):
    """An author that answers from a transcript alone: it repeats a run without the endpoint.

    Args:
        transcript: The transcript file of the run to repeat; one that ends in `.xz` is compressed.
        context_tokens: The longest prompt, in tokens; it must be the recorded run's.
        language: The language of the recorded run.
        prompt_version: The version of the recorded run's prompts.
        submission: The form of the recorded run's kernels.
        **settings: Settings of the endpoint; those that requests depend on default to the transcript's. Settings of
            local models are accepted and not used.

    Raises:
        ConfigError: The transcript cannot be read, or a setting is invalid.
    """

    writers = 1

    def __init__(
        self,
        transcript: str,
        context_tokens: int = 24_000,
        language: str = "ascendc",
        prompt_version: int = VERSION,
        submission: Form = "file",
        **settings: Any,
    ) -> None:
        recorded = Transcript(Path(transcript), read_only=True)
        first = next(iter(recorded), {"request": {"model": "none"}})["request"]
        defaults = {name: first[name] for name in ("model", "temperature", "max_tokens", "extra") if name in first}
        if str(settings.get("model", "")).endswith(".gguf"):
            del settings["model"]  # requests name the file without its folder
        settings = {name: value for name, value in settings.items() if name not in LOCAL_SETTINGS}
        super().__init__(context_tokens, language, prompt_version, submission, **defaults | settings)
        self.endpoint.use_transcript(recorded)

    def record_to(self, path: Path) -> None:
        """Do nothing: every answer is already in the transcript."""


def nonce_of(rng: np.random.Generator) -> int:
    """Draw the number that distinguishes equal requests of different attempts; servers use it as the seed."""
    return int(rng.integers(2**31))
