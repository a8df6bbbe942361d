"""The confined process that runs ModelNew of a bundle."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_gym.confinement.python_process import PythonProcess
from kernel_gym.hardware.bundles.time_left import TimeLeft
from kernel_gym.kernel import BUNDLE_TEXTS
from kernel_gym.tasks import messages
from kernel_gym.tasks.messages import BrokenMessage

#: Seconds that the model may take in one call to build itself and around its launches.
SECONDS = 300.0
#: Bytes of the tensors of one launch or result: so many times those of the task, and at least so many.
MOST_TIMES, LEAST_BYTES = 32, 256 << 20
#: Most characters of a launch's values, and how deep lists may be nested in them.
MOST_CHARACTERS, DEEPEST = 1 << 16, 3


@dataclass(eq=False)
class ModelFailure(Exception):
    """Raised if the model or its binding fails: the part of the bundle, what happened, the line, whether it is late."""

    part: str
    message: str
    line: int | None = None
    kind: str = ""
    late: bool = False


#: Runs one launch: the operator's name, for each argument a tensor or a plain value, the tensors' addresses in the
#: model's process, which tell the same tensor in two launches, and the positions of those that torch wrote in this
#: call. Returns outputs by position among the tensors; None if the launch failed.
Launch = Callable[[str, list[Any], list[int], list[int]], dict[int, torch.Tensor] | None]


class ModelProcess(PythonProcess):
    """A process for one bundle."""

    def __init__(self) -> None:
        package = str(Path(__file__).resolve().parent.parent)
        super().__init__("kernel_gym.hardware.bundles.model_server", "bundle", torch.get_num_threads(), [package])
        self._most_bytes = LEAST_BYTES
        #: The outputs of the last call that torch wrote, by position.
        self.made: list[int] = []

    def forward(
        self, request: dict[str, Any], tensors: Sequence[torch.Tensor], launch: Launch, all_calls: TimeLeft
    ) -> list[torch.Tensor]:
        """Call the model; `launch` runs its launches. A ModelFailure if the model fails or takes too long."""
        left = TimeLeft(SECONDS, "the model", all_calls)
        self._most_bytes = max(LEAST_BYTES, MOST_TIMES * sum(tensor.nbytes for tensor in tensors))
        reply, outputs = self._exchange(request, tensors, left)
        while reply.get("kind") == "launch":
            try:
                results = _launched(reply, outputs, launch)
            except ModelFailure:  # the model waits for an answer that it does not get
                self.close()
                raise
            if results is None:
                reply, outputs = self._exchange({"error": True}, (), left)
            else:
                reply, outputs = self._exchange({"outputs": list(results)}, list(results.values()), left)
        if reply.get("kind") == "error":
            line = reply.get("line")
            kind, part = str(reply.get("type", "")), str(reply.get("part", ""))
            if part not in BUNDLE_TEXTS.values():
                part = BUNDLE_TEXTS["model_src"]
            raise ModelFailure(part, str(reply.get("message", ""))[:400], line if type(line) is int else None, kind)
        self.made = _list_of(reply.get("made"), int)
        return outputs

    def _exchange(
        self, request: dict[str, Any], tensors: Sequence[torch.Tensor], left: TimeLeft
    ) -> tuple[dict[str, Any], list[torch.Tensor]]:
        try:
            with left.spend(), self._alarm(left.seconds):
                messages.send(self._requests, json.dumps(request), tensors)
                text, outputs = messages.receive(self._responses, self._most_bytes)
            reply = json.loads(text)
            if not isinstance(reply, dict):
                raise BrokenMessage("no object")
            if reply.get("kind") == "launch" and len(text) > MOST_CHARACTERS:
                raise BrokenMessage(f"values of a launch with more than {MOST_CHARACTERS:,} characters")
        except (OSError, EOFError, BrokenMessage, ValueError, RecursionError) as error:
            status, words = self._wait(0.0 if isinstance(error, BrokenMessage) else 5.0)
            why = f"the model ended its process (status {status})"
            if isinstance(error, BrokenMessage):
                why = f"the model sent what no launch and no result has: {error}"
            last = f": {words.splitlines()[-1]}" if words else ""
            text = left.why() if self._late else f"{why}{last}"
            raise ModelFailure(BUNDLE_TEXTS["model_src"], text, late=self._late) from error
        return reply, outputs


def _launched(reply: dict[str, Any], tensors: list[torch.Tensor], launch: Launch) -> dict[int, torch.Tensor] | None:
    entries, addresses = _list_of(reply.get("arguments"), list), _list_of(reply.get("addresses"), int)
    if len(addresses) != len(tensors):
        raise _not_its_own()
    if any(len(entry) != 2 for entry in entries):
        raise _not_its_own()
    if _list_of([value for kind, value in entries if kind == "tensor"], int) != list(range(len(tensors))):
        raise _not_its_own()
    if not _is_plain([value for _, value in entries], DEEPEST + 1):
        raise ModelFailure(BUNDLE_TEXTS["model_src"], "a launch takes tensors, numbers, strings and lists of them")
    arguments = [tensors[value] if kind == "tensor" else value for kind, value in entries]
    return launch(str(reply.get("name", "")), arguments, addresses, _list_of(reply.get("made"), int))


def _is_plain(value: object, depth: int) -> bool:
    if isinstance(value, list):
        return depth > 0 and all(_is_plain(item, depth - 1) for item in value)
    return not isinstance(value, dict)


def _list_of(value: object, kind: type) -> list[Any]:
    """Return a value that is a list of one type."""
    if not isinstance(value, list) or not all(type(item) is kind for item in value):
        raise _not_its_own()
    return value


def _not_its_own() -> ModelFailure:
    return ModelFailure(BUNDLE_TEXTS["model_src"], "the model wrote to a pipe that is not its own")
