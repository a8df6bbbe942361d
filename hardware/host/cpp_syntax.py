"""Parses C++ within a limit of time."""

from __future__ import annotations

import time

import tree_sitter
import tree_sitter_cpp

from kernel_gym.errors import KernelGymError

#: Bytes of a text that is parsed without a look at the clock: the worst of this length takes a few seconds.
SHORT = 20_000
#: Seconds of processor time for a text, and for each of its bytes. C++ takes a millionth of a second a byte.
SECONDS, SECONDS_PER_BYTE = 2.0, 1e-5
_CHUNK = 4096
_LANGUAGE = tree_sitter.Language(tree_sitter_cpp.language())


class Unparsable(KernelGymError):
    """A text is so far from C++ that the parser takes too long to recover from its errors."""


def parse(text: bytes) -> tree_sitter.Node:
    """Return the root of the syntax tree.

    The parser recovers from errors in time that grows with the square of their number. The binding cannot stop it, but
    it reads a text in pieces if it is asked to: a text that takes too long has no further pieces.

    Raises:
        Unparsable: If the text is no C++ and takes too long.
    """
    if len(text) > SHORT:
        _check(text)
    return tree_sitter.Parser(_LANGUAGE).parse(text).root_node


def _check(text: bytes) -> None:
    limit = time.thread_time() + SECONDS + SECONDS_PER_BYTE * len(text)

    def piece(offset: int, _: object) -> bytes:
        return text[offset : offset + _CHUNK] if time.thread_time() < limit else b""

    tree_sitter.Parser(_LANGUAGE).parse(piece)
    if time.thread_time() >= limit:
        raise Unparsable("The text is too far from C++ to be parsed: correct its syntax")
