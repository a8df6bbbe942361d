"""Runs a kernel's host function, confined and without data, and reads its launches.

In the host function tensors are handles: a tag, the tensor's number, an offset. The record of launches is untrusted:
sizes, counts and handles are checked before they are used.
"""

from __future__ import annotations

import mmap
import os
import signal
import struct
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.device import Fault
from kernel_gym.hardware.host.runtime import HostPrograms
from kernel_gym.tasks.specs import DTYPES, Signature

#: Handles: these sixteen bits on top, then eight of the tensor's number, then forty of the offset in bytes.
TAG = 0x5AA5
OFFSET_BITS = 40
MAX_TENSORS, MAX_SCALARS, MAX_LAUNCHES = 96, 256, 4096
LOG_BYTES = 1 << 20
CPU_SECONDS, WALL_SECONDS = 5, 10.0
#: Characters of the names of all functions together; one of them is an argument of the device's compiler.
MAX_NAMES = 100_000
#: Writes the names out, within limits of memory (kB), seconds and characters.
_DEMANGLE = ("sh", "-c", f"ulimit -v 1000000; ulimit -t 5; c++filt | head -c {MAX_NAMES + 1}")

_CALL = struct.Struct("<4I2Q")
_TENSOR = struct.Struct("<Q2i8q")
_ANSWER = struct.Struct("<Ii2I240s")
_LAUNCH = struct.Struct("<Q3I3IQ2I")
_ARGUMENT = struct.Struct("<2I")
#: Where the call begins. Before it is a word that the runner sets to 1 before it loads the kernel, and then unmaps.
_CALL_AT = 1 << 16
_TENSORS_AT = _CALL_AT + _CALL.size
_SCALARS_AT = _TENSORS_AT + MAX_TENSORS * _TENSOR.size
_ANSWER_AT = _SCALARS_AT + 16 * MAX_SCALARS
_LOG_AT = _ANSWER_AT + _ANSWER.size
_RETURNED, _NOT_LOADED, _LOG_FULL = 1, 3, 4


class NamesTooLong(Exception):
    """The names of a kernel's functions are too long to be read."""

    def __init__(self) -> None:
        super().__init__("the names of functions are too long: use fewer or smaller template arguments")


@dataclass(frozen=True)
class Argument:
    """One argument: its bytes, and for each handle among them its place, its tensor and the offset in the tensor."""

    data: bytes
    handles: tuple[tuple[int, int, int], ...] = ()


@dataclass(frozen=True)
class Launch:
    """One launch: the kernel's name in the GPU's file, its shape, dynamic shared memory, arguments, author's line."""

    kernel: str
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    arguments: tuple[Argument, ...]
    line: int


@dataclass(frozen=True)
class Plan:
    """The result of one call of a host function: its launches, or the code that it returned, or a fault."""

    launches: tuple[Launch, ...] = ()
    code: int = 0
    fault: Fault | None = None
    timeout: bool = False


def handle(tensor: int, offset: int = 0) -> int:
    """Return the address of a tensor that a host function sees."""
    return TAG << 48 | tensor << OFFSET_BITS | offset


def line_count(source: Path) -> int:
    """Return the number of lines of a file."""
    return source.read_bytes().count(b"\n") + 1


def plan(
    runtime: HostPrograms, code: Path, kernels: Mapping[int, str], signature: Signature, workspace: int, lines: int
) -> Plan:
    """Call the host function once; tensors are numbered inputs first, then outputs, then the workspace.

    Args:
        runtime: The shared programs.
        code: The compiled host half.
        kernels: The kernel's name for each offset in `code`; see `kernels_in`.
        signature: Shapes, dtypes and attributes of the call.
        workspace: Bytes of workspace.
        lines: Number of lines of the author's text. A record that names another line has none.

    Returns:
        The launches, or why there are none.

    Raises:
        InfrastructureError: If the host function could not be confined, or has too many arguments.
    """
    specs = (*signature.inputs, *signature.outputs)
    if len(specs) + 1 > MAX_TENSORS or max(len(signature.ints), len(signature.floats)) > MAX_SCALARS:
        raise InfrastructureError(f"a kernel takes at most {MAX_TENSORS - 1} tensors and {MAX_SCALARS} scalars")
    descriptor = os.memfd_create("launches", os.MFD_CLOEXEC)
    try:
        os.ftruncate(descriptor, _LOG_AT + LOG_BYTES)
        with mmap.mmap(descriptor, _LOG_AT + LOG_BYTES) as memory:
            _CALL.pack_into(
                memory, _CALL_AT, len(signature.inputs), len(signature.outputs), len(signature.ints),
                len(signature.floats), handle(len(specs)), workspace,
            )  # fmt: skip
            _write(memory, signature)
            status = _run(runtime, code, descriptor)
            sizes = (*(spec.nbytes for spec in specs), workspace)
            return _read(bytes(memory), status, kernels, sizes, lines)
    finally:
        os.close(descriptor)


def _write(memory: mmap.mmap, signature: Signature) -> None:
    for index, spec in enumerate((*signature.inputs, *signature.outputs)):
        shape = (*spec.shape, *(0,) * (8 - len(spec.shape)))
        at = _TENSORS_AT + index * _TENSOR.size
        _TENSOR.pack_into(memory, at, handle(index), DTYPES[spec.dtype][0], len(spec.shape), *shape)
    struct.pack_into(f"<{len(signature.ints)}q", memory, _SCALARS_AT, *signature.ints)
    struct.pack_into(f"<{len(signature.floats)}d", memory, _SCALARS_AT + 8 * MAX_SCALARS, *signature.floats)


def _run(runtime: HostPrograms, code: Path, shared: int) -> int | None:
    """Return the exit status of the runner; None if it was ended."""
    # A file without a path, because the runner drops its rights before it loads the code.
    loaded = os.memfd_create("host", os.MFD_CLOEXEC)
    try:
        os.write(loaded, code.read_bytes())
        os.fchmod(loaded, 0o555)
        command = [str(runtime.runner), *map(str, (runtime.confinement.layers, CPU_SECONDS, shared, loaded))]
        process = subprocess.Popen(
            runtime.confinement.wrapped(command, read=[runtime.folder]), pass_fds=(shared, loaded), env={},
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
        )  # fmt: skip
        return _wait(process)
    finally:
        os.close(loaded)


def _wait(process: subprocess.Popen[bytes]) -> int | None:
    try:
        return process.wait(WALL_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        return None


def _read(memory: bytes, status: int | None, kernels: Mapping[int, str], sizes: tuple[int, ...], lines: int) -> Plan:
    state, code, count, used, error = _ANSWER.unpack_from(memory, _ANSWER_AT)
    words = error.split(b"\0")[0].decode(errors="replace")
    if memory[:4] == bytes(4):  # nothing of the kernel has run
        raise InfrastructureError(f"the host function could not be confined: {words or f'status {status}'}")
    if status is None or status in (-signal.SIGXCPU, -signal.SIGKILL):
        return Plan(fault=Fault("HOST_TIMEOUT", "the host function does not end"), timeout=True)
    if state == _LOG_FULL or count > MAX_LAUNCHES:
        return Plan(fault=Fault("TOO_MANY_LAUNCHES", f"more than {MAX_LAUNCHES} launches or 1 MB of arguments"))
    if state == _NOT_LOADED:
        return Plan(fault=Fault("NOT_LOADED", f"the host function cannot be loaded: {words}"))
    if state != _RETURNED or status != 0:
        return Plan(fault=_crash(status))
    if code:
        return Plan(code=code)
    return _Log(memory[_LOG_AT : _LOG_AT + min(used, LOG_BYTES)], kernels, sizes, lines).plan(count)


def _crash(status: int) -> Fault:
    name = signal.Signals(-status).name if status < 0 else f"status {status}"
    return Fault(
        "HOST_CRASH", f"the host function ended with {name}: it may not touch tensors or the system, only launch"
    )


class _Log:
    """Reads the untrusted records of launches."""

    def __init__(self, data: bytes, kernels: Mapping[int, str], sizes: tuple[int, ...], lines: int) -> None:
        self.data, self.kernels, self.sizes, self.lines = data, kernels, sizes, lines
        self.at = 0

    def plan(self, count: int) -> Plan:
        try:
            return Plan(tuple(self._launch() for _ in range(count)))
        except _Refused as refused:
            return Plan(fault=refused.fault)
        except struct.error:
            return Plan(fault=Fault("BAD_RECORD", "the record of launches is damaged"))

    def _take(self, form: struct.Struct) -> tuple[Any, ...]:
        values = form.unpack_from(self.data, self.at)
        self.at += (form.size + 7) // 8 * 8
        return values

    def _launch(self) -> Launch:
        place, gx, gy, gz, bx, by, bz, shared, line, count = self._take(_LAUNCH)
        line = line if line <= self.lines else 0
        if place not in self.kernels:
            raise _Refused("BAD_KERNEL", "a launch of something that is no __global__ function of this file", line)
        arguments = tuple(self._argument(index, line) for index in range(count))
        return Launch(self.kernels[place], (gx, gy, gz), (bx, by, bz), shared, arguments, line)

    def _argument(self, index: int, line: int) -> Argument:
        size, is_pointer = self._take(_ARGUMENT)
        data = self.data[self.at : self.at + size]
        self.at += (size + 7) // 8 * 8
        if len(data) != size:
            raise struct.error
        handles = tuple(self._handles(data, index, line))
        if is_pointer and not handles and any(data):
            raise _Refused("BAD_POINTER", f"argument {index} is an address of the host: pass tensors or values", line)
        return Argument(data, handles)

    def _handles(self, data: bytes, index: int, line: int) -> Any:
        for at in range(0, len(data) - 7, 8):
            (word,) = struct.unpack_from("<Q", data, at)
            if word >> 48 == TAG:
                tensor, offset = word >> OFFSET_BITS & 0xFF, word & (1 << OFFSET_BITS) - 1
                if tensor >= len(self.sizes) or offset > self.sizes[tensor]:
                    raise _Refused("OUT_OF_TENSOR", f"argument {index} points outside of its tensor", line)
                yield at, tensor, offset


class _Refused(Exception):
    """A record that fails the checks."""

    def __init__(self, rule: str, message: str, line: int) -> None:
        super().__init__(message)
        self.fault = Fault(rule, message, line or None)


def kernels_in(path: Path, names: set[str]) -> dict[int, str]:
    """Return the kernels among the functions of a shared object: offset and name expression (`f<float, 4>`).

    Raises:
        NamesTooLong: Nested templates make names whose length doubles with every level.
    """
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        symbols = list(table.iter_symbols()) if isinstance(table, SymbolTableSection) else []
    functions = {s["st_value"]: s.name for s in symbols if s["st_info"]["type"] == "STT_FUNC" and s["st_value"]}
    run = subprocess.run(_DEMANGLE, input="\n".join(functions.values()), capture_output=True, text=True, check=False)
    lines = run.stdout.splitlines()
    if len(lines) != len(functions) or len(run.stdout) > MAX_NAMES:
        raise NamesTooLong
    named = dict(zip(functions, map(expression, lines), strict=True))
    return {place: name for place, name in named.items() if name.partition("<")[0] in names}


def expression(demangled: str) -> str:
    """Return a function's name without return type and parameters: `void f<int, 4>(int*)` gives `f<int, 4>`."""
    text = demangled.replace("(anonymous namespace)::", "")
    depth, begin, end = 0, 0, len(text)
    for place, character in enumerate(text):
        depth += {"<": 1, ">": -1}.get(character, 0)
        if depth == 0 and character == " " and place < end:
            begin = place + 1
        if depth == 0 and character == "(":
            end = place
            break
    return text[begin:end]
