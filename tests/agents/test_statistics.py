"""Statistics hold what they promise, on numbers that hypothesis makes up and on textbook cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernel_gym.agents import statistics
from kernel_gym.agents.comparison import outcome

NUMBERS = st.lists(st.floats(-1, 1), min_size=1, max_size=8)
PS = st.lists(st.floats(0, 1), max_size=12)


@settings(max_examples=40, deadline=None)
@given(NUMBERS)
def test_an_interval_holds_its_mean_and_stays_within_the_data(values: list[float]) -> None:
    found = statistics.interval(values)
    assert found is not None
    assert found.low - 1e-9 <= found.mean <= found.high + 1e-9
    assert min(values) - 1e-9 <= found.low
    assert found.high <= max(values) + 1e-9
    assert statistics.interval(values) == found  # the same numbers, the same interval


@settings(max_examples=20, deadline=None)
@given(st.lists(st.lists(st.floats(0, 1), min_size=4, max_size=4), min_size=1, max_size=6))
def test_a_band_is_the_interval_of_every_point(curves: list[list[float]]) -> None:
    mean, low, high = statistics.band(curves)
    assert (low <= mean + 1e-9).all()
    assert (mean <= high + 1e-9).all()
    for at, column in enumerate(zip(*curves, strict=True)):
        assert min(column) - 1e-9 <= low[at]
        assert high[at] <= max(column) + 1e-9
        assert mean[at] == pytest.approx(np.mean(column))


def test_the_effect_is_in_units_of_the_deviation() -> None:
    one = statistics.difference("b", {0: 0.5, 1: 0.7, 2: 0.9}, "a", {0: 0.4, 1: 0.4, 2: 0.4})
    assert one is not None
    assert one.effect == pytest.approx(0.3 / 0.2)
    same = statistics.difference("b", {0: 0.5, 1: 0.5}, "a", {0: 0.25, 1: 0.25})
    assert same is not None
    assert same.effect is None


@given(PS)
def test_holm_never_lowers_keeps_order_and_stays_below_bonferroni(ps: list[float]) -> None:
    adjusted = statistics.holm(ps)
    assert all(p <= q <= min(1.0, len(ps) * p) + 1e-12 for p, q in zip(ps, adjusted, strict=True))
    order = np.argsort(ps, kind="stable")
    assert list(np.asarray(adjusted)[order]) == sorted(adjusted)


def test_holm_as_in_the_textbook() -> None:
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


@given(st.integers(-64, 64), st.integers(0, 9))
def test_a_shift_that_all_seeds_share_is_found_and_none_is_none(sixty_fourths: int, seed: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 64, 4) / 64  # exact, so that nothing but the shift is left
    shift = sixty_fourths / 64
    values = {"a": dict(enumerate(noise)), "b": dict(enumerate(noise + shift)), "c": {9: 1.0}}
    found = {one.contender: one for one in statistics.differences(values, [("b", "a"), ("c", "a")])}
    assert set(found) == {"b"}  # c shares no seed with the reference
    assert found["b"].interval.mean == pytest.approx(shift, abs=1e-9)
    assert found["b"].counts == (shift != 0)
    assert found["b"].detectable == pytest.approx(0, abs=1e-9)


def test_without_noise_to_judge_by_nothing_is_claimed() -> None:
    one = statistics.difference("b", {0: 0.9}, "a", {0: 0.1})
    assert one is not None
    assert (one.p, one.detectable, one.counts) == (1.0, None, False)


def test_the_smallest_detectable_effect_has_the_power_it_states() -> None:
    """Draw samples with that very effect: about four in five tests find it."""
    rng = np.random.default_rng(0)
    data = rng.normal(0, 1, (4000, 8))
    effect = statistics.smallest_detectable((data[0] - data[0].mean()) / data[0].std(ddof=1))
    assert effect is not None
    found = stats.ttest_1samp(data + effect, 0.0, axis=1).pvalue < statistics.LEVEL
    assert 0.75 < found.mean() < 0.88


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=6))
def test_the_figures_of_a_run_follow_from_its_journal(first: list[int | None]) -> None:
    """`first[i]` is the attempt at which operator i was solved; area is what is left of the budget then."""
    tasks = [f"t/{i}" for i in range(len(first))]
    records = [
        {
            "task": task,
            "reward": 0.0,
            "verdict": {
                "feasible": attempt == solved,
                "compiled": True,
                "latency_us": 1.0 if attempt == solved else None,
            },
        }
        for attempt in range(5)
        for task, solved in zip(tasks, first, strict=True)
    ]
    figures = outcome("a", 0, [*records, {"task": "t/other", "reward": 9.0, "verdict": {}}], tasks, 5).figures
    left = [0.0 if solved is None else (5 - solved) / 5 for solved in first]
    assert figures["correct"] == pytest.approx(np.mean([solved is not None for solved in first]))
    assert figures["area"] == pytest.approx(np.mean(left))
    assert figures["middle"] == pytest.approx(statistics.interquartile_mean(left))
    assert figures["reward"] == 0.0
