"""The source screen: what is refused, with which rule, and above all what is not."""

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from relu_text import RELU, in_compute, in_launch, with_line
from repository import ROOT

from kernel_gym.verifier import rules
from kernel_gym.verifier.screening import dialect
from kernel_gym.verifier.screening.screen import findings, screen, screen_known_names, screen_preprocessed
from kernel_gym.verifier.screening.source import read

HONEST = sorted((ROOT / "tests" / "verifier" / "honest").glob("*.cpp"))


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_honest_kernels_pass(path):
    source = read(path.read_text())
    assert not source.tree.has_error
    assert list(findings(source)) == []
    assert dialect.lint(source) == ()


HONEST_LINES = [
    "template <class T, class U = AscendC::LocalTensor<T>> struct Own : AscendC::TBuf<> { U t; };",
    "template <class T> __aicore__ inline void f(const AscendC::LocalTensor<T> &t) {}",
    "#define TILE 128",
    "#define ALIGN(x, n) (((x) + (n) - 1) / (n) * (n))",
    "#define CHECK(condition) if (!(condition)) return",
    "#define RELU_KERNEL_H_",
    "#define A B\n#define B constexpr int\nA kOne = 1;\n#undef B",
    "#ifdef __CCE_KT_TEST__\n#define GUARD 1\n#else\n#define GUARD 2\n#endif",
    "#ifndef HALF\n#define HALF 0\n#endif\n"
    "#if HALF == 1 && defined(GUARD)\nusing Element = half;\n#else\nusing Element = float;\n#endif",
    '// system("rm"); asm volatile("nop"); #include </etc/passwd>',
    "/* __attribute__((constructor)) static int counter; */",
    "constexpr float kScale = 0.5f;",
    "static const int32_t kOffsets[3] = {1, 2, 3};",
    "static constexpr uint32_t kTable[] = {1u, 2u};",
    'constexpr const char *kName = "system(1)";',
    "namespace a { namespace b { constexpr int kValue = 3; } }",
    "using namespace AscendC;",
    "namespace tl = AscendC;",
    "typedef AscendC::LocalTensor<float> Local;",
    "enum Mode { FAST, SLOW };",
    "union Bits { float f; uint32_t u; };",
    "template <typename T, uint32_t N> struct Fixed { T data[N]; };",
    "template <typename T> constexpr T Half(T x) { return x / 2; }",
    "struct Empty {};",
    "static int read(int x) { return x; }\nnamespace own { int malloc(int n) { return n; } }",
    "class Forward;",
    "static __aicore__ inline int32_t Up(int32_t a, int32_t b) { return (a + b - 1) / b; }",
    "__aicore__ inline void Nothing();\n__aicore__ inline void Nothing() {}",
    "inline uint32_t operator+(const ReluTiling &a, uint32_t b) { return a.total + b; }",
    'static_assert(sizeof(float) == 4, "");',
    "[[maybe_unused]] static constexpr int kUnused = 1;",
    "struct Functor { __aicore__ inline int32_t operator()(int32_t x) const { return x; } };",
    "class Timer { public: __aicore__ inline void open() {} __aicore__ inline int read() { return 1; } };",
    "template <int N> __aicore__ inline constexpr int Power() { if constexpr (N == 0) return 1; else return 2; }",
    "struct Pointers { __gm__ float *x; __ubuf__ float *y; const KernelArgs *args; };",
    "using Function = int (*)(int);",
    "static int64_t Product(const int64_t *shape, int ndim) { int64_t n = 1; while (ndim--) n *= *shape++; return n; }",
    "#include <type_traits>\ntemplate <typename T> constexpr bool kFloat = std::is_same<T, float>::value;",
    "struct Counter { int value = 0; };  // a member, not a global",
    "constexpr int select = 3, write = 4;",
    "#define LOOP(i, n) for (int32_t i = 0; i < (n); ++i)",
    "#define FIELD(type, name) type name",
    "#define STR(x) #x",
    'extern "C" { struct Plain { int a; }; }',
    "static __attribute__((always_inline)) inline int Inlined(int x) { return x; }",
    "[[gnu::always_inline]] inline int Inlined(int x) { return x; }",
    "[[nodiscard, gnu::always_inline]] inline int Inlined([[maybe_unused]] int x) { return 1; }",
    "#define INLINE __attribute__((always_inline)) inline\nINLINE int Inlined(int x) { return x; }",
    "struct __attribute__((packed, aligned(8))) Packed { char a; int b; };",
    "[[using gnu: always_inline, unused]] inline int Inlined(int x) { return x; }",
    "int (One)();\nint (One)() { return 1; }",
    "REGISTER_TILING_DEFAULT(ReluTiling);",
    "inline int (Twice)(int x) { return x + x; }\nint ((Half))(int x);\nint ((Half))(int x) { return x / 2; }",
    "inline int (*Chosen(int x))(int);\ninline int (*Chosen(int x))(int) { int (*none)(int) = nullptr; return none; }",
    "struct Own { Own(int); int (Get)() const { return 1; } int (Own::*member)(int); };\n(Own::Own)(int) {}",
    "constexpr int kRows = 3;\n"
    'extern "C" { void f(int x) { ReluTiling a(x), b(kRows), c(AscendC::GetBlockIdx()), d(x, kRows), e(x * kRows); } }',
    'extern "C" { void f() { int32_t id(EVENT_ID0); TPosition at(TPosition::VECCALC); int8_t e(A::EVENT_ID1); } }',
    'int Later(int);\nextern "C" int f() { int Later(int); return Later(2); }\nint Later(int x) { return x; }',
    "struct Lazy { mutable int seen = 0; int Get() const { return ++seen; } };\nconstexpr int kOne = 1;",
    "template <class F> __aicore__ inline uint32_t Each(F read) { return read(1); }",
    "struct Clock { int operator()(int a) const { return a; } };\ninline int Now(Clock time) { return time(3); }",
    'inline int read(int x) { return x; }\nextern "C" { inline int Other(int x) { return read(x); } }',
    "struct S { static __aicore__ uint32_t Twice(uint32_t v); };\n"
    "__aicore__ inline uint32_t S::Twice(uint32_t v) { return v * 2; }",
    "struct S { static int *Unused(int v), (Other)(), &operator+(const S &); static auto Last() -> int; int v = 0; };",
    "template <class T> struct S { static int (*Chosen(T))(int); };",
    "template <typename T> __aicore__ inline void Go(T, GM_ADDR x, const Local<T> &y, TPosition = TPosition::GM);\n"
    "template <> __aicore__ inline void Go<float>(float, GM_ADDR, const Local<float> &, TPosition) {}",
    "template <typename T> void OnlyFloat(T) = delete;\ntemplate <> inline void OnlyFloat<float>(float) {}",
    "template <typename T> T Make(); template <typename T> T &(Other)(); template <class... T> void F(T &&..., T...);",
    "template <class T> auto Test(int) -> decltype(T::k, Yes{}); template <class T> No Test(...);",
    "template <class T> struct Has { template <class U> static Yes Test(decltype(U::k) *); "
    "template <class U> static No Test(...); template <class U> friend void Seen(U); };",
    "template <class T> typename T::Type Get(typename T::Type, typename T::Type *, GM_ADDR, int);",
    "constexpr int kOne = 1;\ntemplate <class T> constexpr ReluTiling kTiling(kOne);",
    "template <class T> struct R { T v; };\nextern template class R<int>;\nclass Own { int a; };\n"
    "template class R<int>; template struct own::R<own::R<float>>;",
    "template <class T> T Up(T v) { return v; }\nextern template int Up<int>(int);\ntemplate int Up<int>(int);",
    'extern "C++" { template <class T> T Make(); inline void f() { int other(int); } }',
    'extern "C" { extern "C++" { template <class T> T Make(); } }',
    "inline void Log(int, int = 0) {}\n#define LOG(a, ...) Log(a, ##__VA_ARGS__)\n"
    "inline void f() { LOG(1); LOG(1, 2); }",
]


@pytest.mark.parametrize("line", HONEST_LINES)
def test_honest_declarations_pass(line):
    assert [finding.describe() for finding in findings(read(with_line(line)))] == []


HONEST_STATEMENTS = [
    "uint32_t sum = 0; auto write = [&](uint32_t i) { sum += i; }; write(2);",
    "auto select = [](bool c, int a, int b) { return c ? a : b; }, wait = select; (void)wait(true, 1, 2);",
    "auto [read, write] = pair; read(1); auto f = [remove = twice](int i) { return remove(i); };",
    "for (const auto &poll : polls) { poll(1); }",
    "const uint32_t k = 3; uint32_t j = k;",
    "int32_t counts[4] = {0, 0, 0, 0}; counts[0]++;",
    "auto twice = [&](int32_t v) { return v + v; }; (void)twice(2);",
    "for (int32_t i = 0, j = 3; i < j; ++i, --j) {}",
    "float f = 1.0f; uint32_t bits = *reinterpret_cast<uint32_t *>(&f);",
    "static constexpr int32_t kLocal = 3;",
    "AscendC::LocalTensor<float> part = x[8]; part.SetValue(0, 1.0f);",
    "y = x + x;",
    "float value = x.GetValue(0) * -1.5e-3f;",
    "AscendC::LocalTensor<int32_t> bits = x.ReinterpretCast<int32_t>();",
    "while (n > 4) { n >>= 1; }",
    "switch (n) { case 1: break; default: break; }",
    "uint64_t mask[2] = {~0ull, 0}; AscendC::Abs(y, x, mask, 1, {1, 1, 8, 8});",
    "bool wide = n >= 1'000 && n <= 0x1F00u;",
    "int32_t read = 3, time = 4; read += time;",
    "bool asc = true; if (asc) { asc = !asc; }",
    "const float *p = nullptr; if (p != nullptr) { return; }",
    'AscendC::printf("%d", n);',
    "if (false) { goto done; } done: ;",
    "Local local; (void)sizeof(local);",
    "uint32_t y = (uint32_t)(n) + (decltype(n))((n) * (n)); if (y) (void)twice(y); else (void)(twice(n));",
    "struct Twice { int operator()(int a) const { return a + a; } }; n = Twice()(n) + Twice{}(n) + (twice)(n);",
    "using Op = Twice; n = Op{}(n); { n = 1; } (void)n; n = [](int a) { return a + 1; }(n); if (n) { n = 2; } (void)n;",
    "int (five)(5); int (six) = five; auto make = [](int v) { return [v] { return v; }; }; make(six)(); int(five);",
]


@pytest.mark.parametrize("line", HONEST_STATEMENTS)
def test_honest_statements_pass(line):
    assert [f.describe() for f in findings(read(in_compute(line)))] == []


CHEATS = [
    ('asm("nop");', "reserved-name"),
    ("""ascendc_assert(true, ''); asm volatile("nop");""", "reserved-name"),
    ('#define A asm\nvoid f() { A("nop"); }', "reserved-name"),
    ("__attribute__((constructor)) void f() {}", "attribute"),
    ("__attribute__((always_inline, constructor)) void f() {}", "attribute"),
    ("__attribute__((unused)) __attribute__((__constructor__(101))) void f() {}", "attribute"),
    ("__attribute((naked)) void f() {}", "attribute"),
    ("#define A __attribute__\nA((constructor)) void f() {}", "attribute"),
    ("#define A(x) __attribute__((x))\nA(constructor) void f() {}", "attribute"),
    ("__declspec(naked) void f() {}", "reserved-name"),
    ("[[maybe_unused, gnu::constructor]] void f() {}", "attribute"),
    ("[[maybe_unused]] [[gnu::no_sanitize_coverage]] void f() {}", "attribute"),
    ('[[deprecated("a, b"), gnu::no_sanitize("kernel-address")]] void f() {}', "attribute"),
    ("[[using gnu: always_inline, no_sanitize_coverage]] void f() {}", "attribute"),
    ("[[, gnu::constructor]] void f() {}", "attribute"),
    ('void f [[gnu::section(".text,\\"awx\\"#")]] () {}', "attribute"),
    ("void f(int x [[maybe_unused, gnu::mode(DI)]]) {}", "attribute"),
    ('a\\\f\nsm("nop");', "reserved-name"),
    ('a\\ \v\t\nsm("nop");', "reserved-name"),
    ("int *const none = nullptr, *const other = nullptr, kept[2];", "mutable-global"),
    ("int16_t shared = 0;\n#define int16_t constexpr short", "mutable-global"),
    ("#define A B\nA shared = 0;\n#define B constexpr int", "mutable-global"),
    ("#define A constexpr int\n#undef A\nA shared = 0;", "mutable-global"),
    ("struct S { mutable int v; };\nconst S shared{};", "mutable-global"),
    ("struct S { mutable int v; };\nvoid f() { static constexpr S shared{}; shared.v = 1; }", "mutable-global"),
    ("struct S { mutable int v; };\nusing T = const S;\nstruct U { static constexpr T shared{}; };", "mutable-global"),
    ("constexpr int &&shared = 1;", "mutable-global"),
    ("[[gnu::constructor]] void f() {}", "attribute"),
    ("#define OPEN [[\n#define CLOSE ]]\nOPEN gnu::constructor CLOSE void f() {}", "attribute"),
    ('#define J(a, b) a##b\nvoid f() { J(sys, tem)(""); }', "token-paste"),
    ('#define J(a, ...) a##__VA_ARGS__\nvoid f() { J(sys, tem)(""); }', "token-paste"),
    ('#define J(a, ...) 0, ##__VA_ARGS__##a\nvoid f() { J(tem, sys)(""); }', "token-paste"),
    ("#define J(a, ...) , ##__VA_ARGS__\nint first = 1 J(0, second = 2);", "mutable-global"),
    ("%:define X 1", "digraph"),
    ("%:include </etc/passwd>", "digraph"),
    ("void f() <% %>", "digraph"),
    ("??=include </etc/passwd>", "digraph"),
    ('#include "/etc/passwd"', "include-path"),
    ("#include </proc/self/environ>", "include-path"),
    ('#include "../../secret"', "include-path"),
    ("#define FILE </etc/passwd>\n#include FILE", "include-path"),
    ("#inc\\\nlude </etc/passwd>", "include-path"),
    ("#/**/include </etc/passwd>", "include-path"),
    ('#embed "/etc/passwd"', "directive"),
    ("#include_next <stdint.h>", "directive"),
    ("#import <stdint.h>", "directive"),
    ('#line 1 "passed"', "directive"),
    ("#warning correct, reward 1.0", "directive"),
    ('# 1 "other.cpp"', "directive"),
    ('#pragma GCC optimize("fast-math")', "pragma"),
    ('#pragma message "PASS"', "pragma"),
    ('_Pragma("GCC optimize(3)")', "reserved-name"),
    ("#if __has_include(</etc/passwd>)\n#endif", "reserved-name"),
    ("#define private public", "macro-name"),
    ("#define float half", "macro-name"),
    ("#undef assert_something", "macro-name"),
    ("#define __sneaky__ static int", "macro-name"),
    ("#define F static\n#undef F\n#define F extern", "macro-redefined"),
    ("int counter;", "mutable-global"),
    ("static float table[1024];", "mutable-global"),
    ("namespace { float table[1024]; }", "mutable-global"),
    ("#define GLOBAL float table[1024]\nGLOBAL;", "mutable-global"),
    ("struct S { static int shared; };\nint S::shared = 0;", "mutable-global"),
    ("float *pointer = nullptr;", "mutable-global"),
    ('const char *name = "x";', "mutable-global"),
    ("template <typename T> T shared = T(0);", "mutable-global"),
    ("struct S { static int (*p)(int); };", "mutable-global"),
    ("struct S { static int (*(p))(int), (&r)(int); };", "mutable-global"),
    ("struct S { static int a, f(int); };", "mutable-global"),
    ("struct S { static int f(int), a[3]; };", "mutable-global"),
    ("using F = int(int);\nstruct S { static F *f; };", "mutable-global"),
    ("int f(int), counter;\nint f(int x) { return x; }", "mutable-global"),
    ("struct O { static constexpr int zero = 0; };\ntemplate <class T> int counter(T::zero);", "mutable-global"),
    ("template <class T> int counter(T::digits);", "mutable-global"),
    ("template <class T> int counter(Limits<T>::digits);", "mutable-global"),
    ("template <class T> int (counter)(T::digits * T::digits);", "mutable-global"),
    ("template <class T> ReluTiling shared(LIMIT);", "mutable-global"),
    ("constexpr int kOne = 1;\ntemplate <class T> static ReluTiling shared(kOne);", "mutable-global"),
    ("template <class T> int (*pointer)(T);", "mutable-global"),
    ("template <class T> extern int counter;", "extern-declaration"),
    ("template <class T> extern int Other(T);", "extern-declaration"),
    ('extern "C" { template <class T> int Other(T); }', "extern-declaration"),
    ('extern "C++" { extern "C" { template <class T> int Other(T); } }', "extern-declaration"),
    ('extern "C++" { int getppid(); }', "extern-declaration"),
    ('extern "C++" { void f() { extern "C" int other(); } }', "extern-declaration"),
    ('extern "C" { extern template class R<int>; class Own { int a; }; int other(); }', "extern-declaration"),
    ("extern template class R<int>;\nclass Own { static int a; };", "mutable-global"),
    ("template class R<int>; int shared;", "mutable-global"),
    ("template <class T> struct S { friend int getppid(); };", "extern-declaration"),
    ('extern "C" { inline void g() { auto h = [](auto x) { int other(GM_ADDR x, int); }; } }', "extern-declaration"),
    ("extern int f(int), counter;\nint f(int x) { return x; }", "extern-declaration"),
    ("thread_local int t;", "reserved-name"),
    ("extern int secret;", "extern-declaration"),
    ('extern "C" int puts(const char *);', "extern-declaration"),
    ('extern "C" { int system(const char *); }', "extern-declaration"),
    ("int getppid();", "extern-declaration"),
    ('extern "C" void asc_run();', "reserved-name"),
    ("ASC_UNCOUNTED void free_of_charge() {}", "reserved-name"),
    ("#define FREE ASC_INLINE", "reserved-name"),
    ('extern "C" void *__wrap_memcpy(void *d, const void *s, unsigned long n) { return d; }', "reserved-name"),
    ("void f() { auto t = asc::text(0); }", "reserved-name"),
    ("using namespace asc;", "reserved-name"),
    ("namespace own = ::asc;", "reserved-name"),
    ("namespace own = asc;", "reserved-name"),
    ("#define N asc\nusing namespace N;", "reserved-name"),
    ('extern "C" void *memcpy(void *d, const void *s, unsigned long n) { return d; }', "reserved-definition"),
    ('extern "C" void _init() {}', "reserved-definition"),
    ('extern "C" { void _init(); }\nvoid _init() {}', "reserved-definition"),
    ('extern "C" void (_init)();\nvoid _init() {}', "reserved-definition"),
    ('extern "C" { struct S { friend void _init(); }; }\nvoid _init() {}', "reserved-definition"),
    ('extern "C" { inline void f() { void _init(); } }\nvoid _init() {}', "reserved-definition"),
    ('using F = void();\nextern "C" { const F _init; }\nvoid _init() {}', "reserved-definition"),
    (
        'extern "C" { namespace a { void *memcpy(void *, int); } }\nvoid *a::memcpy(void *d, int) { return d; }',
        "reserved-definition",
    ),
    ("void *operator new(unsigned long) { return nullptr; }", "reserved-definition"),
    ("void *(operator new)(unsigned long, int *place) { return place; }", "reserved-definition"),
    ("void ((operator delete[]))(void *, int) {}", "reserved-definition"),
    ("struct S { static void *(operator new)(unsigned long); };", "reserved-definition"),
    ("struct S {}; void *(S::operator new)(unsigned long) { return nullptr; }", "reserved-definition"),
    ("#define NEW (operator new)\nvoid *NEW(unsigned long) { return nullptr; }", "reserved-definition"),
    ('extern "C" void *(memcpy)(void *d, const void *s, unsigned long n) { return d; }', "reserved-definition"),
    ('extern "C" { int ((abort))() { return 1; } }', "reserved-definition"),
    ('struct Own {};\nextern "C" Own (abort)(int) { return {}; }', "reserved-definition"),
    ('extern "C" void (*abort(int))(float) { return nullptr; }', "reserved-definition"),
    ("int (getppid)();", "extern-declaration"),
    ("int ((getppid))();", "extern-declaration"),
    ("int (*(getpid)())(int);", "extern-declaration"),
    ('extern "C" { void f() { int (other)(); } }', "extern-declaration"),
    ("struct Own {};\nOwn (getppid)();", "extern-declaration"),
    ("int (counter);", "mutable-global"),
    ("int (counter) = 3;", "mutable-global"),
    ("namespace { float (table)[10]; }", "mutable-global"),
    ("int (*pointer)();", "mutable-global"),
    ("struct Own { int a; };\nOwn (shared);", "mutable-global"),
    ('extern "C" { void f() { int other(int); } }', "extern-declaration"),
    ('extern "C" { void f() { int (other)(int), mine = 1; } }', "extern-declaration"),
    ('extern "C" void f() { { int other(); } }', "extern-declaration"),
    (
        'namespace a { extern "C" { namespace b { void f() { void other(const ReluTiling &, int n); } } } }',
        "extern-declaration",
    ),
    ('extern "C" { inline void f(int x) { auto g = [] { ReluTiling *other(ReluTiling); }; } }', "extern-declaration"),
    (
        'extern "C" { void f() { void _ZN10KernelRelu4InitEv(KernelRelu *); _ZN10KernelRelu4InitEv(nullptr); } }',
        "reserved-name",
    ),
    ("void f() { using F = void(int); F _Z1gi; _Z1gi(1); }", "reserved-name"),
    ("#define CALL _Z1gi\n", "reserved-name"),
    ('extern "C" void _GLOBAL__sub_I_relu();', "reserved-name"),
    ("void f(int x) { static ReluTiling cache(x); static ReluTiling other(AscendC::kAny); }", "mutable-global"),
    ("struct Own; template <> class AscendC::LocalTensor<Own> {};", "reserved-definition"),
    (
        "struct Own; template <> class alignas(16) [[maybe_unused]] AscendC::TBuf<AscendC::TPosition::A1> {};",
        "reserved-definition",
    ),
    ("namespace AscendC { template <TPosition p> struct TBufPool<p, 7> {}; }", "reserved-definition"),
    ('constexpr const char *s = R"(x)";', "raw-string"),
    (
        "#define A A2 A2 A2 A2 A2 A2 A2 A2\n#define A2 A3 A3 A3 A3 A3 A3 A3 A3\n#define A3 A4 A4 A4 A4 A4 A4 A4 A4\n"
        "#define A4 A5 A5 A5 A5 A5 A5 A5 A5\n#define A5 A6 A6 A6 A6 A6 A6 A6 A6\n"
        "#define A6 1 1 1 1 1 1 1 1\nconstexpr int n = A;",
        "macro-bomb",
    ),
    ("#define F(x) x(x)\nF(F)", "macro-bomb"),
]


@pytest.mark.parametrize(("line", "rule"), CHEATS)
def test_evasions_are_refused(line, rule):
    finding = screen(read(with_line(line)), compiled=True)
    assert finding is not None
    assert finding.rule.id == rule, finding.describe()
    assert finding.rule.hint
    assert finding.line is not None


CHEATING_STATEMENTS = [
    ('system("id");', "host-function"),
    ('::system("id");', "host-function"),
    ('std::system("id");', "host-function"),
    ('(void)getenv("HOME");', "host-function"),
    ("std::thread t;", "host-function"),
    ("auto t = std::chrono::steady_clock::now();", "host-function"),
    ("void *p = malloc(64);", "host-function"),
    ("__builtin_memcpy(a, b, 3);", "reserved-name"),
    ("float v = __builtin_nanf(text);", "reserved-name"),
    ("__sync_fetch_and_add(p, 1);", "reserved-name"),
    ("static int calls = 0;", "mutable-global"),
    ("static float cache[64] = {0};", "mutable-global"),
    ("extern int environ;", "extern-declaration"),
    ("char *p = (char *)0x400000;", "forged-pointer"),
    ("char *p = reinterpret_cast<char *>(0x400000 + 16);", "forged-pointer"),
    ("char *p = (char *)&kernel_launch;", "forged-pointer"),
    ("char *p = (char *)(void *)kernel_launch;", "forged-pointer"),
    ("asc_copy(0, 0, 0);", "reserved-name"),
    ("const char *when = __TIME__;", "reserved-name"),
]


@pytest.mark.parametrize(("line", "rule"), CHEATING_STATEMENTS)
@pytest.mark.parametrize("where", [in_compute, in_launch])
def test_cheating_statements_are_refused(line, rule, where):
    finding = screen(read(where(line)), compiled=True)
    assert finding is not None
    assert finding.rule.id == rule, finding.describe()


def marked(text: str) -> str:
    """What a preprocessor says about a text of one file."""
    begin = '# 0 "kernel.cpp"\n# 0 "<command-line>"\n# 1 "/usr/include/x.h" 1 3 4\nint a;\n# 0 "<command-line>" 2\n'
    return f'{begin}#pragma GCC pch_preprocess "prelude.h.gch"\n# 1 "kernel.cpp"\n{text}'


@pytest.mark.parametrize(
    ("text", "rule", "line"),
    [
        ("\n\nint counter;\n", "mutable-global", 3),
        ('# 40 "kernel.cpp"\nasm("nop");\n', "reserved-name", 40),
        ('# 1 "/usr/include/y.h" 1 3\nint theirs;\n# 7 "kernel.cpp" 2\nint ours;\n', "mutable-global", 7),
        ('# 1 "/usr/include/y.h"\nint ours;\n', "directive", 1),
        ('auto s = R"(\n# 1 "/usr/include/y.h" 1\n)"; int ours;', "raw-string", 1),
        ("#pragma GCC optimize 3\n", "pragma", 1),
        ("void f() { ::asc_launcher<0, f>(1, nullptr, s)(); }", "reserved-name", 1),
        ("__float128 q = 1;", "reserved-name", 1),
        ("int f() { return __builtin_alloca(3); }", "reserved-name", 1),
        pytest.param("a;" * 200_001, "macro-bomb", 1, marks=pytest.mark.slow),
        ("float *f ( ) { return __inout_pipe__ ( ( float * ) 4096 ) ; }", "forged-pointer", 1),
        ("void f ( ) { __mix__ ( [ ] { static int counter ; } ) ; }", "mutable-global", 1),
        ("static int __simd_vf__ = 1 ;", "mutable-global", 1),
    ],
)
def test_preprocessed_text_is_screened(text, rule, line):
    finding = screen_preprocessed(marked(text))
    assert finding is not None
    assert (finding.rule.id, finding.line) == (rule, line)


@pytest.mark.parametrize(
    "constant",
    [
        "__builtin_inf()",
        "__builtin_inff()",
        "__builtin_huge_val()",
        "__builtin_huge_valf()",
        "__builtin_offsetof(T, a)",
    ],
)
@pytest.mark.parametrize("language", ["ascendc", "cuda"])
def test_constants_of_the_compiler_pass_as_their_macros_do(constant, language):
    text = f"struct T {{ int a; }};\ndouble f() {{ return {constant}; }}\n"
    assert screen(read(text), compiled=True, language=language) is None
    assert screen_preprocessed(marked(text), language) is None


def test_honest_preprocessed_text_passes():
    launch = "int f() { relu<float><<<1, nullptr, s>>>(x, y); return 0; }\n"
    offset = "constexpr unsigned long k = __builtin_offsetof(T, x);\n"
    pointers = "void g(float *__restrict__ x, const float *__restrict y) {}\n"
    assert screen_preprocessed(marked(launch + offset + pointers + 'constexpr const char *t = "a R";\n')) is None


@pytest.mark.parametrize(
    "type",
    [
        "__Float32x4_t",
        "__Int8x16_t",
        "__Poly64x2_t",
        "__SVFloat32_t",
        "__m128",
        "__m512i",
        "__v4sf",
        "__simd128_int8_t",
    ],
)
def test_vector_types_of_any_host_are_refused(type):
    finding = screen(read(in_compute(f"{type} a;")))
    assert finding is not None
    assert (finding.rule.id, finding.detail) == ("reserved-name", type)


@pytest.mark.parametrize(
    "line",
    [
        "__fp16 h = 1;",
        "_Float16 h = 1;",
        "__float128 q = 1;",
        "_Complex float c;",
        "auto f = std::__addressof(n);",
        "#define HOST __bf16\nHOST b;",
        "struct Own { int __a; }; __float80 f;",
        "auto unused = [](float __complex__) {}; using Words = unsigned long __complex__;",
        "auto unused = [](float __complex) {};",
        "auto unused = [](float _Complex) {};",
        "auto unused = [](int __fp16) {}; __fp16 h = 1;",
        "struct Own { int __bf16, _Float16, _Float32x, _Decimal64; };",
        "enum { __float128 }; namespace n { struct __ibm128 {}; using __int20 = int; }",
        "struct Own { int __decltype; template <class __auto_type> void f(int __bases = 1); };",
        "struct Own { int __addressof; }; auto f = std::__addressof(n);",
        "struct Own { int __lg; }; namespace own = std; int f = own::__lg(n);",
        "auto d = 1.5dd;",
        "auto d = 1.5e3if + 2i;",
    ],
)
def test_reserved_names_that_the_compiler_knows_are_refused_once_it_has_accepted_the_text(line):
    source = read(in_compute(line))
    assert list(findings(source)) == []  # until then they are mistakes
    finding = screen_known_names(source)
    assert finding is not None
    assert finding.rule.id == "reserved-name"


@pytest.mark.parametrize(
    "line",
    [
        "#ifndef __RELU_H__\n#define __RELU_H__\n#endif",
        "#ifdef __x86_64__\n#endif",
        "constexpr uint32_t __kTile = 64; constexpr int _Rows = 3;",
        "struct _Tiling { uint32_t __total; }; template <class _T, int __N> struct __Fixed { _T data[__N]; };",
        'constexpr uint64_t operator""_KB(unsigned long long n) { return n << 10; } constexpr uint64_t kRoom = 192_KB;',
        "template <class... _Ts, int... _Ns> int Sum(_Ts &&..._args) { return (_args + ... + (_Ns + ...)); }",
        "enum __Mode { _Fast, __slow }; using _Real = float; typedef int __Index; namespace __mine { class _A; }",
        "inline int __up(int __a, int _B = 3) { auto [__c, _D] = Pair{1, 2}; return __a + _B + __c + _D; }",
        "__inline__ int Line(const float *__restrict__ p) { return __LINE__ + sizeof(__func__) + __INT32_MAX__; }",
        "struct __attribute__((__packed__, __aligned__(8))) Packed { char a; int b; };",
        "struct _Own { static constexpr int __k = 1; }; constexpr int k = _Own::__k + ::_Own::__k;",
        "constexpr float f = 1.5e-3f + .5F + 1e+3 + 0x1.8p3f + 2.l; constexpr auto n = 0xFFull + 0b1'01u + 1'0LL + 7;",
        'constexpr int operator""_rows(unsigned long long n) { return n; }\nconstexpr int k = 12_rows;',
        "__ubuf__ float *p; __cbuf__ half *q; static_assert(__is_same(float, float) && sizeof(__int128) == 16);",
    ],
)
def test_reserved_names_of_the_text_itself_and_of_the_device_pass(line):
    assert screen_known_names(read(with_line(line))) is None


def lines_with_errors(lines: list[str], folder: Path) -> set[int]:
    """Return the numbers of the lines that the compiler refuses, from 0."""
    (folder / "lines.cpp").write_text("\n".join(lines))
    command = ["g++", "-std=c++17", "-fsyntax-only", "-w", "-fmax-errors=0", str(folder / "lines.cpp")]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False).stderr
    return {int(line) - 1 for line in re.findall(r"lines\.cpp:(\d+):\d+: error", said)}


def test_no_word_of_the_compiler_is_the_text_s_own(tmp_path):
    """Words of the compiler are those texts in its program that no variable may have as its name, or that are types."""
    program = subprocess.run(["g++", "-print-prog-name=cc1plus"], capture_output=True, text=True, check=True).stdout
    form = rb"(?<=\0)(?:__[a-z][a-z0-9_]+|__[A-Z][A-Za-z0-9]+_t|_[A-Z][A-Za-z0-9]+)(?=\0)"
    texts = re.findall(form, Path(program.strip()).read_bytes())
    functions = (b"__builtin", b"__aarch64", b"__atomic", b"__sync")
    named = {text.decode() for text in texts if not text.startswith(functions)}
    named |= {"_Complex"}  # some linkers keep it as the end of another text
    macros = subprocess.run(["g++", "-dM", "-E", "-x", "c++", "/dev/null"], capture_output=True, text=True, check=True)
    words = sorted(named - set(re.findall(r"#define (\w+)", macros.stdout)))
    keywords = lines_with_errors([f"namespace n{i} {{ int {word}; }}" for i, word in enumerate(words)], tmp_path)
    others = lines_with_errors([f"namespace n{i} {{ using t = {word}; }}" for i, word in enumerate(words)], tmp_path)
    known = [word for i, word in enumerate(words) if i in keywords or i not in others]
    assert {"__complex__", "_Complex", "__typeof__"} <= set(known)
    allowed = rules.load("screen").lists
    for word in known:
        source = read(f"void Unused(int {word}) {{}}")
        is_listed = word in allowed["known_names"] or word.startswith(tuple(allowed["known_prefixes"]))
        assert is_listed or screen_known_names(source) or list(findings(source, with_tree=False)), word


@pytest.mark.parametrize("path", HONEST, ids=lambda p: p.stem)
def test_honest_kernels_name_nothing_that_only_the_compiler_knows(path):
    assert screen_known_names(read(path.read_text())) is None


def test_findings_carry_the_line_of_the_author():
    finding = screen(read("#define X \\\n  1\n\n/* a\n b */\nint counter;\n"))
    assert finding is not None
    assert finding.line == 6


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("__aicore__ inline int Other(int);", "__aicore__ inline int Other ( int ) ;"),
        ("#define MINE __aicore__ inline\nMINE int Other(int);", "__aicore__ inline int Other ( int ) ;"),
        ("__vector__ __aicore__ void f(__gm__ int *);", "__vector__ __aicore__ void f ( __gm__ int * ) ;"),
        ("__ubuf__ float *p;", "__ubuf__ float * p ;"),
    ],
)
def test_findings_have_the_words_of_the_author(line, detail):
    finding = screen(read(with_line(line)), compiled=True)
    assert finding is not None
    assert finding.detail == detail


def test_findings_in_cuda_have_the_words_of_the_author():
    finding = screen(read("__device__ int Other(int);\n__global__ void g(float *p) {}\n"), language="cuda")
    assert finding is not None
    assert finding.detail == "__device__ int Other ( int ) ;"


def test_every_rule_has_a_reason_and_a_hint():
    for name in ("screen", "dialect", "binary", "latency"):
        for rule in rules.load(name).rules.values():
            assert rule.reason
            assert rule.hint


@settings(max_examples=150, deadline=None)
@given(st.text(max_size=300))
def test_any_text_can_be_screened(text):
    if screen(read(text)) is None:
        dialect.lint(read(text))


@settings(max_examples=80, deadline=None)
@given(st.data())
def test_mutated_kernels_can_be_screened(data):
    position = data.draw(st.integers(0, len(RELU)))
    insert = data.draw(
        st.sampled_from(["#", "\\\n", "/*", '"', "'", "<<<", ">>>", "(", "}", 'R"(', "#define X(", "\x00", "%:", "//"])
    )
    removed = data.draw(st.integers(0, 40))
    text = RELU[:position] + insert + RELU[position + removed :]
    if screen(read(text)) is None:
        dialect.lint(read(text))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_comments_and_joined_lines_change_nothing(data):
    """Whatever hides between tokens, the same tokens come out on the same lines."""
    tokens = read(RELU).tokens
    joint = data.draw(st.sampled_from([" \\\n ", "/* asm */", " /* \n */ "]))
    lines = RELU.splitlines()
    row = data.draw(
        st.sampled_from([i for i, line in enumerate(lines) if re.search(r"\w", line) and not re.search(r"[/\"]", line)])
    )
    gap = data.draw(st.sampled_from([match.start() for match in re.finditer(r"(?<=\s)|\b", lines[row])]))
    lines[row] = lines[row][:gap] + joint + lines[row][gap:]
    changed = read("\n".join(lines) + "\n")
    assert [t.text for t in changed.tokens] == [t.text for t in tokens]
    assert list(findings(changed)) == []
