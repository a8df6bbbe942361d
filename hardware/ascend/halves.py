"""Splits an Ascend C file into the half that runs in the sandbox and the half that goes to the NPU.

The host function runs confined and without data, and what it launches is written down, as on the other devices. The
NPU's half is the author's device code with our own functions behind it, which start the kernels again from the record:
of the author's text nothing runs on the host of the process that owns the NPU.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from kernel_gym.hardware.host.split import split

#: Parts of CANN's library that a host function may want: programs that the sandbox does not have, and a struct whose
#: layout is CANN's own, which a record made without its headers would get wrong.
_TILING = re.compile(r"\b(TCubeTiling|MatmulApiTiling|MultiCoreMatmulTiling|PlatformAscendC\w*)\b")
NO_TILING = (
    "this kernel takes CANN's own tiling structs or functions ({name}) to the host, which this device cannot do yet: "
    "pass plain numbers or a struct of your own"
)
# Both words have ten letters: every place in the text stays where it is.
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
    if found := _TILING.search(source):
        line = source.count("\n", 0, found.start()) + 1
        return Halves(problem=f"line {line}: {NO_TILING.format(name=found[0])}")
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
