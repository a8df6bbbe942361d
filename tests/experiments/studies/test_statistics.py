"""Statistics hold what they promise, on numbers that hypothesis makes up and on textbook cases."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernel_gym.config import resolve
from kernel_gym.experiments import statistics
from kernel_gym.experiments.runs.figures import outcome

NUMBERS = st.lists(st.floats(-1, 1), min_size=1, max_size=8)
PS = st.lists(st.floats(0, 1), max_size=12)
FIVE = resolve(overrides={"budget": 5})


@settings(max_examples=40, deadline=None)
@given(NUMBERS)
def test_an_interval_holds_its_mean_and_stays_within_the_data(values: list[float]) -> None:
    mean = statistics.interval(values)
    assert mean is not None
    assert mean.low - 1e-9 <= mean.mean <= mean.high + 1e-9
    assert min(values) - 1e-9 <= mean.low
    assert mean.high <= max(values) + 1e-9
    assert statistics.interval(values) == mean  # the same numbers, the same interval


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
    difference = statistics.difference("b", {0: 0.5, 1: 0.7, 2: 0.9}, "a", {0: 0.4, 1: 0.4, 2: 0.4})
    assert difference is not None
    assert difference.effect == pytest.approx(0.3 / 0.2)
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


@given(st.integers(-64, 64), st.integers(0, 9), st.integers(2, 9))
def test_a_shift_that_all_seeds_share_takes_six_to_count(sixty_fourths: int, seed: int, seeds: int) -> None:
    noise = np.random.default_rng(seed).integers(0, 64, seeds) / 64  # exact, so that nothing but the shift is left
    shift = sixty_fourths / 64
    values = {"a": dict(enumerate(noise)), "b": dict(enumerate(noise + shift)), "c": {99: 1.0}}
    differences = {one.contender: one for one in statistics.differences(values, [("b", "a"), ("c", "a")])}
    assert set(differences) == {"b"}  # c shares no seed with the reference
    assert differences["b"].interval.mean == pytest.approx(shift, abs=1e-9)
    assert differences["b"].counts == (shift != 0 and seeds >= 6)
    assert differences["b"].detectable is None
    assert (differences["b"].verdict == "equal in every seed") == (shift == 0)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seeds", [2, 3, 5])
def test_equal_differences_of_few_seeds_are_no_finding_nor_is_rounding(seeds: int) -> None:
    own = {seed: 0.525 - 0.05 * seed + 1e-14 * seed for seed in range(seeds)}
    base = {seed: 0.5 - 0.05 * seed for seed in range(seeds)}
    difference = statistics.difference("b", own, "a", base)
    assert difference is not None
    assert len(set(difference.per_seed.values())) > 1  # float dust
    assert (difference.p, difference.counts, difference.effect) == (2.0 ** (1 - seeds), False, None)
    assert statistics.paired_p([1e-17, -1e-17]) == 1.0


def test_without_noise_to_judge_by_nothing_is_claimed() -> None:
    difference = statistics.difference("b", {0: 0.9}, "a", {0: 0.1})
    assert difference is not None
    assert (difference.p, difference.detectable, difference.counts) == (1.0, None, False)


@pytest.mark.parametrize(("seeds", "comparisons"), [(2, 1), (3, 1), (3, 10), (8, 1), (8, 4)])
def test_the_smallest_detectable_effect_has_the_power_it_states(seeds: int, comparisons: int) -> None:
    """Draw samples with that very effect: four in five tests find it, at the level of Holm's first step."""
    data = np.random.default_rng(0).normal(0, 1, (20_000, seeds))
    effect = statistics.smallest_detectable((data[0] - data[0].mean()) / data[0].std(ddof=1), comparisons)
    assert effect is not None
    significant = stats.ttest_1samp(data + effect, 0.0, axis=1).pvalue < statistics.LEVEL / comparisons
    assert significant.mean() == pytest.approx(statistics.POWER, abs=0.012)


@pytest.mark.filterwarnings("error")
@given(st.integers(2, 200), st.integers(1, 100))
def test_fewer_seeds_and_more_comparisons_detect_less(seeds: int, comparisons: int) -> None:
    effect = statistics.detectable_effect(seeds, comparisons)
    assert statistics.detectable_effect(seeds + 1, comparisons) < effect < np.inf
    assert statistics.detectable_effect(seeds, comparisons + 1) > effect


def test_differences_of_a_table_are_judged_together() -> None:
    values = {name: dict(enumerate([0.5 + gain, 0.6 + gain, 0.75 + gain])) for name, gain in (("a", 0.0), ("b", 0.1))}
    values["b"][0] += 0.004
    alone = statistics.differences(values, [("b", "a")])[0]
    beside = statistics.differences(values | {"c": values["b"], "d": values["b"]}, [(name, "a") for name in "bcd"])[0]
    assert beside.adjusted == pytest.approx(3 * alone.adjusted)
    assert (alone.detectable or 0) < (beside.detectable or 0)


@given(st.lists(st.one_of(st.none(), st.integers(0, 4)), min_size=1, max_size=6))
def test_the_figures_of_a_run_follow_from_its_journal(first: list[int | None]) -> None:
    """`first[i]` is the attempt at which task i was solved; area is what is left of the budget then."""
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
    figures = outcome("a", FIVE, [*records, {"task": "t/other", "reward": 9.0, "verdict": {}}], tasks).figures
    left = [0.0 if solved is None else (5 - solved) / 5 for solved in first]
    assert figures["correct"] == pytest.approx(np.mean([solved is not None for solved in first]))
    assert figures["area"] == pytest.approx(np.mean(left))
    assert figures["middle"] == pytest.approx(statistics.interquartile_mean(left))
    assert figures["reward"] == 0.0
