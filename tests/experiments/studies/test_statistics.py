"""Statistics hold what they promise: on made-up numbers, on textbook cases and on simulated studies."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from kernel_gym.config import resolve
from kernel_gym.experiments import statistics
from kernel_gym.experiments.runs.figures import outcome
from kernel_gym.experiments.statistics import Cells

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


@given(PS)
def test_holm_never_lowers_keeps_order_and_stays_below_bonferroni(ps: list[float]) -> None:
    adjusted = statistics.holm(ps)
    assert all(p <= q <= min(1.0, len(ps) * p) + 1e-12 for p, q in zip(ps, adjusted, strict=True))
    order = np.argsort(ps, kind="stable")
    assert list(np.asarray(adjusted)[order]) == sorted(adjusted)


def test_holm_as_in_the_textbook() -> None:
    assert statistics.holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])


def crossed(rng: np.random.Generator, seeds: int, tasks: int, deviations: tuple[float, float, float]) -> Cells:
    """Cells with a zero mean: an effect of the seed, one of the task, and noise of the cell."""
    of_seeds, of_tasks, of_cells = deviations
    rows, columns = rng.normal(0, of_seeds, (seeds, 1)), rng.normal(0, of_tasks, (1, tasks))
    return np.asarray(rows + columns + rng.normal(0, of_cells, (seeds, tasks)))


#: Deviations of seeds, tasks and cells; and the most that an interval over seeds alone covers with 10 seeds.
EFFECTS = [
    ((0.0, 0.0, 0.4), 1.0),
    ((0.1, 0.1, 0.3), 0.97),
    ((0.3, 0.0, 0.1), 1.0),
    ((0.0, 0.3, 0.1), 0.4),
    ((0.05, 0.3, 0.3), 0.8),
]


@pytest.mark.parametrize(
    ("deviations", "most_over_seeds"),
    [pytest.param(*effect, marks=() if i in (0, 3) else pytest.mark.slow) for i, effect in enumerate(EFFECTS)],
)
def test_intervals_over_seeds_and_tasks_cover_and_those_over_seeds_do_not(
    deviations: tuple[float, float, float], most_over_seeds: float
) -> None:
    """10 seeds and 40 tasks, crossed random effects: 95% intervals hold the true mean in 91% to 99% of 400 studies."""
    rng, two_way, one_way = np.random.default_rng(0), 0, 0
    for _ in range(400):
        cells = crossed(rng, 10, 40, deviations)
        mean = statistics.crossed_mean(cells)
        assert mean is not None
        two_way += mean.interval.low <= 0 <= mean.interval.high
        one_way += abs(cells.mean()) <= stats.t.ppf(0.975, 9) * stats.sem(cells.mean(axis=1))
    assert 0.91 <= two_way / 400 <= 0.99
    assert one_way / 400 <= most_over_seeds


def test_the_bootstrap_has_the_variances_of_an_analysis_of_variance() -> None:
    cells = crossed(np.random.default_rng(3), 6, 30, (0.2, 0.3, 0.4))
    mean = statistics.crossed_mean(cells)
    assert mean is not None
    rows, columns = cells.mean(axis=1, keepdims=True), cells.mean(axis=0, keepdims=True)
    residuals = cells - rows - columns + cells.mean()
    assert mean.mean == pytest.approx(cells.mean())
    assert mean.by_seed == pytest.approx(rows.var(ddof=1) / 6, rel=0.1)
    assert mean.by_task == pytest.approx(columns.var(ddof=1) / 30, rel=0.1)
    assert mean.by_cell == pytest.approx((residuals**2).sum() / (5 * 29) / (6 * 30), rel=0.15)
    assert mean.error**2 == pytest.approx(mean.by_seed + mean.by_task - mean.by_cell)
    assert 5 <= mean.freedom <= 5 + 29 + 5 * 29
    assert statistics.crossed_mean(cells) == mean  # the same cells, the same interval


def test_cells_without_a_value_do_not_count() -> None:
    cells = crossed(np.random.default_rng(4), 5, 12, (0.2, 0.2, 0.2))
    padded = np.full((7, 14), np.nan)
    padded[:5, :12] = cells
    assert statistics.crossed_mean(padded) == statistics.crossed_mean(cells)
    cells[0, :6] = np.nan
    mean = statistics.crossed_mean(cells)
    assert mean is not None
    assert (mean.seeds, mean.tasks, mean.mean) == (5, 12, pytest.approx(np.nanmean(cells)))
    assert np.isfinite([mean.error, mean.freedom, mean.p]).all()
    assert statistics.crossed_mean(np.full((2, 2), np.nan)) is None
    assert statistics.crossed_mean(np.empty((0, 0))) is None


def test_with_one_task_the_seeds_alone_are_resampled() -> None:
    cells = np.random.default_rng(5).normal(0.3, 0.2, (8, 1))
    mean = statistics.crossed_mean(cells)
    assert mean is not None
    assert mean.freedom == pytest.approx(7)
    assert mean.p == pytest.approx(stats.ttest_1samp(cells[:, 0], 0).pvalue, rel=0.2)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("seeds", [1, 2, 3, 5, 6, 9])
def test_a_difference_that_all_cells_share_takes_six_seeds_to_count(seeds: int) -> None:
    noise = 1e-14 * np.arange(seeds)[:, None]
    shared = statistics.crossed_mean(np.full((seeds, 4), 0.25) + noise)
    assert shared is not None
    assert (shared.p < statistics.LEVEL) == (seeds >= 6)
    assert (shared.noisy, shared.detectable()) == (False, None)
    assert shared.interval.low == shared.interval.high
    equal = statistics.crossed_mean(np.zeros((seeds, 4)) + noise)
    assert equal is not None
    assert equal.p == 1.0


@pytest.mark.parametrize("comparisons", [1, 3])
def test_the_smallest_detectable_difference_has_the_power_it_states(comparisons: int) -> None:
    """Draw studies with that very difference: four in five find it, at the level of Holm's first step."""
    rng, deviations = np.random.default_rng(0), (0.1, 0.1, 0.3)
    studies = [statistics.crossed_mean(crossed(rng, 10, 40, deviations)) for _ in range(400)]
    true_error = np.sqrt(0.1**2 / 10 + 0.1**2 / 40 + 0.3**2 / 400)
    detectable = statistics.detectable_effect(12.6, comparisons) * true_error
    ps = [replace(study, mean=study.mean + detectable).p for study in studies if study]
    assert np.mean(np.asarray(ps) < statistics.LEVEL / comparisons) == pytest.approx(statistics.POWER, abs=0.07)


@pytest.mark.filterwarnings("error")
@settings(max_examples=40, deadline=None)
@given(st.integers(1, 200), st.integers(1, 100))
def test_less_freedom_and_more_comparisons_detect_less(freedom: int, comparisons: int) -> None:
    effect = statistics.detectable_effect(freedom, comparisons)
    assert statistics.detectable_effect(freedom + 1, comparisons) < effect < np.inf
    assert statistics.detectable_effect(freedom, comparisons + 1) > effect


def test_more_seeds_do_not_make_up_for_few_tasks() -> None:
    mean = statistics.crossed_mean(crossed(np.random.default_rng(6), 10, 40, (0.1, 0.2, 0.3)))
    assert mean is not None
    same, more, endless = (mean.with_seeds(seeds) for seeds in (10, 40, 10**6))
    assert same.error == pytest.approx(mean.error)
    assert mean.error > more.error > endless.error
    assert endless.error == pytest.approx(np.sqrt(mean.by_task - mean.by_cell), rel=0.01)


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
    result = outcome("a", FIVE, [*records, {"task": "t/other", "reward": 9.0, "verdict": {}}], tasks, {"t/0": 0.5})
    figures, reached = result.figures, result.tasks
    for task, attempt in zip(tasks, first, strict=True):
        expected = (None, None) if attempt is None else (attempt + 1, 1.0)
        assert (reached[task].solved_at, reached[task].best_us) == expected
    assert [reached[task].oracle_us for task in tasks] == [0.5, *[None] * (len(tasks) - 1)]
    left = [0.0 if solved is None else (5 - solved) / 5 for solved in first]
    assert figures["correct"] == pytest.approx(np.mean([solved is not None for solved in first]))
    assert figures["area"] == pytest.approx(np.mean(left))
    assert figures["middle"] == pytest.approx(statistics.interquartile_mean(left))
    assert figures["reward"] == 0.0
