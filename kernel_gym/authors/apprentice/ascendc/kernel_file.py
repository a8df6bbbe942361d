"""Writes a whole Ascend C file: the header, one class per stage and the host function."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace

from kernel_gym.authors.apprentice.ascendc.expert.columns import COLUMNS, ColumnTileWriter, suits_columns
from kernel_gym.authors.apprentice.ascendc.expert.convolution import LINES, ConvolutionWriter, FiltersWriter
from kernel_gym.authors.apprentice.ascendc.expert.depthwise import DepthwiseWriter
from kernel_gym.authors.apprentice.ascendc.expert.interleave import InterleaveWriter
from kernel_gym.authors.apprentice.ascendc.expert.joint import Joint, few_cores, written_by
from kernel_gym.authors.apprentice.ascendc.expert.norms import GroupNormWriter
from kernel_gym.authors.apprentice.ascendc.expert.padding import PadWriter
from kernel_gym.authors.apprentice.ascendc.expert.pooling import PoolingWriter
from kernel_gym.authors.apprentice.ascendc.expert.products import BLOCKS, EvenProductWriter, TapsWriter
from kernel_gym.authors.apprentice.ascendc.expert.rows import RowTileWriter, kinds_of
from kernel_gym.authors.apprentice.ascendc.expert.scans import RunningWriter
from kernel_gym.authors.apprentice.ascendc.expert.turned import TurnedWriter
from kernel_gym.authors.apprentice.ascendc.expert.windows import WindowWriter, suits_windows
from kernel_gym.authors.apprentice.ascendc.lookups import entry_writer
from kernel_gym.authors.apprentice.ascendc.maps import MapWriter
from kernel_gym.authors.apprentice.ascendc.nest import CTYPES
from kernel_gym.authors.apprentice.ascendc.passes import PassWriter
from kernel_gym.authors.apprentice.ascendc.products import ProductWriter
from kernel_gym.authors.apprentice.ascendc.rows import RowWriter, longest_row
from kernel_gym.authors.apprentice.ascendc.scans import ColumnScanWriter, RowScanWriter
from kernel_gym.authors.apprentice.ascendc.schedule import CORES, Schedule
from kernel_gym.authors.apprentice.ascendc.short_rows import ShortRowMapWriter, ShortRowPassWriter, suits
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import (
    Convolution,
    Either,
    ExpertLaunch,
    Filters,
    GroupNorm,
    Interleave,
    Launch,
    Lookup,
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
from kernel_gym.authors.apprentice.frontend.workspace import renamed, touched

_DEVICE_HELPERS = """\
// By arithmetic, without a branch.
__aicore__ inline uint32_t Min(uint32_t a, uint32_t b)
{
    return b + (a - b) * (a < b);
}

__aicore__ inline uint32_t Align(uint32_t n, uint32_t unit)
{
    return (n + unit - 1) / unit * unit;
}
"""
_FLOAT_HELPERS = """\
__aicore__ inline float Larger(float a, float b)
{
    return a > b ? a : b;
}

__aicore__ inline float Smaller(float a, float b)
{
    return a < b ? a : b;
}
"""
_ROLES = {
    "Windows": "Puts the windows of the convolution side by side, as columns for the product.",
    "Step": "Computes one step of a recurrence.",
    "Matmul": "Multiplies on the cube unit.",
    "Taps": "Multiplies on the cube unit, tap by tap of the window.",
    "Filters": "Arranges filters place by place of the window.",
    "Turned": "Arranges filters of a transposed convolution.",
    "Pad": "Pads images with zeros.",
    "Convolution": "Multiplies lines by filters on the cube cores.",
    "Interleave": "Puts the phases of the transposed convolution between each other.",
    "GroupNorm": "Normalises groups that stay on chip.",
    "Pooling": "Merges the elements of windows.",
    "Fill": "Fills a tensor, parts of which are then written.",
    "Lookup": "Copies from the places that the indices name.",
    "Scatter": "Copies to the places that the indices name.",
    "Scan": "Carries a running result along an axis.",
    "Running": "Carries running results along 16 rows at a time.",
}
_HOST_HELPERS = """\
static uint32_t AtMost(uint32_t n, uint32_t limit)
{
    return limit + (n - limit) * (n < limit);
}
"""
_LARGER_HELPER = """\
static uint32_t AtLeast(uint32_t n, uint32_t limit)
{
    return n < limit ? limit : n;
}
"""
#: In a plan of more launches than this, launches of the same code share one class and one host function.
MANY = 40


@dataclass
class _Part:
    """Stages that are launched one after another, repeated for pieces of a batch if `pieces` is set."""

    stages: list[Launch | ExpertLaunch]
    pieces: Pieces | None = None
    writers: list[StageWriter] = field(default_factory=list)
    roles: list[str] = field(default_factory=list)
    #: The launch that the part shares with its neighbours.
    joint: Joint | None = None
    #: The most vector cores that it uses.
    cores: int = CORES


def write_kernel(plan: Plan, schedule: Schedule, spelling: SpellingChoice, *, expert: bool = False) -> str:
    """Return the source of a kernel.

    Args:
        plan: What the kernel computes.
        schedule: How it uses the machine.
        spelling: The spellings of its idioms.
        expert: True to do in as few launches as possible what the apprentice launches stage by stage.

    Returns:
        The source text of the whole file.
    """
    plan = plan if schedule.fused or plan.unfused is None else plan.unfused
    parts = [part for stage in plan.stages for part in _parts(stage, schedule)]
    parts = _needed(parts, plan) if expert else parts
    total = sum(len(part.stages) for part in parts)
    if expert and total > MANY:
        raise Unsupported("Unsupported: a kernel of an expert with so many stages")
    cube = any(isinstance(stage, Product | Taps) for part in parts for stage in part.stages)
    lined = any(isinstance(stage, Convolution) for part in parts for stage in part.stages)
    pooled = any(isinstance(stage, Pooling) for part in parts for stage in part.stages)
    taken: dict[str, int] = {}
    for run in _runs(parts) if expert and total > 1 else []:
        few = few_cores([stage for part in run for stage in part.stages])
        for part in run:
            part.cores = few
    for part in parts:
        chosen = replace(schedule, cores=min(part.cores, schedule.cores))
        # Gathering the windows of a convolution row by row would exceed the limits of every device.
        chosen = replace(chosen, batch=0, bursts=True) if part.pieces else chosen
        for stage in part.stages:
            role = _role(stage, part)
            part.roles.append(role)
            taken[role] = taken.get(role, 0) + 1
            suffix = "" if total == 1 else role if taken[role] == 1 else f"{role}{taken[role]}"
            writer = _writer(plan, stage, chosen, spelling, f"{_prefix(plan)}{suffix}", expert)
            if total > MANY:
                # The same names in all launches, so that those of the same code have the same text.
                names = {f"operand{n}": name for n, (name, _) in enumerate(writer.buffers_used())}
                alike = renamed(stage, {name: operand for operand, name in names.items()})
                writer = _writer(plan, alike, chosen, spelling, writer.prefix, expert)
                writer.names = names
            writer.vector_only = (cube or lined) and not isinstance(stage, Product | Taps)
            writer.advance = dict(part.pieces.advance) if part.pieces else {}
            part.writers.append(writer)
    cube_only = False
    for writer in parts[0].writers if expert and total == 1 else []:
        if isinstance(writer, EvenProductWriter) and not writer.product.deep:
            writer.cube_only = cube_only = True
    joints = _join(parts, _prefix(plan), cube or lined) if expert and total > 1 else []
    classes = _classes(parts, total) + [joint.write() for joint in joints]
    code = CodeWriter()
    code.add(f"// {plan.title}", schedule.comment())
    code.add(*["#define ASCENDC_CUBE_ONLY"] * cube_only, '#include "kernel_operator.h"', '#include "kernel_gym.h"')
    if cube:
        code.add(spelling.spell("matmul.include"))
    floats = any("Larger(" in text or "Smaller(" in text for text in classes)
    sized = any("AtLeast(" in buffer.elements for buffer in plan.buffers)
    helpers = [_HOST_HELPERS, *([_LARGER_HELPER] if (expert and (lined or pooled or total > 1)) or sized else [])]
    helpers += [BLOCKS] if expert and cube else []
    helpers += [LINES] if lined else []
    helpers += [COLUMNS] if any(isinstance(w, ColumnTileWriter) for part in parts for w in part.writers) else []
    texts = [*helpers, *classes] if total > MANY else [*classes, *helpers]
    for text in (_DEVICE_HELPERS, *([_FLOAT_HELPERS] if floats else []), *texts):
        code.add("", *text.rstrip("\n").split("\n"))
    code.add("")
    _host(code, plan, parts, spelling)
    return code.text()


def _needed(parts: list[_Part], plan: Plan) -> list[_Part]:
    """Return the parts without those whose results nobody reads: what only another way to compute them needed."""
    wanted = {buffer.name for buffer in plan.buffers if buffer.origin == "output"}
    needed: list[_Part] = []
    for part in reversed(parts):
        if any(written_by(stage) & wanted for stage in part.stages):
            needed.insert(0, part)
            wanted |= {name for stage in part.stages for name in touched(stage)}
    return needed


def _runs(parts: list[_Part]) -> list[list[_Part]]:
    """Return neighbouring parts that can share a launch: the host does not repeat them."""
    runs: list[list[_Part]] = [[]]
    for part in parts:
        alone = any(isinstance(stage, Convolution) or work_condition(stage) for stage in part.stages)
        if part.pieces or alone:
            runs.append([])
        else:
            runs[-1].append(part)
    return [run for run in runs if run]


def _join(parts: list[_Part], prefix: str, cube: bool) -> list[Joint]:
    """Join neighbouring parts, and return their launches."""
    runs = [run for run in _runs(parts) if len(run) > 1]
    joints = []
    for number, run in enumerate(runs, 1):
        stages = [stage for part in run for stage in part.stages]
        writers = [writer for part in run for writer in part.writers]
        multiplies = any(isinstance(stage, Product | Taps) for stage in stages)
        name = f"{prefix}{number if len(runs) > 1 else ''}"
        joints.append(Joint(name, stages, writers, multiplies, vector_only=cube and not multiplies))
        for part in run:
            part.joint = joints[-1]
    return joints


def _classes(parts: list[_Part], total: int) -> list[str]:
    """Return the text of every class; launches that would have the same text use one class."""
    texts: dict[str, str] = {}
    prefixes: dict[str, str] = {}
    for part in parts:
        for role, writer in zip(part.roles, part.writers, strict=True):
            text = writer.write().rstrip("\n")
            if total > MANY:
                text += f"\n\n{writer.write_function()}".rstrip("\n")
            key = text.replace(writer.kernel, "").replace(writer.prefix, "") if total > MANY else writer.prefix
            writer.prefix = prefixes.setdefault(key, writer.prefix)
            texts.setdefault(writer.prefix, _headed(role, text) if total > 1 else text)
    return list(texts.values())


def _parts(stage: Stage, schedule: Schedule) -> list[_Part]:
    match stage:
        case Either():
            chosen = stage.cube if schedule.cube or stage.heavy else (replace(stage.vector, longest=stage.longest),)
            return [part for each in chosen for part in _parts(each, schedule)]
        case Pieces():
            return [_Part(list(stage.stages), stage)]
    return [_Part([stage])]


def _headed(role: str, text: str) -> str:
    return f"// {_ROLES[role]}\n{text}" if role in _ROLES else text


def _role(stage: Launch | ExpertLaunch, part: _Part) -> str:
    """Return what a stage does, as a part of its name."""
    match stage:
        case Product():
            return "Matmul"
        case Taps() | Interleave() | Filters() | Turned() | Pad() | Convolution() | Running() | Pooling() | GroupNorm():
            return type(stage).__name__
        case Scan():
            return "Scan"
        case Lookup() | Scatter():
            return type(stage).__name__
    if part.pieces:
        return part.pieces.role
    return "Reduce" if stage.reductions else "Map" if stage.loads else "Fill"


def _prefix(plan: Plan) -> str:
    return "".join(word[:1].upper() + word[1:] for word in plan.name.split("_"))


def _writer(
    plan: Plan, nest: Launch | ExpertLaunch, schedule: Schedule, spelling: SpellingChoice, prefix: str, expert: bool
) -> StageWriter:
    if isinstance(nest, Scan):
        return (RowScanWriter if nest.last else ColumnScanWriter)(plan, schedule, spelling, prefix, scan=nest)
    if isinstance(nest, Lookup | Scatter):
        return entry_writer(nest)(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Product):
        even = expert and not (nest.left.transposed and nest.right.transposed)
        return (EvenProductWriter if even else ProductWriter)(plan, schedule, spelling, prefix, product=nest)
    if isinstance(nest, Taps):
        return TapsWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Filters):
        return FiltersWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Convolution):
        return ConvolutionWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Turned):
        return TurnedWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Pad):
        return PadWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, GroupNorm):
        return GroupNormWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Pooling):
        return (DepthwiseWriter if nest.weights else PoolingWriter)(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Running):
        return RunningWriter(plan, schedule, spelling, prefix, stage=nest)
    if isinstance(nest, Interleave):
        return InterleaveWriter(plan, schedule, spelling, prefix, stage=nest)
    if expert and suits_columns(nest):
        return ColumnTileWriter(plan, schedule, spelling, prefix, nest=nest)
    if schedule.batch != 1 and schedule.bursts and suits(nest):
        if expert and suits_windows(nest):
            return WindowWriter(plan, schedule, spelling, prefix, nest=nest)
        writer = ShortRowPassWriter if nest.reductions else ShortRowMapWriter
        return writer(plan, schedule, spelling, prefix, nest=nest)
    if expert and not nest.reductions and {"shared", "row"} & {*(kinds_of(nest) or ())}:
        return RowTileWriter(plan, schedule, spelling, prefix, nest=nest)
    if not nest.reductions:
        return MapWriter(plan, schedule, spelling, prefix, nest=nest)
    resident = nest.vector_reduced and not nest.reduced and schedule.resident
    contiguous = all(step.access.step in "01" for step in nest.loads if step.access)
    if resident and contiguous and nest.rows_join and nest.longest_anywhere <= longest_row(nest, schedule):
        together = expert and kinds_of(nest) is not None
        return (RowTileWriter if together else RowWriter)(plan, schedule, spelling, prefix, nest=nest)
    return PassWriter(plan, schedule, spelling, prefix, nest=nest)


def _host(code: CodeWriter, plan: Plan, parts: list[_Part], spelling: SpellingChoice) -> None:
    with code.function(spelling.spell("launch.entry")):
        with _rounds(code, plan) if plan.rounds > 1 else nullcontext():
            _launches(code, plan, parts)
        code.add("return 0;")


@contextmanager
def _rounds(code: CodeWriter, plan: Plan) -> Iterator[None]:
    """Write the loop over parts of the samples, for which tensors have a part of their elements."""
    first = plan.buffer(plan.batched[0])
    whole = f"args->{first.origin}s[{first.index}].shape[0]"
    code.add(f"// The workspace holds the results of 1 / {plan.rounds} of the samples.")
    code.add(f"const int64_t together = ({whole} + {plan.rounds - 1}) / {plan.rounds};")
    with code.block(f"for (int64_t done = 0; done < {whole}; done += together)"):
        for name in plan.batched:
            buffer = plan.buffer(name)
            elements = " * ".join(["done", *(f"{name}.shape[{axis}]" for axis in range(1, buffer.rank))])
            code.add(f"KernelTensor {name} = args->{buffer.origin}s[{buffer.index}];")
            code.add(f"{name}.ptr = ({CTYPES[buffer.dtype]} *){name}.ptr + {elements};")
            code.add(f"{name}.shape[0] = AtMost(together, {name}.shape[0] - done);")
        yield


def _launches(code: CodeWriter, plan: Plan, parts: list[_Part]) -> None:
    writers = [writer for part in parts for writer in part.writers]
    used = {writer.names.get(name, name) for writer in writers for name, _ in writer.buffers_used()}
    text = " ".join([value for writer in writers for _, value in writer.fields()] + [e for _, e in plan.derived])
    text += " ".join(b.elements for b in plan.buffers) + " ".join(str(part.pieces) for part in parts)
    text += " ".join(str(stage) for part in parts for stage in part.stages if isinstance(stage, Taps))
    for buffer in sorted(plan.buffers, key=lambda item: (item.origin, item.index)):
        given = buffer.origin != "workspace" and buffer.name not in plan.batched
        if given and (buffer.name in used or f"{buffer.name}.shape" in text):
            code.add(f"const KernelTensor &{buffer.name} = args->{buffer.origin}s[{buffer.index}];")
    for name, expression in plan.derived:
        code.add(f"const int64_t {name} = {expression};")
    _workspace(code, plan, used)
    joints: list[Joint] = []
    for part in parts:
        if part.joint is None:
            _launch_part(code, part, len(writers))
        elif part.joint not in joints:
            joints.append(part.joint)
            part.joint.launch(code)


def _launch_part(code: CodeWriter, part: _Part, total: int) -> None:
    with ExitStack() as loops:
        if part.pieces:
            for name, end, step in part.pieces.loops:
                loops.enter_context(code.block(f"for (int64_t {name} = 0; {name} < {end}; {name} += {step})"))
            code.add(*(f"const int64_t {name} = {text};" for name, text in part.pieces.inside))
        for stage, writer in zip(part.stages, part.writers, strict=True):
            condition = work_condition(stage)
            with nullcontext() if total == 1 else code.block(condition and f"if ({condition})"):
                code.add(f"{writer.tiling} t;")
                if total > MANY:
                    writer.call_function(code)
                else:
                    writer.launch(code)


def _workspace(code: CodeWriter, plan: Plan, used: set[str]) -> None:
    """Write the addresses of the parts of the workspace, each aligned to 512 bytes."""
    previous = "static_cast<uint8_t *>(args->workspace)"
    for buffer in plan.buffers:
        if buffer.origin == "workspace" and buffer.name in used:
            code.add(f"uint8_t *{buffer.name} = {previous};")
            previous = f"{buffer.name} + ({buffer.elements}) * sizeof({CTYPES[buffer.dtype]}) / 512 * 512 + 512"
