"""Writes nests that reduce along contiguous rows that fit on chip: several rows are loaded at once and stay there."""

from __future__ import annotations

from kernel_gym.authors.apprentice.ascendc.body import Body, Operand
from kernel_gym.authors.apprentice.ascendc.nest import COPY_TO_VECTOR, SCALAR_TO_COPY, WIDTHS, NestWriter, in_bytes
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET, Schedule
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest

LOWEST, HIGHEST = "-1.0f / 0.0f", "1.0f / 0.0f"


class RowWriter(NestWriter):
    """Writes a row reduction. A unit of work is a batch of rows; `pitch` is a row's length on chip, in whole blocks."""

    def shared(self) -> list[tuple[int, Access]]:
        """Return the loads of vectors that all rows use; they are loaded once."""
        if not self.nest.kept:
            return []
        return [item for item in self.loads(vector=True) if all(stride == "0" for stride in item[1].kept)]

    def own(self) -> list[tuple[int, Access]]:
        """Return the loads of vectors that each row has its own of."""
        return [item for item in self.loads(vector=True) if item not in self.shared()]

    @property
    def store(self) -> Access:
        """The access that the result is written to."""
        return self.nest.stores[0].access

    @property
    def whole(self) -> bool:
        """True if the result has a value for every element, false if one for every row."""
        return self.nest.steps[self.nest.stores[0].step].inside

    def total_rows(self) -> str:
        """Return the number of rows, as arithmetic over fields."""
        return " * ".join(f"t.{name}" for name in self.nest.kept) or "1"

    def process(self) -> None:
        with self.code.function(self.process_head):
            self.core_share()
            if self.shared():
                self._share()
            self._units()
        self._copy_in()
        self._compute()
        self._copy_out()

    def _units(self) -> None:
        """Write the loop over the units of a core."""
        add, total = self.code.add, self.total_rows()
        with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
            add("const uint32_t row = unit * t.batch;", f"const uint32_t rows = Min(t.batch, {total} - row);")
            add("CopyIn(row, rows);", "Compute(row, rows);", "CopyOut(row, rows);")

    def _share(self) -> None:
        """Write the load of the vectors that all rows use."""
        for _, access in self.shared():
            local = f"{access.label}Shared"
            self.code.add(f"{local} = {access.label}Buf.Get<{self.ctype(access)}>();")
            self.load(access, local, "t.length", self.offset(access, "0", "0"))
        self.code.add(*COPY_TO_VECTOR)

    def _copy_in(self) -> None:
        self.code.add("")
        with self.code.function("__aicore__ inline void CopyIn(uint32_t row, uint32_t rows)"):
            for _, access in self.own():
                local, queue = f"{access.label}Local", f"{access.label}Queue"
                self.code.add(self.spelling.spell("queue.alloc", type=self.ctype(access), tensor=local, queue=queue))
                self._load_rows(access, local)
                self.code.add(self.spelling.spell("queue.enque", queue=queue, tensor=local))

    def _load_rows(self, access: Access, local: str) -> None:
        pitch = access.kept[-1] if access.kept else "t.length"
        if access.step == "1" and access.flat and self.schedule.bursts and not pitch.startswith("-"):
            gap = in_bytes(f"({pitch} - t.length)", self.ctype(access)) if pitch != "t.length" else "0"
            source = f"{access.buffer}Gm"
            offset = self.offset(access, "row", "0")
            text = self.spelling.spell(
                "copy.rows-in",
                type=self.ctype(access),
                dst=local,
                src=source,
                offset=offset,
                rows="rows",
                n="t.length",
                gap=gap,
                pad=self.padding(access, "t.length"),
            )
            self.code.add(text)
            return
        with self.code.block("for (uint32_t r = 0; r < rows; ++r)"):
            self.code.add(*self.indices("(row + r)", [access]))
            self.load(access, f"{local}[r * t.pitch]", "t.length", self.offset(access, "(row + r)", "0"))

    def _compute(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        out = f"{self.store.label}Local"
        self.code.add("")
        with self.code.function("__aicore__ inline void Compute(uint32_t row, uint32_t rows)"):
            for _, access in self.own():
                add(self.take(access, f"{access.label}Queue"))
            add(spell("queue.alloc", type=self.ctype(self.store), tensor=out, queue=f"{self.store.label}Queue"))
            mark = len(self.code.lines)
            with self.code.block("for (uint32_t r = 0; r < rows; ++r)"):
                body = self._row(out)
            self.declare_work(body, mark)
            if not self.whole:
                add(*SCALAR_TO_COPY)
            add(spell("queue.enque", queue=f"{self.store.label}Queue", tensor=out))
            for _, access in self.own():
                add(spell("queue.free", queue=f"{access.label}Queue", tensor=f"{access.label}Local"))

    def _row(self, out: str) -> Body:
        add = self.code.add
        body = self.body("t.pitch" if self.masked else "t.length", "t.length")
        body.reduce = lambda index: reduce_row(self, body, index)
        body.position = lambda access: self.offset(access, "(row + r)", "0")
        numbers = self.loads(vector=False)
        positions = [step.index for step in self.nest.steps if step.index]
        add(*self.indices("(row + r)", [*(access for _, access in numbers), *positions]))
        for index, access in numbers:
            name = f"{access.label}Value"
            add(
                self.spelling.spell(
                    "gm.element", name=name, gm=f"{access.buffer}Gm", offset=self.offset(access, "(row + r)", "0")
                )
            )
            body.values[index] = Operand(name, False)
        for index, access in self.own():
            row = f"{access.label}Row"
            part = self.spelling.spell("local.slice", tensor=f"{access.label}Local", start="r * t.pitch", n="t.length")
            add(f"AscendC::LocalTensor<{self.ctype(access)}> {row} = {part};")
            self.as_float(body, index, access, row)
        for index, access in self.shared():
            self.as_float(body, index, access, f"{access.label}Shared")
        self._result(body, out)
        return body

    def _result(self, body: Body, out: str) -> None:
        add, target = self.code.add, self.nest.stores[0].step
        steps = [index for index, step in enumerate(self.nest.steps) if not step.access]
        ctype = self.ctype(self.store)
        if self.whole:
            add(f"AscendC::LocalTensor<{ctype}> outRow = {out}[r * t.pitch];")
            if ctype == "float":
                body.run(steps, homes={target: "outRow"})
            else:
                body.run(steps, keep=[target])
                self.convert(body, "outRow", ctype, body.values[target].text, "float")
            return
        body.run(steps, keep=[target])
        value = body.values[target].text
        self.set_element(out, "r", value, ctype)

    def _copy_out(self) -> None:
        access = self.store
        out, queue, ctype = f"{access.label}Local", f"{access.label}Queue", self.ctype(access)
        self.code.add("")
        with self.code.function("__aicore__ inline void CopyOut(uint32_t row, uint32_t rows)"):
            self.code.add(self.take(access, queue))
            offset = self.offset(access, "row", "0")
            if self.whole and not self.schedule.bursts:
                with self.code.block("for (uint32_t r = 0; r < rows; ++r)"):
                    offset = self.offset(access, "(row + r)", "0")
                    self.code.add(self.copy_out_text(access, f"{out}[r * t.pitch]", offset, "t.length"))
            elif self.whole:
                self.code.add(
                    self.spelling.spell(
                        "copy.rows-out",
                        gap="0",
                        type=ctype,
                        dst=f"{access.buffer}Gm",
                        src=out,
                        offset=offset,
                        rows="rows",
                        n="t.length",
                    )
                )
            else:
                self.code.add(
                    self.spelling.spell(
                        "copy.out", type=ctype, dst=f"{access.buffer}Gm", src=out, offset=offset, n="rows"
                    )
                )
            self.code.add(self.spelling.spell("queue.free", queue=queue, tensor=out))

    # ---- sizes -------------------------------------------------------------------------------------------------

    def init_lines(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        # A comparison reads whole repeats, so the last row needs room behind it.
        spare = " + 64" if self.masked else ""
        several, single = f"(t.batch * t.pitch{spare}) * sizeof({{}})", f"(t.pitch{spare}) * sizeof({{}})"
        if not spare:
            several, single = "t.batch * t.pitch * sizeof({})", "t.pitch * sizeof({})"
        for _, access in self.own():
            add(
                spell(
                    "queue.init",
                    queue=f"{access.label}Queue",
                    buffers=self.schedule.buffers,
                    bytes=several.format(self.ctype(access)),
                )
            )
        for _, access in self.shared():
            add(spell("buffer.init", buffer=f"{access.label}Buf", bytes=single.format(self.ctype(access))))
        size = several if self.whole else "Align(t.batch, 8) * sizeof({})"
        add(
            spell(
                "queue.init",
                queue=f"{self.store.label}Queue",
                buffers=self.schedule.buffers,
                bytes=size.format(self.ctype(self.store)),
            )
        )
        for n in range(self.work):
            add(spell("buffer.init", buffer=f"workBuf{n}", bytes="Align(t.pitch, 64) * sizeof(float)"))
        add(spell("buffer.init", buffer="statBuf", bytes="64"))

    def members(self) -> None:
        super().members()
        for _, access in self.shared():
            self.code.add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {access.label}Buf;")
            self.code.add(f"AscendC::LocalTensor<{self.ctype(access)}> {access.label}Shared;")

    def queued_loads(self) -> list[Access]:
        return [access for _, access in self.own()]

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "batch", "units", "perCore")

    def longest(self) -> int:
        """Return the longest row that fits on chip with this nest's buffers, in elements."""
        tensors = (len(self.own()) + self.whole) * self.schedule.buffers + len(self.shared()) + self.work
        return (BUDGET - 4096) // (4 * tensors) // 64 * 64

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        narrowest = min(WIDTHS[self.ctype(access)] for access in [*(a for _, a in self.own()), self.store])
        block = 32 // min(narrowest, 4)  # a row begins on a block of 32 bytes
        code.add(f"t.pitch = (t.length + {block - 1}) / {block} * {block};")
        with code.block(f"if (t.length > {self.longest()})"):
            code.add("return 1;  // a row must fit on chip")
        each = 4 * self.schedule.buffers * (len(self.own()) + self.whole)
        fixed = 4 * (len(self.shared()) + self.work)
        room = f"({BUDGET - 4096} - {fixed} * t.pitch) / ({max(each, 4)} * t.pitch)"
        code.add(f"const uint32_t rows = {self.total_rows()};")
        limit = f"AtMost({room}, {self.schedule.batch})" if self.schedule.batch else f"AtMost({room}, 128)"
        code.add(f"t.batch = AtMost({limit}, (rows + {self.shares - 1}) / {self.shares});")
        code.add(f"t.units = {self.spelling.spell('loop.remainder', length='rows', tile='t.batch')};")
        self.call(code)

    def early_units(self) -> str:
        return f"{self.early_rows()} / t.batch"


def longest_row(nest: Nest, schedule: Schedule) -> int:
    """Return the longest row of which one of every tensor and four work tensors fit on chip, in elements."""
    tensors = sum(step.access is not None and step.access.step != "0" for step in nest.steps) + 1
    return (BUDGET - 4096) // (4 * (tensors * schedule.buffers + 4)) // 64 * 64


def reduce_row(writer: NestWriter, body: Body, index: int) -> None:
    """Write the reduction of a row on chip to one number."""
    step = writer.nest.steps[index]
    source = body.operand(step.arguments[0])
    work = body.place()
    reduction = step.reduction or "sum"
    arg = reduction.startswith("arg")
    idiom = f"reduce.{reduction[-3:]}" + ("-index" if arg else "")
    writer.code.add(writer.spelling.spell(idiom, dst="stat", src=source.text, work=work, n=body.exact))
    body.free.append(work)
    result = writer.spelling.spell("reduce.index" if arg else "local.element", tensor="stat", index="0")
    body.values[index] = Operand(body.number(result, f"row{reduction[0].upper()}{reduction[1:]}"), False)
