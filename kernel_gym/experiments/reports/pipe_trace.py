"""Trace a kernel: run it once more on the device and draw what every pipe of a core did when.

Journals hold busy times alone. A trace is made from the kernel that a run kept, on a device that writes traces.
"""

from __future__ import annotations

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

import numpy as np

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments import drawing
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.verifier.verifier import TRUSTWORTHY

#: Number of parts that the whole run is divided into, and of operations that are magnified.
PARTS, MAGNIFIED = 150, 40
LEFT, BAND = 60, 18


class NoTrace(KernelGymError):
    """Raised if a trace cannot be made; the message says why."""


@dataclass(frozen=True)
class Operation:
    """An operation of a pipe, in microseconds after the launch, and its source line."""

    pipe: str
    name: str
    begin: float
    us: float
    line: int

    @property
    def end(self) -> float:
        """When the operation ended."""
        return self.begin + self.us


def trace_kernel(source: str, task_id: str, device: Any) -> list[Operation]:
    """Run a kernel once at the timing sizes; return the operations of the core that ended last, in order."""
    if not hasattr(device, "trace"):
        raise NoTrace(f"{device.name} writes no traces")
    if device.sandbox_tier() not in TRUSTWORTHY:
        raise NoTrace("this machine's sandbox is too weak to run untrusted kernels; run kernel-gym doctor")
    task = suites.find_task(task_id)
    build = device.build(Kernel(source, device.language), task)
    if not build.ok:
        raise NoTrace("the kernel does not compile here")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        run = device.trace(build, Inputs(task.instance(task.timing).signature), path)
        if run.fault:
            raise NoTrace(f"the kernel does not run here: {run.fault.message}")
        return last_core(json.loads(path.read_text())["traceEvents"])


def last_core(events: Iterable[dict[str, Any]]) -> list[Operation]:
    """Return the operations of the core that ended last, which decides the latency."""
    pipes: dict[tuple[int, int], str] = {}
    cores: dict[int, list[Operation]] = {}
    for event in events:
        where = event["pid"], event.get("tid", 0)
        if event["name"] == "thread_name":
            pipes[where] = event["args"]["name"]
        elif event["ph"] == "X" and event.get("cat") != "launch":
            line = int(event.get("args", {}).get("line", 0))
            operation = Operation(pipes[where], event["name"], event["ts"], event["dur"], line)
            cores.setdefault(where[0], []).append(operation)
    if not cores:
        raise NoTrace("the kernel used no pipe")
    last = max(cores.values(), key=lambda operations: max(operation.end for operation in operations))
    return sorted(last, key=lambda operation: operation.begin)


def picture(operations: Sequence[Operation]) -> str:
    """Draw how busy each pipe was over the whole run and, below, some operations of its middle one by one."""
    by_pipe: dict[str, list[Operation]] = defaultdict(list)
    for operation in operations:
        by_pipe[operation.pipe].append(operation)
    pipes = sorted(sorted(by_pipe), key=lambda pipe: -sum(operation.us for operation in by_pipe[pipe]))
    end = max(operation.end for operation in operations)
    first = max(0, len(operations) // 2 - MAGNIFIED // 2)
    magnified = operations[first : first + MAGNIFIED]
    begin, stop = magnified[0].begin, max(operation.end for operation in magnified)
    below = len(pipes) * BAND + 30
    parts = [
        *(_busy(pipe, i * BAND, by_pipe[pipe], end) for i, pipe in enumerate(pipes)),
        _span(begin / end, stop / end, len(pipes) * BAND),
        _times(0.0, end, len(pipes) * BAND),
        *(_name(pipe, below + i * BAND) for i, pipe in enumerate(pipes)),
        *(_box(operation, below + pipes.index(operation.pipe) * BAND, begin, stop) for operation in magnified),
        _times(begin, stop, below + len(pipes) * BAND),
    ]
    return drawing.figure("".join(parts), below + len(pipes) * BAND + 18, "what every pipe did when", wide=True)


def _busy(pipe: str, top: int, operations: Sequence[Operation], end: float) -> str:
    """Draw a pipe's share of busy time in every part of the run as an outline."""
    edges = np.linspace(0.0, end, PARTS + 1)
    done = np.zeros(PARTS + 1)
    for operation in operations:
        done += np.clip(edges - operation.begin, 0.0, operation.us)
    shares = np.minimum(1.0, np.diff(done) * PARTS / end)
    step, floor = (drawing.WIDTH - LEFT) / PARTS, top + BAND - 3
    heights = "".join(f"V{floor - (BAND - 5) * share:.1f}h{step:.2f}" for share in shares)
    outline = f'<path d="M{LEFT} {floor}{heights}V{floor}z" fill="{_colour(pipe)}"/>'
    return _name(pipe, top) + outline


def _box(operation: Operation, top: int, begin: float, stop: float) -> str:
    scale = (drawing.WIDTH - LEFT) / (stop - begin)
    x, width = LEFT + (operation.begin - begin) * scale, max(0.8, operation.us * scale - 0.4)
    return (
        f'<rect x="{x:.1f}" y="{top + 2}" width="{width:.1f}" height="{BAND - 5}" fill="{_colour(operation.pipe)}">'
        f"<title>{escape(operation.name)}, line {operation.line}: {operation.us:.3f} us</title></rect>"
    )


def _span(begin: float, stop: float, height: int) -> str:
    """Mark the magnified part."""
    room = drawing.WIDTH - LEFT
    return (
        f'<rect x="{LEFT + room * begin:.1f}" y="0" width="{max(1.5, room * (stop - begin)):.1f}" '
        f'height="{height}" fill="{drawing.COLOURS[1]}" opacity="0.25"/>'
    )


def _times(begin: float, stop: float, top: int) -> str:
    digits = 1 if stop - begin >= 10 else 2
    return (
        f'<text x="{LEFT}" y="{top + 12}">{begin:.{digits}f} us</text>'
        f'<text x="{drawing.WIDTH}" y="{top + 12}" text-anchor="end">{stop:.{digits}f} us</text>'
    )


def _name(pipe: str, top: int) -> str:
    return f'<text x="0" y="{top + BAND - 5}">{escape(pipe)}</text>'


def _colour(pipe: str) -> str:
    """Return a pipe's colour: copies in, copies out, computing and the scalar unit have different ones."""
    kinds = {"MTE2": 0, "MTE3": 4, "MTE1": 6, "V": 2, "M": 3, "FIX": 9}
    return drawing.COLOURS[kinds.get(pipe, 5)]
