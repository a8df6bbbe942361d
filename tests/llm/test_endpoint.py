"""The endpoint client against a real HTTP server: answers, failures, keys, spending, transcripts."""

import json
from pathlib import Path

import pytest
from model_server import Behaviour, cut_short, failing, raw, saying, serving, slow, streaming, uncounted

from kernel_gym.errors import ConfigError, InfrastructureError, KernelGymError
from kernel_gym.llm.endpoint import Endpoint, EndpointSettings, LengthRefused, SpendingLimit
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
def test_a_persistent_failure_is_an_infrastructure_error_without_the_key(behaviour: object) -> None:
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


def test_a_missing_configuration_is_an_error_that_names_the_settings(monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_a_transcript_answers_repeated_requests_and_holds_no_key(tmp_path: Path) -> None:
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


def test_a_file_that_is_no_transcript_is_a_one_line_error(tmp_path: Path) -> None:
    (tmp_path / "t").write_text("[]\n")
    for path in (tmp_path / "t", tmp_path / "missing"):
        with pytest.raises(KernelGymError) as error:
            Transcript(path, read_only=True)
        assert "\n" not in str(error.value)


def refusing(message: str, status: int = 400) -> Behaviour:
    return raw(json.dumps({"error": {"message": message, "type": "x"}}).encode(), status)


def test_a_model_that_the_endpoint_lists_costs_nothing_to_check() -> None:
    with serving(saying("1")) as server:
        endpoint(server.url).check()
        assert (server.lists, server.requests) == (1, [])


@pytest.mark.parametrize("models", [None, 500, (), ("another",)])
def test_a_server_that_does_not_list_the_model_is_asked_for_one_token(models: tuple[str, ...] | int | None) -> None:
    with serving(saying("1")) as server:
        server.models = models
        client = endpoint(server.url, limit_name="max_completion_tokens")
        client.check()
        (body,) = server.requests
        assert (body["model"], body["max_completion_tokens"]) == ("m", 1)
        assert (client.paid.tokens_in, client.usage()["tokens_in"]) == (100, 0)


@pytest.mark.parametrize("status", [400, 404, 422])
@pytest.mark.parametrize("models", [None, ("mistral", "gemma")])
def test_a_wrong_model_name_is_one_line_with_the_nearest(status: int, models: tuple[str, ...] | None) -> None:
    with serving(refusing("The model `mistrel` does not exist.", status)) as server:
        server.models = models
        with pytest.raises(ConfigError, match=r"refused the model 'mistrel': .*does not exist") as error:
            endpoint(server.url, model="mistrel").check()
    assert str(error.value).endswith("; it has mistral") == (models is not None)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("status", [401, 403])
def test_a_wrong_key_is_found_by_the_check(status: int) -> None:
    for models in (status, None):
        with serving(failing(status)) as server:
            server.models = models
            with pytest.raises(ConfigError, match=f"refused the key in OPENAI_API_KEY .status {status}") as error:
                endpoint(server.url).check()
            assert len(server.requests) == (0 if models else 1)
        assert KEY not in str(error.value)


@pytest.mark.parametrize(
    "behaviour",
    [
        failing(503),
        failing(429),
        cut_short,
        raw(b"not json"),
        refusing("max_tokens must be at least 16 for this model"),
    ],
    ids=["503", "429", "cut", "malformed", "limit"],
)
def test_the_check_ignores_failures_that_may_be_temporary(behaviour: Behaviour) -> None:
    with serving(behaviour) as server:
        server.models = None
        endpoint(server.url, retries=9).check()
        assert len(server.requests) == 1
    endpoint("http://127.0.0.1:9/v1").check()


def test_the_check_can_be_left_out_and_is_where_the_model_has_answered_before(tmp_path: Path) -> None:
    with serving(saying("hello")) as server:
        endpoint(server.url, check=False).check()
        transcript = Transcript(tmp_path / "transcript.jsonl")
        endpoint(server.url, transcript).chat(QUESTION, 0)
        for read_only in (False, True):
            endpoint(server.url, Transcript(transcript.path, read_only)).check()
        assert (server.lists, len(server.requests)) == (0, 1)


def test_the_check_needs_an_endpoint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(ConfigError, match=r"OPENAI_API_KEY.*OPENAI_BASE_URL"):
        Endpoint(EndpointSettings(model="m")).check()


#: How four servers refuse a request that is too long, and the limit that each names.
TOO_LONG = {
    "This model's maximum context length is 8192 tokens. However, your messages resulted in 30012 tokens.": 8192,
    "This model's maximum context length is 4096 tokens. However, you requested 32,192 tokens (24000 in the messages, "
    "8192 in the completion).": 4096,
    "the request exceeds the available context size (16384 tokens), try increasing it": 16384,
    "prompt is too long: 212000 tokens > 200000 maximum": 200000,
    "The input exceeds the context window of this model.": None,
}


@pytest.mark.parametrize("message", TOO_LONG)
def test_a_refused_length_is_distinguished_from_other_refusals(message: str) -> None:
    with serving(refusing(message)) as server, pytest.raises(LengthRefused) as error:
        endpoint(server.url).chat(QUESTION, 0)
    assert error.value.limit == TOO_LONG[message]
    with serving(refusing("temperature must be at most 2")) as server, pytest.raises(ConfigError) as other:
        endpoint(server.url).chat(QUESTION, 0)
    assert not isinstance(other.value, LengthRefused)
