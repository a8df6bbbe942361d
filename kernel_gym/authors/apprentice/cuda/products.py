"""Writes matrix products: a sum per thread, or tiles in shared memory."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace

from kernel_gym.authors.apprentice.code_writer import CodeWriter
from kernel_gym.authors.apprentice.cuda.stage import StageWriter
from kernel_gym.authors.apprentice.frontend.plan import Matrix, Product

#: The depth of a tile, and the results of one thread in each direction for the largest tiles.
DEPTH = 16
EACH = 4
SMALL_TILE, LARGE_TILE = 16, 16 * EACH
#: Fewer results than this give too few of the largest tiles to keep a large GPU busy.
FEW = 32 * LARGE_TILE**2


@dataclass
class ProductWriter(StageWriter):
    """Writes products with a grid over columns, rows and the batch, in which every thread sums one result."""

    product: Product = field(kw_only=True)

    @property
    def side(self) -> int:
        """The threads of a block in each direction."""
        return 16

    @property
    def tile(self) -> int:
        """The results of a block in each direction."""
        return 16

    def buffers_used(self) -> dict[str, bool]:
        """Return both operands and the target."""
        return {self.product.left.buffer: False, self.product.right.buffer: False, self.product.target: True}

    def fields(self) -> list[tuple[str, str]]:
        """Return the sizes, the distances of rows and of results, and the number of matrices of each operand."""
        p = self.product
        pitch = p.pitch or p.n
        return [
            ("batch", p.batch), ("m", p.m), ("n", p.n), ("depth", p.k), ("pitch", pitch),
            ("step", p.step or f"({p.m}) * ({pitch})"), ("lefts", p.left.count), ("rights", p.right.count),
        ]  # fmt: skip

    def operand(self, matrix: Matrix, row: str, column: str) -> str:
        """Return an element of an operand."""
        rows, columns = ("m", "depth") if matrix is self.product.left else ("depth", "n")
        first, second, width = (column, row, rows) if matrix.transposed else (row, column, columns)
        base = "left" if matrix is self.product.left else "right"
        return f"{base}[{first} * {self.named(width)} + {second}]"

    def body(self) -> None:
        """Write the loop over products."""
        m, n, depth = (self.named(name) for name in ("m", "n", "depth"))
        with self.code.block(f"for (int b = blockIdx.z; b < {self.named('batch')}; b += gridDim.z)"):
            p = self.product
            # Sizes may be large: the cast of the first factor makes the arithmetic long long.
            for base, matrix, count, each in (
                ("left", p.left, "lefts", f"{m} * {depth}"),
                ("right", p.right, "rights", f"{depth} * {n}"),
            ):
                start = f"static_cast<long long>(b % {self.named(count)}) * {each}"
                self.code.add(f"const float *{base} = {self.buffer(matrix.buffer)} + {start};")
            step = self.named("step")
            self.code.add(f"float *result = {self.buffer(p.target)} + static_cast<long long>(b) * {step};")
            self.product_lines()

    def product_lines(self) -> None:
        """Write the computation of one product."""
        m, n, depth = (self.named(name) for name in ("m", "n", "depth"))
        self.code.add("const int column = blockIdx.x * blockDim.x + threadIdx.x;")
        self.code.add("const int row = blockIdx.y * blockDim.y + threadIdx.y;")
        with self.code.block(f"if (row < {m} && column < {n})"):
            self.code.add("float sum = 0.0f;")
            with self.code.block(f"for (int k = 0; k < {depth}; ++k)"):
                left = self.operand(self.product.left, "row", "k")
                right = self.operand(self.product.right, "k", "column")
                self.code.add(f"sum += {left} * {right};")
            self.code.add(f"result[row * {self.named('pitch')} + column] = sum;")

    def launch(self, code: CodeWriter) -> None:
        """Write the launch: a block for each tile of the result."""
        self.set_fields(code)
        tile = self.tile
        m, n, batch = (self.named(name) for name in ("m", "n", "batch"))
        blocks = ", ".join(self.spelling.spell("launch.blocks", n=size, block=tile) for size in (n, m))
        code.add(
            f"const dim3 blocks({blocks}, AtMost({batch}, 65535));", f"const dim3 threads({self.side}, {self.side});"
        )
        self.call(code, "blocks", "threads")


@dataclass
class TileWriter(ProductWriter):
    """Writes products by tiles of both operands in shared memory; every thread sums `each` x `each` results."""

    @property
    def each(self) -> int:
        """The results of a thread in each direction."""
        return EACH if self.schedule.tile >= LARGE_TILE else 1

    @property
    def tile(self) -> int:
        """The results of a block in each direction."""
        return self.side * self.each

    def product_lines(self) -> None:
        """Write the loop over tiles along the depth; the next tiles are on their way while these are multiplied."""
        spell, add = self.spelling.spell, self.code.add
        kind, width = ("float4", self.side + 1) if self.each > 1 else ("float", self.tile + 1)
        for name in ("leftTile", "rightTile"):
            add(spell("shared.declare", type=kind, name=name, size=f"{DEPTH}][{width}"))
        add("const int thread = threadIdx.y * blockDim.x + threadIdx.x;")
        add(f"const int top = blockIdx.y * {self.tile}, edge = blockIdx.x * {self.tile};")
        add(f"float leftNext[{self._loads}], rightNext[{self._loads}];")
        add(f"float sums[{self.each}][{self.each}] = {{}};")
        with self.code.block(f"for (int k = 0; k < {self.named('depth')} + {DEPTH}; k += {DEPTH})"):
            self._each_load("{name}Next[i] = {value};")
            with self.code.block("if (k > 0)"):
                self._multiply()
            # No thread may refill the tiles while others still read them.
            add(spell("sync.block"))
            row = "reinterpret_cast<float *>({name}Tile[kk])" if self.each > 1 else "{name}Tile[kk]"
            self._each_load(f"{row}[o] = {{name}}Next[i];")
            add(spell("sync.block"))
        self._store()

    @property
    def _loads(self) -> int:
        """The elements of a tile that each thread loads."""
        return DEPTH * self.tile // (self.side * self.side)

    def _each_load(self, statement: str) -> None:
        """Write a statement for every element of both tiles that a thread loads.

        Neighbouring threads load neighbouring elements, transposed or not.
        """
        m, n, depth = (self.named(name) for name in ("m", "n", "depth"))
        self.code.add("#pragma unroll")
        with self.code.block(f"for (int i = 0; i < {self._loads}; ++i)"):
            self.code.add(f"const int e = thread + i * {self.side * self.side};")
            for matrix, name, first, size in (
                (self.product.left, "left", "top", m),
                (self.product.right, "right", "edge", n),
            ):
                along_depth = matrix.transposed != (name == "left")
                inner, outer = ("kk", "o") if along_depth else ("o", "kk")
                wide = DEPTH if along_depth else self.tile
                with self.code.block(""):
                    self.code.add(f"const int {inner} = e % {wide}, {outer} = e / {wide};")
                    row, column = (f"({first} + o)", "(k + kk)") if name == "left" else ("(k + kk)", f"({first} + o)")
                    element = self.operand(matrix, row, column)
                    inside = f"{first} + o < {size} && k + kk < {depth}"
                    value = self.spelling.spell("matmul.guard", inside=inside, element=element)
                    self.code.add(statement.format(name=name, value=value))

    def _multiply(self) -> None:
        self.code.add("#pragma unroll")
        left, right = "leftTile[kk][threadIdx.y]", "rightTile[kk][threadIdx.x]"
        with self.code.block(f"for (int kk = 0; kk < {DEPTH}; ++kk)"):
            if self.each == 1:
                self.code.add(f"sums[0][0] += {left} * {right};")
                return
            self.code.add(f"const float4 down = {left}, across = {right};")
            self.code.add("const float rows[4] = {down.x, down.y, down.z, down.w};")
            self.code.add("const float columns[4] = {across.x, across.y, across.z, across.w};")
            with self._each_result():
                self.code.add("sums[y][x] += rows[y] * columns[x];")

    @contextmanager
    def _each_result(self) -> Iterator[None]:
        """Write the loops over the results of one thread."""
        self.code.add("#pragma unroll")
        with self.code.block(f"for (int y = 0; y < {self.each}; ++y)"):
            self.code.add("#pragma unroll")
            with self.code.block(f"for (int x = 0; x < {self.each}; ++x)"):
                yield

    def _store(self) -> None:
        with self._each_result():
            self.code.add(f"const int row = top + threadIdx.y * {self.each} + y;")
            self.code.add(f"const int column = edge + threadIdx.x * {self.each} + x;")
            with self.code.block(f"if (row < {self.named('m')} && column < {self.named('n')})"):
                self.code.add(f"result[row * {self.named('pitch')} + column] = sums[y][x];")


@dataclass
class SizedTileWriter(ProductWriter):
    """Writes two kernels; the host chooses large tiles, or small ones if there are few results."""

    def __post_init__(self) -> None:
        self.large, self.small = (
            TileWriter(self.plan, schedule, self.spelling, prefix, product=self.product)
            for schedule, prefix in (
                (self.schedule, self.prefix),
                (replace(self.schedule, tile=SMALL_TILE), f"{self.prefix}_small"),
            )
        )

    def write(self) -> str:
        """Write both device functions and return them as text."""
        return f"{self.small.write()}\n{self.large.write()}"

    def launch(self, code: CodeWriter) -> None:
        """Write the launch, which chooses by the number of results."""
        self.small.advance = self.large.advance = self.advance
        p = self.product
        with code.block(f"if (({p.batch}) * ({p.m}) * ({p.n}) < {FEW})"):
            self.small.launch(code)
        with code.block("else"):
            self.large.launch(code)
