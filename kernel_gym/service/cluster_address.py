"""Addresses of Ray clusters."""

from __future__ import annotations

import socket

from kernel_gym.errors import ConfigError


def check_reachable(address: str) -> None:
    """Fail fast if the cluster is unreachable: Ray itself tries for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError) as error:
        raise ConfigError(f"cannot reach a Ray cluster at {address!r}: {error}") from error
