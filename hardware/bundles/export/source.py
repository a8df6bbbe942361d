"""Reads a kernel in one file: its kernels, and which parts of the text its host function and its device code need."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_gym.errors import BundleError
from kernel_gym.hardware.host.ascend_launches import CoreKind, core_kind
from kernel_gym.hardware.host.launch_syntax import LaunchText, Token, launches, tokens

_DEVICE = frozenset({"AscendC", "GlobalTensor", "LocalTensor", "TPipe", "TQue", "TBuf", "GetBlockIdx", "__global__"})
_HOST_LACKS = _DEVICE | {"include", "Matmul", "REGIST_MATMUL_OBJ"}
_ENTRY = re.compile(r'(?:extern\s+"C"\s+)?__global__\s+__aicore__\s+void')
_TASK_TYPE = re.compile(r"KERNEL_TASK_TYPE_DEFAULT\s*\([^)]*\)\s*;")


@dataclass(frozen=True)
class KernelFunction:
    """A kernel of the file: its name, its parameters as (type, name), its tiling key and the cores that it runs on."""

    name: str
    parameters: tuple[tuple[str, str], ...]
    key: int
    cores: CoreKind

    @property
    def pointers(self) -> int:
        """The number of its parameters that are tensors."""
        return sum(kind == "GM_ADDR" for kind, _ in self.parameters)


@dataclass(frozen=True)
class _Item:
    """A directive or declaration of the file: where it begins and ends, and its words."""

    begin: int
    end: int
    words: frozenset[str]


class OneFile:
    """The text of a kernel in one file."""

    def __init__(self, source: str) -> None:
        self._source, self._lexemes = source, tokens(source)
        self._launches = list(launches(self._lexemes))
        self._items = _items(self._lexemes)
        self.functions = self._functions()

    @property
    def uses_workspace(self) -> bool:
        """Whether the host function passes a workspace."""
        return any(token.text == "workspace" for token in self._lexemes)

    @property
    def most_pointers(self) -> int:
        """The largest number of tensors that a kernel takes."""
        return max(1, *(function.pointers for function in self.functions.values()))

    def host_code(self) -> str:
        """Return the parts of the file that the host function needs, with launches that are recorded."""
        return "\n".join(self._recorded(item) for item in self._items if not item.words & _HOST_LACKS)

    def device_code(self) -> str:
        """Return the parts of the file that kernels need, with kernels that are functions."""
        absent = {"kernel_launch", '"kernel_gym.h"'}
        code = [self._source[item.begin : item.end] for item in self._items if not item.words & absent]
        return _TASK_TYPE.sub("", _ENTRY.sub("__aicore__ inline void", "\n".join(code)))

    def _functions(self) -> dict[str, KernelFunction]:
        functions: dict[str, KernelFunction] = {}
        for launch in self._launches:
            if launch.first != launch.opening - 1:
                raise BundleError("a launched kernel is a template or in a namespace: write it out")
            name = self._lexemes[launch.first].text
            if name not in functions:
                cores = core_kind(self._source, name)
                functions[name] = KernelFunction(name, self._parameters(name), len(functions) + 1, cores)
        if not functions:
            raise BundleError("the kernel launches nothing")
        return functions

    def _parameters(self, name: str) -> tuple[tuple[str, str], ...]:
        match = re.search(rf"__global__[^;{{}}()]*\b{name}\s*\(([^)]*)\)", self._source)
        if match is None:
            raise BundleError(f"no kernel {name} in the file")
        pairs = [re.fullmatch(r"\s*(.*?)\s*(\w+)\s*", part, re.DOTALL) for part in match.group(1).split(",")]
        return tuple((pair.group(1), pair.group(2)) for pair in pairs if pair)

    def _recorded(self, item: _Item) -> str:
        """Return a part of the text in which launches are recorded instead of made."""
        pieces, done = [], item.begin
        for launch in self._launches:
            first, closing = self._lexemes[launch.first], self._lexemes[launch.closing]
            if item.begin <= first.start < item.end:
                key = self.functions[first.text].key
                pieces += [self._source[done : first.start], f"recorder->at({key}, {self._blocks(launch)})"]
                done = closing.end
        return "".join(pieces) + self._source[done : item.end]

    def _blocks(self, launch: LaunchText) -> str:
        """Return the expression of a launch's number of blocks."""
        depth = 0
        for token in self._lexemes[launch.opening + 1 : launch.closing]:
            depth += {"(": 1, ")": -1}.get(token.text, 0)
            if token.text == "," and depth == 0:
                return self._source[self._lexemes[launch.opening].end : token.start]
        raise BundleError("a launch has no number of blocks")


def _items(lexemes: Sequence[Token]) -> list[_Item]:
    """Return the directives and declarations of a file."""
    items, begin, depth = list[_Item](), 0, 0
    for index, token in enumerate(lexemes):
        depth += {"{": 1, "(": 1, "}": -1, ")": -1}.get(token.text, 0)
        if depth == 0 and _ends_item(lexemes, begin, index):
            words = frozenset(lexeme.text for lexeme in lexemes[begin : index + 1])
            items.append(_Item(lexemes[begin].start, token.end, words))
            begin = index + 1
    return items


def _ends_item(lexemes: Sequence[Token], begin: int, index: int) -> bool:
    token = lexemes[index]
    following = lexemes[index + 1] if index + 1 < len(lexemes) else None
    if lexemes[begin].text == "#":  # directives of kernels are includes
        return following is None or following.text == "#" or token.text == ">" or token.kind == "string"
    return token.text == ";" or (token.text == "}" and (following is None or following.text != ";"))
