"""Running sums and products."""

from __future__ import annotations

from typing import Any

from kernel_gym.authors.apprentice.frontend.expression import Tensor, Value
from kernel_gym.authors.apprentice.frontend.operators.table import handles
from kernel_gym.authors.apprentice.frontend.plan_builder import PlanBuilder


@handles("cumsum.default")
def _cumsum(plan: PlanBuilder, x: Value, axis: int, **_: Any) -> Tensor:
    return plan.scan(x, axis, "sum")


@handles("cumprod.default")
def _cumprod(plan: PlanBuilder, x: Value, axis: int, **_: Any) -> Tensor:
    return plan.scan(x, axis, "prod")
