"""A real HTTP server that speaks the chat protocol, with whatever behaviour a test scripts."""

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Behaviour = Callable[["Exchange"], None]


class Exchange(BaseHTTPRequestHandler):
    """One request; `body` is what was asked."""

    server: "ModelServer"
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.body: dict[str, Any] = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        with self.server.lock:
            self.server.requests.append(self.body)
            self.server.keys.append(self.headers.get("Authorization", ""))
            script = self.server.script
            behaviour = script.pop(0) if len(script) > 1 else script[0]
        behaviour(self)

    def do_GET(self) -> None:
        """The list of models, for servers that have one."""
        with self.server.lock:
            self.server.lists += 1
            self.server.keys.append(self.headers.get("Authorization", ""))
        if self.server.models is None:
            self.send(404, b'{"detail": "Not Found"}')
        elif isinstance(self.server.models, int):
            self.send(self.server.models, b'{"error": {"message": "no"}}')
        else:
            rows = [{"id": name, "object": "model", "created": 0, "owned_by": "x"} for name in self.server.models]
            self.send(200, json.dumps({"object": "list", "data": rows}).encode())

    def log_message(self, format: str, *args: object) -> None:
        pass

    def send(self, status: int, body: bytes, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        for name, value in ({"Content-Type": "application/json"} | (headers or {})).items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


class ModelServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, script: list[Behaviour], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), Exchange)
        #: The names in the list of models, the status of a failure, or None for a server without such a list.
        self.models: tuple[str, ...] | int | None = ("m", "writer", "reader")
        self.lists = 0
        self.script, self.lock = script, threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.keys: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"


@contextmanager
def serving(*script: Behaviour, port: int = 0) -> Iterator[ModelServer]:
    """Serve; each request meets the next behaviour, the last one stays."""
    server = ModelServer(list(script), port)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)  # how soon it sees that it ends
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def saying(text: str | None, finish: str = "stop") -> Behaviour:
    """A proper answer."""

    def answer(exchange: Exchange) -> None:
        message = {"role": "assistant", "content": text}
        body = {
            "id": "1",
            "object": "chat.completion",
            "created": 0,
            "model": exchange.body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": finish}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110},
        }
        exchange.send(200, json.dumps(body).encode())

    return answer


def answering(answer: Callable[[dict[str, Any]], str]) -> Behaviour:
    """A proper answer that depends on the question."""
    return lambda exchange: saying(answer(exchange.body))(exchange)


def uncounted(text: str) -> Behaviour:
    """A proper answer of a server that counts no tokens."""

    def answer(exchange: Exchange) -> None:
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        exchange.send(200, json.dumps({"id": "1", "object": "chat.completion", "choices": [choice]}).encode())

    return answer


def streaming(text: str, piece: int = 7, whole: bool = True) -> Behaviour:
    """An answer piece by piece; one that is not whole ends in the middle. It streams whether it was asked to or not."""

    def answer(exchange: Exchange) -> None:
        pieces = [text[at : at + piece] for at in range(0, len(text), piece)]
        chunks = [{"index": 0, "delta": {"role": "assistant", "content": one}, "finish_reason": None} for one in pieces]
        if whole:
            chunks.append({"index": 0, "delta": {}, "finish_reason": "stop"})
        shell = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": exchange.body["model"]}
        events: list[dict[str, Any]] = [shell | {"choices": [chunk]} for chunk in chunks]
        if whole:
            usage = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
            events.append(shell | {"choices": [], "usage": usage})
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events) + ("data: [DONE]\n\n" if whole else "")
        exchange.send(200, lines.encode(), {"Content-Type": "text/event-stream"})

    return answer


def embedding(vector: Callable[[str], list[float]], backwards: bool = False) -> Behaviour:
    """Embeddings, one a text, possibly in another order than that of the texts."""

    def answer(exchange: Exchange) -> None:
        rows = [
            {"object": "embedding", "index": index, "embedding": vector(text)}
            for index, text in enumerate(exchange.body["input"])
        ]
        used = {"prompt_tokens": 5 * len(rows), "total_tokens": 5 * len(rows)}
        answer = {"object": "list", "model": "e", "data": rows[::-1] if backwards else rows, "usage": used}
        exchange.send(200, json.dumps(answer).encode())

    return answer


def held(arrived: threading.Event, released: threading.Event) -> Behaviour:
    """Says when it was asked, and answers only once it is released."""

    def answer(exchange: Exchange) -> None:
        arrived.set()
        released.wait()
        saying("late")(exchange)

    return answer


def failing(status: int, **headers: str) -> Behaviour:
    """An error status; it repeats the key it was sent, as careless servers do."""

    def answer(exchange: Exchange) -> None:
        answer = {"error": {"message": f"no, {exchange.headers.get('Authorization')}", "type": "x"}}
        exchange.send(status, json.dumps(answer).encode(), {k.replace("_", "-"): v for k, v in headers.items()})

    return answer


def raw(body: bytes, status: int = 200) -> Behaviour:
    """Any bytes."""
    return lambda exchange: exchange.send(status, body)


def slow(seconds: float) -> Behaviour:
    """An answer that comes too late."""

    def answer(exchange: Exchange) -> None:
        time.sleep(seconds)
        saying("late")(exchange)

    return answer


def cut_short(exchange: Exchange) -> None:
    """Promises more bytes than it sends, and hangs up."""
    exchange.send_response(200)
    exchange.send_header("Content-Length", "1000")
    exchange.end_headers()
    exchange.wfile.write(b'{"id": "1", "cho')
    exchange.wfile.flush()
    exchange.close_connection = True
    exchange.connection.shutdown(socket.SHUT_RDWR)
