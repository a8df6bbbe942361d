"""Tests of the server that answers the requests of several processes in one batch."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Thread

import pytest

from kernel_gym.llm.endpoint import Endpoint, EndpointSettings, LengthRefused, Reply

pytest.importorskip("gguf", reason="pip install 'kernel_gym[batched]'")

from tiny_model import write_tiny_model

from kernel_gym.llm.local.batch_server import BatchQueue, BatchServer
from kernel_gym.llm.local.batched_model import BatchedModel
from kernel_gym.llm.local.endpoints import BatchedEndpoint
from kernel_gym.llm.local.gguf_file import GgufFile

LENGTH = 128
QUESTIONS = [([{"role": "user", "content": text}], seed) for seed, text in enumerate("abcab")]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_model(tmp_path_factory.mktemp("model") / "tiny.gguf")


@pytest.fixture(scope="module")
def url(file: Path) -> Iterator[str]:
    queue = BatchQueue(BatchedModel(GgufFile(file), 2, "cpu", threads=1), LENGTH)
    server = BatchServer(0, queue, "tiny")
    for work in (server.serve_forever, queue.work):
        Thread(target=work, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1"
    server.shutdown()


def settings(url: str | None = None, **changes: object) -> EndpointSettings:
    options = {"model": "tiny", "max_tokens": 8, "extra": {"top_k": 5, "top_p": 0.9}, "base_url": url, "retries": 0}
    return EndpointSettings.from_options(options | changes, "author")


def test_requests_of_many_clients_get_the_answers_of_a_batch(file: Path, url: str) -> None:
    client = Endpoint(settings(url))
    client.check()
    with ThreadPoolExecutor(len(QUESTIONS)) as pool:
        replies = list(pool.map(lambda question: client.chat(*question), QUESTIONS))
    assert replies == BatchedEndpoint(settings(), str(file), 2, "cpu").chat_many(QUESTIONS)
    assert len({reply.text for reply in replies}) > 1


def test_requests_that_are_sampled_in_another_way_are_answered_too(file: Path, url: str) -> None:
    ways: list[dict[str, object]] = [{"temperature": 0.0}, {}, {"extra": {"top_k": 1}}, {"temperature": 1.5}]

    def ask(way: dict[str, object]) -> Reply:
        return Endpoint(settings(url, **way)).chat(*QUESTIONS[0])

    with ThreadPoolExecutor(len(ways)) as pool:
        replies = list(pool.map(ask, ways))
    assert replies == [BatchedEndpoint(settings(**way), str(file), 2, "cpu").chat(*QUESTIONS[0]) for way in ways]


def test_a_request_that_is_too_long_or_none_is_refused(url: str) -> None:
    with pytest.raises(LengthRefused, match="exceed the context length 128") as refusal:
        Endpoint(settings(url, max_tokens=LENGTH)).chat(*QUESTIONS[0])
    assert refusal.value.limit == LENGTH
    with pytest.raises(Exception, match="not a chat request"):
        Endpoint(settings(url, extra={"top_k": "many"})).chat(*QUESTIONS[0])
    assert Endpoint(settings(url)).chat(*QUESTIONS[0]).tokens_out
