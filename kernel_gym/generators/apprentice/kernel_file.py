"""A whole submission: the head, one class per stage, the host function."""

from __future__ import annotations

from kernel_gym.generators.apprentice.maps import MapWriter
from kernel_gym.generators.apprentice.nest import CTYPES, NestWriter
from kernel_gym.generators.apprentice.passes import PassWriter
from kernel_gym.generators.apprentice.plan import Nest, Plan
from kernel_gym.generators.apprentice.rows import RowWriter, longest_row
from kernel_gym.generators.apprentice.schedule import Schedule
from kernel_gym.generators.apprentice.script import Script
from kernel_gym.generators.apprentice.voice import Voice

_DEVICE_HELPERS = """\
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
_HOST_HELPERS = """\
static uint32_t AtMost(uint32_t n, uint32_t limit)
{
    return limit + (n - limit) * (n < limit);
}
"""


def write_kernel(plan: Plan, schedule: Schedule, voice: Voice) -> str:
    """The source of a kernel for a plan, scheduled and spelled."""
    writers = [_writer(plan, nest, schedule, voice, _prefix(plan, index)) for index, nest in enumerate(plan.stages)]
    classes = [writer.write() for writer in writers]
    script = Script()
    script.add(f"// {plan.title}", schedule.comment(), '#include "kernel_operator.h"', '#include "kernel_gym.h"', "")
    helpers = (
        [_DEVICE_HELPERS, _FLOAT_HELPERS]
        if any("Larger(" in c or "Smaller(" in c for c in classes)
        else [_DEVICE_HELPERS]
    )
    script.add(*(text.rstrip("\n") + "\n" for text in helpers))
    script.lines += "\n".join(text.rstrip("\n") + "\n" for text in classes).split("\n")
    script.add(_HOST_HELPERS)
    _host(script, plan, writers, voice)
    return script.text()


def _prefix(plan: Plan, index: int) -> str:
    base = "".join(word[:1].upper() + word[1:] for word in plan.name.split("_") if word)
    base = base if base[:1].isalpha() else f"Op{base}"
    return base if len(plan.stages) == 1 else f"{base}{index + 1}"


def _writer(plan: Plan, nest: Nest, schedule: Schedule, voice: Voice, prefix: str) -> NestWriter:
    if not nest.reductions:
        return MapWriter(plan, nest, schedule, voice, prefix)
    resident = nest.vector_reduced and not nest.reduced and schedule.resident
    contiguous = all(step.access.step in "01" for step in nest.loads if step.access)
    if resident and contiguous and nest.longest <= longest_row(nest, schedule):
        return RowWriter(plan, nest, schedule, voice, prefix)
    return PassWriter(plan, nest, schedule, voice, prefix)


def _host(script: Script, plan: Plan, writers: list[NestWriter], voice: Voice) -> None:
    with script.function(voice.say("launch.entry")):
        used = {access.buffer for writer in writers for access in writer.accesses()}
        text = " ".join(value for writer in writers for _, value in writer.fields())
        for buffer in plan.buffers:
            if buffer.origin != "workspace" and (buffer.name in used or f"{buffer.name}.shape" in text):
                script.add(f"const KernelTensor &{buffer.name} = args->{buffer.origin}s[{buffer.index}];")
        for name, expression in plan.derived:
            script.add(f"const int64_t {name} = {expression};")
        _workspace(script, plan)
        for writer in writers:
            if len(writers) == 1:
                script.add(f"{writer.tiling} t;")
                writer.launch(script)
            else:
                with script.block(""):
                    script.add(f"{writer.tiling} t;")
                    writer.launch(script)
        script.add("return 0;")


def _workspace(script: Script, plan: Plan) -> None:
    """Parts of the workspace, each on a boundary of 512 bytes."""
    previous = "static_cast<uint8_t *>(args->workspace)"
    for buffer in plan.buffers:
        if buffer.origin == "workspace":
            script.add(f"uint8_t *{buffer.name} = {previous};")
            previous = f"{buffer.name} + ({buffer.elements}) * sizeof({CTYPES[buffer.dtype]}) / 512 * 512 + 512"
