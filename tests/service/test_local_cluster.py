"""Nodes that start slowly; without Ray. `test_cluster.py` has real nodes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from kernel_gym.service import local_cluster


def services(failures: int) -> Any:
    """The part of Ray that looks a node up, whose node is registered after so many looks."""
    answers = [None] * failures + ["the node"]

    def get_node(address: str, id: str) -> str:
        if (answer := answers.pop(0)) is None:
            raise RuntimeError("no node")
        return answer

    return SimpleNamespace(get_node=get_node)


def test_a_node_that_starts_slowly_is_waited_for() -> None:
    ray = services(3)
    before = ray.get_node
    with local_cluster._patience(ray):
        assert ray.get_node("address", "id") == "the node"
    assert ray.get_node is before


def test_a_node_that_does_not_start_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_cluster, "PATIENCE", -1.0)
    with local_cluster._patience(ray := services(3)), pytest.raises(RuntimeError, match="no node"):
        ray.get_node("address", "id")
