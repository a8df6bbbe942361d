"""Writes loop nests with one thread per result, including the passes of a reduction."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.stage import INT_ELEMENTS, StageWriter
from kernel_gym.authors.apprentice.cuda.steps import RESULTS, Steps, needed, stored
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Ref, Store

#: The start value of a reduction, and the merge of one more value.
STARTS = {"sum": "0.0f", "prod": "1.0f"}
MERGES = {
    "sum": "{0} + {1}", "prod": "{0} * {1}", "max": "fmaxf({0}, {1})", "min": "fminf({0}, {1})",
}  # fmt: skip


@dataclass
class NestWriter(StageWriter):
    """Writes a nest as a kernel whose threads each compute one result, with loops over the reduced axes."""

    nest: Nest = field(kw_only=True)

    def __post_init__(self) -> None:
        self.steps = Steps(self.nest, self.spelling, self.code, self.address, self.buffer, self.schedule.fast)
        self.partial: dict[int, str] = {}

    # ---- shape -----------------------------------------------------------------------------------------------------

    @property
    def index(self) -> str:
        """The type of indices: int, unless a case of the task has too many elements."""
        return "int" if self.nest.elements < INT_ELEMENTS else "long long"

    def buffers_used(self) -> dict[str, bool]:
        """Return the buffers of the nest, inputs first."""
        loaded = {step.access.buffer: False for step in self.nest.loads if step.access}
        return loaded | {store.access.buffer: True for store in self.nest.stores}

    def fields(self) -> list[tuple[str, str]]:
        """Return the plan's sizes."""
        return list(self.nest.fields)

    def sizes(self, names: tuple[str, ...]) -> str:
        """Return the product of loop sizes."""
        return " * ".join(self.named(name) for name in names) or "1"

    @property
    def results(self) -> str:
        """How many results the nest has: the kept loops, times the vector dimension unless it is reduced."""
        return self.sizes(self.nest.kept if self.nest.vector_reduced else (*self.nest.kept, self.nest.vector))

    # ---- addresses -------------------------------------------------------------------------------------------------

    def address(self, access: Access) -> str:
        """Return the index of an element: loop indices times strides."""
        terms = [self.sized(access.offset)] if access.offset != "0" else []
        terms += [self._scaled(f"i{n}", stride) for n, stride in enumerate(access.kept) if stride != "0"]
        reduced = list(access.reduced)
        if reduced and access.buffer and reduced[-1] not in ("0", "1") and not self.spelling.right("axis.stride"):
            reduced[-1] = "1"
        terms += [self._scaled(f"k{n}", stride) for n, stride in enumerate(reduced) if stride != "0"]
        if access.step != "0":
            terms.append(self._scaled("column", access.step))
        return " + ".join(terms) or "0"

    def _scaled(self, loop: str, stride: str) -> str:
        if stride == "1":
            return loop
        text = self.sized(stride)
        return f"{loop} * ({text})" if " + " in text or " - " in text else f"{loop} * {text}"

    def take_apart(self, whole: str, loops: list[tuple[str, str]]) -> None:
        """Write the statements that split one index into those of several loops, the innermost last."""
        rest = whole
        for n in range(len(loops) - 1, 0, -1):
            loop, size = loops[n]
            self.code.add(f"const {self.index} {loop} = {rest} % {size};")
            inner = [extent for _, extent in loops[n:]]
            rest = f"{whole} / ({' * '.join(inner)})" if len(inner) > 1 else f"{whole} / {inner[0]}"
        if loops:
            self.code.add(f"const {self.index} {loops[0][0]} = {rest};")

    def kept_loops(self) -> list[tuple[str, str]]:
        """Return the kept loops as (index, size)."""
        return [(f"i{n}", self.named(name)) for n, name in enumerate(self.nest.kept)]

    # ---- the body --------------------------------------------------------------------------------------------------

    def body(self) -> None:
        """Write the computation of each result."""
        with self._each_result():
            self.take_apart("i", [*self.kept_loops(), ("column", self.named(self.nest.vector))])
            self.passes()

    @contextmanager
    def _each_result(self) -> Iterator[None]:
        count = self.results
        if self.schedule.stride:
            with self.code.block(self.spelling.spell("loop.stride", type=self.index, n=count)):
                yield
            return
        self.code.add(f"const {self.index} i = {self.spelling.spell('index.global')};")
        self.code.add(self.spelling.spell("bounds.check", n=count))
        yield

    def passes(self) -> None:
        """Write one loop over the reduced axes for each level of reductions, then the stores."""
        levels = max((step.level for step in self.nest.reductions), default=0)
        for level in range(levels):
            self.prepare(level)
            self._reduce([i for i, s in enumerate(self.nest.steps) if s.reduction and s.level == level + 1], level)
        self.prepare(levels)
        for store in self.nest.stores:
            self.store(store)

    def prepare(self, level: int) -> None:
        """Write the steps that have one number per result and whose operands are complete at this level."""
        for index, step in enumerate(self.nest.steps):
            if not step.inside and not step.reduction and step.level <= level:
                self.steps.write(index)

    def _reduce(self, reductions: list[int], level: int) -> None:
        for index in reductions:
            self.open(index)
        self.partial = self._partial_sums(reductions)
        names = dict(self.steps.names)
        with self.reduced_loop(level):
            for index in needed(self.nest, [self.source(index) for index in reductions], names):
                self.write_inside(index, level)
            for index in reductions:
                self.merge(index)
        self.partial = {}
        self.steps.forget(names)
        for index in reductions:
            self.close(index)

    def _partial_sums(self, reductions: list[int]) -> dict[int, str]:
        """Return the names of partial sums. The inner loops are summed first, since a single long sum loses digits."""
        sums = [index for index in reductions if self.nest.steps[index].function == "sum"]
        return {index: self.result_name(index).replace("total", "partial") for index in sums if self.several_loops}

    @property
    def several_loops(self) -> bool:
        """True if one thread walks several reduced loops for a result."""
        return len(self.nest.reduced) > 1

    def write_inside(self, index: int, level: int) -> None:
        """Write one step inside the reduced loops."""
        self.steps.write(index)

    def source(self, index: int) -> int:
        """Return the step that a reduction reduces."""
        argument = self.nest.steps[index].arguments[0]
        assert isinstance(argument, Ref)
        return argument.step

    @contextmanager
    def reduced_loop(self, level: int) -> Iterator[None]:
        """Write the loops over all reduced axes."""
        depth = []
        for n, name in enumerate(self.nest.reduced):
            block = self.code.block(f"for ({self.index} k{n} = 0; k{n} < {self.named(name)}; ++k{n})")
            block.__enter__()
            depth.append(block)
            if n == 0:
                self.code.add(*(f"float {partial} = 0.0f;" for partial in self.partial.values()))
        yield
        for n, block in reversed(list(enumerate(depth))):
            if n == 0:
                totals = {self.result_name(index): partial for index, partial in self.partial.items()}
                self.code.add(*(f"{total} = {total} + {partial};" for total, partial in totals.items()))
            block.__exit__(None, None, None)

    # ---- reductions ------------------------------------------------------------------------------------------------

    def result_name(self, index: int) -> str:
        """Return the name of a reduction's result."""
        word = RESULTS[self.nest.steps[index].function]
        first = [i for i, s in enumerate(self.nest.steps) if s.reduction and RESULTS[s.function] == word]
        return word if first[0] == index else f"{word}{first.index(index)}"

    def open(self, index: int) -> None:
        """Write the declaration of a reduction's accumulator."""
        step, name = self.nest.steps[index], self.result_name(index)
        if step.function.startswith("arg"):
            best = self.spelling.spell("reduce.lowest") if step.function == "argmax" else "__int_as_float(0x7f800000)"
            self.code.add(f"float {name}Value = {best};", f"{self.index} {name} = 0;")
            return
        start = STARTS.get(step.function) or (
            self.spelling.spell("reduce.lowest") if step.function == "max" else "__int_as_float(0x7f800000)"
        )
        self.code.add(f"float {name} = {start};")

    def merge(self, index: int) -> None:
        """Write the merge of one more value into the accumulator."""
        step, name = self.nest.steps[index], self.partial.get(index) or self.result_name(index)
        value = self.steps.names[self.source(index)]
        if not step.function.startswith("arg"):
            self.code.add(f"{name} = {MERGES[step.function].format(name, value)};")
            return
        sign = ">" if step.function == "argmax" else "<"
        with self.code.block(f"if ({value} {sign} {name}Value)"):
            self.code.add(f"{name}Value = {value};", f"{name} = {self.position()};")

    def position(self) -> str:
        """Return the position of an element among those that are reduced."""
        terms = [
            " * ".join([f"k{n}", *(self.named(name) for name in self.nest.reduced[n + 1 :])])
            for n in range(len(self.nest.reduced))
        ]
        return " + ".join(terms) or "0"

    def close(self, index: int) -> None:
        """Record that the reduction is complete."""
        self.steps.names[index] = self.result_name(index)

    # ---- results ---------------------------------------------------------------------------------------------------

    def walks(self, store: Store) -> bool:
        """Return whether the result has a value for every reduced index."""
        access = store.access
        along = self.nest.vector_reduced and access.step != "0"
        return self.nest.steps[store.step].inside or along or any(stride != "0" for stride in access.reduced)

    def store(self, store: Store) -> None:
        """Write the store of a result, once or for every reduced index."""
        if not (self.nest.reductions and self.walks(store)):
            for index in needed(self.nest, [store.step], self.steps.names):
                self.steps.write(index)
            self.store_once(store)
            return
        names = dict(self.steps.names)
        with self.reduced_loop(-1):
            for index in needed(self.nest, [store.step], names):
                self.write_inside(index, -1)
            self.code.add(self.assignment(store))
        self.steps.forget(names)

    def store_once(self, store: Store) -> None:
        """Write the store of a result that is one number."""
        self.code.add(self.assignment(store))

    def assignment(self, store: Store) -> str:
        """Return the statement that stores a result."""
        value = stored(store.access.dtype, self.steps.names[store.step])
        return f"{self.buffer(store.access.buffer)}[{self._written(store.access)}] = {value};"

    def _written(self, access: Access) -> str:
        terms = [self.sized(access.offset)] if access.offset != "0" else []
        terms += [self._scaled(f"i{n}", stride) for n, stride in enumerate(access.kept) if stride != "0"]
        terms += [self._scaled(f"k{n}", stride) for n, stride in enumerate(access.reduced) if stride != "0"]
        terms += [self._scaled("column", access.step)] if access.step != "0" else []
        return " + ".join(terms) or "0"

    # ---- the launch ------------------------------------------------------------------------------------------------

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a thread for each result, or fewer that take several results each."""
        self.set_fields(code)
        self.covering(code, self.results)
        self.call(code, self.blocks(), self.spelling.spell("launch.threads", block=self.schedule.block))
