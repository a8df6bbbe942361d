"""What all loop nests share when they are written: buffers, copies, offsets, the class around them, the launch."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.generators.apprentice.body import LIBRARY, Body, Operand
from kernel_gym.generators.apprentice.plan import Access, Nest, Plan
from kernel_gym.generators.apprentice.schedule import BUDGET, Schedule
from kernel_gym.generators.apprentice.script import Script
from kernel_gym.generators.apprentice.voice import Voice

CTYPES = {
    "float32": "float", "float16": "half", "bfloat16": "bfloat16_t", "int8": "int8_t", "uint8": "uint8_t",
    "int16": "int16_t", "int32": "int32_t", "int64": "int64_t", "bool": "uint8_t", "uint32": "uint32_t",
}  # fmt: skip
_BYTES = {"float": 4, "half": 2, "bfloat16_t": 2, "int8_t": 1, "uint8_t": 1, "int16_t": 2, "int32_t": 4, "int64_t": 8}


@dataclass
class NestWriter:
    """Writes one nest as a kernel class. Subclasses write `Process` and what it calls."""

    plan: Plan
    nest: Nest
    schedule: Schedule
    voice: Voice
    prefix: str
    script: Script = field(default_factory=Script)
    #: How many work tensors the body needs; known after a first writing.
    work: int = 0

    # ---- names -------------------------------------------------------------------------------------------------

    @property
    def kernel(self) -> str:
        """The name of the device function."""
        return f"{_snake(self.prefix)}_kernel"

    @property
    def tiling(self) -> str:
        """The name of the tiling struct."""
        return f"{self.prefix}Tiling"

    def ctype(self, access: Access) -> str:
        """The C type of a buffer's elements."""
        return CTYPES[access.dtype]

    def loads(self, *, vector: bool) -> list[tuple[int, Access]]:
        """The steps that read vectors (or single numbers) from global memory."""
        return [
            (index, step.access)
            for index, step in enumerate(self.nest.steps)
            if step.access and (step.access.step != "0") == vector
        ]

    def accesses(self) -> list[Access]:
        """One access for each buffer that the nest touches, inputs first."""
        found: dict[str, Access] = {}
        for access in [step.access for step in self.nest.loads if step.access] + [s.access for s in self.nest.stores]:
            found.setdefault(access.buffer, access)
        return list(found.values())

    # ---- offsets -----------------------------------------------------------------------------------------------

    def offset(self, access: Access, row: str, start: str, axis: str = "") -> str:
        """Where a tile begins in its buffer."""
        terms = [access.offset] if access.offset != "0" else []
        kept = [stride for stride in access.kept if stride != "0"]
        if access.flat and kept:
            terms.append(_scaled(row, access.kept[-1]))
        else:
            terms += [_scaled(f"i{n}", stride) for n, stride in enumerate(access.kept) if stride != "0"]
        reduced = [stride for stride in access.reduced if stride != "0"]
        if reduced:
            one = len(access.reduced) == 1
            terms += [_scaled(axis if one else f"k{n}", s) for n, s in enumerate(access.reduced) if s != "0"]
        if start != "0" and access.step != "0":
            terms.append(_scaled(start, access.step))
        return " + ".join(terms) or "0"

    def indices(self, row: str, accesses: list[Access]) -> list[str]:
        """Statements that take a row's number apart, where an offset needs the parts."""
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
        """Load a tile into a queue."""
        local, ctype = f"{access.buffer}In", self.ctype(access)
        self.script.add(self.voice.say("queue.alloc", type=ctype, tensor=local, queue=queue))
        self.load(access, local, count, offset)
        self.script.add(self.voice.say("queue.enque", queue=queue, tensor=local))

    def load(self, access: Access, local: str, count: str, offset: str) -> None:
        """Copy a tile from global memory; elements that lie apart are put together by `as_float`."""
        source, ctype = f"{access.buffer}Gm", self.ctype(access)
        if access.step == "1":
            self.script.add(self.voice.say("copy.in", type=ctype, dst=local, src=source, offset=offset, n=count))
        elif access.step == "-1":
            begin = f"{offset} - ({count} - 1)"
            self.script.add(self.voice.say("copy.in", type=ctype, dst=local, src=source, offset=begin, n=count))
        elif _near(access.step):
            # The elements between are loaded too: one long burst is faster than many short ones.
            whole = f"(({count} - 1) * {access.step} + 1)"
            self.script.add(self.voice.say("copy.in", type=ctype, dst=local, src=source, offset=offset, n=whole))
        else:
            fields = {"dst": local, "src": source, "offset": offset, "n": count, "step": access.step}
            self.script.add(self.voice.say("copy.strided-in", type=ctype, **fields))

    def take(self, access: Access, queue: str) -> str:
        """Statement that takes a loaded tile out of its queue."""
        local, ctype = f"{access.buffer}Local", self.ctype(access)
        return self.voice.say("queue.deque", type=ctype, tensor=local, queue=queue)

    def as_float(self, body: Body, index: int, access: Access, local: str) -> None:
        """Make a loaded tile available to the body as floats, one after another."""
        ctype = self.ctype(access)
        if access.step != "1":
            self._gather(body, index, access, local)
            return
        if ctype == "float":
            body.values[index] = Operand(local, True)
            return
        home = body.place()
        self.convert(body, home, "float", local, ctype)
        body.values[index] = Operand(home, True)

    def _gather(self, body: Body, index: int, access: Access, local: str) -> None:
        """Put elements that lie apart on chip next to each other."""
        home, places, n = body.place(), self.places(access), body.count
        if access.step == "-1":
            self.script.add(
                f"AscendC::ArithProgression({places}, static_cast<int32_t>(({n} - 1) * sizeof(float)), "
                f"-static_cast<int32_t>(sizeof(float)), {n});"
            )
        where = f"{places}.ReinterpretCast<uint32_t>()"
        self.script.add(self.voice.say("gather.offsets", dst=home, src=local, offsets=where, n=n))
        body.values[index] = Operand(home, True)

    def places(self, access: Access) -> str:
        """The tensor that holds byte offsets of elements that lie apart."""
        return f"{access.buffer}Places.Get<int32_t>()"

    def apart(self) -> list[Access]:
        """Loads whose elements lie apart in memory."""
        found = {a.buffer: a for _, a in self.loads(vector=True) if a.step != "1"}
        return list(found.values())

    def queue_bytes(self, access: Access) -> str:
        """On-chip bytes for a tile of an access."""
        return f"{self.tile_text()} * {self._spacing(access)}"

    def _spacing(self, access: Access) -> int:
        """On-chip bytes for an element of an access."""
        width = _BYTES[self.ctype(access)]
        if access.step in ("0", "1", "-1"):
            return width
        return int(access.step) * width if _near(access.step) and access not in self.queued_stores() else 32

    def convert(self, body: Body, dst: str, to: str, src: str, source: str) -> None:
        """Change a tensor's element type; bytes go by way of half."""
        add, n = self.script.add, body.count
        if "uint8_t" in (to, source) or "int8_t" in (to, source):
            spare = body.place()
            middle = f"{spare}.ReinterpretCast<half>()"
            add(self.voice.say("cast.round", dst=middle, src=src, mode="CAST_NONE", n=n))
            add(self.voice.say("cast.round", dst=dst, src=middle, mode="CAST_NONE", n=n))
            body.free.append(spare)
            return
        widening = to == "float" and source in ("half", "bfloat16_t")
        add(self.voice.say("cast.round", dst=dst, src=src, mode="CAST_NONE" if widening else "CAST_RINT", n=n))

    # ---- the whole ---------------------------------------------------------------------------------------------

    def write(self) -> str:
        """The tiling struct, the class and the device function."""
        inner = Script()
        inner._depth = 1
        self.script, outer = inner, self.script
        self.process()
        self.script = outer
        self._struct()
        self._class(inner)
        self._entry()
        return self.script.text()

    def process(self) -> None:
        """Write `Process` and the methods it calls."""
        raise NotImplementedError

    def fields(self) -> list[tuple[str, str]]:
        """Fields of the tiling with their host expressions, sizes first."""
        return list(self.nest.fields)

    def tile_fields(self) -> tuple[str, ...]:
        """Fields of the tiling that the host's tiling code sets."""
        return ("tile", "units", "perCore")

    def _struct(self) -> None:
        names = [name for name, _ in self.fields()] + list(self.tile_fields())
        self.script.add(f"struct {self.tiling} {{", f"    uint32_t {', '.join(names)};", "};", "")

    def _class(self, inner: Script) -> None:
        add = self.script.add
        add(f"class Kernel{self.prefix} {{", "public:", f"    __aicore__ inline Kernel{self.prefix}() {{}}")
        self.script._depth = 1
        self._init()
        self.script._depth = 0
        self.script.lines += inner.lines
        add("", "private:")
        self.script._depth = 1
        self._members()
        self.script._depth = 0
        add("};", "")

    def arguments(self) -> str:
        """The parameters of the device function."""
        return ", ".join(f"GM_ADDR {access.buffer}" for access in self.accesses())

    def _init(self) -> None:
        with self.script.function(f"__aicore__ inline void Init({self.arguments()}, const {self.tiling} &tiling)"):
            self.script.add("t = tiling;")
            for access in self.accesses():
                name = access.buffer
                self.script.add(self.voice.say("gm.buffer", gm=f"{name}Gm", type=self.ctype(access), pointer=name))
            self.buffers()

    def buffers(self) -> None:
        """Statements that carve up the on-chip memory."""
        add, tile = self.script.add, self.tile_text()
        for access in self.queued_loads() + self.queued_stores():
            size = f"{tile} * sizeof({self.ctype(access)})" if access.step in "01" else self.queue_bytes(access)
            add(self.voice.say("queue.init", queue=f"{access.buffer}Queue", buffers=self.schedule.buffers, bytes=size))
        for access in self.apart():
            add(self.voice.say("buffer.init", buffer=f"{access.buffer}Places", bytes=f"{tile} * sizeof(int32_t)"))
            if access.step != "-1":
                add(f"AscendC::ArithProgression({self.places(access)}, 0, {self._spacing(access)}, {tile});")
        for n in range(self.work):
            add(self.voice.say("buffer.init", buffer=f"workBuf{n}", bytes=f"{tile} * sizeof(float)"))
        if self.needs_stat():
            add(self.voice.say("buffer.init", buffer="statBuf", bytes="64"))

    def tile_text(self) -> str:
        """Elements of a tile, as device arithmetic."""
        return "t.tile"

    def queued_loads(self) -> list[Access]:
        """Accesses that go through an input queue."""
        return [access for _, access in self.loads(vector=True)]

    def queued_stores(self) -> list[Access]:
        """Accesses that go through an output queue."""
        return [store.access for store in self.nest.stores]

    def needs_stat(self) -> bool:
        """True if numbers pass through a small tensor."""
        return bool(self.nest.reductions) or any(
            not step.vector and step.function in LIBRARY for step in self.nest.steps
        )

    def _members(self) -> None:
        add = self.script.add
        add("AscendC::TPipe pipe;")
        for access in self.queued_loads():
            add(f"AscendC::TQue<AscendC::TPosition::VECIN, 1> {access.buffer}Queue;")
        for access in self.queued_stores():
            add(f"AscendC::TQue<AscendC::TPosition::VECOUT, 1> {access.buffer}Queue;")
        if self.work:
            names = ", ".join(f"workBuf{n}" for n in range(self.work))
            add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {names};")
        if self.needs_stat():
            add("AscendC::TBuf<AscendC::TPosition::VECCALC> statBuf;")
        if self.apart():
            names = ", ".join(f"{access.buffer}Places" for access in self.apart())
            add(f"AscendC::TBuf<AscendC::TPosition::VECCALC> {names};")
        for access in self.accesses():
            add(f"AscendC::GlobalTensor<{self.ctype(access)}> {access.buffer}Gm;")
        add(f"{self.tiling} t;")

    def _entry(self) -> None:
        head = f'extern "C" __global__ __aicore__ void {self.kernel}({self.arguments()}, {self.tiling} tiling)'
        names = ", ".join(access.buffer for access in self.accesses())
        with self.script.function(head):
            self.script.add(f"Kernel{self.prefix} op;", f"op.Init({names}, tiling);", "op.Process();")
        self.script.add("")

    # ---- sizes -------------------------------------------------------------------------------------------------

    def bytes_per_element(self) -> int:
        """On-chip bytes that one element of a tile costs."""
        queued = sum(self._spacing(access) for access in self.queued_loads() + self.queued_stores())
        queued += sum(4 for _ in self.apart())
        library = any(step.function in LIBRARY for step in self.nest.steps)
        return queued * self.schedule.buffers + 4 * self.work + (16 if library else 0)

    def capacity(self) -> int:
        """The largest tile that fits, in whole repeats of 64 floats."""
        fits = (BUDGET - 1024) // max(1, self.bytes_per_element()) // 64 * 64
        wanted = self.schedule.tile or 16384
        if any(self._spacing(access) == 32 for access in self.queued_loads() + self.queued_stores()):
            wanted = min(wanted, 1984)  # a copy has at most 4095 bursts, Brcb 255 repeats of eight elements
        return max(64, min(fits, wanted) // 64 * 64)

    def fit_tile(self, script: Script, total: str, share: int) -> None:
        """Host statement that chooses the tile: of `total` elements, each of `share` units should get some."""
        fields = {"length": "t.length", "total": total, "share": share, "capacity": self.capacity()}
        script.add(self.voice.say("tile.fit", **fields))

    def core_share(self) -> None:
        """Statements that give every core its part of the units."""
        self.script.add(self.voice.say("core.offset"), "const uint32_t last = Min(first + t.perCore, t.units);")

    def launch(self, script: Script) -> None:
        """Host statements that compute the tiling and start the kernel."""
        raise NotImplementedError

    def call(self, script: Script) -> None:
        """Host statements: share the units among cores and start the kernel."""
        arguments = [f"(GM_ADDR){self.pointer(access.buffer)}" for access in self.accesses()]
        script.add(f"const uint32_t cores = AtMost(t.units, {self.schedule.cores});")
        script.add("t.perCore = (t.units + cores - 1) / cores;")
        script.add(
            self.voice.say("launch.call", kernel=self.kernel, cores="cores", arguments=", ".join([*arguments, "t"]))
        )

    def pointer(self, buffer: str) -> str:
        """A buffer's address in host code."""
        origin = self.plan.buffer(buffer).origin
        return buffer if origin == "workspace" else f"{buffer}.ptr"


def _near(step: str) -> bool:
    """True if elements lie so close that it is cheaper to load what is between them."""
    return step.isdigit() and 2 <= int(step) <= 16


def _scaled(index: str, stride: str) -> str:
    return index if stride == "1" else f"{index} * {stride}" if index.isidentifier() else f"({index}) * {stride}"


def _snake(name: str) -> str:
    return "".join(f"_{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("_")
