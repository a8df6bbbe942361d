"""The sentence at the top of a report says no more than the intervals do."""

from collections.abc import Mapping, Sequence

import pytest

from kernel_gym.experiments.reports.answer import answer
from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome

BUDGET = 100


def runs(areas: Mapping[str, Sequence[float]]) -> list[RunOutcome]:
    """Return runs with these areas by agent, one seed after the other; both tasks have the same area."""
    return [
        RunOutcome(agent, seed, {"area": area, "correct": area}, (area,) * BUDGET, _tasks(area))
        for agent, seeds in areas.items()
        for seed, area in enumerate(seeds)
    ]


def _tasks(area: float) -> dict[str, TaskOutcome]:
    return dict.fromkeys(("t/0", "t/1"), TaskOutcome(1 + round((1 - area) * BUDGET)))


CLEAR = {
    "random": (0.30, 0.31, 0.29, 0.32, 0.30),
    "value": (0.60, 0.62, 0.59, 0.61, 0.62),
    "greedy": (0.45, 0.44, 0.46, 0.47, 0.44),
}


def test_a_clear_winner_is_named_with_its_lead_over_the_next() -> None:
    sentence = answer(runs(CLEAR))
    assert sentence.startswith("value is best: the area under its solve curve is 0.608, 0.156 [0.1")
    assert sentence.endswith("above greedy (100 attempts a task, 5 seeds).")


def test_the_order_in_which_agents_are_named_does_not_matter() -> None:
    assert answer(runs(dict(reversed(CLEAR.items())))) == answer(runs(CLEAR))


@pytest.mark.parametrize(
    ("areas", "beginning", "words"),
    [
        (
            {"random": (0.3, 0.5, 0.4), "value": (0.5, 0.3, 0.43)},
            "No contender is shown to be best: value has the largest area under its solve curve, 0.410",
            "its lead over random, 0.010 [-0.4",
        ),
        (
            {"value": CLEAR["value"], "close": (0.61, 0.60, 0.60, 0.60, 0.61), "random": CLEAR["random"]},
            "value is better than random; whether it differs from close is undecided",
            "its lead over close",
        ),
        ({"random": (0.2,), "value": (0.9,)}, "A single seed decides nothing", "value has the largest"),
        ({"value": (0.5, 0.7)}, "value solved 60% [50%, 70%] of the tasks", "2 seeds"),
        ({"random": (0.4, 0.4), "value": (0.4, 0.4)}, "No contender is shown to be best", "0.000 [0.000, 0.000]"),
    ],
)
def test_a_difference_that_is_not_shown_is_not_claimed(
    areas: Mapping[str, Sequence[float]], beginning: str, words: str
) -> None:
    sentence = answer(runs(areas))
    assert sentence.startswith(beginning)
    assert words in sentence
    assert "is best:" not in sentence


def test_three_seeds_that_differ_by_the_same_amount_tell_nothing_about_noise() -> None:
    sentence = answer(runs({"random": (0.2, 0.3, 0.4), "value": (0.5, 0.6, 0.7)}))
    assert sentence.startswith("No contender is shown to be best")
    assert "0.300 [0.300, 0.300], p 0.25 after Holm over all pairs, decides nothing" in sentence


def test_all_pairs_count_not_only_those_with_the_winner() -> None:
    """A lead that is beyond noise in a single comparison is not among fifteen others."""
    pair = {"value": (0.60, 0.66, 0.61, 0.67), "random": (0.56, 0.58, 0.58, 0.60)}
    assert "is best" in answer(runs(pair))
    crowd = {f"other{i}": tuple(0.2 + 0.01 * ((i + seed) % 3) for seed in range(4)) for i in range(5)}
    assert "whether it differs from random is undecided" in answer(runs(pair | crowd))


def test_a_yardstick_is_never_the_best() -> None:
    known = {"oracle": (0.9, 0.91, 0.92, 0.9, 0.91), **CLEAR}
    assert answer(runs(known), {"oracle"}) == answer(runs(CLEAR))


def test_contenders_without_a_seed_in_common_are_not_compared() -> None:
    apart = [*runs({"value": (0.5, 0.6)}), *(RunOutcome("late", seed, {"area": 0.1}, (0.1,)) for seed in (7, 8))]
    assert "unknown without a seed in common" in answer(apart)
