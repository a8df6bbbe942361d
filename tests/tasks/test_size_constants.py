"""Finding and replacing size constants in a module's text."""

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.errors import TaskError
from kernel_gym.tasks.size_constants import find_sizes, with_sizes

TEXT = """
batch = 16
rows, columns = 4, 8 * 2
shape = (rows, 3, 5)
layers: list[int] = [6, 7]
power = 1 << 10
area = rows * columns
ratio = 0.5
inplace = True
name = "x"
"""


def run(source: str, **sizes: int) -> dict[str, object]:
    names: dict[str, object] = {}
    exec(compile(with_sizes(source, sizes), "<test>", "exec"), names)
    return names


def test_finds_whole_numbers_only():
    sizes = find_sizes(TEXT)
    assert sizes == {"batch": 16, "rows": 4, "columns": 16, "shape[1]": 3, "shape[2]": 5, "power": 1024}


def test_dependent_constants_follow():
    assert run(TEXT, rows=10)["area"] == 160
    assert run(TEXT, rows=10)["shape"] == (10, 3, 5)


def test_one_element_of_a_tuple():
    names: dict[str, object] = {}
    exec(compile(with_sizes(TEXT, {"shape[2]": 9, "columns": 2}), "<test>", "exec"), names)
    assert names["shape"] == (4, 3, 9)
    assert names["columns"] == 2


def test_the_text_itself_is_not_changed():
    with_sizes(TEXT, {"rows": 99})
    assert find_sizes(TEXT)["rows"] == 4


def test_equal_numbers_in_get_inputs_are_one_size():
    text = "rows = 2\ndef get_inputs():\n    return [torch.rand(rows, 4 * 2), torch.zeros((5, 1, 8))]\n"
    assert find_sizes(text) == {"rows": 2, "get_inputs(8)": 8, "get_inputs(5)": 5}
    assert "rand(rows, 7), torch.zeros((5, 1, 7))" in ast.unparse(with_sizes(text, {"get_inputs(8)": 7}))


def test_a_bound_is_a_size_only_with_a_shape():
    alone = "def get_inputs():\n    return [torch.randint(0, 10, (4,))]\n"
    assert find_sizes(alone) == {"get_inputs(4)": 4}
    shared = "def get_inputs():\n    return [torch.rand(10), torch.randint(0, 10, (4,))]\n"
    assert "randint(0, 3, (4,))" in ast.unparse(with_sizes(shared, {"get_inputs(10)": 3}))


def test_unknown_size_names_the_known_ones():
    with pytest.raises(TaskError, match="no size constant 'depth'; it has: batch, rows"):
        with_sizes(TEXT, {"depth": 3})


def test_text_that_is_not_python_is_one_line():
    with pytest.raises(TaskError, match="line 2"):
        find_sizes("a = 1\nb = = 2\n")


@given(st.dictionaries(st.sampled_from(sorted(find_sizes(TEXT))), st.integers(0, 10**9)))
def test_what_is_put_is_found(sizes: dict[str, int]):
    assert find_sizes(ast.unparse(with_sizes(TEXT, sizes))) == find_sizes(TEXT) | sizes


@pytest.mark.parametrize(
    "expression",
    ["8 // 0", f"{'1 + ' * 2000}1", "((((9 ** 64) ** 64) ** 64) ** 64) ** 64", "10 ** 18", "1 << 64", "1" * 4000],
)
def test_numbers_that_no_tensor_has_are_no_sizes(expression: str):
    """They were a traceback, or took hours to compute or to find a prime near them."""
    assert find_sizes(f"N = {expression}\nM = 8\n") == {"M": 8}


def test_a_long_chain_of_calls_in_get_inputs_is_no_deep_recursion():
    assert find_sizes(f"def get_inputs():\n    return [f{'()' * 500}, g(16)]\n") == {"get_inputs(16)": 16}
