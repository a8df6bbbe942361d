"""Writes lookups and scatters: copies to and from places that another tensor holds."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Lookup, Scatter

#: Elements of entries that are on chip at a time, of the source of single elements, and of their indices.
ENTRIES, SOURCE, INDICES = 8192, 16384, 4096
#: The most bursts of one copy.
BURSTS = 4095
#: Waits until all units are done, the scalar unit too.
ALL_DONE = "AscendC::PipeBarrier<PIPE_ALL>();"
#: What a copy leaves in the last block.
NOTHING, ZEROS = "false, 0, 0, 0", "true, 0, static_cast<uint8_t>(lanes - count), 0"


@dataclass
class EntryWriter(StageWriter):
    """The base of the writers: entries, indices and a target."""

    stage: Lookup | Scatter = field(kw_only=True)

    @property
    def entries(self) -> str:
        """The buffer that entries are read from."""
        return self.stage.source if isinstance(self.stage, Lookup) else self.stage.update

    def buffers_used(self) -> list[tuple[str, str]]:
        names = dict.fromkeys((self.entries, self.stage.index, self.stage.target))
        return [(name, "float") for name in names]

    def fields(self) -> list[tuple[str, str]]:
        return list(self.stage.fields)

    def place(self, j: str) -> str:
        """Return the index of an entry, read by the scalar unit."""
        return f"static_cast<uint32_t>({self.stage.index}Gm.GetValue(row % t.indexRows * t.count + {j}))"

    def copy_in(self, local: str, buffer: str, offset: str, n: str, pad: str = NOTHING) -> None:
        """Write the copy of elements that lie side by side."""
        fields = {"dst": local, "src": f"{buffer}Gm", "offset": offset, "n": n, "pad": pad}
        self.code.add(self.spelling.spell("copy.in", type="float", **fields))

    def copy_out(self, local: str, offset: str, n: str) -> None:
        """Write the copy to the target."""
        fields = {"dst": f"{self.stage.target}Gm", "src": local, "offset": offset, "n": n}
        self.code.add(self.spelling.spell("copy.out", type="float", **fields))

    def loaded(self, queue: str, buffer: str, offset: str, n: str, pad: str = NOTHING) -> None:
        """Write the copy of elements through a queue into `queue`Local."""
        spell, add = self.spelling.spell, self.code.add
        add(spell("queue.alloc", type="float", tensor=f"{queue}In", queue=f"{queue}Queue"))
        self.copy_in(f"{queue}In", buffer, offset, n, pad)
        add(spell("queue.enque", queue=f"{queue}Queue", tensor=f"{queue}In"))
        add(spell("queue.deque", type="float", tensor=f"{queue}Local", queue=f"{queue}Queue"))

    def freed(self, *queues: str) -> None:
        """Write the return of the queues' tensors."""
        self.code.add(*(self.spelling.spell("queue.free", queue=f"{q}Queue", tensor=f"{q}Local") for q in queues))

    def queue(self, name: str, elements: str) -> str:
        """Return the statement that gives a queue its memory."""
        fields = {"queue": f"{name}Queue", "buffers": self.schedule.buffers, "bytes": f"{elements} * sizeof(float)"}
        return self.spelling.spell("queue.init", **fields)

    def tile_fields(self) -> tuple[str, ...]:
        return ("tile", "tiles", "units", "perCore")

    def tiles(self, code: CodeWriter, whole: str, capacity: int, rows: str) -> None:
        """Write the host statements that cut `whole` elements of every row into tiles and share them among cores."""
        wanted = f"AtMost({rows} * {whole} / {2 * self.schedule.cores}, {whole})"
        code.add(self.spelling.spell("tile.fit", wanted=wanted, capacity=capacity))
        code.add(f"t.tiles = {self.spelling.spell('loop.remainder', length=whole, tile='t.tile')};")
        code.add(f"t.units = {rows} * t.tiles;")


class MovedEntriesWriter(EntryWriter):
    """Writes entries of several elements: each is copied on chip and to its place, without a vector instruction."""

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> entryQueue;")


class LookupRowWriter(MovedEntriesWriter):
    """Writes a lookup of entries. A unit of work is a batch of them, which one copy writes."""

    def process(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        with self.code.function("__aicore__ inline void Process()"):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t row = unit / t.batches;", "const uint32_t from = unit % t.batches * t.batch;")
                add("const uint32_t entries = Min(t.batch, t.count - from);")
                with self.code.block("for (uint32_t start = 0; start < t.length; start += t.tile)"):
                    add("const uint32_t count = Min(t.tile, t.length - start);")
                    add(spell("queue.alloc", type="float", tensor="entryIn", queue="entryQueue"))
                    with self.code.block("for (uint32_t j = 0; j < entries; ++j)"):
                        add(f"const uint32_t place = {self.place('from + j')};")
                        offset = "(row * t.axis + place) * t.length + start"
                        self.copy_in("entryIn[j * t.tile]", self.entries, offset, "count")
                    add(spell("queue.enque", queue="entryQueue", tensor="entryIn"))
                    add(spell("queue.deque", type="float", tensor="entryLocal", queue="entryQueue"))
                    fields = {"dst": f"{self.stage.target}Gm", "src": "entryLocal", "rows": "entries", "n": "count"}
                    gap = "static_cast<uint32_t>((t.length - count) * sizeof(float))"
                    offset = "(row * t.count + from) * t.length + start"
                    add(spell("copy.rows-out", type="float", gap=gap, offset=offset, **fields))
                    self.freed("entry")

    def init_lines(self) -> None:
        self.code.add(self.queue("entry", "t.batch * t.tile"))

    def tile_fields(self) -> tuple[str, ...]:
        return ("tile", "batch", "batches", "units", "perCore")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        code.add(f"t.tile = AtMost((t.length + 7) / 8 * 8, {ENTRIES});")
        share = f"(t.rows * t.count + {2 * self.schedule.cores - 1}) / {2 * self.schedule.cores}"
        code.add(f"t.batch = t.tile < t.length ? 1 : AtMost(AtMost({ENTRIES} / t.tile, {share}), t.count);")
        code.add(f"t.batches = {self.spelling.spell('loop.remainder', length='t.count', tile='t.batch')};")
        code.add("t.units = t.rows * t.batches;")
        self.call(code)


class LookupElementWriter(EntryWriter):
    """Writes a lookup of single elements: Gather picks them from the parts of a row, one part after the other.

    An index that lies behind a part picks its last element, and a later part then picks the right one.
    """

    def process(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        with self.code.function("__aicore__ inline void Process()"):
            for name in ("picked", "place", "mask"):
                add(spell("buffer.get", type="float", tensor=name, buffer=f"{name}Buf", elements="t.tile"))
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t row = unit / t.tiles;", "const uint32_t start = unit % t.tiles * t.tile;")
                add("const uint32_t count = Min(t.tile, t.count - start);", "const uint32_t lanes = Align(count, 8);")
                self.loaded("index", self.stage.index, "row % t.indexRows * t.count + start", "count", ZEROS)
                add(spell("queue.alloc", type="float", tensor="outLocal", queue="outQueue"))
                add(spell("tensor.duplicate", dst="outLocal", value="0.0f", n="lanes"))
                with self.code.block(f"for (uint32_t from = 0; from < t.axis; from += {SOURCE})"):
                    self._part()
                add(spell("queue.enque", queue="outQueue", tensor="outLocal"))
                self.freed("index")
                add(spell("queue.deque", type="float", tensor="outReady", queue="outQueue"))
                self.copy_out("outReady", "row * t.count + start", "count")
                add(spell("queue.free", queue="outQueue", tensor="outReady"))

    def _part(self) -> None:
        """Write the picking from one part of the row."""
        add, spell = self.code.add, self.spelling.spell
        add(f"const uint32_t width = Min({SOURCE}, t.axis - from);")
        add(f"const float begin = {spell('cast.unsigned', number='from')};")
        add(f"const float end = {spell('cast.unsigned', number='width - 1')};")
        self.loaded("source", self.entries, "row * t.axis + from", "width")
        add(spell("math.subtract-scalar", dst="place", src="indexLocal", value="begin", minus="-begin", n="lanes"))
        add(spell("math.max-scalar", dst="place", src="place", value="0.0f", n="lanes"))
        add(spell("math.min-scalar", dst="place", src="place", value="end", n="lanes"))
        add(spell("math.scale", dst="place", src="place", value="4.0f", n="lanes"))
        where = "picked.ReinterpretCast<int32_t>()"
        add(spell("cast.round", dst=where, src="place", mode="CAST_RINT", n="lanes"))
        offsets = "picked.ReinterpretCast<uint32_t>()"
        add(spell("gather.offsets", dst="place", src="sourceLocal", offsets=offsets, n="lanes"))
        bits = "mask.ReinterpretCast<uint8_t>()"
        add(spell("compare.scalar", mask=bits, left="indexLocal", value="begin", mode="GE", n="Align(count, 64)"))
        fields = {"dst": "outLocal", "mask": bits, "yes": "place", "no": "outLocal", "n": "lanes"}
        add(spell("select.mask", mode="VSEL_TENSOR_TENSOR_MODE", **fields))
        self.freed("source")

    def init_lines(self) -> None:
        self.code.add(self.queue("source", str(SOURCE)), self.queue("index", "t.tile"), self.queue("out", "t.tile"))
        for name in ("picked", "place", "mask"):
            self.code.add(self.spelling.spell("buffer.init", buffer=f"{name}Buf", bytes="t.tile * sizeof(float)"))

    def queue(self, name: str, elements: str) -> str:
        bytes_ = f"{elements} * sizeof(float)"
        return self.spelling.spell("queue.init", queue=f"{name}Queue", buffers=1, bytes=bytes_)

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 1> sourceQueue, indexQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;")
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> pickedBuf, placeBuf, maskBuf;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        self.tiles(code, "t.count", min(INDICES, self.schedule.tile or INDICES), "t.rows")
        self.call(code)


class ShortLookupWriter(EntryWriter):
    """Writes a lookup of single elements at the same places of all rows, which are short.

    A unit of work is a batch of rows. The places in a batch are computed once, and one Gather picks its elements.
    """

    def process(self) -> None:
        add, spell = self.code.add, self.spelling.spell
        with self.code.function("__aicore__ inline void Process()"):
            add("const uint32_t count = t.count, lanes = t.pitch;")
            for name in ("picked", "place"):
                add(spell("buffer.get", type="float", tensor=name, buffer=f"{name}Buf", elements="t.tile"))
            self.loaded("index", self.stage.index, "0", "count", ZEROS)
            with self.code.block("for (uint32_t r = 0; r < t.batch; ++r)"):
                add(f"const float ahead = {spell('cast.unsigned', number='r * t.axis')};")
                add(spell("math.add-scalar", dst="place[r * lanes]", src="indexLocal", value="ahead", n="lanes"))
            self.freed("index")
            add(spell("math.scale", dst="place", src="place", value="4.0f", n="t.tile"))
            places = "picked.ReinterpretCast<int32_t>()"
            add(spell("cast.round", dst=places, src="place", mode="CAST_RINT", n="t.tile"))
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                self._batch()

    def _batch(self) -> None:
        """Write the picking from one batch of rows."""
        add, spell = self.code.add, self.spelling.spell
        add("const uint32_t start = unit * t.batch, rows = Min(t.batch, t.rows - start);")
        self.loaded("source", self.entries, "start * t.axis", "rows * t.axis")
        add(spell("queue.alloc", type="float", tensor="outLocal", queue="outQueue"))
        offsets = "picked.ReinterpretCast<uint32_t>()"
        add(spell("gather.offsets", dst="outLocal", src="sourceLocal", offsets=offsets, n="rows * lanes"))
        add(spell("queue.enque", queue="outQueue", tensor="outLocal"))
        self.freed("source")
        add(spell("queue.deque", type="float", tensor="outReady", queue="outQueue"))
        fields = {"dst": f"{self.stage.target}Gm", "src": "outReady", "offset": "start * count", "n": "count"}
        add(spell("copy.rows-out", type="float", rows="rows", gap="0", **fields))
        add(spell("queue.free", queue="outQueue", tensor="outReady"))

    def init_lines(self) -> None:
        sizes = {"source": str(SOURCE // 2), "index": "t.pitch", "out": "t.tile"}
        self.code.add(*(self.queue(name, elements) for name, elements in sizes.items()))
        for name in ("picked", "place"):
            self.code.add(self.spelling.spell("buffer.init", buffer=f"{name}Buf", bytes="t.tile * sizeof(float)"))

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 1> sourceQueue, indexQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECOUT, 1> outQueue;")
        self.code.add("AscendC::TBuf<AscendC::TPosition::VECCALC> pickedBuf, placeBuf;")

    def tile_fields(self) -> tuple[str, ...]:
        return ("pitch", "batch", "tile", "units", "perCore")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        code.add("t.pitch = (t.count + 7) / 8 * 8;")
        with code.block(f"if (t.pitch > {INDICES} || t.axis > {SOURCE // 2})"):
            code.add("return 1;")
        share = f"(t.rows + {2 * self.schedule.cores - 1}) / {2 * self.schedule.cores}"
        code.add(f"t.batch = AtMost(AtMost({INDICES} / t.pitch, {SOURCE // 2} / t.axis), AtMost({share}, {BURSTS}));")
        code.add("t.tile = t.batch * t.pitch;", "t.units = (t.rows + t.batch - 1) / t.batch;")
        self.call(code)


class ScatterRowWriter(MovedEntriesWriter):
    """Writes a scatter of entries. A core has a part of the elements of every entry, so their order is kept."""

    def process(self) -> None:
        add = self.code.add
        adds = isinstance(self.stage, Scatter) and self.stage.adds
        with self.code.function("__aicore__ inline void Process()"):
            self.core_share()
            if adds:
                add("AscendC::SetAtomicAdd<float>();")
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t row = unit / t.tiles;", "const uint32_t start = unit % t.tiles * t.tile;")
                add("const uint32_t count = Min(t.tile, t.length - start);")
                with self.code.block("for (uint32_t j = 0; j < t.count; ++j)"):
                    add(f"const uint32_t place = {self.place('j')};")
                    self.loaded("entry", self.entries, "(row * t.count + j) * t.length + start", "count")
                    self.copy_out("entryLocal", "(row * t.axis + place) * t.length + start", "count")
                    self.freed("entry")
            if adds:
                add("AscendC::SetAtomicNone();")

    def init_lines(self) -> None:
        self.code.add(self.queue("entry", "t.tile"))

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        self.tiles(code, "t.length", ENTRIES, "t.rows")
        self.call(code)


class ScatterElementWriter(EntryWriter):
    """Writes a scatter of single elements: the scalar unit writes to a part of a row on chip."""

    def process(self) -> None:
        add = self.code.add
        with self.code.function("__aicore__ inline void Process()"):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t row = unit / t.tiles;", "const uint32_t begin = unit % t.tiles * t.tile;")
                add("const uint32_t width = Min(t.tile, t.axis - begin);")
                self.loaded("row", self.stage.target, "row * t.axis + begin", "width")
                with self.code.block(f"for (uint32_t start = 0; start < t.count; start += {INDICES})"):
                    self._part()
                add(ALL_DONE)
                self.copy_out("rowLocal", "row * t.axis + begin", "width")
                self.freed("row")

    def _part(self) -> None:
        """Write the entries of one tile of indices."""
        add, spell = self.code.add, self.spelling.spell
        adds = isinstance(self.stage, Scatter) and self.stage.adds
        add(f"const uint32_t count = Min({INDICES}, t.count - start);")
        self.loaded("index", self.stage.index, "row % t.indexRows * t.count + start", "count")
        self.loaded("update", self.entries, "row * t.count + start", "count")
        add(ALL_DONE)
        with self.code.block("for (uint32_t j = 0; j < count; ++j)"):
            number = spell("local.element", tensor="indexLocal", index="j")
            add(f"const uint32_t place = static_cast<uint32_t>({number}) - begin;")
            with self.code.block("if (place < width)"):
                value = spell("local.element", tensor="updateLocal", index="j")
                if adds:
                    value += f" + {spell('local.element', tensor='rowLocal', index='place')}"
                add(spell("local.write", tensor="rowLocal", index="place", value=value))
        add(ALL_DONE)
        self.freed("index", "update")

    def init_lines(self) -> None:
        sizes = {"row": "t.tile", "index": str(INDICES), "update": str(INDICES)}
        self.code.add(*(self.queue(name, elements) for name, elements in sizes.items()))

    def members(self) -> None:
        super().members()
        self.code.add("AscendC::TQueBind<AscendC::TPosition::VECIN, AscendC::TPosition::VECOUT, 1> rowQueue;")
        self.code.add("AscendC::TQue<AscendC::TPosition::VECIN, 1> indexQueue, updateQueue;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        self.tiles(code, "t.axis", ENTRIES, "t.rows")
        self.call(code)


def entry_writer(stage: Lookup | Scatter) -> type[EntryWriter]:
    """Return the writer of a lookup or a scatter."""
    if isinstance(stage, Lookup):
        return ShortLookupWriter if stage.short else LookupElementWriter if stage.single else LookupRowWriter
    return ScatterElementWriter if stage.single else ScatterRowWriter
