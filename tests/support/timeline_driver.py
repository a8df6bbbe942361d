"""Drives the C++ timing pass alone, with records written as text."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import kept_programs

from kernel_gym.hardware.ascend_sim import chip

SOURCES = Path(chip.__file__).parent / "src"
S, V, M, MTE1, MTE2, MTE3, FIX, ALL = 0, 1, 2, 3, 4, 5, 6, 15
X, Y, Z = (0x100000000000 + (i << 36) for i in range(3))
KB = 1024


def program() -> Path:
    """The driver."""
    sources = [*sorted(SOURCES.glob("timing/*.cpp")), Path(__file__).with_name("timeline_main.cpp")]
    return kept_programs.build("timeline", sources, ["-std=c++17", "-O1", "-Wall", "-Wextra", "-Werror"])


def time(lines: Iterable[str], profile: chip.ChipProfile | None = None, *arguments: str) -> dict[str, Any]:
    """The report on these records."""
    profile = profile or chip.load("910B1")
    text = "\n".join([*(f"chip {key} {value}" for key, value in profile.pairs()), *lines])
    done = subprocess.run([str(program()), *arguments], input=text, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    report: dict[str, Any] = json.loads(done.stdout)
    return report


def latency(lines: Iterable[str], profile: chip.ChipProfile | None = None) -> float:
    """Its latency in microseconds."""
    return float(time(lines, profile)["latency_us"])


def launch(blocks: Iterable[Iterable[str]], kind: int = 0) -> list[str]:
    """One launch; `blocks` holds the records of each block, without their core."""
    bodies = [list(body) for body in blocks]
    lines = [f"launch_begin a={len(bodies)} b={kind}"]
    for block, body in enumerate(bodies):
        lines += [f"core_begin core={block}", *(f"{line} core={block}" for line in body), f"core_end core={block}"]
    return [*lines, "launch_end"]


def copy_in(gm: int, size: int, bursts: int = 1, gap: int = 0, **more: int) -> str:
    return _record("copy_in", pipe=MTE2, gm=gm, bytes=size, bursts=bursts, gap=gap, **more)


def copy_out(gm: int, size: int, bursts: int = 1, gap: int = 0, **more: int) -> str:
    return _record("copy_out", pipe=MTE3, gm=gm, bytes=size, bursts=bursts, gap=gap, **more)


def vector(op: int, repeats: int, **more: int) -> str:
    return _record("vector", pipe=V, op=op, repeats=repeats, **{"elements": 64 * repeats, **more})


def signal(pipe: int, token: int) -> str:
    return f"signal pipe={pipe} token={token}"


def wait(pipe: int, token: int) -> str:
    return f"wait pipe={pipe} token={token}"


def _record(kind: str, **fields: int) -> str:
    return " ".join([kind, *(f"{name}={value}" for name, value in fields.items())])


def elementwise(total: int, cores: int, tile: int, buffers: int, *, inputs: int = 2, op: int = 0) -> list[str]:
    """An elementwise kernel on `total` bytes: copy in, one instruction, copy out, with queues of `buffers` each."""
    share = total // cores
    return launch(_tiles(block * share, share, tile, buffers, inputs, op) for block in range(cores))


def _tiles(begin: int, size: int, tile: int, buffers: int, inputs: int, op: int) -> list[str]:
    lines: list[str] = []
    for number, offset in enumerate(range(begin, begin + size, tile)):
        piece, slot = min(tile, begin + size - offset), number % buffers
        full, empty, ready, written = slot, 10 + slot, 20 + slot, 30 + slot
        if number >= buffers:
            lines.append(wait(MTE2, empty))
        lines += [copy_in((X, Y)[i] + offset, piece) for i in range(inputs)]
        lines += [signal(MTE2, full), wait(V, full)]
        if number >= buffers:
            lines.append(wait(V, written))
        repeats = -(-piece // 256)
        lines += [vector(op, repeats, operands=inputs + 1, dst=2 * tile, src1=tile), signal(V, empty), signal(V, ready)]
        lines += [wait(MTE3, ready), copy_out(Z + offset, piece), signal(MTE3, written)]
        lines += ["overhead op=2"] * 12
    return lines
