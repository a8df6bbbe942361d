"""Writes elementwise loop nests: one loop over tiles, with copy in, computation and copy out."""

from __future__ import annotations

from kernel_gym.authors.apprentice.ascendc.body import Body, Operand
from kernel_gym.authors.apprentice.ascendc.nest import SCALAR_TO_COPY, NestWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter


class MapWriter(NestWriter):
    """Writes a nest without reductions. A unit of work is one tile of the vector dimension of one row."""

    def process(self) -> None:
        self._loop()
        self._copy_in()
        self._compute()
        self._copy_out()

    @property
    def _rows(self) -> bool:
        return bool(self.nest.kept)

    def _loop(self) -> None:
        add = self.code.add
        row = ["row"] if self._rows else []
        with self.code.function(self.process_head):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                if self._rows:
                    add("const uint32_t row = unit / t.tiles;", "const uint32_t start = (unit % t.tiles) * t.tile;")
                else:
                    add("const uint32_t start = unit * t.tile;")
                add("const uint32_t count = Min(t.tile, t.length - start);")
                if self.loads(vector=True):
                    add(f"CopyIn({', '.join([*row, 'start', 'count'])});")
                add(f"Compute({', '.join(self._compute_names())});")
                add(f"CopyOut({', '.join([*row, 'start', 'count'])});")

    def _compute_names(self) -> list[str]:
        """Return the parameters of `Compute`."""
        positions = [step.index for step in self.nest.steps if step.index]
        numbers = [access for _, access in self.loads(vector=False)] + positions
        row = self._rows and any(stride != "0" for access in numbers for stride in access.kept)
        return ["row"] * row + ["start"] * any(access.step != "0" for access in positions) + ["count"]

    def _copy_parameters(self) -> list[str]:
        return [*(["row"] if self._rows else []), "start", "count"]

    def _parameters(self, *names: str) -> str:
        return ", ".join(f"uint32_t {name}" for name in names)

    def _copy_in(self) -> None:
        loads = self.loads(vector=True)
        if not loads:
            return
        parameters = self._parameters(*self._copy_parameters())
        self.code.add("")
        with self.code.function(f"__aicore__ inline void CopyIn({parameters})"):
            self.code.add(*self.indices("row", [access for _, access in loads]))
            for _, access in loads:
                self.copy_in(access, f"{access.label}Queue", "count", self.offset(access, "row", "start"))

    def _compute(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        store = self.nest.stores[0]
        out = f"{store.access.label}Local"
        self.code.add("")
        parameters = self._parameters(*self._compute_names())
        with self.code.function(f"__aicore__ inline void Compute({parameters})"):
            body = self.body(self.lanes("count"), "count")
            body.position = lambda access: self.offset(access, "row", "start")
            numbers = self.loads(vector=False)
            positions = [step.index for step in self.nest.steps if step.index]
            add(*self.indices("row", [*(access for _, access in numbers), *positions]))
            for index, access in numbers:
                add(
                    spell(
                        "gm.element",
                        name=f"{access.label}Value",
                        gm=f"{access.buffer}Gm",
                        offset=self.offset(access, "row", "0"),
                    )
                )
                body.values[index] = Operand(f"{access.label}Value", False)
            for _, access in self.loads(vector=True):
                add(self.take(access, f"{access.label}Queue"))
            add(spell("queue.alloc", type=self.ctype(store.access), tensor=out, queue=f"{store.access.label}Queue"))
            mark = len(self.code.lines)
            floats = all(
                access.dtype == "float32" for access in [*(a for _, a in self.loads(vector=True)), store.access]
            )
            if not self.schedule.vector and self.nest.scalar_possible and floats and store.access.step == "1":
                self._by_elements(body, out)
            else:
                for index, access in self.loads(vector=True):
                    self.as_float(body, index, access, f"{access.label}Local")
                self._steps(body, out)
            self.declare_work(body, mark)
            add(spell("queue.enque", queue=f"{store.access.label}Queue", tensor=out))
            for _, access in self.loads(vector=True):
                add(spell("queue.free", queue=f"{access.label}Queue", tensor=f"{access.label}Local"))

    def _by_elements(self, body: Body, out: str) -> None:
        """Write a scalar loop over elements, as a beginner does, in place of vector instructions."""
        root = self.nest.stores[0].step
        with self.code.block("for (uint32_t i = 0; i < count; ++i)"):
            for index, access in self.loads(vector=True):
                name = f"{access.label}Value"
                element = self.spelling.spell("local.element", tensor=f"{access.label}Local", index="i")
                self.code.add(f"const float {name} = {element};")
                body.values[index] = Operand(name, False)
            body.run([index for index, step in enumerate(self.nest.steps) if not step.access], keep=[root])
            self.set_element(out, "i", body.values[root].text, "float")
        self.code.add(*SCALAR_TO_COPY)

    def _steps(self, body: Body, out: str) -> None:
        store = self.nest.stores[0]
        steps = [index for index, step in enumerate(self.nest.steps) if not step.access]
        ctype = self.ctype(store.access)
        if store.access.step != "1" and (ctype == "float" or store.access.step != "0"):
            body.run(steps, keep=[store.step])
            self.spread(body, out, body.values[store.step])
            return
        if self.nest.steps[store.step].access:
            source = body.values[store.step]
            if ctype == "float":
                body.code.add(
                    self.spelling.spell("tensor.copy", dst=out, src=source.text, n="count")
                    if source.vector
                    else self.spelling.spell("tensor.duplicate", dst=out, value=source.text, n="count")
                )
                return
        if ctype == "float":
            body.run(steps, homes={store.step: out})
            return
        body.run(steps, keep=[store.step])
        value = body.values[store.step]
        self.convert(body, out, ctype, (value if value.vector else body.repeated(value)).text, "float")

    def _copy_out(self) -> None:
        access = self.nest.stores[0].access
        out, queue = f"{access.label}Local", f"{access.label}Queue"
        parameters = self._parameters(*self._copy_parameters())
        self.code.add("")
        with self.code.function(f"__aicore__ inline void CopyOut({parameters})"):
            self.code.add(*self.indices("row", [access]))
            self.code.add(self.take(access, queue))
            offset = self.offset(access, "row", "start")
            self.code.add(self.copy_out_text(access, out, offset, "count"))
            self.code.add(self.spelling.spell("queue.free", queue=queue, tensor=out))

    def tile_fields(self) -> tuple[str, ...]:
        return ("tile", "tiles", "units", "perCore") if self._rows else super().tile_fields()

    def launch(self, code: CodeWriter) -> None:
        rows = " * ".join(f"t.{name}" for name in self.nest.kept)
        tiles = "t.tiles" if self._rows else "t.units"
        self.set_fields(code)
        self.fit_tile(code, " * ".join(filter(None, [rows, "t.length"])), self.shares)
        code.add(f"{tiles} = {self.spelling.spell('loop.remainder', length='t.length', tile='t.tile')};")
        if self._rows:
            code.add(f"t.units = {rows} * t.tiles;")
        self.call(code)

    def early_units(self) -> str:
        return f"{self.early_rows()} * t.tiles" if self._rows else "tiling.stage0.early * tiling.stage0.n / t.tile"
