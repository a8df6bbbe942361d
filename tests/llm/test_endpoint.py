"""The endpoint client against a real HTTP server: answers, failures, keys, spending, transcripts."""

import json
from pathlib import Path

import pytest
from model_server import cut_short, failing, raw, saying, serving, slow, streaming, uncounted

from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings, SpendingLimit
from kernel_gym.llm.transcript import Transcript

KEY = "sk-very-secret-0123456789"
QUESTION = [{"role": "user", "content": "a kernel, please"}]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.delenv("OPENAI_BASE_URL", raising=False)


def endpoint(url: str, transcript: Transcript | None = None, **settings: object) -> Endpoint:
    plain = {"model": "m", "base_url": url, "retries": 0, "timeout_s": 20} | settings
    return Endpoint(EndpointSettings.model_validate(plain), transcript)


def test_an_answer_with_its_cost() -> None:
    with serving(saying("hello")) as server:
        client = endpoint(server.url, price_in=1.0, price_out=10.0)
        reply = client.chat(QUESTION, nonce=7)
        assert (reply.text, reply.tokens_in, reply.tokens_out) == ("hello", 100, 10)
        assert client.spent == pytest.approx(200e-6)
        assert server.requests[0]["messages"] == QUESTION
        assert server.keys == [f"Bearer {KEY}"]


def test_rate_limits_and_server_errors_are_retried() -> None:
    with serving(failing(429, Retry_After="0"), failing(500), saying("at last")) as server:
        assert endpoint(server.url, retries=4).chat(QUESTION, 0).text == "at last"
        assert len(server.requests) == 3


@pytest.mark.parametrize(
    "behaviour",
    [failing(429), failing(500), failing(503), raw(b"not json"), raw(b"{}"), raw(b""), cut_short],
    ids=["429", "500", "503", "malformed", "no-choice", "empty", "cut"],
)
def test_what_stays_broken_is_an_infrastructure_error_without_the_key(behaviour: object) -> None:
    with serving(behaviour) as server, pytest.raises(InfrastructureError) as error:  # type: ignore[arg-type]
        endpoint(server.url).chat(QUESTION, 0)
    assert KEY not in str(error.value)
    assert "\n" not in str(error.value)


def test_a_streamed_answer_is_put_together() -> None:
    text = "".join(chr(97 + i % 26) for i in range(500))
    with serving(streaming(text)) as server:
        client = endpoint(server.url, stream=True)
        reply = client.chat(QUESTION, 0)
        assert (reply.text, reply.finish, reply.tokens_in, reply.tokens_out) == (text, "stop", 100, 10)
        assert server.requests[0]["stream"] is True


@pytest.mark.parametrize(
    "behaviour",
    [failing(429), failing(500), raw(b"data: {not json\n\n"), raw(b""), cut_short, streaming("x", whole=False)],
    ids=["429", "500", "malformed", "empty", "cut", "broken-off"],
)
def test_a_stream_that_breaks_is_an_infrastructure_error(behaviour: object) -> None:
    with serving(behaviour) as server, pytest.raises(InfrastructureError) as error:  # type: ignore[arg-type]
        endpoint(server.url, stream=True).chat(QUESTION, 0)
    assert KEY not in str(error.value)


def test_a_server_that_insists_on_streaming_is_recognised() -> None:
    with serving(streaming("hello")) as server:
        with pytest.raises(InfrastructureError, match="stream=true"):
            endpoint(server.url).chat(QUESTION, 0)
        assert endpoint(server.url, stream=True).chat(QUESTION, 0).text == "hello"


def test_a_key_in_an_answer_is_cut_out() -> None:
    with serving(saying(f"your key is {KEY}")) as server:
        assert endpoint(server.url).chat(QUESTION, 0).text == "your key is [key]"


def test_a_server_that_does_not_count_is_estimated() -> None:
    with serving(uncounted("four")) as server:
        client = endpoint(server.url, price_in=1e6, spending_limit=0.5)
        assert client.chat(QUESTION, 0).tokens_in > 0
        with pytest.raises(SpendingLimit):
            client.chat(QUESTION, 1)


def test_a_slow_answer_times_out() -> None:
    with serving(slow(5)) as server, pytest.raises(InfrastructureError):
        endpoint(server.url, timeout_s=0.3).chat(QUESTION, 0)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 422])
def test_refusals_say_what_to_mend_without_the_key(status: int) -> None:
    with serving(failing(status)) as server, pytest.raises(ConfigError) as error:
        endpoint(server.url).chat(QUESTION, 0)
    assert KEY not in str(error.value)
    assert error.value.__cause__ is None


def test_an_empty_answer_is_an_answer() -> None:
    with serving(saying(None, "content_filter")) as server:
        reply = endpoint(server.url).chat(QUESTION, 0)
        assert (reply.text, reply.finish) == ("", "content_filter")


def test_nothing_configured_says_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL"):
        Endpoint(EndpointSettings(model="m")).chat(QUESTION, 0)


def test_no_server_at_all_is_one_line() -> None:
    with pytest.raises(InfrastructureError) as error:
        endpoint("http://127.0.0.1:9/v1").chat(QUESTION, 0)
    assert "\n" not in str(error.value)


def test_the_spending_limit_stops_before_the_next_question() -> None:
    with serving(saying("x")) as server:
        client = endpoint(server.url, price_in=10_000.0, spending_limit=1.0)
        client.chat(QUESTION, 0)
        with pytest.raises(SpendingLimit, match=r"raise spending_limit"):
            client.chat(QUESTION, 1)
        assert len(server.requests) == 1


def test_the_spending_limit_is_one_for_all_times_that_a_run_is_resumed(tmp_path: Path) -> None:
    path, prices = tmp_path / "transcript.jsonl", {"price_in": 10_000.0, "price_out": 1.0}
    with serving(saying("x")) as server:
        endpoint(server.url, Transcript(path), **prices).chat(QUESTION, 0)
        resumed = endpoint(server.url, Transcript(path), spending_limit=1.0, **prices)
        assert resumed.chat(QUESTION, 0).text == "x"
        with pytest.raises(SpendingLimit):
            resumed.chat(QUESTION, 1)
        higher = endpoint(server.url, Transcript(path), spending_limit=1.5, **prices)
        assert [higher.chat(QUESTION, nonce).text for nonce in (0, 1)] == ["x", "x"]
        assert len(server.requests) == 2
    assert higher.spent == pytest.approx(2.00002)
    assert higher.usage() == {"tokens_in": 200, "tokens_out": 20, "dollars": pytest.approx(2.00002)}


def test_a_transcript_answers_again_for_nothing_and_holds_no_key(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with serving(saying("first"), saying("second")) as server:
        client = endpoint(server.url, Transcript(path))
        assert [client.chat(QUESTION, n).text for n in (0, 1, 0)] == ["first", "second", "first"]
        assert len(server.requests) == 2
    replay = endpoint("http://127.0.0.1:9/v1", Transcript(path, read_only=True))
    assert [replay.chat(QUESTION, n).text for n in (1, 0)] == ["second", "first"]
    assert replay.spent == 0
    with pytest.raises(KernelGymError, match="no answer to this request"):
        replay.chat(QUESTION, 2)
    assert KEY not in path.read_text()
    assert "127.0.0.1" not in path.read_text()


def test_a_torn_transcript_loses_only_its_last_line(tmp_path: Path) -> None:
    path = tmp_path / "transcript.jsonl"
    with serving(saying("x")) as server:
        client = endpoint(server.url, Transcript(path))
        for nonce in range(3):
            client.chat(QUESTION, nonce)
    path.write_bytes(path.read_bytes()[:-5])
    assert len(Transcript(path)) == 2
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_what_is_no_transcript_is_one_line(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("[]\n")
    for path in (tmp_path / "t", tmp_path / "missing"):
        with pytest.raises(KernelGymError) as error:
            Transcript(path, read_only=True)
        assert "\n" not in str(error.value)
