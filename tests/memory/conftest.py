"""A cluster for banks that actors keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kernel_gym.service.local_cluster import local_cluster


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A cluster of one node."""
    pytest.importorskip("ray", reason="needs Ray")
    with local_cluster(1) as cluster:
        yield cluster
