"""Tests of the CUDA device: those that need a GPU carry the marker `cuda` and are skipped with a reason elsewhere."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
import torch

from kernel_gym.hardware.cuda.device import Cuda


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("cuda")]
    reason = Cuda().unavailable_reason() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
    if marked and not reason:
        _share_cores()


def _share_cores() -> None:
    """References run on the CPU: processes that test side by side each take their part of it."""
    processes = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    torch.set_num_threads(max(1, (os.cpu_count() or 1) // processes))


@pytest.fixture(scope="module")
def device() -> Iterator[Cuda]:
    with Cuda(timeout=3.0) as gpu:
        yield gpu
