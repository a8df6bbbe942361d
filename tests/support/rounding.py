"""Cast written down a second time, with exact fractions: the reference for the simulator."""

from __future__ import annotations

from fractions import Fraction
from math import ceil, floor, inf, isinf, isnan

import numpy as np

#: Precision, smallest normal exponent and largest value of the floating types.
FORMATS = {"float16": (11, -14, Fraction(65504)), "bfloat16": (8, -126, Fraction(2) ** 128 - Fraction(2) ** 120)}
FORMATS["float32"] = (24, -126, Fraction(2) ** 128 - Fraction(2) ** 104)
MODES = ("CAST_NONE", "CAST_RINT", "CAST_FLOOR", "CAST_CEIL", "CAST_ROUND", "CAST_TRUNC", "CAST_ODD")


def whole(value: Fraction, mode: str) -> int:
    """The whole number that a mode rounds to."""
    down = floor(value)
    if down == value:
        return down
    match mode:
        case "CAST_FLOOR":
            return down
        case "CAST_CEIL":
            return ceil(value)
        case "CAST_TRUNC":
            return int(value)
        case "CAST_ROUND":
            return floor(value + Fraction(1, 2)) if value > 0 else ceil(value - Fraction(1, 2))
        case "CAST_ODD":
            return down if down % 2 else down + 1
        case _:
            return round(value)


def to_float(value: float | int, kind: str, mode: str) -> float:
    """The number of a floating type that a mode rounds to."""
    if isinstance(value, float) and (isnan(value) or isinf(value)):
        return value
    exact = Fraction(value)
    if exact == 0:
        return float(value)
    digits, lowest, largest = FORMATS[kind]
    exponent = max(floor_log2(abs(exact)), lowest)
    unit = Fraction(2) ** (exponent - digits + 1)
    rounded: Fraction | float = whole(exact / unit, mode) * unit
    if abs(rounded) > largest:
        outward = {"CAST_FLOOR": exact < 0, "CAST_CEIL": exact > 0, "CAST_TRUNC": False, "CAST_ODD": False}
        rounded = inf if outward.get(mode, True) else largest
    return float(np.copysign(float(abs(rounded)), float(exact > 0) - 0.5))


def floor_log2(value: Fraction) -> int:
    """The exponent of the leading bit."""
    guess = value.numerator.bit_length() - value.denominator.bit_length()
    return guess if Fraction(2) ** guess <= value else guess - 1


def to_int(value: float | int, kind: str, mode: str) -> int:
    """The integer that a mode rounds to, at most the largest there is; not-a-number is 0."""
    limits = np.iinfo(kind)
    if isinstance(value, float) and isnan(value):
        return 0
    if isinstance(value, float) and isinf(value):
        return int(limits.max if value > 0 else limits.min)
    return int(min(max(whole(Fraction(value), mode), limits.min), limits.max))


def cast(value: float | int, target: str, origin: str, mode: str) -> float | int:
    """One element through Cast."""
    if target == origin == "float32":
        if isnan(value) or isinf(value):
            return value
        rounded = float(whole(Fraction(value), mode))
        return rounded if rounded else float(np.copysign(0.0, value))
    if target in FORMATS:
        return to_float(value, target, mode)
    return to_int(value, target, mode)
