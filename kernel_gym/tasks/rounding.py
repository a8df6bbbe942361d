"""Rounding errors: those of honest kernels in float32 where the reference has none, and those of half precision.

How a sum is rounded depends on the order of its terms. If large terms cancel, another order changes the result by much
more than the last place, and the few results of a small case do not show how much. Functions such as tanh are computed
from an exponential and one, and near zero have the rounding error of that one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

#: Half a unit in the last place of a float32, relative to the number.
HALF_UNIT = 2.0**-24
#: Sums of whole numbers, such as counts, are exact in float32 while the sum of their magnitudes is below this.
EXACT = 2.0**24
#: Bits of a float32 that half precision lacks.
MISSING_BITS = 13
_aten = torch.ops.aten
#: Operators that multiply matrices, and the positions of the arguments that they multiply.
_PRODUCTS = {
    _aten.mm: (0, 1),
    _aten.bmm: (0, 1),
    _aten.mv: (0, 1),
    _aten.dot: (0, 1),
    _aten.addmm: (1, 2),
    _aten.baddbmm: (1, 2),
    _aten.addmv: (1, 2),
    _aten.convolution: (0, 1),
    _aten._scaled_dot_product_flash_attention_for_cpu: (0, 1, 2),
}
#: Operators that add products or elements: of the magnitudes of their arguments they make the sum of magnitudes.
_SUMS = frozenset(
    {
        _aten.mm,
        _aten.addmm,
        _aten.bmm,
        _aten.baddbmm,
        _aten.mv,
        _aten.addmv,
        _aten.dot,
        _aten.convolution,
        _aten.sum,
        _aten.mean,
        _aten.cumsum,
        _aten.avg_pool2d,
        _aten.avg_pool3d,
        _aten._adaptive_avg_pool2d,
        _aten._adaptive_avg_pool3d,
    }
)
#: Those that divide: what they make of whole numbers is rounded.
_MEANS = frozenset(
    {_aten.mean, _aten.avg_pool2d, _aten.avg_pool3d, _aten._adaptive_avg_pool2d, _aten._adaptive_avg_pool3d}
)
#: Functions that are zero at zero and whose formulas pass through one, and those that multiply this by the argument.
_THROUGH_ONE = frozenset({_aten.tanh, _aten.erf, _aten.expm1, _aten.log1p, _aten.softplus, _aten.elu})
_TIMES_ARGUMENT = frozenset({_aten.mish, _aten.gelu})
#: Operators that add tensors, element by element, and those that change the first one.
_ADDITIONS = frozenset({_aten.add, _aten.sub, _aten.add_, _aten.sub_})


class RoundedOtherwise(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds to sums and functions, or subtracts from them, the rounding error of float32 that they may have."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if not (isinstance(result, torch.Tensor) and result.is_floating_point()):
            return result
        packet = func.overloadpacket
        if packet in _SUMS:
            magnitudes = func(*pytree.tree_map_only(torch.Tensor, _magnitude, args), **(kwargs or {})).abs()
            if packet not in _MEANS and all(map(_is_whole, pytree.tree_leaves(args))):
                magnitudes = torch.where(magnitudes < EXACT, 0.0, magnitudes)
            return result + self._signs(result) * magnitudes
        if packet in _THROUGH_ONE:
            return result + self._signs(result)
        return result + self._signs(result) * args[0].abs() if packet in _TIMES_ARGUMENT else result

    def _signs(self, like: torch.Tensor) -> torch.Tensor:
        """Return half a unit in the last place of one, up or down, for each element."""
        signs = torch.randint(0, 2, like.shape, generator=self._generator)
        return (2 * signs - 1).to(like.dtype) * HALF_UNIT


class RoundedResults(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds the result of every operator from float64 to float32: the noise of storing results, not of adding them."""

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        result = func(*args, **(kwargs or {}))
        if any(value.alias_info is not None for value in func._schema.returns):  # a view, or a tensor that was changed
            return result
        return pytree.tree_map_only(torch.Tensor, _rounded, result)


@dataclass(frozen=True)
class Quarter:
    """A quarter of a product's results: of their rows, or of their columns or channels."""

    of: Literal["rows", "columns"]
    number: int

    def place(self, shape: Sequence[int], columns: int) -> tuple[slice, ...]:
        """Return where it is, at least one row or column, in results of a shape; `columns` is their dimension."""
        place = [slice(None)] * len(shape)
        if place:
            dimension = 0 if self.of == "rows" else columns
            begin = shape[dimension] * self.number // 4
            place[dimension] = slice(begin, max(begin + 1, shape[dimension] * (self.number + 1) // 4))
        return tuple(place)


QUARTERS = (*(Quarter("rows", i) for i in range(4)), *(Quarter("columns", i) for i in range(4)))


class ProductInHalfPrecision(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds operands of one product in float32 to half precision; `work` has the multiply-adds of all of these.

    Args:
        position: Which product it is, in the order in which they are computed; None for none of them.
        operands: Which of its operands are rounded, the first one being 0.
        scale: What they are multiplied by before they are rounded, and divided by afterwards.
        quarter: The quarter of its results that is computed in this way; None for all.
    """

    def __init__(
        self,
        position: int | None = None,
        operands: tuple[int, ...] = (0, 1, 2),
        scale: float = 1.0,
        quarter: Quarter | None = None,
    ) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.position, self.operands, self.scale, self.quarter = position, operands, scale, quarter
        self.work = list[int]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        operands = _PRODUCTS.get(func.overloadpacket, ())
        if not operands or args[operands[0]].dtype != torch.float32:
            return func(*args, **(kwargs or {}))
        is_convolution, is_tried = func.overloadpacket is _aten.convolution, len(self.work) == self.position
        result = func(*(self._rounded(args, operands) if is_tried else args), **(kwargs or {}))
        if is_tried and self.quarter is not None:
            result, rounded = func(*args, **(kwargs or {})), result
            place = self.quarter.place(result.shape, 1 if is_convolution else -1)
            result[place] = rounded[place]
        left, right = (args[i] for i in operands[:2])
        if is_convolution:
            each = (left if args[6] else result).numel()  # a transposed one spreads each element of its argument
            self.work.append(each * right[0].numel())
        else:
            self.work.append(left.numel() * right.shape[-1] if right.dim() > 1 else left.numel())
        return result

    def _rounded(self, args: tuple[Any, ...], operands: tuple[int, ...]) -> tuple[Any, ...]:
        rounded = [operands[i] for i in self.operands if i < len(operands)]
        return tuple(
            in_half_precision(value * self.scale) / self.scale if i in rounded else value
            for i, value in enumerate(args)
        )


class SummandInHalfPrecision(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Rounds one summand of one addition in float32 to half precision; `sizes` has the elements of each addition.

    Its distance from the middle of its range is rounded, which loses least.

    Args:
        position: Which addition of two tensors of one shape it is, in their order; None for none of them.
        summand: Which of its summands is rounded, the first one being 0.
    """

    def __init__(self, position: int | None = None, summand: int = 0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.position, self.summand = position, summand
        self.sizes = list[int]()

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket in _ADDITIONS and _are_alike(*args[:2]):
            if len(self.sizes) == self.position:
                value = args[self.summand]
                middle = torch.nan_to_num((value.amin() + value.amax()) / 2, 0.0, 0.0, 0.0)
                rounded = in_half_precision(value - middle) + middle
                if self.summand == 0 and func._schema.is_mutable:
                    value.copy_(rounded)
                else:
                    args = (*args[: self.summand], rounded, *args[self.summand + 1 :])
            self.sizes.append(args[0].numel())
        return func(*args, **(kwargs or {}))


class WideProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Counts the products in float32 of which bfloat16 does not hold an operand."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.count = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        operands = [args[i] for i in _PRODUCTS.get(func.overloadpacket, ()) if args[i].dtype == torch.float32]
        self.count += any(not torch.equal(operand, operand.bfloat16().float()) for operand in operands)
        return func(*args, **(kwargs or {}))


def in_half_precision(tensor: torch.Tensor) -> torch.Tensor:
    """Return floats rounded to the digits of half precision; their range stays, because a kernel may scale them."""
    if tensor.dtype != torch.float32:
        return tensor
    bits = tensor.contiguous().view(torch.int32) + (1 << (MISSING_BITS - 1))
    return (bits & ~((1 << MISSING_BITS) - 1)).view(torch.float32)


def _rounded(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.float32).to(torch.float64) if tensor.dtype == torch.float64 else tensor


def _are_alike(left: Any, right: Any) -> bool:
    tensors = isinstance(left, torch.Tensor) and isinstance(right, torch.Tensor)
    return tensors and left.dtype == right.dtype == torch.float32 and left.shape == right.shape and left.numel() > 0


def _is_whole(argument: Any) -> bool:
    return (
        not isinstance(argument, torch.Tensor)
        or not argument.is_floating_point()
        or bool(torch.equal(argument, argument.round()))
    )


def _magnitude(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.abs() if tensor.is_floating_point() else tensor
