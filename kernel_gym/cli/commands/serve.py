"""Serve verdicts over HTTP: other machines send kernels, this one judges them on its device."""

from __future__ import annotations

import argparse
import os
from ipaddress import ip_address
from pathlib import Path

from kernel_gym import plugins
from kernel_gym.cli import command_line
from kernel_gym.cli.run_options import add_policy_argument
from kernel_gym.errors import ConfigError, DeviceUnavailable
from kernel_gym.suites.problem_files import TRUST

EXAMPLES = """
kernel-gym serve
kernel-gym serve --host 0.0.0.0 --port 8100 --tokens tokens.txt
kernel-gym serve --device cuda --policy reference --queue 200
kernel-gym train --agent value --suite level1 --verifier http://localhost:8100 --out runs/remote
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--host", default="127.0.0.1", help="address to listen at (default: %(default)s)")
    parser.add_argument("--port", type=int, default=8100, help="port to listen at (default: %(default)s)")
    parser.add_argument("--device", default="ascend-sim", help="device that kernels run on (default: %(default)s)")
    add_policy_argument(parser, default="strict")
    parser.add_argument("--workers", type=command_line.count, help="kernels judged at once (default: one a core)")
    parser.add_argument(
        "--queue", type=command_line.count, default=1000, help="kernels that may wait (default: %(default)s)"
    )
    parser.add_argument("--share", type=command_line.count, help="those of one client (default: --queue)")
    parser.add_argument(
        "--tokens", type=Path, metavar="FILE", help="file of tokens, one a line: clients must send one of them"
    )
    parser.add_argument(
        "--trust-clients",
        action="store_true",
        help="believe clients that a kernel is kernel_gym's own, which draws its values from the published secret, so "
        "that runs repeat: for private networks",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    try:
        import uvicorn

        from kernel_gym.service.app import make_app
    except ImportError as error:
        raise ConfigError(f"{error.name} is not installed: pip install 'kernel-gym[serve]'") from error
    tokens = _tokens(arguments)
    _check_trust()
    workers = arguments.workers or len(os.sched_getaffinity(0))
    with _verifier(arguments, workers) as verifier:
        app = make_app(
            verifier, workers, arguments.queue, arguments.share or arguments.queue, tokens, arguments.trust_clients
        )
        where = f"http://{arguments.host}:{arguments.port}"
        print(f"{verifier.device.name}, {workers} at once: {where} (its API: {where}/docs); Ctrl-C ends it", flush=True)
        server = uvicorn.Server(
            uvicorn.Config(
                app, arguments.host, arguments.port, log_level="warning", timeout_graceful_shutdown=5, access_log=False
            )
        )
        server.run()
    if not server.started:
        raise command_line.Failed(f"cannot listen at {where}")
    return 0


def _verifier(arguments: argparse.Namespace, workers: int):  # type: ignore[no-untyped-def]
    from kernel_gym.verifier import Verifier  # takes seconds: bad input is reported without it

    device = plugins.make("kernel_gym.devices", arguments.device, {})
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"{arguments.device} cannot be used here: {reason}")
    return Verifier(device, workers=workers, policy=arguments.policy)


def _tokens(arguments: argparse.Namespace) -> list[str]:
    """Return the tokens of the file; an address that other machines reach needs some."""
    if arguments.tokens is not None:
        lines = (line.strip() for line in arguments.tokens.read_text().splitlines())
        if tokens := [line for line in lines if line and not line.startswith("#")]:
            return tokens
        raise ConfigError(f"{arguments.tokens}: no token in it; write one a line")
    if not _local(arguments.host):
        raise ConfigError(f"other machines reach {arguments.host}: name the clients' tokens with --tokens FILE")
    return []


def _local(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _check_trust() -> None:
    if os.environ.get(TRUST) == "1":
        raise ConfigError(f"clients send problem files, which run confined: unset {TRUST}")
