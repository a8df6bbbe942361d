"""Texts that are long, deeply nested or no C++ are read once and refused in time."""

import sys

import pytest
from relu_text import RELU, in_compute

from kernel_gym.hardware.host import cpp_syntax
from kernel_gym.hardware.host.ascend_launches import rewrite
from kernel_gym.verifier.screening import dialect, syntax
from kernel_gym.verifier.screening.screen import findings, screen
from kernel_gym.verifier.screening.source import read


@pytest.mark.parametrize("opening", ["/*", 'R"(', 'u8R"x(', '\\"', "'a"])
def test_unclosed_text_is_read_once(opening):
    """A quadratic lexer needs minutes for this text."""
    source = read(RELU + opening * 100_000)
    assert source.tokens[: len(read(RELU).tokens)] == read(RELU).tokens
    assert rewrite(RELU + opening * 100_000).endswith(opening)


#: Texts of n nested or chained parts. Before they were read once, the first took 38 s for n = 2,000, the third more
#: than a minute; all of them are short enough for the limits on depth.
NESTED = {
    "attributes": lambda n: "[" * n + "]" * n,
    "arguments of attributes": lambda n: "__attribute__((aligned(" * n + ")))" * n,
    "prototypes in namespaces": lambda n: "int f() {}" + "namespace a { int f();" * n + "}" * n,
    "prototypes in conditions": lambda n: "int f() { if (int f(); 1);" + "else if (int f(); 1);" * n + "}",
    "launch bounds": lambda n: "__launch_bounds__(" * 5 * n,
    "methods in methods": lambda n: "struct { __aicore__ void f() {" * (n // 2) + "} };" * (n // 2),
    "names of classes": lambda n: "class (" * n,
    "names of classes in namespaces": lambda n: "namespace a { struct B { using C = int; int d; };" * n + "}" * n,
    "calls that may be declarations": lambda n: "f" + "(a)" * n + "; void g() { int" + "(a)" * n + "; }",
    "casts": lambda n: "void f() { g(" + "(char *)" * n + "a); }",
}


@pytest.mark.parametrize("name", NESTED)
def test_the_work_on_a_text_grows_with_its_length(name):
    """Counts the nodes and tokens that are looked at: doubling a text may double them, not more."""
    first, second = (_work(NESTED[name](n)) for n in (200, 400))
    assert second < 2.5 * first


def _work(text):
    """Return how many lines of the screening package run for a text."""
    lines = 0

    def trace(frame, event, _):
        nonlocal lines
        lines += event == "line"
        return trace

    def begin(frame, event, argument):
        return trace(frame, event, argument) if "screening" in frame.f_code.co_filename else None

    sys.settrace(begin)
    try:
        source = read(text)
        screen(source, compiled=True)
        dialect.lint(source)
    finally:
        sys.settrace(None)
    return lines


#: Texts of n classes inside each other.
CLASSES = {
    "classes in classes": lambda n: "struct A {" * n + "int a; " * n + "} b; " * n,
    "classes in methods": lambda n: "struct A { __aicore__ void f() {" * n + "int a;" * n + "} } b; " * n,
}


@pytest.mark.parametrize("name", CLASSES)
def test_the_body_of_a_class_is_not_read_again_for_each_class_around_it(name, monkeypatch):
    """Counts the characters of all nodes whose text is looked at: doubling a text may double them, not more."""
    plain, characters = syntax.text, 0

    def counted(node):
        nonlocal characters
        characters += len(plain(node))
        return plain(node)

    monkeypatch.setattr(syntax, "text", counted)
    counts = []
    for n in (100, 200):
        source = read(CLASSES[name](n))
        assert not source.tree.has_error
        screen(source)
        dialect.lint(source)
        counts.append(characters)
        characters = 0
    assert counts[1] < 2.5 * counts[0]


@pytest.mark.parametrize("unit", ["a ~ ", ".5 ", "x < "])
def test_a_text_that_is_no_cpp_is_refused_in_time(unit, monkeypatch):
    """The parser's recovery from errors would take minutes to hours for these."""
    monkeypatch.setattr(cpp_syntax, "SECONDS", 0.05)
    monkeypatch.setattr(cpp_syntax, "SECONDS_PER_BYTE", 0.0)
    with pytest.raises(cpp_syntax.Unparsable, match="too far from C\\+\\+"):
        cpp_syntax.parse(unit.encode() * 200_000)


def test_a_long_text_of_cpp_is_parsed_like_a_short_one():
    text = RELU + "int f(int a) { return a; }\n" * 2000
    assert len(text) > cpp_syntax.SHORT
    assert not read(text).tree.has_error
    assert screen(read(text)) is None


def test_a_tree_deeper_than_any_kernels_is_refused():
    with pytest.raises(cpp_syntax.Unparsable, match="levels deep"):
        screen(read(in_compute(f"int x = {'1 + ' * 12_000} 1;")))


def test_the_argument_of_launch_bounds_may_have_parentheses():
    assert not read("__global__ void __launch_bounds__((128 + 128), (2)) k(int *p) { *p = 1; }").tree.has_error


def test_macros_inside_macros_end():
    """Each level remembers those above it: without a limit a chain of thousands needs minutes."""
    chain = "".join(f"#define A{i} A{i + 1}\n" for i in range(20_000))
    finding = screen(read(f"{chain}{RELU}\nint x = A0;\n"))
    assert finding is not None
    assert finding.rule.id == "macro-bomb"


def test_long_expressions_are_no_deep_recursion():
    terms = " + ".join(["1.0f", "v"] * 1500)
    text = in_compute(f"float v = 1.0f; float sum = {terms}; char *p = (char *)({'1 + ' * 3000} n);")
    assert list(findings(read(text))) == []
    assert dialect.lint(read(text)) == ()
    forged = in_compute(f"char *p = (char *)({'1 + ' * 3000} 1);")
    assert next(findings(read(forged))).rule.id == "forged-pointer"
