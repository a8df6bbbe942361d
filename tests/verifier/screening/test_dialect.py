"""The dialect: what the compiler of the device refuses, and what it lets pass."""

import pytest
from relu_text import RELU, in_compute, in_launch, with_line

from kernel_gym.verifier.screening import dialect
from kernel_gym.verifier.screening.screen import findings
from kernel_gym.verifier.screening.source import read


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("float inverse = 1.0f / n;", "unsigned"),
        ("float inverse = static_cast<float>(length);", "unsigned"),
        ("uint32_t m = x.GetValue(0) * 1.0f;", "unsigned"),
        ("float r = sqrtf(2.0f);", "sqrtf"),
        ("float r = -FLT_MAX;", "FLT_MAX"),
        ("double d = 1.0;", "double"),
        ("float low = std::numeric_limits<float>::lowest();", "numeric_limits"),
    ],
)
def test_the_dialect_refuses_what_the_device_compiler_refuses(line, words):
    source = read(in_compute(line))
    assert list(findings(source)) == []
    mistakes = dialect.lint(source)
    assert len(mistakes) >= 1
    assert words in mistakes[0].message
    assert "AscendC::Relu" in RELU.splitlines()[(mistakes[0].line or 0) - 1]


def test_messages_have_the_words_of_the_author():
    source = read(RELU.replace("\nclass", "\n__aicore__ inline double Half(double x) { return x; }\nclass", 1))
    assert "'__aicore__ inline double Half" in dialect.lint(source)[0].message


@pytest.mark.parametrize(
    "line",
    [
        "float inverse = 1.0f / static_cast<int32_t>(n);",
        "float inverse = static_cast<float>(static_cast<int32_t>(n));",
        "constexpr uint32_t k = 4; float f = 1.0f * k;",
        "float f = n * 1.0f;",
        "uint32_t i = 2; float *p = (float *)x.GetPhyAddr() + i * n; float *q = p; q = p + n;",
        "int32_t m = 3; float f = m * 2.0f;",
        "uint32_t m = n / 2 * sizeof(float);",
        "float f = 3; f = f * 2;",
    ],
)
def test_the_dialect_lets_legal_conversions_pass(line):
    assert dialect.lint(read(in_compute(line))) == ()


MEMBERS = """
struct Sizes { uint32_t total, rows; float scale; const uint32_t fixed = 3; };
struct Sums { float total = 0.0f; Sizes sizes; int32_t rows; };
class Part {
public:
    __aicore__ inline float Inside(const Sizes &s, Sums *p, int32_t i) { LINE }
    __aicore__ inline float Outside(const Sizes &s, Sums *p, int32_t i);
    Sizes t;
    Sums sums;
    float total = 0.0f;
    int32_t rows;
};
__aicore__ inline float Part::Outside(const Sizes &s, Sums *p, int32_t i) { LINE }
"""


@pytest.mark.parametrize(
    ("line", "mistakes"),
    [
        ("return total / (float)t.total;", 2),
        ("return total / (float)t.rows;", 2),
        ("return static_cast<float>(s.total);", 2),
        ("return float(this->t.total);", 2),
        ("float f = sums.sizes.total; return f;", 2),
        ("return (float)p->sizes.rows;", 2),
        ("Sizes own; return (float)own.rows;", 2),
        ("return (float)sums.rows + (float)rows + (float)p->rows + (float)this->rows;", 0),
        ("return p->total + this->total + sums.total * total + t.scale * (float)i;", 0),
        ("return (float)(int32_t)t.total + (float)t.fixed;", 0),
        ("auto unknown = Make(); return (float)unknown.rows + (float)Make().total;", 0),
        ("struct { uint32_t alone; } s; auto unknown = Make(); return (float)unknown.scale;", 0),
        ("return sums" + ".sizes" * 5000 + ".scale;", 0),
    ],
)
def test_conversions_of_members_go_by_their_class(line, mistakes):
    found = dialect.lint(read(with_line(MEMBERS.replace("LINE", line))))
    assert len(found) == mistakes, found


def test_host_code_may_convert_as_it_likes():
    assert dialect.lint(read(in_launch("float inverse = 1.0f / (uint32_t)a->num_inputs; double d = inverse;"))) == ()


def test_missing_gm_headers_and_entry_points():
    assert "__gm__" in dialect.lint(read(RELU.replace("(__gm__ float *)x", "(float *)x")))[0].message
    assert "iostream" in dialect.lint(read(with_line("#include <iostream>")))[0].message
    assert "kernel_launch" in dialect.lint(read(RELU.replace("int kernel_launch", "int launch")))[0].message
    assert "no kernel" in dialect.lint(read(RELU.replace("__global__ ", "")))[0].message


@pytest.mark.parametrize("character", ["\u200b", "\u0430", "\uff1b", "\x01", "\x00"])
def test_stray_characters_are_mistakes(character):
    source = read(with_line(f"constexpr int a{character} = 1;"))
    assert list(findings(source)) == []
    assert "stray character" in dialect.lint(source)[0].message
    assert dialect.lint(source)[0].line == 11
    assert dialect.lint(read(with_line(f"// a{character} really??!"))) == ()


def test_keywords_in_comments_and_strings_are_no_kernel():
    text = '// __global__ __aicore__ kernel_launch <<<1, nullptr, s>>>\nconstexpr const char *k = "kernel_launch(";\n'
    assert len(dialect.lint(read(text))) == 2
