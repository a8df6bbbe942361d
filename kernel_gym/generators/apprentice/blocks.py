"""Elementwise nests whose rows are short: many rows make one tile."""

from __future__ import annotations

from kernel_gym.generators.apprentice.maps import MapWriter
from kernel_gym.generators.apprentice.plan import Access, Nest
from kernel_gym.generators.apprentice.script import Script

#: Rows up to this length are taken together.
SHORT = 2048
#: Bursts of one copy.
BURSTS = 4095


class BlockWriter(MapWriter):
    """A unit of work is a block of neighbouring rows; on chip each row begins on a block of 32 bytes.

    `row` counts along the innermost kept loop, `outer` along all others together.
    """

    @staticmethod
    def suits(nest: Nest) -> bool:
        """True if rows are short and every operand has them evenly spaced."""
        vectors = [step.access for step in nest.loads if step.access and step.access.step != "0"]
        numbers = [step.access for step in nest.loads if step.access and step.access.step == "0"]
        walks = [*vectors, *(store.access for store in nest.stores)]
        return (
            bool(nest.kept)
            and nest.longest <= SHORT
            and not any(step.index for step in nest.steps)
            and all(access.step == "1" and access.kept[-1] != "0" and access.dtype == "float32" for access in walks)
            and all(access.kept[-1] == "0" for access in numbers)
            and all(access.kept[-1].startswith("t.") for access in walks)
        )

    def _loop(self) -> None:
        add = self.script.add
        with self.script.function("__aicore__ inline void Process()"):
            self.core_share()
            with self.script.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add(
                    "const uint32_t row = (unit % t.blocks) * t.batch;",
                    f"const uint32_t rows = Min(t.batch, t.{self._last} - row);",
                )
                outer = ["unit / t.blocks"]
                if self.loads(vector=True):
                    add(f"CopyIn({', '.join([*outer, 'row', 'rows'])});")
                needs_outer = any(stride != "0" for _, access in self.loads(vector=False) for stride in access.kept)
                add(f"Compute({', '.join([*(outer if needs_outer else []), 'rows * t.pitch'])});")
                add(f"CopyOut({', '.join([*outer, 'row', 'rows'])});")

    @property
    def _last(self) -> str:
        return self.nest.kept[-1]

    def _compute_names(self) -> list[str]:
        numbers = [access for _, access in self.loads(vector=False)]
        return ["outer"] * any(stride != "0" for access in numbers for stride in access.kept) + ["count"]

    def indices(self, row: str, accesses: list[Access]) -> list[str]:
        """Statements that take the number of all outer loops together apart."""
        names = self.nest.kept[:-1]
        lines = []
        for n in range(len(names)):
            if any(access.kept[n] != "0" for access in accesses):
                inside = " * ".join(f"t.{name}" for name in names[n + 1 :])
                text = f"outer / ({inside})" if inside else "outer"
                lines.append(
                    f"const uint32_t i{n} = {text};" if n == 0 else f"const uint32_t i{n} = {text} % t.{names[n]};"
                )
        return lines

    def offset(self, access: Access, row: str, start: str, axis: str = "") -> str:
        terms = [access.offset] if access.offset != "0" else []
        strides = access.kept[:-1]
        terms += [f"i{n}" if s == "1" else f"i{n} * {s}" for n, s in enumerate(strides) if s != "0"]
        if access.step != "0":
            terms.append(f"row * {access.kept[-1]}")
        return " + ".join(terms) or "0"

    def _gap(self, access: Access) -> str:
        return "0" if access.kept[-1] == "t.length" else f"({access.kept[-1]} - t.length)"

    def _copy_in(self) -> None:
        loads = self.loads(vector=True)
        if not loads:
            return
        self.script.add("")
        with self.script.function("__aicore__ inline void CopyIn(uint32_t outer, uint32_t row, uint32_t rows)"):
            self.script.add(*self.indices("outer", [access for _, access in loads]))
            for _, access in loads:
                say, local, queue = self.voice.say, f"{access.label}Local", f"{access.label}Queue"
                self.script.add(say("queue.alloc", type="float", tensor=local, queue=queue))
                fields = {
                    "dst": local,
                    "src": f"{access.buffer}Gm",
                    "offset": self.offset(access, "row", "0"),
                    "rows": "rows",
                }
                fields |= {"n": "t.length", "gap": self._gap(access), "pad": self.padding(access, "t.length")}
                self.script.add(say("copy.rows-in", type="float", **fields))
                self.script.add(say("queue.enque", queue=queue, tensor=local))

    def _copy_out(self) -> None:
        access = self.nest.stores[0].access
        say, out, queue = self.voice.say, f"{access.label}Local", f"{access.label}Queue"
        self.script.add("")
        with self.script.function("__aicore__ inline void CopyOut(uint32_t outer, uint32_t row, uint32_t rows)"):
            self.script.add(*self.indices("outer", [access]))
            self.script.add(self.take(access, queue))
            fields = {
                "dst": f"{access.buffer}Gm",
                "src": out,
                "offset": self.offset(access, "row", "0"),
                "rows": "rows",
            }
            self.script.add(say("copy.rows-out", type="float", n="t.length", gap=self._gap(access), **fields))
            self.script.add(say("queue.free", queue=queue, tensor=out))

    def tile_text(self) -> str:
        return "Align(t.batch * t.pitch, 64)"

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "batch", "blocks", "units", "perCore")

    def launch(self, script: Script) -> None:
        self.set_fields(script)
        outer = " * ".join(f"t.{name}" for name in self.nest.kept[:-1]) or "1"
        limit = min(BURSTS, self.schedule.batch or BURSTS)
        script.add("t.pitch = (t.length + 7) / 8 * 8;")
        script.add(f"const uint32_t share = {outer} * t.{self._last} / {2 * self.schedule.cores} + 1;")
        script.add(f"t.batch = AtMost(AtMost({self.capacity()} / t.pitch, {limit}), AtMost(share, t.{self._last}));")
        script.add(f"t.blocks = {self.voice.say('loop.remainder', length=f't.{self._last}', tile='t.batch')};")
        script.add(f"t.units = {outer} * t.blocks;")
        self.call(script)

    def capacity(self) -> int:
        return max(SHORT, super().capacity())
