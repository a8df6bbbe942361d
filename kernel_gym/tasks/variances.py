"""Runs the reference with unstable variances: the mean of the squares minus the square of the mean.

Where the mean is large beside the standard deviation, both are nearly equal and their difference cancels. Other
formulas lose only a few digits there.
"""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_aten = torch.ops.aten
_STATISTICS = frozenset({_aten.var, _aten.std, _aten.var_mean, _aten.std_mean})
_BATCH_NORMS = frozenset({_aten.native_batch_norm, _aten._native_batch_norm_legit})
_NORMS = _BATCH_NORMS | {_aten.native_layer_norm, _aten.native_group_norm}
#: Largest relative error of a mean of squares that is rounded to float32 once; its terms and sums are rounded, too.
ROUNDING = 2.0**-24
#: So many errors are drawn at most, and repeated: a prime number, so that rows do not begin with the same ones.
POOL = 65_521


class UnstableVariances(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Adds to variances what rounding the mean of the squares to float32 costs, and counts all.

    Args:
        chosen: Which ones, in the order in which they are computed; None for all.
        lost: Relative error of means, and of what a norm normalises, as sums of many numbers in float32 have it: the
            results of norms and variances are off by what that makes of them. 0 leaves them as they are.
    """

    def __init__(self, chosen: list[int] | None, lost: float = 0.0) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.chosen, self.count, self._lost = chosen, 0, lost
        self._generator = torch.Generator().manual_seed(0)

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        packet, settings = func.overloadpacket, dict(kwargs or {})
        results = func(*args, **settings)
        if packet not in _STATISTICS and not (packet in _NORMS and _takes_statistics(packet, args)):
            return results
        position, self.count = self.count, self.count + 1
        is_chosen = self.chosen is None or position in self.chosen
        if not is_chosen and not self._lost:
            return results
        rounding = ROUNDING if is_chosen else 0.0
        if packet in _NORMS:
            return (self._renormalised(packet, args, rounding, *results[:3]), *results[1:])
        return self._spread(packet, results, args, settings, rounding)

    def _renormalised(
        self,
        packet: Any,
        args: tuple[Any, ...],
        rounding: float,
        normalised: torch.Tensor,
        mean: torch.Tensor,
        inverse: torch.Tensor,
    ) -> torch.Tensor:
        """Return the result of a norm that is off; `inverse` is the inverse of the standard deviations."""
        ratios = _by_element(packet, mean * inverse, normalised)
        weight, bias = (_by_channel(packet, each, normalised) for each in _parameters(packet, args))
        factors = torch.rsqrt(1.0 + rounding * ratios.square())
        result = (normalised - (0.0 if bias is None else bias)) * factors
        if self._lost:
            errors = self._errors(normalised.shape) + self._errors(ratios.shape)
            result = result + ratios * errors * (1.0 if weight is None else weight)
        return (result if bias is None else result + bias).to(normalised.dtype)

    def _spread(
        self, packet: Any, results: Any, args: tuple[Any, ...], settings: dict[str, Any], rounding: float
    ) -> Any:
        """Return the results of a variance or a standard deviation that is off."""
        has_mean, is_deviation = packet in (_aten.var_mean, _aten.std_mean), packet in (_aten.std, _aten.std_mean)
        spread = results[0] if has_mean else results
        dimensions = args[1] if len(args) > 1 and not isinstance(args[1], bool) else settings.get("dim")
        keepdim = bool(settings.get("keepdim", args[3] if len(args) > 3 else False))
        mean = (args[0].mean(dimensions, keepdim) if dimensions else args[0].mean()).reshape(spread.shape)
        variance = (spread.square() if is_deviation else spread) + rounding * mean.square()
        if self._lost:
            variance = variance + variance.sqrt() * mean * self._errors(mean.shape)
        changed = variance.clamp_min(0.0).sqrt() if is_deviation else variance
        return (changed, *results[1:]) if has_mean else changed

    def _errors(self, shape: torch.Size) -> torch.Tensor:
        errors = self._lost * torch.randn(min(shape.numel(), POOL), generator=self._generator)
        return errors.repeat(-(-shape.numel() // POOL))[: shape.numel()].reshape(shape)


def _takes_statistics(packet: Any, args: tuple[Any, ...]) -> bool:
    """Return whether a norm computes a variance: a batch norm may be given one."""
    if packet is _aten._native_batch_norm_legit and isinstance(args[3], bool):  # it has no running statistics
        return args[3]
    return packet not in _BATCH_NORMS or bool(args[5])


def _parameters(packet: Any, args: tuple[Any, ...]) -> tuple[torch.Tensor | None, torch.Tensor | None]:
    """Return the weight and the bias of a norm."""
    first = 2 if packet is _aten.native_layer_norm else 1
    return args[first], args[first + 1]


def _by_element(packet: Any, statistics: torch.Tensor, normalised: torch.Tensor) -> torch.Tensor:
    """Return the statistics of a norm in a shape that broadcasts to its result."""
    if packet is _aten.native_layer_norm:
        return statistics
    if packet is _aten.native_group_norm:
        statistics = statistics.repeat_interleave(normalised.shape[1] // statistics.shape[1], 1)
    return statistics.reshape(-1, normalised.shape[1], *[1] * (normalised.dim() - 2))


def _by_channel(packet: Any, parameter: torch.Tensor | None, normalised: torch.Tensor) -> torch.Tensor | None:
    """Return a parameter of a norm in a shape that broadcasts to its result."""
    if parameter is None or packet is _aten.native_layer_norm:
        return parameter
    return parameter.reshape(-1, *[1] * (normalised.dim() - 2))
