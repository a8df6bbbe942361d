"""Functions are called by their names: a kernel that calls anything else does not compile."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from kernel_gym.confinement import building
from kernel_gym.errors import InfrastructureError
from kernel_gym.hardware.ascend_sim import calls, symbol_table
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from tests.hardware.ascend_sim.test_guard import source

TYPES = """
struct Wide { uint64_t words[12]; };
struct Word { uint64_t value; };
__aicore__ inline Wide Read(Wide v) { Wide copy = v; return copy; }
__aicore__ inline Wide Make(uint64_t n) { Wide made = {{n}}; return made; }
__aicore__ inline uint64_t Value(Word w) { return w.value; }
__aicore__ inline void Nothing(uint64_t) {}
struct Class { uint64_t n; __aicore__ inline uint64_t Get(Wide v) { return v.words[0] + n; } };
template <class R, class... P> using Pointer = R (*)(P...);
"""


def by_a_member(kind: str, function: str, call: str) -> str:
    cast = f"reinterpret_cast<{kind}>(reinterpret_cast<uint64_t>(&{function}))"
    return f"struct Box {{ static inline const {kind} q = {cast}; }}; __aicore__ void Go(uint64_t n) {{ {call}; }}"


MISTYPED = {
    "a number for an object": by_a_member("Pointer<Wide, uint64_t>", "Read", "Wide w = Box::q(n)"),
    "a small object for a large one": by_a_member("Pointer<Wide, Word>", "Read", "Word s{n}; Wide w = Box::q(s)"),
    "a result that is not there": by_a_member("Pointer<uint64_t, uint64_t>", "Nothing", "n = Box::q(n)"),
    "a number for a returned object": by_a_member("Pointer<uint64_t, uint64_t>", "Make", "n = Box::q(n)"),
    "a returned object without a place": by_a_member("Pointer<void, uint64_t>", "Make", "Box::q(n)"),
    "a smaller object as the result": by_a_member("Pointer<Word, uint64_t>", "Make", "Word w = Box::q(n)"),
    "a variable outside of functions": """
        using Small = Pointer<Word, uint64_t>;
        inline const Small q = reinterpret_cast<Small>(reinterpret_cast<uint64_t>(&Make));
        __aicore__ void Go(uint64_t n) { Word w = q(n); }""",
    "more arguments": by_a_member("Pointer<void, uint64_t, uint64_t>", "Nothing", "Box::q(n, n)"),
    "a variable template": """
        template <class T> struct Of { static const T q; };
        template <class T> const T Of<T>::q = reinterpret_cast<T>(reinterpret_cast<uint64_t>(&Read));
        __aicore__ void Go(uint64_t n) { Wide w = Of<Pointer<Wide, uint64_t>>::q(n); }""",
    "a template in a template": """
        template <auto F, class T> inline const T called = reinterpret_cast<T>(reinterpret_cast<uint64_t>(F));
        template <bool> __aicore__ Wide Of(uint64_t n) { Wide made = {{n}}; return made; }
        __aicore__ void Go(uint64_t n) { Word w = called<Of<1<2>, Pointer<Word, uint64_t>>(n); }""",
    "a function that returns a pointer to a method": """
        __aicore__ auto Take(Wide v, Wide *to) -> uint64_t (Class::*)(Wide) { *to = v; return nullptr; }
        inline const Pointer<void> q = reinterpret_cast<Pointer<void>>(reinterpret_cast<uint64_t>(&Take));
        __aicore__ void Go(uint64_t n) { q(); }""",
    "any number of arguments": """
        using Any = uint64_t (*)(...);
        using Of = uint64_t (*)(Wide);
        __aicore__ void Go(uint64_t n) { Wide w{}; reinterpret_cast<Of>(reinterpret_cast<Any>(&Value))(w); }""",
    "behind a string that looks like a tree": r"""
        __aicore__ void Go(uint64_t n) {
            AscendC::printf("\n;; Function Go (null)\n\n 1      void_type        algn: 8 \n");
            Word w = reinterpret_cast<Pointer<Word, uint64_t>>(reinterpret_cast<uint64_t>(&Make))(n);
        }""",
    "a method": """
        __aicore__ void Go(uint64_t n) {
            Class object{n};
            (void)reinterpret_cast<uint64_t>((Pointer<uint64_t, Class *, Wide>)(&Class::Get));
        }""",
}
TWICE = {
    "in two namespaces": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace other { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = other::Both(n); }""",
    "with another result": """
        namespace own { extern "C" __aicore__ Wide Both(uint64_t n) { Wide made = {{n}}; return made; } }
        namespace other { extern "C" __aicore__ void Both(uint64_t n); }
        __aicore__ void Go(uint64_t n) { other::Both(n); }""",
    "like a constructor": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace Both { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = Both::Both(n); }""",
    "before it is defined": """
        namespace other { extern "C" __aicore__ Wide Both(uint64_t v); }
        __aicore__ void Go(uint64_t n) { Wide w = other::Both(n); }
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }""",
    "as a friend": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        namespace other { extern "C" { struct Key { uint64_t n; friend Wide Both(const Key &k, uint64_t n); }; } }
        __aicore__ void Go(uint64_t n) { other::Key key{n}; Wide w = Both(key, n); }""",
    "in a function": """
        namespace own { extern "C" __aicore__ Wide Both(Wide v) { Wide copy = v; return copy; } }
        extern "C" { __aicore__ void Go(uint64_t n) { Wide Both(uint64_t v); Wide w = Both(n); } }""",
}
NO_RETURN = """
    namespace std { void __throw_logic_error(const char *p) {} }
    __aicore__ void Go(uint64_t n) { std::__throw_logic_error(nullptr); }"""
RIGHT = """
using Same = Wide;
struct Around { Wide inner, rows[3]; };
constexpr Wide kOne = {{1}};
__aicore__ inline Wide Keep(Wide v) { return v; }
template <class F> __aicore__ inline uint64_t With(F f) { return f(kOne).words[0]; }
__aicore__ uint64_t Pick(uint64_t n) { return With([](Wide v) { return Keep(v); }) + (*Make)(n).words[1]; }
__aicore__ inline Wide Quiet(Wide v) noexcept { return v; }
template <Wide (*F)(Wide)> __aicore__ inline Wide Apply(Wide v) { return F(v); }
__aicore__ void Go(uint64_t n) {
    Around around{};
    Same same{};
    const Wide &bound = same;
    same = Read(around.inner), same = Read(around.rows[n % 3]);
    same = Read(kOne), same = Read(bound), same = Read(same);
    Wide wide = Make(n), other = Read(wide);
    Make(n);
    Nothing(Value({n}) + Value(Word{n}));
    Class object{n};
    const auto twice = [&](Wide v) { return Read(v); };
    Wide *pointer = &other;
    other = Read(*pointer);
    other = twice(wide);
    other = Apply<Quiet>(wide), *pointer = Apply<Keep>(other), around.inner = Apply<Keep>(other);
    Nothing(object.Get(other) + object.Get(*pointer));
    AscendC::printf("a line\\r\\nand another line\\r\\nand a third\\r\\n");
    AscendC::printf("a number\\n\\tand \\"another\\" @ home: @2\\n");
    (void)Pick(n);
}"""


#: Characters of a line in the compiler's dump.
CODES = ", ".join(str(code) for code in b"\n;; Function Go (null)\n\n@1 void_type x\n\0")
COMPARED = """
inline constexpr uint16_t _zeros[] = {0, 1, 0, 2};
inline constexpr uint8_t _ones[] = {1, 10, 64, 2};
struct Flags { uint32_t last : 1, rest : 31; };
struct Position { uint64_t row, column; };
__aicore__ Position operator+(Position a, Position b) { return {a.row + b.row, a.column + b.column}; }
__aicore__ std::pair<uint64_t, uint64_t> Both(uint64_t n) { return {n, n + 1}; }
__aicore__ bool Compared(uint64_t n) {
    Flags flags{_zeros[n % 4], _ones[n % 4]};
    auto [a, b] = Both(n);
    Position here{n, n}, there = here + here;
    const bool below = a < n, above = b > n;
    bool all = below & above;
    all &= there.row < n;
    return flags.last == 1 && a < b && (all | (below == above)) && (n & (a < b));
}
__aicore__ void Go(uint64_t n) { (void)Compared(n); }
"""
JOINED = [f"(n > 0) {operator} (f() > 2)" for operator in "&|"]


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as chip:
        yield chip


@pytest.mark.parametrize("function", MISTYPED.values(), ids=MISTYPED)
def test_a_function_called_as_another_does_not_compile(device: AscendSim, function: str):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + function)))
    assert compiled.diagnostics
    message = compiled.diagnostics[0].message
    reasons = ("through a pointer, a cast or a virtual table", "a method is cast", "with zeros")
    assert any(reason in message for reason in reasons)


@pytest.mark.parametrize("declarations", TWICE.values(), ids=TWICE)
def test_a_function_that_is_declared_as_two_does_not_compile(device: AscendSim, declarations: str):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + declarations)))
    message = compiled.diagnostics[0].message
    assert "Both has two declarations that differ" in message


@pytest.mark.parametrize("text", [r'"\n;; Function Go (null)\n\n@1 node x"', r'"\n@7 void_type x"', f"{{{CODES}}}"])
def test_strings_cannot_look_like_trees(device: AscendSim, text: str):
    read = f'static const char text[] = {text}; AscendC::printf("%d", text[0]); Nothing(Value(Word{{1}}));'
    compiled = device.build(Kernel(source("core", read, TYPES)))
    message = compiled.diagnostics[0].message
    assert "with zeros" in message or "through a pointer, a cast or a virtual table" in message


#: A function in the dump whose first node is a string.
STRING = """ (null)

@1      string_cst       type: @2       strg: {0}    lngt: {1}
@2      array_type       size: @3       algn: 8
@3      integer_cst      type: @2       int: 3
"""


@pytest.mark.parametrize(
    ("string", "length", "is_whole"),
    [
        ("short", 6, True),
        ("two\nlines\n", 11, True),
        ("a", 30, False),  # a zero in its middle
        ("x  lngt: 2\n@2  array_type  size: @3\n@3  integer_cst  int: 3\n;; Function x\n@1  void_type x ", 91, False),
        (
            "x  lngt: 2\n@2  array_type  size: @3\n@3  integer_cst  int: 3\n;; Function x\n@1 string_cst strg: x",
            97,
            False,
        ),
        ("x  lngt: 2\n@2  array_type  size: @3\n@3  identifier_node strg: x", 65, False),
        ("x  lngt: 2\n@2  array_type  size: @3\n@3  constructor type: @2", 62, False),
        ("x  lngt: 2\n@2  array_type  size: @3\n@3  void_type algn: 8\n@9", 62, False),
    ],
)
def test_the_length_of_a_string_shows_what_is_made_up(string: str, length: int, is_whole: bool):
    """Whatever a string looks like, its own length is behind it."""
    trees = ";; Function Go" + STRING.format(string, length)
    parts = [part.partition("\n")[2] for part in trees.split(";; Function ")[1:]]
    found = [calls._node_with_call(part) for part in parts]
    assert (found == [None]) == is_whole


@pytest.mark.parametrize(
    ("declarations", "words"),
    [
        ("inline const uint32_t memset[2] = {1, 2}; uint32_t Go(int n) { return memset[n]; }", "reserved"),
        ('extern "C" int __popcountdi2(Wide v) { return 1; } int Go(int n) { return 1; }', "reserved"),
        ('extern "C" int etext(int n); int Go(int n) { return etext(n); }', "is declared and not defined"),
        (
            'struct a__builtin_B { int w; }; extern "C" const a__builtin_B etext; int Go(int) { return etext.w; }',
            "is declared and not defined",
        ),
        (
            'namespace __builtin_a { extern "C" int *etext(int n); } int Go(int n) { return *__builtin_a::etext(n); }',
            "is declared and not defined",
        ),
    ],
)
def test_symbols_of_the_compiler_and_the_linker_are_not_the_author_s(device: AscendSim, declarations: str, words: str):
    compiled = device.build(Kernel(source("core", "(void)Go(1);", TYPES + declarations)))
    assert words in compiled.diagnostics[0].message


def test_a_dump_without_symbols_is_a_failure():
    with pytest.raises(InfrastructureError):
        symbol_table.fault("", ())


#: Calls of a cast function, numbered, wherever an expression can stand.
EVERYWHERE = """
namespace std {
template <class T> struct initializer_list {
    const T *first; unsigned long size;
    constexpr const T *begin() const { return first; } constexpr const T *end() const { return first + size; }
};
}
typedef unsigned long u;
static u Get(u n) { return n; }
using Other = u (*)(int);
inline const Other other = reinterpret_cast<Other>(reinterpret_cast<u>(&Get));
#define X other(__COUNTER__)
struct Pair { u a, b; };
struct Bits { u low : 3, high : 5; };
struct Object {
    u v; u early = X;
    Object() : v(X) {} Object(u x) : v(x + X) {} ~Object() { X; } Object(const Object &o) : v(o.v + X) {}
    Object &operator=(const Object &o) { v = o.v + X; return *this; }
    operator u() const { return v + X; }
    u operator[](u i) const { return i + X; }
};
struct Base { Base(u) {} };
struct Derived : Base { Derived() : Base(X) {} using Base::Base; };
struct Several { u x[3]; Object o[2]; };
struct Place {
    u i;
    u operator*() const { return i + X; }
    Place &operator++() { ++i; X; return *this; }
    bool operator!=(const Place &o) const { return i != o.i + 0 * X; }
};
struct Range { Place begin() const { return {X}; } Place end() const { return {3 + 0 * X}; } };
template <class T> u Template(T t) { return t + X; }
template <class... T> u Fold(T... t) { return (t + ... + X); }
static u Quiet(u x) noexcept { return x + X; }
static u Default(u x = X) { return x; }
static Bits Field(u n) { return Bits{n & 7, 3}; }
u Least(u a, u b) { return (a < b ? a : b) + X; }
u Most(u a, u b) { return (a > b ? a : b) + X; }
u Turned(u n, int j) { return (n >> j) | (n << (64 - j)); }
u Statements(u n) {
    u r = X;
    r = n ? X : X;
    if (X) r++; else r += X;
    while (X) { r += X; break; }
    do { r += X; } while (X);
    for (u i = X; i < X; i += X) { if (i) continue; r += X; }
    switch (X) { case 1: r += X; break; case 2 ... 4: r += X; break; default: r += X; }
    for (u x : Range{}) r += x;
    for (auto x : {X, X}) r += x;
    if (u w = X; w > X) r++;
    if constexpr (sizeof(u) == 8) r += X;
    { goto end; }
    r += ({ X; X; });
end:
    r += X;
    auto [a, b] = Pair{X, X};
    return a + b + X;
}
u Objects(u n) {
    Object d, e(X), f = d; d = e; u q = f + d[X]; Derived g, h(X); Several s{}, t = s; t = s;
    Pair p{X, X}, o = {.a = X, .b = X}; p = Pair{X, X}; q += Pair{X, X}.a; const Pair &ref = Pair{X, X};
    Bits bits{}; bits.low = X; bits.high += X;
    if (Field(X).low == 2) q++; if (Field(X).low == Field(X).high) q++; if (Field(X).high) q++;
    q += n > X ? Pair{X, X}.a : Pair{X, X}.b;
    auto l = [&](u x) { return x + X; }; auto m = [z = X] { return z + X; };
    q += l(X) + m() + [](u x) -> u { return x + X; }(X);
    return q + ref.a + Template(X) + Fold(X, X) + Quiet(X) + Default() + Default(X) + bits.low;
}
u Expressions(u n, float y, double z, int i, int j) {
    u r = (X, X); r = X && X; r = X || X; r = !X; r = -X; r = ~X; r = X + X * X - X / (X + 1) % (X + 1);
    r <<= X; r >>= X; r = (X << 3) | (X >> 61); r = (r << X) | (r >> (64 - X)); r ^= X; r |= X; r &= X;
    r = (u)(float)X; y = X / y; y = __builtin_fabsf(y + X); z = (double)(y + X); r = *(&r + X);
    u a[3] = {X, X, X}; a[X] = X; r = a[X]; u b[2][2] = {{X, X}, {X, X}}; r += b[X][X];
    u *p = a + X, *s = a; r += (p + X) - (s + X); ++r; --r; r++; r--; ++p[X]; p[X]--;
    volatile u v = X; v = X; r += __builtin_expect(X, 1) + static_cast<u>(X) + u(X) + u{X};
    r += __builtin_isgreater(y, X) + __builtin_isgreaterequal(y, X) + __builtin_isless(y, X);
    r += __builtin_islessequal(y, X) + __builtin_islessgreater(y, X);
    r += X < X; r += X <= X; r += X > X; r += X >= X; r += X == X; r += X != X; r += X ?: X;
    i = i < (int)X ? i : (int)X; i = i > (int)X ? i : (int)X; i = i < 0 ? -i : i; r += (int)X < 0 ? -(int)X : (int)X;
    i = i < j ? i : j; j = i > j ? i : j; n = (n << 3) | (n >> 61);
    __builtin_memcpy(&r, &n, X); u &rr = (X, r); rr += X;
    return X;
}
const u total = __COUNTER__;
"""


def test_every_call_is_in_the_trees(tmp_path: Path):
    """And every kind of node that may have calls in it occurs, so that none is believed to show what it hides."""
    text, trees = tmp_path / "everywhere.cpp", tmp_path / "trees"
    text.write_text(EVERYWHERE)
    flags = ["-std=c++17", "-O0", "-fno-exceptions", "-fno-rtti", "-w", "-c", "-o", str(tmp_path / "x.o")]
    subprocess.run([building.find_compiler(), *flags, f"-fdump-tree-original-raw={trees}", str(text)], check=True)
    total = int(
        re.findall(r"total = (\d+)", subprocess.check_output([building.find_compiler(), "-E", str(text)], text=True))[0]
    )
    found, kinds = set(), set()
    for function in trees.read_text().split(";; Function ")[1:]:
        nodes = {int(number): (kind, fields) for number, kind, fields in calls._NODE.findall(function)}
        kinds |= {kind for kind, _ in nodes.values()}
        for kind, fields in nodes.values():
            if kind == "call_expr" and not calls._is_by_name(fields, nodes):
                argument = nodes[int(re.findall(r"\b0 *: @(\d+)", fields)[0])]
                if argument[0] == "non_lvalue_expr":  # of a number in a default
                    argument = nodes[int(re.findall(r"\bop 0: @(\d+)", argument[1])[0])]
                found.add(int(re.findall(r"int: (\d+)", argument[1])[0]))
    assert found == set(range(total))
    assert kinds >= calls.VISIBLE - {"max_expr", "min_expr", "view_convert_expr"}  # of operands without calls


def test_a_function_that_a_header_declares_never_to_return_is_not_called(device: AscendSim):
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + NO_RETURN)))
    assert "a noreturn function" in compiled.diagnostics[0].message


@pytest.mark.parametrize("text", [RIGHT, COMPARED], ids=["objects", "comparisons"])
def test_functions_that_are_called_by_their_names_compile(device: AscendSim, text: str):
    assert device.build(Kernel(source("core", "Go(1);", TYPES + text))).diagnostics == ()


@pytest.mark.parametrize("joined", JOINED)
def test_comparisons_may_hide_a_call_of_a_function_that_was_cast(device: AscendSim, joined: str):
    hiding = f"""
        inline const auto f = reinterpret_cast<uint64_t (*)()>(reinterpret_cast<uint64_t>(&Value));
        __aicore__ bool Go(uint64_t n) {{ return {joined}; }}"""
    compiled = device.build(Kernel(source("core", "(void)Go(1);", TYPES + hiding)))
    assert "Go(uint64_t) joins comparisons" in compiled.diagnostics[0].message


def test_a_constructor_behind_a_member_with_a_destructor_may_hide_a_call(device: AscendSim):
    hiding = """
        inline const auto f = reinterpret_cast<uint64_t (*)()>(reinterpret_cast<uint64_t>(&Value));
        struct Member { uint64_t n; Member(uint64_t m) : n(m) {} ~Member() {} };
        struct Object { Member member; Object(uint64_t n) : member(n) { f(); } };
        __aicore__ void Go(uint64_t n) { Object object(n); }"""
    compiled = device.build(Kernel(source("core", "Go(1);", TYPES + hiding)))
    assert "constructs a member that has a destructor" in compiled.diagnostics[0].message


@pytest.mark.parametrize("place", ["f()", "1"])
def test_an_assignment_without_the_last_bytes_may_hide_a_call(device: AscendSim, place: str):
    hiding = f"""
        inline const auto f = reinterpret_cast<uint64_t (*)()>(reinterpret_cast<uint64_t>(&Value));
        struct Base {{ uint64_t word = 1; uint8_t byte = 2; }};
        __aicore__ void Go(Base *objects) {{ objects[0] = objects[{place}]; }}"""
    compiled = device.build(Kernel(source("core", "Base objects[3]; Go(objects);", TYPES + hiding)))
    assert "assigns an object that ends with unused bytes" in compiled.diagnostics[0].message


def test_bytes_behind_a_zero_are_not_shown(device: AscendSim):
    table = """
        inline constexpr uint8_t table[] = {1, 0, 2, 3, 4, 5, 6, 7, 8, 9};
        __aicore__ int Go(uint64_t n) { return table[n % 10]; }"""
    compiled = device.build(Kernel(source("core", "(void)Go(1);", TYPES + table)))
    assert "use wider numbers" in compiled.diagnostics[0].message


def test_labels_have_no_addresses(device: AscendSim):
    compiled = device.build(Kernel(source("core", "void *place = &&end; goto *place; end:;", TYPES)))
    assert "the address of a label" in compiled.diagnostics[0].message
