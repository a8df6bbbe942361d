"""Tests of the authors with a model file on this machine; llama.cpp and the model are stand-ins."""

import re
from functools import partial
from pathlib import Path

import fake_llama
import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.conformance import AuthorContract
from kernel_gym.authors.contract import Author, Batching, Closing, Note, StartPoint, WriteRequest
from kernel_gym.authors.model import BatchedAuthor, LocalAuthor, ReplayAuthor
from kernel_gym.authors.model import local as local_authors
from kernel_gym.authors.model.prompt import messages, prompts_digest
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.llm.local import endpoints
from kernel_gym.llm.local.server import LlamaServer
from kernel_gym.verdict import Feasible, Uncompilable

RELU = "level1/relu"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(local_authors, "LlamaServer", partial(LlamaServer, command=fake_llama.COMMAND))
    monkeypatch.setattr(endpoints.server, "find_spec", lambda name: True)
    path = tmp_path / "My-Model.gguf"
    path.write_bytes(b"weights")
    return path


def test_the_server_is_started_with_the_first_question_and_stopped(file: Path, tmp_path: Path) -> None:
    author = LocalAuthor(str(file), max_tokens=77)
    assert isinstance(author, Closing)
    author.record_to(tmp_path / "transcript.jsonl")
    author.check()
    endpoint = author.endpoint
    assert isinstance(endpoint, endpoints.ServedEndpoint)
    assert endpoint._server is None
    kernel = author.write(suites.find_task(RELU), (), None, np.random.default_rng(1))
    assert kernel.source.endswith(" 20 77\n")  # the sampling of small models is part of the request
    assert endpoint._server is not None
    assert endpoint._server.running
    author.close()
    assert endpoint._server is None
    again = author.write(suites.find_task(RELU), (), None, np.random.default_rng(1))  # from the transcript
    assert again == kernel
    assert endpoint._server is None

    file.unlink()
    replay = ReplayAuthor(
        str(tmp_path / "transcript.jsonl"), author.context_tokens, model=str(file), threads=2, gpu_layers=0
    )
    assert replay.write(suites.find_task(RELU), (), None, np.random.default_rng(1)) == kernel
    assert '"My-Model"' in (tmp_path / "transcript.jsonl").read_text()
    assert str(tmp_path) not in (tmp_path / "transcript.jsonl").read_text()


def test_the_speed_of_an_answer_is_shown(file: Path, caplog: pytest.LogCaptureFixture) -> None:
    author, task = LocalAuthor(str(file), max_tokens=77), suites.find_task(RELU)
    with caplog.at_level("INFO", "kernel_gym.activity"):
        author.write(task, (), None, np.random.default_rng(1))
    author.close()
    reading, *writing = [record.getMessage() for record in caplog.records]
    assert reading == "My-Model reads the prompt"
    assert re.fullmatch(r"My-Model writes: 2 tokens, [\d.]+ a second, at most \d+ s left for this answer", writing[0])
    assert len(writing) == 1  # at most one a second


def test_what_is_missing_is_found_before_the_work(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="there is no model file"):
        LocalAuthor(str(file.with_name("other.gguf"))).check()
    monkeypatch.setenv("XDG_CACHE_HOME", str(file.parent))
    with pytest.raises(ConfigError, match="kernel-gym model install"):
        LocalAuthor().check()
    monkeypatch.setattr(endpoints.server, "find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"needs llama\.cpp"):
        LocalAuthor(str(file)).check()
    with pytest.raises(ConfigError, match="batch_size"):
        BatchedAuthor(str(file), batch_size=0)


class TestBatchedAuthor(AuthorContract):
    """The whole contract, `write_many` with it, with random weights on the CPU."""

    @pytest.fixture(autouse=True)
    def _weights(self, tmp_path_factory: pytest.TempPathFactory) -> None:
        pytest.importorskip("gguf", reason="pip install 'kernel_gym[batched]'")
        from tiny_model import write_tiny_model

        self.file = tmp_path_factory.getbasetemp() / "author.gguf"
        if not self.file.exists():
            write_tiny_model(self.file)

    def make(self) -> Author:
        return BatchedAuthor(str(self.file), context_tokens=3000, max_tokens=4, batch_size=2, torch_device="cpu")

    def test_batches(self) -> None:
        author = self.make()
        assert isinstance(author, Batching)
        requests = [WriteRequest(suites.find_task(RELU), (), None, np.random.default_rng(seed)) for seed in (1, 1, 2)]
        author.write_many(requests)
        assert author.usage()["tokens_out"] == 8  # type: ignore[attr-defined]


def test_versions_of_prompts_differ_and_the_first_is_what_it_was() -> None:
    task = suites.find_task(RELU)
    assert prompts_digest(1) == "6f0bd6eb3876cc03"  # as before; the fence of a start point is a variable since bundles
    first, second = (messages(task, (), None, 24_000, version=version) for version in (1, 2))
    assert first != second
    with pytest.raises(ConfigError, match="prompt_version"):
        LocalAuthor(prompt_version=5)
    assert LocalAuthor(prompt_version=1).identity() != LocalAuthor(prompt_version=2).identity()


def test_version_2_shows_code_in_the_names_of_the_example() -> None:
    code = '#include "kernel_gym.h"\nAscendC::Add(a->inputs, inQueue, per_core);\n'
    note = Note("trace", code, code, Feasible("fine", latency=1.0))
    user = messages(suites.find_task(RELU), (note,), None, 24_000, version=2)[1]["content"]
    assert '#include "kernel_gym.h"\nusing namespace AscendC;\nAdd(args->inputs, xQueue, perCore);' in user
    assert code in messages(suites.find_task(RELU), (note,), None, 24_000, version=1)[1]["content"]


@pytest.mark.parametrize("version", [1, 2, 3])
@pytest.mark.parametrize("language", ["ascendc", "cuda"])
def test_a_failed_start_point_is_repaired(version: int, language: str) -> None:
    start = StartPoint(Kernel("int x;", language), Uncompilable("line 1: 'Foo' was not declared"))
    other = Note("practice", "Use two buffers.")
    user = messages(suites.find_task(RELU), (other,), start, 24_000, language, version)[1]["content"]
    assert user.count("```cpp\nint x;\n```") == 1
    assert "# Why it failed\n\nline 1: 'Foo' was not declared" in user
    assert "Use two buffers." in user
    assert "faster" not in user


def test_version_2_has_a_prompt_of_its_own_for_repair() -> None:
    failed = Note("trace", "// no\nint x;", "int x;", Uncompilable("line 1: 'Foo' was not declared"), same_task=True)
    other = Note("practice", "Use two buffers.")
    user = messages(suites.find_task(RELU), (other, failed), None, 24_000, version=2)[1]["content"]
    assert user.count("int x;") == 1
    assert "# Why it failed\n\nline 1: 'Foo' was not declared" in user
    assert "Use two buffers." in user
    for note in (
        Note("trace", "int x;", "int x;", None, same_task=True),
        Note("trace", "int x;", "int x;", failed.verdict),
    ):
        user = messages(suites.find_task(RELU), (note,), None, 24_000, version=2)[1]["content"]
        assert "Why it failed" not in user  # not judged, or another task's
        assert "int x;" in user


def test_version_3_shows_pages_in_the_names_of_the_example_and_none_that_repeat_the_prompt() -> None:
    page = "Silu and Swish\nx * sigmoid(x), of n numbers.\nSilu(y, x, n);\nMuls(dst, src, 2.0f, n);"
    basics = "The file to hand in\nOne C++ file: struct Tiling { uint32_t total; };"
    task, context = suites.find_task(RELU), (Note("api", basics), Note("api", page))
    user = messages(task, context, None, 24_000, version=3)[1]["content"]
    assert "Silu(outLocal, xLocal, count);\nMuls(outLocal, xLocal, 2.0f, count);" in user
    assert "x * sigmoid(x), of n numbers." in user  # prose stays
    assert "uint32_t total" not in user
    second = messages(task, context, None, 24_000, version=2)[1]["content"]
    assert page in second
    assert basics in second
    assert "Silu(y, x, n);" in messages(task, context, None, 24_000, "cuda", version=3)[1]["content"]


def test_llama_cpp_answers_with_random_weights(tmp_path: Path) -> None:
    """The real server, a model that writes nonsense: requests, seeds, lengths and the end of the process."""
    pytest.importorskip("xllamacpp", reason="pip install 'kernel_gym[local]'")
    pytest.importorskip("gguf", reason="pip install 'kernel_gym[batched]'")
    from tiny_model import write_tiny_model

    file = write_tiny_model(tmp_path / "tiny.gguf")
    author = LocalAuthor(str(file), context_tokens=9000, max_tokens=12, threads=1)
    author.check()
    task, endpoint = suites.find_task(RELU), author.endpoint
    assert isinstance(endpoint, endpoints.ServedEndpoint)
    try:
        for seed in (1, 1, 2):
            author.write(task, (), None, np.random.default_rng(seed))
        one, again, other = (endpoint._ask(endpoint._request(author.messages(task, (), None), n)) for n in (1, 1, 2))
        assert one == again
        assert one.text != other.text
        assert one.tokens_in > 1000
        assert 0 < one.tokens_out <= 12
        assert endpoint._listed_models() == ["tiny"]
        server = endpoint._server
        assert server is not None
        assert server.running
    finally:
        author.close()
    assert not server.running
