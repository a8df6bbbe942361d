"""Trials: runs of the reference in which one thing differs, as in a kernel that saves work.

A trial is plain data, so that it can be sent to the process in which the reference runs.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass, field
from types import TracebackType
from typing import Literal

import torch

from kernel_gym.tasks.bounds import LeftOutBounds
from kernel_gym.tasks.constant_parts import ConstantActivations, ConstantWeights
from kernel_gym.tasks.exponentials import Shortcut, SumsOfExponentials
from kernel_gym.tasks.recurrent_layers import SeparateProducts
from kernel_gym.tasks.rounding import (
    ProductInHalfPrecision,
    Quarter,
    RoundedOtherwise,
    RoundedResults,
    SummandInHalfPrecision,
    WideProducts,
)
from kernel_gym.tasks.variances import UnstableVariances


@dataclass(frozen=True)
class Trial:
    """What differs in a run of the reference; by default nothing.

    Args:
        half: The product in float32 that is in half precision, in the order in which they are computed.
        operands: Which of its operands are rounded to half precision, the first one being 0.
        scale: What these are multiplied by before they are rounded, and divided by afterwards.
        quarter: The quarter of its results that is computed in this way; None for all.
        half_summand: The addition of two tensors in float32, and which of its summands is in half precision; None for
            none.
        constant_weights: The rows, by the first dimension, in which softmaxes in float32 have constant weights, for
            each softmax in the order in which they are computed; None for all rows.
        rounded: Whether sums are off as those of another order of summation in float32 would be, or the results of all
            operators are rounded to float32. Both are for runs in float64.
        without_bounds: Which bounds are left out, in the order in which they are used, see `LeftOutBounds`.
        fewer_iterations: How many of the module's last iterations are left out.
        exponentials: Whether sums of exponentials are looked at.
        shortcut: How these are computed without their maximum; None for as they are.
        shortened: Which of them, in the order in which they are computed; None for all.
        wide_products: Whether products are counted of which bfloat16 does not hold an operand.
        unstable_variances: Which variances are off, in the order in which they are computed, see `UnstableVariances`;
            None for all.
        lost_in_variances: Relative error of the means and the arguments of variances, see `UnstableVariances`.
    """

    half: int | None = None
    operands: tuple[int, ...] = (0, 1, 2)
    scale: float = 1.0
    quarter: Quarter | None = None
    half_summand: tuple[int, int] | None = None
    constant_weights: dict[int, list[int] | None] = field(default_factory=dict)
    rounded: Literal["sums", "results"] | None = None
    without_bounds: list[int] = field(default_factory=list)
    fewer_iterations: int = 0
    exponentials: bool = False
    shortcut: Shortcut | None = None
    shortened: list[int] | None = None
    wide_products: bool = False
    unstable_variances: list[int] | None = field(default_factory=list)
    lost_in_variances: float = 0.0


@dataclass(frozen=True)
class Counts:
    """What a run of the reference consists of.

    Args:
        products: Multiply-adds of each product in float32, in the order in which they are computed.
        additions: Elements of each addition of two tensors in float32, in the order in which they are computed.
        softmaxes: Shape of the weights of each softmax in float32; (0,) if there is only one weight in a sum.
        constant_activations: Number of activations whose results are the same in all rows without stress; 0 if it was
            was not said which rows these are.
        bounds: Number of bounds of floats, such as those of clamps.
        overflows: Whether the arguments of each sum of exponentials overflow, whichever constant is subtracted.
        wide_products: Number of products in float32 of which bfloat16 does not hold an operand; 0 if the trial does not
            say that they are counted.
        variances: Number of variances, those of norms among them.
    """

    products: list[int] = field(default_factory=list)
    additions: list[int] = field(default_factory=list)
    softmaxes: list[tuple[int, ...]] = field(default_factory=list)
    constant_activations: int = 0
    bounds: int = 0
    overflows: list[bool] = field(default_factory=list)
    wide_products: int = 0
    variances: int = 0


class TrialModes:
    """The modes of torch in which the operators of a trial run, but for the number of iterations; they count.

    Args:
        trial: What differs.
        usual: Which rows have no stress, see `ConstantActivations`; None if activations are not counted.
    """

    def __init__(self, trial: Trial, usual: torch.Tensor | None) -> None:
        self._products = ProductInHalfPrecision(trial.half, trial.operands, trial.scale, trial.quarter)
        self._additions = SummandInHalfPrecision(*(trial.half_summand or (None,)))
        self._softmaxes = ConstantWeights(
            {position: slice(None) if rows is None else rows for position, rows in trial.constant_weights.items()}
        )
        self._bounds = LeftOutBounds(trial.without_bounds)
        self._variances = UnstableVariances(trial.unstable_variances, trial.lost_in_variances)
        self._activations = None if usual is None else ConstantActivations(usual)
        self._sums = SumsOfExponentials(trial.shortcut, trial.shortened) if trial.exponentials else None
        self._wide = WideProducts() if trial.wide_products else None
        self._rounding = _rounding(trial)
        self._entered = ExitStack()

    def __enter__(self) -> None:
        optional = (mode or nullcontext() for mode in (self._activations, self._sums, self._wide))
        layers = SeparateProducts()  # type: ignore[no-untyped-call]
        always = (self._products, self._additions, self._softmaxes, self._bounds, self._variances)
        for mode in (*always, *optional, self._rounding, layers):
            self._entered.enter_context(mode)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._entered.__exit__(kind, error, traceback)

    @property
    def counts(self) -> Counts:
        """What was counted so far."""
        constant = 0 if self._activations is None else self._activations.count
        overflows = [] if self._sums is None else self._sums.overflows
        wide = 0 if self._wide is None else self._wide.count
        return Counts(
            self._products.work,
            self._additions.sizes,
            self._softmaxes.shapes,
            constant,
            self._bounds.count,
            overflows,
            wide,
            self._variances.count,
        )


def _rounding(trial: Trial) -> AbstractContextManager[object]:
    if trial.rounded == "sums":
        return RoundedOtherwise()
    return RoundedResults() if trial.rounded == "results" else nullcontext()  # type: ignore[no-untyped-call]
