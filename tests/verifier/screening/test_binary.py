"""The binary screen, on what a real compiler makes."""

import random
import shutil
import subprocess

import pytest

from kernel_gym.verifier.screening import binary

COMPILER = shutil.which("g++") or shutil.which("c++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="needs a C++ compiler")

HONEST = """
extern "C" void asc_call(int op, const void *args);
extern "C" void *memcpy(void *, const void *, unsigned long);
static const int table[64] = {1, 2, 3};
struct Big { int values[40]; };
extern "C" int kernel_launch(const Big *a, void *) {
    Big copy = *a;
    for (int i = 0; i < 40; ++i) copy.values[i] += table[i];
    asc_call(1, &copy);
    return 0;
}
"""


def build(tmp_path, text, *flags):
    source, out = tmp_path / "k.cpp", tmp_path / "k.so"
    source.write_text(text)
    plain = ("-shared", "-fPIC", "-O0", "-nostdlib", "-fno-exceptions", "-Wl,--wrap=memcpy")
    apart = "-Wl,-z,relro,-z,now,-z,separate-code"
    command = [COMPILER, *plain, apart, *flags, str(source), "-o", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    return out


def rule_of(path):
    finding, _ = binary.screen(path)
    return finding.rule.id if finding else None


def test_an_honest_binary_passes(tmp_path):
    assert binary.screen(build(tmp_path, HONEST)) == (None, ())
    covered = build(tmp_path, HONEST, "-fsanitize-coverage=trace-pc")
    assert binary.screen(covered) == (None, ())


@pytest.mark.parametrize(
    ("code", "rule"),
    [
        ('extern "C" int system(const char *); int f() { return system("id"); }', "undefined-symbol"),
        ("int counter[64]; int f() { return counter[0]++; }", "mutable-data"),
        ("int counter; int f() { return counter++; }", "mutable-data"),
        ("char filled = 1; int f() { return filled++; }", "mutable-data"),
        ("struct S { mutable int v; }; constexpr S s{}; int f() { return s.v++; }", "mutable-data"),
        ("struct S { mutable int v; }; const S s{1}; int f() { return s.v++; }", "mutable-data"),
        ("constexpr int &&one = 1; int f() { return one++; }", "mutable-data"),
        ("int filled[64] = {1}; int f() { return filled[0]++; }", "mutable-data"),
        (
            "__attribute__((constructor)) void f() { asc_call(0, 0); } __attribute__((constructor)) void g() {}",
            "constructor",
        ),
        ("__attribute__((constructor)) void f() { asc_call(0, 0); }", "constructor"),
        ("__attribute__((destructor)) void f() { asc_call(0, 0); }", "constructor"),
        ('extern "C" { void _init(); } void _init() { asc_call(0, 0); }', "reserved-definition"),
        ('extern "C" void _fini() { asc_call(0, 0); }', "reserved-definition"),
        ('extern "C" void *memcpy(void *d, const void *, unsigned long) { return d; }', "reserved-definition"),
        (
            'extern "C" int read(int, void *, unsigned long); int read(int, void *, unsigned long) { return 0; }',
            "reserved-definition",
        ),
        (
            "int read(int x) { return x; } static int write() { return 1; } namespace own { void _init() {} }",
            None,
        ),
        ('extern "C" { static void *pick() { return 0; } void k() __attribute__((ifunc("pick"))); }', "ifunc"),
        ("thread_local int t; int f() { return t++; }", "thread-local"),
    ],
)
def test_symbols_show_what_the_text_hides(tmp_path, code, rule):
    assert rule_of(build(tmp_path, HONEST + code)) == rule


def test_a_global_object_with_a_constructor_is_refused_alone(tmp_path):
    text = HONEST + "struct S { S(); int v[32]; }; S::S() { asc_call(0, 0); } S s;"
    assert rule_of(build(tmp_path, text)) in ("constructor", "mutable-data")
    text = HONEST + "struct S { S() { asc_call(0, 0); } int v; }; S s; struct T { T() { asc_call(1, 0); } }; T t;"
    assert rule_of(build(tmp_path, text)) in ("constructor", "mutable-data")


@pytest.mark.parametrize("option", ["-init", "-fini"])
def test_functions_that_the_loader_calls_are_refused_by_any_name(tmp_path, option):
    assert rule_of(build(tmp_path, HONEST, f"-Wl,{option},kernel_launch")) == "constructor"


def test_libraries_and_writable_code(tmp_path):
    text = 'extern "C" double cos(double); ' + HONEST + "double f(double x) { return cos(x); }"
    linked = build(tmp_path, text, "-Wl,--no-as-needed", "-lm")
    assert rule_of(linked) == "needed-library"
    assert rule_of(build(tmp_path, HONEST, "-Wl,-rpath,/tmp")) == "needed-library"
    assert rule_of(build(tmp_path, HONEST, "-Wl,-z,execstack")) == "writable-code"
    constant = "const int kept[] = {1, 2}; int f(int i) { return kept[i]; }"
    assert rule_of(build(tmp_path, constant, "-Wl,-z,noseparate-code")) == "executable-data"
    assert rule_of(build(tmp_path, "extern const int memset[] = {1, 2};")) == "reserved-definition"


def test_tables_of_the_loader_are_read_only(tmp_path):
    places = "const int *const places[] = {table}; const int *f() { return places[0]; }"
    assert rule_of(build(tmp_path, HONEST + places)) is None
    assert rule_of(build(tmp_path, HONEST, "-Wl,-z,norelro")) == "mutable-data"


def test_missing_functions_are_a_mistake_not_cheating(tmp_path):
    text = 'extern "C" float sqrtf(float); ' + HONEST + "float f(float x) { return sqrtf(x); }"
    finding, mistakes = binary.screen(build(tmp_path, text, "-fno-builtin"))
    assert finding is None
    assert "sqrtf" in mistakes[0].message


@pytest.mark.slow
def test_damaged_binaries_never_break_the_screen(tmp_path):
    whole = build(tmp_path, HONEST).read_bytes()
    path, rng = tmp_path / "damaged.so", random.Random(0)
    for _ in range(300):
        damaged = bytearray(whole)
        for _ in range(rng.randint(1, 6)):
            damaged[rng.randrange(len(damaged) if rng.random() < 0.5 else 512)] = rng.randrange(256)
        path.write_bytes(damaged)
        binary.screen(path)


def test_garbage_is_malformed(tmp_path):
    path = tmp_path / "k.so"
    whole = build(tmp_path, HONEST).read_bytes()
    for damage in (b"", b"\x7fELF", b"text", whole[:200], whole[: len(whole) // 2]):
        path.write_bytes(damage)
        assert rule_of(path) == "malformed"


def test_code_beyond_what_is_covered_is_a_mistake(tmp_path, monkeypatch):
    path = build(tmp_path, HONEST)
    monkeypatch.setattr(binary, "MOST_CODE", 64)
    finding, mistakes = binary.screen(path)
    assert finding is None
    assert "of code" in mistakes[0].message


def test_an_unchecked_copy_is_refused(tmp_path):
    text = HONEST.replace("Big copy = *a;", "Big copy; memmove(&copy, a, sizeof copy);").replace("memcpy", "memmove")
    assert rule_of(build(tmp_path, text)) == "undefined-symbol"
    assert rule_of(build(tmp_path, text, "-Wl,--wrap=memmove")) is None
