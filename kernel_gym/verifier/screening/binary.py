"""The binary gate: which symbols, sections and instructions a kernel's binary may have.

Text can be disguised, symbols cannot: every function that a kernel calls outside itself is an undefined symbol of its
binary, all data that it keeps between calls is in a writable section, and all code that runs before it is called is in
a table of constructors.
"""

from __future__ import annotations

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from elftools.elf.dynamic import DynamicSection
from elftools.elf.elffile import ELFFile
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
#: Sections and entries of the dynamic table for code that runs while a binary is loaded or unloaded. The compiler puts
#: none of its own there, because kernels are linked without its start files.
_CONSTRUCTORS = (".init", ".fini", ".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors")
_CONSTRUCTOR_TAGS = ("DT_INIT", "DT_FINI", "DT_INIT_ARRAY", "DT_FINI_ARRAY", "DT_PREINIT_ARRAY")
#: Symbols that the loader and the C library look up by name. The linker defines one of them.
_LOOKED_UP = rules.load("screen").lists["reserved_definitions"] | rules.load("screen").lists["host_functions"]
_OF_THE_LINKER = "_GLOBAL_OFFSET_TABLE_"


def screen(path: Path, language: str = "ascendc") -> tuple[Finding | None, tuple[Diagnostic, ...]]:
    """Return the first broken rule, and mistakes that the compiler cannot see (maths, too much code)."""
    image, book = BytesIO(path.read_bytes()), rules.load(BOOKS[language])
    try:
        elf = ELFFile(image)
        mistakes = (*_missing_functions(elf, book), *_too_much_code(elf, book))
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
        if symbol.undefined and name and not (is_allowed(name, book) or _is_missing(name, book)):
            yield _BOOK.finding("undefined-symbol", None, name)
        is_definition = symbol.kind in (symbols.FUNCTION, symbols.OBJECT) and not symbol.undefined
        if is_definition and name in _LOOKED_UP and name != _OF_THE_LINKER:
            yield _BOOK.finding("reserved-definition", None, name)


def is_allowed(name: str, book: RuleBook = _BOOK) -> bool:
    """Return True for symbols that the device's runtime or the compiler provide."""
    bare = name.partition("@")[0]
    return bare in book.lists["symbols"] or bare.startswith(tuple(book.lists["symbol_prefixes"]))


def _is_missing(name: str, book: RuleBook) -> bool:
    """Return True for library functions that honest kernels may call by mistake."""
    return name.partition("@")[0] in book.lists["missing_functions"]


def _too_much_code(elf: ELFFile, book: RuleBook) -> Iterator[Diagnostic]:
    """Find code beyond `MOST_CODE`, where basic blocks are not recorded."""
    text = elf.get_section_by_name(".text")
    if book is _BOOK and text and text.header.sh_addr + text.header.sh_size > MOST_CODE:
        yield Diagnostic(
            f"the kernel is compiled to more than {MOST_CODE >> 20} MB of code: use fewer templates and macros"
        )


def _missing_functions(elf: ELFFile, book: RuleBook) -> Iterator[Diagnostic]:
    for symbol in symbols.of(elf):
        if symbol.undefined and _is_missing(symbol.name, book):
            yield Diagnostic(
                f"undefined reference to '{symbol.name}': the host function has no maths library, no heap, no output, "
                "no exceptions; compute sizes with integers"
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
