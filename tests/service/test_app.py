"""The service: answers, refusals, limits, and jobs that are asked for twice."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from threading import Event

import pytest
import requests
from service_server import PausedVerifier, serving

from kernel_gym import suites
from kernel_gym.errors import TaskError
from kernel_gym.kernel import Kernel
from kernel_gym.service import problem_tasks
from kernel_gym.service.app import LARGEST
from kernel_gym.suites.problem_files import TRUST
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged, Verdict

BODY = {"task": "level1/relu", "source": "a kernel"}
PROBLEM = """
import torch
N = 64
class Model(torch.nn.Module):
    def forward(self, x):
        return x + 1
def get_inputs():
    return [torch.rand(N)]
def get_init_inputs():
    return []
"""


@pytest.fixture
def verifier() -> PausedVerifier:
    return PausedVerifier()


@pytest.fixture
def url(verifier: PausedVerifier) -> Iterator[str]:
    with serving(verifier, capacity=3, share=2) as address:
        yield address


def post(url: str, wait: float = 0, **changes: object) -> requests.Response:
    return requests.post(f"{url}/verify", params={"wait": wait}, json=BODY | changes, timeout=20)


def test_a_verdict_that_is_there_is_the_answer(url: str, verifier: PausedVerifier) -> None:
    verifier.paused = False
    answer = post(url, wait=5)
    assert answer.status_code == 200
    assert answer.json()["state"] == "done"
    assert answer.json()["verdict"]["outcome"] == "uncompilable"
    assert verifier.submitted[0][0].language == "ascendc"


def test_a_slow_verdict_is_fetched_with_the_id_of_its_job(url: str, verifier: PausedVerifier) -> None:
    queued = post(url)
    assert (queued.status_code, queued.json()["state"]) == (202, "queued")
    verifier.release()
    answer = requests.get(f"{url}/verify/{queued.json()['id']}", timeout=20)
    assert (answer.status_code, answer.json()["verdict"]["line"]) == (200, 3)


def test_equal_requests_are_one_job(url: str, verifier: PausedVerifier) -> None:
    assert post(url).json()["id"] == post(url).json()["id"] != post(url, source="another").json()["id"]
    verifier.release()
    assert post(url).json()["state"] == "done"
    assert len(verifier.submitted) == 2


def test_a_failure_of_the_device_is_an_answer_and_the_next_request_begins_anew(
    url: str, verifier: PausedVerifier
) -> None:
    id = post(url).json()["id"]
    verifier.release(Unjudged("the device died"))
    assert requests.get(f"{url}/verify/{id}", timeout=20).status_code == 404
    assert post(url).json()["state"] == "queued"
    verifier.release()
    assert post(url).json()["verdict"]["outcome"] == "uncompilable"
    assert len(verifier.submitted) == 2


def test_a_client_that_goes_away_does_not_cancel_its_job(url: str, verifier: PausedVerifier) -> None:
    with pytest.raises(requests.Timeout):
        requests.post(f"{url}/verify", params={"wait": 30}, json=BODY, timeout=0.3)
    verifier.release()
    assert post(url).json()["state"] == "done"
    assert len(verifier.submitted) == 1


def test_a_client_with_its_share_in_the_queue_is_sent_away(url: str) -> None:
    for source in ("first", "second"):
        assert post(url, source=source).status_code == 202
    answer = post(url, source="third")
    assert answer.status_code == 429
    assert answer.headers["Retry-After"]
    assert post(url, source="first").status_code == 202


def test_a_full_queue_sends_everybody_away(verifier: PausedVerifier) -> None:
    with serving(verifier, capacity=1) as url:
        assert post(url).status_code == 202
        answer = post(url, source="another")
    assert answer.status_code == 503
    assert answer.json() == {"error": "the queue is full: 1 kernels wait"}


class SlowFiles:
    """Problem files that take as long to load as the test says."""

    def __init__(self) -> None:
        self.begun, self.over = list[str](), Event()

    def load(self, source: str) -> Task:
        self.begun.append(source)
        self.over.wait(20)
        return suites.find_task("level1/relu")


@pytest.fixture
def slow_files(monkeypatch: pytest.MonkeyPatch) -> Iterator[SlowFiles]:
    files = SlowFiles()
    monkeypatch.setattr(problem_tasks, "task_of_text", files.load)
    yield files
    files.over.set()


def test_problem_files_that_are_loaded_count_against_the_share(url: str, slow_files: SlowFiles) -> None:
    with ThreadPoolExecutor(4) as pool:
        first, second = (pool.submit(post, url, task_source=text) for text in ("one", "two"))
        again = pool.submit(post, url, task_source="one")
        while len(slow_files.begun) < 2:
            time.sleep(0.01)
        assert post(url, task_source="three").status_code == 429
        assert post(url).status_code == 429
        slow_files.over.set()
        assert {answer.result().status_code for answer in (first, second, again)} == {202}
    assert sorted(slow_files.begun) == ["one", "two"]


def test_files_of_one_client_leave_room_for_others(verifier: PausedVerifier, slow_files: SlowFiles) -> None:
    with serving(verifier, tokens=["a", "b"]) as url, ThreadPoolExecutor(40) as pool:
        answers = [pool.submit(_file, url, "a", f"a{number}") for number in range(30)]
        while len(slow_files.begun) < problem_tasks.OF_ONE_CLIENT:
            time.sleep(0.01)
        answers.append(pool.submit(_file, url, "b", "b"))
        while "b" not in slow_files.begun:
            time.sleep(0.01)
        assert len(slow_files.begun) == problem_tasks.OF_ONE_CLIENT + 1
        assert requests.get(f"{url}/health", timeout=5).status_code == 200
        slow_files.over.set()
        assert {answer.result().status_code for answer in answers} == {202}


def _file(url: str, token: str, source: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {token}"}
    body = BODY | {"task_source": source}
    return requests.post(f"{url}/verify", params={"wait": 0}, json=body, headers=headers, timeout=20)


def test_a_verifier_that_looks_at_a_task_for_long_keeps_nobody_else_waiting(url: str, verifier: PausedVerifier) -> None:
    over, submit = Event(), verifier.submit

    def slow(kernel: Kernel, task: Task) -> Future[Verdict]:
        if kernel.source == "slow":
            over.wait(20)
        return submit(kernel, task)

    verifier.submit = slow  # type: ignore[method-assign]
    with ThreadPoolExecutor(1) as pool:
        answer = pool.submit(post, url, source="slow")
        assert post(url).status_code == 202
        over.set()
        assert answer.result().status_code == 202


def test_what_the_verifier_does_not_accept_leaves_no_place_taken(url: str, verifier: PausedVerifier) -> None:
    def refuse(kernel: Kernel, task: Task) -> Future[Verdict]:
        raise TaskError("no such task")

    submit, verifier.submit = verifier.submit, refuse  # type: ignore[method-assign]
    assert [post(url, source=f"{number}").status_code for number in range(4)] == [422] * 4
    verifier.submit = submit  # type: ignore[method-assign]
    assert post(url, source="0").status_code == 202


@pytest.mark.parametrize(
    ("changes", "status", "words"),
    [
        ({"task": "level1/rleu"}, 404, "did you mean level1/relu"),
        ({"task": "/etc/passwd"}, 404, "no packaged task"),
        ({"task": "../../x.py"}, 404, "no packaged task"),
        ({"task": "level1/\N{SUPERSCRIPT TWO}"}, 404, "no task"),
        ({"task": f"level1/{'9' * 5000}"}, 404, "at most 1000 characters"),
        ({"task_digest": "0"}, 409, "another version"),
        ({"task_source": "x = 1"}, 422, "defines no Model"),
        ({"source": None}, 422, "source"),
        ({"colour": 1}, 422, "colour"),
        ({"form": "novel"}, 422, "form"),
    ],
)
def test_bad_input_is_one_line(url: str, changes: dict[str, object], status: int, words: str) -> None:
    answer = post(url, **changes)
    assert answer.status_code == status
    assert words in answer.json()["error"]


def test_a_body_that_is_too_long_or_says_no_length_is_refused_unread(url: str) -> None:
    assert post(url, source="x" * LARGEST).status_code == 413
    chunked = requests.post(f"{url}/verify", data=iter([b"{}"]), timeout=20)
    assert chunked.status_code == 411
    host, port = url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        connection.sendall(b"nonsense\r\n\r\n")
        assert b"400" in connection.recv(100)


def test_a_problem_file_is_sent_as_text_and_runs_confined(
    url: str, verifier: PausedVerifier, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(TRUST)
    answer = post(url, task="mine.py", task_source=PROBLEM)
    assert answer.status_code == 202
    ((_, task),) = verifier.submitted
    assert task.confined
    assert task.source == PROBLEM


def test_only_a_service_that_trusts_its_clients_believes_whose_a_kernel_is(verifier: PausedVerifier) -> None:
    for trust in (False, True):
        with serving(verifier, trust_clients=trust) as url:
            post(url, trusted=True, source=str(trust))
    assert [kernel.trusted for kernel, _ in verifier.submitted] == [False, True]


def test_a_service_with_tokens_answers_who_has_one(verifier: PausedVerifier) -> None:
    with serving(verifier, tokens=["sesame", "other"]) as url:
        assert post(url).status_code == 401
        assert requests.get(f"{url}/tasks", timeout=20, headers={"Authorization": "Bearer wrong"}).status_code == 401
        right = requests.get(f"{url}/tasks", timeout=20, headers={"Authorization": "Bearer sesame"})
        assert right.status_code == 200
        assert requests.get(f"{url}/health", timeout=20).status_code == 200


def test_tasks_are_listed_and_shown(url: str) -> None:
    listed = requests.get(f"{url}/tasks", params={"suite": "level2"}, timeout=20).json()
    assert [task["id"] for task in listed] == [task.id for task in suites.load_suite("level2")]
    relu = requests.get(f"{url}/tasks/level1/relu", timeout=20).json()
    assert relu["source"] == suites.find_task("level1/relu").source
    assert requests.get(f"{url}/tasks", params={"suite": "level9"}, timeout=20).status_code == 404


def test_health_says_what_the_service_runs_on(url: str) -> None:
    post(url)
    health = requests.get(f"{url}/health", timeout=20).json()
    assert (health["device"], health["language"], health["queued"], health["capacity"]) == (
        "ascend-sim",
        "ascendc",
        1,
        3,
    )


def test_metrics_count_verdicts_refusals_and_what_waits(url: str, verifier: PausedVerifier) -> None:
    post(url)
    post(url, source="another")
    post(url, task="level1/rleu")
    verifier.release()
    post(url, source="third")
    text = requests.get(f"{url}/metrics", timeout=20).text
    assert 'kernel_gym_verdicts_total{outcome="uncompilable"} 2.0' in text
    assert 'kernel_gym_refused_total{status="404"} 1.0' in text
    assert "kernel_gym_unfinished_jobs 1.0" in text


def test_the_api_is_described(url: str) -> None:
    described = requests.get(f"{url}/openapi.json", timeout=20).json()
    assert {"/verify", "/verify/{id}", "/tasks", "/health", "/metrics"} <= set(described["paths"])


@pytest.mark.parametrize(
    "task", ["level1/../secret/1", "level1/../level1/problem.py", "level1/problem.py", "level1//relu"]
)
def test_the_name_of_a_task_is_no_path(url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, task: str) -> None:
    for folder in ("level1", "secret"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "problem.py").write_text(PROBLEM)
        (tmp_path / folder / "1_problem.py").write_text(PROBLEM)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("KERNELBENCH_HOME", str(tmp_path))
    answer = post(url, task=task)
    assert (answer.status_code, list(answer.json())) == (404, ["error"])
    assert "no packaged task" in answer.json()["error"]


def raw(url: str, head: str, body: bytes) -> bytes:
    """Return the answer to a request that no library would send."""
    host, _, port = url.removeprefix("http://").partition(":")
    with socket.create_connection((host, int(port)), timeout=20) as connection:
        lines = f"POST /verify HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\n{head}"
        connection.sendall(lines.encode() + b"\r\n\r\n" + body)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def test_a_body_in_pieces_has_no_length(url: str) -> None:
    answer = raw(url, "Content-Length: 5\r\nTransfer-Encoding: chunked", b"2\r\n{}\r\n0\r\n\r\n")
    assert answer.startswith(b"HTTP/1.1 411")


def test_halves_of_characters_in_a_problem_file_are_no_traceback(url: str) -> None:
    body = b'{"task": "t", "task_source": "oops \\ud800", "source": "a kernel"}'
    answer = raw(url, f"Content-Length: {len(body)}", body)
    assert answer.startswith(b"HTTP/1.1 422")
    assert b'{"error":' in answer


def test_json_that_is_nested_too_deep_is_refused_in_one_line(url: str) -> None:
    answer = raw(url, "Content-Length: 100000", b"[" * 100000)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'{"error":' in answer
