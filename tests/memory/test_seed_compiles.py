"""The examples of the seed knowledge compile with the simulator's headers."""

import re
import shutil
import subprocess
from importlib.resources import files

import pytest
import yaml

HEADERS = [files("kernel_gym.hardware") / folder / "include" for folder in ("ascend_sim", "host")]

#: What examples take for granted: tensors, queues and sizes under the names that the pages use throughout.
FRAME = """
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "kernel_gym.h"
using namespace AscendC;
struct Tiling { uint32_t total, perCore, tile; };
struct ScaleKernel { template <class T> void Init(GM_ADDR, GM_ADDR, T); void Process(); };
static TPipe pipe;
static TQue<TPosition::VECIN, 1> inQueue, aQueue, bQueue;
static TQue<TPosition::VECOUT, 1> outQueue, partQueue;
static TBuf<TPosition::VECCALC> workBuf, sumBuf, maskBuf, scratchBuf, gammaBuf;
static GlobalTensor<float> xGm, yGm, sumGm, partGm, gammaGm;
static LocalTensor<float> x, y, a, b, c, t, m, s, f, acc, work, sum, one, ones, even, odd, gamma, beta, bias, weight;
static LocalTensor<float> row, wide, scalars, best, part, partial, out, local, var, centred, pos, gate, value, aRow;
static LocalTensor<float> bRow, wRow, xLocal;
static LocalTensor<half> h, x16, y16;
static LocalTensor<bfloat16_t> b16;
static LocalTensor<int32_t> i, idx;
static LocalTensor<uint8_t> mask, scratch;
static LocalTensor<uint16_t> bits, p, q;
static uint32_t n, count, at, tile, rows, cols, stride, first, perCore, repeats, words, to, cores, axis, inner, outer;
static uint32_t step, o, taps, window, width, channel, group, tiles, colsAligned, firstRow, endRow, k;
static float variance, eps, divisor, rowMax, low, high, alpha, slope, shift, scale, total, runMax, tileMax;
static float totalOfSquares;
static int32_t event, event2, event3;
static DataCopyExtParams shape;
static DataCopyPadExtParams<float> pad;
static Matmul<MatmulType<TPosition::GM, CubeFormat::ND, float>, MatmulType<TPosition::GM, CubeFormat::ND, float, true>,
              MatmulType<TPosition::GM, CubeFormat::ND, float>> mm;
static TCubeTiling tiling;
static GlobalTensor<float> aGm, bGm, cGm, wGm;
static uint32_t mPart, nPart, mTail, nTail, mBlocks, batch, baseM, baseN, block;
void CopyOut(uint32_t);
void CopyOut(LocalTensor<float>);
void CopyIn(uint32_t, uint32_t);
void Compute(uint32_t);
void CopyOut(uint32_t, uint32_t);
void CopyInStrided(uint32_t, uint32_t, uint32_t);
void LoadShiftedRow(uint32_t);
void ProcessRow(uint32_t);
void Accumulate(uint32_t);
void SumParts();
"""

#: Names that have another type in some examples, by a pattern of their use.
LOCAL = {
    r"\bt\.(tile|perCore|total)\b": "Tiling t;",
    r"\ba->": "const KernelArgs *a = nullptr;",
    r"\brow \* cols|\brow\) ": "uint32_t row = 0;",
    r"\br \* cols\]": "uint32_t r = 0;",
    r"__gm__ float \*\)x \+": "GM_ADDR x = nullptr;",
    r"\bi \* tile\b|GetValue\(i\)|SetValue\(i,": "uint32_t i = 0;",
    r"a > b \?": "float a = 0, b = 0;",
    r"ToFloat\(b16\)": "bfloat16_t b16;",
    r"MatmulType<[^>]*half>": "GlobalTensor<half> aGm, bGm; using namespace matmul;",
    r"\bmm\.|tiling\.M": "int m = 0, n = 0, k = 0, count = 0;",
    r"\bMmad\(": "LocalTensor<float> a1, a2, b2; uint16_t m = 0, n = 0, k = 0; uint8_t repeats = 0;",
    r"= \(total \+|\(total \+ ": "uint32_t total = 0;",
}


def examples():
    pages = (files("kernel_gym.memory") / "seed").iterdir()
    for file in sorted((page for page in pages if page.name.startswith("ascendc-")), key=lambda file: file.name):
        for entry in yaml.safe_load(file.read_text()):
            if code := entry.get("example", ""):
                yield entry["title"], code


def unit(number: int, code: str) -> str:
    """Return an example as a function, or unchanged where it defines functions itself."""
    # The simulator removes what names the cores of a kernel before it compiles.
    code = re.sub(r"#include.*|using namespace AscendC;|__global__|KERNEL_TASK_TYPE_DEFAULT\(\w+\);", "", code)
    if re.search(r'^(__aicore__ inline|extern "C")', code, re.MULTILINE):
        called = re.sub(r"(\w+)<<<.*?>>>", r"\1", code)
        return f'namespace example_{number} {{\n#line 1 "example_{number}"\n{called}\n}}'
    code = re.sub(r"\w+<<<.*", "", code)
    needed = " ".join(declaration for use, declaration in LOCAL.items() if re.search(use, code))
    return f'void example_{number}() {{ {needed}\n#line 1 "example_{number}"\n{code}\n}}'


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_every_example_compiles_against_the_simulator(tmp_path):
    titles, codes = zip(*examples(), strict=True)
    source = tmp_path / "examples.cpp"
    source.write_text("\n".join([FRAME, *(unit(number, code) for number, code in enumerate(codes))]))
    command = [
        "g++",
        "-std=c++17",
        "-fsyntax-only",
        "-w",
        "-fno-diagnostics-show-caret",
        *(f"-I{folder}" for folder in HEADERS),
        str(source),
    ]
    messages = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    broken = [
        f"{titles[int(number)]!r}, line {line}: {message}"
        for number, line, message in re.findall(r"^example_(\d+):(\d+):\d+: error: (.*)$", messages, re.MULTILINE)
    ]
    assert broken == []
    assert "error" not in messages
    assert len(titles) > 90
