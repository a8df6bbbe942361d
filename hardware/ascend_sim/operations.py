"""Counts the operations of plain code in each basic block of a compiled kernel.

The compiler calls a counter at the start of every basic block. Its dump of the intermediate form (GIMPLE), written
right after it has inserted these calls, says what each block computes (gimple.py). There the form is still the same for
every machine: only the order in which the arguments of a call are computed differs. The linker lists the calls of the
counter as relocations, which tell the address of each block. The compiler may move a block behind its only predecessor,
but has numbered the instructions before that: the numbers in the assembly tell which block of the dump each call is in.

After that dump the compiler leaves out and merges blocks. Its dump of the last form says which remain, and in which
order (last_form.py).

The instructions themselves are read as well (assembly/guards.py): no block costs less than the floats, the divisions
and half of the integer operations among its instructions.

The prices of operations are figures of the chip profile (`scalar` in `chips/base.yaml`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from elftools.elf.elffile import ELFFile

from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware import symbols
from kernel_gym.hardware.ascend_sim import call_types, last_form
from kernel_gym.hardware.ascend_sim.assembly.guards import COUNTER, Computed
from kernel_gym.hardware.ascend_sim.gimple import Operations, read_dump
from kernel_gym.hardware.ascend_sim.source_names import Type, aliases

DUMP = "kernel.gimple"
#: The file of operations has the name of the object file and this.
SUFFIX = ".operations"
#: Flags that make the compiler write the dump.
FLAGS = (f"-fdump-tree-sancov_O0-raw={DUMP}",)
#: A flag that makes the linker keep the relocations.
LINK_FLAG = "-Wl,--emit-relocs"

#: On both supported machines a call ends four bytes after the place that its relocation names.
_CALL_BYTES = 4
#: What a preprocessor leaves between declarations: where lines come from, and pragmas.
_DIRECTIVE = re.compile("^#.*$", re.MULTILINE)
#: Operations that it costs to call a function as one of another type: what it computes by that is not known.
_RETYPED = 8


def count(
    target: Path,
    dump: str,
    source: str,
    headers: Mapping[str, Type],
    kernel: ELFFile,
    computed: Mapping[str, Sequence[Computed]],
    last: str = "",
) -> None:
    """Write the operations of each basic block of a kernel that was compiled with `FLAGS`.

    Args:
        target: The path of the object file.
        dump: The compiler's dump.
        source: The text that was compiled, which says what its own names of types mean.
        headers: What the names of types mean in the headers.
        kernel: The object file.
        computed: What the instructions of each function compute, from one call of the counter to the next.
        last: The dump of the last form, with the types of calls (call_types.py).

    Raises:
        InfrastructureError: If the dump does not fit the object file.
    """
    source = _DIRECTIVE.sub("", source)
    blocks = read_dump(dump, source, headers)
    types = {**headers, **aliases(source, headers)}
    counted = frozenset(name for name, each in blocks.items() if each)
    for function in call_types.called_as_others(last, source, types, counted):
        blocks[function][0].integer += _RETYPED
    blocks |= _in_last_form(dump, last, blocks)
    lines = [
        f"{where} {each.branches} {each.integer} {each.float} {each.divisions}\n"
        for where, each in _placed(kernel, blocks, computed)
    ]
    target.with_name(f"{target.name}{SUFFIX}").write_text("".join(lines))


def _in_last_form(dump: str, last: str, blocks: Mapping[str, list[Operations]]) -> dict[str, list[Operations]]:
    """Return the operations of each counted block in the last form, in its order.

    Where several blocks of the dump may be the same one, the dearest of them counts.
    """
    first, texts = last_form.functions(dump), last_form.functions(last)
    return {
        symbol: [
            Operations.dearest([each[place] for place in places])
            for places in last_form.origins(first[symbol], texts[symbol])
        ]
        for symbol, each in blocks.items()
        if symbol in texts
    }


def _placed(
    elf: ELFFile, blocks: Mapping[str, list[Operations]], computed: Mapping[str, Sequence[Computed]]
) -> list[tuple[int, Operations]]:
    """Return the return address of each call of the counter, in order, with the operations of its block.

    Instructions are numbered in the order of the blocks before any of these is moved.
    """
    table = list(symbols.of(elf, ".symtab"))
    calls = _calls(elf, [number for number, symbol in enumerate(table) if symbol.name == COUNTER])
    placed: dict[int, Operations] = {}
    for symbol in table:
        expected = blocks.get(symbol.name, []) if symbol.kind == symbols.FUNCTION else []
        if not expected:
            continue
        begin, end = np.searchsorted(calls, [symbol.value, symbol.value + symbol.size])
        found = computed.get(symbol.name, ())
        if not end - begin == len(expected) == len(found):
            raise InfrastructureError(
                f"{symbol.name} has {end - begin} basic blocks, but {len(expected)} in the compiler's dump"
            )
        ranks = {number: rank for rank, number in enumerate(sorted(each.number for each in found))}
        operations = (expected[ranks[each.number]].at_least(each) for each in found)
        placed.update(zip((calls[begin:end] + _CALL_BYTES).tolist(), operations, strict=True))
    if len(placed) != len(calls):
        raise InfrastructureError(f"{len(calls) - len(placed)} basic blocks are missing in the compiler's dump")
    return sorted(placed.items())


def _calls(elf: ELFFile, counters: list[int]) -> np.ndarray:
    """Return the addresses of the relocations by one of these symbols, in order."""
    text = elf.get_section_by_name(".rela.text")
    if text is None:
        return np.empty(0, np.int64)
    relocations = np.frombuffer(text.data(), symbols.RELOCATION)
    return np.sort(relocations["offset"][np.isin(relocations["info"] >> 32, counters)].astype(np.int64))
