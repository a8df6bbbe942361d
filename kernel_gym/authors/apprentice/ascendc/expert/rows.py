"""Row reductions of several rows at once: one instruction for all rows of a tile instead of one for each row.

A row is `pitch` elements on chip, whole repeats of 64 in eights. Two block reductions leave `pitch / 64` numbers of a
row, neighbours on chip, and a third instruction reduces them to one for each row.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.body import BINARY, COMPARING, LIBRARY, Body, Operand
from kernel_gym.authors.apprentice.ascendc.nest import in_bytes
from kernel_gym.authors.apprentice.ascendc.rows import HIGHEST, LOWEST, RowWriter
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import SCALAR_FUNCTIONS, Access, Nest, Ref, Step

#: A row is on chip a multiple of this long, and at most so long.
UNIT, LONGEST = 512, 4096
#: Rows up to this long are whole vectors on chip, and a number for each row is spread over a block first.
SHORT = 512
#: What does not change a reduction.
NEUTRAL = {"sum": "0.0f", "max": LOWEST, "min": HIGHEST}
_REDUCE = """\
// One number for each row. What is on chip behind the end of a row must not change it.
__aicore__ inline void Reduce{name}(const AscendC::LocalTensor<float> &dst, const AscendC::LocalTensor<float> &src,
                                 uint32_t rows)
{{
    AscendC::LocalTensor<float> part = partBuf.Get<float>();
    AscendC::LocalTensor<float> rest = part[t.batch * t.pitch / 8];
    const uint32_t repeats = t.pitch / 64, whole = t.length / 64 * 64;
    for (uint32_t r = 0; r < rows && t.length < t.pitch; ++r) {{
        uint64_t behind[2] = {{~0ull << (t.length % 64), 0}};
        AscendC::Duplicate(src[r * t.pitch + whole], {neutral}, behind, 1, 1, 8);
        if (whole + 64 < t.pitch) {{
            AscendC::Duplicate(src[r * t.pitch + whole + 64], {neutral}, t.pitch - whole - 64);
        }}
    }}
    AscendC::BlockReduce{name}(part, src, rows * repeats, 64, 1, 1, 8);
    if (repeats <= 8) {{
        AscendC::WholeReduce{name}(dst, part, repeats * 8, rows, 1, 1, repeats{order});
        return;
    }}
    AscendC::BlockReduce{name}(rest, part, rows * repeats / 8, 64, 1, 1, 8);
    AscendC::WholeReduce{name}(dst, rest, repeats, rows, 1, 1, repeats / 8{order});
}}"""


def kinds_of(nest: Nest) -> list[str] | None:
    """Return for each step whether it is a tile, a vector that all rows share, a number for each row, or one number.

    None if rows cannot be taken together: they are too long, or a step does not go with them.
    """
    kinds: list[str] = []
    stores = [store.access for store in nest.stores]
    accesses = [*(step.access for step in nest.loads if step.access), *stores]
    floats = all(access.dtype == "float32" for access in accesses) and all(access.flat for access in stores)
    if not nest.kept or not floats or nest.longest_anywhere > LONGEST:
        return None
    for step in nest.steps:
        arguments = [kinds[argument.step] for argument in step.arguments if isinstance(argument, Ref)]
        kind = _kind(step, arguments, nest.longest_anywhere)
        if not kind:
            return None
        kinds.append(kind)
    return kinds


def _kind(step: Step, arguments: list[str], longest: int) -> str:
    """Return the kind of a step, given those of its arguments; empty if it does not go with rows taken together."""
    together = {*arguments} - {"number"}
    if step.access:
        pitches = step.access.kept
        if all(pitch == "0" for pitch in pitches):
            return "shared" if step.access.step == "1" else "number"
        if step.access.step == "0":
            return "row" if step.access.flat and pitches[-1] == "1" else ""
        pitch = pitches[-1]
        apart = not step.access.flat or pitch.startswith("t.") or (pitch.isdigit() and int(pitch) >= longest)
        return "tile" if step.access.step == "1" and apart else ""
    if step.reduction:
        return "row" if step.reduction in NEUTRAL and together == {"tile"} else ""
    if step.index or (step.function in COMPARING and together not in ({"tile"}, {"row"})):
        return ""
    if not together:
        return "number" if step.field or step.function in SCALAR_FUNCTIONS | {"constant"} else ""
    if len(together) == 1:
        return together.pop().replace("shared", "")
    mixed = "tile" in together and len(together) == 2 and step.function in BINARY
    return "tile" if mixed else ""


@dataclass
class RowsBody(Body):
    """Writes steps on a tile of rows (`work` tensors) and on one number for each row (`stat` tensors)."""

    kinds: list[str] = field(default_factory=list)
    stat_count: int = 0
    #: True if a number for each row is spread over a block, so that one instruction takes all rows.
    spread: bool = False

    def _write(self, index: int, dying: list[int], homes: dict[int, str], position: int, last: dict[int, int]) -> None:
        step, kind = self.nest.steps[index], self.kinds[index]
        used = [argument.step for argument in step.arguments if isinstance(argument, Ref)]
        others = [each for each in used if self.kinds[each] in ("row", "shared")]
        alike = [each for each in dying if self.kinds[each] == kind]
        if kind == "row" and not step.reduction:
            # A mask has a bit for every element of a whole vector.
            rows = "Align(rows, 64)" if step.function in COMPARING else "rows"
            tile, self.count, self.prefix = self.count, rows, "stat"
            super()._write(index, alike, {}, position, last)
            self.count, self.prefix = tile, "work"
        elif kind == "tile" and others:
            self._along_rows(index, others[0], homes.get(index) or self._inherit(alike) or self.place())
        else:
            super()._write(index, alike, homes, position, last)

    def _along_rows(self, index: int, other: int, home: str) -> None:
        """Write an instruction for each row: with the row's own number, or with a vector that all rows share."""
        step, numbers, tile = self.nest.steps[index], self.kinds[other] == "row", self.count
        partner = self.values[other]
        if numbers and self.spread:
            self._by_blocks(index, other, home)
            return
        self.count = "t.length"
        with self.code.block("for (uint32_t r = 0; r < rows; ++r)"):
            if numbers:
                element = self.spelling.spell("local.element", tensor=partner.text, index="r")
                partner = Operand(self.number(element), False)
            operands = [partner if each == Ref(other) else self._row_of(each) for each in step.arguments]
            self._vector(step, f"{home}[r * t.pitch]", operands, index)
        self.values[index], self.count = Operand(home, True), tile

    def _by_blocks(self, index: int, other: int, home: str) -> None:
        """Write an instruction for each vector of a row, with the numbers of all rows."""
        step = self.nest.steps[index]
        texts, blocks, steps = list[str](), list[str](), list[str]()
        for argument in step.arguments:
            number = argument == Ref(other)
            texts.append("spread" if number else f"{self.operand(argument).text}[c]")
            blocks.append("0" if number else "1")
            steps.append("1" if number else "gap")
        places = ", ".join(["1", *blocks, "gap", *steps])
        self.code.add(f"AscendC::Brcb(spread, {self.values[other].text}, Align(rows, 8) / 8, {{1, 8}});")
        with self.code.block("for (uint32_t c = 0; c < t.pitch; c += 64)"):
            name = BINARY[step.function]
            self.code.add("const uint8_t gap = static_cast<uint8_t>(t.pitch / 8);")
            self.code.add(f"AscendC::{name}({home}[c], {', '.join(texts)}, 64, rows, {{{places}}});")
        self.values[index] = Operand(home, True)

    def _row_of(self, argument: Ref | float) -> Operand:
        operand = self.operand(argument)
        return Operand(f"{operand.text}[r * t.pitch]", True) if operand.vector else operand

    def row_place(self) -> str:
        """Return a free tensor of one number for each row."""
        self.prefix = "stat"
        home = self.place()
        self.prefix = "work"
        return home

    def place(self) -> str:
        free = [name for name in self.free if name.startswith("stat") == (self.prefix == "stat")]
        if free:
            self.free.remove(free[-1])
            return free[-1]
        if self.prefix == "work":
            self.work_count += 1
            return f"work{self.work_count - 1}"
        self.stat_count += 1
        return f"stat{self.stat_count - 1}"

    def _is_place(self, name: str) -> bool:
        return name.startswith(("work", "stat")) or name in self.lent


class RowTileWriter(RowWriter):
    """Writes a nest whose rows are taken together. A unit of work is a tile of `batch` rows."""

    #: How many tensors of one number for each row the steps need; set by writing them.
    stats: int = 0

    @property
    def short(self) -> bool:
        """True if rows are short at every case."""
        return self.nest.longest_anywhere <= SHORT

    @property
    def whole(self) -> bool:
        return super().whole or not self.nest.reductions

    @property
    def ahead(self) -> int:
        """How many tiles are in the queue at a time: a device has eight flags between copies and instructions."""
        return 2 if len(self.queued_loads()) <= 4 else 1

    @property
    def _compares_numbers(self) -> bool:
        kinds = kinds_of(self.nest) or []
        return any(
            kind == "row" and step.function in COMPARING for kind, step in zip(kinds, self.nest.steps, strict=False)
        )

    def numbers(self) -> list[tuple[int, Access]]:
        """Return the loads of one number for each row."""
        return [item for item in self.loads(vector=False) if any(pitch != "0" for pitch in item[1].kept)]

    def queued_loads(self) -> list[Access]:
        return [access for _, access in [*self.own(), *self.numbers()]]

    def _units(self) -> None:
        add, early = self.code.add, self.ahead == 2
        # The next tile is on its way while the scalar unit waits for results of this one.
        if early:
            with self.code.block("if (first < last)"):
                add("CopyIn(first * t.batch);")
        with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
            if early:
                with self.code.block("if (unit + 1 < last)"):
                    add("CopyIn((unit + 1) * t.batch);")
            else:
                add("CopyIn(unit * t.batch);")
            add("const uint32_t row = unit * t.batch;")
            add(f"const uint32_t rows = Min(t.batch, {self.total_rows()} - row);")
            add("Compute(row, rows);", "CopyOut(row, rows);")

    def _copy_in(self) -> None:
        self.code.add("")
        with self.code.function("__aicore__ inline void CopyIn(uint32_t row)"):
            self.code.add(f"const uint32_t rows = Min(t.batch, {self.total_rows()} - row);")
            for access in self.queued_loads():
                local, queue = f"{access.label}In", f"{access.label}Queue"
                self.code.add(self.spelling.spell("queue.alloc", type="float", tensor=local, queue=queue))
                self._load_rows(access, local)
                self.code.add(self.spelling.spell("queue.enque", queue=queue, tensor=local))

    def _load_rows(self, access: Access, local: str) -> None:
        if access.step == "0":
            source = f"{access.buffer}Gm[{self.offset(access, 'row', '0')}]"
            places = f"AscendC::DataCopyExtParams{{1, {in_bytes('rows', 'float')}, 0, 0, 0}}"
            self.code.add(f"AscendC::DataCopyPad({local}, {source}, {places}, {{false, 0, 0, 0.0f}});")
            return
        gap = "0" if access.kept[-1] == "t.length" else in_bytes(f"({access.kept[-1]} - t.length)", "float")
        if not access.flat and not access.kept[-1].startswith("t."):
            with self.code.block("for (uint32_t r = 0; r < rows; ++r)"):
                self.code.add(*self.indices("(row + r)", [access]))
                self.load(access, f"{local}[r * t.pitch]", "t.length", self.offset(access, "(row + r)", "0"))
            return
        if not access.flat:  # one copy brings the rows up to the end of the innermost axis
            with self.code.block("for (uint32_t r = 0, some = 0; r < rows; r += some)"):
                self.code.add(*self.indices("(row + r)", [access]))
                self.code.add(f"some = Min(rows - r, t.{self.nest.kept[-1]} - i{len(self.nest.kept) - 1});")
                source = f"{access.buffer}Gm[{self.offset(access, '(row + r)', '0')}]"
                places = f"AscendC::DataCopyExtParams{{{self._rows(gap, 't.gap', 'some')}}}"
                padding = self.padding(access, "t.length")
                self.code.add(f"AscendC::DataCopyPad({local}[r * t.pitch], {source}, {places}, {{{padding}}});")
            return
        source = f"{access.buffer}Gm[{self.offset(access, 'row', '0')}]"
        self.code.add(
            f"const AscendC::DataCopyExtParams {access.label}Rows{{{self._rows(gap, 't.gap')}}};",
            f"AscendC::DataCopyPad({local}, {source}, {access.label}Rows, {{{self.padding(access, 't.length')}}});",
        )

    def _rows(self, source: str, target: str, rows: str = "rows") -> str:
        return f"static_cast<uint16_t>({rows}), {in_bytes('t.length', 'float')}, {source}, {target}, 0"

    def _compute(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        out, queue = f"{self.store.label}Local", f"{self.store.label}Queue"
        add("")
        with self.code.function("__aicore__ inline void Compute(uint32_t row, uint32_t rows)"):
            for access in self.queued_loads():
                add(self.take(access, f"{access.label}Queue"))
            add(spell("queue.alloc", type="float", tensor=out, queue=queue))
            mark = len(self.code.lines)
            body = self._tile(out)
            self.declare_work(body, mark)
            add(spell("queue.enque", queue=queue, tensor=out))
            for access in self.queued_loads():
                add(spell("queue.free", queue=f"{access.label}Queue", tensor=f"{access.label}Local"))
        for reduction in sorted({step.reduction for step in self.nest.steps if step.reduction}):
            order = "" if reduction == "sum" else ", AscendC::ReduceOrder::ORDER_ONLY_VALUE"
            text = _REDUCE.format(name=reduction.capitalize(), neutral=NEUTRAL[reduction], order=order)
            add("", *text.split("\n"))

    def _tile(self, out: str) -> RowsBody:
        """Write the steps on a tile and return their writer."""
        kinds, root = kinds_of(self.nest), self.nest.stores[0].step
        assert kinds is not None
        body = RowsBody(self.spelling, self.nest, self.code, "rows * t.pitch", "rows * t.pitch", kinds=kinds)
        body.spread = self.short
        body.reduce = lambda index: self._reduce(body, index)
        for index, access in self.numbers():
            body.values[index] = Operand(body.row_place(), True)
            fields = {"dst": body.values[index].text, "src": f"{access.label}Local", "n": "rows"}
            self.code.add(self.spelling.spell("tensor.copy", **fields))
        for index, access in [item for item in self.loads(vector=False) if item not in self.numbers()]:
            fields = {"gm": f"{access.buffer}Gm", "offset": self.offset(access, "row", "0")}
            self.code.add(self.spelling.spell("gm.element", name=f"{access.label}Value", **fields))
            body.values[index] = Operand(f"{access.label}Value", False)
        for index, access in self.own():
            body.values[index] = Operand(f"{access.label}Local", True)
        for index, access in self.shared():
            body.values[index] = Operand(f"{access.label}Shared", True)
        steps = [index for index, step in enumerate(self.nest.steps) if not step.access]
        if self.whole:
            body.run(steps, homes={root: out})
        else:
            body.run(steps, keep=[root])
            self.code.add(self.spelling.spell("tensor.copy", dst=out, src=body.values[root].text, n="rows"))
        return body

    def _reduce(self, body: RowsBody, index: int) -> None:
        step = self.nest.steps[index]
        home = body.row_place()
        name = (step.reduction or "sum").capitalize()
        self.code.add(f"Reduce{name}({home}, {body.operand(step.arguments[0]).text}, rows);")
        body.values[index] = Operand(home, True)

    def _copy_out(self) -> None:
        out, queue, add = f"{self.store.label}Local", f"{self.store.label}Queue", self.code.add
        target = f"{self.store.buffer}Gm[{self.offset(self.store, 'row', '0')}]"
        one = f"1, {in_bytes('rows', 'float')}, 0, 0, 0"
        add("")
        with self.code.function("__aicore__ inline void CopyOut(uint32_t row, uint32_t rows)"):
            add(self.take(self.store, queue))
            add(f"const AscendC::DataCopyExtParams places{{{self._rows('t.gap', '0') if self.whole else one}}};")
            add(f"AscendC::DataCopyPad({target}, {out}, places);")
            add(self.spelling.spell("queue.free", queue=queue, tensor=out))

    # ---- sizes -------------------------------------------------------------------------------------------------

    def declare_work(self, body: Body, mark: int) -> None:
        assert isinstance(body, RowsBody)
        self.work, self.stats = body.work_count, body.stat_count
        buffers = {f"work{n}": f"workBuf{n}" for n in range(self.work)}
        buffers |= {f"stat{n}": f"statBuf{n}" for n in range(self.stats)}
        buffers |= {"spread": "spreadBuf"} if self.short else {}
        texts = [
            self.spelling.spell("buffer.get", type="float", tensor=name, buffer=buffer, elements="64")
            for name, buffer in buffers.items()
        ]
        self.code.lines[mark:mark] = [f"        {text}" for text in texts]

    def needs_stat(self) -> bool:
        return False

    def init_lines(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        tile, numbers = "t.batch * t.pitch * sizeof(float)", "Align(t.batch, 64) * sizeof(float)"
        for access in [*self.queued_loads(), self.store]:
            single = access.step == "0" or (access is self.store and not self.whole)
            size = numbers if single else tile
            add(spell("queue.init", queue=f"{access.label}Queue", buffers=self.schedule.buffers, bytes=size))
        for _, access in self.shared():
            add(spell("buffer.init", buffer=f"{access.label}Buf", bytes="t.pitch * sizeof(float)"))
        for n in range(self.work):
            add(spell("buffer.init", buffer=f"workBuf{n}", bytes=tile))
        for n in range(self.stats):
            add(spell("buffer.init", buffer=f"statBuf{n}", bytes=numbers))
            if self._compares_numbers:  # a mask also has bits for numbers behind the last row
                add(f"AscendC::Duplicate(statBuf{n}.Get<float>(), 0.0f, Align(t.batch, 64));")
        if self.short:
            add(spell("buffer.init", buffer="spreadBuf", bytes="Align(t.batch, 8) * 32"))
        add(spell("buffer.init", buffer="partBuf", bytes="t.batch * (t.pitch / 8 + t.pitch / 64) * sizeof(float)"))

    def members(self) -> None:
        super().members()
        names = ", ".join(["partBuf", *["spreadBuf"] * self.short, *(f"statBuf{n}" for n in range(self.stats))])
        self.code.add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {names};")

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "gap", "batch", "units", "perCore")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        library = any(step.function in LIBRARY for step in self.nest.steps)
        tiles = self.schedule.buffers * (len(self.own()) + self.whole) + self.work
        each, fixed = 4 * tiles + 1 + 16 * library, 4 * len(self.shared())
        code.add(f"const uint32_t rows = {self.total_rows()};")
        code.add(f"const uint32_t unit = t.length > {SHORT} ? {UNIT} : 64;")
        code.add("t.pitch = (t.length + unit - 1) / unit * unit;", "t.gap = t.pitch / 8 - (t.length + 7) / 8;")
        numbers = 1024 * (self.stats + self.schedule.buffers * len(self.numbers())) + 8192 * self.short
        room = f"({BUDGET - 4096 - numbers} - {fixed} * t.pitch) / ({each} * t.pitch)"
        code.add(f"t.batch = AtMost(AtMost({room}, {255 * 64} / t.pitch), (rows + {self.shares - 1}) / {self.shares});")
        code.add(f"t.units = {self.spelling.spell('loop.remainder', length='rows', tile='t.batch')};")
        self.call(code)
