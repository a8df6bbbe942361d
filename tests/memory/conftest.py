"""A cluster for banks that actors keep."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from ray_cluster import nodes


@pytest.fixture(scope="session")
def ray_cluster() -> Iterator[Any]:
    """A cluster of one node."""
    with nodes(1) as cluster:
        yield cluster
