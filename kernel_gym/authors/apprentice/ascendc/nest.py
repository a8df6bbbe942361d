"""The base of the writers of loop nests: buffers, copies, offsets and tile sizes.

A nest has kept loops, reduced loops and one vector dimension. A unit of work is a part of the kept loops and of the
vector dimension; units are shared among the cores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.body import COMPARING, LIBRARY, LIBRARY_OF_TWO, Body, Operand
from kernel_gym.authors.apprentice.ascendc.schedule import BUDGET
from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.frontend.plan import Access, Nest, Unsupported

CTYPES = {
    "float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "int8": "int8_t", "uint8": "uint8_t",
    "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "bool": "uint8_t", "uint32": "uint32_t",
}  # fmt: skip
#: Bytes of an element.
WIDTHS = {"float": 4, "half": 2, "bfloat16_t": 2, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "int32_t": 4, "int64_t": 8}

#: The vector unit may start before a copy into a plain buffer has arrived.
COPY_TO_VECTOR = (
    "AscendC::SetFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);",
    "AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID0);",
)
#: What is being copied out must not be overwritten.
COPY_TO_REUSE = (
    "AscendC::SetFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID1);",
    "AscendC::WaitFlag<AscendC::HardEvent::MTE3_V>(EVENT_ID1);",
)
#: A copy may start before the scalar unit has written; the flag makes it wait.
SCALAR_TO_COPY = (
    "AscendC::SetFlag<AscendC::HardEvent::S_MTE3>(EVENT_ID0);",
    "AscendC::WaitFlag<AscendC::HardEvent::S_MTE3>(EVENT_ID0);",
)


@dataclass
class NestWriter(StageWriter):
    """Writes one loop nest as a kernel class. Subclasses write `Process` and the methods it calls."""

    nest: Nest = field(kw_only=True)
    #: How many work tensors the body needs, and whether it computes scalars on the vector unit; set by writing it.
    work: int = 0
    numbers_by_vector: bool = False

    @property
    def ahead(self) -> int:
        """How many tiles are in the queue at a time."""
        return 1

    def ctype(self, access: Access) -> str:
        """Return the C type of a buffer's elements."""
        if access.dtype not in CTYPES:
            raise Unsupported(f"Unsupported: tensors of {access.dtype} in Ascend C")
        return CTYPES[access.dtype]

    def loads(self, *, vector: bool) -> list[tuple[int, Access]]:
        """Return the steps that read vectors (or, if not `vector`, single numbers) from global memory."""
        return [
            (index, step.access)
            for index, step in enumerate(self.nest.steps)
            if step.access and (step.access.step != "0") == vector
        ]

    def accesses(self) -> list[Access]:
        """Return one access for each buffer that the nest reads or writes, inputs first."""
        by_buffer: dict[str, Access] = {}
        for access in [step.access for step in self.nest.loads if step.access] + [s.access for s in self.nest.stores]:
            by_buffer.setdefault(access.buffer, access)
        return list(by_buffer.values())

    # ---- offsets -----------------------------------------------------------------------------------------------

    def offset(self, access: Access, row: str, start: str, axis: str = "") -> str:
        """Return where a tile begins in its buffer."""
        kept = [stride for stride in access.kept if stride != "0"]
        if access.flat and kept:
            parts = [(row, access.kept[-1])]
        else:
            parts = [(f"i{n}", stride) for n, stride in enumerate(access.kept) if stride != "0"]
        single = len(access.reduced) == 1
        parts += [(axis if single else f"k{n}", stride) for n, stride in enumerate(access.reduced) if stride != "0"]
        if start != "0" and access.step != "0":
            parts.append((start, access.step))
        return place(access.offset, parts)

    def indices(self, row: str, accesses: list[Access]) -> list[str]:
        """Return the statements that split a row's number into the indices of the kept loops that offsets need."""
        if all(access.flat for access in accesses):
            return []
        lines, rest = [], row
        names = self.nest.kept
        for n in range(len(names) - 1, -1, -1):
            inside = [f"t.{name}" for name in names[n + 1 :]]
            text = (
                f"{rest} / ({' * '.join(inside)})" if len(inside) > 1 else f"{rest} / {inside[0]}" if inside else rest
            )
            wrapped = text if n == 0 else f"{text} % t.{names[n]}" if not inside else f"({text}) % t.{names[n]}"
            if any(not access.flat and access.kept[n] != "0" for access in accesses):
                lines.append(f"const uint32_t i{n} = {wrapped};")
        return lines

    # ---- pieces ------------------------------------------------------------------------------------------------

    def copy_in(self, access: Access, queue: str, count: str, offset: str) -> None:
        """Write the load of a tile into a queue."""
        local, ctype = f"{access.label}In", self.ctype(access)
        self.code.add(self.spelling.spell("queue.alloc", type=ctype, tensor=local, queue=queue))
        self.load(access, local, count, offset)
        self.code.add(self.spelling.spell("queue.enque", queue=queue, tensor=local))

    def body(self, count: str, exact: str) -> Body:
        """Return a writer of steps on `count` elements, of which `exact` belong to the tensor."""
        return Body(self.spelling, self.nest, self.code, count, exact, immediate=self.schedule.immediate)

    def near(self, access: Access) -> bool:
        """Return whether elements are loaded together with those between them."""
        return self.schedule.bursts and near(access.step)

    def load(self, access: Access, local: str, count: str, offset: str) -> None:
        """Write the copy of a tile from global memory; `as_float` gathers elements that are not contiguous."""
        source, ctype = f"{access.buffer}Gm", self.ctype(access)
        if access.step == "1":
            self.code.add(self.copy_in_text(access, local, offset, count))
        elif access.step == "-1":
            begin = f"{offset} - ({count} - 1)"
            self.code.add(self.copy_in_text(access, local, begin, count))
        elif self.near(access):
            # One long burst with the elements between is faster than many short ones.
            whole = f"(({count} - 1) * {access.step} + 1)"
            self.code.add(self.copy_in_text(access, local, offset, whole))
        else:
            fields = {"dst": local, "src": source, "offset": offset, "n": count, "step": access.step}
            self.code.add(self.spelling.spell("copy.strided-in", type=ctype, **fields))

    def copy_in_text(self, access: Access, local: str, offset: str, n: str) -> str:
        """Return the statement that copies contiguous elements."""
        fields = {"type": self.ctype(access), "dst": local, "src": f"{access.buffer}Gm", "offset": offset, "n": n}
        return self.spelling.spell("copy.in", pad=self.padding(access, n), **fields)

    def copy_out_text(self, access: Access, local: str, offset: str, count: str) -> str:
        """Return the statement that writes a tile."""
        fields = {"dst": f"{access.buffer}Gm", "src": local, "offset": offset, "n": count, "step": access.step}
        idiom = "copy.out" if access.step in "01" else "copy.strided-out"
        return self.spelling.spell(idiom, type=self.ctype(access), **fields)

    def padding(self, access: Access, n: str) -> str:
        """Return how a copy pads its last block: with zeros if a mask reads it."""
        if access.dtype == "bfloat16":
            return ""  # no number converts to it
        tail = f"static_cast<uint8_t>(Align({n}, 8) - {n})"
        return f"true, 0, {tail}, 0" if self.masked and access.dtype == "float32" else "false, 0, 0, 0"

    def lanes(self, count: str) -> str:
        """Return how many elements instructions work on: whole bytes of a mask if there is one."""
        if not self.masked:
            return count
        self.code.add(f"const uint32_t lanes = Align({count}, 8);")
        return "lanes"

    @property
    def masked(self) -> bool:
        """True if the nest compares: a byte of a mask stands for eight elements, so all eight must exist."""
        indexed = (
            any(step.reduction in ("argmax", "argmin") for step in self.nest.steps) and not self.nest.vector_reduced
        )
        return indexed or any(step.function in COMPARING and step.vector for step in self.nest.steps)

    def set_element(self, local: str, index: str, value: str, ctype: str) -> None:
        """Write the statement by which the scalar unit stores one element."""
        text = value if ctype == "float" else f"static_cast<{ctype}>({value})"
        self.code.add(self.spelling.spell("local.write", tensor=local, index=index, value=text))

    def spread(self, body: Body, out: str, value: Operand) -> None:
        """Write the broadcast of every element of the result to a block of its own, for a strided copy out."""
        source = value.text
        if not value.vector:
            source = body.place()
            self.code.add(self.spelling.spell("tensor.duplicate", dst=source, value=value.text, n=body.count))
        self.code.add(f"AscendC::Brcb({out}, {source}, static_cast<uint8_t>((count + 7) / 8), {{1, 8}});")

    def take(self, access: Access, queue: str) -> str:
        """Return the statement that takes a loaded tile out of its queue."""
        local, ctype = f"{access.label}Local", self.ctype(access)
        return self.spelling.spell("queue.deque", type=ctype, tensor=local, queue=queue)

    def as_float(self, body: Body, index: int, access: Access, local: str) -> None:
        """Make a loaded tile available to the body as contiguous floats."""
        ctype = self.ctype(access)
        if access.step != "1":
            self._gather(body, index, access, local)
            return
        if ctype == "float":
            body.values[index] = Operand(local, True)
            return
        home = body.place()
        if self.masked and ctype != "float":
            # A mask also reads elements beyond the last one.
            self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value="0.0f", n=body.count))
        self.convert(body, home, "float", local, ctype)
        body.values[index] = Operand(home, True)

    def _gather(self, body: Body, index: int, access: Access, local: str) -> None:
        """Write the gathering of elements that are not contiguous on chip."""
        home, places, n = body.place(), self.places(access), body.exact
        if access.step == "-1":
            self.code.add(
                f"AscendC::ArithProgression({places}, static_cast<int32_t>(({n} - 1) * sizeof(float)), "
                f"-static_cast<int32_t>(sizeof(float)), {n});"
            )
        if self.masked:
            # A mask also reads elements beyond the last one.
            self.code.add(self.spelling.spell("tensor.duplicate", dst=home, value="0.0f", n=body.count))
        where = f"{places}.ReinterpretCast<uint32_t>()"
        self.code.add(self.spelling.spell("gather.offsets", dst=home, src=local, offsets=where, n=n))
        body.values[index] = Operand(home, True)

    def places(self, access: Access) -> str:
        """Return the tensor that holds the byte offsets of elements that are not contiguous."""
        return f"{access.label}Places.Get<int32_t>()"

    def strided(self) -> list[Access]:
        """Return the loads whose elements are not contiguous in memory."""
        by_label = {a.label: a for _, a in self.loads(vector=True) if a.step != "1"}
        return list(by_label.values())

    def queue_bytes(self, access: Access) -> str:
        """Return the on-chip bytes of a tile of an access, as device arithmetic."""
        return f"{self.tile_text()} * {self._spacing(access)}"

    def _spacing(self, access: Access) -> int:
        """Return the on-chip bytes of one element of an access."""
        width = WIDTHS[self.ctype(access)]
        if access.step in ("0", "1", "-1"):
            return width
        return int(access.step) * width if self.near(access) and access not in self.queued_stores() else 32

    def convert(self, body: Body, dst: str, to: str, src: str, source: str) -> None:
        """Write the conversion of a tensor's element type; bytes are converted by way of half."""
        add, n = self.code.add, body.exact
        if "uint8_t" in (to, source) or "int8_t" in (to, source):
            spare = body.place()
            middle = f"{spare}.ReinterpretCast<half>()"
            add(self.spelling.spell("cast.round", dst=middle, src=src, mode="CAST_NONE", n=n))
            add(self.spelling.spell("cast.round", dst=dst, src=middle, mode="CAST_NONE", n=n))
            body.free.append(spare)
            return
        widening = to == "float" and source in ("half", "bfloat16_t")
        add(self.spelling.spell("cast.round", dst=dst, src=src, mode="CAST_NONE" if widening else "CAST_RINT", n=n))

    # ---- on-chip memory ------------------------------------------------------------------------------------------

    def fields(self) -> list[tuple[str, str]]:
        return list(self.nest.fields)

    def buffers_used(self) -> list[tuple[str, str]]:
        return [(access.buffer, self.ctype(access)) for access in self.accesses()]

    def init_lines(self) -> None:
        add, tile = self.code.add, self.tile_text()
        for access in self.queued_loads() + self.queued_stores():
            size = f"{tile} * sizeof({self.ctype(access)})" if access.step in "01" else self.queue_bytes(access)
            add(
                self.spelling.spell(
                    "queue.init", queue=f"{access.label}Queue", buffers=self.schedule.buffers, bytes=size
                )
            )
        for access in self.strided():
            add(self.spelling.spell("buffer.init", buffer=f"{access.label}Places", bytes=f"{tile} * sizeof(int32_t)"))
            self.places_lines(access)
        for n in range(self.work):
            add(self.spelling.spell("buffer.init", buffer=f"workBuf{n}", bytes=f"{tile} * sizeof(float)"))
        if self.needs_stat():
            add(self.spelling.spell("buffer.init", buffer="statBuf", bytes="64"))

    def places_lines(self, access: Access) -> None:
        """Write the statements that compute the byte offsets of elements that are not contiguous."""
        if access.step != "-1":
            places = f"{self.places(access)}, 0, {self._spacing(access)}, {self.tile_text()}"
            self.code.add(f"AscendC::ArithProgression({places});")

    def tile_text(self) -> str:
        """Return the elements of a tile, as device arithmetic."""
        return "t.tile"

    def queued_loads(self) -> list[Access]:
        """Return the accesses that go through an input queue."""
        return [access for _, access in self.loads(vector=True)]

    def queued_stores(self) -> list[Access]:
        """Return the accesses that go through an output queue."""
        return [store.access for store in self.nest.stores]

    def declare_work(self, body: Body, mark: int) -> None:
        """Insert, at line `mark`, the declarations of the work tensors that the body used."""
        self.work, self.numbers_by_vector = body.work_count, body.by_vector
        buffers = {f"work{n}": f"workBuf{n}" for n in range(body.work_count)}
        buffers |= {"stat": "statBuf"} if self.needs_stat() else {}
        names = [
            self.spelling.spell("buffer.get", type="float", tensor=name, buffer=buffer, elements="64")
            for name, buffer in buffers.items()
        ]
        self.code.lines[mark:mark] = [f"        {name}" for name in names]

    def needs_stat(self) -> bool:
        """Return whether scalars pass through a small tensor."""
        return self.numbers_by_vector or bool(self.nest.reductions)

    def members(self) -> None:
        super().members()
        add = self.code.add
        for access in self.queued_loads():
            add(f"AscendC::TQue<AscendC::TPosition::VECIN, {self.ahead}> {access.label}Queue;")
        for access in self.queued_stores():
            add(f"AscendC::TQue<AscendC::TPosition::VECOUT, 1> {access.label}Queue;")
        if self.work:
            names = ", ".join(f"workBuf{n}" for n in range(self.work))
            add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {names};")
        if self.needs_stat():
            add("AscendC::TBuf<AscendC::TPosition::VECCALC> statBuf;")
        if self.strided():
            names = ", ".join(f"{access.label}Places" for access in self.strided())
            add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {names};")

    @property
    def shares(self) -> int:
        """How many units there are at least, so that every core has two of them at a time."""
        return (4 if self.halves else 2) * self.schedule.cores

    def early_rows(self) -> str:
        """Return how many rows belong to the first half of the product's rows, as host arithmetic."""
        return " * ".join(["tiling.stage0.early", *(f"t.{name}" for name in self.nest.kept[1:])])

    # ---- sizes -------------------------------------------------------------------------------------------------

    def bytes_per_element(self) -> int:
        """Return the on-chip bytes that one element of a tile takes."""
        queued = sum(self._spacing(access) for access in self.queued_loads() + self.queued_stores())
        queued += sum(4 for _ in self.strided())
        library = any(step.function in {*LIBRARY, *LIBRARY_OF_TWO} for step in self.nest.steps)
        return queued * self.schedule.buffers + 4 * self.work + (16 if library else 0)

    def capacity(self) -> int:
        """Return the largest tile that fits, in whole repeats of 64 floats."""
        fits = (BUDGET - 1024) // max(1, self.bytes_per_element()) // 64 * 64
        limit = self.schedule.tile or 16384
        if any(self._spacing(access) == 32 for access in self.queued_loads() + self.queued_stores()):
            limit = min(limit, 1984)  # a copy has at most 4095 bursts, Brcb 255 repeats of eight elements
        return max(64, min(fits, limit) // 64 * 64)

    def fit_tile(self, code: CodeWriter, total: str, share: int) -> None:
        """Write the host statement that chooses the tile: each of `share` units gets some of `total` elements."""
        tile = even_tile(total, share, "t.length")
        code.add(self.spelling.spell("tile.fit", wanted=tile, capacity=self.capacity()))


def in_bytes(elements: str, ctype: str) -> str:
    """Return a number of elements as a number of bytes, in the type that copies take."""
    return f"static_cast<uint32_t>({elements} * sizeof({ctype}))"


def even_tile(total: str, share: int, length: str) -> str:
    """Return the tile that gives each of `share` units some of `total` elements, as host arithmetic."""
    return length if share == 1 else f"AtMost({total} / {share}, {length})"


def near(step: str) -> bool:
    """Return whether elements lie so close that it is cheaper to load those between them as well."""
    return step.isdigit() and 2 <= int(step) <= 16


def place(offset: str, parts: list[tuple[str, str]]) -> str:
    """Return an offset plus indices times strides."""
    terms = ([offset] if offset != "0" else []) + [_scaled(*part) for part in _nested(parts)]
    return (terms[0].strip("()") if terms == ["(row + r)"] else " + ".join(terms)) or "0"


def _nested(parts: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """Return indices and strides with long products factored: (i * rows + j) * length."""
    terms = [parts[0]] if parts else []
    for index, stride in parts[1:]:
        outer, wide = terms[-1]
        long = wide.count(" * ") > 1 or " + " in outer
        if long and wide.endswith(f" * {stride}"):
            terms[-1] = (f"{_scaled(outer, wide.removesuffix(f' * {stride}'))} + {index}", stride)
        else:
            terms.append((index, stride))
    return terms


def _scaled(index: str, stride: str) -> str:
    return index if stride == "1" else f"{index} * {stride}" if index.isidentifier() else f"({index}) * {stride}"
