"""Writes lookups and scatters: copies to and from places that another tensor holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.stage import StageWriter
from kernel_gym.authors.apprentice.frontend.plan import Lookup, Scatter


@dataclass
class LookupWriter(StageWriter):
    """Writes a lookup in which one thread copies one element."""

    lookup: Lookup = field(kw_only=True)

    def buffers_used(self) -> dict[str, bool]:
        """Return source, index and target."""
        return {self.lookup.source: False, self.lookup.index: False, self.lookup.target: True}

    def fields(self) -> list[tuple[str, str]]:
        """Return the plan's sizes."""
        return list(self.lookup.fields)

    @property
    def length(self) -> str:
        """The elements of an entry."""
        return "1" if self.lookup.single else self.named("length")

    def body(self) -> None:
        """Write the copy of one element."""
        rows, count, axis, own = (self.named(name) for name in ("rows", "count", "axis", "indexRows"))
        add, index = self.code.add, self.buffer(self.lookup.index)
        add(f"const int i = {self.spelling.spell('index.global')};")
        add(self.spelling.spell("bounds.check", n=f"{rows} * {count} * {self.length}"))
        add(f"const int entry = i / {self.length}, row = entry / {count};")
        add(f"const int place = static_cast<int>({index}[row % {own} * {count} + entry % {count}]);")
        source = f"{self.buffer(self.lookup.source)}[(row * {axis} + place) * {self.length} + i % {self.length}]"
        add(f"{self.buffer(self.lookup.target)}[i] = {source};")

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a thread for each element."""
        self.set_fields(code)
        self.covering(code, f"{self.named('rows')} * {self.named('count')} * {self.length}")
        self.call(code, "blocks", self.spelling.spell("launch.threads", block=self.schedule.block))


@dataclass
class ScatterWriter(StageWriter):
    """Writes a scatter in which one thread writes the same element of all entries of a row, in their order."""

    scatter: Scatter = field(kw_only=True)

    def buffers_used(self) -> dict[str, bool]:
        """Return update, index and target."""
        return {self.scatter.update: False, self.scatter.index: False, self.scatter.target: True}

    def fields(self) -> list[tuple[str, str]]:
        """Return the plan's sizes."""
        return list(self.scatter.fields)

    @property
    def length(self) -> str:
        """The elements of an entry."""
        return "1" if self.scatter.single else self.named("length")

    def body(self) -> None:
        """Write the loop over the entries of a row."""
        rows, count, axis, own = (self.named(name) for name in ("rows", "count", "axis", "indexRows"))
        add, index = self.code.add, self.buffer(self.scatter.index)
        add(f"const int i = {self.spelling.spell('index.global')};")
        add(self.spelling.spell("bounds.check", n=f"{rows} * {self.length}"))
        add(f"const int row = i / {self.length}, inner = i % {self.length};")
        with self.code.block(f"for (int j = 0; j < {count}; ++j)"):
            add(f"const int place = static_cast<int>({index}[row % {own} * {count} + j]);")
            target = f"{self.buffer(self.scatter.target)}[(row * {axis} + place) * {self.length} + inner]"
            update = f"{self.buffer(self.scatter.update)}[(row * {count} + j) * {self.length} + inner]"
            add(f"{target} {'+=' if self.scatter.adds else '='} {update};")

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a thread for each element of an entry."""
        self.set_fields(code)
        self.covering(code, f"{self.named('rows')} * {self.length}")
        self.call(code, "blocks", self.spelling.spell("launch.threads", block=self.schedule.block))
