"""LSTM layers split into operators that other modes of torch can observe."""

from __future__ import annotations

from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

_LAYER = torch.ops.aten.mkldnn_rnn_layer
#: The position of the argument that says whether there are biases.
_HAS_BIASES = 12


class SeparateProducts(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Computes each layer of an LSTM by products, sums and activations. On a CPU torch has one operator for a layer.

    Modes that observe the products must be entered before this one.
    """

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        if func.overloadpacket is not _LAYER:
            return func(*args, **(kwargs or {}))
        values, to_gates, from_hidden, bias, hidden_bias, hidden, cell, is_reversed = args[:8]
        added = bias + hidden_bias if args[_HAS_BIASES] else values.new_zeros(1)
        gates = torch.addmm(added, values.flatten(0, 1), to_gates.t()).view(*values.shape[:2], -1)
        results = torch.empty(*values.shape[:2], hidden.shape[-1], dtype=values.dtype)
        steps = range(len(values))
        for step in reversed(steps) if is_reversed else steps:
            enters, keeps, change, leaves = torch.addmm(gates[step], hidden, from_hidden.t()).chunk(4, 1)
            cell = keeps.sigmoid() * cell + enters.sigmoid() * change.tanh()
            results[step] = hidden = leaves.sigmoid() * cell.tanh()
        return results, hidden, cell, values.new_empty(0)  # the workspace of the backward pass is empty
