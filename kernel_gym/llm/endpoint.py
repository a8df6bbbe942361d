"""One client for any OpenAI-compatible endpoint: chat and embeddings.

The usual environment variables: `OPENAI_API_KEY`, `OPENAI_BASE_URL`. Retries, back-off and `Retry-After` are the openai
package's. What is ours: one clear line when nothing is configured, a limit on spending, a transcript that answers what
has been asked before, and that no key ever reaches a message or a file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.llm import credentials
from kernel_gym.llm.transcript import Transcript, key_of

Result = TypeVar("Result")

#: Characters of a token, on the low side for code.
CHARACTERS_PER_TOKEN = 3.2
#: How the model is named on command lines, by whose it is.
NAMING = {
    "author": "--model NAME",
    "embedder": "--set env.embedder_options.model=NAME, in scripts/memory.py --embedder-option model=NAME",
    "inspection": "--set env.inspection.model=NAME",
}


class SpendingLimit(KernelGymError):
    """The limit on spending is reached; running again with a higher one goes on where this stopped."""


class EndpointSettings(BaseModel):
    """How a model is asked: first what decides the answers, then how it is reached and paid.

    Prices are dollars for a million tokens. `temperature: null` and `send_seed: false` leave those out of the request,
    and `limit_name` renames the limit of the answer, for endpoints that refuse the usual ones; `extra` is sent as is.
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

    @model_validator(mode="after")
    def _limit_needs_a_price(self) -> EndpointSettings:
        if self.spending_limit is not None and not self.price_in + self.price_out:
            raise ValueError("spending_limit needs price_in and price_out, in dollars for a million tokens")
        return self

    @classmethod
    def from_options(cls, given: dict[str, Any], whose: str) -> EndpointSettings:
        """Settings from options; what is wrong with them in one line."""
        credentials.reject_secrets(given)
        try:
            return cls(**given)
        except ValidationError as error:
            first = error.errors()[0]
            name = ".".join(str(part) for part in first["loc"])
            hint = f" (for example {NAMING[whose]})" if first["type"] == "missing" and whose in NAMING else ""
            said = first["msg"].removeprefix("Value error, ")
            raise ConfigError(f"{whose}: {name}: {said}{hint}" if name else f"{whose}: {said}") from error

    def answer_settings(self) -> dict[str, Any]:
        """The settings that answers depend on."""
        kept = self.model_dump(include={"model", "temperature", "max_tokens", "extra"})
        return kept if self.extra else {name: value for name, value in kept.items() if name != "extra"}

    def dollars(self, tokens_in: float, tokens_out: float) -> float:
        """What so many tokens cost."""
        return (tokens_in * self.price_in + tokens_out * self.price_out) / 1e6


class Reply(BaseModel):
    """What came back: the text, why it ended, what it cost."""

    model_config = ConfigDict(frozen=True)

    text: str
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0


class TokenCount:
    """Tokens, counted from several threads."""

    def __init__(self, replies: Iterable[dict[str, Any]] = ()) -> None:
        self.tokens_in = self.tokens_out = 0
        for reply in replies:
            self.add(reply.get("tokens_in", 0), reply.get("tokens_out", 0))

    def add(self, tokens_in: int, tokens_out: int) -> None:
        """Count an exchange."""
        self.tokens_in += tokens_in
        self.tokens_out += tokens_out


class Endpoint:
    """Asks a model; used from several threads at once.

    `paid` counts everything that was paid for, with what the transcript held when it was opened: the limit on spending
    is one for the run, however often it is resumed. `answered` counts each question once, whoever answered it: the same
    figures in a run, in its resumption and in its replay.
    """

    def __init__(self, settings: EndpointSettings, transcript: Transcript | None = None) -> None:
        self.settings = settings
        self.answered = TokenCount()
        self._asked: set[str] = set()
        self._lock = threading.Lock()
        self._client: Any = None
        self.use_transcript(transcript)

    def use_transcript(self, transcript: Transcript | None) -> None:
        """Answer from a transcript and keep new exchanges there; one that is only read was paid by someone else."""
        self.transcript = transcript
        own = transcript is not None and not transcript.read_only
        self.paid = TokenCount(exchange["reply"] for exchange in transcript or () if own)

    def record_to(self, path: Path) -> None:
        """Keep the transcript in a file; what it holds already is answered from there."""
        self.use_transcript(Transcript(path))

    @property
    def spent(self) -> float:
        """Dollars paid so far."""
        return self.settings.dollars(self.paid.tokens_in, self.paid.tokens_out)

    def usage(self) -> dict[str, float]:
        """Tokens and dollars of the questions answered so far."""
        tokens_in, tokens_out = self.answered.tokens_in, self.answered.tokens_out
        dollars = self.settings.dollars(tokens_in, tokens_out)
        return {"tokens_in": tokens_in, "tokens_out": tokens_out, "dollars": dollars}

    def chat(self, messages: Sequence[dict[str, str]], nonce: int) -> Reply:
        """One answer. The same messages with another nonce are another question."""
        request = self._request(messages, nonce)
        known = None if self.transcript is None else self.transcript.find(request)
        reply = self._ask(request) if known is None else Reply(**known["reply"])
        if known is None and self.transcript is not None:
            self.transcript.append(request, reply.model_dump())
        self._count(key_of(request), reply)
        return reply

    def has_answer(self, messages: Sequence[dict[str, str]], nonce: int) -> bool:
        """Whether the transcript has the answer already."""
        return self.transcript is not None and self._request(messages, nonce) in self.transcript

    def embed(self, texts: Sequence[str], **options: Any) -> NDArray[np.float32]:
        """Embeddings of texts, one row each."""
        self._check_limit()
        answer = self._guarded(
            lambda client: client.embeddings.create(model=self.settings.model, input=list(texts), **options)
        )
        rows = sorted(getattr(answer, "data", None) or (), key=lambda row: int(row.index))
        if len(rows) != len(texts):
            raise InfrastructureError(f"the endpoint answered with {len(rows)} embeddings for {len(texts)} texts")
        if len({len(row.embedding) for row in rows}) > 1:
            raise InfrastructureError("the endpoint answered with embeddings of different lengths")
        used = getattr(answer.usage, "prompt_tokens", None) or estimate_tokens(*texts)
        with self._lock:
            self.paid.add(used, 0)
            self.answered.add(used, 0)
        return np.asarray([row.embedding for row in rows], np.float32)

    def _request(self, messages: Sequence[dict[str, str]], nonce: int) -> dict[str, Any]:
        """A question as transcripts keep it."""
        return self.settings.answer_settings() | {"messages": list(messages), "nonce": nonce}

    def _ask(self, request: dict[str, Any]) -> Reply:
        self._check_limit()
        reply = self._guarded(lambda client: self._complete(client, request))
        if not reply.tokens_in:  # a server that doesn't count: the limit on spending needs a figure
            asked = estimate_tokens(*(message["content"] for message in request["messages"]))
            reply = reply.model_copy(update={"tokens_in": asked, "tokens_out": estimate_tokens(reply.text)})
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
            return _gathered(create(**arguments, stream=True, stream_options={"include_usage": True}))
        return _whole(create(**arguments))

    def _check_limit(self) -> None:
        limit = self.settings.spending_limit
        if limit is not None and self.spent >= limit:
            raise SpendingLimit(
                f"${self.spent:.2f} spent, the limit is ${limit:.2f}: raise spending_limit and run again to go on"
            )

    def _count(self, key: str, reply: Reply) -> None:
        with self._lock:
            if key not in self._asked:
                self._asked.add(key)
                self.answered.add(reply.tokens_in, reply.tokens_out)

    def _guarded(self, call: Callable[[Any], Result]) -> Result:
        """Make a call; its failures in our terms, without the key."""
        import openai

        try:
            return call(self._connect())
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ConfigError(
                f"the endpoint refused the key in {credentials.VARIABLE} (status {error.status_code})"
            ) from None
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise ConfigError(f"the endpoint refused the request: {_line(error)}") from None
        except openai.OpenAIError as error:
            raise InfrastructureError(f"the endpoint failed: {_line(error)}") from None
        except ValueError as error:  # an answer that is not JSON
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
        """A copy opens a connection of its own."""
        return {name: value for name, value in self.__dict__.items() if name not in ("_lock", "_client")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock, self._client = threading.Lock(), None


def estimate_tokens(*texts: str) -> int:
    """About how many tokens texts have, on the high side for code."""
    return int(sum(len(text) for text in texts) / CHARACTERS_PER_TOKEN)


def _whole(answer: Any) -> Reply:
    """The reply in an answer that came in one piece."""
    if not getattr(answer, "choices", None):
        streams = isinstance(answer, str) and answer.lstrip().startswith("data:")
        raise InfrastructureError(
            "the endpoint streams its answers: set stream=true" if streams else "the endpoint answered without a choice"
        )
    choice = answer.choices[0]
    return _reply(choice.message.content or "", choice.finish_reason or "stop", answer.usage)


def _gathered(stream: Iterable[Any]) -> Reply:
    """The reply in an answer that came piece by piece."""
    pieces, finish, usage = [], "", None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices or ():
            pieces.append(choice.delta.content or "")
            finish = choice.finish_reason or finish
    if not finish:
        raise InfrastructureError("the endpoint's answer broke off")
    return _reply("".join(pieces), finish, usage)


def _reply(text: str, finish: str, usage: Any) -> Reply:
    tokens_in = getattr(usage, "prompt_tokens", 0) or 0
    return Reply(text=text, finish=finish, tokens_in=tokens_in, tokens_out=getattr(usage, "completion_tokens", 0) or 0)


def _line(error: Exception) -> str:
    """An error in one line of at most 300 characters, the key cut out."""
    return credentials.redact(" ".join(str(error).split()))[:300]
