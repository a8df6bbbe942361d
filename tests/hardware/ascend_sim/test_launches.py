"""Launches become calls; every other character stays where it was."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.hardware.host.ascend_launches import Cores, rewrite
from kernel_gym.hardware.host.launch_syntax import launches, tokens

REWRITTEN = {
    "k<<<8, nullptr, stream>>>(x);": "::asc_launcher<ASC_AIV, k>(8, nullptr, stream)(x);",
    "k<<<n, nullptr, s>>>(f(a, b), {1, 2});": "::asc_launcher<ASC_AIV, k>(n, nullptr, s)(f(a, b), {1, 2});",
    "ns::k<<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, ns::k>(1, nullptr, s)();",
    "k<float, Foo<2>><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<float, Foo<2>>>(1, nullptr, s)();",
    "k<A<B<int>>><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<A<B<int>>>>(1, nullptr, s)();",
    "k<A<B<C<D<int>>>>><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<A<B<C<D<int>>>>>>(1, nullptr, s)();",
    "k<<<(n >> 2), nullptr, s>>>();": "::asc_launcher<ASC_AIV, k>((n >> 2), nullptr, s)();",
    "k<<<min(a, b), nullptr, s>>>();": "::asc_launcher<ASC_AIV, k>(min(a, b), nullptr, s)();",
    "if (a < b) k<<<1, nullptr, s>>>();": "if (a < b) ::asc_launcher<ASC_AIV, k>(1, nullptr, s)();",
    "k /* why */ <<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k /* why */ >(1, nullptr, s)();",
    "k<<<\n    8,\n  nullptr, s>>>\n  (x);": "::asc_launcher<ASC_AIV, k>(\n    8,\n  nullptr, s)\n  (x);",
    "k<(n > 2)><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<(n > 2)>>(1, nullptr, s)();",
    "k<(n < 2), 3><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<(n < 2), 3>>(1, nullptr, s)();",
    "k<(n >> 1) != 0><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<(n >> 1) != 0>>(1, nullptr, s)();",
    "k<n << 1><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<n << 1>>(1, nullptr, s)();",
    "k<n <= 2><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<n <= 2>>(1, nullptr, s)();",
    "k<n >= 2><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<n >= 2>>(1, nullptr, s)();",
    "k<p->n><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<p->n>>(1, nullptr, s)();",
    "k<int{4}, A<a[1 > 0]>><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, k<int{4}, A<a[1 > 0]>>>(1, nullptr, s)();",
    "a::b::k<A<float>, (sizeof(int) > 3)><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, "
    "a::b::k<A<float>, (sizeof(int) > 3)>>(1, nullptr, s)();",
    "for (; i < n; ++i) k<(n > 2)><<<1, nullptr, s>>>();": "for (; i < n; ++i) "
    "::asc_launcher<ASC_AIV, k<(n > 2)>>(1, nullptr, s)();",
    "W<float>::k<3><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, W<float>::k<3>>(1, nullptr, s)();",
    "::ns::W<A<B<int>>, (n > 2)>::k<<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, "
    "::ns::W<A<B<int>>, (n > 2)>::k>(1, nullptr, s)();",
    "ns::W<A<B<int>>>::V<2>::k<3><<<1, nullptr, s>>>();": "::asc_launcher<ASC_AIV, "
    "ns::W<A<B<int>>>::V<2>::k<3>>(1, nullptr, s)();",
    "x = a < b; y > ::k<<<1, nullptr, s>>>();": "x = a < b; y > ::asc_launcher<ASC_AIV, ::k>(1, nullptr, s)();",
    "a<<<1, nullptr, s>>>(); b<<<2, nullptr, s>>>();": "::asc_launcher<ASC_AIV, a>(1, nullptr, s)(); "
    "::asc_launcher<ASC_AIV, b>(2, nullptr, s)();",
}

UNTOUCHED = [
    'const char *text = "k<<<1, nullptr, s>>>()";',
    "// k<<<1, nullptr, s>>>();",
    "// continued \\\n k<<<1, nullptr, s>>>();",
    "/* k<<<1,\n nullptr, s>>>(); */",
    'auto raw = R"x(k<<<1, nullptr, s>>>())x";',
    "char quote = '\"'; int shifted = 1 << 3 >> 2;",
    "int big = 1'000'000; template <class T, class U = A<B<C>>> struct S;",
    "k<<<1, nullptr, s;",
    "<<<1, nullptr, s>>>();",
    "f(k<<<1, 2)>>>();",
    "x = a < b; y > <<<1, nullptr, s>>>();",
    "x = a < ({ b; }) > <<<1, nullptr, s>>>();",
    "bool operator<(A) {} y > <<<1, nullptr, s>>>();",
    "bool operator<(A) {} ::y > <<<1, nullptr, s>>>();",
    "if (a < b) { y > <<<1, nullptr, s>>>(); }",
    "a < b) > <<<1, nullptr, s>>>();",
]


@pytest.mark.parametrize("source", REWRITTEN)
def test_a_launch_becomes_a_call(source: str) -> None:
    assert rewrite(source) == REWRITTEN[source]


@pytest.mark.parametrize("source", UNTOUCHED)
def test_text_that_is_no_launch_is_unchanged(source: str) -> None:
    assert rewrite(source) == source


@pytest.mark.parametrize(
    ("definition", "kind"),
    [
        ("__global__ __aicore__ void k(GM_ADDR x) { }", "AIV"),
        ("__global__ __aicore__ void k(GM_ADDR x) { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_2); }", "MIX"),
        (
            "__global__ void k() { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY); REGIST_MATMUL_OBJ(p, w, m, t); }",
            "AIV",
        ),
        ("__global__ __aicore__ void k() { REGIST_MATMUL_OBJ(p, w, m, t); }", "MIX"),
        ("#define ASCENDC_CUBE_ONLY\n__global__ __aicore__ void k() { REGIST_MATMUL_OBJ(p, w, m, t); }", "AIC"),
        ("__global__ __aicore__ void k() { Mmad(c, a, b, p); }", "AIC"),
        ("class Op { void Run() { Fixpipe(c, d, p); } }; __global__ __aicore__ void k() { Op op; op.Run(); }", "AIC"),
        ("template <class T> void run(T x) { Mmad(c, a, b, x); } __global__ void k() { run<half>(x); }", "AIC"),
        (
            "template <class T> struct Op { Op() : n(1) { LoadData(c, a, p); } }; __global__ void k() { Op<half> op; }",
            "AIC",
        ),
        ("void other() { Mmad(c, a, b, p); } __global__ __aicore__ void k() { Add(c, a, b, n); }", "AIV"),
        ("__global__ __vector__ void k() { Mmad(c, a, b, p); }", "AIV"),
        ("__global__ __cube__ void k() { }", "AIC"),
        ("__global__ __mix__(1, 2) void k() { }", "MIX"),
        ("__global__ __mix__(1, 1) void k() { }", "MIX_1_1"),
        ("__global__ void k() { KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_MIX_AIC_1_1); }", "MIX_1_1"),
        ("__global__ void other(int k) { } __global__ __cube__ void k() { }", "AIC"),
        ("__global__ void k() { AscendC::macro_detail::regist_matmul(p, w, m, t); }", "MIX"),
        ("__global__ __vector__ void k() { } __global__ __cube__ void other() { }", "AIV"),
    ],
)
def test_the_definition_says_on_which_cores_a_kernel_runs(definition: str, kind: str) -> None:
    assert f"launcher<ASC_{kind}, k>(" in rewrite(definition + "\nvoid host() { k<<<1, nullptr, s>>>(); }")


@pytest.mark.parametrize("name", ["k", "ns::k", "::ns::k", "ns::k<int>", "k<A<int>>", "k<A<B<int>>>", "W<int>::k<3>"])
def test_the_name_of_a_kernel_says_on_which_cores_it_runs(name: str) -> None:
    definition = "namespace ns { template <class T> __global__ __cube__ void k() { } }"
    assert f"launcher<ASC_AIC, {name}>(" in rewrite(f"{definition} void host() {{ {name}<<<1, nullptr, s>>>(); }}")


PIECES = st.sampled_from(
    [
        *REWRITTEN,
        *UNTOUCHED[:7],
        "\n",
        " ",
        "x = y;",
        "{",
        "}",
        '"a\\"b"',
        "'\\''",
        "/*",
        "//",
        'R"(',
        ')"',
        "<<<",
        ">>>",
        "k",
        "\\\n",
    ]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_lines_and_everything_outside_launches_stay(source: str) -> None:
    result = rewrite(source)
    assert result.count("\n") == source.count("\n")
    assert result.replace("::asc_launcher<ASC_AIV, ", "").replace(", ", "").count("k") == source.replace(
        ", ", ""
    ).count("k")
    assert rewrite(result) == result


@given(st.text(alphabet="k<>(){};,=- ", max_size=40))
def test_the_name_of_a_kernel_is_in_the_statement_of_its_launch(source: str) -> None:
    for text in (f"k<{source}><<<1, nullptr, s>>>();", f"{source}<<<1>>>();", f"{source}>::k<<<1>>>();"):
        lexemes = tokens(text)
        for launch in launches(lexemes):
            name = "".join(token.text for token in lexemes[launch.first : launch.opening])
            assert ";" not in name
            assert "<<<" not in name
            assert all(name.count(opening) == name.count(closing) for opening, closing in ("()", "{}"))


@given(st.text(alphabet="k<>(), \n\"'/*\\;:RLx1.", max_size=60))
def test_any_text_is_read_to_its_end(source: str) -> None:
    lexemes = tokens(source)
    assert all(source[token.start : token.end] == token.text for token in lexemes)
    assert all(before.end <= after.start for before, after in itertools.pairwise(lexemes))
    assert rewrite(source).count("\n") == source.count("\n")


@pytest.mark.parametrize(
    "unit",
    [
        "k<<<(",
        "k<<<",
        "> <<<",
        "(> <<<)> <<<",
        "k<(",
        "k<{}",
        "k<<<1>>>(); ",
        "__global__ ",
        "__global__ void k() {",
        "__mix__(",
        "k<1><<<",
        "k<1>::",
        "k<1>::k<<<1>>>(); ",
        "> ::k<<<1>>>",
        "(> ::k<<<1>>>)> ::k<<<1>>>",
        "(k<<<1>>>) > ::",
        "{",
        "<<<[{(",
        "Mmad ){}",
        "Mmad (){{",
    ],
)
@pytest.mark.slow
def test_every_token_is_read_a_few_times(unit: str) -> None:
    """A search for each launch, each definition or each bracket needs minutes for this text."""
    result = rewrite(unit * 40_000 + "k<<<1>>>();")
    assert result.count("::asc_launcher") == 40_000 * unit.count("k<<<1>>>") + 1


@pytest.mark.slow
def test_what_a_kernel_reaches_is_found_once() -> None:
    """A walk over all words for each launch needs minutes for this text."""
    body = "".join(f"int a{i};" for i in range(30_000))
    text = f"__global__ void k() {{ {body} f(); }} void f() {{ Mmad(); }} void h() {{ {'k<<<1>>>();' * 12_000} }}"
    assert rewrite(text).count("::asc_launcher<ASC_AIC, k>") == 12_000


@pytest.mark.parametrize(
    ("definitions", "kind"),
    [
        ("struct Op { Op(int n) : a(n), b(n) { Mmad(); } }; void k() { Op op(1); }", "AIC"),
        ("template <class T> void f(T t) { Mmad(); } void k() { f(1); }", "AIC"),
        ("template <class T> struct Op { void Run() { Fixpipe(); } }; void k() { Op<int>().Run(); }", "AIC"),
        ("void f(int a = g({1, 2})) { Mmad(); } void k() { f(1); }", "AIC"),
        ("void f(" + "int a, " * 300 + "int b) { Mmad(); } void k() { f(1); }", "AIC"),
        ("void f() { g(); } void g() { f(); Mmad(); } void k() { f(); }", "AIC"),
        ("void f() { Mmad(); } void k() { g(); }", "AIV"),
        ("struct Mmad { int a; }; void f() { k(); Mmad m; } void k() { }", "AIV"),
    ],
)
def test_a_kernel_that_reaches_a_name_of_the_cube_runs_on_cube_cores(definitions: str, kind: str) -> None:
    assert f"launcher<ASC_{kind}, k>(" in rewrite(f"{definitions} void host() {{ k<<<1, nullptr, s>>>(); }}")


@pytest.mark.parametrize(
    "text",
    ["f(0, 1'.') [[gnu::always_inline]] //'", "f(1$'a) [[gnu::always_inline]] //'", "f('') [[gnu::always_inline]] //'"],
)
def test_numbers_and_characters_end_where_the_compiler_ends_them(text):
    assert "always_inline" in {token.text for token in tokens(text)}


def test_the_author_s_macros_say_on_which_cores_a_kernel_runs() -> None:
    source = "#define ASCENDC_CUBE_ONLY\n__global__ void k() { REGIST_MATMUL_OBJ(p, w, m, t); k<<<1, nullptr, s>>>(); }"
    cores = Cores("__global__ void k ( ) { regist_matmul ( p , w , m , t ) ; }", source)
    assert rewrite("k <<< 1 , nullptr , s >>> ( ) ;", cores) == "::asc_launcher<ASC_AIC, k >( 1 , nullptr , s ) ( ) ;"


@pytest.mark.parametrize(
    ("text", "unmarked"),
    [
        ('extern "C" __global__ __cube__ void k ( ) { }', 'extern "C"   void k ( ) { }'),
        ("__mix__ ( 1 , 2 ) void k ( ) { KERNEL_TASK_TYPE_DEFAULT ( KERNEL_TYPE_AIV_ONLY ) ; }", " void k ( ) {  ; }"),
        ("KERNEL_TASK_TYPE ( ( 1 ) , KERNEL_TYPE_AIV_ONLY ) ; f ( ) ;", " ; f ( ) ;"),
        ('f ( "__global__" ) ;', 'f ( "__global__" ) ;'),
        ("__mix__ ( 1 ,\n 2 ) ;", "__mix__ ( 1 ,\n 2 ) ;"),
        ("f ( __mix__ ) ; __mix__ ( 1", "f ( __mix__ ) ; __mix__ ( 1"),
        ("__mix__", "__mix__"),
        ("__mix__ ( ) ( __global__ 1 )", " (  1 )"),
    ],
)
def test_the_compiler_does_not_see_the_kinds_of_cores(text: str, unmarked: str) -> None:
    assert Cores(text).unmarked == unmarked


def test_every_function_ends_for_the_compiler():
    source = "[[noreturn]] void f() {} __attribute__((__noreturn__)) void g() { __builtin_unreachable(); }"
    assert rewrite(source) == "[[unused]] void f() {} __attribute__((__unused__)) void g() { __builtin_trap(); }"


def test_nothing_is_forced_to_be_inlined() -> None:
    """Such a kernel would become a part of the launcher, whose basic blocks are not counted."""
    source = '#define I __attribute__((__always_inline__))\n[[gnu::always_inline]] int f(); "always_inline"'
    replaced = source.replace("__always_inline__", "__unused__").replace("gnu::always_inline", "gnu::unused")
    assert rewrite(source) == replaced
