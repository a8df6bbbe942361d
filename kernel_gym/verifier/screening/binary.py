"""The binary gate: which symbols, sections and instructions a kernel's binary may have.

Text can be disguised, symbols cannot: every function that a kernel calls outside itself is an undefined symbol of its
binary, all data that it keeps between calls is in a writable section, and all code that runs before it is called is in
a table of constructors.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import numpy as np
from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
from elftools.elf.relocation import RelocationSection
from elftools.elf.sections import Section, SymbolTableSection

from kernel_gym.hardware import symbols
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.verifier import rules
from kernel_gym.verifier.rules import Finding, RuleBook

_BOOK = rules.load("binary")
#: The rule book of each language.
BOOKS = {"ascendc": "binary", "cuda": "binary_cuda"}
_WRITE, _ALLOC, _CODE, _TLS = 0x1, 0x2, 0x4, 0x400
#: Address at which a kernel's code must end: the simulator records basic blocks only below it.
MOST_CODE = 4 << 20
#: Prefix of the symbols that an x86-64 compiler emits for calls through pointers.
_THUNK = "__x86_indirect_thunk"
#: Calls through pointers on aarch64: br and blr of a register.
_BRANCH_MASK, _BRANCHES = 0xFFFFFC1F, (0xD61F0000, 0xD63F0000)
#: Relocations of instructions that call or jump, and those by which the loader fills in the functions that are called.
#: On x86-64 the instruction has to be looked at: those of a call may be of any other instruction, too.
_JUMPS = {"EM_AARCH64": (279, 280, 282, 283), "EM_X86_64": ()}
_SLOTS = {"EM_AARCH64": (1026,), "EM_X86_64": (7,)}
_X86_RELATIVE, _X86_CALL, _X86_BRANCH = (2, 4), (0xE8, 0xE9), range(0x80, 0x90)
#: What may have the addresses of functions: the functions of the headers that launch a kernel, and tables of virtual
#: functions. No author may write such names.
_WITH_ADDRESSES = ("_ZNK3asc8LauncherI", "_ZZNK3asc8LauncherI", "_ZN3asc8launcherI", "_ZTV", "_ZTC")
#: Sections for debuggers and unwinders, which name all functions.
_UNWINDING = (".eh_frame", ".gcc_except_table")
#: Sections and entries of the dynamic table for code that runs while a binary is loaded or unloaded. The compiler puts
#: none of its own there, because kernels are linked without its start files.
_CONSTRUCTORS = (".init", ".fini", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors")
_CONSTRUCTOR_TAGS = ("DT_INIT", "DT_FINI", "DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY")
#: Symbols that the loader and the C library look up by name. The linker defines one of them.
_LOOKED_UP = rules.load("screen").lists["reserved_definitions"] | rules.load("screen").lists["host_functions"]
_OF_THE_LINKER = "_GLOBAL_OFFSET_TABLE_"


def screen(path: Path, language: str = "ascendc") -> tuple[Finding | None, tuple[Diagnostic, ...]]:
    """Return the first broken rule, and mistakes that the compiler cannot see (maths, calls through pointers)."""
    image, book = BytesIO(path.read_bytes()), rules.load(BOOKS[language])
    try:
        elf = ELFFile(image)
        mistakes = (*_missing_maths(elf, book), *_calls_through_pointers(elf, book), *_too_much_code(elf, book))
        mistakes += tuple(dict.fromkeys(_addresses_of_functions(elf))) if book is _BOOK else ()
        return next(findings(elf, book), None), mistakes
    except Exception as error:  # the parser raises whatever a damaged table leads it to
        return _BOOK.finding("malformed", None, type(error).__name__), ()


def screen_device_code(path: Path) -> Finding | None:
    """Return the first forbidden function that code for a GPU needs from outside itself."""
    book = rules.load(BOOKS["cuda"])
    with path.open("rb") as file:
        table = ELFFile(file).get_section_by_name(".symtab")
        symbols = list(table.iter_symbols()) if isinstance(table, SymbolTableSection) else []
    for symbol in symbols:
        outside = symbol.entry.st_shndx == "SHN_UNDEF" and symbol.entry.st_info.type == "STT_FUNC"
        if outside and symbol.name not in book.lists["device_symbols"]:
            return book.finding("device-function", None, symbol.name)
    return None


def findings(elf: ELFFile, book: RuleBook = _BOOK) -> Iterator[Finding]:
    """Yield every broken rule."""
    if elf.header.e_type != "ET_DYN":
        yield _BOOK.finding("malformed", None, str(elf.header.e_type))
    yield from _segments(elf)
    if book is _BOOK:
        yield from _executable_data(elf)
    protected = _protected_ranges(elf)
    for section in elf.iter_sections():
        if isinstance(section, DynamicSection):
            yield from _dynamic(section)
        elif isinstance(section, SymbolTableSection):
            yield from _symbols(elf, section.name, book)
        yield from _section(section, _is_protected(section, protected))


def _segments(elf: ELFFile) -> Iterator[Finding]:
    for segment in elf.iter_segments():
        kind, flags = segment.header.p_type, segment.header.p_flags
        if kind == "PT_LOAD" and flags & 3 == 3:
            yield _BOOK.finding("writable-code", None, "PT_LOAD")
        if kind == "PT_GNU_STACK" and flags & 1:
            yield _BOOK.finding("writable-code", None, "executable stack")
        if kind == "PT_TLS":
            yield _BOOK.finding("thread-local", None, "PT_TLS")
        if kind == "PT_INTERP":
            yield _BOOK.finding("malformed", None, "PT_INTERP")


def _executable_data(elf: ELFFile) -> Iterator[Finding]:
    """Find data sections in executable segments: an array there may hold instructions that no check has seen."""
    headers = [segment.header for segment in elf.iter_segments()]
    code = [header for header in headers if header.p_type == "PT_LOAD" and header.p_flags & 1]
    for section in elf.iter_sections():
        place, flags = section.header.sh_addr, section.header.sh_flags
        if flags & _ALLOC and not flags & _CODE and any(0 <= place - one.p_vaddr < one.p_memsz for one in code):
            yield _BOOK.finding("executable-data", None, section.name)


def _dynamic(section: DynamicSection) -> Iterator[Finding]:
    for tag in section.iter_tags():
        if tag.entry.d_tag in (
            "DT_NEEDED",
            "DT_RPATH",
            "DT_RUNPATH",
            "DT_AUDIT",
            "DT_DEPAUDIT",
            "DT_FILTER",
            "DT_AUXILIARY",
        ):
            yield _BOOK.finding("needed-library", None, str(tag.entry.d_tag))
        if tag.entry.d_tag in _CONSTRUCTOR_TAGS:
            yield _BOOK.finding("constructor", None, str(tag.entry.d_tag))
        if tag.entry.d_tag == "DT_TEXTREL":
            yield _BOOK.finding("writable-code", None, "DT_TEXTREL")


def _symbols(elf: ELFFile, table: str, book: RuleBook) -> Iterator[Finding]:
    for symbol in symbols.of(elf, table):
        name = symbol.name
        if symbol.kind == symbols.RESOLVED:
            yield _BOOK.finding("ifunc", None, name)
        if symbol.kind == symbols.THREAD_LOCAL:
            yield _BOOK.finding("thread-local", None, name)
        if symbol.undefined and name and not (is_allowed(name, book) or _is_mistake(name, book)):
            yield _BOOK.finding("undefined-symbol", None, name)
        is_definition = symbol.kind in (symbols.FUNCTION, symbols.OBJECT) and not symbol.undefined
        if is_definition and name in _LOOKED_UP and name != _OF_THE_LINKER:
            yield _BOOK.finding("reserved-definition", None, name)


def is_allowed(name: str, book: RuleBook = _BOOK) -> bool:
    """Return True for symbols that the device's runtime or the compiler provide."""
    bare = name.partition("@")[0]
    return bare in book.lists["symbols"] or bare.startswith(tuple(book.lists["symbol_prefixes"]))


def _is_maths(name: str, book: RuleBook) -> bool:
    return name.partition("@")[0] in book.lists["missing_maths"]


def _is_mistake(name: str, book: RuleBook) -> bool:
    return _is_maths(name, book) or (name.startswith(_THUNK) and book is _BOOK)


def _addresses_of_functions(elf: ELFFile) -> Iterator[Diagnostic]:
    """Find functions whose address is used for anything but a call: they may be called as ones of another type."""
    machine, sections = str(elf.header.e_machine), list(elf.iter_sections())
    code = [section.header for section in sections if section.header.sh_flags & _CODE]
    may_have = [each for each in symbols.of(elf, ".symtab") if each.name.startswith(_WITH_ADDRESSES)]
    for section in sections:
        if not isinstance(section, RelocationSection):
            continue
        place = sections[section.header.sh_info] if section.header.sh_info else section  # the loader's have no place
        if not place.header.sh_flags & _ALLOC or place.name.startswith(_UNWINDING):
            continue
        table = list(symbols.of(elf, sections[section.header.sh_link].name))
        for each in symbols.relocations(section):
            symbol = table[each.symbol] if each.symbol < len(table) else symbols.Symbol("", 0, False)
            address = symbol.value if each.symbol else each.addend
            is_function = any(one.sh_addr <= address < one.sh_addr + one.sh_size for one in code)
            is_outside = (
                symbol.undefined and symbol.name not in ("", "_GLOBAL_OFFSET_TABLE_") and place.header.sh_flags & _CODE
            )
            if (is_function or is_outside or symbol.kind == symbols.FUNCTION) and not (
                each.kind in _SLOTS.get(machine, ())
                or each.kind in _JUMPS.get(machine, ())
                or (machine == "EM_X86_64" and each.kind in _X86_RELATIVE and _is_x86_call(place, each.offset))
                or any(one.value <= each.offset < one.value + one.size for one in may_have)
            ):
                name = symbol.name or hex(address)
                yield Diagnostic(f"the kernel uses the address of {name}; call functions by their names instead")


def _is_x86_call(section: Section, address: int) -> bool:
    """Return whether the distance at an address is that of a call or a jump."""
    place = address - section.header.sh_addr
    before, last = section.data()[place - 2 : place]
    return last in _X86_CALL or (before == 0x0F and last in _X86_BRANCH)


def _calls_through_pointers(elf: ELFFile, book: RuleBook) -> Iterator[Diagnostic]:
    """Find calls through pointers: their targets are unknown, and device code cannot have them either."""
    if book is not _BOOK:  # allowed in host code for other devices, whose process holds no secrets
        return
    text = elf.get_section_by_name(".text")
    names = [symbol.name for symbol in symbols.of(elf)]
    words = np.frombuffer(text.data(), np.uint32) if text and elf.header.e_machine == "EM_AARCH64" else np.empty(0)
    branches = np.isin(words.astype(np.uint32) & np.uint32(_BRANCH_MASK), _BRANCHES).any()
    if branches or any(name.startswith(_THUNK) for name in names):
        yield Diagnostic(
            "a function is called through a pointer, which device code cannot do: call functions by their names, "
            "choose with if or templates, and leave out virtual functions and computed goto"
        )


def _too_much_code(elf: ELFFile, book: RuleBook) -> Iterator[Diagnostic]:
    """Find code beyond `MOST_CODE`, where basic blocks are not recorded."""
    text = elf.get_section_by_name(".text")
    if book is _BOOK and text and text.header.sh_addr + text.header.sh_size > MOST_CODE:
        yield Diagnostic(
            f"the kernel is compiled to more than {MOST_CODE >> 20} MB of code: use fewer templates and macros"
        )


def _missing_maths(elf: ELFFile, book: RuleBook) -> Iterator[Diagnostic]:
    for symbol in symbols.of(elf):
        if symbol.undefined and _is_maths(symbol.name, book):
            yield Diagnostic(
                f"undefined reference to '{symbol.name}': the host function has no maths library, no heap, no output; "
                "compute sizes with integers"
            )


def _protected_ranges(elf: ELFFile) -> list[tuple[int, int]]:
    """Return address and size of what the loader makes read-only once it has filled it in."""
    headers = (segment.header for segment in elf.iter_segments())
    return [(header.p_vaddr, header.p_memsz) for header in headers if header.p_type == "PT_GNU_RELRO"]


def _is_protected(section: Section, ranges: list[tuple[int, int]]) -> bool:
    """Return whether a section lies in one of the protected ranges."""
    begin, end = section.header.sh_addr, section.header.sh_addr + section.header.sh_size
    return any(address <= begin and end <= address + size for address, size in ranges)


def _section(section: Section, protected: bool) -> Iterator[Finding]:
    name, flags, size = section.name, section.header.sh_flags, section.header.sh_size
    if size and name.startswith(_CONSTRUCTORS):
        yield _BOOK.finding("constructor", None, name)
    elif flags & _TLS:
        yield _BOOK.finding("thread-local", None, name)
    elif flags & _WRITE and flags & _ALLOC and size and not (protected and name in _BOOK.lists["loader_sections"]):
        yield _BOOK.finding("mutable-data", None, f"{name}, {size} bytes")
