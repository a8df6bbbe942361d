"""Splits an Ascend C file into the half that runs in the sandbox and the half that goes to the NPU.

The host function runs confined and without data, and its launches are recorded, as on the other devices. The NPU's half
is the author's device code followed by trusted functions that start the kernels from the record. None of the author's
host code runs in the process that owns the NPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_gym.hardware.host.split import split

#: Parts of CANN's library that a host function cannot use: libraries that the sandbox does not have, and a struct whose
#: layout is defined by CANN's headers, which the recording compilation does not include.
_TILING = re.compile(r"\b(TCubeTiling|MatmulApiTiling|MultiCoreMatmulTiling|PlatformAscendC\w*)\b")
NO_TILING = (
    "this kernel takes CANN's own tiling structs or functions ({name}) to the host, which this device cannot do yet: "
    "pass plain numbers or a struct of your own"
)
# Both words have ten letters, so every position in the text is kept.
_CORE, _DEVICE = "__aicore__", "__device__"


@dataclass(frozen=True)
class Halves:
    """Both texts, and the kernels in the order of their replay functions; `problem` if there are none."""

    host: str = ""
    device: str = ""
    kernels: tuple[str, ...] = ()
    problem: str = ""


def halves(source: str) -> Halves:
    """Split a file, line for line."""
    if match := _TILING.search(source):
        line = source.count("\n", 0, match.start()) + 1
        return Halves(problem=f"line {line}: {NO_TILING.format(name=match[0])}")
    parts = split(source.replace(_CORE, _DEVICE))
    if not parts.entry:
        return Halves(problem='no entry: define extern "C" int kernel_launch(const KernelArgs *args, void *stream)')
    if parts.templates:
        return Halves(problem=f"{parts.templates[0]} is a template: kernels are plain functions on this device")
    if not parts.kernels:
        return Halves(problem='no kernel: define an extern "C" __global__ __aicore__ void function and launch it')
    device = parts.device.replace(_DEVICE, _CORE)
    replays = [f"KERNEL_GYM_REPLAY({number}, {name})" for number, name in enumerate(parts.kernels)]
    text = "\n".join([device.rstrip("\n"), '#include "ascend_replay.h"', *replays, ""])
    return Halves(parts.host.replace(_DEVICE, _CORE), text, parts.kernels)
