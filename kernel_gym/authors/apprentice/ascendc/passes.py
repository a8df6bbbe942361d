"""Writes nests that reduce in several passes over tiles: along rows too long for the chip, or over an inner axis."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernel_gym.authors.apprentice.ascendc.body import Body, Operand
from kernel_gym.authors.apprentice.ascendc.nest import COPY_TO_REUSE, SCALAR_TO_COPY, NestWriter
from kernel_gym.authors.apprentice.ascendc.rows import HIGHEST, LOWEST
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Ref

_START = {"sum": "0.0f", "prod": "1.0f", "max": LOWEST, "min": HIGHEST, "argmax": LOWEST, "argmin": HIGHEST}
#: The instruction that merges two partial results.
MERGE = {"sum": "Add", "prod": "Mul", "max": "Max", "min": "Min"}


class PassWriter(NestWriter):
    """Writes a reduction in passes.

    A unit of work is a row, if the vector dimension is reduced, and otherwise one tile of the vector dimension. Every
    pass walks the reduced axis once: the first passes accumulate, the last one writes.
    """

    @property
    def rowwise(self) -> bool:
        """True if the vector dimension itself is reduced, so that results are numbers."""
        return self.nest.vector_reduced

    @property
    def store(self) -> Access:
        """The access that the result is written to."""
        return self.nest.stores[0].access

    @property
    def root(self) -> int:
        """The step whose result is stored."""
        return self.nest.stores[0].step

    @property
    def whole(self) -> bool:
        """True if the result has a value for every reduced element."""
        return self.nest.steps[self.root].inside

    def process(self) -> None:
        add = self.code.add
        with self.code.function("__aicore__ inline void Process()"):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                if self.rowwise:
                    add("Row(unit);")
                elif self.nest.kept:
                    add("const uint32_t start = (unit % t.tiles) * t.tile;")
                    add("Columns(unit / t.tiles, start, Min(t.tile, t.length - start));")
                else:
                    add("Columns(0, unit * t.tile, Min(t.tile, t.length - unit * t.tile));")
        add("")
        head = "Row(uint32_t row)" if self.rowwise else "Columns(uint32_t row, uint32_t start, uint32_t count)"
        with self.code.function(f"__aicore__ inline void {head}"):
            self._unit()

    def _unit(self) -> None:
        body = self.body("lanes" if self.masked else "count", "count")
        if self.masked and not self.rowwise:
            self.lanes("count")
        mark = len(self.code.lines)
        walks = [step.access or step.index for step in self.nest.steps]
        accesses = [walk for walk in walks if walk] + [self.store]
        body.position = self._offset
        self.code.add(*self.indices("row", accesses))
        body.reduce = lambda index: self._accumulate(body, index)
        levels = max(step.level for step in self.nest.steps)
        self._outside(body, 0)
        for level in range(1, levels + 1):
            self._pass(body, level)
            self._outside(body, level)
        if self.whole:
            self._write_pass(body)
        else:
            self._write_result(body)
        self.declare_work(body, mark)

    def needs_stat(self) -> bool:
        return self.rowwise or self.numbers_by_vector

    # ---- passes ------------------------------------------------------------------------------------------------

    def _needed(self, targets: list[int]) -> list[int]:
        """Return the steps inside the loop that the targets are computed from, in order."""
        needed, queue = set(targets), list(targets)
        while queue:
            for argument in self.nest.steps[queue.pop()].arguments:
                if isinstance(argument, Ref) and argument.step not in needed and self.nest.steps[argument.step].inside:
                    needed.add(argument.step)
                    queue.append(argument.step)
        return sorted(needed)

    def _pass(self, body: Body, level: int) -> None:
        reducing = [i for i, step in enumerate(self.nest.steps) if step.reduction and step.level == level]
        if not reducing:
            return
        for index in reducing:
            self._start(body, index)
        with self._loop(body, self._needed(reducing)) as steps:
            outside = [index for index in body.values if not self.nest.steps[index].inside]
            body.run([step for step in steps if step not in reducing], keep=[*self._fed(reducing), *outside])
            for index in reducing:
                self._accumulate(body, index)
        self._keep(body)

    def _fed(self, reducing: list[int]) -> list[int]:
        return [
            argument.step
            for index in reducing
            for argument in self.nest.steps[index].arguments
            if isinstance(argument, Ref)
        ]

    def _keep(self, body: Body) -> None:
        body.commit({index for index in body.values if not self.nest.steps[index].inside})

    @contextmanager
    def _loop(self, body: Body, steps: list[int]) -> Iterator[list[int]]:
        """Write the loop over the reduced axis and its loads; yield the steps that are still to be computed."""
        with self._tiles():
            loads = [(index, self.nest.steps[index].access) for index in steps if self.nest.steps[index].access]
            queued = [(index, access) for index, access in loads if access and access.step != "0"]
            for _, access in queued:
                self.copy_in(access, f"{access.label}Queue", "count", self._offset(access))
            for index, number in loads:
                if number and number.step == "0":
                    self._number(body, index, number)
            for _, access in queued:
                self.code.add(self.take(access, f"{access.label}Queue"))
            for index, access in queued:
                self.as_float(body, index, access, f"{access.label}Local")
            yield [index for index in steps if not self.nest.steps[index].access]
            for _, access in queued:
                self.code.add(
                    self.spelling.spell("queue.free", queue=f"{access.label}Queue", tensor=f"{access.label}Local")
                )

    def _offset(self, access: Access) -> str:
        loaded = any(step.access is access or step.index is access for step in self.nest.steps)
        if loaded and access.reduced and not self.spelling.right("axis.stride"):
            # The mistake: the reduced axis is taken for the contiguous one.
            return self.offset(access, "row", "start", "axis").replace("axis * ", "axis + 0 * ")
        return self.offset(access, "row", "start", "axis")

    @contextmanager
    def _tiles(self) -> Iterator[None]:
        axis = " * ".join(f"t.{name}" for name in self.nest.reduced)
        if axis:
            with self.code.block(f"for (uint32_t axis = 0; axis < {axis}; ++axis)"):
                self.code.add(*self._axis_indices())
                if self.rowwise:
                    with self._row_tiles():
                        yield
                else:
                    yield
        else:
            with self._row_tiles():
                yield

    @contextmanager
    def _row_tiles(self) -> Iterator[None]:
        with self.code.block("for (uint32_t start = 0; start < t.length; start += t.tile)"):
            self.code.add("const uint32_t count = Min(t.tile, t.length - start);")
            self.lanes("count")
            yield

    def _axis_indices(self) -> list[str]:
        names = self.nest.reduced
        if len(names) < 2:
            return []
        inside = [" * ".join(f"t.{name}" for name in names[n + 1 :]) for n in range(len(names))]
        return [
            f"const uint32_t k{n} = "
            + (f"axis / ({inside[n]}) % t.{names[n]};" if inside[n] else f"axis % t.{names[n]};")
            for n in range(len(names))
        ]

    def _number(self, body: Body, index: int, access: Access) -> None:
        name = f"{access.label}Value"
        self.code.add(
            self.spelling.spell("gm.element", name=name, gm=f"{access.buffer}Gm", offset=self._offset(access))
        )
        body.values[index] = Operand(name, False)

    # ---- accumulators ------------------------------------------------------------------------------------------

    def _total(self, index: int) -> str:
        step = self.nest.steps[index]
        same = [i for i, other in enumerate(self.nest.steps) if other.reduction == step.reduction]
        return f"{step.reduction}{same.index(index) if len(same) > 1 else ''}Total"

    def _start(self, body: Body, index: int) -> None:
        step = self.nest.steps[index]
        reduction = step.reduction or "sum"
        bound = reduction not in ("sum", "prod")
        begin = self.spelling.spell("reduce.start", value=_START[reduction]) if bound else _START[reduction]
        if self.rowwise:
            self.code.add(f"float {self._total(index)} = {begin};")
            if reduction.startswith("arg"):
                self.code.add(f"float {self._total(index)}At = 0.0f;")
            body.values[index] = Operand(self._total(index) + ("At" if reduction.startswith("arg") else ""), False)
            return
        home = body.place()
        self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value=begin, n=body.count))
        if reduction.startswith("arg"):
            best = home
            home = body.place()
            self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value="0.0f", n=body.count))
            self.best = {**getattr(self, "best", {}), index: best}
        body.values[index] = Operand(home, True)

    def _accumulate(self, body: Body, index: int) -> None:
        step = self.nest.steps[index]
        source = body.operand(step.arguments[0])
        if self.rowwise:
            self._accumulate_row(body, index, source)
        elif step.reduction in ("argmax", "argmin"):
            self._accumulate_index(body, index, source)
        else:
            home = body.values[index].text
            value = source.text
            if not source.vector:
                value = body.place()
                self.code.add(self.spelling.spell("tensor.duplicate", dst=value, value=source.text, n=body.count))
                body.free.append(value)
            self.code.add(f"AscendC::{MERGE[step.reduction or 'sum']}({home}, {home}, {value}, {body.count});")

    def _accumulate_row(self, body: Body, index: int, source: Operand) -> None:
        step = self.nest.steps[index]
        reduction, total, spell = step.reduction or "sum", self._total(index), self.spelling.spell
        work = body.place()
        arg = reduction.startswith("arg")
        idiom = f"reduce.{reduction[-3:]}" + ("-index" if arg else "")
        self.code.add(spell(idiom, dst="stat", src=source.text, work=work, n="count"))
        body.free.append(work)
        part = spell("local.element", tensor="stat", index="0")
        if arg:
            sign = ">" if reduction == "argmax" else "<"
            with self.code.block(f"if ({part} {sign} {total})"):
                place = spell("reduce.index", tensor="stat", index="0")
                offset = self.spelling.spell("cast.unsigned", number="start")
                self.code.add(f"{total} = {part};", f"{total}At = {offset} + {place};")
        elif reduction == "sum":
            self.code.add(f"{total} += {part};")
        else:
            self.code.add(f"{total} = {'Larger' if reduction == 'max' else 'Smaller'}({total}, {part});")

    def _accumulate_index(self, body: Body, index: int, source: Operand) -> None:
        step = self.nest.steps[index]
        mode = "GT" if step.reduction == "argmax" else "LT"
        home, best = body.values[index].text, self.best[index]
        mask, here = body.place(), body.place()
        bits = f"{mask}.ReinterpretCast<uint8_t>()"
        body._mask(bits, mode, [source, Operand(best, True)])
        self.code.add(
            self.spelling.spell(
                "tensor.duplicate", dst=here, value=self.spelling.spell("cast.unsigned", number="axis"), n=body.count
            )
        )
        body._select(home, bits, here, home, True)
        body._select(best, bits, source.text, best, True)
        body.free += [mask, here]

    # ---- results -----------------------------------------------------------------------------------------------

    def _outside(self, body: Body, level: int) -> None:
        """Write the steps that need no loop and whose operands are complete at this level."""
        for index, step in enumerate(self.nest.steps):
            if step.inside or step.level != level or step.reduction or index in body.values:
                continue
            if step.access and step.access.step == "0":
                self._number(body, index, step.access)
            elif step.access:
                self._hold(body, index, step.access)
            elif index != self.root or self.whole:
                body.run([index], keep=[index, *body.values])

    def _hold(self, body: Body, index: int, access: Access) -> None:
        """Write the load of a vector that does not change along the reduced axis, and keep it on chip."""
        queue, home = f"{access.label}Queue", body.place()
        self.copy_in(access, queue, "count", self._offset(access))
        self.code.add(self.take(access, queue))
        if self.ctype(access) == "float":
            self.code.add(self.spelling.spell("tensor.copy", dst=home, src=f"{access.label}Local", n=body.count))
        else:
            self.convert(body, home, "float", f"{access.label}Local", self.ctype(access))
        self.code.add(self.spelling.spell("queue.free", queue=queue, tensor=f"{access.label}Local"))
        body.values[index] = Operand(home, True)

    def _write_pass(self, body: Body) -> None:
        add, spell = self.code.add, self.spelling.spell
        access, out, queue = self.store, f"{self.store.label}Local", f"{self.store.label}Queue"
        ctype = self.ctype(access)
        with self._loop(body, self._needed([self.root])) as steps:
            add(spell("queue.alloc", type=ctype, tensor=out, queue=queue))
            outside = [index for index in body.values if not self.nest.steps[index].inside]
            if self.scattered:
                body.run(steps, keep=[self.root, *outside])
                self.spread(body, out, body.values[self.root])
            elif ctype == "float":
                body.run(steps, keep=outside, homes={self.root: out})
            else:
                body.run(steps, keep=[self.root, *outside])
                self.convert(body, out, ctype, body.values[self.root].text, "float")
            add(spell("queue.enque", queue=queue, tensor=out))
            self._store_tile(queue, "count", self._offset(access))

    @property
    def direct(self) -> bool:
        """True if the result is an unchanged accumulator, which is copied out of its buffer without a queue."""
        step = self.nest.steps[self.root]
        plain = step.reduction in MERGE and self.ctype(self.store) == "float" and self.store.step == "1"
        return plain and not self.rowwise

    @property
    def scattered(self) -> bool:
        """True if neighbours of the result are not neighbours in memory."""
        return self.store.step not in ("0", "1")

    def queued_stores(self) -> list[Access]:
        return [] if self.direct else super().queued_stores()

    def _write_result(self, body: Body) -> None:
        add, spell = self.code.add, self.spelling.spell
        if self.direct:
            add(spell("sync.vector-to-copy"))
            home = body.values[self.root].text
            add(self.copy_out_text(self.store, home, self.offset(self.store, "row", "start"), "count"), *COPY_TO_REUSE)
            return
        access, out, queue = self.store, f"{self.store.label}Local", f"{self.store.label}Queue"
        ctype = self.ctype(access)
        add(spell("queue.alloc", type=ctype, tensor=out, queue=queue))
        ready = self.root in body.values
        if self.rowwise:
            if not ready:
                body.run([self.root], keep=[self.root, *body.values])
            value = body.values[self.root].text
            self.set_element(out, "0", value, ctype)
            add(*SCALAR_TO_COPY)
        elif self.scattered:
            if not ready:
                body.run([self.root], keep=[self.root, *body.values])
            self.spread(body, out, body.values[self.root])
        elif ctype != "float":
            if not ready:
                body.run([self.root], keep=[self.root, *body.values])
            self.convert(body, out, ctype, body.values[self.root].text, "float")
        elif ready:
            add(spell("tensor.copy", dst=out, src=body.values[self.root].text, n="count"))
        else:
            body.run([self.root], homes={self.root: out})
        add(spell("queue.enque", queue=queue, tensor=out))
        self._store_tile(queue, "1" if self.rowwise else "count", self.offset(access, "row", "start"))

    def _store_tile(self, queue: str, count: str, offset: str) -> None:
        access, spell = self.store, self.spelling.spell
        ready = f"{access.label}Ready"
        self.code.add(spell("queue.deque", type=self.ctype(access), tensor=ready, queue=queue))
        self.code.add(self.copy_out_text(access, ready, offset, count))
        self.code.add(spell("queue.free", queue=queue, tensor=ready))

    # ---- sizes -------------------------------------------------------------------------------------------------

    def tile_fields(self) -> tuple[str, ...]:
        return ("tile", "tiles", "units", "perCore") if not self.rowwise and self.nest.kept else super().tile_fields()

    def launch(self, code: CodeWriter) -> None:
        rows = " * ".join(f"t.{name}" for name in self.nest.kept) or "1"
        self.set_fields(code)
        self.fit_tile(
            code, "t.length" if self.rowwise else f"{rows} * t.length", 1 if self.rowwise else 2 * self.schedule.cores
        )
        if self.rowwise:
            code.add(f"t.units = {rows};")
        else:
            count = self.spelling.spell("loop.remainder", length="t.length", tile="t.tile")
            code.add(
                *(
                    [f"t.tiles = {count};", f"t.units = {rows} * t.tiles;"]
                    if self.nest.kept
                    else [f"t.units = {count};"]
                )
            )
        self.call(code)
