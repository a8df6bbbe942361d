"""Kernels with a mistake in them: programs of the suite whose text was changed in one to four places."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from kernel_gym.hardware.ascend_sim import runtime as runtimes
from kernel_gym.hardware.host.launch_syntax import Token, tokens

ROOT = Path(__file__).resolve().parents[2]
#: What numbers become: nothing, edges of ranges and of memories, and too much.
EDGES = (
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "16",
    "31",
    "32",
    "33",
    "63",
    "64",
    "65",
    "127",
    "128",
    "255",
    "256",
    "257",
    "1023",
    "4095",
    "4096",
    "65535",
    "65536",
    "196608",
    "1048576",
    "-1",
    "2147483647",
)
TYPES = ("float", "half", "bfloat16_t", "int8_t", "uint8_t", "int16_t", "uint16_t", "int32_t", "uint32_t", "int64_t")
CALLS = (
    "Add",
    "Sub",
    "Mul",
    "Div",
    "Max",
    "Min",
    "Exp",
    "Ln",
    "Abs",
    "Sqrt",
    "Relu",
    "Adds",
    "Muls",
    "Maxs",
    "Duplicate",
    "Cast",
    "ReduceSum",
    "ReduceMax",
    "DataCopy",
    "DataCopyPad",
    "WholeReduceSum",
    "Tanh",
    "Gelu",
    "Compare",
    "Select",
    "Brcb",
    "Gather",
    "Sort32",
    "Mmad",
    "LoadData",
    "Fixpipe",
    "EnQue",
    "DeQue",
    "AllocTensor",
    "FreeTensor",
    "SetFlag",
    "WaitFlag",
    "GetValue",
    "SetValue",
    "InitBuffer",
    "Get",
    "PipeBarrier",
    "SyncAll",
    "SetAtomicAdd",
    "SetAtomicNone",
    "Reset",
)
EVENTS = (
    "MTE2_V",
    "V_MTE3",
    "MTE3_V",
    "V_MTE2",
    "MTE2_MTE3",
    "MTE3_MTE2",
    "S_V",
    "V_S",
    "MTE1_M",
    "M_FIX",
    "MTE2_MTE1",
)
SYMBOLS = ("+", "-", "*", "/", "%", "<", ">", "!", "&", "|")

Change = Callable[[random.Random, str, Sequence[Token]], str]


def corpus() -> list[str]:
    """Kernels that run: of the walkthrough, of the calibration, of the tests."""
    tests = ROOT / "tests" / "hardware" / "ascend_sim" / "kernels"
    folders = (ROOT / "docs" / "walkthrough", runtimes.HERE / "calibration", tests)
    return [path.read_text() for folder in folders for path in sorted(folder.glob("*.cpp"))]


def mutants(count: int, seed: int) -> Iterator[str]:
    """So many changed kernels, the same for the same seed."""
    draw, sources = random.Random(seed), corpus()
    for _ in range(count):
        text = draw.choice(sources)
        for _ in range(draw.randint(1, 4)):
            text = draw.choice(_CHANGES)(draw, text, tokens(text))
        yield text


def _replaced(text: str, token: Token, by: str) -> str:
    return text[: token.start] + by + text[token.end :]


def _one_of(draw: random.Random, text: str, lexemes: Sequence[Token], choices: Sequence[str]) -> str:
    return _replaced(text, draw.choice(lexemes), draw.choice(choices)) if lexemes else text


def _number(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    return _one_of(draw, text, [token for token in lexemes if token.kind == "number"], EDGES)


def _type(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    return _one_of(draw, text, [token for token in lexemes if token.text in TYPES], TYPES)


def _call(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    return _one_of(draw, text, [token for token in lexemes if token.text in CALLS], CALLS)


def _event(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    return _one_of(draw, text, [token for token in lexemes if token.text in EVENTS], EVENTS)


def _symbol(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    return _one_of(draw, text, [token for token in lexemes if token.text in SYMBOLS], SYMBOLS)


def _name(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    words = [token for token in lexemes if token.kind == "word" and token.text[0].islower()]
    return _one_of(draw, text, words, [token.text for token in words])


def _statements(lexemes: Sequence[Token]) -> list[tuple[int, int]]:
    """Where statements begin and end: from behind one of `;{}` up to the next semicolon."""
    bounds, begin = [], None
    for token in lexemes:
        if token.text in "{}":
            begin = None
        elif token.text == ";" and begin is not None:
            bounds.append((begin, token.end))
            begin = None
        elif begin is None:
            begin = token.start
    return bounds


def _left_out(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    begin, end = draw.choice(_statements(lexemes))
    return text[:begin] + text[end:]


def _doubled(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    begin, end = draw.choice(_statements(lexemes))
    return text[:end] + " " + text[begin:end] + text[end:]


def _swapped(draw: random.Random, text: str, lexemes: Sequence[Token]) -> str:
    bounds = _statements(lexemes)
    at = draw.randrange(len(bounds) - 1)
    (a, b), (c, d) = bounds[at], bounds[at + 1]
    return text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


#: What happens to numbers and statements compiles most often, so it happens most often.
_CHANGES: tuple[Change, ...] = (
    _number, _number, _number, _left_out, _left_out, _doubled, _swapped, _type, _call, _event, _symbol, _name,
)  # fmt: skip
