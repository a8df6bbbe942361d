"""Ray clusters of several nodes on this machine, for tests."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from kernel_gym.service.local_cluster import local_cluster


@contextmanager
def nodes(count: int) -> Iterator[Any]:
    """A cluster of so many nodes with a core each; a test without Ray is skipped."""
    pytest.importorskip("ray", reason="needs Ray: pip install 'kernel_gym[rllib]'")
    with local_cluster(count) as cluster:
        yield cluster
