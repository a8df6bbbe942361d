"""Tests of finding the kernel in a model's answer."""

import difflib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.authors.model.answer import apply_diff, kernel_source

KERNEL = """#include "kernel_operator.h"
#include "kernel_gym.h"
extern "C" int kernel_launch(const KernelArgs *a, void *stream) {
    return 0;
}
"""
OTHER = KERNEL.replace("return 0", "return 1")


@pytest.mark.parametrize(
    "answer",
    [
        f"```cpp\n{KERNEL}```",
        f"Sure! Here it is:\n\n```c++\n{KERNEL}```\nIt is fast.",
        f"~~~cpp\n{KERNEL}~~~",
        f"First try:\n```cpp\n{OTHER}```\nBetter:\n```cpp\n{KERNEL}```",
        f"```cpp\n{KERNEL}```\nBuild it with:\n```bash\nbisheng k.asc\n```",
        f"```cpp\n{KERNEL}",
        f"Here is the code.\n\n{KERNEL}\nGood luck!",
        f"```cpp\r\n{KERNEL}```".replace("\n", "\r\n"),
        f"````cpp\n{KERNEL}````",
        f"  ```cpp title=k.asc\n{KERNEL}  ```",
        f"<think>\nPerhaps\n```cpp\n{OTHER}```\n</think>\n{KERNEL}",
    ],
    ids=["plain", "prose", "tildes", "two", "shell", "unclosed", "bare", "crlf", "four", "indented", "thought"],
)
def test_the_kernel_is_found(answer: str) -> None:
    assert kernel_source(answer) == KERNEL


@pytest.mark.parametrize("answer", ["", "I can't do that.", "```cpp\nint x;\n```", "```\n\n```", "#include <x>\nno"])
def test_no_kernel_is_an_empty_source(answer: str) -> None:
    assert kernel_source(answer) == ""


def test_a_diff_is_applied_to_the_start_point() -> None:
    diff = "".join(difflib.unified_diff(KERNEL.splitlines(True), OTHER.splitlines(True), "a", "b"))
    assert kernel_source(f"Only one line changes:\n```diff\n{diff}```", KERNEL) == OTHER
    wrong_numbers = diff.replace("@@ -1,5 +1,5 @@", "@@ -40,5 +40,5 @@")
    assert kernel_source(f"```diff\n{wrong_numbers}```", KERNEL) == OTHER


lines = st.lists(st.sampled_from(["a", "b", "c", "", "    d;", "}"]), min_size=1, max_size=30)


@given(lines, lines)
def test_any_diff_with_full_context_applies(old: list[str], new: list[str]) -> None:
    diff = "\n".join(difflib.unified_diff(old, new, "a", "b", lineterm="", n=len(old)))
    if diff:
        assert apply_diff("\n".join(old) + "\n", diff) == "\n".join(new) + "\n"


def test_a_diff_that_fits_nowhere_is_refused() -> None:
    assert apply_diff(KERNEL, "@@ -1 +1 @@\n-nothing like this\n+x") is None


@given(st.text(max_size=300))
def test_any_answer_is_survived(answer: str) -> None:
    kernel_source(answer)
    kernel_source(answer, KERNEL)


BUNDLE = "project_json_src = '[]'\nkernel_src = '''\nint x;\n'''\nmodel_src = ''\n"


@pytest.mark.parametrize(
    "answer",
    [
        f"Here:\n```python\n{BUNDLE}```\nDone.",
        f"First:\n```python\nx = 1\n```\n```python\n{BUNDLE}```",
        f"Sure.\n{BUNDLE}",
    ],
)
def test_a_bundle_is_found_in_an_answer(answer):
    assert kernel_source(answer) == BUNDLE


@pytest.mark.parametrize("letter", "`~")
def test_a_long_fence_is_read_once(letter: str) -> None:
    """A fence that is tried at every length takes the square of it: hours for this one."""
    assert kernel_source(letter * 1_000_000) == ""
    assert kernel_source(f"{letter * 4}cpp\nint kernel_launch;\n{letter * 4}\n").strip() == "int kernel_launch;"
