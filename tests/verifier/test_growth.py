"""Extrapolation: never faster than in proportion, exact for powers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.verifier.growth import Point, exponent, predict


@given(st.floats(1, 3), st.integers(1, 1000), st.integers(2, 64), st.integers(1, 4096), st.floats(0.1, 1e6))
def test_powers_are_continued(power, small, ratio, further, first):
    points = [Point(small, first), Point(small * ratio, first * ratio**power)]
    size = small * ratio * further
    assert exponent(points) == pytest.approx(power, rel=1e-6)
    assert predict(points, size) == pytest.approx(first * (ratio * further) ** power, rel=1e-5)


@given(st.integers(1, 10**6), st.integers(1, 10**6), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 1000))
def test_nothing_grows_less_than_the_tensors(a, b, first, second, further):
    small, large = sorted((a, b))
    points = [Point(small, first), Point(large, second)]
    assert predict(points, large * further) >= second * further * (1 - 1e-9)


def test_one_point_grows_in_proportion():
    assert predict([Point(10, 5.0)], 40) == 20.0
