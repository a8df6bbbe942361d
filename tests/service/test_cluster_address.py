"""Connections to clusters: one cluster a process."""

from __future__ import annotations

import pytest

from kernel_gym.errors import ConfigError
from kernel_gym.service import cluster_address


def test_a_process_uses_one_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster_address, "_connected", {"head:6379"})
    for address in ("auto", "10.0.0.5:6379", "head:6379"):
        cluster_address._check_same(address, "10.0.0.5:6379")
    with pytest.raises(ConfigError, match=r"at 10.0.0.5:6379: it cannot use that at 10.0.0.6:6379"):
        cluster_address._check_same("10.0.0.6:6379", "10.0.0.5:6379")


@pytest.mark.parametrize("port", ["99999", "\N{SUPERSCRIPT TWO}", "9" * 5000])
def test_a_port_that_is_none_is_one_line(port: str) -> None:
    with pytest.raises(ConfigError, match="cannot reach a Ray cluster"):
        cluster_address.check_reachable(f"localhost:{port}")
