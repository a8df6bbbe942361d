"""Writes a whole CUDA file: includes, device functions and the host function."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack, nullcontext
from dataclasses import dataclass, field, replace

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda import float4, rows
from kernel_gym.authors.apprentice.cuda.lookups import LookupWriter, ScatterWriter
from kernel_gym.authors.apprentice.cuda.nest import NestWriter
from kernel_gym.authors.apprentice.cuda.products import LARGE_TILE, ProductWriter, SizedTileWriter, TileWriter
from kernel_gym.authors.apprentice.cuda.scans import BlockScanWriter, ScanWriter
from kernel_gym.authors.apprentice.cuda.schedule import CudaSchedule
from kernel_gym.authors.apprentice.cuda.stage import StageWriter
from kernel_gym.authors.apprentice.cuda.steps import CTYPES, HALVES
from kernel_gym.authors.apprentice.frontend.plan import (
    Convolution,
    Either,
    Filters,
    GroupNorm,
    Interleave,
    Launch,
    Lookup,
    Nest,
    Pad,
    Pieces,
    Plan,
    Pooling,
    Product,
    Running,
    Scan,
    Scatter,
    Stage,
    Taps,
    Turned,
    Unsupported,
    work_condition,
)
from kernel_gym.authors.apprentice.frontend.workspace import touched

_HOST = """\
static long long AtMost(long long n, long long limit)
{
    return n < limit ? n : limit;
}
"""
_LARGER_HOST = """\
static long long AtLeast(long long n, long long limit)
{
    return n < limit ? limit : n;
}
"""

#: The reduced loops of a convolution along one direction: channels and places in the window.
LINE = 2
#: The most threads of a block if every result is a sum over a window.
FILTER_BLOCK = 128


@dataclass
class _Part:
    """Stages that are launched one after another, repeated for pieces of a batch if `pieces` is set."""

    stages: list[Launch]
    pieces: Pieces | None = None
    writers: list[StageWriter] = field(default_factory=list)


def write_kernel(plan: Plan, schedule: CudaSchedule, spelling: SpellingChoice) -> str:
    """Return the source of a kernel.

    Args:
        plan: What the kernel computes.
        schedule: How it uses the machine.
        spelling: The spellings of its idioms.

    Returns:
        The source text of the whole file.
    """
    parts = _used([part for stage in plan.stages for part in _parts(stage, schedule)], plan)
    alone = sum(len(part.stages) for part in parts) == 1
    number = 0
    for part in parts:
        for stage in part.stages:
            number += 1
            writer = _writer(plan, stage, schedule, spelling, _prefix(plan, None if alone else number))
            writer.advance = dict(part.pieces.advance) if part.pieces else {}
            part.writers.append(writer)
    writers = [writer for part in parts for writer in part.writers]
    kernels = [writer.write() for writer in writers]
    used = sorted({name for writer in writers for name in writer.helpers})
    helpers = [rows.helper(name, spelling, shuffle=schedule.shuffle) for name in used]
    code = CodeWriter()
    code.add(f"// {plan.title}", schedule.comment(), spelling.spell("include.header"), *_headers(plan, spelling))
    larger = [_LARGER_HOST] if any("AtLeast(" in buffer.elements for buffer in plan.buffers) else []
    for text in (*helpers, *kernels, _HOST, *larger):
        code.add("", *text.rstrip("\n").split("\n"))
    code.add("")
    _host(code, plan, parts, spelling)
    return code.text()


def _headers(plan: Plan, spelling: SpellingChoice) -> list[str]:
    functions = [step.function.removeprefix("as_") for stage in plan.stages for step in getattr(stage, "steps", ())]
    dtypes = dict.fromkeys(name for name in (*(buffer.dtype for buffer in plan.buffers), *functions) if name in HALVES)
    return [spelling.spell(HALVES[dtype][0]) for dtype in dtypes]


def _parts(stage: Stage, schedule: CudaSchedule) -> list[_Part]:
    match stage:
        case Either(cube=(Product() as product,)):
            # A matrix times a vector: nothing is used twice, so rows are summed as they are read.
            narrow = "1" in (product.m, product.n) and stage.vector.vector_reduced
            return [_Part([stage.vector if narrow else product])]
        case Either():
            # Gathering windows pays off if a window is a line; larger ones are read in place.
            if schedule.tile == 1 or len(stage.vector.reduced) > LINE:
                return [_Part([stage.vector])]
            return [part for each in stage.cube for part in _parts(each, schedule)]
        case Pieces():
            return [_Part(list(stage.stages), stage)]
    if isinstance(stage, Taps | Interleave | Filters | Turned | Pad | Convolution | Running | Pooling | GroupNorm):
        raise Unsupported("Unsupported: a stage of an Ascend C expert in CUDA")
    return [_Part([stage])]


def _used(parts: list[_Part], plan: Plan) -> list[_Part]:
    """Return the parts without stages whose results nobody reads, such as a copy for the other way of a product."""
    workspace = {buffer.name for buffer in plan.buffers if buffer.origin == "workspace"}
    touching = Counter(name for part in parts for stage in part.stages for name in touched(stage))

    def is_read(stage: Launch) -> bool:
        targets = {store.access.buffer for store in stage.stores} if isinstance(stage, Nest) else set()
        return not targets or any(name not in workspace or touching[name] > 1 for name in targets)

    kept = [replace(part, stages=[stage for stage in part.stages if is_read(stage)]) for part in parts]
    kept = [part for part in kept if part.stages]
    return kept if kept == parts else _used(kept, plan)


def _prefix(plan: Plan, number: int | None) -> str:
    return plan.name if number is None else f"{plan.name}{number}"


def _writer(plan: Plan, stage: Launch, schedule: CudaSchedule, spelling: SpellingChoice, prefix: str) -> StageWriter:
    if isinstance(stage, Scan):
        scans = BlockScanWriter if stage.last and schedule.shuffle else ScanWriter
        return scans(plan, schedule, spelling, prefix, scan=stage)
    if isinstance(stage, Lookup):
        return LookupWriter(plan, schedule, spelling, prefix, lookup=stage)
    if isinstance(stage, Scatter):
        return ScatterWriter(plan, schedule, spelling, prefix, scatter=stage)
    if isinstance(stage, Product):
        tiles = SizedTileWriter if schedule.tile >= LARGE_TILE else TileWriter
        return (ProductWriter if schedule.tile == 1 else tiles)(plan, schedule, spelling, prefix, product=stage)
    if stage.reductions and stage.vector_reduced:
        return rows.RowWriter(plan, schedule, spelling, prefix, nest=stage)
    if stage.reductions and len(stage.loads) > 1:
        # A convolution: each result is enough work for one thread, and large blocks would finish late.
        schedule = replace(schedule, stride=False, block=min(schedule.block, FILTER_BLOCK))
    kind = float4.Float4Writer if float4.suits(stage, schedule) else NestWriter
    return kind(plan, schedule, spelling, prefix, nest=stage)


def _host(code: CodeWriter, plan: Plan, parts: list[_Part], spelling: SpellingChoice) -> None:
    with code.function(spelling.spell("launch.entry")):
        writers = [writer for part in parts for writer in part.writers]
        used = {name for writer in writers for name in writer.buffers_used()}
        text = " ".join([value for writer in writers for _, value in writer.fields()] + [e for _, e in plan.derived])
        text += " ".join(b.elements for b in plan.buffers) + " ".join(str(part.pieces) for part in parts)
        for buffer in plan.buffers:
            if buffer.origin != "workspace" and (buffer.name in used or f"{buffer.name}.shape" in text):
                code.add(f"const KernelTensor &{buffer.name} = args->{buffer.origin}s[{buffer.index}];")
        for name, expression in plan.derived:
            code.add(f"const long long {name} = {expression};")
        _workspace(code, plan, used, spelling)
        for part in parts:
            _launch_part(code, part, alone=len(writers) == 1)
        code.add("return 0;")


def _launch_part(code: CodeWriter, part: _Part, *, alone: bool) -> None:
    with ExitStack() as loops:
        if part.pieces:
            for name, end, step in part.pieces.loops:
                loops.enter_context(code.block(f"for (long long {name} = 0; {name} < {end}; {name} += {step})"))
            code.add(*(f"const long long {name} = {text};" for name, text in part.pieces.inside))
        for stage, writer in zip(part.stages, part.writers, strict=True):
            condition = work_condition(stage)
            with nullcontext() if alone else code.block(condition and f"if ({condition})"):
                writer.launch(code)


def _workspace(code: CodeWriter, plan: Plan, used: set[str], spelling: SpellingChoice) -> None:
    """Write the addresses of the parts of the workspace, each aligned to 512 bytes."""
    previous = ""
    for buffer in plan.buffers:
        if buffer.origin == "workspace" and buffer.name in used:
            if not previous:
                code.add(spelling.spell("workspace.base"))
                previous = "workspace"
            code.add(f"char *{buffer.name} = {previous};")
            previous = f"{buffer.name} + ({buffer.elements}) * sizeof({CTYPES[buffer.dtype]}) / 512 * 512 + 512"
