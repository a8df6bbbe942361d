"""The schedule of a CUDA kernel: how it uses blocks, threads and shared memory.

A kernel records its schedule in a comment, so that a later attempt can refine it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, fields, replace

#: Floats of shared memory that a kernel plans with: what every GPU gives a block without asking.
SHARED_FLOATS = 48 * 1024 // 4
#: Blocks that keep a large GPU busy when every thread takes several elements.
BLOCKS = 2112


@dataclass(frozen=True)
class CudaSchedule:
    """One schedule.

    `block` is the number of threads of a block; `stride` gives every thread several elements by a grid-stride loop;
    `vector` = 4 moves float4; `shuffle` reduces within warps by shuffles instead of through shared memory; `resident`
    keeps a row in shared memory between its passes; `tile` is the side of the tiles in which matrices are multiplied
    (1: no tiles); `online` finds a softmax's maximum and sum in one pass; `fast` takes the approximate intrinsics.
    """

    block: int = 256
    stride: bool = True
    vector: int = 4
    shuffle: bool = True
    resident: bool = True
    tile: int = 64
    online: bool = False
    fast: bool = False

    def comment(self) -> str:
        """Return the line that records the schedule in a kernel."""
        parts = (f"{item.name}={int(getattr(self, item.name))}" for item in fields(self))
        return f"// schedule: {' '.join(parts)}"


#: What a careful beginner writes, and the best known.
NAIVE = CudaSchedule(block=64, stride=False, vector=1, shuffle=False, resident=False, tile=1)
BEST = CudaSchedule()


def recorded(source: str) -> CudaSchedule | None:
    """Return the schedule that a kernel's comment records; None if it has no such comment."""
    comment = re.search(r"^// schedule: (.*)$", source, re.MULTILINE)
    if not comment:
        return None
    stated = dict(re.findall(r"(\w+)=(\d+)", comment[1]))
    types = {item.name: type(getattr(BEST, item.name)) for item in fields(CudaSchedule)}
    return replace(BEST, **{name: types[name](int(text)) for name, text in stated.items() if name in types})


def recognised(source: str) -> CudaSchedule:
    """Return the schedule of a kernel by another author, as far as its text shows it."""
    block = re.search(r"(?i)(?:block\w*|threads\w*)\s*=\s*(\d+)", source)
    tile = re.search(r"(?i)\btile\w*\s*=\s*(\d+)|#define\s+\w*TILE\w*\s+(\d+)", source)
    return CudaSchedule(
        block=int(block[1]) if block else 256,
        stride=re.search(r"\+=\s*(?:gridDim\.x|blockDim\.x\s*\*\s*gridDim|stride|step)", source) is not None,
        vector=4 if "float4" in source else 1,
        shuffle="__shfl_" in source,
        resident=re.search(r"extern\s+__shared__", source) is not None,
        tile=int(tile[1] or tile[2]) if tile else 1,
        online=re.search(r"\*\s*_*expf\(\s*\w+\s*-\s*\w+\s*\)\s*\+\s*_*expf\(", source) is not None,
        fast=re.search(r"__expf|__fdividef", source) is not None,
    )
