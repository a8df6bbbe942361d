"""Windows whose rows or columns overlap: lines are loaded once, and the places of a window are found among them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from kernel_gym.authors.apprentice.ascendc.body import Body, Operand
from kernel_gym.authors.apprentice.ascendc.nest import NestWriter
from kernel_gym.authors.apprentice.ascendc.short_rows import BURSTS, ShortRowPassWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest

#: Lines up to this length are taken together, so that those of a window are on chip at the same time.
LONGEST = 512


def suits_windows(nest: Nest) -> bool:
    """Return whether one operand is read in lines in which several places of a window are found."""
    loads = [step.access for step in nest.loads if step.access and step.access.step != "0"]
    return (
        len(loads) == 1
        and _inner_stride(loads[0]) in loads[0].reduced
        and nest.longest_anywhere <= LONGEST
        and not any(step.index for step in nest.steps)
        and all(step.level <= 1 and step.reduction in (None, "sum", "max", "min") for step in nest.steps)
        and not nest.steps[nest.stores[0].step].inside
    )


def _inner_stride(access: Access) -> str:
    """Return the stride from one place to the next that is on chip with it.

    That is the next line, if results are neighbours in their lines, and the next element, if results are some elements
    apart: then lines are loaded with the elements between.
    """
    return access.kept[-1] if access.step == "1" else "1"


class WindowWriter(ShortRowPassWriter):
    """Writes a reduction over windows. A unit of work is some lines of results."""

    @property
    def direct(self) -> bool:
        return False  # the next results are computed while these are written

    @property
    def lines(self) -> Access:
        """The access whose lines are loaded."""
        return self.loads(vector=True)[0][1]

    @property
    def inner(self) -> int:
        """The number of the reduced loop over places that are on chip together."""
        return self.lines.reduced.index(_inner_stride(self.lines))

    @property
    def places_on_chip(self) -> str:
        """How many places the inner loop has."""
        return f"t.{self.nest.reduced[self.inner]}"

    @contextmanager
    def _loop(self, body: Body, steps: list[int]) -> Iterator[list[int]]:
        names, access, inner = self.nest.reduced, self.lines, self.inner
        loops = ["axis"] if len(names) == 1 else [f"k{n}" for n in range(len(names))]
        heads = [f"for (uint32_t {k} = 0; {k} < t.{name}; ++{k})" for k, name in zip(loops, names, strict=True)]
        queue, local = f"{access.label}Queue", f"{access.label}Local"
        with ExitStack() as blocks:
            for number, head in enumerate(heads):
                if number != inner:
                    blocks.enter_context(self.code.block(head))
            strides = tuple("0" if number == inner else stride for number, stride in enumerate(access.reduced))
            self.copy_in(access, queue, "count", self._offset(replace(access, reduced=strides)))
            self.code.add(self.take(access, queue))
            with self.code.block(heads[inner]):
                for index in steps:
                    loaded = self.nest.steps[index].access
                    if loaded and loaded.step == "0":
                        self._number(body, index, loaded)
                    elif loaded:
                        body.values[index] = self._place(body, local, loops[inner])
                yield [index for index in steps if not self.nest.steps[index].access]
            self.code.add(self.spelling.spell("queue.free", queue=queue, tensor=local))

    def _place(self, body: Body, local: str, place: str) -> Operand:
        """Return the elements at one place of every window."""
        if self.lines.step == "1":
            return Operand(f"{local}[{place} * t.pitch]", True)
        home, offsets = body.place(), f"{self.places(self.lines)}.ReinterpretCast<uint32_t>()"
        begin = f"static_cast<uint32_t>({place} * sizeof(float))"
        self.code.add(f"AscendC::Gather({home}, {local}, {offsets}, {begin}, {body.exact});")
        return Operand(home, True)

    def loaded_rows(self) -> str:
        return f"(rows + {self.places_on_chip} - 1)" if self.lines.step == "1" else "rows"

    def span(self, access: Access) -> str:
        return "t.length" if access.step == "1" else f"((t.length - 1) * {access.step} + {self.places_on_chip})"

    def tile_text(self) -> str:
        more = f" + {self.places_on_chip} - 1" if self.lines.step == "1" else ""
        return f"Align((t.batch{more}) * t.pitch, 64)"

    def queue_bytes(self, access: Access) -> str:
        # The padding of the last row extends past its end.
        behind = f"{8 * int(access.step)} + Align({self.places_on_chip}, 8)"
        return f"(t.batch * Align({self.span(access)}, 8) + {behind}) * sizeof(float)"

    def capacity(self) -> int:
        # Not at least a short row, as for others: with the elements between its own it takes up to 16 times as much.
        return NestWriter.capacity(self)

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        outer, rows = " * ".join(f"t.{name}" for name in self.nest.kept[:-1]) or "1", f"t.{self.innermost}"
        lines, room = self.lines.step == "1", self.capacity()
        code.add("t.pitch = (t.length + 7) / 8 * 8;")
        size = "t.pitch" if lines else f"(t.pitch + {self.places_on_chip})"
        code.add(f"const uint32_t room = AtMost({room} / {size}, {BURSTS});")
        code.add(f"const uint32_t reach = {f'{self.places_on_chip} - 1' if lines else '0'};")
        with code.block("if (room <= reach)"):
            code.add("return 1;  // the lines of a window must fit on chip")
        code.add(f"const uint32_t share = {outer} * {rows} / {self.shares} + 1;")
        code.add(f"t.batch = AtMost(room - reach, AtMost(share, {rows}));")
        code.add(f"t.blocks = ({rows} + t.batch - 1) / t.batch;", f"t.batch = ({rows} + t.blocks - 1) / t.blocks;")
        code.add(f"t.units = {outer} * t.blocks;")
        self.call(code)
