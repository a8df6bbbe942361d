"""Reads a GGUF file: the sizes of the model, its weights, its tokenizer and its chat template.

The file format is llama.cpp's. The package `gguf` reads it and expands the quantised weights.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.errors import ConfigError

if TYPE_CHECKING:
    from jinja2 import Template
    from tokenizers import Tokenizer

#: The architecture that batches are written for; llama.cpp runs all others.
ARCHITECTURE = "qwen2"
#: How Qwen2 splits a text before the pairs are merged.
_WORDS = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
#: Kinds of tokens that stand for themselves in a text: control tokens and those that a user defined.
_SPECIAL = (3, 4)


@dataclass(frozen=True)
class ModelSizes:
    """The sizes of a decoder.

    Args:
        layers: Number of layers.
        width: Width of a token's vector.
        heads: Heads of queries.
        kv_heads: Heads of keys and values.
        epsilon: Term of the normalisation that avoids a division by zero.
        theta: Base of the rotary position embedding.
        context: Longest text in tokens.
    """

    layers: int
    width: int
    heads: int
    kv_heads: int
    epsilon: float
    theta: float
    context: int

    @property
    def head_width(self) -> int:
        """Width of one head."""
        return self.width // self.heads


class GgufFile:
    """A model file.

    Args:
        path: The file.

    Raises:
        ConfigError: The package `gguf` is missing, or the file cannot be read or has another architecture.
    """

    def __init__(self, path: Path) -> None:
        try:
            from gguf import GGUFReader
        except ImportError as error:
            raise ConfigError("batches need the package gguf: pip install 'kernel_gym[batched]'") from error
        try:
            self._reader = GGUFReader(str(path))
        except (OSError, ValueError) as error:
            raise ConfigError(f"{path} is not a GGUF file that can be read: {error}") from error
        self.path = path
        if (architecture := self._field("general.architecture")) != ARCHITECTURE:
            raise ConfigError(
                f"{path} has the architecture {architecture}; batches are for {ARCHITECTURE}: use --author local"
            )

    def _field(self, name: str, default: Any = None) -> Any:
        field = self._reader.fields.get(name)
        return default if field is None else field.contents()

    def sizes(self) -> ModelSizes:
        """Return the sizes of the model."""
        attention = f"{ARCHITECTURE}.attention"
        return ModelSizes(
            layers=self._field(f"{ARCHITECTURE}.block_count"),
            width=self._field(f"{ARCHITECTURE}.embedding_length"),
            heads=self._field(f"{attention}.head_count"),
            kv_heads=self._field(f"{attention}.head_count_kv"),
            epsilon=self._field(f"{attention}.layer_norm_rms_epsilon"),
            theta=self._field(f"{ARCHITECTURE}.rope.freq_base", 10_000.0),
            context=self._field(f"{ARCHITECTURE}.context_length"),
        )

    def weights(self, threads: int) -> Iterator[tuple[str, NDArray[np.float32]]]:
        """Yield all weights by name, expanded to float32.

        Args:
            threads: Number of weights that are expanded at the same time.

        Yields:
            The name and the weight, outputs first.
        """
        from gguf.quants import dequantize

        def expanded(tensor: Any) -> tuple[str, NDArray[np.float32]]:
            return tensor.name, dequantize(tensor.data, tensor.tensor_type)

        with ThreadPoolExecutor(threads) as pool:
            yield from pool.map(expanded, self._reader.tensors)

    def tokenizer(self) -> Tokenizer:
        """Return the tokenizer."""
        from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

        words: Sequence[str] = self._field("tokenizer.ggml.tokens")
        kinds: Sequence[int] = self._field("tokenizer.ggml.token_type")
        merges = [tuple(pair.split(" ", 1)) for pair in self._field("tokenizer.ggml.merges")]
        vocabulary = {word: index for index, word in enumerate(words)}
        tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=merges))
        tokenizer.normalizer = normalizers.NFC()
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
            [
                pre_tokenizers.Split(Regex(_WORDS), "isolated"),
                pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
            ]
        )
        tokenizer.decoder = decoders.ByteLevel()
        special = [word for word, kind in zip(words, kinds, strict=True) if kind in _SPECIAL]
        tokenizer.add_special_tokens([AddedToken(word, normalized=False) for word in special])
        return tokenizer

    def end_tokens(self) -> frozenset[int]:
        """Return the tokens that end an answer."""
        names = ("tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id", "tokenizer.ggml.padding_token_id")
        return frozenset(int(token) for name in names if (token := self._field(name)) is not None)

    def prompt(self, messages: Sequence[dict[str, str]]) -> str:
        """Return messages as the text that the model continues, by the file's own chat template."""
        return self._template.render(messages=list(messages), add_generation_prompt=True)

    @cached_property
    def _template(self) -> Template:
        from jinja2.sandbox import ImmutableSandboxedEnvironment

        environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True)
        return environment.from_string(self._field("tokenizer.chat_template", ""))
