"""Running sums and products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from kernel_gym.authors.apprentice.frontend.expression import Tensor, Value
from kernel_gym.authors.apprentice.frontend.operators.table import handles

if TYPE_CHECKING:
    from kernel_gym.authors.apprentice.frontend.reader import Reader


@handles("cumsum.default")
def _cumsum(r: Reader, x: Value, axis: int, **_: Any) -> Tensor:
    return r.scan(x, axis, "sum")


@handles("cumprod.default")
def _cumprod(r: Reader, x: Value, axis: int, **_: Any) -> Tensor:
    return r.scan(x, axis, "prod")
