"""The Embedder contract and the offline default, `StaticEmbedder`.

`StaticEmbedder` needs no network, no model server and no torch: it reads the static token embeddings in the wordllama
package. Kernels and PyTorch modules are mostly boilerplate and compound names. So texts are split into words (`words`)
first, words that occur in every kernel have a small weight, and repetition counts by its square root.
"""

from __future__ import annotations

import hashlib
import importlib.util
from collections import Counter
from collections.abc import Sequence
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
    """Turns texts into unit vectors, similar texts into near ones.

    Plug-ins are named by an entry point of the group `kernel_gym.embedders` or as `module:Class`. They must pass
    `kernel_gym.memory.conformance`.
    """

    @property
    def dimension(self) -> int:
        """Length of a vector."""

    def identity(self) -> str:
        """Return a string that changes whenever `embed` could return other vectors.

        Returns:
            The string that vectors are stored under.
        """

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts.

        Args:
            texts: The texts.

        Returns:
            One float32 row of length one per text; all zero only for a text with nothing to embed.
        """


class StaticEmbedder:
    """Weighted mean of static word vectors; deterministic, about a millisecond for 2 kB.

    A word's vector is the mean of its tokens' vectors plus `lexical` times a direction derived from the word's hash.
    The first part makes related words similar. The second part separates words that share tokens (`relu`, `gelu`) and
    rewards the exact word.

    Args:
        dimension: Length of a vector, 16 to 256. Any leading part of the stored 256 numbers can be used alone; 128
            retrieved as well as 256 in half the time.
        lexical: Weight of the word's own direction.
        remember: Number of texts whose vectors are cached.

    Raises:
        ConfigError: If `dimension` is out of range, or, in `embed`, if wordllama is not installed.
    """

    def __init__(self, dimension: int = 128, lexical: float = 0.7, remember: int = 4096) -> None:
        if not 16 <= dimension <= 256:
            raise ConfigError(f"StaticEmbedder: dimension must lie in 16..256, not {dimension}")
        self._dimension = dimension
        self._lexical = lexical
        self._texts: Lru[str, Vectors] = Lru(remember)

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return self._dimension

    def identity(self) -> str:
        """Return a name for the token table and all settings that change the vectors."""
        return f"static-1/wordllama-{version('wordllama')}/{TABLES}/{self._dimension}/{self._lexical}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one unit row each."""
        if not texts:
            return np.zeros((0, self._dimension), np.float32)
        return np.stack([self._cached(text) for text in texts])

    def _cached(self, text: str) -> Vectors:
        vector = self._texts.get(text)
        if vector is None:
            vector = self._vector(text)
            self._texts.put(text, vector)
        return vector

    def _vector(self, text: str) -> Vectors:
        counts = Counter(words(text))
        if not counts:
            return np.zeros(self._dimension, np.float32)
        rows = self.word_vectors(list(counts))
        weights = np.array([weight(word) * sqrt(count) for word, count in counts.items()], np.float32)
        return _unit(weights @ rows)

    def word_vectors(self, words: Sequence[str]) -> Vectors:
        """Return the unit vectors of words.

        A text's vector is the sum of its words' vectors, each times its weight and the square root of its count.

        Args:
            words: The words, in lower case.

        Returns:
            One row for each word.
        """
        vectors = _vectors_of_words(self._dimension, self._lexical)
        self._add_words(vectors, [word for word in words if word not in vectors])
        return np.stack([vectors[word] for word in words])

    def _add_words(self, vectors: dict[str, Vectors], missing: Sequence[str]) -> None:
        table = _token_table()
        for word, tokens in zip(missing, table.tokens(missing), strict=True):
            mean = _unit(table.rows[tokens, : self._dimension].mean(axis=0, dtype=np.float32))
            vectors[word] = _unit(mean + np.float32(self._lexical) * _own_direction(word, self._dimension))

    def __getstate__(self) -> dict[str, object]:
        """Pickle the settings without the cache."""
        return self.__dict__ | {"_texts": Lru(self._texts.capacity)}


class _TokenTable:
    """The tokenizer and the token vectors in the wordllama package."""

    def __init__(self) -> None:
        from safetensors.numpy import load_file
        from tokenizers import Tokenizer

        folder = _wordllama_folder()
        self._tokenizer = Tokenizer.from_file(str(folder / "tokenizers" / "l2_supercat_tokenizer_config.json"))
        self.rows: NDArray[np.float16] = load_file(folder / "weights" / "l2_supercat_256.safetensors")[
            "embedding.weight"
        ]

    def tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """Return the token ids of each text."""
        return [encoding.ids for encoding in self._tokenizer.encode_batch(list(texts), add_special_tokens=False)]


@cache
def _vectors_of_words(dimension: int, lexical: float) -> dict[str, Vectors]:
    """Return the vectors computed so far in this process, which embedders of the same settings share."""
    return {}


@cache
def _token_table() -> _TokenTable:
    # One per process, shared by all embedders: it takes a tenth of a second and 16 MB.
    return _TokenTable()


def _wordllama_folder() -> Path:
    # Located without importing it: its import is slow and its own loader contacts a model hub.
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
