"""Texts as vectors: the Embedder contract and the offline default.

`StaticEmbedder` needs no network, no model server and no torch: it reads the static token embeddings that the wordllama
package carries. Kernels and PyTorch modules are mostly boilerplate and compound names, so texts are first cut into
words (`words`), words that stand in every kernel count little, and repetition counts less than proportionally.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cache
from importlib.metadata import version
from math import sqrt
from pathlib import Path
from typing import Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from kernel_gym.errors import ConfigError
from kernel_gym.memory.lru import Lru
from kernel_gym.memory.words import TABLES, weight, words

Vectors: TypeAlias = NDArray[np.float32]


@runtime_checkable
class Embedder(Protocol):
    """Turns texts into unit vectors; similar texts into near ones. Named through `kernel_gym.embedders`."""

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def identity(self) -> str:
        """A string that changes whenever `embed` could answer differently; vectors are stored under it."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One row per text, float32, of length one (all zero only for a text with nothing to embed)."""


class StaticEmbedder:
    """Mean of static word vectors, weighted; about a millisecond for 2 kB and deterministic.

    A word's vector is the mean of its tokens' vectors plus `lexical` times a direction of its own, drawn from its hash:
    the first part makes related words similar, the second keeps different words apart that share tokens (`relu`,
    `gelu`) and rewards the exact word. `dimension` may go up to the stored 256; the embeddings were trained so that any
    leading part of them can be used alone, and 128 found as much as 256 in half the time. `remember` is how many texts
    are kept at hand.
    """

    def __init__(self, dimension: int = 128, lexical: float = 0.7, remember: int = 4096) -> None:
        if not 16 <= dimension <= 256:
            raise ConfigError(f"StaticEmbedder: dimension must lie in 16..256, not {dimension}")
        self._dimension = dimension
        self._lexical = lexical
        self._texts: Lru[str, Vectors] = Lru(remember)
        self._words: dict[str, Vectors] = {}

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def identity(self) -> str:
        """Names the token table and everything that changes how it is used."""
        return f"static-1/wordllama-{version('wordllama')}/{TABLES}/{self._dimension}/{self._lexical}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit row per text."""
        if not texts:
            return np.zeros((0, self._dimension), np.float32)
        return np.stack([self._remembered(text) for text in texts])

    def _remembered(self, text: str) -> Vectors:
        vector = self._texts.get(text)
        if vector is None:
            vector = self._vector(text)
            self._texts.put(text, vector)
        return vector

    def _vector(self, text: str) -> Vectors:
        counts = Counter(words(text))
        if not counts:
            return np.zeros(self._dimension, np.float32)
        self._learn_words(word for word in counts if word not in self._words)
        rows = np.stack([self._words[word] for word in counts])
        weights = np.array([weight(word) * sqrt(count) for word, count in counts.items()], np.float32)
        return _unit(weights @ rows)

    def _learn_words(self, new: Iterable[str]) -> None:
        fresh, table = list(new), _token_table()
        for word, tokens in zip(fresh, table.tokens(fresh), strict=True):
            mean = _unit(table.rows[tokens, : self._dimension].mean(axis=0, dtype=np.float32))
            self._words[word] = _unit(mean + np.float32(self._lexical) * _own_direction(word, self._dimension))

    def __getstate__(self) -> dict[str, object]:
        """Pickles and copies carry the settings, not what was remembered."""
        return self.__dict__ | {"_texts": Lru(self._texts.capacity), "_words": {}}


class _TokenTable:
    """The tokenizer and the token vectors that the wordllama package carries."""

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = _wordllama_folder()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self.rows: NDArray[np.float16] = load_file(folder / "weights" / "l2_supercat_256.safetensors")[
            "embedding.weight"
        ]

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Token ids of each text."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]


@cache
def _token_table() -> _TokenTable:
    # One a process: it takes a tenth of a second and 16 MB, and every embedder reads the same.
    return _TokenTable()


def _wordllama_folder() -> Path:
    # Found without importing it: its import is slow and its own loader asks a model hub.
    spec = importlib.util.find_spec("wordllama")
    if spec is None or spec.origin is None:
        raise ConfigError("the static embedder needs the wordllama package: pip install wordllama")
    return Path(spec.origin).parent


def _own_direction(word: str, dimension: int) -> Vectors:
    bits = np.frombuffer(hashlib.shake_128(word.encode()).digest((dimension + 7) // 8), np.uint8)
    signs = np.unpackbits(bits)[:dimension].astype(np.float32) * 2 - 1
    return signs / np.float32(np.sqrt(dimension))


def _unit(vector: Vectors) -> Vectors:
    norm = float(np.linalg.norm(vector))
    return (vector / norm if norm > 0 else vector).astype(np.float32)
