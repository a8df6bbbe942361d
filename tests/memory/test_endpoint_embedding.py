"""The endpoint embedder, tested with a real HTTP server."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from model_server import ModelServer, embedding, failing, serving

from kernel_gym import plugins
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.conformance import EmbedderConformance
from kernel_gym.memory.embedding import Embedder
from kernel_gym.memory.endpoint_embedding import EndpointEmbedder


def vector(text: str) -> list[float]:
    """Return a direction for every text, not of length one."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    return [float(value) for value in 3 * np.random.default_rng(seed).normal(size=24)]


@pytest.fixture(scope="module")
def server() -> Iterator[ModelServer]:
    with serving(embedding(vector, backwards=True)) as running:
        yield running


@pytest.fixture(autouse=True)
def _endpoint(server: ModelServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-embedding-0123456789")
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.requests.clear()


class TestEndpointEmbedder(EmbedderConformance):
    def make(self) -> Embedder:
        return EndpointEmbedder(model="e")


def asked(server: ModelServer) -> list[str]:
    return [text for body in server.requests for text in body["input"]]


def test_it_is_a_plug_in_with_options() -> None:
    assert plugins.load("kernel_gym.embedders", "endpoint") is EndpointEmbedder
    embedder = factories.embedder(Options(embedder="endpoint", embedder_options={"model": "e", "dimensions": 8}))
    assert embedder.identity() == "endpoint-1/e/8/20000"
    with pytest.raises(ConfigError, match="embedder: model"):
        factories.embedder(Options(embedder="endpoint"))


def test_rows_are_in_the_order_of_the_texts(server: ModelServer) -> None:
    rows = EndpointEmbedder(model="e").embed(["a", "b", "a", ""])
    for row, text in zip(rows, ["a", "b", "a"], strict=False):
        expected = np.asarray(vector(text))
        assert np.allclose(row, expected / np.linalg.norm(expected), atol=1e-6)
    assert not rows[3].any()


def test_every_text_is_requested_once_and_in_batches(server: ModelServer) -> None:
    embedder = EndpointEmbedder(model="e", batch=4)
    texts = [f"text {i % 10}" for i in range(30)]
    embedder.embed(texts)
    embedder.embed(texts)
    assert [len(body["input"]) for body in server.requests] == [4, 4, 2]
    assert embedder.usage()["tokens_in"] == 50


def test_a_file_answers_for_the_endpoint(server: ModelServer, tmp_path: Path) -> None:
    path, texts = tmp_path / "embeddings.jsonl", ["one", "two"]
    first = EndpointEmbedder(model="e")
    first.record_to(path)
    rows = first.embed(texts)
    server.requests.clear()
    again = EndpointEmbedder(model="e")
    again.record_to(path)
    assert np.array_equal(again.embed([*texts, "three"])[:2], rows)
    assert asked(server) == ["three"]
    replay = EndpointEmbedder(model="e", transcript=str(path))
    replay.record_to(tmp_path / "other.jsonl")
    assert np.array_equal(replay.embed(texts), rows)
    assert not (tmp_path / "other.jsonl").exists()
    with pytest.raises(KernelGymError, match="no answer"):
        replay.embed(["four"])
    assert "one" not in path.read_text().replace('"model": "e"', "")


def test_long_texts_are_cut(server: ModelServer) -> None:
    EndpointEmbedder(model="e", characters=10, dimensions=24).embed(["x" * 100])
    assert asked(server) == ["x" * 10]
    assert server.requests[0]["dimensions"] == 24


@pytest.mark.parametrize(
    "behaviour",
    [
        failing(500),
        embedding(lambda text: [0.0, 0.0]),
        embedding(lambda text: [float("nan"), 1.0]),
        embedding(lambda text: [1.0] * len(text)),
    ],
    ids=["500", "zero", "nan", "ragged"],
)
def test_an_unusable_reply_is_a_one_line_error(behaviour: object) -> None:
    with serving(behaviour) as broken, pytest.raises(InfrastructureError) as error:  # type: ignore[arg-type]
        EndpointEmbedder(model="e", base_url=broken.url, retries=0).embed(["a", "bc"])
    assert "\n" not in str(error.value)


def test_a_bank_keeps_its_vectors_under_the_models_name(tmp_path: Path, server: ModelServer) -> None:
    from kernel_gym.memory.item import Kind, MemoryItem

    with MemoryBank(tmp_path / "bank.sqlite", EndpointEmbedder(model="e")) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "title", "text")])
    server.requests.clear()
    with MemoryBank(tmp_path / "bank.sqlite", EndpointEmbedder(model="e")) as bank:
        assert len(bank.retrieve("text", 1)) == 1
    assert "title" not in " ".join(asked(server))
