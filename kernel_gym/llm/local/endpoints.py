"""Clients of a model on this machine: one asks a llama.cpp server that it starts, the other writes batches on a GPU.

Both are used like the client of any endpoint, so transcripts, replay and limits are the same.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.errors import ConfigError
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings, Reply
from kernel_gym.llm.local import server
from kernel_gym.llm.local.installation import existing_file
from kernel_gym.llm.transcript import key_of

if TYPE_CHECKING:
    from kernel_gym.llm.local.batched_model import BatchedModel

Messages = Sequence[dict[str, str]]


class ServedEndpoint(Endpoint):
    """Client of a llama.cpp server, which it starts with the first request.

    Args:
        settings: Settings of the endpoint; `base_url` is not used.
        model: The model, a path or a name; see `installation.model_file`.
        make_server: Makes the server for a model file.
    """

    def __init__(
        self, settings: EndpointSettings, model: str, make_server: Callable[[Path], server.LlamaServer]
    ) -> None:
        super().__init__(settings)
        self.model, self._make_server = model, make_server
        self._server: server.LlamaServer | None = None

    def check(self) -> None:
        """Raise a ConfigError if the model or llama.cpp is not installed; nothing is started."""
        if not (self.replays or self.transcript):
            existing_file(self.model)
            server.check_installed()

    def _connect(self) -> Any:
        with self._lock:
            if self._server is None or not self._server.running:
                self.close()
                file = existing_file(self.model)
                server.check_installed()
                self._server = self._make_server(file)
                self.settings = self.settings.model_copy(update={"base_url": self._server.start()})
                self._client = None
        return super()._connect()

    def close(self) -> None:
        """Stop the server."""
        if self._server is not None:
            self._server.stop()
            self._server = None

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_server": None}


class BatchedEndpoint(Endpoint):
    """Answers many requests at once with a model on a GPU, in this process.

    Args:
        settings: Settings of the endpoint. `extra` may have `top_k` and `top_p`.
        model: The model, a path or a name; see `installation.model_file`.
        rows: Most answers under way at once.
        device: Where the model runs, `cuda` or `cpu`.
    """

    def __init__(self, settings: EndpointSettings, model: str, rows: int, device: str) -> None:
        super().__init__(settings)
        self.model, self.rows, self.device = model, rows, device
        self._batched: BatchedModel | None = None

    def check(self) -> None:
        """Raise a ConfigError if the model, the GPU or the package `gguf` is missing; nothing is loaded."""
        if not (self.replays or self.transcript):
            check_batched(self.model, self.device)

    def chat(self, messages: Messages, nonce: int) -> Reply:
        """Answer one request; see `Endpoint.chat`."""
        return self.chat_many([(messages, nonce)])[0]

    def chat_many(
        self,
        questions: Sequence[tuple[Messages, int]],
        progress: Callable[[int, int], None] = lambda done, tokens: None,
    ) -> list[Reply]:
        """Answer requests in batches. Each answer is in the transcript as soon as it has ended.

        Args:
            questions: Messages and nonce of each request.
            progress: Called after each new answer with their number and their tokens.

        Returns:
            The replies, in the order of the requests.

        Raises:
            ConfigError: The model is not installed, or a request is too long for it.
            KernelGymError: A read-only transcript does not have a request.
        """
        requests = [self._request(messages, nonce) for messages, nonce in questions]
        keys = [key_of(request) for request in requests]
        exchanges = [None if self.transcript is None else self.transcript.find(request) for request in requests]
        replies = {key: Reply(**exchange["reply"]) for key, exchange in zip(keys, exchanges, strict=True) if exchange}
        new = {key: request for key, request in zip(keys, requests, strict=True) if key not in replies}
        replies |= self._answered(new, progress)
        for key in keys:
            self._count(key, replies[key])
        return [replies[key] for key in keys]

    def _answered(self, requests: dict[str, dict[str, Any]], progress: Callable[[int, int], None]) -> dict[str, Reply]:
        """Return the replies to new requests, by key."""
        if not requests:
            return {}
        from kernel_gym.llm.local.batched_model import Prompt, Sampling

        model, settings = self.load(), self.settings
        temperature = 1.0 if settings.temperature is None else settings.temperature
        sampling = Sampling(temperature, settings.extra.get("top_k", 20), settings.extra.get("top_p", 0.8))
        keys = list(requests)
        prompts = [
            Prompt(model.encoded(request["messages"]), request["nonce"], settings.max_tokens)
            for request in requests.values()
        ]
        replies: dict[str, Reply] = {}
        tokens = 0
        for answer in model.answers(prompts, sampling):
            key, count = keys[answer.index], len(prompts[answer.index].tokens)
            reply = Reply(
                text=model.tokenizer.decode(answer.tokens),
                finish="stop" if answer.ended else "length",
                tokens_in=count,
                tokens_out=len(answer.tokens),
            )
            replies[key] = reply
            with self._lock:
                self.paid.add(reply.tokens_in, reply.tokens_out)
            if self.transcript is not None:
                self.transcript.append(requests[key], reply.model_dump())
            tokens += reply.tokens_out
            progress(len(replies), tokens)
        return replies

    def load(self) -> BatchedModel:
        """Return the model, read from its file the first time; that takes half a minute."""
        if self._batched is None:
            file = check_batched(self.model, self.device)
            from kernel_gym.llm.local.batched_model import BatchedModel
            from kernel_gym.llm.local.gguf_file import GgufFile

            threads = len(os.sched_getaffinity(0))
            self._batched = BatchedModel(GgufFile(file), self.rows, self.device, threads)
        return self._batched

    def __getstate__(self) -> dict[str, Any]:
        return super().__getstate__() | {"_batched": None}


def check_batched(model: str, device: str = "cuda") -> Path:
    """Return the file of a model that is to write in batches.

    Args:
        model: The model, a path or a name; see `installation.model_file`.
        device: Where the model is to run.

    Returns:
        The path.

    Raises:
        ConfigError: The model, the GPU or the package `gguf` is missing.
    """
    file = existing_file(model)
    if find_spec("gguf") is None:
        raise ConfigError("--author batched needs the package gguf: pip install 'kernel_gym[batched]'")
    import torch

    if device.startswith("cuda") and not torch.cuda.is_available():
        raise ConfigError("--author batched needs an NVIDIA GPU, and torch finds none; use --author local")
    return file
