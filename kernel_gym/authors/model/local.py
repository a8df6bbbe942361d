"""The authors `local` and `batched`: a model file on this machine, behind llama.cpp or in batches on a GPU."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernel_gym.authors.contract import WriteRequest
from kernel_gym.authors.model.author import ModelAuthor, nonce_of
from kernel_gym.authors.model.prompt import VERSION
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import EndpointSettings
from kernel_gym.llm.local import installation
from kernel_gym.llm.local.endpoints import BatchedEndpoint, ServedEndpoint
from kernel_gym.llm.local.server import LlamaServer

#: The longest prompt and the longest answer, in tokens, that fit a small model and a machine without a GPU.
CONTEXT_TOKENS, MAX_TOKENS = 6_000, 1_536
#: What a small code model is sampled with; both authors send the same requests.
SAMPLING: dict[str, Any] = {"temperature": 0.7, "extra": {"top_k": 20, "top_p": 0.8}}
#: A machine without a GPU takes minutes for an answer; it comes in pieces, so that its speed can be shown.
PATIENCE: dict[str, Any] = {"timeout_s": 3600.0, "retries": 1, "check": True, "stream": True}


class LocalAuthor(ModelAuthor):
    """An author that asks a model file on this machine; it starts a llama.cpp server and stops it.

    Args:
        model: A `.gguf` file, or the name of an installed model; by default the one that `kernel-gym model install`
            fetches.
        context_tokens: The longest prompt, in tokens.
        language: The language to write, `ascendc` or `cuda`.
        prompt_version: The version of the prompts.
        threads: Threads of the server; 0 for one a core.
        gpu_layers: Layers on the GPU, if llama.cpp was built for one; -1 for all.
        **settings: Settings of the endpoint, such as `temperature` and `max_tokens`.

    Raises:
        ConfigError: A setting is invalid.
    """

    writers = 1

    def __init__(
        self,
        model: str = "",
        context_tokens: int = CONTEXT_TOKENS,
        language: str = "ascendc",
        prompt_version: int = VERSION,
        threads: int = 0,
        gpu_layers: int = -1,
        **settings: Any,
    ) -> None:
        self._model, self._threads, self._gpu_layers = model, threads, gpu_layers
        super().__init__(context_tokens, language, prompt_version, **local_settings(model, settings))

    def _make_endpoint(self, settings: dict[str, Any]) -> ServedEndpoint:
        parsed = EndpointSettings.from_options(settings, "author")
        # The prompt is measured by its characters, so there is room for a tenth more.
        context = self.context_tokens * 11 // 10 + parsed.max_tokens
        return ServedEndpoint(
            parsed,
            self._model,
            lambda file: LlamaServer(file, context, self.writers, self._threads, self._gpu_layers),
        )

    def close(self) -> None:
        """Stop the server; the next request starts it again."""
        if isinstance(self.endpoint, ServedEndpoint):
            self.endpoint.close()


class BatchedAuthor(ModelAuthor):
    """An author that writes many kernels at once with a model file on a GPU of this machine.

    Args:
        model: A `.gguf` file of the architecture Qwen2, or the name of an installed model.
        context_tokens: The longest prompt, in tokens.
        language: The language to write, `ascendc` or `cuda`.
        prompt_version: The version of the prompts.
        batch_size: Most answers under way at once; fewer if the GPU's memory is too small.
        torch_device: Where the model runs, `cuda` or `cpu`.
        **settings: Settings of the endpoint, such as `temperature` and `max_tokens`.

    Raises:
        ConfigError: A setting is invalid.
    """

    writers = 1
    endpoint: BatchedEndpoint

    def __init__(
        self,
        model: str = "",
        context_tokens: int = CONTEXT_TOKENS,
        language: str = "ascendc",
        prompt_version: int = VERSION,
        batch_size: int = 192,
        torch_device: str = "cuda",
        **settings: Any,
    ) -> None:
        if batch_size < 1:
            raise ConfigError(f"author: batch_size is a number of answers, not {batch_size!r}")
        self._model, self._rows, self._device = model, batch_size, torch_device
        super().__init__(context_tokens, language, prompt_version, **local_settings(model, settings))

    def _make_endpoint(self, settings: dict[str, Any]) -> BatchedEndpoint:
        parsed = EndpointSettings.from_options(settings, "author")
        return BatchedEndpoint(parsed, self._model, self._rows, self._device)

    def write_many(self, requests: Sequence[WriteRequest]) -> list[Kernel]:
        """Write a kernel for each request, in batches; see `Batching.write_many`."""
        questions = [
            (self.messages(request.task, request.context, request.start), nonce_of(request.rng)) for request in requests
        ]
        replies = self.endpoint.chat_many(questions)
        return [self._kernel(reply, request.start) for reply, request in zip(replies, requests, strict=True)]


def local_settings(model: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Return the endpoint's settings for a model on this machine; requests name the file without its folder."""
    return {"model": installation.model_name(model), "max_tokens": MAX_TOKENS, **SAMPLING, **PATIENCE, **settings}
