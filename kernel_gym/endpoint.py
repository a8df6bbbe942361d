"""One client for any OpenAI-compatible endpoint: chat and embeddings.

The usual environment variables: `OPENAI_API_KEY`, `OPENAI_BASE_URL`. Retries, back-off and `Retry-After` are the openai
package's. What is ours: one clear line when nothing is configured, a limit on spending, a transcript that answers what
has been asked before, and that no key ever reaches a message or a file.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.transcript import Transcript


class SpendingLimit(KernelGymError):
    """The limit on spending is reached; running again with a higher one goes on where this stopped."""


class EndpointSettings(BaseModel):
    """How a model is asked. Prices are dollars for a million tokens, for the cost figures and the limit."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str = Field(min_length=1)
    base_url: str | None = None
    temperature: float = Field(0.7, ge=0)
    max_tokens: int = Field(8192, ge=1)
    timeout_s: float = Field(300.0, gt=0)
    retries: int = Field(5, ge=0)
    price_in: float = Field(0.0, ge=0)
    price_out: float = Field(0.0, ge=0)
    spending_limit: float | None = Field(None, gt=0)


class Reply(BaseModel):
    """What came back: the text, why it ended, what it cost."""

    model_config = ConfigDict(frozen=True)

    text: str
    finish: str = "stop"
    tokens_in: int = 0
    tokens_out: int = 0


class Endpoint:
    """Asks a model; used from several threads at once."""

    def __init__(self, settings: EndpointSettings, transcript: Transcript | None = None) -> None:
        self.settings, self.transcript = settings, transcript
        self.tokens_in = self.tokens_out = 0
        self._lock = threading.Lock()
        self._client: Any = None

    @property
    def spent(self) -> float:
        """Dollars spent so far, replayed exchanges not counted."""
        return (self.tokens_in * self.settings.price_in + self.tokens_out * self.settings.price_out) / 1e6

    def record_to(self, path: Path) -> None:
        """Keep the transcript in a file; what it holds already is answered from there."""
        self.transcript = Transcript(path)

    def chat(self, messages: Sequence[dict[str, str]], nonce: int) -> Reply:
        """One answer. The same messages with another nonce are another question."""
        request = {
            "model": self.settings.model,
            "temperature": self.settings.temperature,
            "max_tokens": self.settings.max_tokens,
            "messages": list(messages),
            "nonce": nonce,
        }
        known = None if self.transcript is None else self.transcript.find(request)
        if known is not None:
            return Reply(**known["reply"])
        if self.transcript is not None and self.transcript.read_only:
            raise KernelGymError(
                f"{self.transcript.path} has no answer to this request: it was recorded with other code or settings"
            )
        reply = self._ask(request)
        if self.transcript is not None:
            self.transcript.append(request, reply.model_dump())
        return reply

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeddings of texts, one row each."""
        answer = self._guarded(lambda client: client.embeddings.create(model=self.settings.model, input=list(texts)))
        self._count(answer.usage)
        return np.asarray([row.embedding for row in answer.data], np.float32)

    def _ask(self, request: dict[str, Any]) -> Reply:
        self._check_limit()
        answer = self._guarded(
            lambda client: client.chat.completions.create(
                model=request["model"],
                messages=request["messages"],
                temperature=request["temperature"],
                max_tokens=request["max_tokens"],
                seed=request["nonce"],
            )
        )
        if not getattr(answer, "choices", None):
            raise InfrastructureError("the endpoint answered without a choice")
        self._count(answer.usage)
        choice, usage = answer.choices[0], answer.usage
        return Reply(
            text=choice.message.content or "",
            finish=choice.finish_reason or "stop",
            tokens_in=usage.prompt_tokens if usage else 0,
            tokens_out=usage.completion_tokens if usage else 0,
        )

    def _check_limit(self) -> None:
        limit = self.settings.spending_limit
        if limit is not None and self.spent >= limit:
            raise SpendingLimit(
                f"${self.spent:.2f} spent, the limit is ${limit:.2f}: raise spending_limit and run again to go on"
            )

    def _count(self, usage: Any) -> None:
        with self._lock:
            self.tokens_in += getattr(usage, "prompt_tokens", 0) or 0
            self.tokens_out += getattr(usage, "completion_tokens", 0) or 0

    def _guarded(self, call: Any) -> Any:
        """Make a call; its failures in our terms, without the key."""
        import openai

        try:
            return call(self._connect())
        except (openai.AuthenticationError, openai.PermissionDeniedError) as error:
            raise ConfigError(f"the endpoint refused the key in OPENAI_API_KEY (status {error.status_code})") from None
        except (openai.NotFoundError, openai.BadRequestError, openai.UnprocessableEntityError) as error:
            raise ConfigError(f"the endpoint refused the request: {self._scrubbed(error)}") from None
        except openai.OpenAIError as error:
            raise InfrastructureError(f"the endpoint failed: {self._scrubbed(error)}") from None
        except ValueError as error:  # an answer that is not JSON
            raise InfrastructureError(f"the endpoint's answer can't be read: {self._scrubbed(error)}") from None

    def _connect(self) -> Any:
        with self._lock:
            if self._client is None:
                import openai

                base_url = self.settings.base_url or os.environ.get("OPENAI_BASE_URL")
                key = os.environ.get("OPENAI_API_KEY")
                if not key and not base_url:
                    raise ConfigError(
                        "no model endpoint: set OPENAI_API_KEY, or OPENAI_BASE_URL for a server of your own "
                        "(for example http://localhost:8000/v1)"
                    )
                self._client = openai.OpenAI(
                    api_key=key or "none",
                    base_url=base_url,
                    timeout=self.settings.timeout_s,
                    max_retries=self.settings.retries,
                )
            return self._client

    def _scrubbed(self, error: Exception) -> str:
        """An error in one line of at most 300 characters, the key cut out."""
        text = " ".join(str(error).split())
        key = os.environ.get("OPENAI_API_KEY")
        return (text.replace(key, "[key]") if key else text)[:300]
