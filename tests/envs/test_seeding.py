"""Randomness that depends on names and numbers alone."""

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.envs.seeding import generator

keys = st.lists(st.one_of(st.integers(0, 2**40), st.text(max_size=8)), min_size=1, max_size=4)


def test_another_process_draws_the_same() -> None:
    code = "from kernel_gym.envs.seeding import generator; print(generator(1, 'level1/relu', 0).random())"
    output = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert float(output) == generator(1, "level1/relu", 0).random()


@given(one=keys, other=keys)
def test_every_key_has_a_generator_of_its_own(one: list[str | int], other: list[str | int]) -> None:
    assert (generator(*one).random() == generator(*other).random()) == (one == other)
