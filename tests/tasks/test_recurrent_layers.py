"""Recurrent layers in trials: each product of an LSTM is seen, and the results are those of torch's own layer."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from kernel_gym.suites import find_task
from kernel_gym.tasks.recurrent_layers import SeparateProducts
from kernel_gym.tasks.rounding import ProductInHalfPrecision
from kernel_gym.tasks.trials import Trial

STEPS = 3


@pytest.mark.parametrize(
    ("options", "products"),
    [
        ({}, 1 + STEPS),
        ({"num_layers": 2}, 2 * (1 + STEPS)),
        ({"bias": False}, 1 + STEPS),
        ({"bidirectional": True}, 2 * (1 + STEPS)),
    ],
)
def test_each_product_of_a_layer_is_seen(options: dict[str, Any], products: int) -> None:
    torch.manual_seed(0)
    layer, values = torch.nn.LSTM(4, 5, **options), torch.randn(STEPS, 2, 4)
    seen = ProductInHalfPrecision()
    with torch.no_grad():
        results, (hidden, cell) = layer(values)
        with seen, SeparateProducts():
            others, (other_hidden, other_cell) = layer(values)
    torch.testing.assert_close((others, other_hidden, other_cell), (results, hidden, cell))
    assert len(seen.work) == products


@pytest.mark.parametrize("name", ["lstm", "lstm_hn", "lstm_cn", "lstm_bidirectional"])
def test_the_products_of_an_lstm_are_tried(name: str) -> None:
    task = find_task(f"level3/{name}")
    instance = task.instance(task.public)
    _, counts = instance.tried(instance.own_inputs(0), Trial())
    assert len(counts.products) > 2
