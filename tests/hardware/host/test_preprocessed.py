"""What the preprocessor writes is screened and compiled as the same tokens, or refused."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gym.confinement import building
from kernel_gym.hardware.host.preprocessed import MAX_CHARACTERS, plain
from kernel_gym.verifier.screening.source import read_preprocessed

NAME = "kernel.cpp"
ODD = [
    "\\\n", "\\ \n", "\r", "\n", " ", "\v", "\f", "\0", "'", '"', "''", "1'", "1$", "$", "0xe+", "1e-", ".5",
    "//", "/*", "*/", "/", "<:", ":>", "%:", "??/", "<<<", ">>>", "(", ")", "[[", "]]", "{", "}", ";",
    'R"(', ')"', "u8", "L", "\u00e9", "`", "@", "#", "##", "\\u00e9", "x", "HIDDEN", "HIDDEN HIDDEN;", "asm",
    "#define X ", "#define X(a) ", "X", "X(", "#undef X\n", "#if 0\n", "#else\n", "#endif\n", '_Pragma("once")',
    "\n#pragma unroll\n", '\n#line 3 "other"\n', '\n# 3 "x.h" 1\n', '\n# 9 "kernel.cpp" 2\n', '"\\\\"', "'\\''",
]  # fmt: skip


def gcc(folder: Path, text: str, name: str, *flags: str) -> tuple[str, str]:
    """Return what the compiler makes of a text, and its errors."""
    (folder / name).write_bytes(text.encode(errors="surrogateescape"))
    command = [building.find_compiler(), "-std=c++17", "-w", "-fno-diagnostics-show-caret", *flags, name]
    done = subprocess.run(command, cwd=folder, capture_output=True, check=False)
    return done.stdout.decode(errors="surrogateescape"), done.stderr.decode(errors="surrogateescape")


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(ODD), min_size=1, max_size=12).map("".join))
def test_odd_spellings_are_refused_or_compiled_as_screened(tmp_path: Path, text: str) -> None:
    preprocessed, errors = gcc(tmp_path, text + "\nint last;\n", NAME, "-E")
    if " error: " in errors:
        return
    read = plain(preprocessed, (NAME,))
    if read.diagnostics:
        return
    tokens = [token.text for token in read_preprocessed(read.text, NAME).tokens]
    rows = [row for row in read.text.split("\n") if not row.startswith("# ")]
    compiled, _ = gcc(tmp_path, read.text, "kernel.ii", "-fpreprocessed", "-E", "-P", "-x", "c++")
    assert compiled.split() == " ".join(rows).split()  # no comment, directive or joined line is left
    assert "".join(tokens) == re.sub(r"\s", "", "".join(rows)) or any(" " in token for token in tokens)
    _, errors = gcc(tmp_path, read.text, "kernel.ii", "-fpreprocessed", "-fsyntax-only")
    assert "HIDDEN" not in errors or any("HIDDEN" in token for token in tokens if token[0] not in "'\"")


@pytest.mark.parametrize(
    ("row", "expected"),
    [
        ("k<<<1,nullptr,s>>>(x);", "k <<< 1 , nullptr , s >>> ( x ) ;"),
        ("A<B<C<int>>>=x;", "A < B < C < int >> >= x ;"),
        ("A<::B> a;x<:y", "A < :: B > a ; x < : y"),
        ("1'000'000 + 1e+5f + .5 + 0x1p-3", "1000000 + 1e+5f + .5 + 0x1p-3"),
        ("1'.'", "1 '.'"),
        ("\"a\"_x'\\'' u8\"b\" L'c'", "\"a\"_x '\\'' u8\"b\" L'c'"),
        ("a//b", "a / / b"),
        ("a/*b*/", "a / * b * /"),
        ("%:define x", "% : define x"),
    ],
)
def test_tokens_are_apart(row: str, expected: str) -> None:
    assert plain(f'# 4 "{NAME}"\n{row}\n', (NAME,)).text == f'# 4 "{NAME}"\n{expected}\n'


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("f('')", "missing terminating ' character"),
        ('"a', 'missing terminating " character'),
        ("a \\", "stray '\\\\' in program"),
        ("#define x", "stray '#' in program"),
        ("#pragma GCC optimize 3", "stray '#' in program"),
        ('"a\0"', 'missing terminating " character'),
        ("1e+asm", "1e+asm is no number"),
        ('# 1 "other.h"', "this preprocessor directive is not allowed (#line)"),
        ("x " * (MAX_CHARACTERS // 2 + 1), "macros expand without end: write the code out, or use a loop"),
    ],
)
def test_what_no_allowed_text_becomes_is_refused(row: str, message: str) -> None:
    (diagnostic,) = plain(f'# 7 "{NAME}"\nint a;\n{row}\n', (NAME,)).diagnostics
    assert (diagnostic.message, diagnostic.line) == (message, 8)


def test_lines_stay_and_the_text_of_headers_does_not() -> None:
    text = (
        f'# 0 "{NAME}"\n# 0 "<command-line>"\n#pragma GCC pch_preprocess "x.gch"\n# 1 "{NAME}"\n\nint a;\n'
        f'# 1 "/x/y.h" 1\nint theirs;\n# 1 "/x/z.h" 1\nint theirs;\n# 2 "/x/y.h" 2\n# 4 "{NAME}" 2\n#pragma unroll\n'
        f'int b;\n# 40 "{NAME}"\nint c;\n'
    )
    read = plain(text, (NAME,))
    assert read.text == f'# 2 "{NAME}"\nint a ;\n\n\nint b ;\n# 40 "{NAME}"\nint c ;\n'
    assert read.headers == {"/x/y.h"}
    assert [token.line for token in read_preprocessed(read.text, NAME).tokens if token.text == ";"] == [2, 5, 40]
