"""Stands in for llama.cpp: the same command line, a constant answer, and the same end as the real server."""

import json
import os
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from kernel_gym.llm.local.server import end_with_parent

COMMAND = (sys.executable, __file__)


class Answers(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self.send(b'{"status": "ok"}')

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        text = f"```cpp\n// kernel_launch {body['seed']} {body['top_k']} {body['max_tokens']}\n```"
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        used = {"prompt_tokens": 100, "completion_tokens": 10, "total_tokens": 110}
        shell = {"id": "1", "object": "chat.completion", "created": 0, "model": body["model"]}
        if not body.get("stream"):
            self.send(json.dumps(shell | {"choices": [choice], "usage": used}).encode())
            return
        pieces = [{"index": 0, "delta": {"content": piece}, "finish_reason": None} for piece in text.split(" ")]
        for piece in pieces[1:]:
            piece["delta"]["content"] = " " + piece["delta"]["content"]
        pieces[-1]["finish_reason"] = "stop"
        events = [shell | {"choices": [piece]} for piece in pieces] + [shell | {"choices": [], "usage": used}]
        lines = "".join(f"data: {json.dumps(event)}\n\n" for event in events)
        self.send(f"{lines}data: [DONE]\n\n".encode(), "text/event-stream")

    def send(self, body: bytes, kind: str = "application/json") -> None:
        self.send_response(200)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        pass


if __name__ == "__main__":
    end_with_parent(os.getppid(), 0.05)
    if "broken" in sys.argv[1]:
        sys.exit("llama: cannot load the model")
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Answers).serve_forever()
