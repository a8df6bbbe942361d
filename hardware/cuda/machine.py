"""The properties of this machine's GPU, and the files built once for it."""

from __future__ import annotations

import ctypes
from functools import cache
from pathlib import Path
from typing import Any

from kernel_gym.data_files import parse_yaml
from kernel_gym.errors import DeviceUnavailable
from kernel_gym.hardware.cuda.compiler import compile_trusted
from kernel_gym.hardware.cuda.runtime import runtime
from kernel_gym.hardware.cuda.toolkit import toolkit

_FAULTS = Path(__file__).with_name("faults.yaml")


@cache
def facts() -> dict[str, Any]:
    """Return name and figures of the GPU; raises DeviceUnavailable if there is none."""
    try:
        ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise DeviceUnavailable("no NVIDIA driver (libcuda.so.1 was not found): this needs an NVIDIA GPU") from None
    from kernel_gym.hardware.cuda.driver import GpuError, device_facts

    try:
        return device_facts()
    except GpuError as error:
        raise DeviceUnavailable(f"no usable NVIDIA GPU: the driver says {error.name}; see nvidia-smi") from None


def architecture() -> str:
    """Return the GPU's architecture, as compilers name it."""
    return f"sm_{facts()['major']}{facts()['minor']}"


@cache
def trusted_cubin() -> Path:
    """Return the trusted kernels for this GPU, compiled once."""
    folder = runtime().folder / architecture()
    return compile_trusted(runtime(), toolkit(), architecture(), folder)


@cache
def fault_table() -> dict[str, dict[str, str]]:
    """Return rule and message for each error of the driver."""
    table: dict[str, dict[str, str]] = parse_yaml(_FAULTS.read_text())
    return table
