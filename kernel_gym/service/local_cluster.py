"""A Ray cluster of several nodes on this machine, for the duration of a command.

    python -m kernel_gym.service.local_cluster --nodes 2 kernel-gym train --cluster auto ...

Each node is a raylet of its own, as on separate machines, with one core unless `--cores` says otherwise. `auto` is its
address.
"""

from __future__ import annotations

import argparse
import logging
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from kernel_gym.errors import ConfigError
from kernel_gym.service import cluster_address  # noqa: F401 - sets what Ray reads at its first import

#: Bytes of the object store of a node.
STORE = 100 * 2**20
#: Seconds that a node has to start.
PATIENCE = 300.0


@contextmanager
def local_cluster(nodes: int, cores: int = 1, gpus: int = 0) -> Iterator[Any]:
    """Run a cluster on this machine.

    Args:
        nodes: Number of nodes.
        cores: Cores that each node offers.
        gpus: GPUs that each node offers.

    Yields:
        Ray's `Cluster`; its `address` is `HOST:PORT`.
    """
    try:
        import ray
        from ray._private import services
        from ray.cluster_utils import Cluster
    except ImportError as error:
        raise ConfigError("a cluster needs Ray: pip install 'kernel-gym[rllib]'") from error
    logging.getLogger("ray").setLevel(logging.ERROR)
    node = {"num_cpus": cores, "num_gpus": gpus, "object_store_memory": STORE}
    with _patience(services):
        cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False})
    try:
        with _patience(services):
            for _ in range(nodes - 1):
                cluster.add_node(**node)
        yield cluster
    finally:
        ray.shutdown()
        cluster.shutdown()


@contextmanager
def _patience(services: Any) -> Iterator[None]:
    """Let Ray wait for nodes that start slowly: by itself it gives up after 30 s, which a busy machine may need."""
    get_node = services.get_node

    def wait_for_node(*arguments: Any) -> Any:
        end = time.monotonic() + PATIENCE
        while True:
            try:
                return get_node(*arguments)
            except RuntimeError:  # the node is not registered yet
                if time.monotonic() > end:
                    raise
                time.sleep(0.1)

    services.get_node = wait_for_node
    try:
        yield
    finally:
        services.get_node = get_node


def main() -> int:
    """Run a command on a cluster; return its exit status."""
    parser = argparse.ArgumentParser(prog="python -m kernel_gym.service.local_cluster", description=__doc__)
    parser.add_argument("--nodes", type=int, default=2, help="number of nodes (default 2)")
    parser.add_argument("--cores", type=int, default=1, help="cores that each node offers (default 1)")
    parser.add_argument("command", nargs=argparse.REMAINDER, help="command that uses the cluster `auto`")
    arguments = parser.parse_args()
    with local_cluster(arguments.nodes, arguments.cores) as cluster:
        environment = os.environ | {"RAY_ADDRESS": str(cluster.address)}
        return subprocess.run(arguments.command, env=environment, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
