"""A server that answers many requests at once with one model on a GPU, for clients in other processes.

It has the command line of `kernel_gym.llm.local.server` and the chat requests of OpenAI. A request joins the batch
under way as soon as a row is free. Requests that are sampled in another way wait until the batch is empty.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import torch

from kernel_gym.llm.local.batched_model import Answer, Batch, BatchedModel, Prompt, Sampling
from kernel_gym.llm.local.gguf_file import GgufFile
from kernel_gym.llm.local.server import end_with_parent

#: Connections that may wait to be accepted.
BACKLOG = 1024


@dataclass(frozen=True)
class _Request:
    """A request and its answer, once there is one."""

    prompt: Prompt
    sampling: Sampling
    answer: Future[Answer] = field(default_factory=Future)


class BatchQueue:
    """Answers requests of many threads in one batch.

    Args:
        model: The model.
        length: Most tokens of a prompt and its answer.
    """

    def __init__(self, model: BatchedModel, length: int) -> None:
        self.model, self.length = model, min(length, model.decoder.sizes.context)
        self._new: SimpleQueue[_Request] = SimpleQueue()
        self._waiting: list[_Request] = []
        self._under_way: dict[int, _Request] = {}
        self._numbers = 0

    def ask(self, prompt: Prompt, sampling: Sampling) -> Answer:
        """Wait for the answer to a prompt; called by the threads of the clients."""
        request = _Request(prompt, sampling)
        self._new.put(request)
        return request.answer.result()

    @torch.inference_mode()
    def work(self) -> None:
        """Answer requests until the process ends."""
        batch: Batch | None = None
        sampling = Sampling()
        while True:
            self._collect(wait=not self._waiting and not self._under_way)
            if batch is None or (not batch.busy and self._waiting and self._waiting[0].sampling != sampling):
                sampling, batch = self._waiting[0].sampling, None  # the old one's memory is needed for the new one
                batch = self.model.batch(self.model.rows, self.length, self.length, sampling)
            self._join(batch, sampling)
            for answer in batch.advance():
                self._under_way.pop(answer.index).answer.set_result(answer)

    def _collect(self, wait: bool) -> None:
        """Take the new requests; if `wait`, there will be at least one."""
        if wait:
            self._waiting.append(self._new.get())
        try:
            while True:
                self._waiting.append(self._new.get_nowait())
        except Empty:
            return

    def _join(self, batch: Batch, sampling: Sampling) -> None:
        """Give free rows the requests that came first, up to one that is sampled in another way."""
        joining: list[tuple[int, Prompt]] = []
        while self._waiting and len(joining) < batch.free and self._waiting[0].sampling == sampling:
            self._numbers += 1
            request = self._under_way[self._numbers] = self._waiting.pop(0)
            joining.append((self._numbers, request.prompt))
        # Equal prompts side by side are read once.
        batch.add(sorted(joining, key=lambda numbered: numbered[1].tokens))


class BatchServer(ThreadingHTTPServer):
    """The HTTP side of a queue.

    Args:
        port: The port; 0 for a free one.
        queue: The queue.
        name: Name of the model.
    """

    request_queue_size = BACKLOG
    daemon_threads = True

    def __init__(self, port: int, queue: BatchQueue, name: str) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.queue, self.name = queue, name


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: BatchServer

    def do_GET(self) -> None:
        """Say that the server is ready, or name the model."""
        self._send(200, {"status": "ok", "object": "list", "data": [{"id": self.server.name, "object": "model"}]})

    def do_POST(self) -> None:
        """Answer a chat request."""
        try:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            prompt, sampling = self._prompt(request), _sampling(request)
        except (KeyError, TypeError, ValueError) as error:
            self._send(400, {"error": {"message": f"not a chat request: {error!r}"}})
            return
        length = self.server.queue.length
        if len(prompt.tokens) + prompt.max_tokens > length:
            words = (
                f"{len(prompt.tokens)} tokens and an answer of {prompt.max_tokens} exceed the context length {length}"
            )
            self._send(400, {"error": {"message": words}})
            return
        self._send(200, self._completion(prompt, self.server.queue.ask(prompt, sampling)))

    def _prompt(self, request: dict[str, Any]) -> Prompt:
        tokens = self.server.queue.model.encoded(request["messages"])
        return Prompt(tokens, int(request.get("seed", 0)), int(request.get("max_tokens", 1024)))

    def _completion(self, prompt: Prompt, answer: Answer) -> dict[str, Any]:
        text = self.server.queue.model.tokenizer.decode(answer.tokens)
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop" if answer.ended else "length"}
        counts = len(prompt.tokens), len(answer.tokens)
        usage = {"prompt_tokens": counts[0], "completion_tokens": counts[1], "total_tokens": sum(counts)}
        shell = {"id": "1", "object": "chat.completion", "created": 0, "model": self.server.name}
        return shell | {"choices": [choice], "usage": usage}

    def _send(self, status: int, content: dict[str, Any]) -> None:
        body = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing for each request."""


def _sampling(request: dict[str, Any]) -> Sampling:
    default = Sampling()
    return Sampling(
        float(request.get("temperature", 1.0)),
        int(request.get("top_k", default.top_k)),
        float(request.get("top_p", default.top_p)),
    )


def main() -> None:
    """Serve a model until killed, or until the parent has ended."""
    parser = argparse.ArgumentParser()
    parser.add_argument("file", type=Path)
    for name in ("port", "context", "slots", "threads", "gpu_layers"):
        parser.add_argument(name, type=int)
    parser.add_argument("--device", default="cuda")
    arguments = parser.parse_args()
    end_with_parent(os.getppid())
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent stops the server after Ctrl-C
    model = BatchedModel(GgufFile(arguments.file), arguments.slots, arguments.device, arguments.threads)
    queue = BatchQueue(model, arguments.context // arguments.slots)
    server = BatchServer(arguments.port, queue, arguments.file.stem)
    Thread(target=server.serve_forever, daemon=True).start()
    queue.work()


if __name__ == "__main__":
    main()
