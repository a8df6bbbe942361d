"""Sizes that are known only at run time: dimensions as expressions over the shapes that `kernel_launch` receives.

A size is a sympy polynomial. Its atoms are dimensions of inputs (printed as `x.shape[1]`) and numbers that the host
computes from other sizes (the width of a convolution's output). Each atom also has its value at the public case, which
decides questions of structure: which dimension is broadcast, how a view splits a dimension.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, TypeAlias

import sympy
from sympy import expand

#: A sympy expression; sympy has no types.
Size: TypeAlias = Any
ONE: Size = sympy.Integer(1)
ZERO: Size = sympy.Integer(0)
#: Sizes of blocks that a module may fill up to.
BLOCKS = range(2, 65)


def size(value: int) -> Size:
    """Return a literal size."""
    return sympy.Integer(value)


def product(sizes: Iterable[Size]) -> Size:
    """Return the product of sizes; 1 if there are none."""
    return sympy.Mul(*sizes)


def row_major(shape: Sequence[Size]) -> tuple[Size, ...]:
    """Return the strides of a contiguous tensor."""
    return tuple(product(shape[axis + 1 :]) for axis in range(len(shape)))


@dataclass
class Sizes:
    """The atoms of one plan: their values at the public case, and how the host computes the derived ones."""

    values: dict[Size, int] = field(default_factory=dict)
    derived: dict[Size, Size] = field(default_factory=dict)
    aliases: dict[Size, Size] = field(default_factory=dict)
    local: set[Size] = field(default_factory=set)
    settings: set[Size] = field(default_factory=set)
    #: Values of derived numbers at other shapes, by the identity of the shapes.
    _elsewhere: dict[tuple[int, Size], int] = field(default_factory=dict)

    def atom(self, name: str, value: int) -> Size:
        """Add a dimension of an input, written `name` in host code."""
        symbol = sympy.Symbol(name, positive=True, integer=True)
        self.values[symbol] = value
        return symbol

    def setting(self, name: str, value: int) -> Size:
        """Add a setting of the module, written `name` in host code."""
        symbol = self.atom(name, value)
        self.settings.add(symbol)
        return symbol

    def derive(self, name: str, expression: Size) -> Size:
        """Add a number that the host computes by `expression` into a variable called `name`."""
        symbol = sympy.Symbol(name, positive=True, integer=True)
        self.values[symbol] = self.value(expression)
        self.derived[symbol] = expression
        return symbol

    def bound(self, name: str, expression: Size) -> Size:
        """Add a number that the host computes inside a loop; it is at most `expression`."""
        symbol = self.derive(name, expression)
        self.local.add(symbol)
        return symbol

    def value(self, expression: Size) -> int:
        """Return the value of an expression at the public case."""
        if isinstance(expression, sympy.Integer):
            return int(expression)
        if expression in self.values:
            return self.values[expression]
        values: dict[Any, Any] = {atom: sympy.Integer(self.values[atom]) for atom in expression.free_symbols}
        return int(expression.xreplace(values))

    def value_at(self, expression: Size, shapes: dict[str, int]) -> int:
        """Return the value of an expression at other shapes, given by the names of the dimensions.

        Values are kept by the identity of `shapes`, which must live as long as the plan under construction.
        """
        if expression.is_Symbol:
            return self._atom_at(expression, shapes)
        values = {atom: sympy.Integer(self._atom_at(atom, shapes)) for atom in expression.free_symbols}
        return int(expression.xreplace(values))

    def _atom_at(self, atom: Size, shapes: dict[str, int]) -> int:
        if atom not in self.derived:
            return shapes[str(atom)]
        key = (id(shapes), atom)
        if key not in self._elsewhere:
            self._elsewhere[key] = self.value_at(self.derived[atom], shapes)
        return self._elsewhere[key]

    def unify(self, left: Size, right: Size) -> None:
        """Record that two sizes are equal in every run, because an elementwise operator combines them."""
        left, right = self.canonical(left), self.canonical(right)
        if left != right and left.is_Symbol and right.is_Symbol:
            self.aliases[right] = left

    def canonical(self, expression: Size) -> Size:
        """Return the expression with equal sizes written the same way."""
        while any(symbol in self.aliases for symbol in expression.free_symbols):
            expression = expression.subs(self.aliases)
        return expression

    def named(self, value: int, cases: Sequence[dict[str, int]] = ()) -> Size:
        """Return the dimension of an input that has this value at the public case and all others; else a literal."""
        others = self.derived.keys() | self.settings
        atoms = (atom for atom, number in self.values.items() if number == value and atom not in others)
        same = (atom for atom in atoms if all(self.value_at(atom, at) == value for at in cases))
        return next(same, size(value)) if value > 1 else size(value)

    def same(self, left: Size, right: Size) -> bool:
        """Return whether two sizes are equal at the public case."""
        return left == right or self.value(left) == self.value(right)

    def regroup(self, shape: Sequence[Size], target: Sequence[int]) -> tuple[Size, ...]:
        """Return the sizes of `shape` viewed as `target`: dimensions merged, or split into literals and a rest."""
        result: list[Size] = []
        source = [(expression, self.value(expression)) for expression in shape]
        remaining = list(target)
        while remaining:
            taken, goal = _matching_group(source, remaining)
            merged = product(expression for expression, _ in source[:taken])
            result += self._split(merged, remaining[:goal])
            source, remaining = source[taken:], remaining[goal:]
        return tuple(result)

    def ambiguous(self, total: Size, target: Sequence[int]) -> bool:
        """Return whether some number of a view of `total` elements is more than one product of its factors.

        Sizes that are equal at the public case alone may then be taken for each other.
        """
        numerator, denominator = sympy.fraction(total)
        products = [1]
        for factor in sympy.Mul.make_args(numerator):
            products += [self.value(factor) * other for other in products]
        return denominator != 1 or any(products.count(number) > 1 for number in target)

    def _split(self, merged: Size, factors: Sequence[int]) -> list[Size]:
        result: list[Size | None] = [ONE if factor == 1 else None for factor in factors]
        atoms = sorted((atom for atom in sympy.Mul.make_args(merged) if atom.is_Symbol), key=str)
        rest = merged
        for index, factor in enumerate(factors):
            match = next((atom for atom in atoms if self.values[atom] == factor), None)
            if result[index] is None and match is not None and result.count(None) > 1:
                atoms.remove(match)
                result[index], rest = match, rest / match
        return self._with_literals(result, factors, rest)

    def _with_literals(self, result: list[Size | None], factors: Sequence[int], rest: Size) -> list[Size]:
        """Fill the open factors: the largest becomes the rest, the others (heads, groups, a window) are literal."""
        open_ = [index for index, factor in enumerate(result) if factor is None]
        varying = max(open_, key=lambda index: factors[index], default=-1)
        literal = prod(factors[index] for index in open_ if index != varying)
        return [
            rest / literal if index == varying else size(factors[index]) if factor is None else factor
            for index, factor in enumerate(result)
        ]


def candidates(sizes: Sizes, cases: Sequence[dict[str, int]]) -> Iterator[tuple[tuple[Size, ...], list[int]]]:
    """Yield the sizes that numbers may depend on, single ones and products of two, by their factors.

    With each come its values, at the public case and then at the others. There are many: expressions of them are slow.
    """
    atoms = [
        (atom, [sizes.value(atom), *(sizes.value_at(atom, at) for at in cases)])
        for atom in sizes.values
        if atom not in sizes.local and atom not in sizes.settings
    ]
    yield from (((atom,), places) for atom, places in atoms)
    for place, (left, places) in enumerate(atoms):
        for right, others in atoms[: place + 1]:
            yield (left, right), [a * b for a, b in zip(places, others, strict=True)]


def sized_alone(sizes: Sizes, public: int, others: Sequence[int], cases: Sequence[dict[str, int]]) -> Size | None:
    """Return the number if it is the same at all cases, or else the single size that it is at each; None if none is."""
    if all(other == public for other in others):
        return size(public)
    known = candidates(sizes, cases)
    return next((factors[0] for factors, places in known if len(factors) == 1 and places == [public, *others]), None)


def sized_quotient(sizes: Sizes, public: int, others: Sequence[int], cases: Sequence[dict[str, int]]) -> Size | None:
    """Return the exact quotient of two sizes that the number is at all cases; None if there is none."""
    atoms = [(factors[0], places) for factors, places in candidates(sizes, cases) if len(factors) == 1]
    for left, places in atoms:
        for right, divisors in atoms:
            if places == [n * divisor for n, divisor in zip((public, *others), divisors, strict=True)]:
                return left / right
    return None


def sized_whole(sizes: Sizes, public: int, others: Sequence[int], cases: Sequence[dict[str, int]]) -> Size | None:
    """Return the size that is `public` at the public case and one of `others` at each of the other cases.

    It is a size, or a product of two, times or divided by a whole number, or plus a whole number; None if none fits.
    A size itself comes first: where few cases are known, some other size minus a whole number often fits as well.
    """
    numbers = [public, *others]
    if numbers[1:] and (alone := sized_alone(sizes, public, others, cases)) is not None and alone.is_Symbol:
        return alone
    steps = ((factors, _step_to(numbers, places)) for factors, places in candidates(sizes, cases))
    return next((step(product(factors)) for factors, step in steps if step is not None), None)


def same_setting(sizes: Sizes, public: int, others: Sequence[int], cases: Sequence[dict[str, int]]) -> Size | None:
    """Return the setting of the module that the number is at all cases; None if there is none."""
    settings = (
        (s, [sizes.value(s), *(sizes.value_at(s, at) for at in cases)]) for s in sorted(sizes.settings, key=str)
    )
    return next((setting for setting, places in settings if places == [public, *others]), None)


def sized_setting(sizes: Sizes, public: int, others: Sequence[int], cases: Sequence[dict[str, int]]) -> Size | None:
    """Return the setting of the module that the number follows at all cases, as `sized_whole` does; None if none is."""
    for setting in sorted(sizes.settings, key=str):
        places = [sizes.value(setting), *(sizes.value_at(setting, at) for at in cases)]
        if step := _step_to([public, *others], places):
            return step(setting)
    return None


def _step_to(numbers: Sequence[int], places: Sequence[int]) -> Callable[[Size], Size] | None:
    """Return the single step of arithmetic that makes the numbers of the values of a size; None if none does."""
    pairs = list(zip(numbers, places, strict=True))
    shift, total = numbers[0] - places[0], numbers[0] + places[0]
    if all(number == place for number, place in pairs):
        return lambda size: size
    if all(number == place + shift for number, place in pairs):
        return lambda size: size + shift
    if all(number == total - place for number, place in pairs):
        return lambda size: total - size
    # Exact quotients come first: 21, 14 and 28 are sevenfold, although the quotients by 6 are the same numbers.
    exact = [factor for factor in range(2, 17) if all(number * factor == place for number, place in pairs)]
    for factor in (*exact, *range(2, 17)):
        if step := _step_by(factor, pairs):
            return step
    by_blocks = next((step for block in BLOCKS if (step := _rest_of(block, pairs))), None)
    return by_blocks or _rest_by_size(numbers[0], pairs) or _rest_by_size(shift, pairs)


def _rest_by_size(number: int, pairs: Sequence[tuple[int, int]]) -> Callable[[Size], Size] | None:
    """Return the step that takes a fixed number modulo the size, as a roll does; None if it does not fit."""
    if any(place < 1 or rest != number % place for rest, place in pairs):
        return None
    if number < 0:
        return lambda size: sympy.floor((size - number - 1) / size) * size + number
    return lambda size: number - sympy.floor(number / size) * size


def _rest_of(block: int, pairs: Sequence[tuple[int, int]]) -> Callable[[Size], Size] | None:
    """Return the step that takes what is missing to whole blocks, or what is left over; None if neither fits."""
    if all(number == -place % block for number, place in pairs):
        return lambda size: sympy.floor((size + block - 1) / block) * block - size
    if all(number == place % block for number, place in pairs):
        return lambda size: size - sympy.floor(size / block) * block
    return None


def _step_by(factor: int, pairs: Sequence[tuple[int, int]]) -> Callable[[Size], Size] | None:
    """Return the step that multiplies or divides by a factor, if it makes the numbers of the places."""
    rest = pairs[0][0] - pairs[0][1] * factor
    if all(number == place * factor for number, place in pairs):
        return lambda size: size * factor
    if all(number == place // factor for number, place in pairs):
        return lambda size: sympy.floor(size / factor)
    if all(number == place // factor * factor for number, place in pairs):
        return lambda size: sympy.floor(size / factor) * factor
    if all(number == -(-place // factor) for number, place in pairs):
        return lambda size: sympy.floor((size + factor - 1) / factor)
    if all(number == place * factor + rest for number, place in pairs):
        return lambda size: size * factor + rest
    return None


def _matching_group(source: Sequence[tuple[Size, int]], target: Sequence[int]) -> tuple[int, int]:
    """Return how many leading source and target dimensions have the same product."""
    taken, goal = min(1, len(source)), 1
    left = prod(value for _, value in source[:taken])
    right = target[0]
    while left != right:
        if left < right:
            left *= source[taken][1]
            taken += 1
        else:
            right *= target[goal]
            goal += 1
    # Trailing ones belong to the last group, so that nothing is left over.
    while taken < len(source) and source[taken][1] == 1:
        taken += 1
    return taken, goal


def c_expression(expression: Size) -> str:
    """Return a size as integer arithmetic of C."""
    if isinstance(expression, sympy.Min):
        return f"AtMost({', '.join(c_expression(argument) for argument in expression.args)})"
    if isinstance(expression, sympy.floor):
        return c_expression(expression.args[0])
    numerator, denominator = sympy.fraction(sympy.together(expression))
    text = _polynomial(numerator)
    if denominator == 1:
        return text
    divisor = _polynomial(denominator)
    return f"({text}) / ({divisor})" if " " in divisor else f"({text}) / {divisor}"


def _negative_quotient(total: Size) -> tuple[Size, Size] | None:
    """Return the quotient of a sum with its whole number added before the division, and the other terms.

    None if the sum has no quotient that may be negative. C rounds those up, but the whole sum is a size.
    """
    floors = [term for term in total.args if isinstance(term, sympy.floor)]
    number = sum((term for term in total.args if term.is_Integer), ZERO)
    if len(floors) != 1 or number <= 1:  # a size of at least one, less one, is not negative
        return None
    inner = floors[0].args[0]
    if not any(term.could_extract_minus_sign() for term in sympy.Add.make_args(expand(inner))):
        return None
    return inner + number, total - floors[0] - number


def _polynomial(expression: Size) -> str:
    if expression.is_Add:
        if (quotient := _negative_quotient(expression)) is not None:
            inner, others = quotient
            return f"{_polynomial(others)} + ({c_expression(inner)})" if others != 0 else c_expression(inner)
        first, *rest = sorted(expression.args, key=lambda term: (term.could_extract_minus_sign(), str(term)))
        text = _polynomial(first)
        for term in rest:
            negative = term.could_extract_minus_sign()
            text += f" - {_polynomial(-term)}" if negative else f" + {_polynomial(term)}"
        return text
    if expression.could_extract_minus_sign() and not expression.is_Integer:
        return f"-{_polynomial(-expression)}"
    if isinstance(expression, sympy.floor):
        return f"({c_expression(expression)})"
    if isinstance(expression, sympy.Min):
        return c_expression(expression)
    factors: list[str] = []
    for base, power in sorted(expression.as_powers_dict().items(), key=lambda item: str(item[0])):
        text = (
            f"({_polynomial(base)})"
            if base.is_Add
            else str(base)
            if base.is_Symbol or base.is_Integer
            else _polynomial(base)
        )
        factors += [text] * int(power)
    return " * ".join(factors) or "1"
