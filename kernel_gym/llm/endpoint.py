"""A client for OpenAI-compatible endpoints: chat and embeddings.

The environment variables `OPENAI_API_KEY` and `OPENAI_BASE_URL` have their usual meaning. The openai package handles
retries, back-off and `Retry-After`. This client adds one clear line when nothing is configured, a check of key and
model before the work begins, a spending limit, a transcript that answers repeated requests, and the removal of the API
key from messages and files.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym import activity
from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.llm import credentials
from kernel_gym.llm.transcript import Transcript, key_of

Result = TypeVar("Result")

#: Characters per token; a low estimate for code, so that token counts are high estimates.
CHARACTERS_PER_TOKEN = 3.2
#: How to name the model on the command line, by its user; for error messages.
MODEL_OPTIONS = {
    "author": "--model NAME",
    "embedder": "--set env.embedder_options.model=NAME, in `kernel-gym memory` --embedder-option model=NAME",
    "inspection": "--set env.inspection.model=NAME",
}


class SpendingLimit(KernelGymError):
    """Raised when the spending limit is reached. Running again with a higher limit continues from there."""


class KeyRefused(ConfigError):
    """Raised if the endpoint refuses the API key."""


class LengthRefused(ConfigError):
    """Raised if the endpoint refuses a request because it is too long for the model.

    Args:
        message: What the endpoint said.
        limit: The tokens that request and reply may have together; None if the endpoint did not say.
    """

    def __init__(self, message: str, limit: int | None) -> None:
        super().__init__(message)
        self.limit = limit


class EndpointSettings(BaseModel):
    """Settings of a model endpoint.

    The replies depend on `model`, `temperature`, `max_tokens` and `extra` (see `answer_settings`). The other settings
    say how the endpoint is reached and paid.

    Args:
        model: Name of the model.
        temperature: Sampling temperature; None leaves it out of the request.
        max_tokens: The most tokens of a reply.
        extra: More fields of the request, sent as they are.
        base_url: Address of the endpoint; by default `OPENAI_BASE_URL`.
        timeout_s: Seconds to wait for a reply.
        retries: Retries of a failed request.
        stream: Whether to receive replies in pieces.
        send_seed: Whether to send the nonce as the request's seed.
        limit_name: Name of the request's field for `max_tokens`.
        price_in: Dollars per million tokens of a request.
        price_out: Dollars per million tokens of a reply.
        spending_limit: Dollars after which requests are refused; None for no limit.
        check: Whether a run tries key and model before it begins.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: str = Field(min_length=1)
    temperature: float | None = Field(0.7, ge=0)
    max_tokens: int = Field(8192, ge=1)
    extra: dict[str, Any] = Field(default_factory=dict)

    base_url: str | None = None
    timeout_s: float = Field(300.0, gt=0)
    retries: int = Field(5, ge=0)
    stream: bool = False
    send_seed: bool = True
    limit_name: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    price_in: float = Field(0.0, ge=0)
    price_out: float = Field(0.0, ge=0)
    spending_limit: float | None = Field(None, gt=0)
    check: bool = True

    @model_validator(mode="after")
    def _limit_needs_a_price(self) -> EndpointSettings:
        if self.spending_limit is not None and not self.price_in + self.price_out:
            raise ValueError("spending_limit needs price_in and price_out, in dollars for a million tokens")
        return self

    @classmethod
    def from_options(cls, options: dict[str, Any], user: str) -> EndpointSettings:
        """Make settings from a configuration's options.

        Args:
            options: Settings by name.
            user: The part that uses the endpoint, for error messages: `author`, `embedder` or `inspection`.

        Returns:
            The settings.

        Raises:
            ConfigError: If an option is unknown, missing, wrong or a secret; in one line.
        """
        credentials.reject_secrets(options)
        try:
            return cls(**options)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            missing = first["type"] == "missing" and user in MODEL_OPTIONS
            hint = f" (for example {MODEL_OPTIONS[user]})" if missing else ""
            message = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{user}: {name}: {message}{hint}" if name else f"{user}: {message}") from error

    def answer_settings(self) -> dict[str, Any]:
        """Return the settings that replies depend on, by name."""
        settings = self.model_dump(include={"model", "temperature", "max_tokens", "extra"})
        return settings if self.extra else {name: value for name, value in settings.items() if name != "extra"}

    def dollars(self, tokens_in: float, tokens_out: float) -> float:
        """Return the price of tokens in dollars."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


class Reply(BaseModel):
    """The reply to a chat request.

    Args:
        text: The text.
        finish: Why it ended, in the endpoint's words.
        tokens_in: Tokens of the request.
        tokens_out: Tokens of the reply.
    """

    model_config = ConfigDict(frozen=True)

    text: str
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0


class TokenCount:
    """Sums of tokens over exchanges."""

    def __init__(self, replies: Iterable[dict[str, Any]] = ()) -> None:
        self.tokens_in = self.tokens_out = 0
        for reply in replies:
            self.add(reply.get("tokens_in", 0), reply.get("tokens_out", 0))

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Add the tokens of an exchange."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out


class Endpoint:
    """Client of a model endpoint. It may be used from several threads at once.

    Args:
        settings: The endpoint's settings.
        transcript: Records exchanges and answers repeated requests; None for no record.

    Attributes:
        settings: The endpoint's settings.
        transcript: The transcript; None for no record.
        paid: Tokens paid for, with those in the transcript from before. So the spending limit holds for the whole run,
            however often it is resumed.
        answered: Tokens of all requests, each counted once, whether the endpoint or the transcript answered. So the
            figures are the same in a run, in its resumption and in its replay.
    """

    def __init__(self, settings: EndpointSettings, transcript: Transcript | None = None) -> None:
        self.settings = settings
        self.answered = TokenCount()
        self._counted: set[str] = set()
        self._lock = threading.Lock()
        self._client: Any = None
        self.use_transcript(transcript)

    def use_transcript(self, transcript: Transcript | None) -> None:
        """Answer repeated requests from a transcript and record new exchanges there.

        Args:
            transcript: The transcript. The exchanges of a read-only one do not count as paid. None for no record.
        """
        self.transcript = transcript
        own = transcript is not None and not transcript.read_only
        self.paid = TokenCount(exchange["reply"] for exchange in transcript or () if own)

    def record_to(self, path: Path) -> None:
        """Record exchanges in the file `path`; requests that it has already are answered from there."""
        self.use_transcript(Transcript(path))

    @property
    def spent(self) -> float:
        """Dollars paid so far."""
        return self.settings.dollars(self.paid.tokens_in, self.paid.tokens_out)

    @property
    def replays(self) -> bool:
        """Whether all answers come from the transcript of another run, so that nothing is paid."""
        return self.transcript is not None and self.transcript.read_only

    def usage(self) -> dict[str, float]:
        """Return tokens and dollars of the requests answered so far: `tokens_in`, `tokens_out`, `dollars`.

        If the requests are replayed, the tokens and dollars are those of the recorded run.
        """
        tokens_in, tokens_out = self.answered.tokens_in, self.answered.tokens_out
        dollars = self.settings.dollars(tokens_in, tokens_out)
        return {"tokens_in": tokens_in, "tokens_out": tokens_out, "dollars": dollars}

    def check(self) -> None:
        """Try key and model with a cheap request: the list of models and, if it does not have the model, one token.

        Failures that may pass, such as a busy server, are left to the requests of the run. Nothing is sent if the
        transcript has exchanges, because key and model worked then, or if `settings.check` is off.

        Raises:
            ConfigError: If no endpoint is configured, or it refuses the key or does not have the model.
        """
        if self.replays or self.transcript or not self.settings.check:
            return
        listed = self._listed_models()
        if self.settings.model in listed:
            return
        if refusal := self._try_model():
            near = get_close_matches(self.settings.model, listed, 1) or sorted(listed)[:5]
            hint = f"; it has {', '.join(near)}" if near else ""
            raise ConfigError(f"the endpoint refused the model {self.settings.model!r}: {refusal}{hint}")

    def _listed_models(self) -> list[str]:
        """Return the names of the endpoint's models; empty if it does not list them."""
        try:
            return self._guarded(lambda client: [str(model.id) for model in _once(client).models.list()])
        except KeyRefused:
            raise
        except (ConfigError, InfrastructureError, AttributeError, TypeError):  # many servers have no such list
            self._connect()  # raises if no endpoint is configured
            return []

    def _try_model(self) -> str:
        """Ask the model for one token; return why the endpoint refuses it, or an empty text."""
        ask = [{"role": "user", "content": "1"}]
        fields: dict[str, Any] = {"model": self.settings.model, "messages": ask, self.settings.limit_name: 1}
        try:
            answer = self._guarded(lambda client: _once(client).chat.completions.create(**fields))
        except KeyRefused:
            raise
        except ConfigError as error:  # some models refuse the limit of 1 instead
            return str(error) if _NO_SUCH_MODEL.search(str(error)) else ""
        except InfrastructureError:
            return ""
        with self._lock:
            used = getattr(answer, "usage", None)
            self.paid.add(getattr(used, "prompt_tokens", 0) or 0, getattr(used, "completion_tokens", 0) or 0)
        return ""

    def chat(self, messages: Sequence[dict[str, str]], nonce: int) -> Reply:
        """Send a chat request, or answer it from the transcript.

        Args:
            messages: The messages, each with `role` and `content`.
            nonce: Tells requests with the same messages apart; sent as the seed if `send_seed` is set.

        Returns:
            The reply, with the API key removed from its text.

        Raises:
            SpendingLimit: If the spending limit is reached.
            ConfigError: If no endpoint is configured, or it refuses the key or the request.
            InfrastructureError: If the endpoint fails or its answer cannot be read.
            KernelGymError: If a read-only transcript does not have the request.
        """
        request = self._request(messages, nonce)
        exchange = None if self.transcript is None else self.transcript.find(request)
        reply = self._ask(request) if exchange is None else Reply(**exchange["reply"])
        if exchange is None and self.transcript is not None:
            self.transcript.append(request, reply.model_dump())
        self._count(key_of(request), reply)
        return reply

    def has_answer(self, messages: Sequence[dict[str, str]], nonce: int) -> bool:
        """Return whether the transcript has the reply to a chat request."""
        return self.transcript is not None and self._request(messages, nonce) in self.transcript

    def embed(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """Embed texts.

        Args:
            texts: The texts.
            **options: More fields of the request.

        Returns:
            One row per text.

        Raises:
            SpendingLimit: If the spending limit is reached.
            ConfigError: If no endpoint is configured, or it refuses the key or the request.
            InfrastructureError: If the endpoint fails or returns other vectors than it should.
        """
        self._check_limit()
        answer = self._guarded(
            lambda client: client.embeddings.create(model=self.settings.model, input=list(texts), **options)
        )
        rows = sorted(getattr(answer, "data", None) or (), key=lambda row: int(row.index))
        if len(rows) != len(texts):
            raise InfrastructureError(f"the endpoint returned {len(rows)} embeddings for {len(texts)} texts")
        if len({len(row.embedding) for row in rows}) > 1:
            raise InfrastructureError("the endpoint returned embeddings of different lengths")
        used = getattr(answer.usage, "prompt_tokens", None) or estimate_tokens(*texts)
        with self._lock:
            self.paid.add(used, 0)
            self.answered.add(used, 0)
        return np.asarray([row.embedding for row in rows], np.float32)

    def _request(self, messages: Sequence[dict[str, str]], nonce: int) -> dict[str, Any]:
        """Return a request as transcripts store it."""
        return self.settings.answer_settings() | {"messages": list(messages), "nonce": nonce}

    def _ask(self, request: dict[str, Any]) -> Reply:
        self._check_limit()
        reply = self._guarded(lambda client: self._complete(client, request))
        if not reply.tokens_in:  # the server does not count tokens, but the spending limit needs a number
            tokens_in = estimate_tokens(*(message["content"] for message in request["messages"]))
            reply = reply.model_copy(update={"tokens_in": tokens_in, "tokens_out": estimate_tokens(reply.text)})
        with self._lock:
            self.paid.add(reply.tokens_in, reply.tokens_out)
        return reply.model_copy(update={"text": credentials.redact(reply.text)})

    def _complete(self, client: Any, request: dict[str, Any]) -> Reply:
        settings = self.settings
        arguments = {"model": settings.model, "messages": request["messages"], settings.limit_name: settings.max_tokens}
        if settings.temperature is not None:
            arguments["temperature"] = settings.temperature
        if settings.send_seed:
            arguments["seed"] = request["nonce"]
        if settings.extra:
            arguments["extra_body"] = settings.extra
        create = client.chat.completions.create
        if settings.stream:
            activity.prepare(f"{settings.model} reads the prompt")
            stream = create(**arguments, stream=True, stream_options={"include_usage": True})
            return _streamed_reply(stream, _WritingSpeed(settings.model, settings.max_tokens))
        return _complete_reply(create(**arguments))

    def _check_limit(self) -> None:
        limit = self.settings.spending_limit
        if limit is not None and self.spent >= limit:
            raise SpendingLimit(
                f"${self.spent:.2f} spent, the limit is ${limit:.2f}: raise spending_limit and run again to go on"
            )

    def _count(self, key: str, reply: Reply) -> None:
        with self._lock:
            if key not in self._counted:
                self._counted.add(key)
                self.answered.add(reply.tokens_in, reply.tokens_out)

    def _guarded(self, call: Callable[[Any], Result]) -> Result:
        """Make a call; turn its errors into ours, without the API key."""
        import openai

        try:
            return call(self._connect())
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise KeyRefused(
                f"the endpoint refused the key in {credentials.VARIABLE} (status {error.status_code})"
            ) from None
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
            if _TOO_LONG.search(str(error)):
                raise LengthRefused(f"the endpoint refused the length: {_line(error)}", _limit(str(error))) from None
            raise ConfigError(f"the endpoint refused the request: {_line(error)}") from None
        except openai.OpenAIError as error:
            raise InfrastructureError(f"the endpoint failed: {_line(error)}") from None
        except ValueError as error:  # the answer is not JSON
            raise InfrastructureError(f"the endpoint's answer can't be read: {_line(error)}") from None

    def _connect(self) -> Any:
        with self._lock:
            if self._client is None:
                import openai

                base_url = self.settings.base_url or os.environ.get("OPENAI_BASE_URL")
                if not credentials.api_key() and not base_url:
                    raise ConfigError(
                        f"no model endpoint: set {credentials.VARIABLE}, or OPENAI_BASE_URL for a server of your own "
                        "(for example http://localhost:8000/v1)"
                    )
                self._client = openai.OpenAI(
                    api_key=credentials.api_key() or "none",
                    base_url=base_url,
                    timeout=self.settings.timeout_s,
                    max_retries=self.settings.retries,
                )
            return self._client

    def __getstate__(self) -> dict[str, Any]:
        """Copy without lock and connection; a copy opens its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_client")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._client = threading.Lock(), None


def _once(client: Any) -> Any:
    """Return a client that does not retry and waits briefly."""
    return client.with_options(max_retries=0, timeout=20.0)


#: How servers say that they do not have a model.
_NO_SUCH_MODEL = re.compile(
    r"code: 404|(?:no such|unknown|invalid) model|model.{0,200}not.{0,20}(?:exist|found|valid)", re.IGNORECASE
)
#: How servers say that a request is too long for the model, and that the limit is a number of tokens.
_TOO_LONG = re.compile(r"context.?(length|size|window)|prompt is too long|too many tokens", re.IGNORECASE)
_LIMIT = re.compile(r"(?:context\D{0,40}?|n_ctx\D{0,4}|maximum\D{0,40}?|> )(\d{3,9})(?!\d)", re.IGNORECASE)


def _limit(refusal: str) -> int | None:
    """Return the tokens that a refusal names as the limit."""
    match = _LIMIT.search(refusal.replace(",", ""))
    return int(match.group(1)) if match else None


def estimate_tokens(*texts: str) -> int:
    """Return an estimate of the number of tokens of texts, a high one for code."""
    return int(sum(len(text) for text in texts) / CHARACTERS_PER_TOKEN)


def _complete_reply(answer: Any) -> Reply:
    """Return the reply of an answer that came in one piece."""
    if not getattr(answer, "choices", None):
        streams = isinstance(answer, str) and answer.lstrip().startswith("data:")
        raise InfrastructureError(
            "the endpoint streams its answers: set stream=true" if streams else "the endpoint answered without a choice"
        )
    choice = answer.choices[0]
    return _reply(choice.message.content or "", choice.finish_reason or "stop", answer.usage)


class _WritingSpeed:
    """Logs how fast a model writes, about once a second; a piece of a streamed reply is a token.

    Args:
        model: Name of the model.
        limit: The most tokens of the reply.
    """

    def __init__(self, model: str, limit: int) -> None:
        self._model, self._limit = model, limit
        self._first = self._latest = 0.0

    def __call__(self, pieces: int) -> None:
        """Log the speed after so many pieces."""
        now = time.monotonic()
        if pieces == 1:
            self._first = now
        if pieces == 1 or now - self._latest < 1.0:
            return
        self._latest = now
        speed = (pieces - 1) / max(now - self._first, 1e-6)
        left = max(0, self._limit - pieces) / speed
        activity.prepare(
            f"{self._model} writes: {pieces} tokens, {speed:.1f} a second, at most {left:.0f} s left for this answer"
        )


def _streamed_reply(stream: Iterable[Any], watch: Callable[[int], None]) -> Reply:
    """Return the reply of an answer that came in pieces."""
    pieces, finish, usage = [], "", None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices or ():
            pieces.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
            watch(len(pieces))
    if not finish:
        raise InfrastructureError("the endpoint's answer broke off")
    return _reply("".join(pieces), finish, usage)


def _reply(text: str, finish: str, usage: Any) -> Reply:
    tokens_in = getattr(usage, "prompt_tokens", 0) or 0
    return Reply(text=text, finish=finish, tokens_in=tokens_in, tokens_out=getattr(usage, "completion_tokens", 0) or 0)


def _line(error: Exception) -> str:
    """Return an error as one line of at most 300 characters, without the API key."""
    return credentials.redact(" ".join(str(error).split()))[:300]
