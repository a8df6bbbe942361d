"""Write a kernel in one file as a bundle, which the vendor's toolchain and MultiKernelBench's harness take."""

from __future__ import annotations

import argparse
from pathlib import Path

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.errors import KernelGymError
from kernel_gym.kernel import Kernel

EXAMPLES = """
kernel-gym export --task level1/softmax --kernel softmax.asc > softmax.py
kernel-gym export --task level1/softmax --kernel softmax.asc --form bundle --out softmax.py
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--task", required=True, help="suite/name, suite/number, or a .py file in KernelBench's format")
    command_line.add_trust_argument(parser)
    parser.add_argument("--kernel", required=True, type=Path, help="an Ascend C kernel in one file")
    parser.add_argument("--form", choices=("bundle",), default="bundle", help="what to write (default: %(default)s)")
    parser.add_argument("--out", type=Path, metavar="FILE", help="the file to write; standard output if left out")


def run(arguments: argparse.Namespace) -> int:
    """Write the bundle."""
    from kernel_gym.hardware.bundles.export import export

    try:
        source = arguments.kernel.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise KernelGymError(f"cannot read {str(arguments.kernel)!r}: {error}") from None
    text = export(Kernel(source, form="file"), suites.find_task(arguments.task))
    if arguments.out is None:
        print(text, end="")
    else:
        arguments.out.write_text(text, encoding="utf-8")
    return 0
