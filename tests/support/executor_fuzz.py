"""Builds the fuzzer of the executor: every call of the border, with arguments drawn by type."""

from __future__ import annotations

import subprocess
from collections import Counter
from pathlib import Path

import kept_programs

from kernel_gym.hardware.ascend_sim import marshal

FOLDER = Path(marshal.__file__).parent
#: The folders of the executor and of what it uses.
PARTS = ("executor", "numerics", "protocol")
#: How an argument of each type is drawn; 32-bit numbers by their name.
DRAWN = {
    "asc_local": "local()", "asc_global": "global()", "asc_walk": "walk()", "asc_burst": "burst()",
    "asc_nd2nz": "nd2nz()", "asc_tile": "tile()", "asc_matrix": "matrix()", "asc_matmul_shape": "matmul_shape()",
    "asc_fractals": "fields<asc_fractals>(8)", "asc_mmad_shape": "fields<asc_mmad_shape>(40)",
    "asc_fix_shape": "fields<asc_fix_shape>(40)", "asc_image": "image()", "asc_lists": "lists()",
    "asc_blocks16": "blocks16()", "asc_steps": "fields<asc_steps>(16)", "asc_event": "fields<asc_event>(4)",
    "asc_transpose_steps": "fields<asc_transpose_steps>(6)", "asc_text": "words()", "uint64_t": "number()",
    "int32_t": "static_cast<int32_t>(below(8) ? below(8) : number())",
}  # fmt: skip
ENDS_A_CORE = {
    "launch_begin",
    "core_begin",
    "core_resume",
    "core_end",
    "launch_end",
    "returned",
    "stuck",
    "sync_point",
    "soft_sync_point",
}
SMALL = "static_cast<uint32_t>(below(24) ? below({0}) : number())"
RANGES = {
    "op": 40,
    "dtype": 12,
    "src_dtype": 12,
    "dst_dtype": 12,
    "mode": 6,
    "queue": 3,
    "position": 15,
    "source": 15,
    "destination": 15,
}
RANGES |= {
    "exact": 2,
    "pad": 2,
    "pad_left": 10,
    "pad_right": 10,
    "block": 4,
    "event": 9,
    "which": 4,
    "count": 300,
    "flags": 8,
    "pipe": 8,
    "space": 8,
    "round": 8,
}


def fuzzer(sanitizers: bool) -> Path:
    """The program."""
    sources = [path for part in PARTS for path in sorted((FOLDER / "src" / part).glob("*.cpp"))]
    flags = ["-std=c++17", "-ffp-contract=off", "-D_GLIBCXX_ASSERTIONS"]
    flags += ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"] if sanitizers else ["-O0"]
    own, calls = Path(__file__).with_suffix(".cpp"), {"fuzz_calls.inc": _calls()}
    return kept_programs.build("executor_fuzz", [own, *sources], flags, calls, common="executor/executor.h")


def fuzz(seed: int, records: int, sanitizers: bool = False) -> Counter[str]:
    """How often each rule was broken, and how many records were accepted; fails if the executor does."""
    done = subprocess.run([fuzzer(sanitizers), str(seed), str(records)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"seed {seed}: {done.stderr[-2000:]}"
    return Counter({rule: int(times) for rule, times in (line.split() for line in done.stdout.splitlines())})


def _calls() -> str:
    calls = marshal.parse((FOLDER / "include" / "abi.h").read_text())
    lines = []
    for number, call in enumerate(calls):
        # Drawn in order, then passed: the order in which C++ evaluates arguments is not fixed.
        drawn = " ".join(f"const auto {item.name}_ = {_draw(item)};" for item in call.payload)
        passed = ", ".join([*(f"{item.name}_" for item in call.payload), "line"])
        lines.append(f"case {number}: {{ {drawn} executor.{call.name}({passed}); break; }}")
    ends = [str(number) for number, call in enumerate(calls) if call.name in ENDS_A_CORE]
    lines += [f"#define CALLS {len(calls)}", f"#define CALLS_THAT_END_A_CORE {', '.join(ends)}"]
    return "\n".join(lines) + "\n"


def _draw(argument: marshal.Argument) -> str:
    if argument.type == "uint32_t":
        return "size_in_bytes()" if argument.name == "bytes" else SMALL.format(RANGES.get(argument.name, 4))
    return DRAWN[argument.type]
