"""The header has every name in every call form, for the element types that Atlas A2 has, and nothing beyond."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
import yaml

from kernel_gym.hardware.ascend_sim import runtime as runtimes
from kernel_gym.hardware.host import runtime as host

INCLUDE = ("-I", runtimes.HERE / "include", "-I", host.INCLUDE)

ALL = (
    "int8_t",
    "uint8_t",
    "int16_t",
    "uint16_t",
    "half",
    "bfloat16_t",
    "int32_t",
    "uint32_t",
    "float",
    "int64_t",
    "uint64_t",
)
ARITHMETIC, FLOATS, BITS = ("int16_t", "half", "int32_t", "float"), ("half", "float"), ("int16_t", "uint16_t")
MOVABLE = ("int16_t", "uint16_t", "half", "bfloat16_t", "int32_t", "uint32_t", "float")
SHIFTS = ("int16_t", "uint16_t", "int32_t", "uint32_t")

BINARY = dict.fromkeys(("Add", "Sub", "Mul", "Max", "Min"), ARITHMETIC)
BINARY |= dict.fromkeys(("Div", "FusedMulAdd", "FusedMulAddRelu", "MulAddDst"), FLOATS)
BINARY |= {"And": BITS, "Or": BITS} | dict.fromkeys(("AddRelu", "SubRelu"), ("int16_t", "half", "float"))
UNARY = dict.fromkeys(("Exp", "Ln", "Abs", "Sqrt", "Rsqrt", "Reciprocal"), FLOATS) | {
    "Relu": ("half", "float", "int32_t"),
    "Not": BITS,
}
SCALAR = dict.fromkeys(("Adds", "Muls", "Maxs", "Mins"), ARITHMETIC) | {
    "LeakyRelu": FLOATS,
    "ShiftLeft": SHIFTS,
    "ShiftRight": SHIFTS,
    "Axpy": FLOATS,
}
LIBRARY = [
    "Tanh",
    "Sigmoid",
    "Erf",
    "Erfc",
    "Sin",
    "Cos",
    "Tan",
    "Asin",
    "Acos",
    "Atan",
    "Sinh",
    "Cosh",
    "Asinh",
    "Acosh",
]
LIBRARY += ["Atanh", "Floor", "Ceil", "Round", "Trunc", "Frac", "Sign", "Lgamma", "Digamma", "Log", "Log2", "Log10"]
CASTS = {
    ("half", "float"), ("bfloat16_t", "float"), ("int16_t", "float"), ("int8_t", "half"), ("uint8_t", "half"),
    ("float", "half"),
    ("float", "bfloat16_t"), ("float", "int32_t"), ("float", "int16_t"), ("float", "int64_t"), ("float", "float"),
    ("half", "int32_t"), ("half", "int16_t"), ("bfloat16_t", "int32_t"), ("int64_t", "float"), ("half", "int8_t"),
    ("half", "uint8_t"), ("int16_t", "half"), ("int32_t", "float"), ("int32_t", "int16_t"), ("int32_t", "int64_t"),
    ("int64_t", "int32_t"), ("int32_t", "half"),
}  # fmt: skip

#: Statements that must compile, and such that must not.
STATEMENTS = yaml.safe_load(Path(__file__).with_name("header.yaml").read_text())

FILE = """#include "kernel_operator.h"
#include "kernel_gym.h"
#include "lib/matmul_intf.h"
using namespace AscendC;
template <class T> using LT = LocalTensor<T>;
// Better than the header's own for `x + y`, which must not find it.
void Add(LT<half>, LT<half>, LT<half>, int32_t, asc::At, float = 1.0f) = delete;
struct Queue {
    static constexpr bool isTQue = true;
    uint32_t id(float = 1.0f) const { return 0; }
};
"""
FUNCTION = (
    "void f{}(TPipe &pipe, LT<float> f, LT<float> g, LT<float> h, LT<half> x, LT<half> y, LT<int32_t> i, "
    "LT<int16_t> s, LT<uint32_t> u, LT<uint8_t> b, GlobalTensor<float> G, uint32_t n, const uint64_t bits[]) {{ {} }}\n"
)


def errors(tmp_path: Path, statements: Iterable[str]) -> dict[str, str]:
    """Which statements g++ refuses, each in a function of its own, and why."""
    listed = list(statements)
    source = tmp_path / "kernel.cpp"
    source.write_text(FILE + "".join(FUNCTION.format(k, text) for k, text in enumerate(listed)))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-fmax-errors=0", *INCLUDE, source]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    head = FILE.count("\n") + 1
    messages: dict[str, str] = {}
    line = 0
    for text in output.splitlines():
        if here := re.match(rf"{re.escape(str(source))}:(\d+):", text):
            line = int(here[1])
        if "error:" in text and line >= head:
            messages.setdefault(listed[line - head], text.split("error:", 1)[1].strip())
    assert bool(messages) == ("error:" in output), output[:2000]
    return messages


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
    binary, unary = "BinaryRepeatParams{1, 1, 1, 8, 8, 8}", "UnaryRepeatParams{1, 1, 8, 8}"
    cases = [(name, types, forms(name, "t0, t1, t2", binary)) for name, types in BINARY.items()]
    cases += [(name, types, forms(name, "t0, t1", unary)) for name, types in UNARY.items()]
    cases += [(name, types, forms(name, "t0, t1, T(2)", unary)) for name, types in SCALAR.items()]
    calls = ("({});", "({}, n);", "({}, b);", "({}, b, n);")
    cases += [(name, FLOATS, [name + call.format("t0, t1") for call in calls]) for name in LIBRARY]
    cases.append(("Duplicate", MOVABLE, ["Duplicate(t0, T(1), n);", "Duplicate(t0, T(1), 16, 1, 1, 8);"]))
    cases.append(("DataCopy", ALL, ["GlobalTensor<T> gm; DataCopy(t0, gm, n); DataCopy(gm, t0, n);"]))
    return [
        (name, types, [text for text in texts if "<T, false>" not in text or name not in ("MulAddDst", "Axpy")])
        for name, types, texts in cases
    ]


def test_every_supported_form_compiles(tmp_path: Path) -> None:
    statements = [text for _, types, texts in families() for dtype in types for text in typed(texts, dtype)]
    statements += [f"LT<{target}> a; LT<{source}> c; Cast(a, c, RoundMode::CAST_NONE, n);" for source, target in CASTS]
    assert errors(tmp_path, [*statements, *STATEMENTS["compiles"]]) == {}


#: Names that authors give to functions and types of their own, beside `using namespace AscendC`.
OWN = [
    "template <class A, class B> constexpr A DivCeil(A, B) { return 77; } static_assert(DivCeil(n, 2ull) == 77);",
    "template <class T> constexpr T DivCeil(T, T) { return 77; } "
    "static_assert(DivCeil(n, 2u) == 77 && DivCeil<int>(n, 2) == 77);",
    "template <class T> constexpr T AlignUp(T, T) { return 77; } static_assert(AlignUp(n, 2u) == 77);",
    "template <class T> constexpr T CeilDivision(const T &, const T &) { return 77; } "
    "static_assert(CeilDivision(n, n) == 77);",
    "constexpr uint32_t AlignUp(uint32_t, uint32_t) { return 77; } "
    "static_assert(AlignUp(n, 2u) == 77 && AlignUp(3, 2) == 4);",
    "constexpr uint32_t max(uint32_t, uint32_t) { return 77; } static_assert(max(n, 2u) == 77 && min(n, 2u) == 2);",
    "constexpr uint32_t min(uint32_t, uint32_t) { return 77; } static_assert(min(n, 2u) == 77 && max(3, 2) == 3);",
    "template <class T> constexpr T min(T a, T b) { return a < b ? a : b; } "
    "static_assert(min(n, 2u) == 2 && min<int>(n, 2) == 2);",
    "constexpr float abs(float) { return 77; } constexpr float sqrt(float) { return 77; } "
    "static_assert(abs(1.0f) == 77 && sqrt(1.0f) == 77 && abs(-1) == 1);",
    "struct At { int n; }; constexpr At at{77}; static_assert(at.n == 77);",
    "constexpr uint32_t MAX_DIM = 77; static_assert(MAX_DIM == 77);",
    "namespace detail { constexpr int n = 77; } static_assert(detail::n == 77);",
    "constexpr int64_t get_block_idx() { return 77; } static_assert(get_block_idx() == 77);",
    "constexpr int own() { int block_idx = 77; return block_idx; } static_assert(own() == 77);",
    "constexpr int own() { int a = 77; __builtin_assume(++a > 0, a); return a; } static_assert(own() == 77);",
]


@pytest.mark.parametrize("own", OWN)
def test_a_name_of_the_author_s_own_is_nearer(tmp_path: Path, own: str) -> None:
    (tmp_path / "kernel.cpp").write_text(FILE + "constexpr uint32_t n = 4;\n" + own)
    command = ["g++", "-std=c++17", "-fsyntax-only", *INCLUDE, tmp_path / "kernel.cpp"]
    assert subprocess.run(command, capture_output=True, text=True, check=False).stderr == ""


def test_unsupported_types_are_refused_with_the_list_of_supported_ones(tmp_path: Path) -> None:
    refused = {
        text: (name, types)
        for name, types, texts in families()
        for dtype in ALL
        if dtype not in types
        for text in typed(texts[:1], dtype)
    }
    messages = errors(tmp_path, refused)
    assert messages.keys() == refused.keys()
    for text, (name, types) in refused.items():
        if name not in ("Axpy", "MulAddDst"):
            assert f"{name} takes {', '.join(types)}" in messages[text] or set(
                re.findall(r"\w+_t|half|float", messages[text])
            ) >= set(types)


def test_pairs_that_cast_does_not_have_are_refused(tmp_path: Path) -> None:
    pairs = [(source, target) for source in ALL for target in ALL if (source, target) not in CASTS]
    statements = [f"LT<{target}> a; LT<{source}> c; Cast(a, c, RoundMode::CAST_NONE, n);" for source, target in pairs]
    assert errors(tmp_path, statements).keys() == set(statements)


def test_names_that_the_device_lacks_are_absent(tmp_path: Path) -> None:
    messages = errors(tmp_path, STATEMENTS["refused"])
    assert [text for text in STATEMENTS["refused"] if text not in messages] == []
    assert (
        "TPipe::InitBuffer(T& que, uint8_t num, uint32_t len) not supports T as TBuf"
        in messages["TBuf<TPosition::VECCALC> t; pipe.InitBuffer(t, 2, 256);"]
    )


#: Classes whose functions have default arguments. Whoever calls such a function evaluates them.
POOL = (
    "TBufPool<TPosition::VECCALC> pool; struct P { void place(asc_local, float = 1.0f) {} "
    "asc_local whole(float = 1.0f) { return {}; } "
    "bool InitBufPool(TBufPool<TPosition::VECCALC> &, uint32_t, P &, asc::At, float = 1.0f) { return true; } } p; "
)
WORKER = (
    "struct W { void Init(const TCubeTiling *, TPipe *, float = 1.0f) {} } w; "
    "using M = MatmulType<TPosition::GM, CubeFormat::ND, float>; Matmul<M, M, M> m; "
)
COPIED = "struct C { C() {} C(const C &, float = 1.0f) {} operator uint64_t() const { return 1; } } c; "
LAUNCHED = "struct L { L() {} L(const L &) = default; L(L &, float = 1.0f) {} }; "
CONVERTED = "extern void one(uint32_t); extern void other(float); "
FOREIGN = {
    "Queue q; pipe.InitBuffer(q, 1, 32);": "no matching function",
    "Queue q; TBufPool<TPosition::VECCALC> pool; pool.InitBuffer(q, 1, 32);": "no matching function",
    POOL + "pool.InitBufPool(p, 32);": "no matching function",
    POOL + "pool.InitBufPool(pool, 32, p);": "no matching function",
    POOL + "pipe.InitBufPool(pool, 32, p);": "no matching function",
    WORKER + "macro_detail::regist_matmul(&pipe, nullptr, w, nullptr);": "no matching function",
    WORKER + "macro_detail::regist_matmul(&pipe, nullptr, m, nullptr, w, nullptr);": "no matching function",
    COPIED + "LocalTensor<C> t;": "LocalTensor holds numbers",
    COPIED + "GlobalTensor<C> t;": "GlobalTensor holds numbers",
    COPIED + 'AscendC::printf("%d", c);': "printf takes numbers and texts",
    COPIED + "Gather(f, g, u, 0, c, 1, 8);": "a mask is a number or an array of uint64_t",
    COPIED + "asc_detail::bytes_in(c);": "takes the parameters of DataCopyPad",
    COPIED + "asc::Launcher<0, nullptr, C> l{1};": "a kernel's arguments are copied as bytes",
    LAUNCHED + "asc::Launcher<0, nullptr, L> l{1};": "a kernel's arguments are copied as bytes",
    CONVERTED + "asc::Launcher<0, one, float> l{1};": "a kernel takes its arguments as they are",
    CONVERTED + "asc_launcher_of<0, one>(other, 1);": "a kernel takes its arguments as they are",
}


def test_code_that_is_not_counted_calls_no_function_of_the_authors(tmp_path: Path) -> None:
    messages = errors(tmp_path, FOREIGN)
    assert {text for text, why in FOREIGN.items() if why not in messages.get(text, "")} == set()


def test_a_kernel_that_throws_nothing_is_launched(tmp_path: Path) -> None:
    assert not errors(tmp_path, ["extern void one(uint32_t) noexcept; asc_launcher<0, one>(1, nullptr, nullptr)(n);"])


#: Arguments of classes in the namespace of the headers make its functions known to a call by a template's name.
FOUND = """template <int, int> void launcher(); template <int, int> void launcher_of();
void one(uint32_t); void other(float);
struct Count : decltype(LT<float>() + LT<float>()) { operator uint32_t() const { return 1; } } count;
"""


@pytest.mark.parametrize("call", ["launcher<0, one>(count, nullptr, nullptr)", "launcher_of<0, one>(other, count)"])
def test_an_author_s_class_finds_no_launcher(tmp_path: Path, call: str) -> None:
    (tmp_path / "kernel.cpp").write_text(f"{FILE}{FOUND}void f() {{ {call}(1.5f); }}\n")
    command = ["g++", "-std=c++17", "-fsyntax-only", *INCLUDE, tmp_path / "kernel.cpp"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert f"no matching function for call to '{call.partition('<')[0]}" in output.replace("‘", "'")


def test_traits_that_an_author_specialises_are_not_those_of_the_checks(tmp_path: Path) -> None:
    std = "namespace std { template <> struct remove_reference<C> { using type = int; }; "
    std += "template <> struct is_integral<C> : true_type {}; template <> constexpr bool is_integral_v<C> = true; }\n"
    own = "struct C { C(); C(const C &); operator int() const; };\n"
    refused = "void f(C c) { asc::Launcher<0, nullptr, C> l{1}; asc::Repeat repeat(c); }"
    (tmp_path / "kernel.cpp").write_text(FILE + own + std + refused)
    command = ["g++", "-std=c++17", "-fsyntax-only", *INCLUDE, tmp_path / "kernel.cpp"]
    output = subprocess.run(command, capture_output=True, text=True, check=False).stderr
    assert "a kernel's arguments are copied as bytes" in output
    assert "asc::Repeat::Repeat(C&)" in output
    headers = (runtimes.HERE / "include").rglob("*.h")
    assert [path.name for path in headers if re.search(r"std::(?!initializer_list)", path.read_text())] == []


def test_the_header_includes_no_library_but_the_types(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text(FILE)
    command = ["g++", "-std=c++17", "-M", *INCLUDE, tmp_path / "kernel.cpp"]
    included = subprocess.run(command, capture_output=True, text=True, check=True).stdout.replace("\\\n", " ").split()
    foreign = {Path(path).name for path in included if "c++" in path and "bits" not in path and not path.endswith(".h")}
    assert foreign <= {"cstdint", "type_traits"}
