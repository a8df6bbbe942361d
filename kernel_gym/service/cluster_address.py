"""Connections to Ray clusters, and their addresses."""

from __future__ import annotations

import os
import socket
from typing import Any

from kernel_gym.errors import ConfigError, InfrastructureError

# Ray reads these at its first import: no usage report, no token, no change of the visible accelerators.
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO", "0")

#: The namespace of the project's named actors.
NAMESPACE = "kernel_gym"
#: The addresses that this process has connected to.
_connected: set[str] = set()


def connect(address: str) -> Any:
    """Connect this process to a cluster, unless it is connected already.

    Args:
        address: `HOST:PORT`, `ray://HOST:PORT`, or `auto` for the cluster of this machine.

    Returns:
        The module `ray`.

    Raises:
        ConfigError: Ray is not installed, the cluster cannot be reached, or this process uses another cluster.
        InfrastructureError: Ray cannot be used.
    """
    try:
        import ray
    except ImportError as error:
        raise ConfigError("a cluster needs Ray: pip install 'kernel-gym[rllib]'") from error
    if ray.is_initialized():
        _check_same(address, ray.get_runtime_context().gcs_address)
        return ray
    check_reachable(address)
    try:
        ray.init(address=address, log_to_driver=False, logging_level="ERROR", namespace=NAMESPACE)
    except (ConnectionError, ValueError, RuntimeError) as error:
        raise InfrastructureError(f"no Ray cluster at {address}: {error}") from error
    _connected.clear()
    _connected.add(address)
    return ray


def _check_same(address: str, connected: str) -> None:
    """Refuse an address other than the one this process is connected to: verdicts would come from elsewhere."""
    if address not in ("auto", connected, *_connected):
        raise ConfigError(f"this process uses the Ray cluster at {connected}: it cannot use that at {address}, too")


def check_reachable(address: str) -> None:
    """Fail fast if the cluster is unreachable: Ray itself tries for minutes."""
    host, separator, port = address.removeprefix("ray://").rpartition(":")
    if not separator:
        return
    try:
        socket.create_connection((host, int(port)), timeout=10).close()
    except (OSError, ValueError, OverflowError) as error:
        raise ConfigError(f"cannot reach a Ray cluster at {address!r}: {error}") from error
