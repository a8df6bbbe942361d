"""The confined process that runs a bundle's Python: ModelNew, and the file itself if it computes one of its strings."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_gym.confinement.python_process import PythonProcess
from kernel_gym.errors import BundleError
from kernel_gym.kernel import BUNDLE_TEXTS
from kernel_gym.tasks import messages
from kernel_gym.tasks.messages import BrokenMessage

#: Seconds that the model may take around one launch, or to build itself.
SECONDS, TEXT_SECONDS = 300.0, 20.0
#: Bytes of the tensors of one launch or result.
MOST_BYTES = 16 << 30


@dataclass(eq=False)
class ModelFailure(Exception):
    """Raised if the model or its binding fails: the part of the bundle, what happened, and the line."""

    part: str
    message: str
    line: int | None = None
    kind: str = ""


#: Runs one launch: the operator's name, for each argument a tensor or a plain value, and the tensors' addresses in the
#: model's process, which tell the same tensor in two launches. Returns outputs by position among the tensors; None if
#: the launch failed.
Launch = Callable[[str, list[Any], list[int]], dict[int, torch.Tensor] | None]


class ModelProcess(PythonProcess):
    """A process for one bundle."""

    def __init__(self) -> None:
        package = str(Path(__file__).resolve().parent.parent)
        super().__init__("kernel_gym.hardware.bundles.model_server", "bundle", torch.get_num_threads(), [package])

    def forward(self, request: dict[str, Any], tensors: Sequence[torch.Tensor], launch: Launch) -> list[torch.Tensor]:
        """Call the model; `launch` runs its launches. A ModelFailure if the model fails."""
        reply, outputs = self._exchange(request | {"method": "forward"}, tensors)
        while reply.get("kind") == "launch":
            results = _launched(reply, outputs, launch)
            if results is None:
                reply, outputs = self._exchange({"error": True}, ())
            else:
                reply, outputs = self._exchange({"outputs": list(results)}, list(results.values()))
        if reply.get("kind") == "error":
            line = reply.get("line")
            kind, part = str(reply.get("type", "")), str(reply.get("part", ""))
            raise ModelFailure(part, str(reply.get("message", ""))[:400], line if isinstance(line, int) else None, kind)
        return outputs

    def texts(self, source: str) -> dict[str, str]:
        """Run the file of a bundle and return its strings."""
        reply, _ = self._exchange({"method": "texts", "source": source}, (), TEXT_SECONDS)
        if reply.get("kind") == "error":
            raise BundleError(f"the bundle does not run: {reply.get('message')}")
        return {name: text for name, text in reply["texts"].items() if name in BUNDLE_TEXTS and isinstance(text, str)}

    def _exchange(
        self, request: dict[str, Any], tensors: Sequence[torch.Tensor], seconds: float = SECONDS
    ) -> tuple[dict[str, Any], list[torch.Tensor]]:
        try:
            with self._alarm(seconds):
                messages.send(self._requests, json.dumps(request), tensors)
                text, outputs = messages.receive(self._responses, MOST_BYTES)
            reply = json.loads(text)
            if not isinstance(reply, dict):
                raise BrokenMessage("no object")
        except (OSError, EOFError, BrokenMessage, ValueError) as error:
            status, words = self._wait()
            why = f"took longer than {seconds:.0f} s" if self._late else f"ended its process (status {status})"
            last = f": {words.splitlines()[-1]}" if words and not self._late else ""
            raise ModelFailure(BUNDLE_TEXTS["model_src"], f"the model {why}{last}") from error
        return reply, outputs


def _launched(reply: dict[str, Any], tensors: list[torch.Tensor], launch: Launch) -> dict[int, torch.Tensor] | None:
    arguments: list[Any] = []
    for entry in reply.get("arguments", []):
        kind, value = entry
        if kind == "tensor" and not (isinstance(value, int) and 0 <= value < len(tensors)):
            raise ModelFailure(BUNDLE_TEXTS["model_src"], "the model wrote to a pipe that is not its own")
        arguments.append(tensors[value] if kind == "tensor" else value)
    return launch(str(reply.get("name", "")), arguments, _addresses(reply.get("addresses"), len(tensors)))


def _addresses(addresses: Any, count: int) -> list[int]:
    if isinstance(addresses, list) and len(addresses) == count and all(type(word) is int for word in addresses):
        return addresses
    raise ModelFailure(BUNDLE_TEXTS["model_src"], "the model wrote to a pipe that is not its own")


def compute_texts(source: str) -> dict[str, str]:
    """Run the file of a bundle in a process of its own and return its strings; a BundleError if it fails."""
    process = ModelProcess()
    try:
        return process.texts(source)
    except ModelFailure as failure:
        raise BundleError(f"the bundle does not run: {failure.message}") from failure
    finally:
        process.close()
