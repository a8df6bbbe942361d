"""Tests of the CUDA device: those that need a GPU carry the marker `cuda` and are skipped with a reason elsewhere."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_gym.hardware.cuda.device import Cuda


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("cuda")]
    reason = Cuda().unavailable_reason() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))


@pytest.fixture(scope="module")
def device() -> Iterator[Cuda]:
    with Cuda(timeout=3.0) as made:
        yield made
