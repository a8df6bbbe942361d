"""Reads the names that a kernel's source declares, as far as the prices of plain code depend on them.

The compiler's dump has the type of a variable by the name of its declaration, without the scope. So a name means what
all its declarations in the source and in the headers agree on, and is unknown otherwise.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from itertools import takewhile
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from kernel_gym.hardware.host.launch_syntax import Token, tokens

#: The words that types of integers are written with, and their bits; the first of them that is there decides.
_BITS = {
    **{"bool": 1, "char": 8, "short": 16, "long": 64, "sizetype": 64, "ssizetype": 64, "bitsizetype": 64},
    **{"int": 32, "unsigned": 32, "signed": 32},
}
_INTEGER_WORDS = frozenset(_BITS)
#: Those that no author can declare. The others are names of the compiler.
_KEYWORDS = _INTEGER_WORDS - {"sizetype", "ssizetype", "bitsizetype"}
_INTEGERS = {
    **{f"{sign}int{bits}_t": bits for sign in ("", "u") for bits in (8, 16, 32, 64)},
    **dict.fromkeys(["size_t", "ptrdiff_t", "uintptr_t", "intptr_t"], 64),
    **{"wchar_t": 32, "char16_t": 16, "char32_t": 32, "byte": 8, "TEventID": 8},
}
_FLOATS = frozenset({"float", "double", "long double"})
_NAMED_FLOATS = frozenset({"float32_t"})
_QUALIFIERS = re.compile(r"\b(?:const|volatile|static|register|typename|std::|AscendC::)\s*|^\s*::\s*")
#: Types of which the device has no registers: vectors of the host as the compiler writes them, its names for them, some
#: of which do not tell their lanes, and integers of 128 bits.
_VECTOR = re.compile(
    r"\bvector\((?P<lanes>\d{1,9})\)|\b__[A-Z][a-z]+\d+x(?P<named>\d{1,9})_t\b|\b__(?:SV|m\d)\w*|\bvector_size\b"
    r"|\b__u?int128"
)
_SIZED = re.compile(r"(?:__attribute__|__attribute|\[\s*\[)[^;]{0,200}?\b_*(vector_size)")
_MOST_LANES = 256
_BIT_FIELD = re.compile(r"<unnamed-(?:\w+:(\d+))?")
POINTER_BITS = 64
#: What stands before the type that an enumeration has; nothing stands behind it if that is not written.
_ENUM = "enum "
#: The text of a type that may be any.
_ANY = "?"
#: What may stand between the word `enum` and the name.
_BEFORE_NAME = frozenset({"[", "alignas", "__attribute__", "__attribute"})
#: What stands before the first word of a declaration.
_BEFORE_STATEMENT = frozenset({*";{}()", "using", "typedef"})
#: Most words of an enumeration before its braces; the bits of others are not known.
_LONGEST_ENUM = 16
#: Most passes over the names of types. A name that needs more, because it is declared above the names that it stands
#: for, has no known meaning.
_MOST_PASSES = 64


class Kind(Enum):
    """What a type is, as far as prices depend on it."""

    INTEGER = "integer"
    FLOAT = "float"
    POINTER = "pointer"
    OBJECT = "object"
    UNKNOWN = "unknown"


class Type(NamedTuple):
    """What a type is, and the bits of an integer or a pointer; none if they are not known."""

    kind: Kind
    bits: int = 0


@dataclass(frozen=True)
class Names:
    """The names that a source declares: its types, its bit-fields, the members of its unions."""

    types: Mapping[str, Type]
    bit_fields: frozenset[str]
    union_members: frozenset[str]

    @classmethod
    def of(cls, source: str, headers: Mapping[str, Type] = MappingProxyType({})) -> Names:
        """Return the names in a source that includes headers whose names of types are known."""
        return cls(aliases(source, headers), bit_fields(source), union_members(source))


def unqualified(meaning: str) -> str:
    """Return a type as it is written, without qualifiers and namespaces."""
    return _QUALIFIERS.sub("", meaning).strip()


def type_of(meaning: str, types: Mapping[str, Type]) -> Type:
    """Return what a type is, given what the source's own names of types mean."""
    if field_of := _BIT_FIELD.match(meaning):
        return Type(Kind.INTEGER, int(field_of[1] or 0))
    plain = unqualified(meaning)
    if plain.endswith(("*", "&")):
        return Type(Kind.POINTER, POINTER_BITS)
    if plain.startswith(("struct ", "union ", "class ")):
        return Type(Kind.OBJECT)
    if plain in _FLOATS:
        return Type(Kind.FLOAT)
    return types.get(plain.removeprefix("enum "), _number(plain))


def _number(plain: str) -> Type:
    """Return a number that is written as in the language or its headers; an unknown type if it is none."""
    if plain in _NAMED_FLOATS:
        return Type(Kind.FLOAT)
    words = plain.split()
    if words and _INTEGER_WORDS.issuperset(words):
        return Type(Kind.INTEGER, next(bits for word, bits in _BITS.items() if word in words))
    return Type(Kind.INTEGER, _INTEGERS[plain]) if plain in _INTEGERS else Type(Kind.UNKNOWN)


def aliases(source: str, headers: Mapping[str, Type] = MappingProxyType({})) -> dict[str, Type]:
    """Return the names that a source gives to types, and what each is; unknown if declarations differ.

    Args:
        source: The text without its headers.
        headers: What the names are that the headers give to types.
    """
    meanings = [*_meanings(source), *((name, _ANY) for name in sorted(_parameters(source)))]
    declarations = Counter(name for name, _ in meanings)
    known = {name: Type(Kind.UNKNOWN) for name in declarations}
    for _ in range(min(len(meanings), _MOST_PASSES)):
        before, resolved = known.copy(), dict[str, Type]()
        for name, meaning in meanings:
            found = type_of(meaning.removeprefix(_ENUM), known)
            if meaning.startswith(_ENUM):
                found = Type(Kind.INTEGER, found.bits)
            resolved[name] = _either(found, resolved.get(name, headers.get(name, found)))
            if declarations[name] == 1:  # what uses it below is known in the same pass
                known[name] = resolved[name]
        known = resolved
        if known == before:
            break
    return known


def declared(headers: str) -> dict[str, Type]:
    """Return the names that the text of headers gives to types; parameters of templates have none elsewhere."""
    names = {name for name, _ in _meanings(headers)}
    return {name: each for name, each in aliases(headers).items() if name in names}


def write(file: Path, types: Mapping[str, Type]) -> None:
    """Write what names of types are, a line for each."""
    lines = [f"{name} {each.kind.value} {each.bits}\n" for name, each in sorted(types.items())]
    file.write_text("".join(lines), encoding="utf-8")


def read(file: Path) -> dict[str, Type]:
    """Return what `write` has written."""
    lines = (line.split() for line in file.read_text(encoding="utf-8").splitlines())
    return {name: Type(Kind(kind), int(bits)) for name, kind, bits in lines}


def _either(one: Type, other: Type) -> Type:
    """Return what is known of a type that is one of two."""
    return one if one == other else Type(one.kind if one.kind == other.kind else Kind.UNKNOWN)


def bit_fields(source: str) -> frozenset[str]:
    """Return the names that may be those of bit-fields: the words before a colon that is no label's and no choice's.

    Others may be among them, such as the names of classes that have a base.
    """
    names: set[str] = set()
    here, around = _Statement("{"), list[_Statement]()
    for word in tokens(source):
        if word.text in ("(", "[", "{"):
            around.append(here)
            here = _Statement(word.text)
        elif word.text in (")", "]", "}"):
            here = around.pop() if around else _Statement("{")
            if word.text == "}":
                here.words, here.lone = [], False
        elif word.text == ";":
            here = _Statement(here.bracket)
        elif word.text == "?":
            here.choices += 1
        elif word.text == "," and not here.choices:
            here.words, here.lone = [], False
        elif word.text == ":" and here.choices:
            here.choices -= 1
        elif word.text == ":" and here.bracket == "{":
            if here.is_label:
                here = _Statement(here.bracket)
            else:
                names.update(here.words)
                here.words, here.lone = [], False
        elif word.kind == "word":
            here.words.append(word.text)
    return frozenset(names)


@dataclass
class _Statement:
    """What has been read of a statement, or of what stands in brackets.

    `choices` are question marks without their colons; `lone` says that a single word before a colon is a label.
    """

    bracket: str
    words: list[str] = field(default_factory=list)
    choices: int = 0
    lone: bool = True

    @property
    def is_label(self) -> bool:
        """Whether a colon that follows ends a label."""
        return (self.lone and len(self.words) == 1) or "case" in self.words


def union_members(source: str) -> frozenset[str]:
    """Return the names that may be those of members of unions: all words in the braces behind the word `union`."""
    names: set[str] = set()
    depth, announced = 0, False  # of braces in a union
    for word in tokens(source):
        if word.text == "{":
            depth += announced or depth > 0
            announced = False
        elif word.text == "}":
            depth = max(0, depth - 1)
        elif word.text == ";":
            announced = False
        elif word.text == "union":
            announced = True
        elif depth and word.kind == "word":
            names.add(word.text)
    return frozenset(names)


def lanes(source: str, types: Iterable[str]) -> int:
    """Return the lanes of the widest vector type of the host in a source or among types; 1 if there is none."""
    named = [*(meaning for _, meaning in _meanings(source)), *_SIZED.findall(source), *types]
    vectors = [match for meaning in named for match in _VECTOR.finditer(meaning)]
    return max((int(match["lanes"] or match["named"] or _MOST_LANES) for match in vectors), default=1)


def _meanings(source: str) -> list[tuple[str, str]]:
    """Return the names that a source gives to types, each with the text of its type.

    A declaration that is not understood gives `?`, which may be a floating-point type, to every name in it.
    """
    words = tokens(source)
    meanings: list[tuple[str, str]] = []
    for index, word in enumerate(words):
        if word.text == "enum":
            meanings += _enumeration(source, words, index + 1)
        elif word.text == "using":
            meanings += _alias(source, _statement(words, index + 1))
        elif word.text == "typedef":
            begin = next((i + 1 for i in range(index - 1, -1, -1) if words[i].text in _BEFORE_STATEMENT), 0)
            statement = [*words[begin:index], *_statement(words, index + 1)]
            meanings += _typedefs(source, statement, first=begin == index)
    return meanings


def _statement(words: Sequence[Token], begin: int) -> list[Token]:
    """Return the words up to a semicolon that is not in braces, or to another such statement."""
    depth = 0
    for end in range(begin, len(words)):
        depth += {"{": 1, "}": -1}.get(words[end].text, 0)
        if depth < 0 or (words[end].text == ";" and depth == 0) or words[end].text in ("using", "typedef"):
            return list(words[begin:end])
    return list(words[begin:])


def _parameters(source: str) -> set[str]:
    """Return the names behind the word `class`: those of parameters of templates, which may be any type, and others."""
    words = [word for word in tokens(source) if word.text != "."]  # of packs
    return {
        name.text
        for before, word, name, behind in zip([None, *words], words, words[1:], words[2:], strict=False)
        if word.text in ("class", "typename") and (before is None or before.text != "enum")
        if name.kind == "word" and behind.text not in ("::", "<")
    }


def _enumeration(source: str, words: Sequence[Token], begin: int) -> list[tuple[str, str]]:
    """Return the name of an enumeration, with its type behind the word `enum`: an int if it is scoped.

    Where attributes stand before the name, the types of all words up to the braces are unknown.
    """
    is_scoped = begin < len(words) and words[begin].text in ("class", "struct")
    named = words[begin + is_scoped : begin + _LONGEST_ENUM - 1]
    if named and named[0].text in _BEFORE_NAME:
        behind = takewhile(lambda index: words[index].text not in ("{", ";", "enum"), range(begin, len(words)))
        names = {words[index].text for index in behind if words[index].kind == "word"}
        return [(name, _ANY) for name in sorted(names - _KEYWORDS)]
    if len(named) > 1 and named[1].text == ":":
        end = next((i for i, word in enumerate(named) if word.text in ("{", ";")), 2)
        return [(named[0].text, _ENUM + _plain_text(source, named[2:end]))]
    return [(word.text, _ENUM + "int" * is_scoped) for word in named[:1]]


def _alias(source: str, statement: Sequence[Token]) -> list[tuple[str, str]]:
    equals = next((i for i, word in enumerate(statement) if word.text == "="), 0)
    meaning = _plain_text(source, statement[equals + 1 :])
    return [(statement[0].text, meaning or _ANY)] if equals else []


def _typedefs(source: str, statement: Sequence[Token], first: bool) -> list[tuple[str, str]]:
    """Return what a typedef declares; `first` says that the word itself begins the declaration."""
    meaning = _plain_text(source, statement[:-1])
    simple = first and meaning and all(word.text not in (",", "[", "]", "alignas") for word in statement)
    if simple and statement[-1].kind == "word":
        return [(statement[-1].text, meaning)]
    names = {word.text for word in statement if word.kind == "word"}
    return [(name, _ANY) for name in sorted(names - _KEYWORDS)]


def _plain_text(source: str, words: Sequence[Token]) -> str:
    """Return the text of a type; empty if it has parentheses or braces."""
    if not words or any(word.text in ("(", ")", "{", "}") for word in words):
        return ""
    return source[words[0].start : words[-1].end].replace(" :: ", "::")
