"""Damaged kernels: tokens and statements of kernels are dropped, repeated, exchanged and changed, by a seed."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from kernel_gym.hardware.host.launch_syntax import Token, tokens
from kernel_gym.kernel import Kernel
from kernel_gym.verifier.attacks.catalogue import Attack

#: What a number becomes: edges of ranges and of memories, and too much.
NUMBERS = ("0", "1", "2", "3", "7", "8", "31", "32", "63", "64", "255", "1000", "4095", "65536", "-1", "4294967295")
SYMBOLS = ("+", "-", "*", "/", "%", "<", ">", "!", "&", "|", ",", ";")
#: Longest text that is damaged; longer ones are attacks by their length.
LONGEST = 50_000


def damaged(kernels: Sequence[Attack], count: int, seed: int) -> Iterator[Attack]:
    """Yield damaged kernels; the same ones for the same seed."""
    rng = random.Random(f"damage {seed}")
    origins = [kernel for kernel in kernels if len(kernel.kernel.source) <= LONGEST]
    for index in range(count):
        origin = rng.choice(origins)
        text = origin.kernel.source
        for change in rng.choices(_CHANGES, k=rng.choice((1, 1, 1, 2, 3))):
            lexemes = tokens(text)
            text = change(text, lexemes, rng) if lexemes else text
        kernel = Kernel(text, origin.kernel.language)
        yield replace(
            origin, name=f"damaged_{seed}_{index}", kernel=kernel, causes=("damaged",), expected="right", untold="",
            about=f"{origin.name} with damage",
        )  # fmt: skip


def _dropped(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    token = rng.choice(lexemes)
    return text[: token.start] + text[token.end :]


def _repeated(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    token = rng.choice(lexemes)
    return f"{text[: token.end]} {text[token.start :]}"


def _exchanged(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    first, second = sorted(rng.choices(lexemes, k=2), key=lambda token: token.start)
    between = text[first.end : second.start]
    return text if first == second else text[: first.start] + second.text + between + first.text + text[second.end :]


def _changed(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    """Return the text with another number, symbol or name in the place of one."""
    token = rng.choice([t for t in lexemes if t.kind == "number"] or lexemes)
    if rng.random() < 0.3:
        token = rng.choice(lexemes)
    names = [t.text for t in lexemes if t.kind == "word"]
    choices = {"number": NUMBERS, "symbol": SYMBOLS, "word": names}.get(token.kind, ("",))
    return text[: token.start] + rng.choice(choices) + text[token.end :]


def _statements(lexemes: Sequence[Token]) -> list[tuple[int, int]]:
    """Return the places of simple statements: from behind `;`, `{` or `}` up to the next semicolon."""
    places: list[tuple[int, int]] = []
    begin: int | None = None
    for token in lexemes:
        if token.text in ("{", "}"):
            begin = None
        elif token.text == ";" and begin is not None:
            places.append((begin, token.end))
            begin = None
        elif begin is None:
            begin = token.start
    return places or [(0, 0)]


def _without_statement(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    begin, end = rng.choice(_statements(lexemes))
    return text[:begin] + text[end:]


def _statement_twice(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    begin, end = rng.choice(_statements(lexemes))
    return f"{text[:end]} {text[begin:]}"


def _statements_exchanged(text: str, lexemes: Sequence[Token], rng: random.Random) -> str:
    places = _statements(lexemes)
    at = rng.randrange(len(places))
    (a, b), (c, d) = places[at], places[min(at + 1, len(places) - 1)]
    return text if a == c else text[:a] + text[c:d] + text[b:c] + text[a:b] + text[d:]


_Change = Callable[[str, Sequence[Token], random.Random], str]
#: What happens to numbers and statements compiles most often, so it happens most often.
_CHANGES: tuple[_Change, ...] = (
    _dropped, _repeated, _exchanged, _changed, _changed, _changed,
    _without_statement, _without_statement, _statement_twice, _statements_exchanged,
)  # fmt: skip
