"""Reductions over another axis than the last: several of its elements are loaded and added up together."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from kernel_gym.authors.apprentice.ascendc.body import BINARY, COMPARING, Body
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
    uint32_t best = 0, least = ~0u;
    for (uint32_t parts = 1; parts <= 16; ++parts) {
        const uint32_t columns = ((length + parts - 1) / parts + 63) / 64 * 64;
        const uint32_t units = rows * ((length + columns - 1) / columns);
        const uint32_t busiest = (units + 47) / 48 * (columns + 32);
        if (columns <= most && busiest < least) {
            least = busiest;
            best = columns;
        }
    }
    return best == 0 ? most : best;
}
"""
#: Rows shorter than this are taken together whole.
LEAST = 256


def suits_columns(nest: Nest) -> bool:
    """Return whether columns are reduced along one axis, and all elements of it can be computed in the same way."""
    accesses = [step.access for step in nest.loads if step.access and step.vector]
    accesses += [store.access for store in nest.stores]
    return (
        not nest.vector_reduced
        and len(nest.reduced) == 1
        and nest.longest >= LEAST
        and all(access.step == "1" and access.dtype == "float32" for access in accesses)
        # The windows of a pooling overlap: their elements along the axis are not rows one behind the other.
        and all(access.reduced[0] == "0" or access.reduced[0].startswith("t.") for access in accesses)
        and not any(step.function in COMPARING for step in nest.steps)
        and all(step.level <= 1 and step.reduction in (None, *NEUTRAL) for step in nest.steps)
        and all(_alike(nest, step) for step in nest.steps if step.inside or step.reduction)
    )


def _alike(nest: Nest, step: Step) -> bool:
    """Return whether a step is the same for all elements of the axis but for its vectors."""
    arguments = [nest.steps[argument.step] for argument in step.arguments if isinstance(argument, Ref)]
    shared = [argument for argument in arguments if argument.vector and not argument.inside]
    inside = [argument for argument in arguments if argument.inside]
    if step.reduction or not shared:
        return step.vector and not step.index and not shared and all(argument.vector for argument in inside)
    return step.function in BINARY and len(shared) == 1 and len(inside) == 1


class ColumnTileWriter(PassWriter):
    """Writes a reduction over an axis. A unit of work is some columns, of which a tile has `batch` elements each."""

    def body(self, count: str, exact: str) -> Body:
        kinds = ["tile" if step.inside else "shared" if step.vector else "number" for step in self.nest.steps]
        return RowsBody(self.spelling, self.nest, self.code, count, exact, kinds=kinds, length="columns", pitch="pitch")

    def _unit(self) -> None:
        self.code.add("const uint32_t columns = count, pitch = Align(count, 8);")
        super()._unit()

    @contextmanager
    def _tiles(self) -> Iterator[None]:
        axis = self.nest.reduced[0]
        with self.code.block(f"for (uint32_t axis = 0; axis < t.{axis}; axis += t.batch)"):
            self.code.add(f"const uint32_t rows = Min(t.batch, t.{axis} - axis), count = rows * pitch;")
            yield

    def _pass(self, body: Body, level: int) -> None:
        super()._pass(body, level)
        for index, step in enumerate(self.nest.steps):
            if step.reduction and step.level == level:
                home, merge = body.values[index].text, MERGE[step.reduction]
                with self.code.block("for (uint32_t rows = t.batch, half; rows > 1; rows = half)"):
                    self.code.add("half = (rows + 1) / 2;")
                    self.code.add(f"AscendC::{merge}({home}, {home}, {home}[half * pitch], (rows - half) * pitch);")

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
        place = f"{rows}, {in_bytes('columns', 'float')}, 0, {gap}, 0"
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
        rows = " * ".join(f"t.{name}" for name in self.nest.kept) or "1"
        code.add(f"t.tile = EvenColumns({rows}, t.length, {self.capacity()});")
        code.add(f"t.batch = AtMost({self.capacity()} / t.tile, AtMost(t.{self.nest.reduced[0]}, {BURSTS}));")
