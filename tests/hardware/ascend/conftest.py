"""Tests of the Ascend device: those that need an NPU carry the marker `npu` and are skipped with a reason elsewhere."""

from __future__ import annotations

import pytest

from kernel_gym.hardware.ascend.device import Ascend


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    marked = [item for item in items if item.get_closest_marker("npu")]
    reason = Ascend().unavailable_reason() if marked else None
    for item in marked:
        if reason:
            item.add_marker(pytest.mark.skip(reason=reason))
