"""Embeddings by a model endpoint: `--set env.embedder=endpoint --set env.embedder_options.model=NAME`.

Each text is sent once. Vectors are cached, and in a run they are written to its folder, from where resuming or
replaying reads them. This also makes such a run repeatable: servers round differently from call to call.
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

#: Text that is embedded to find the length of a vector.
_PROBE = "relu"


class EndpointEmbedder:
    """Embeds texts with a model endpoint.

    Args:
        dimensions: Length of the vectors, for models that can shorten them; None for the model's own.
        batch: Texts per request.
        characters: Texts are cut at this length, because models refuse longer ones.
        transcript: A file of recorded vectors to read from, without the endpoint.
        **settings: Settings of the endpoint, see `EndpointSettings`.

    Raises:
        ConfigError: If an option is wrong.
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
        self._transcript = None if transcript is None else Transcript(Path(transcript), read_only=True)
        self._vectors: dict[str, Vectors] = {}
        self._lock = threading.Lock()

    @property
    def dimension(self) -> int:
        """Length of a vector, found by embedding a short text."""
        return int(self.embed([_PROBE]).shape[1])

    def identity(self) -> str:
        """Return a name for the model and its settings, without the endpoint's address."""
        return f"endpoint-1/{self._endpoint.settings.model}/{self._dimensions or 'all'}/{self._characters}"

    def embed(self, texts: Sequence[str]) -> Vectors:
        """Embed texts, one unit row each.

        Raises:
            InfrastructureError: If the endpoint fails or returns unusable vectors.
        """
        if not texts:
            return np.zeros((0, self.dimension), np.float32)
        cut = [text[: self._characters] for text in texts]
        with self._lock:
            missing = [text for text in dict.fromkeys(cut) if text.strip() and not self._find(text)]
            for begin in range(0, len(missing), self._batch):
                self._ask(missing[begin : begin + self._batch])
        return np.stack([self._vectors[text] if text.strip() else np.zeros(self.dimension, np.float32) for text in cut])

    def record_to(self, path: Path) -> None:
        """Write vectors to a file and read those that it has; ignored while another file is replayed."""
        if self._transcript is None or not self._transcript.read_only:
            self._transcript = Transcript(path)

    def usage(self) -> dict[str, float]:
        """Return tokens and dollars paid by this process."""
        return self._endpoint.usage()

    @property
    def replays(self) -> bool:
        """Whether all vectors come from the file of another run, so that nothing is paid."""
        return self._transcript is not None and self._transcript.read_only

    def _find(self, text: str) -> bool:
        """Return whether the vector of a text is cached or in the transcript."""
        if text not in self._vectors and self._transcript is not None:
            exchange = self._transcript.find(self._request(text))
            if exchange is not None:
                self._vectors[text] = np.frombuffer(base64.b64decode(exchange["reply"]["vector"]), np.float32)
        return text in self._vectors

    def _ask(self, texts: Sequence[str]) -> None:
        options = {} if self._dimensions is None else {"dimensions": self._dimensions}
        rows = self._endpoint.embed(texts, **options)
        lengths = np.linalg.norm(rows, axis=1, keepdims=True)
        if rows.ndim != 2 or not np.isfinite(rows).all() or not (lengths > 0).all():
            raise InfrastructureError("the endpoint returned vectors that are zero or not finite")
        for text, vector in zip(texts, (rows / lengths).astype(np.float32), strict=True):
            self._vectors[text] = vector
            if self._transcript is not None:
                self._transcript.append(self._request(text), {"vector": base64.b64encode(vector.tobytes()).decode()})

    def _request(self, text: str) -> dict[str, Any]:
        """Return the request as the transcript stores it: with the text's digest, since the text is in the bank."""
        digest = hashlib.sha256(text.encode()).hexdigest()
        return {"model": self._endpoint.settings.model, "dimensions": self._dimensions, "text": digest}

    def __getstate__(self) -> dict[str, object]:
        """Copy the cached vectors; a copy has its own lock."""
        return {name: value for name, value in self.__dict__.items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lock = threading.Lock()
