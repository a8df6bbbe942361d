"""Rewrites `kernel<<<blocks, l2, stream>>>(args)` into a call that g++ understands, line for line.

Only the launch's own brackets change, so every line of the author's text keeps its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from kernel_gym.hardware.host.launch_syntax import Token, launches, tokens

CoreKind = Literal["AIV", "AIC", "MIX"]

_KINDS: dict[str, CoreKind] = {
    "KERNEL_TYPE_AIV_ONLY": "AIV",
    "KERNEL_TYPE_MIX_AIV_1_0": "AIV",
    "KERNEL_TYPE_AIC_ONLY": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_0": "AIC",
    "KERNEL_TYPE_MIX_AIC_1_1": "MIX",
    "KERNEL_TYPE_MIX_AIC_1_2": "MIX",
    "__vector__": "AIV",
    "__cube__": "AIC",
    "__mix__": "MIX",
}


def rewrite(source: str) -> str:
    """Return the source with its launches as calls; text that cannot be parsed as a launch is unchanged."""
    lexemes = tokens(source)
    pieces, done = [], 0
    for launch in launches(lexemes):
        begin, opening, closing = lexemes[launch.first], lexemes[launch.opening], lexemes[launch.closing]
        kind = _kind(lexemes, lexemes[launch.first : launch.opening])
        pieces += [source[done : begin.start], f"::asc::launcher<ASC_{kind}, ", source[begin.start : opening.start]]
        pieces += [">(", source[opening.end : closing.start], ")"]
        done = closing.end
    return "".join(pieces) + source[done:]


def _kind(lexemes: Sequence[Token], callee: Sequence[Token]) -> CoreKind:
    """Return the kind of cores of a kernel: from its definition, else mixed if the file registers a Matmul."""
    name = [token.text for token in callee if token.kind == "word"][0 if callee[-1].text == ">" else -1]
    kind = _kind_in_definition(lexemes, name)
    words = {token.text for token in lexemes if token.kind == "word"}
    if kind:
        return kind
    if "REGIST_MATMUL_OBJ" in words:
        return "AIC" if "ASCENDC_CUBE_ONLY" in words else "MIX"
    return "AIV"


def _kind_in_definition(lexemes: Sequence[Token], name: str) -> CoreKind | None:
    for index, token in enumerate(lexemes):
        if token.text != "__global__":
            continue
        ends = (i for i in range(index, len(lexemes)) if lexemes[i].text in (name, "{", ";"))
        named = next(ends, len(lexemes))
        if named < len(lexemes) and lexemes[named].text == name:
            words = [token.text for token in lexemes[index : _end_of_body(lexemes, named)]]
            return next((_KINDS[word] for word in words if word in _KINDS), None)
    return None


def _end_of_body(lexemes: Sequence[Token], start: int) -> int:
    depth = 0
    for index in range(start, len(lexemes)):
        depth += {"{": 1, "}": -1}.get(lexemes[index].text, 0)
        if lexemes[index].text == "}" and depth == 0:
            return index
        if lexemes[index].text == ";" and depth == 0:
            return index
    return len(lexemes)
