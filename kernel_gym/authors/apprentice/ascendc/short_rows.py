"""Writes nests with short rows: many rows are copied and computed together, as one tile."""

from __future__ import annotations

from kernel_gym.authors.apprentice.ascendc.body import COMPARING
from kernel_gym.authors.apprentice.ascendc.maps import MapWriter
from kernel_gym.authors.apprentice.ascendc.nest import NestWriter, in_bytes, near, place
from kernel_gym.authors.apprentice.ascendc.passes import PassWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest

#: Rows up to this length are handled together.
SHORT = 2048
#: The most bursts of one copy.
BURSTS = 4095


def suits(nest: Nest) -> bool:
    """Return whether rows are short and every operand has them evenly spaced along the innermost kept loop."""
    vectors = [step.access for step in nest.loads if step.access and step.access.step != "0"]
    numbers = [step.access for step in nest.loads if step.access and step.access.step == "0"]
    stores = [store.access for store in nest.stores]
    # A mask also reads the padding of a row, which gathered elements do not have.
    compares = any(step.function in COMPARING or (step.reduction or "").startswith("arg") for step in nest.steps)
    even = all(access.step == "1" or (near(access.step) and not compares) for access in vectors)
    steps = even and all(access.step == "1" for access in stores)
    return (
        bool(nest.kept)
        and not nest.vector_reduced
        and nest.longest_anywhere <= SHORT
        and steps
        and not any(step.index and step.index.step != "0" for step in nest.steps)
        and all(_apart(access, nest.longest) and access.dtype == "float32" for access in [*vectors, *stores])
        and all(access.kept[-1] == "0" for access in [*numbers, *(s.index for s in nest.steps if s.index)])
    )


def _apart(access: Access, longest: int) -> bool:
    """Return whether the rows of an operand lie one behind the other; rows of windows may overlap."""
    pitch = access.kept[-1]
    return pitch.startswith("t.") or (pitch.isdigit() and int(pitch) > (longest - 1) * int(access.step))


class ShortRowWriter(NestWriter):
    """The base of the writers for short rows. A unit of work is a block of neighbouring rows.

    On chip each row begins on a block of 32 bytes. `row` counts along the innermost kept loop, `outer` along all other
    kept loops as one.
    """

    @property
    def innermost(self) -> str:
        """The field with the size of the innermost kept loop."""
        return self.nest.kept[-1]

    def indices(self, row: str, accesses: list[Access]) -> list[str]:
        """Return the statements that split `outer` into the indices of the outer kept loops."""
        names = self.nest.kept[:-1]
        lines = []
        for n in range(len(names)):
            if any(access.kept[n] != "0" for access in accesses):
                inside = " * ".join(f"t.{name}" for name in names[n + 1 :])
                several = len(names) - n > 2
                text = f"outer / ({inside})" if several else f"outer / {inside}" if inside else "outer"
                rest = "" if n == 0 else f" % t.{names[n]}"
                lines.append(f"const uint32_t i{n} = {text}{rest};")
        return lines

    def offset(self, access: Access, row: str, start: str, axis: str = "") -> str:
        parts = [(f"i{n}", stride) for n, stride in enumerate(access.kept[:-1]) if stride != "0"]
        single = len(access.reduced) == 1
        parts += [("axis" if single else f"k{n}", stride) for n, stride in enumerate(access.reduced) if stride != "0"]
        if access.step != "0":
            parts.append(("row", access.kept[-1]))
        return place(access.offset, parts)

    def load(self, access: Access, local: str, count: str, offset: str) -> None:
        n = self.span(access)
        fields = {"dst": local, "src": f"{access.buffer}Gm", "offset": offset, "rows": self.loaded_rows(), "n": n}
        fields |= {"gap": _gap(access, n), "pad": self.padding(access, n)}
        self.code.add(self.spelling.spell("copy.rows-in", type="float", **fields))

    def span(self, access: Access) -> str:
        """Return how many elements a row has in memory."""
        return "t.length" if access.step == "1" else f"((t.length - 1) * {access.step} + 1)"

    def loaded_rows(self) -> str:
        """Return how many rows a tile has in memory."""
        return "rows"

    def copy_out_text(self, access: Access, local: str, offset: str, count: str) -> str:
        fields = {"dst": f"{access.buffer}Gm", "src": local, "offset": offset, "rows": "rows"}
        return self.spelling.spell("copy.rows-out", type="float", n="t.length", gap=_gap(access, "t.length"), **fields)

    def tile_text(self) -> str:
        return "Align(t.batch * t.pitch, 64)"

    def queue_bytes(self, access: Access) -> str:
        # The padding of the last row extends past its end.
        return f"(t.batch * Align(t.length * {access.step}, 8) + {8 * int(access.step)}) * sizeof(float)"

    def places_lines(self, access: Access) -> None:
        """Write the byte offsets of elements that are not contiguous, row by row."""
        with self.code.block("for (uint32_t r = 0; r < t.batch; ++r)"):
            begin = f"static_cast<int32_t>(r * Align({self.span(access)[1:-1]}, 8) * sizeof(float))"
            fields = f"{self.places(access)}[r * t.pitch], {begin}, {4 * int(access.step)}, t.pitch"
            self.code.add(f"AscendC::ArithProgression({fields});")

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "batch", "blocks", "units", "perCore")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        outer = " * ".join(f"t.{name}" for name in self.nest.kept[:-1]) or "1"
        limit = min(BURSTS, self.schedule.batch or BURSTS)
        code.add("t.pitch = (t.length + 7) / 8 * 8;")
        code.add(f"const uint32_t share = {outer} * t.{self.innermost} / {self.shares} + 1;")
        code.add(f"t.batch = AtMost(AtMost({self.capacity()} / t.pitch, {limit}), AtMost(share, t.{self.innermost}));")
        code.add(f"t.blocks = {self.spelling.spell('loop.remainder', length=f't.{self.innermost}', tile='t.batch')};")
        code.add(f"t.units = {outer} * t.blocks;")
        self.call(code)

    def early_units(self) -> str:
        if len(self.nest.kept) == 1:
            return "tiling.stage0.early / t.batch"
        return " * ".join(["tiling.stage0.early", *(f"t.{name}" for name in self.nest.kept[1:-1]), "t.blocks"])

    def capacity(self) -> int:
        return max(SHORT, super().capacity())

    def block_loop(self) -> None:
        """Write the statements that find the rows of a unit."""
        self.code.add("const uint32_t row = (unit % t.blocks) * t.batch;")
        self.code.add(f"const uint32_t rows = Min(t.batch, t.{self.innermost} - row);")


class ShortRowMapWriter(ShortRowWriter, MapWriter):
    """Writes an elementwise nest with short rows."""

    def _loop(self) -> None:
        add = self.code.add
        with self.code.function(self.process_head):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                self.block_loop()
                if self.loads(vector=True):
                    add("CopyIn(unit / t.blocks, row, rows);")
                outer = ["unit / t.blocks"] * ("outer" in self._compute_names())
                add(f"Compute({', '.join([*outer, 'rows * t.pitch'])});")
                add("CopyOut(unit / t.blocks, row, rows);")

    def _compute_names(self) -> list[str]:
        numbers = [access for _, access in self.loads(vector=False)] + [s.index for s in self.nest.steps if s.index]
        return ["outer"] * any(stride != "0" for access in numbers for stride in access.kept) + ["count"]

    def _copy_parameters(self) -> list[str]:
        return ["outer", "row", "rows"]


class ShortRowPassWriter(ShortRowWriter, PassWriter):
    """Writes a nest with short rows that reduces over an axis other than the last."""

    def process(self) -> None:
        add = self.code.add
        with self.code.function(self.process_head):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                self.block_loop()
                add("Columns(unit / t.blocks, row, rows);")
        add("")
        with self.code.function("__aicore__ inline void Columns(uint32_t outer, uint32_t row, uint32_t rows)"):
            add("const uint32_t count = rows * t.pitch;")
            self._unit()


def _gap(access: Access, n: str) -> str:
    return "0" if access.kept[-1] == n else in_bytes(f"({access.kept[-1]} - {n})", "float")
