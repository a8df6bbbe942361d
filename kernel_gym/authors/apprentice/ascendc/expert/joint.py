"""Several stages in one launch: the cores wait for each other only where one stage reads what another wrote."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import isqrt

from kernel_gym.authors.apprentice.ascendc.expert.products import EvenProductWriter
from kernel_gym.authors.apprentice.ascendc.maps import MapWriter
from kernel_gym.authors.apprentice.ascendc.rows import RowWriter
from kernel_gym.authors.apprentice.ascendc.schedule import CORES
from kernel_gym.authors.apprentice.ascendc.short_rows import ShortRowWriter
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter, snake
from kernel_gym.authors.apprentice.code_writer import CodeWriter, wrapped
from kernel_gym.authors.apprentice.frontend.plan import (
    ExpertLaunch,
    Filters,
    Launch,
    Nest,
    Pad,
    Product,
    Taps,
    Turned,
)
from kernel_gym.authors.apprentice.frontend.workspace import touched

#: How many steps on one element take a core as long as starting a core takes, and how much longer than an addition
#: some functions take.
_STEPS = 13_800
#: A stage on fewer elements is shorter than the time that starting the product twice takes.
HALVED = 500_000
#: The second half of the rows is multiplied while the stage works on the first one.
_HALVES = (
    "op0.Process(0);",
    "op0.Wait();",
    "AscendC::SyncAll();",
    "op0.Process(1);",
    "op1.Process(0);",
    "op0.Wait();",
    "AscendC::SyncAll();",
    "op1.Process(1);",
)
_WEIGHTS = {"erf": 25, "tanh": 9, "sigmoid": 6, "div": 4, "exp": 2, "log": 2}


def few_cores(stages: Sequence[Launch | ExpertLaunch]) -> int:
    """Return how many vector cores to start for the stages of a launch: each takes time to start.

    Stages that wait for each other get all cores.
    """
    steps = 0
    for stage in stages:
        match stage:
            case Nest() if len(stages) == 1:
                counted = [step for step in stage.steps if step.vector and (step.inside or not stage.reductions)]
                weights = [_WEIGHTS.get(step.function, 1) for step in counted]
                steps += stage.elements * (sum(weights) + (0 if stage.reductions else 2))
            case Pad():
                steps += 3 * stage.elements
            case Filters() | Turned():
                pass  # few elements
            case _:
                return CORES
    return max(8, min(CORES, isqrt(steps // _STEPS) // 4 * 4 + 4))


@dataclass(eq=False)
class Joint:
    """The launch of several stages, each a class of its own.

    `multiplies` says that a stage uses the cube unit: then a block has two vector cores. `vector_only` says that the
    file has another launch that does.
    """

    prefix: str
    stages: Sequence[Launch | ExpertLaunch]
    writers: Sequence[StageWriter]
    multiplies: bool
    vector_only: bool

    def __post_init__(self) -> None:
        for writer in self.writers:
            writer.joined = True
        for writer in self.writers[:2] if self._overlaps() else []:
            writer.halves = True

    @property
    def tiling(self) -> str:
        """The name of the tiling struct."""
        return f"{self.prefix}AllTiling"

    @cached_property
    def buffers(self) -> dict[str, str]:
        """The host's address of every tensor that a stage uses."""
        return {name: writer.pointer(name) for writer in self.writers for name, _ in writer.buffers_used()}

    @property
    def kernel(self) -> str:
        """The name of the device function."""
        return f"{snake(self.prefix)}_kernel"

    def write(self) -> str:
        """Return the tiling struct and the device function."""
        code = CodeWriter()
        members = [f"    {writer.tiling} stage{number};" for number, writer in enumerate(self.writers)]
        code.add(f"struct {self.tiling} {{", *members, "};", "")
        parameters = ", ".join([*(f"GM_ADDR {name}" for name in self.buffers), f"{self.tiling} tiling"])
        with code.function(wrapped(f'extern "C" __global__ __aicore__ void {self.kernel}(', parameters, ")")):
            if self.vector_only:
                code.add("KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);")
            waits = [
                "AscendC::SyncAll();" if needed else "AscendC::PipeBarrier<PIPE_ALL>();" for needed in self._waits()
            ]
            for numbers in self._sharing():
                code.add(*waits[numbers[0] : numbers[0] + (numbers[0] > 0)])
                with code.block(""):
                    code.add(*["AscendC::TPipe pipe;"] * any(self.writers[number].piped for number in numbers))
                    for number in numbers:
                        pipe = "(pipe)" if self.writers[number].piped else ""
                        names = ", ".join(name for name, _ in self.writers[number].buffers_used())
                        code.add(f"Kernel{self.writers[number].prefix} op{number}{pipe};")
                        code.add(f"op{number}.Init({names}, tiling.stage{number});")
                    if self.writers[numbers[0]].halves:
                        code.add(*_HALVES)
                        continue
                    for number in numbers:
                        code.add(*waits[number : number + (number > numbers[0])], f"op{number}.Process();")
        return code.text().rstrip("\n")

    def _overlaps(self) -> bool:
        """Return whether the stage after a product can begin with a half of its rows."""
        product, nest, *_ = self.stages
        if not isinstance(product, Product) or not isinstance(nest, Nest) or nest.elements < HALVED:
            return False
        plain = product.batch == "1" and not product.pitch and not product.split
        read = [step.access for step in nest.loads if step.access and step.access.buffer == product.target]
        extent = dict(nest.fields)[nest.kept[0] if nest.kept else nest.vector]
        whole = f"{product.m} * {product.n}", f"{product.n} * {product.m}"
        by_rows = extent == product.m if nest.kept else extent in whole
        kinds = isinstance(self.writers[0], EvenProductWriter) and isinstance(
            self.writers[1], RowWriter | MapWriter | ShortRowWriter
        )
        return plain and by_rows and kinds and all(access.flat and access.offset == "0" for access in read)

    def _sharing(self) -> list[list[int]]:
        """Return the stages that share a pipe: those on the cube unit need no memory on chip, but the next one does."""
        groups: list[list[int]] = [[]]
        for number, stage in enumerate(self.stages):
            groups[-1].append(number)
            if not isinstance(stage, Product | Taps):
                groups.append([])
        return [numbers for numbers in groups if numbers]

    def _waits(self) -> list[bool]:
        """Return for each stage whether it needs what others have written or read since the cores last met."""
        waits, read, written = list[bool](), set[str](), set[str]()
        for stage in self.stages:
            uses, own = touched(stage), written_by(stage)
            apart = own if isinstance(stage, Nest) and stage.apart else set[str]()
            waits.append(bool((uses - apart) & written or own & read))
            if waits[-1]:
                read, written = set(), set()
            read, written = read | (uses - own), written | own
        return waits

    def launch(self, code: CodeWriter) -> None:
        """Write the host statements that compute all tilings and start the kernel."""
        with code.block(""):
            code.add(f"{self.tiling} tiling;", "uint32_t lanes = 1;")
            for number, writer in enumerate(self.writers):
                with code.block(""):
                    code.add(f"{writer.tiling} &t = tiling.stage{number};")
                    writer.launch(code)
            blocks = "(lanes + 1) / 2" if self.multiplies else "lanes"
            arguments = ", ".join([*(f"(GM_ADDR)({address})" for address in self.buffers.values()), "tiling"])
            code.add(wrapped(f"{self.kernel}<<<{blocks}, nullptr, stream>>>(", arguments, ");"))


def written_by(stage: Launch | ExpertLaunch) -> set[str]:
    """Return the buffers that a stage writes."""
    return {store.access.buffer for store in stage.stores} if isinstance(stage, Nest) else {stage.target}
