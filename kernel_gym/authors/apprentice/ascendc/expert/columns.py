"""Reductions over another axis than the last: several of its elements are loaded and added up together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext

from kernel_gym.authors.apprentice.ascendc.body import BINARY, COMPARING, Body, Operand
from kernel_gym.authors.apprentice.ascendc.expert.rows import NEUTRAL, RowsBody
from kernel_gym.authors.apprentice.ascendc.nest import in_bytes
from kernel_gym.authors.apprentice.ascendc.passes import MERGE, PassWriter
from kernel_gym.authors.apprentice.ascendc.short_rows import BURSTS
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Ref, Step

#: The host's choice of columns.
COLUMNS = """\
// Chooses how many columns a unit has so that the busiest of 48 cores has least to do.
static uint32_t EvenColumns(uint32_t rows, uint32_t length, uint32_t most)
{
    uint32_t best = 64, least = ~0u;
    for (uint32_t columns = AtMost((length + 63) / 64, most / 64) * 64; columns >= 64; columns -= 64) {
        const uint32_t units = rows * ((length + columns - 1) / columns);
        const uint32_t busiest = (units + 47) / 48 * (columns + 32);
        if (busiest < least) {
            least = busiest;
            best = columns;
        }
    }
    return best;
}
"""
#: Reductions to an index: the comparison by which what was found before is kept, and the instruction that merges.
KEPT = {"argmax": ("GE", "Max"), "argmin": ("LE", "Min")}
#: Rows shorter than this are taken together whole.
LEAST = 256
#: Most repeats of an instruction, and most columns of a tile for rows to be no farther apart than repeats can be.
REPEATS, WIDEST = 255, 1984


def suits_columns(nest: Nest) -> bool:
    """Return whether columns are reduced along one axis, and all elements of it can be computed in the same way."""
    accesses = [step.access for step in nest.loads if step.access and step.vector]
    indices = all(nest.steps[store.step].reduction in KEPT for store in nest.stores)
    accesses += [] if indices else [store.access for store in nest.stores]
    return (
        not nest.vector_reduced
        and len(nest.reduced) == 1
        and nest.longest >= LEAST
        and all(access.step == "1" and access.dtype == "float32" for access in accesses)
        # The windows of a pooling overlap: their elements along the axis are not rows one behind the other.
        and all(access.reduced[0] == "0" or access.reduced[0].startswith("t.") for access in accesses)
        and not any(step.function in COMPARING for step in nest.steps)
        and all(step.level <= 1 and step.reduction in (None, *NEUTRAL, *KEPT) for step in nest.steps)
        and all(_alike(nest, step) for step in nest.steps if step.inside or step.reduction)
    )


def _alike(nest: Nest, step: Step) -> bool:
    """Return whether a step is the same for all elements of the axis but for its vectors."""
    arguments = [nest.steps[argument.step] for argument in step.arguments if isinstance(argument, Ref)]
    shared, inside = _shared(nest, step), [argument for argument in arguments if argument.inside]
    if step.reduction or not shared:
        return step.vector and not step.index and not shared and all(argument.vector for argument in inside)
    return step.function in BINARY and len(shared) == 1 and len(inside) == 1


def _shared(nest: Nest, step: Step) -> list[Step]:
    """Return the arguments of a step that are the same vector for all elements of the axis."""
    arguments = [nest.steps[argument.step] for argument in step.arguments if isinstance(argument, Ref)]
    return [argument for argument in arguments if argument.vector and not argument.inside]


class ColumnsBody(RowsBody):
    """Writes steps on a tile of rows, with a vector that all rows share by one instruction for 64 columns."""

    def _along_rows(self, index: int, other: int, home: str) -> None:
        step = self.nest.steps[index]
        shared = [argument == Ref(other) for argument in step.arguments]
        texts = ", ".join(f"{self.operand(argument).text}[c]" for argument in step.arguments)
        gaps = ", ".join("0" if each else "gap" for each in shared)
        with self.code.block("for (uint32_t c = 0; c < columns; c += 64)"):
            self.code.add("const uint8_t gap = static_cast<uint8_t>(pitch / 8);")
            places = f"Min(64, columns - c), rows, {{1, 1, 1, gap, {gaps}}}"
            self.code.add(f"AscendC::{BINARY[step.function]}({home}[c], {texts}, {places});")
        self.values[index] = Operand(home, True)


class ColumnTileWriter(PassWriter):
    """Writes a reduction over an axis. A unit of work is some columns, of which a tile has `batch` elements each.

    Where a tile has the whole axis, it stays on chip until the results are written.
    """

    #: Comparisons read whole repeats of 64, which a tile has: its rows are followed by others, or by nothing.
    masked = False

    def body(self, count: str, exact: str) -> Body:
        kinds = ["tile" if step.inside else "shared" if step.vector else "number" for step in self.nest.steps]
        return ColumnsBody(self.spelling, self.nest, self.code, count, exact, kinds=kinds)

    def held(self) -> list[Access]:
        """Return the loads of both passes."""
        if not self.whole:
            return []
        steps = self._needed([index for index, step in enumerate(self.nest.steps) if step.reduction])
        again = self._needed([self.root])
        both = [self.nest.steps[index].access for index in steps if index in again]
        return [access for access in both if access]

    def _unit(self) -> None:
        self.code.add("const uint32_t columns = count, pitch = Align(count, 8);")
        for access in self.held():
            self.code.add(f"AscendC::LocalTensor<float> {access.label}Local;")
        super()._unit()

    @contextmanager
    def _loop(self, body: Body, steps: list[int]) -> Iterator[list[int]]:
        again, spell = self.root in steps, self.spelling.spell
        held, accesses = self.held(), [(n, access) for n in steps if (access := self.nest.steps[n].access)]
        with self._tiles():
            for index, access in accesses:
                queue, local = f"{access.label}Queue", f"{access.label}Local"
                with self._parted() if again and access in held else nullcontext():
                    self.copy_in(access, queue, "count", self._offset(access))
                    text = self.take(access, queue)
                    self.code.add(text if access not in held else f"{local} = {queue}.DeQue<float>();")
                body.values[index] = Operand(local, True)
            yield [index for index in steps if not self.nest.steps[index].access]
            for _, access in accesses:
                with self._parted() if not again and access in held else nullcontext():
                    self.code.add(spell("queue.free", queue=f"{access.label}Queue", tensor=f"{access.label}Local"))

    def _parted(self) -> AbstractContextManager[None]:
        """Write a condition: a tile that does not have the whole axis is loaded for each pass."""
        return self.code.block(f"if (t.batch < t.{self.nest.reduced[0]})")

    @contextmanager
    def _tiles(self) -> Iterator[None]:
        axis = self.nest.reduced[0]
        with self.code.block(f"for (uint32_t axis = 0; axis < t.{axis}; axis += t.batch)"):
            self.code.add(f"const uint32_t rows = Min(t.batch, t.{axis} - axis), count = rows * pitch;")
            yield

    def _pass(self, body: Body, level: int) -> None:
        super()._pass(body, level)
        for index, step in enumerate(self.nest.steps):
            if step.reduction in KEPT and step.level == level:
                self._fold_indices(body, index)
            elif step.reduction and step.level == level:
                home, merge = body.values[index].text, MERGE[step.reduction]
                with self.code.block("for (uint32_t rows = t.batch, half; rows > 1; rows = half)"):
                    self.code.add("half = (rows + 1) / 2;")
                    self.code.add(f"AscendC::{merge}({home}, {home}, {home}[half * pitch], (rows - half) * pitch);")

    def _accumulate_index(self, body: Body, index: int, source: Operand) -> None:
        """Write the comparison of a tile with the best so far; an index is that of the tile's first row."""
        keeps, merge = KEPT[self.nest.steps[index].reduction or ""]
        home, best, mask = body.values[index].text, self.best[index], body.place()
        bits = f"{mask}.ReinterpretCast<uint8_t>()"
        body._mask(bits, keeps, [Operand(best, True), source])
        body._select(home, bits, home, self.spelling.spell("cast.unsigned", number="axis"), False)
        self.code.add(f"AscendC::{merge}({best}, {best}, {source.text}, {body.count});")
        body.free.append(mask)

    def _fold_indices(self, body: Body, index: int) -> None:
        """Write the choice among rows, halves of them at a time; of equal elements the first one is taken."""
        keeps, merge = KEPT[self.nest.steps[index].reduction or ""]
        best = self.best[index]
        body.free = [name for name in body.free if name != best]  # no step has it, but it is still needed
        home, mask, first = body.values[index].text, body.place(), body.place()
        bits, columns = f"{mask}.ReinterpretCast<uint8_t>()", body.count
        with self.code.block("for (uint32_t rows = t.batch, half; rows > 1; rows = half)"):
            self.code.add("half = (rows + 1) / 2;", "const uint32_t count = (rows - half) * pitch;")
            body.count = "count"
            other, better = Operand(f"{home}[half * pitch]", True), Operand(f"{best}[half * pitch]", True)
            shift = self.spelling.spell("cast.unsigned", number="half")
            self.code.add(f"AscendC::Adds({other.text}, {other.text}, {shift}, count);")
            self.code.add(f"AscendC::Min({first}, {home}, {other.text}, count);")
            body._mask(bits, keeps, [Operand(best, True), better])
            body._select(home, bits, home, other.text, True)
            body._mask(bits, "EQ", [Operand(best, True), better])
            body._select(home, bits, first, home, True)
            self.code.add(f"AscendC::{merge}({best}, {best}, {better.text}, count);")
        body.count = columns
        body.free += [best, mask, first]

    def _start(self, body: Body, index: int) -> None:
        columns, body.count = body.count, "t.batch * pitch"
        super()._start(body, index)
        body.count = columns

    def load(self, access: Access, local: str, count: str, offset: str) -> None:
        rows, gap = self._spaced(access)
        place = f"{rows}, {in_bytes('columns', 'float')}, {gap}, 0, 0"
        self.code.add(
            f"const AscendC::DataCopyExtParams {access.label}Rows{{{place}}};",
            f"AscendC::DataCopyPad({local}, {access.buffer}Gm[{offset}], {access.label}Rows, {{false, 0, 0, 0.0f}});",
        )

    def copy_out_text(self, access: Access, local: str, offset: str, count: str) -> str:
        rows, gap = self._spaced(access)
        place = f"{rows}, {in_bytes('columns', self.ctype(access))}, 0, {gap}, 0"
        return f"AscendC::DataCopyPad({access.buffer}Gm[{offset}], {local}, AscendC::DataCopyExtParams{{{place}}});"

    def _spaced(self, access: Access) -> tuple[str, str]:
        """Return how many rows of an access a tile has, and the bytes between them."""
        pitch = access.reduced[0]
        return (
            ("1", "0") if pitch == "0" else ("static_cast<uint16_t>(rows)", in_bytes(f"({pitch} - columns)", "float"))
        )

    def tile_text(self) -> str:
        return "t.batch * t.tile"

    def tile_fields(self) -> tuple[str, ...]:
        return ("batch", *super().tile_fields())

    def fit_tile(self, code: CodeWriter, total: str, share: int) -> None:
        room, axis = self.capacity(), f"t.{self.nest.reduced[0]}"
        rows = " * ".join(f"t.{name}" for name in self.nest.kept) or "1"
        shared = any(_shared(self.nest, step) for step in self.nest.steps if step.inside)
        widest = WIDEST if shared else room
        most = f"{axis} * 64 <= {room} ? AtMost({room} / {axis}, {widest}) : {widest}" if self.held() else f"{widest}"
        code.add(f"t.tile = EvenColumns({rows}, t.length, {most});")
        code.add(f"t.batch = AtMost({room} / t.tile, AtMost({axis}, {REPEATS if shared else BURSTS}));")
