"""Messages between a process and the confined process that runs a problem file: a JSON text and tensors as raw bytes.

Nothing is unpickled: the bytes of a confined process are untrusted.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Annotated, BinaryIO, Literal, TypeAlias

import torch
from pydantic import FailFast, Field, TypeAdapter, ValidationError

from kernel_gym.tasks.graph import Graph
from kernel_gym.tasks.specs import DTYPES, Case, Signature, TensorSpec
from kernel_gym.tasks.trials import Counts, Trial

#: Bytes of a message's text, and tensors, that are accepted; the graph of a large network has some megabytes and some
#: thousand parameters.
TEXT_LIMIT, MOST_TENSORS = 32 << 20, 10_000
#: Dimensions of a tensor that are accepted; numpy has no more than this in all versions.
MOST_DIMENSIONS = 32

Method = Literal[
    "signature",
    "run_example",
    "evaluate",
    "tried",
    "statistics",
    "fixed_inputs",
    "own_inputs",
    "work",
    "graph",
    "layers",
]

_LENGTH = struct.Struct("<Q")


@dataclass(frozen=True)
class Request:
    """A call of one method of the problem file's instance at a case.

    Args:
        method: What is called.
        digest: Content address of the task, from which values are drawn.
        case: The sizes.
        public: The case that tells the domains of the inputs; None to leave them out.
        precision: The element type in which `evaluate` computes; None for the task's own.
        seed: What `own_inputs` draws from.
        trial: What differs in the run of `tried`.
    """

    method: Method
    digest: str
    case: Case
    public: Case | None = None
    precision: str | None = None
    seed: int = 0
    trial: Trial = field(default_factory=Trial)


@dataclass(frozen=True)
class Response:
    """The result of a call. `error` is the text of a TaskError; `positions` are those of `fixed_inputs` and
    `statistics`. `drawn` are those of `drawn_inputs`, which come with `fixed_inputs`."""

    error: str | None = None
    signature: Signature | None = None
    graph: Graph | None = None
    positions: list[int] = field(default_factory=list)
    drawn: list[int] = field(default_factory=list)
    work: int = 0
    nonlinear: bool = False
    iterations: int = 0
    counts: Counts = field(default_factory=Counts)


#: A text that is wrong in one place is not read further: each mistake would be kept.
_Message: TypeAlias = tuple[str, Annotated[list[TensorSpec], Field(max_length=MOST_TENSORS), FailFast()]]
_FRAME: TypeAdapter[_Message] = TypeAdapter(_Message)
_REQUEST = TypeAdapter(Request)
_RESPONSE = TypeAdapter(Response)


class BrokenMessage(Exception):
    """Raised for bytes that are not a message."""


def send_request(stream: BinaryIO, request: Request, tensors: Sequence[torch.Tensor] = ()) -> None:
    """Write a request and its tensors."""
    send(stream, _REQUEST.dump_json(request).decode(), tensors)


def receive_request(stream: BinaryIO) -> tuple[Request, list[torch.Tensor]]:
    """Read a request and its tensors; EOFError if there is none."""
    text, specs = _receive_text(stream)
    return _REQUEST.validate_json(text), [_receive_tensor(stream, spec) for spec in specs]


def send_response(stream: BinaryIO, response: Response, tensors: Sequence[torch.Tensor] = ()) -> None:
    """Write a response and its tensors."""
    # pydantic writes infinities as null, in types that refer to themselves whatever their settings.
    send(stream, json.dumps(_RESPONSE.dump_python(response)), tensors)


def receive_response(stream: BinaryIO, limit_bytes: int) -> tuple[Response, list[torch.Tensor]]:
    """Read a response and its tensors.

    Args:
        stream: Where the confined process writes.
        limit_bytes: How many bytes the tensors may have.

    Returns:
        The response and its tensors.

    Raises:
        BrokenMessage: If the bytes are no response, or if the tensors are larger.
        EOFError: If the process has ended.
    """
    text, tensors = receive(stream, limit_bytes)
    try:
        return _RESPONSE.validate_json(text), tensors
    except ValidationError as error:
        raise BrokenMessage(f"no response: {_first(error)}") from error


def receive(stream: BinaryIO, limit_bytes: int) -> tuple[str, list[torch.Tensor]]:
    """Read a text and its tensors; a BrokenMessage if the tensors have more than `limit_bytes`."""
    text, specs = _receive_text(stream)
    if sum(spec.nbytes for spec in specs) > limit_bytes:
        raise BrokenMessage("more tensors than were asked for")
    return text, [_receive_tensor(stream, spec) for spec in specs]


def send(stream: BinaryIO, text: str, tensors: Sequence[torch.Tensor] = ()) -> None:
    """Write a text and its tensors."""
    specs = [TensorSpec(tuple(tensor.shape), str(tensor.dtype).removeprefix("torch.")) for tensor in tensors]
    frame = _FRAME.dump_json((text, specs))
    stream.write(_LENGTH.pack(len(frame)) + frame)
    for tensor in tensors:
        stream.write(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
    stream.flush()


def _receive_text(stream: BinaryIO) -> _Message:
    (length,) = _LENGTH.unpack(_read(stream, _LENGTH.size))
    if length > TEXT_LIMIT:
        raise BrokenMessage(f"a text of more than {TEXT_LIMIT >> 20} MB")
    try:
        text, specs = _FRAME.validate_json(_read(stream, length))
    except ValidationError as error:
        raise BrokenMessage(f"no message: {_first(error)}") from error
    if any(spec.dtype not in DTYPES or min(spec.shape, default=0) < 0 for spec in specs):
        raise BrokenMessage("a tensor of unknown form")
    if any(len(spec.shape) > MOST_DIMENSIONS for spec in specs):
        raise BrokenMessage(f"a tensor of more than {MOST_DIMENSIONS} dimensions")
    if any(prod(max(extent, 1) for extent in spec.shape) >= 1 << 63 for spec in specs):
        raise BrokenMessage("a tensor with extents that no memory has")
    return text, specs


def _first(error: ValidationError) -> str:
    return str(error).partition("\n  ")[2].partition(" [")[0]


def _receive_tensor(stream: BinaryIO, spec: TensorSpec) -> torch.Tensor:
    dtype = getattr(torch, spec.dtype)
    if spec.nbytes == 0:
        return torch.empty(spec.shape, dtype=dtype)
    content = bytearray(spec.nbytes)
    view = memoryview(content)
    while view:
        count = stream.readinto(view)  # type: ignore[attr-defined]  # a buffered pipe has it
        if not count:
            raise EOFError
        view = view[count:]
    return torch.frombuffer(content, dtype=dtype).reshape(spec.shape)


def _read(stream: BinaryIO, length: int) -> bytes:
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content
