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
        """Write the loop over tiles along the depth."""
        spell, add, tile = self.spelling.spell, self.code.add, self.tile
        add(spell("shared.declare", type="float", name="leftTile", size=f"{DEPTH}][{tile + 1}"))
        add(spell("shared.declare", type="float", name="rightTile", size=f"{DEPTH}][{tile + 1}"))
        add("const int thread = threadIdx.y * blockDim.x + threadIdx.x;")
        add(f"const int top = blockIdx.y * {tile}, edge = blockIdx.x * {tile};")
        add(f"float sums[{self.each}][{self.each}] = {{}};")
        with self.code.block(f"for (int k = 0; k < {self.named('depth')}; k += {DEPTH})"):
            self._load()
            add(spell("sync.block"))
            self._multiply()
            # No thread may refill the tiles while others still read them.
            add(spell("sync.block"))
        self._store()

    def _load(self) -> None:
        """Write the loads of both tiles; neighbouring threads read neighbouring elements, transposed or not."""
        tile = self.tile
        m, n, depth = (self.named(name) for name in ("m", "n", "depth"))
        with self.code.block(f"for (int e = thread; e < {DEPTH * tile}; e += {self.side * self.side})"):
            for matrix, name, first, size in (
                (self.product.left, "left", "top", m),
                (self.product.right, "right", "edge", n),
            ):
                along_depth = matrix.transposed != (name == "left")
                inner, outer = ("kk", "o") if along_depth else ("o", "kk")
                wide = DEPTH if along_depth else tile
                with self.code.block(""):
                    self.code.add(f"const int {inner} = e % {wide}, {outer} = e / {wide};")
                    row, column = (f"({first} + o)", "(k + kk)") if name == "left" else ("(k + kk)", f"({first} + o)")
                    element = self.operand(matrix, row, column)
                    inside = f"{first} + o < {size} && k + kk < {depth}"
                    value = self.spelling.spell("matmul.guard", inside=inside, element=element)
                    self.code.add(f"{name}Tile[kk][o] = {value};")

    def _multiply(self) -> None:
        side = self.side
        self.code.add("#pragma unroll")
        left, right = f"leftTile[kk][threadIdx.y + {side} * y]", f"rightTile[kk][threadIdx.x + {side} * x]"
        with self.code.block(f"for (int kk = 0; kk < {DEPTH}; ++kk)"), self._each_result():
            self.code.add(f"sums[y][x] += {left} * {right};")

    @contextmanager
    def _each_result(self) -> Iterator[None]:
        """Write the loops over the results of one thread."""
        each = self.each
        with (
            self.code.block(f"for (int y = 0; y < {each}; ++y)"),
            self.code.block(f"for (int x = 0; x < {each}; ++x)"),
        ):
            yield

    def _store(self) -> None:
        with self._each_result():
            self.code.add(f"const int row = top + threadIdx.y + {self.side} * y;")
            self.code.add(f"const int column = edge + threadIdx.x + {self.side} * x;")
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
