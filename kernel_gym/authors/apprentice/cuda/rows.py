"""Writes nests that reduce along rows, with one block of threads per row."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.behaviour.spelling_choice import SpellingChoice
from kernel_gym.authors.apprentice.code_writer import CodeWriter, product_text
from kernel_gym.authors.apprentice.cuda.nest import MERGES, STARTS, NestWriter
from kernel_gym.authors.apprentice.cuda.schedule import SHARED_FLOATS
from kernel_gym.authors.apprentice.cuda.steps import needed, number
from kernel_gym.authors.apprentice.frontend.plan import Access, Ref, Store

#: Rows from this length on get as many threads as a block can have.
LONG = 8192
#: Floats of shared memory that reductions take for their parts: with shuffles, and without.
SHUFFLED_PARTS, TREE_PARTS = 128, 4096


@dataclass
class RowWriter(NestWriter):
    """Writes a row reduction: each thread of a block takes every n-th element, and the block combines the parts."""

    #: The loads that are kept in shared memory: by step, the offset of the row there.
    kept: dict[int, str] = field(default_factory=dict)
    #: The longest row of which these loads fit there; 0 if all rows fit.
    longest_kept: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        longest = self.nest.longest or 1024
        threads = 1024 if longest >= LONG and self.schedule.block >= 256 else self.schedule.block
        self.threads = min(threads, max(32, -(-longest // 32) * 32))
        first = self._first_pass()
        whole = [
            index
            for index, step in enumerate(self.nest.steps)
            if step.access and step.access.step != "0" and step.access.dtype == "float32" and index in first
        ]
        passes = 1 + max(step.level for step in self.nest.reductions)
        again = passes > 2 or any(self.walks(store) for store in self.nest.stores)
        most = (SHARED_FLOATS - (SHUFFLED_PARTS if self.schedule.shuffle else TREE_PARTS)) // max(1, len(whole))
        room = 0 < self.nest.longest <= most
        if self.schedule.resident and again and room and not self.nest.reduced and self.nest.vector_reduced:
            length = self.named(self.nest.vector)
            self.kept = {index: f"{n} * {length} + " if n else "" for n, index in enumerate(whole)}
            self.longest_kept = 0 if self._never_longer(most) else most

    def _never_longer(self, most: int) -> bool:
        """Return whether rows have at most so many elements at all sizes.

        A dimension is not much longer than at the cases of the task, but a product of several may be.
        """
        dimension = re.fullmatch(r"\d+|\w+\.shape\[\d+\]", dict(self.nest.fields)[self.nest.vector])
        return dimension is not None and 2 * self.nest.longest_anywhere <= most

    def body(self) -> None:
        """Write the computation of one row."""
        if self.kept:
            self.code.add("extern __shared__ float row[];")
        self.code.add(f"const {self.index} i = blockIdx.x;")
        self.take_apart("i", self.kept_loops())
        self.passes()

    def passes(self) -> None:
        """Write the passes as for any nest; the two reductions of a softmax may share one pass."""
        pair = self._online() if self.schedule.online else None
        if pair is None:
            super().passes()
            return
        self.prepare(0)
        self._online_pass(*pair)
        self.prepare(max(step.level for step in self.nest.reductions))
        for store in self.nest.stores:
            self.store(store)

    def _online(self) -> tuple[int, int] | None:
        """Return the maximum of a row and the sum of exp(value - maximum), if there are no other reductions."""
        steps = self.nest.steps
        reductions = [index for index, step in enumerate(steps) if step.reduction]
        if [steps[index].function for index in reductions] != ["max", "sum"]:
            return None
        highest, total = reductions
        power = steps[self.source(total)]
        inner = power.arguments[0] if power.function == "exp" else None
        shifted = steps[inner.step] if isinstance(inner, Ref) else None
        difference = (Ref(self.source(highest)), Ref(highest))
        right = self.spelling.right("numeric.max-subtraction")
        return (
            (highest, total)
            if right and shifted and (shifted.function, shifted.arguments) == ("sub", difference)
            else None
        )

    def _online_pass(self, highest: int, total: int) -> None:
        """Write one pass for both: the sum so far is rescaled at each larger value."""
        most, sum_ = self.result_name(highest), self.result_name(total)
        self.open(highest)
        self.open(total)
        names = dict(self.steps.names)
        with self.reduced_loop(0):
            for index in needed(self.nest, [self.source(highest)], names):
                self.write_inside(index, 0)
            value = self.steps.names[self.source(highest)]
            # Minus infinity adds nothing, and minus infinity minus itself is not a number.
            with self.code.block(f"if ({value} != {number(float('-inf'))})"):
                self.code.add(f"const float larger = fmaxf({most}, {value});")
                self.code.add(f"{sum_} = {sum_} * expf({most} - larger) + expf({value} - larger);", f"{most} = larger;")
        self.steps.forget(names)
        self.helpers |= {"max", "sum"}
        self.code.add(f"const float overall = block_max({most});")
        self.code.add(f"{sum_} = block_sum({most} == overall ? {sum_} : {sum_} * expf({most} - overall));")
        self.code.add(f"{most} = overall;")
        self.steps.names |= {highest: most, total: sum_}

    @property
    def several_loops(self) -> bool:
        """False: the threads of a block share one reduced loop."""
        return False

    @contextmanager
    def reduced_loop(self, level: int) -> Iterator[None]:
        """Write the loop over a thread's share of the row."""
        names = [*self.nest.reduced, self.nest.vector]
        inner = "column" if len(names) == 1 else "r"
        count = self.sizes(tuple(names))
        with self.code.block(f"for ({self.index} {inner} = threadIdx.x; {inner} < {count}; {inner} += blockDim.x)"):
            if inner == "r":
                loops = [(f"k{n}", self.named(name)) for n, name in enumerate(self.nest.reduced)]
                self.take_apart("r", [*loops, ("column", self.named(self.nest.vector))])
            yield

    def write_inside(self, index: int, level: int) -> None:
        """Write a step; loads come from shared memory once they are there."""
        start = self.kept.get(index)
        if start is None:
            self.steps.write(index)
            return
        element, fits = f"row[{start}column]", f"{self.named(self.nest.vector)} <= {self.longest_kept}"
        if level == 0:
            self.steps.held.pop(index, None)
            self.steps.write(index)
            with self.code.block(f"if ({fits})") if self.longest_kept else nullcontext():
                self.code.add(f"{element} = {self.steps.names[index]};")
            return
        access = self.nest.steps[index].access
        if self.longest_kept and access:
            element = f"{fits} ? {element} : {self.buffer(access.buffer)}[{self.address(access)}]"
        self.steps.held[index] = element
        self.steps.write(index)

    def _first_pass(self) -> set[int]:
        """Return the loads that the first pass reads and leaves in shared memory."""
        first = [i for i, step in enumerate(self.nest.steps) if step.reduction and step.level == 1]
        return set(needed(self.nest, first))

    def position(self) -> str:
        """Return the position of an element in the row."""
        return "r" if self.nest.reduced else "column"

    def close(self, index: int) -> None:
        """Write the combination of the threads' parts; every thread then has the result."""
        step, name = self.nest.steps[index], self.result_name(index)
        if step.function.startswith("arg"):
            self.helpers.add(step.function)
            self.code.add(f"{name} = block_{step.function}({name}Value, {name});")
        else:
            self.helpers.add(step.function)
            self.code.add(f"{name} = block_{step.function}({name});")
        super().close(index)

    def store_once(self, store: Store) -> None:
        """Write the store of a row's single number by one thread."""
        with self.code.block("if (threadIdx.x == 0)"):
            super().store_once(store)

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a block for each row."""
        self.set_fields(code)
        shared, length = "0", self.named(self.nest.vector)
        if self.longest_kept:
            length = f"({length} <= {self.longest_kept} ? {length} : 0)"
        if self.kept:
            shared = self.spelling.spell("shared.size", n=product_text([str(len(self.kept)), length]))
        self.call(code, self.results, self.spelling.spell("launch.threads", block=self.threads), shared)

    def address(self, access: Access) -> str:
        """Return the index of an element, always with the right strides."""
        return self._written(access)


def helper(function: str, spelling: SpellingChoice, *, shuffle: bool) -> str:
    """Return the device function by which a block combines the parts of its threads."""
    if function.startswith("arg"):
        return _arg_helper(function, spelling)
    return _shuffled(function, spelling) if shuffle else _tree(function, spelling)


def _start(function: str, spelling: SpellingChoice) -> str:
    if function in STARTS:
        return STARTS[function]
    return spelling.spell("reduce.lowest") if function == "max" else "__int_as_float(0x7f800000)"


def _shuffled(function: str, spelling: SpellingChoice) -> str:
    code, merge = CodeWriter(), MERGES[function]
    shuffled = spelling.spell("shuffle.mask", value="value", offset="offset")
    head = spelling.spell("device.function", type="float", name=f"block_{function}")
    with code.function(f"{head}(float value)"):
        code.add(spelling.spell("shared.declare", type="float", name="partial", size=32))
        code.add("const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;")
        with code.block("for (int offset = 16; offset > 0; offset /= 2)"):
            code.add(f"value = {merge.format('value', shuffled)};")
        # Threads may still be reading for the previous call.
        code.add(spelling.spell("sync.block"))
        with code.block("if (lane == 0)"):
            code.add("partial[warp] = value;")
        code.add(spelling.spell("sync.block"))
        code.add(f"value = lane < blockDim.x / 32 ? partial[lane] : {_start(function, spelling)};")
        with code.block("for (int offset = 16; offset > 0; offset /= 2)"):
            code.add(f"value = {merge.format('value', shuffled)};")
        code.add("return __shfl_sync(0xffffffffu, value, 0);")
    return code.text()


def _tree(function: str, spelling: SpellingChoice) -> str:
    code, merge = CodeWriter(), MERGES[function]
    head = spelling.spell("device.function", type="float", name=f"block_{function}")
    with code.function(f"{head}(float value)"):
        code.add(spelling.spell("shared.declare", type="float", name="parts", size=1024))
        code.add(spelling.spell("sync.block"), "parts[threadIdx.x] = value;", spelling.spell("sync.block"))
        with code.block("for (int half = 512; half > 0; half /= 2)"):
            with code.block("if (threadIdx.x < half && threadIdx.x + half < blockDim.x)"):
                merged = merge.format("parts[threadIdx.x]", "parts[threadIdx.x + half]")
                code.add(f"parts[threadIdx.x] = {merged};")
            code.add(spelling.spell("sync.block"))
        code.add("return parts[0];")
    return code.text()


def _arg_helper(function: str, spelling: SpellingChoice) -> str:
    code, sign = CodeWriter(), ">" if function == "argmax" else "<"
    head = spelling.spell("device.function", type="int", name=f"block_{function}")
    with code.function(f"{head}(float value, int place)"):
        code.add(spelling.spell("shared.declare", type="float", name="values", size=1024))
        code.add(spelling.spell("shared.declare", type="int", name="places", size=1024))
        code.add(spelling.spell("sync.block"), "values[threadIdx.x] = value;", "places[threadIdx.x] = place;")
        code.add(spelling.spell("sync.block"))
        with code.block("for (int half = 512; half > 0; half /= 2)"):
            with code.block("if (threadIdx.x < half && threadIdx.x + half < blockDim.x)"):
                code.add("const int other = threadIdx.x + half;")
                # Of equal values the first one wins.
                tie = "values[other] == values[threadIdx.x] && places[other] < places[threadIdx.x]"
                with code.block(f"if (values[other] {sign} values[threadIdx.x] || ({tie}))"):
                    code.add("values[threadIdx.x] = values[other];", "places[threadIdx.x] = places[other];")
            code.add(spelling.spell("sync.block"))
        code.add("return places[0];")
    return code.text()
