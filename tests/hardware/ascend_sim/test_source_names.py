"""The names that a source declares decide about prices: what may be dearer counts as such."""

from __future__ import annotations

import pytest

from kernel_gym.hardware.ascend_sim.source_names import Kind, Names, Type, aliases, bit_fields, declared, union_members


def test_names_of_types_have_the_meaning_that_the_source_gives_them() -> None:
    text = "using A = B; typedef A C; using D = const unsigned long; enum E { X }; using F = C *; typedef float G;"
    kinds = {"A": Kind.UNKNOWN, "C": Kind.UNKNOWN, "D": Kind.INTEGER, "E": Kind.INTEGER, "F": Kind.POINTER}
    assert {name: each.kind for name, each in aliases(text).items()} == {**kinds, "G": Kind.FLOAT}
    assert aliases("#define N 4\nusing A = int32_t;") == {"A": Type(Kind.INTEGER, 32)}


def test_a_long_chain_of_names_is_known() -> None:
    chain = "".join(f"using A{i + 1} = A{i};\n" for i in range(200))
    assert aliases(f"using A0 = int16_t;\n{chain}")["A200"] == Type(Kind.INTEGER, 16)


@pytest.mark.parametrize(
    ("text", "bits"),
    [
        ("using A = unsigned char;", 8),
        ("typedef short unsigned int A;", 16),
        ("using B = std::uint16_t; using A = const B;", 16),
        ("using A = unsigned;", 32),
        ("using A = long long;", 64),
        ("using A = bool;", 1),
        ("using A = int *;", 64),
        ("enum class A { X };", 32),
        ("enum struct A : uint8_t { X };", 8),
        ("enum A : unsigned long { X };", 64),
        ("using B = int16_t; enum A : B { X };", 16),
        ("enum A { X };", 0),
        ("enum class A : Other { X };", 0),
        ("struct S { using A = int8_t; }; struct T { using A = int64_t; };", 0),
    ],
)
def test_the_bits_of_an_integer_are_known_or_none(text: str, bits: int) -> None:
    assert aliases(text)["A"].bits == bits


def test_a_pointer_among_the_arguments_of_a_template_makes_no_pointer() -> None:
    text = "using A = Either<float, int *>; using B = Either<float, int> *; using C = int *const;"
    kinds = {name: each.kind for name, each in aliases(text).items()}
    assert kinds == {"A": Kind.UNKNOWN, "B": Kind.POINTER, "C": Kind.POINTER}


@pytest.mark.parametrize(
    "declaration",
    [
        "using byte = decltype(1.0f);",
        "typedef decltype(1.0f) byte;",
        "typedef float (byte);",
        "typedef float byte [[maybe_unused]];",
        "typedef float byte alignas(4);",
        "typedef float byte __attribute__((aligned(4)));",
        "using byte = decltype(float{});",
        "float typedef byte;",
        "void f() { for (float typedef byte; false;) {} }",
    ],
)
def test_a_name_of_an_integer_that_the_kernel_declares_itself_may_be_a_float(declaration: str) -> None:
    assert aliases(declaration)["byte"].kind in (Kind.FLOAT, Kind.UNKNOWN)


@pytest.mark.parametrize(
    "text",
    [
        "template <class uint32_t> struct N { using A = uint32_t; };",
        "template <typename uint32_t, int n> struct N { using A = uint32_t; };",
        "template <int n, class uint32_t = float> struct N { using A = uint32_t; };",
        "template <class ... uint32_t> struct N { using A = First<uint32_t...>; };",
        "template <template <class> class uint32_t> struct N { using A = uint32_t<float>; };",
        "auto f = []<class uint32_t>(uint32_t x) { using A = uint32_t; return A(x); };",
        "namespace n { using T = uint32_t; } template <class T> struct N { typedef T A; };",
        "template <class uint32_t> struct N { using A = uint32_t; }; struct Own { using A = uint64_t; };",
        "struct N { using type = float; }; using Ntype = uint32_t; using A = N::type;",
        "struct N { using float32_t = int *; }; template <class float32_t> struct M { using A = float32_t; };",
        "using A = uint32_t; enum [[maybe_unused]] A : uint8_t { X };",
        "".join(f"using A{i or ''} = A{i + 1}; " for i in range(63)) + "using A63 = uint32_t; using uint32_t = float;",
    ],
)
def test_a_name_that_may_be_a_parameter_of_a_template_or_another_name_is_unknown(text: str) -> None:
    assert aliases(text)["A"] == Type(Kind.UNKNOWN)


HEADERS = """
template <class T> struct remove { using type = T; }; typedef unsigned long size_type;
struct Row { using value_type = float; }; enum class Mode { X }; template <class Index> struct Other {};
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("struct Own { using type = uint32_t; };", {"type": Type(Kind.UNKNOWN)}),
        ("struct Own { using value_type = uint32_t; };", {"value_type": Type(Kind.UNKNOWN)}),
        ("using type = int; using A = type;", {"type": Type(Kind.UNKNOWN), "A": Type(Kind.UNKNOWN)}),
        ("using size_type = uint64_t;", {"size_type": Type(Kind.INTEGER, 64)}),
        ("using size_type = uint8_t;", {"size_type": Type(Kind.INTEGER)}),
        ("enum class Mode { Y };", {"Mode": Type(Kind.INTEGER, 32)}),
        ("using Index = int;", {"Index": Type(Kind.INTEGER, 32)}),
    ],
)
def test_a_name_that_the_headers_have_too_is_known_if_both_mean_the_same(text: str, expected: dict[str, Type]) -> None:
    assert aliases(text, declared(HEADERS)) == expected


@pytest.mark.parametrize(
    ("text", "fields", "others"),
    [
        ("struct S { int a : 3, b : N ? 4 : 5, *c; enum E { X } d : 8; bool e [[maybe_unused]] : 1; };", "abde", "cX"),
        ("template <int n> struct S { public: int a : n; private: unsigned : 0; int b : 3 = 5, c; };", "ab", "c"),
        ("struct S { int a; int f() { again: switch (a) { case 1: default: goto again; } } };", "", "af"),
        ("int f(S s) { for (int x : s.a) s.b = s.c ? s.d : s.e; return s.f ? S{1}.g : s.h ? 4 : 3; }", "", "abcdefgh"),
        ("class A : public B { A(int a) : x(a), y(a ? a : 3) {} int x, y; };", "", "axy"),
        ("struct S { int x = k ? S{1} : 2, a : 4; S() : x(3) {} int b : 2; };", "ab", "xk"),
    ],
)
def test_names_of_bit_fields_are_those_before_a_colon(text: str, fields: str, others: str) -> None:
    found = bit_fields(text)
    assert set(fields) <= found
    assert not set(others) & found


@pytest.mark.parametrize(
    ("text", "members", "others"),
    [
        ("union U { int a; struct { short b, c[4]; }; }; struct S { int d; };", "abc", "Sd"),
        ("struct S { int d; union { int a; } e; int f; };", "a", "Sdef"),
        ("union alignas(8) U final { int a; }; union U u; struct S { int d; };", "a", "ud"),
        ("template <class T> union U { T a; }; int f() { union { int b; float c; }; return b; }", "abc", "f"),
    ],
)
def test_members_of_unions_are_the_words_in_their_braces(text: str, members: str, others: str) -> None:
    found = union_members(text)
    assert set(members) <= found
    assert not set(others) & found


@pytest.mark.parametrize(
    "text",
    [
        "// " + "typedef a, " * 6_000 + "\n",
        "typedef a, " * 6_000,
        "using a = a " * 6_000,
        "using a [[ " * 6_000,
        "typedef " + "a" * 300_000 + " b, c;",
        "#define a \\\n" * 6_000,
        "".join(f"using A{i} = A{i + 1}; " for i in range(4_000)),
        "a : " * 60_000,
        "enum a : " * 60_000,
        "a ? " * 60_000,
        "a { " * 60_000,
        "union { a " * 60_000,
    ],
    ids=[
        *[
            "comment",
            "typedefs",
            "aliases",
            "attributes",
            "word",
            "macros",
            "chain",
            "colons",
            "enumerations",
            "choices",
            "braces",
        ],
        "unions",
    ],
)
@pytest.mark.slow
def test_names_of_types_are_read_once(text: str) -> None:
    """None of these ends in an hour if every word is read anew for every other."""
    assert Names.of(text) is not None
