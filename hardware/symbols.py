"""Read the symbol table of a built kernel."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

#: Elf64_Sym; both supported machines are little-endian.
_ENTRY = np.dtype(
    [("name", "<u4"), ("info", "u1"), ("other", "u1"), ("section", "<u2"), ("value", "<u8"), ("size", "<u8")]
)
#: Elf64_Rela.
RELOCATION = np.dtype([("offset", "<u8"), ("info", "<u8"), ("addend", "<i8")])
NOTYPE, OBJECT, FUNCTION, THREAD_LOCAL, RESOLVED = 0, 1, 2, 6, 10


@dataclass(frozen=True)
class Symbol:
    """A name, its kind, whether it is defined elsewhere, and the bytes that it stands for."""

    name: str
    kind: int
    undefined: bool
    value: int = 0
    size: int = 0


def of(elf: ELFFile, table: str = ".dynsym") -> Iterator[Symbol]:
    """Yield the symbols of a table; none if there is no such table."""
    section = elf.get_section_by_name(table)
    if not isinstance(section, SymbolTableSection):
        return
    if elf.elfclass != 64 or not elf.little_endian:
        raise ValueError("not a 64-bit little-endian file")
    names = section.stringtable.data()
    for entry in np.frombuffer(section.data(), _ENTRY).tolist():
        begin = entry[0]
        name = names[begin : names.index(b"\0", begin)].decode(errors="replace")
        yield Symbol(name, entry[1] & 0xF, entry[3] == 0, entry[4], entry[5])
