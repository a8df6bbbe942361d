"""Embeddings by a model endpoint: `--set env.embedder=endpoint --set env.embedder_options.model=NAME`.

A text is asked about once: vectors are remembered, in a run they are kept in its folder, and resuming or replaying the
run reads them from there. That is also what makes such a run repeatable: servers round differently from call to call.
"""

from __future__ import annotations

import base64
import hashlib
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings
from kernel_gym.llm.transcript import Transcript
from kernel_gym.memory.embedding import Vectors

#: What is asked to learn the length of a vector.
_PROBE = "relu"


class EndpointEmbedder:
    """Asks an endpoint for vectors. `dimensions` shortens them where the model can; `batch` texts go into a request.

    Texts are cut at `characters`, since models refuse longer ones. `transcript` answers from a file, without the
    endpoint. The other settings are the endpoint's.
    """

    def __init__(
        self,
        dimensions: int | None = None,
        batch: int = 64,
        characters: int = 20_000,
        transcript: str | None = None,
        **settings: Any,
    ) -> None:
        if batch < 1 or characters < 1 or (dimensions is not None and dimensions < 1):
            raise ConfigError("embedder: dimensions, batch and characters are at least 1")
        self._dimensions, self._batch, self._characters = dimensions, batch, characters
        self._endpoint = Endpoint(EndpointSettings.from_options(settings, "embedder"))
        self._kept = None if transcript is None else Transcript(Path(transcript), read_only=True)
        self._known: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """Length of a vector; the endpoint is asked for one to find out."""
        return int(self.embed([_PROBE]).shape[1])

    def identity(self) -> str:
        """The model and what of its vectors is used; not where it is reached."""
        return f"endpoint-1/{self._endpoint.settings.model}/{self._dimensions or 'all'}/{self._characters}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """One unit row per text."""
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        cut = [text[: self._characters] for text in texts]
        with self._lock:
            missing = [text for text in dict.fromkeys(cut) if text.strip() and not self._recall(text)]
            for begin in range(0, len(missing), self._batch):
                self._ask(missing[begin : begin + self._batch])
        return np.stack([self._known[text] if text.strip() else np.zeros(self.dimension, np.float32) for text in cut])

    def record_to(self, path: Path) -> None:
        """Keep vectors in a file, and use what it holds already; not if another file is replayed."""
        if self._kept is None or not self._kept.read_only:
            self._kept = Transcript(path)

    def usage(self) -> dict[str, float]:
        """Tokens and dollars paid by this process."""
        return self._endpoint.usage()

    def _recall(self, text: str) -> bool:
        """Whether the vector of a text is at hand, or kept in the file."""
        if text not in self._known and self._kept is not None:
            exchange = self._kept.find(self._request(text))
            if exchange is not None:
                self._known[text] = np.frombuffer(base64.b64decode(exchange["reply"]["vector"]), np.float32)
        return text in self._known

    def _ask(self, texts: Sequence[str]) -> None:
        options = {} if self._dimensions is None else {"dimensions": self._dimensions}
        rows = self._endpoint.embed(texts, **options)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if rows.ndim != 2 or not np.isfinite(rows).all() or not (lengths > 0).all():
            raise InfrastructureError("the endpoint answered with vectors that are zero or not finite")
        for text, vector in zip(texts, (rows / lengths).astype(np.float32), strict=True):
            self._known[text] = vector
            if self._kept is not None:
                self._kept.append(self._request(text), {"vector": base64.b64encode(vector.tobytes()).decode()})

    def _request(self, text: str) -> dict[str, Any]:
        """The question as the file keeps it: the text's digest, since the text itself is in the bank."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"model": self._endpoint.settings.model, "dimensions": self._dimensions, "text": digest}

    def __getstate__(self) -> dict[str, object]:
        """Copies have a lock of their own and know what this one knows."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
