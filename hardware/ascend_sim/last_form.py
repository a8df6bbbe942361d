"""Finds the counted blocks of the compiler's last intermediate form in the dump that is read for operations.

Between that dump (gimple.py) and the last form, the compiler decides comparisons of constant addresses, leaves blocks
out, merges others, which changes their order, and turns switches and checks of indices into branches. So a block is
found by its statements. A register is defined by one statement only; others may be alike in several blocks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, TypeAlias

from kernel_gym.hardware.ascend_sim.assembly.guards import COUNTER

Statements: TypeAlias = tuple[tuple[str, ...], ...]

_FUNCTION = re.compile(r"^;; Function .* \((\S+), funcdef_no=\d+, ", re.MULTILINE)
_COMPARED = frozenset({"gimple_assign", "gimple_call", "gimple_cond"})
_CHECK, _SWITCH, _CONDITION, _BLOCK = ".UBSAN_BOUNDS", "gimple_switch", "gimple_cond", "<bb"
#: The places of results in statements.
_RESULTS = {"gimple_assign": 2, "gimple_call": 1}
_COUNTERS = frozenset({COUNTER, f"__builtin_{COUNTER}"})
_REGISTER = re.compile(r"[\w.$#]*_\d+")
#: What follows a call, such as `[return slot optimization]`, and the version of a register.
_REMARK, _VERSION = re.compile(r"(?<=>) \[[\w -]*\]$"), re.compile(r"_\d+(?:\(D\))?(?!\w)")


class _Block(NamedTuple):
    """The statements of a counted block, up to one that becomes a branch, and the register that it branches on."""

    statements: Statements
    cut_at: str | None

    def begins(self, statements: Statements) -> bool:
        """Return whether statements of the last form begin as this block, which is cut, does."""
        mine, others = _unversioned(self.statements), _unversioned(statements)
        following = others[len(mine) : len(mine) + 1]
        return others[: len(mine)] == mine and any(_VERSION.sub("", self.cut_at or "") in each for each in following)


def functions(dump: str) -> dict[str, str]:
    """Return the text of each function in a dump, by its symbol."""
    pieces = _FUNCTION.split(dump)
    return dict(zip(pieces[1::2], pieces[2::2], strict=True))


def origins(first: str, last: str) -> list[list[int]]:
    """Return which counted blocks of the first dump each counted block of the last form may be, by their places.

    Args:
        first: A function in the dump that is read for operations.
        last: The function in the last form.

    Returns:
        For each counted block of the last form, in its order: the blocks that it may be, all of them if none is alike.
    """
    blocks = list(_counted(first))
    exactly, nearly = dict[Statements, list[int]](), dict[Statements, list[int]]()
    for place, block in enumerate(blocks):
        if block.cut_at is None:
            exactly.setdefault(block.statements, []).append(place)
            nearly.setdefault(_unversioned(block.statements), []).append(place)
            if block.statements and block.statements[-1][0] == _CONDITION:  # which may be decided
                nearly.setdefault(_unversioned(block.statements[:-1]), []).append(place)
    cut = [place for place, block in enumerate(blocks) if block.cut_at is not None]
    found = []
    for statements, _ in _counted(last):
        alike = exactly.get(statements) or nearly.get(_unversioned(statements), [])
        if not alike or not any(map(_defines, statements)):
            alike = [*alike, *(place for place in cut if blocks[place].begins(statements))]
        found.append(alike or list(range(len(blocks))))
    return found


def _counted(function: str) -> Iterator[_Block]:
    """Yield the counted blocks of a function, each from the call of its counter to the end or the next such call."""
    statements: list[tuple[str, ...]] | None = None
    cut_at: str | None = None
    for line in function.splitlines():
        kind, _, rest = _REMARK.sub("", line.strip()).partition(" <")
        fields = rest.split(", ")
        is_counter = kind == "gimple_call" and fields[0] in _COUNTERS
        if kind.startswith(_BLOCK) or is_counter:
            if statements is not None:
                yield _Block(tuple(statements), cut_at)
            statements, cut_at = [] if is_counter else None, None
        elif statements is None or cut_at is not None:
            continue
        elif kind == _SWITCH:
            cut_at = fields[0]
        elif kind == "gimple_call" and fields[0] == _CHECK:
            cut_at = fields[-2]
        elif kind in _COMPARED:
            # The last form has the symbols of functions, the first dump their names.
            statements.append((kind, *fields[1:]) if kind == "gimple_call" else (kind, *fields))
    if statements is not None:
        yield _Block(tuple(statements), cut_at)


def _defines(statement: tuple[str, ...]) -> bool:
    """Return whether a statement defines a register."""
    return _REGISTER.fullmatch(statement[_RESULTS.get(statement[0], 0)]) is not None


def _unversioned(statements: Statements) -> Statements:
    """Return statements without the versions of registers that they read: merging blocks may change these."""
    return tuple(
        (*each[:read], *(_VERSION.sub("", operand) for operand in each[read:]))
        for each in statements
        for read in (_RESULTS.get(each[0], 0) + 1,)
    )
