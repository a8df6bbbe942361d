"""Writes matrix products on the cube unit, through the Matmul library."""

from __future__ import annotations

from dataclasses import dataclass, field

from kernel_gym.authors.apprentice.ascendc.stage import StageWriter
from kernel_gym.authors.apprentice.code_writer import CodeWriter, wrapped
from kernel_gym.authors.apprentice.frontend.plan import Matrix, Product

_TYPE = "AscendC::MatmulType<AscendC::TPosition::GM, CubeFormat::ND, float>"


@dataclass
class ProductWriter(StageWriter):
    """Writes a product. A unit of work is one block of one result matrix."""

    product: Product = field(kw_only=True)

    def buffers_used(self) -> list[tuple[str, str]]:
        product = self.product
        inputs = [product.left.buffer, product.right.buffer, *[product.bias] * bool(product.bias)]
        names = dict.fromkeys([*inputs, product.target])
        return [(name, "float") for name in names]

    def fields(self) -> list[tuple[str, str]]:
        product = self.product
        sizes = [("m", product.m), ("n", product.n), ("k", product.k), ("batch", product.batch)]
        steps = [("leftCount", product.left.count), ("rightCount", product.right.count)]
        pitch = [("pitch", product.pitch), ("step", product.step)] if product.pitch else []
        return sizes + steps + pitch

    def tile_fields(self) -> tuple[str, ...]:
        return ("rowBlocks", "columnBlocks", "units", "perCore")

    def struct_lines(self) -> list[str]:
        return [*super().struct_lines(), "    TCubeTiling cube;"]

    def process(self) -> None:
        add, cube = self.code.add, "t.cube"
        with self.code.function("__aicore__ inline void Process()"):
            self.core_share()
            with self.code.block("for (uint32_t unit = first; unit < last; ++unit)"):
                add("const uint32_t which = unit / (t.rowBlocks * t.columnBlocks);")
                add(f"const uint32_t row = unit / t.columnBlocks % t.rowBlocks * {cube}.baseM;")
                add(f"const uint32_t column = unit % t.columnBlocks * {cube}.baseN;")
                self._operand("A", self.product.left, "m", "row", True)
                self._operand("B", self.product.right, "n", "column", False)
                self._add_bias()
                add(
                    self.spelling.spell(
                        "matmul.tail", rows=f"Min({cube}.baseM, t.m - row)", columns=f"Min({cube}.baseN, t.n - column)"
                    )
                )
                step = "t.step" if self.product.pitch else "t.m * t.n"
                pitch = "t.pitch" if self.product.pitch else "t.n"
                target = f"{self.product.target}Gm[which * {step} + row * {pitch} + column]"
                add(self.spelling.spell("matmul.iterate", target=target), "mm.End();")

    def _operand(self, letter: str, matrix: Matrix, extent: str, place: str, left: bool) -> None:
        """Write the statement that passes the block's rows of A or columns of B to the library."""
        fields = {
            "letter": letter,
            "tensor": f"{matrix.buffer}Gm[{self._first(matrix, extent, place, left)}]",
            "transposed": str(matrix.transposed).lower(),
        }
        self.code.add(self.spelling.spell("matmul.operand", **fields))

    def _add_bias(self) -> None:
        if self.product.bias:
            self.code.add(f"mm.SetBias({self.product.bias}Gm[column]);")

    def _first(self, matrix: Matrix, extent: str, place: str, left: bool) -> str:
        """Return the first element of the block's rows of A or columns of B."""
        inner = f"{place} * t.k" if matrix.transposed != left else place
        return f"which % t.{'left' if left else 'right'}Count * t.{extent} * t.k + {inner}"

    def init_lines(self) -> None:
        self.code.add(self.spelling.spell("matmul.register"))
        if self.product.pitch:
            self.code.add("mm.SetOrgShape(t.m, t.n, t.k, t.k, t.pitch);")

    def members(self) -> None:
        super().members()
        self.code.add(f"using Matrix = {_TYPE};", "AscendC::Matmul<Matrix, Matrix, Matrix> mm;")

    def launch(self, code: CodeWriter) -> None:
        self.set_fields(code)
        rows, columns, depth = (128, 128, 4) if self.schedule.tile == 0 else (64, 64, 1)
        code.add("// Blocks of C that fill the cube unit's buffers, two at a time.")
        code.add("t.cube.M = t.m;", "t.cube.N = t.n;", "t.cube.Ka = t.k;", "t.cube.Kb = t.k;")
        code.add(
            f"t.cube.baseM = AtMost(t.m, {rows});",
            f"t.cube.baseN = AtMost(t.n, {columns});",
            "t.cube.baseK = AtMost(t.k, 64);",
        )
        code.add(
            "t.cube.singleCoreM = t.cube.baseM;", "t.cube.singleCoreN = t.cube.baseN;", "t.cube.singleCoreK = t.k;"
        )
        code.add(f"t.cube.depthA1 = {depth};", f"t.cube.depthB1 = {depth};")
        code.add("t.rowBlocks = (t.m + t.cube.baseM - 1) / t.cube.baseM;")
        code.add("t.columnBlocks = (t.n + t.cube.baseN - 1) / t.cube.baseN;")
        code.add("t.units = t.batch * t.rowBlocks * t.columnBlocks;")
        self.call(code)

    def call(self, code: CodeWriter) -> None:
        """Write the launch; each of its blocks has one cube core and two vector cores."""
        arguments = [f"(GM_ADDR)({self.pointer(name)})" for name, _ in self.buffers_used()]
        blocks = max(1, self.schedule.cores // 2)
        code.add(f"const uint32_t blocks = AtMost((t.units + 1) / 2, {blocks});", "t.cube.usedCoreNum = 2 * blocks;")
        code.add("t.perCore = (t.units + 2 * blocks - 1) / (2 * blocks);")
        if self.joined:
            code.add("lanes = AtLeast(2 * blocks, lanes);")
            return
        text = wrapped("", ", ".join([*arguments, "t"]), "", used=len(self.kernel) + 40)
        fields = {"kernel": self.kernel, "cores": "blocks", "arguments": text}
        code.add(self.spelling.spell("launch.call", **fields))
