"""The header has every name in every call form, for the element types that Atlas A2 has, and nothing beyond."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

from kernel_gym.hardware.ascend_sim import runtime as runtimes

INCLUDE = runtimes.HERE / "include"

ALL = ("int8_t", "uint8_t", "int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float", "int64_t", "uint64_t")
ARITHMETIC, FLOATS, BITS = ("int16_t", "half", "int32_t", "float"), ("half", "float"), ("int16_t", "uint16_t")
MOVABLE = ("int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float")
SHIFTS = ("int16_t", "uint16_t", "int32_t", "uint32_t")

BINARY = dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), ARITHMETIC)
BINARY |= dict.fromkeys(("Div", "FusedMulAdd", "FusedMulAddRelu", "MulAddDst"), FLOATS)
BINARY |= {"And": BITS, "Or": BITS} | dict.fromkeys(("AddRelu", "SubRelu"), ("int16_t", "half", "float"))
UNARY = dict.fromkeys(("Exp", "Ln", "Abs", "Sqrt", "Rsqrt", "Reciprocal"), FLOATS) | {"Relu": ("half", "float", "int32_t"), "Not": BITS}
SCALAR = dict.fromkeys(("Adds", "Muls", "Maxs", "Mins"), ARITHMETIC) | {"LeakyRelu": FLOATS, "ShiftLeft": SHIFTS, "ShiftRight": SHIFTS, "Axpy": FLOATS}
LIBRARY = (
    "Tanh Sigmoid Erf Erfc Sin Cos Tan Asin Acos Atan Sinh Cosh Asinh Acosh Atanh Floor Ceil Round Trunc Frac Sign Lgamma "
    "Digamma Log Log2 Log10"
).split()
CASTS = {
    ("half", "float"), ("bfloat16_t", "float"), ("int16_t", "float"), ("int8_t", "half"), ("uint8_t", "half"), ("float", "half"),
    ("float", "bfloat16_t"), ("float", "int32_t"), ("float", "int16_t"), ("float", "int64_t"), ("float", "float"),
    ("half", "int32_t"), ("half", "int16_t"), ("bfloat16_t", "int32_t"), ("int64_t", "float"), ("half", "int8_t"),
    ("half", "uint8_t"), ("int16_t", "half"), ("int32_t", "float"), ("int32_t", "int16_t"), ("int32_t", "int64_t"),
    ("int64_t", "int32_t"), ("int32_t", "half"),
}  # fmt: skip

#: Statements that must compile, in a function with tensors f, g, h (float), x, y (half), i (int32_t), b (uint8_t), global
#: tensors G (float), a TPipe pipe, and bits, n.
OTHERS = """
DataCopy(f, G, n); DataCopy(G, f, n); DataCopy(f, g, n);
DataCopy(f, G, {1, 8, 0, 0}); DataCopy(G, f, DataCopyParams(1, 8, 0, 0)); DataCopy(f, g, DataCopyParams{1, 8, 0, 0});
DataCopyPad(f, G, {1, 20, 0, 0, 0}, {true, 0, 3, 0.0f}); DataCopyPad(G, f, {1, 20, 0, 0, 0});
DataCopyPad(f, G, DataCopyParams{1, 20, 0, 0}, DataCopyPadParams{true, 0, 3, 0}); DataCopyPad(G, f, DataCopyParams{1, 20, 0, 0});
DataCopyExtParams e; e.blockCount = 1; e.blockLen = 4; DataCopyPadExtParams<float> p; p.isPad = true; DataCopyPad(f, G, e, p);
DataCopy(f, G, Nd2NzParams{1, 16, 16, 0, 16, 16, 1, 0}); SetPadValue<float>(0.0f);
SetAtomicAdd<float>(); SetAtomicMax<half>(); SetAtomicMin<int32_t>(); SetAtomicNone(); DisableDmaAtomic();
Duplicate(f, 1.0f, n); Duplicate(f, 1.0f, 64, 2, 1, 8); Duplicate(f, 1.0f, bits, 2, 1, 8); Duplicate<half>(x, 0, n); Duplicate<float, false>(f, 0, 64, 1, 1, 8);
Copy(f, g, 64, 4, {1, 1, 8, 8}); Copy(f, g, bits, 4, CopyRepeatParams{1, 1, 8, 8});
Compare(b, f, g, CMPMODE::LT, n); Compare(b, f, g, CMPMODE::LT, 64, 1, {1, 1, 1, 8, 8, 8}); Compare(b, f, g, CMPMODE::LT, bits, 1, BinaryRepeatParams{});
CompareScalar(b, f, 0.0f, CMPMODE::GE, n); CompareScalar(b, f, 0.0f, CMPMODE::GE, 64, 1, {1, 1, 8, 8}); Compares(b, x, half(0), CMPMODE::NE, n);
Select(f, b, g, h, SELMODE::VSEL_TENSOR_TENSOR_MODE, n); Select(f, b, g, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, n);
Select(f, b, g, h, SELMODE::VSEL_CMPMASK_SPR, 64, 1, {1, 1, 1, 8, 8, 8}); Select(f, b, g, 0.0f, SELMODE::VSEL_TENSOR_SCALAR_MODE, bits, 1, BinaryRepeatParams{});
Cast(f, x, RoundMode::CAST_NONE, 64, 2, {1, 1, 8, 4}); Cast(x, f, RoundMode::CAST_RINT, bits, 2, UnaryRepeatParams{1, 1, 4, 8}); Cast<int32_t, float>(i, f, RoundMode::CAST_TRUNC, n);
Axpy(f, x, half(2), n); Axpy(f, x, half(2), 64, 1, {1, 1, 8, 4}); MulAddDst(f, x, y, n);
ReduceSum(f, g, h, n); ReduceSum(f, g, h, 64, 4, 8); ReduceSum(f, g, h, bits, 4, 8); ReduceSum<half>(x, y, x, n);
ReduceMax(f, g, h, n); ReduceMax(f, g, h, n, true); ReduceMax(f, g, h, 64, 4, 8, true); ReduceMin(f, g, h, bits, 4, 8, false);
WholeReduceSum(f, g, 64, 4, 1, 1, 8); WholeReduceSum<float>(f, g, bits, 4, 1, 1, 8); WholeReduceSum<float, false>(f, g, MASK_PLACEHOLDER, 4, 1, 1, 8);
WholeReduceMax(f, g, 64, 4, 1, 1, 8); WholeReduceMax(f, g, 64, 4, 1, 1, 8, ReduceOrder::ORDER_ONLY_VALUE); WholeReduceMin(f, g, bits, 4, 1, 1, 8);
BlockReduceSum(f, g, 4, 64, 1, 1, 8); BlockReduceMax(f, g, 4, bits, 1, 1, 8); BlockReduceMin<float, false>(f, g, 4, MASK_PLACEHOLDER, 1, 1, 8);
PairReduceSum(f, g, 4, 64, 1, 1, 8); RepeatReduceSum(f, g, 4, 64, 0, 1, 1, 8);
ReduceRepeat<ReduceType::MAX>(f, g, 64, 4, 1, 1, 8); ReduceDataBlock<ReduceType::SUM>(f, g, 4, 64, 1, 1, 8); ReducePairElem(f, g, 4, 64, 1, 1, 8);
Brcb(f, g, 2, {1, 8}); CreateVecIndex(i, (int32_t)0, n); CreateVecIndex(f, 0.0f, n); ArithProgression(f, 0.0f, 2.0f, n); Arange(i, 0, 1, n);
Gather(f, g, u, (uint32_t)0, n); Gather(f, g, u, (uint32_t)0, (uint64_t)64, 1, 8); Gather(f, g, u, (uint32_t)0, bits, 1, 8); Gatherb(f, g, u, 1, {1, 8});
uint64_t kept; GatherMask(f, g, 1, false, 0, {1, 1, 8, 0}, kept); GatherMask(f, g, u, true, 64, GatherMaskParams{1, 1, 8, 8}, kept);
Transpose(x, y); Sort32(f, g, u, 1);
SetFlag<HardEvent::MTE2_V>(EVENT_ID0); WaitFlag<HardEvent::MTE2_V>(EVENT_ID0); PipeBarrier<PIPE_V>(); PipeBarrier<PIPE_ALL>();
TEventID id = GetTPipePtr()->FetchEventID(HardEvent::V_MTE3); SetFlag<HardEvent::V_MTE3>(id); TEventID held = pipe.AllocEventID<HardEvent::MTE3_V>(); pipe.ReleaseEventID<HardEvent::MTE3_V>(held); pipe.FetchEventID<HardEvent::S_V>();
SyncAll(); SyncAll<true>(); CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1); DataSyncBarrier<MemDsbT::ALL>();
SetMaskCount(); SetMaskNorm(); SetVectorMask<float>(0, ~0ull); SetVectorMask<float, MaskMode::COUNTER>(100); ResetMask();
float v = f.GetValue(3); f.SetValue(3, v); f(3) = f(4); float w = G.GetValue(3); G.SetValue(3, w); G(3) = w; DataCacheCleanAndInvalid<float, CacheLine::ENTIRE_DATA_CACHE>(G);
auto part = f[16].ReinterpretCast<half>(); part.SetSize(8); uint32_t size = part.GetSize() + part.GetLength(); GlobalTensor<float> shifted = G[8]; shifted.SetL2CacheHint(CacheMode::CACHE_MODE_DISABLE);
printf("%d %f\\n", 1, 2.0f); PRINTF("%s", "text"); DumpTensor(f, 1, 8); ASSERT(n > 0); assert(n > 0 && "n");
Silu(f, g, n); Swish(f, g, n, 1.0f); Gelu(f, g, n); Gelu(f, g, b, n); Gelu<float, true>(f, g, n); FasterGelu(f, g, n); FasterGeluV2(f, g, n);
ClampMax(f, g, 1.0f, n); ClampMin(f, g, b, 1.0f, n); Power(f, g, h, n); Power(f, g, 2.0f, n); Power(f, 2.0f, g, n); Power(f, g, h, b, n); Power(f, g, h); Power(f, g, 2.0f);
Fmod(f, g, h, n); SwiGLU(f, g, h, 1.0f); SwiGLU(f, g, h, 1.0f, n); GeGLU(f, g, h, n); ReGlu(f, g, h, n); Exp<float, 5>(f, g, b, n);
SoftMaxTiling st; SoftMaxShapeInfo si{4, 64, 4, 60}; SoftMax(f, g, h, f, b, st, si); SoftMax(f, g, h, f, st); SoftMax(f, g, b, st, si); SoftMax(f, g, st, si); SoftMax(x, g, h, y, st, si); LogSoftMax(f, g, h, f, st, si);
Sum(f, g, {4, 64, 60}); Sum(f, g, b, SumParams{4, 64, 60}); Mean(f, g, MeanParams{4, 64, 60}); CumSum(f, g, h, CumSumInfo{4, 64}); static constexpr CumSumConfig down{false, false, true}; CumSum<float, down>(f, g, h, b, CumSumInfo{4, 64});
uint32_t to[2] = {4, 64}, from[2] = {4, 1}; Broadcast<float, 2, 1>(f, g, to, from); BroadCast<float, 2, 0>(f, g, to, from, b); Broadcast<float, 1, 0>(f, g, to, from);
PadParams pp{0, 4, 0}; PadTiling pt; Pad(f, g, pp, pt); UnPadParams up{0, 4}; UnPad(f, g, up, pt); LayerNormTiling lt; LayerNorm(f, g, h, f, g, h, 1e-5f, lt); RmsNorm(f, g, h, 1e-5f, lt);
TopkTiling tt; TopKInfo ti{1, 64, 60}; LocalTensor<bool> done; TopK(f, i, g, i, done, 5, tt, ti); TopK(f, i, g, i, done, b, 5, tt, ti, false);
TQue<TPosition::VECIN, 1> in; TQue<QuePosition::VECOUT, 2> out; TBuf<TPosition::VECCALC> buf; TBuf<> plain; TQueBind<TPosition::VECIN, TPosition::VECOUT, 1> through; TQue<TPosition::VECIN, 0> place; pipe.InitBuffer(in, 2, 256); pipe.InitBuffer(buf, 256); pipe.InitBuffer(plain, 256); pipe.InitBuffer(through, 1, 256); LocalTensor<float> t = in.AllocTensor<float>(); in.EnQue(t); t = in.DeQue<float>(); in.FreeTensor(t); LocalTensor<half> inside; place.AllocTensor(inside); place.EnQue(inside); place.DeQue(inside); place.FreeTensor(inside); bool some = in.HasTensorInQue() && in.VacantInQue() && in.HasIdleBuffer() && in.GetTensorCountInQue() > 0; auto whole = buf.Get<float>(), first = buf.Get<float>(8), rest = buf.GetWithOffset<float>(8, 32); LocalMemAllocator<Hardware::UB> room; auto own = room.Alloc<TPosition::VECIN, float, 64>(), more = room.Alloc<TPosition::VECIN, float>(64); LocalTensor<float> fixed(TPosition::VECCALC, 0, 64); PopStackBuffer<uint8_t, TPosition::LCM>(b); pipe.Reset(); pipe.Destroy();
int64_t core = GetBlockIdx() + GetBlockNum() + GetSubBlockIdx() + GetTaskRation() + GetSystemCycle(); InitSocState(); float root = sqrt(2.0f); int32_t larger = max(1, 2) + min(3, 4) + abs(-5); half hv = 1.5; float fv = hv * 2; bfloat16_t bv = ToBfloat16(1.0f); float bf = ToFloat(bv); int32_t cut = ScalarCast<float, int32_t, RoundMode::CAST_FLOOR>(1.5f); constexpr half one = 1.0f; if (ASCEND_IS_AIV) {}
Not(s, s, n); Xor(s, s, s, n); KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
""".strip().splitlines()  # noqa: E501

#: Statements that must not compile.
ABSENT = """
Subs(f, g, 1.0f, n);
Divs(f, g, 2.0f, n);
Neg(f, g, n);
Ands(s, s, (int16_t)1, n);
Ors(s, s, (int16_t)1, n);
Scatter(f, g, u, (uint32_t)0, n);
Interleave(f, g, h, f, n);
Truncate<float>(f, g, n);
Adds(f, g, 1, n);
Muls(f, g, 2.0, n);
Duplicate(f, 0, n);
Adds(x, y, 1.0f, n);
Add(f, g, h, 64, 1);
Add(f, g, 1.0f, n);
Add(f, x, y, n);
DataCopy(x, G, n);
ReduceSum(f, g, n);
ReduceMax(f, g, n);
Compare(f, g, h, CMPMODE::LT, n);
Compare(b, f, g, n);
Cast(f, x, n);
float a = expf(1.0f);
float a = logf(1.0f);
float a = sqrtf(1.0f);
float a = tanhf(1.0f);
float a = exp(1.0f);
float a = FLT_MAX;
float a = INFINITY;
float a = std::numeric_limits<float>::max();
float a = std::max(1.0f, 2.0f);
f.GetPtr();
f.Slice(0, 8);
f.GetData();
TBuf<TPosition::VECCALC> t; pipe.InitBuffer(t, 2, 256);
TQue<TPosition::VECIN, 1> q; pipe.InitBuffer(q, 256);
TQue<TPosition::VECIN, 1> q; q.EnQue(1.0f);
TQue<TPosition::VECIN, 1> q; LocalTensor<float> t; q.AllocTensor(t);
TQue<TPosition::VECIN, 0> q; auto t = q.AllocTensor<float>();
TQue<TPosition::VECIN, 1> q; q.FreeTensor(q.DeQue<float>());
TPipe second = pipe;
bfloat16_t a = ToBfloat16(1.0f); float c = a * 2.0f;
SetAtomicAdd<int64_t>();
CrossCoreSetFlag<3, PIPE_MTE3>(1);
Broadcast<float, 3, 1>(f, g, nullptr, nullptr);
GET_TILING_DATA(t, G);
""".strip().splitlines()

FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;
template <class T> using LT = LocalTensor<T>;
"""
FUNCTION = (
    "void f{}(TPipe &pipe, LT<float> f, LT<float> g, LT<float> h, LT<half> x, LT<half> y, LT<int32_t> i, LT<int16_t> s, "
    "LT<uint32_t> u, LT<uint8_t> b, GlobalTensor<float> G, uint32_t n, const uint64_t bits[]) {{ {} }}\n"
)


def errors(tmp_path: Path, statements: Iterable[str]) -> dict[str, str]:
    """Which statements g++ refuses, each in a function of its own, and why."""
    listed = list(statements)
    source = tmp_path / "kernel.cpp"
    source.write_text(FILE + "".join(FUNCTION.format(k, text) for k, text in enumerate(listed)))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-fmax-errors=0", "-I", INCLUDE, source]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    head = FILE.count("\n") + 1
    found: dict[str, str] = {}
    line = 0
    for text in output.splitlines():
        if here := re.match(rf"{re.escape(str(source))}:(\d+):", text):
            line = int(here[1])
        if "error:" in text and line >= head:
            found.setdefault(listed[line - head], text.split("error:", 1)[1].strip())
    assert bool(found) == ("error:" in output), output[:2000]
    return found


def forms(name: str, operands: str, params: str) -> list[str]:
    masked = f"1, {params}"
    return [
        f"{name}({operands}, n);",
        f"{name}({operands}, 16, {masked});",
        f"{name}({operands}, bits, {masked});",
        f"{name}<T, false>({operands}, MASK_PLACEHOLDER, {masked});",
    ]


def typed(statements: Iterable[str], dtype: str) -> list[str]:
    return [f"using T = {dtype}; LT<T> t0, t1, t2; {text}" for text in statements]


def families() -> list[tuple[str, tuple[str, ...], list[str]]]:
    """Name, element types, statements in terms of T and t0, t1, t2."""
    two, one = "BinaryRepeatParams{1, 1, 1, 8, 8, 8}", "UnaryRepeatParams{1, 1, 8, 8}"
    found = [(name, types, forms(name, "t0, t1, t2", two)) for name, types in BINARY.items()]
    found += [(name, types, forms(name, "t0, t1", one)) for name, types in UNARY.items()]
    found += [(name, types, forms(name, "t0, t1, T(2)", one)) for name, types in SCALAR.items()]
    calls = ("({});", "({}, n);", "({}, b);", "({}, b, n);")
    found += [(name, FLOATS, [name + call.format("t0, t1") for call in calls]) for name in LIBRARY]
    found.append(("Duplicate", MOVABLE, ["Duplicate(t0, T(1), n);", "Duplicate(t0, T(1), 16, 1, 1, 8);"]))
    found.append(("DataCopy", ALL, ["GlobalTensor<T> gm; DataCopy(t0, gm, n); DataCopy(gm, t0, n);"]))
    return [(name, types, [text for text in texts if "<T, false>" not in text or name not in ("MulAddDst", "Axpy")]) for name, types, texts in found]


def test_every_supported_form_compiles(tmp_path: Path) -> None:
    statements = [text for _, types, texts in families() for dtype in types for text in typed(texts, dtype)]
    statements += [f"LT<{target}> a; LT<{source}> c; Cast(a, c, RoundMode::CAST_NONE, n);" for source, target in CASTS]
    assert errors(tmp_path, [*statements, *OTHERS]) == {}


def test_unsupported_types_are_refused_with_the_list_of_supported_ones(tmp_path: Path) -> None:
    refused = {text: (name, types) for name, types, texts in families() for dtype in ALL if dtype not in types for text in typed(texts[:1], dtype)}
    found = errors(tmp_path, refused)
    assert found.keys() == refused.keys()
    for text, (name, types) in refused.items():
        if name not in ("Axpy", "MulAddDst"):
            assert f"{name} takes {', '.join(types)}" in found[text] or set(re.findall(r"\w+_t|half|float", found[text])) >= set(types)


def test_pairs_that_cast_does_not_have_are_refused(tmp_path: Path) -> None:
    pairs = [(source, target) for source in ALL for target in ALL if (source, target) not in CASTS]
    statements = [f"LT<{target}> a; LT<{source}> c; Cast(a, c, RoundMode::CAST_NONE, n);" for source, target in pairs]
    assert errors(tmp_path, statements).keys() == set(statements)


def test_what_the_device_lacks_is_absent(tmp_path: Path) -> None:
    found = errors(tmp_path, ABSENT)
    assert [text for text in ABSENT if text not in found] == []
    assert "TPipe::InitBuffer(T& que, uint8_t num, uint32_t len) not supports T as TBuf" in found["TBuf<TPosition::VECCALC> t; pipe.InitBuffer(t, 2, 256);"]


def test_the_header_includes_no_library_but_the_types(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text(FILE)
    command = ["g++", "-std=c++17", "-M", "-I", INCLUDE, tmp_path / "kernel.cpp"]
    included = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("\\\n", " ").split()
    foreign = {Path(path).name for path in included if "c++" in path and "bits" not in path and not path.endswith(".h")}
    assert foreign <= {"cstdint", "type_traits"}
