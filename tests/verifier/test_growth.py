"""Extrapolation: never faster than in proportion, exact for powers."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.verifier.growth import Point, exponent, line, predict, steepest_drop


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


@given(st.floats(0, 100), st.floats(0, 10), st.integers(1, 1000), st.integers(1, 1000), st.integers(0, 10**6))
def test_lines_are_continued_and_never_fall(start, slope, small, step, further):
    points = [Point(small, start + slope * small), Point(small + step, start + slope * (small + step))]
    size = small + step + further
    assert line(points, size) == pytest.approx(start + slope * size, rel=1e-6)
    assert line(points[::-1], size) == points[0].figure


@given(st.lists(st.floats(0.5, 100), min_size=3, max_size=8), st.floats(0.1, 0.8))
def test_a_sudden_drop_is_seen_and_growth_is_not(steps, cut):
    sizes = [2**i for i in range(len(steps))]
    latencies = [sum(steps[: i + 1]) for i in range(len(steps))]
    rising = [Point(n, 1.0 + n) for n in sizes]
    assert steepest_drop(rising) == pytest.approx(1.0)
    assert steepest_drop([*rising[:-1], Point(sizes[-1], cut * (1.0 + sizes[-1]))]) == pytest.approx(cut, rel=0.01)
    assert 0 < steepest_drop([Point(n, latency) for n, latency in zip(sizes, latencies, strict=True)]) <= 1.0
