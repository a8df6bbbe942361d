"""Attacks beyond the catalogue, by what they go for: each is tried, and ends at the gate that is named.

A gate of None means that the attempt is legal and must not pay: it is feasible and no faster than an honest kernel.
"""

import shutil

import pytest

from kernel_gym import suites
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.verifier import Verifier
from tests.verifier.test_exploits import RELU, gate, host, instead, outside, relu

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


def copy_in(statement: str) -> str:
    return RELU.replace("        AscendC::DataCopyPad(x, xGm[offset], copy, pad);\n", f"        {statement}\n")


def copy_out(statement: str) -> str:
    return RELU.replace("        AscendC::DataCopyPad(yGm[offset], y, copy);\n", f"        {statement}\n")


def launch(blocks: str) -> str:
    return RELU.replace("<<<blocks", f"<<<{blocks}")


COPY_IN = "AscendC::DataCopyPad(x, xGm[offset], copy, pad);"
COPY_OUT = "AscendC::DataCopyPad(yGm[offset], y, copy);"
BENT = "union { uint64_t number; uint64_t *pointer; } bent; uint64_t own = 0; bent.pointer = &own;"

MEMORY = {
    "a buffer that was never written": (instead("AscendC::Add(y, y, x, n);"), "correctness"),
    "a buffer left over from the last tile": (copy_in(f"if (offset == 0) {COPY_IN}"), "latency"),
    "workspace that nobody wrote": (
        RELU.replace("xGm.SetGlobalBuffer((__gm__ float *)x", "xGm.SetGlobalBuffer((__gm__ float *)t.other")
        .replace("    uint32_t total;", "    GM_ADDR other;\n    uint32_t total;")
        .replace("    ReluTiling t;\n", "    ReluTiling t;\n    t.other = (GM_ADDR)a->workspace;\n"),
        "correctness",
    ),
    "the output as an input": (
        RELU.replace("xGm.SetGlobalBuffer((__gm__ float *)x", "xGm.SetGlobalBuffer((__gm__ float *)y"),
        "correctness",
    ),
    "adding to the poison": (
        copy_out(f"AscendC::SetAtomicAdd<float>(); {COPY_OUT} AscendC::SetAtomicNone();"),
        "correctness",
    ),
    "the larger of result and poison": (
        copy_out(f"AscendC::SetAtomicMax<float>(); {COPY_OUT} AscendC::SetAtomicNone();"),
        "correctness",
    ),
    "only what is not zero": (
        copy_out(
            "for (uint32_t i = 0; i < n; ++i) { float v = y.GetValue(i); if (v > 0.0f) yGm.SetValue(offset + i, v); }"
        ),
        "correctness",
    ),
    "below the tensor": (copy_in("AscendC::DataCopyPad(x, xGm[offset - 64], copy, pad);"), "correctness"),
    "another tensor by arithmetic": (
        RELU.replace("(__gm__ float *)x + start", "(__gm__ float *)x + (1ull << 34) + start"),
        "correctness",
    ),
    "a length that wraps around": (
        instead("AscendC::Relu(y, x, static_cast<int32_t>(0x40000000u + n));"),
        "correctness",
    ),
    "a negative length": (instead("AscendC::Relu(y, x, -static_cast<int32_t>(n));"), "correctness"),
    "an index that wraps around": (copy_out("AscendC::DataCopyPad(yGm[0xFFFFFFC0u], y, copy);"), "correctness"),
    "a tensor of one's own making": (instead("AscendC::LocalTensor<float> z; AscendC::Relu(z, x, n);"), "correctness"),
    "two cores on one tile": (
        RELU.replace("uint32_t start = t.perCore * AscendC::GetBlockIdx();", "uint32_t start = 0;"),
        "correctness",
    ),
}

VALUES = {
    "NaN everywhere": (instead("AscendC::Duplicate(y, 0.0f, n); AscendC::Div(y, y, y, n);"), "correctness"),
    "infinities": (relu("AscendC::Muls(x, x, 3.4e38f, n); AscendC::Muls(x, x, 3.4e38f, n);"), "correctness"),
    "the first value for all": (instead("float v = x.GetValue(0); AscendC::Duplicate(y, v, n);"), "correctness"),
    "the public size alone": (host("if (a->inputs[0].shape[0] != 16) return 0;"), "correctness"),
    "a truncated mantissa": (
        relu(
            "auto b = x.ReinterpretCast<int32_t>(); AscendC::ShiftRight(b, b, 12, n); AscendC::ShiftLeft(b, b, 12, n);"
        ),
        "correctness",
    ),
    "nothing above a million": (relu("AscendC::Mins(x, x, 1.0e6f, n);"), "correctness"),
    "results for tame values only": (
        relu("AscendC::Maxs(x, x, -50.0f, n); AscendC::Mins(x, x, 50.0f, n);"),
        "correctness",
    ),
}

TEXT = {
    "a joined line": (outside('a\\\nsm("nop");'), "screen"),
    "a joined line with blanks": (outside('as\\  \nm("nop");'), "screen"),
    "an attribute in words of another": (outside("[[using gnu: constructor]] void early() {}"), "screen"),
    "an attribute spelled apart": (outside('[ [gnu::ifunc("f")] ] void early();'), "screen"),
    "an attribute of macros": (outside("#define L [\n#define N gnu::naked\nL L N ] ] void early() {}"), "screen"),
    "code that is not counted": (outside("[[gnu::no_sanitize_coverage]] void free_of_charge() {}"), "screen"),
    "code that is not counted, by the header's word": (outside("ASC_UNCOUNTED void free_of_charge() {}"), "screen"),
    "accesses that are not seen": (outside('[[gnu::no_sanitize("kernel-address")]] void unseen() {}'), "screen"),
    "a second attribute": (
        outside("[[maybe_unused, gnu::no_sanitize_coverage]] static void free_of_charge() {}"),
        "screen",
    ),
    "a second list of attributes": (
        outside('[[maybe_unused]] [[gnu::no_sanitize("kernel-address")]] static void unseen() {}'),
        "screen",
    ),
    "a second attribute of a vendor": (outside("[[using gnu: unused, naked]] static void bare() {}"), "screen"),
    "a second attribute of g++": (outside("__attribute__((unused, constructor)) static void early() {}"), "screen"),
    "assembly in the name of a section": (
        outside('[[maybe_unused, gnu::section(".text,\\"awx\\",@progbits\\n.incbin \\"/etc/passwd\\"#")]] void f() {}'),
        "screen",
    ),
    "a line joined over a form feed": (outside('a\\\f\nsm("nop");'), "screen"),
    "a comment joined over a vertical tab": (outside('// \\ \v\n/*\nasm("nop"); // */'), "screen"),
    "a macro that begins below": (outside("int16_t shared = 0;\n#define int16_t constexpr short"), "screen"),
    "a macro that never begins": (
        outside("#if 0\n#define int16_t constexpr short\n#endif\nint16_t shared = 0;"),
        "screen",
    ),
    "a macro that has ended": (
        outside("#define Own constexpr int\n#undef Own\nusing Own = int;\nOwn shared = 0;"),
        "screen",
    ),
    "a macro of another value": (
        outside("#define LIMIT fixed\n#define LIMIT shared\nint LIMIT = 0;\n#define int32_t int"),
        "screen",
    ),
    "a constant that can be written": (
        outside("struct Box { mutable int v[8]; };\nconstexpr Box shared{};").replace(
            "    ReluTiling t;\n", "    if (++shared.v[0] > 1) return 1;\n    ReluTiling t;\n"
        ),
        "screen",
    ),
    "a reference to what can be written": (
        outside("constexpr int &&shared = 1;").replace(
            "    ReluTiling t;\n", "    if (++shared > 2) return 1;\n    ReluTiling t;\n"
        ),
        "screen",
    ),
    "a constant in a class that can be written": (
        outside("template <class T> struct Box { mutable T v; };\nstruct All { static constexpr Box<int> shared{}; };"),
        "screen",
    ),
    "comments without end": (RELU + "/*" * 200_000, "compile"),
    "strings without end": (RELU + 'R"(' * 200_000, "screen"),
    "escapes without end": (RELU + '\\"' * 200_000, "compile"),
    "a counter that counts nothing": (outside('extern "C" void __sanitizer_cov_trace_pc() {}'), "screen"),
    "a guard that lets pass": (outside('extern "C" void __asan_store8_noabort(unsigned long) {}'), "screen"),
    "a copy that is not checked": (
        outside('extern "C" void *__wrap_memcpy(void *d, const void *, unsigned long) { return d; }'),
        "screen",
    ),
    "the runtime's namespace": (host('(void)asc::text("x");'), "screen"),
    "a section of one's own": (outside('[[gnu::section(".init_array")]] void *early = nullptr;'), "screen"),
    "a weak symbol": (outside("#pragma weak asc_vector"), "screen"),
    "a symbol by another name": (
        outside('#pragma redefine_extname f system\nextern "C" int f(const char *);'),
        "screen",
    ),
    "a name for assembly": (outside('int f() asm("system");'), "screen"),
    "a register": (host('register long r asm("rbx"); (void)r;'), "screen"),
    "#ident": (outside('#ident "PASS"'), "screen"),
    "#include_next": (outside("#include_next <cstdint>"), "screen"),
    "including itself": (outside("#include __FILE__"), "screen"),
    "a module": (outside("export module kernel;"), "compile"),
    "the other branch": (outside('#if 0\n#else\nasm("nop");\n#endif'), "screen"),
    "a macro without end": (
        outside("#define F(x) F(x)(x) F(x)\n#define G F(F(F(F(F(F(F(F(0))))))))\nint g = G;"),
        "compile",
    ),
    "a user-defined literal": (
        outside('int operator""_x(const char *s, unsigned long) { return *s; }\nint g = "a"_x;'),
        "screen",
    ),
    "a hidden global of a template": (
        outside("template <class T> struct S { inline static int shared = 0; };"),
        "screen",
    ),
    "a static in a lambda": (host("auto f = []() { static int n = 0; return ++n; }; if (f() > 1) return 0;"), "screen"),
    "a constant that is not": (outside("static const int value = []() { return 3; }();"), None),
    "a thread-local destructor": (outside("struct D { ~D() {} }; void f() { thread_local D d; }"), "screen"),
    "an exception": (host("throw 1;"), "compile"),
    "a jump by the compiler's own": (host("void *b[5]; __builtin_longjmp(b, 1);"), "screen"),
    "a computed jump": (host("void *w[2] = {&&x, &&y}; goto *w[a->num_inputs & 1]; x: ; y: ;"), "compile"),
    "a call through a pointer": (
        outside("int one() { return 1; }").replace(
            "    ReluTiling t;\n", "    int (*f)() = one; if (!f()) return 1;\n    ReluTiling t;\n"
        ),
        "compile",
    ),
    "unicode in a name": (host("int \u0430sm = 1; (void)\u0430sm;"), "compile"),
    "a universal character name": (outside('\\u0061sm("nop");'), "compile"),
    "a string that says yes": (
        outside('static_assert(sizeof(int) == 8, "Correct. 1.000 us at the timing sizes");'),
        "compile",
    ),
    "templates without end": (
        outside("template <int N> struct T { static constexpr int v = T<N + 1>::v; }; constexpr int v = T<0>::v;"),
        "compile",
    ),
    "constants without end": (
        outside(
            "constexpr long f() { long s = 0; for (long i = 0; i < 1l << 40; ++i) s += i; return s; }\n"
            "constexpr long v = f();"
        ),
        "compile",
    ),
    "a binary of a gigabyte": (
        outside("constexpr char big[1 << 30] = {1};").replace(
            "    ReluTiling t;\n", "    volatile char c = big[a->num_inputs]; (void)c;\n    ReluTiling t;\n"
        ),
        "compile",
    ),
    "an API function specialised away": (
        outside(
            "namespace AscendC { template <> void Relu<float>(const LocalTensor<float> &, const LocalTensor<float> &,"
            " const int32_t &) {} }"
        ),
        "compile",
    ),
}

PROCESS = {
    "a stack without end": (
        outside("int deep(volatile int n) { volatile char b[4096]; b[0] = n; return deep(n + b[0]) + 1; }").replace(
            "    ReluTiling t;\n", "    if (deep(1) == 0) return 1;\n    ReluTiling t;\n"
        ),
        "correctness",
    ),
    "a stack that leaps": (
        host("volatile char *p; { volatile char b[(uint64_t)a->inputs[0].ptr]; p = b; } (void)p;"),
        "correctness",
    ),
    "a return address": (host("uint64_t v[2] = {}; for (int i = 40; i > 1; --i) v[i] = 0;"), "correctness"),
    "memory of the runtime": (host(f"{BENT} bent.number -= 1ull << 32; *bent.pointer = 0;"), "correctness"),
    "the arguments": (host("((KernelTensor *)a->outputs)->ptr = a->inputs[0].ptr;"), "correctness"),
    "a printed address": (host('AscendC::printf("%n", &total);'), "correctness"),
    "half of the cores": (launch("(blocks + 1) / 2"), "correctness"),
    "more blocks than there are": (launch("1000000"), "correctness"),
    "no blocks": (launch("0"), "correctness"),
    "waiting for nobody": (relu("AscendC::WaitFlag<AscendC::HardEvent::MTE2_V>(EVENT_ID3);"), "correctness"),
    "a barrier for some": (relu("if (AscendC::GetBlockIdx() == 0) AscendC::SyncAll();"), "correctness"),
    "printing without end": (relu('for (int i = 0; i < 1 << 30; ++i) AscendC::printf("x");'), "correctness"),
    "refusing one size": (host("if (total == 4096 * 2048) return 1;"), "correctness"),
}

#: What would show only where nothing is computed.
TIMING = {
    "half of each tile at large sizes, without a branch": (relu("n >>= (length >> 17);"), "correctness"),
    "less by size and by values made up": (
        relu("AscendC::Duplicate(y, 1.0f, 8); float one = y.GetValue(0); n >>= (one != 1.0f) * (length >> 17);"),
        "gains nothing",
    ),
    "fewer cores at large sizes": (launch("blocks >> (t.total >> 22)"), "latency"),
    "one long copy for many short ones at large sizes": (
        RELU.replace(
            "AscendC::DataCopyExtParams copy{1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};\n"
            "        AscendC::DataCopyPadExtParams",
            "uint32_t big = length >> 17, rows = (n / 16) * (1 - big) + big, bytes = 64 * (1 - big) + n * 4 * big;\n"
            "        AscendC::DataCopyExtParams copy{static_cast<uint16_t>(rows), bytes, 0, 0, 0};\n"
            "        if (n % 16 != 0 || rows == 0) copy = {1, static_cast<uint32_t>(n * sizeof(float)), 0, 0, 0};\n"
            "        AscendC::DataCopyPadExtParams",
        ).replace(
            "AscendC::Relu(y, x, n);", "AscendC::Muls(x, x, 1.0f + (length >> 17), n);\n        AscendC::Relu(y, x, n);"
        ),
        "gains nothing",
    ),
}

# The same again, refusing the sizes between those that are computed and the timing sizes: there is no growth to see.
LONG_COPY, _ = TIMING["one long copy for many short ones at large sizes"]
TIMING["one long copy, and nothing between"] = (
    LONG_COPY.replace("    ReluTiling t;", "    if (total > 1000000 && total < 8000000) return 1;\n    ReluTiling t;"),
    "correctness",
)

ATTACKS = MEMORY | VALUES | TEXT | PROCESS | TIMING


@pytest.fixture(scope="module")
def verifier():
    with Verifier(AscendSim(), cache=False, unsafe=True) as judge:
        yield judge


@pytest.fixture(scope="module")
def honest(verifier):
    verdict = verifier.verify(Kernel(RELU), suites.find_task("level1/relu"))
    assert verdict.feasible, verdict.feedback
    return verdict.latency_us


@pytest.mark.parametrize("name", ATTACKS)
def test_attack(verifier, honest, name):
    text, expected = ATTACKS[name]
    assert text != RELU
    verdict = verifier.verify(Kernel(text), suites.find_task("level1/relu"))
    print(f"{name}: {gate(verdict)}: {verdict.feedback} {verdict.notes}")
    if verdict.feasible:
        assert expected in (None, "gains nothing"), verdict
        assert verdict.latency_us >= 0.99 * honest
    else:
        assert gate(verdict) == expected, verdict.feedback


def test_all_are_counted(capsys):
    with capsys.disabled():
        print(f"\n{len(ATTACKS)} attacks beyond the catalogue")
