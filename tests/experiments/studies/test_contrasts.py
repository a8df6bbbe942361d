"""Differences between contenders on made-up runs: what is paired, corrected and concluded, branch by branch."""

from dataclasses import replace
from math import exp, log
from typing import Any

import numpy as np
import pytest

from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome, TaskOutcome
from kernel_gym.experiments.statistics import CrossedMean, Interval
from kernel_gym.experiments.studies import study_definition
from kernel_gym.experiments.studies.contrasts import MEASURES, Difference, difference, judged

BUDGET = 10


def run(agent: str, seed: int, tasks: dict[str, TaskOutcome]) -> RunOutcome:
    """A run of which only what was reached by task matters."""
    return RunOutcome(agent, seed, dict.fromkeys(FIGURES, 0.0), (0.0,) * BUDGET, tasks)


def solved(*attempts: int | None) -> dict[str, TaskOutcome]:
    """Tasks that are solved at these attempts."""
    return {f"t/{i}": TaskOutcome(at, None if at is None else 2.0) for i, at in enumerate(attempts)}


def studied(gain: float, seeds: int = 10, tasks: int = 40, luck: float = 2.0) -> list[RunOutcome]:
    """Runs of two agents; `new` solves each task earlier by about `gain` attempts."""
    rng = np.random.default_rng(0)
    runs = []
    for seed in range(seeds):
        attempts = rng.integers(4, 8, tasks)
        earlier = np.clip(attempts - gain + rng.normal(0, luck, tasks), 1, BUDGET).round().astype(int)
        runs += [run("old", seed, solved(*map(int, attempts))), run("new", seed, solved(*map(int, earlier)))]
    return runs


def measured(low: float, high: float, **changes: Any) -> Difference:
    """A difference with this interval, p as it would be with that interval, and Holm over one contrast."""
    mean = (low + high) / 2
    p = 0.01 if low > 0 or high < 0 else 0.5
    estimate = CrossedMean(mean, 10, 40, 0.01, 0.01, 0.001)
    row = Difference("new", "old", "area", {}, Interval(mean, low, high), p, p, 0.2, 0.05, 1, estimate, 400, 400)
    return replace(row, **changes)


@pytest.mark.parametrize(
    ("row", "says"),
    [
        (measured(0.02, 0.30), "better"),
        (measured(-0.30, -0.02), "worse"),
        (measured(-0.02, 0.04), "equivalent within 0.05"),
        (measured(0.01, 0.04), "better, but equivalent within 0.05"),
        (measured(-0.04, -0.01), "worse, but equivalent within 0.05"),
        (measured(-0.02, 0.06), "undecided; 0.2 could have been detected"),
        (measured(-0.10, 0.78), "undecided; 0.2 could have been detected"),
        (
            measured(0.02, 0.66, adjusted=0.09),
            "undecided (its interval excludes zero, but p after Holm is not below 0.05); 0.2 could have been detected",
        ),
        (measured(0.01, 0.04, adjusted=0.09), "equivalent within 0.05"),
        (
            measured(0.3, 0.3, estimate=CrossedMean(0.3, 1, 40, 0, 0, 0), adjusted=1.0),
            "undecided: one seed has no interval",
        ),
        (measured(0.0, 0.0, p=1.0, adjusted=1.0), "equal in every seed and task"),
        (
            measured(1.0, 1.0, adjusted=0.25),
            "undecided: all cells differ by the same, so the noise is unknown",
        ),
        (measured(1.0, 1.0, adjusted=0.03), "better"),
        (measured(-0.01, 0.08, measure="speedup", margin=log(1.1)), "equivalent within 1.1x"),
        (measured(-0.01, 0.12, measure="speedup", margin=log(1.1)), "undecided; 1.22x could have been detected"),
    ],
)
def test_a_conclusion_is_true_of_its_interval(row: Difference, says: str) -> None:
    assert row.conclusion == says


def test_no_conclusion_calls_a_difference_nothing() -> None:
    """Whatever the interval: equivalence is said only of one within the margin, a side only of one without zero."""
    rng = np.random.default_rng(0)
    for low, width in zip(rng.uniform(-0.4, 0.4, 500), rng.uniform(0.001, 0.4, 500), strict=True):
        row = measured(low, low + width)
        assert ("equivalent" in row.conclusion) == (low > -0.05 and low + width < 0.05)
        assert row.conclusion.startswith("better") == (low > 0)
        assert row.conclusion.startswith("worse") == (low + width < 0)
        assert row.conclusion.startswith("undecided") == (low <= 0 <= low + width and "equiv" not in row.conclusion)


def test_conclusions_of_simulated_studies() -> None:
    contrast = ("new", "old", "area")
    conclusions = {gain: judged(studied(gain), [contrast])[0].conclusion for gain in (0.0, 2.0, -2.0)}
    assert conclusions == {0.0: "equivalent within 0.05", 2.0: "better", -2.0: "worse"}
    (few,) = judged(studied(1.0, seeds=2, tasks=2), [contrast])
    assert few.conclusion.startswith("undecided; ")
    (strict,) = judged(studied(0.0), [contrast], {"area": 0.001})
    assert strict.conclusion.startswith("undecided; ")
    assert str(strict).startswith("new - old in area: ")


def test_holm_counts_the_contrasts_that_were_named_and_no_others() -> None:
    runs = studied(0.6, seeds=3, tasks=8)
    named = [("new", "old", "area"), ("new", "old", "correct"), ("new", "missing", "area")]
    (alone,), (area, correct) = judged(runs, named[:1]), judged(runs, named)
    assert alone.adjusted == alone.p
    assert area.adjusted == pytest.approx(min(1.0, 3 * alone.p))
    assert (area.detectable or 0) > (alone.detectable or 0)
    assert correct.measure == "correct"
    described = difference(runs, named[0])
    assert described is not None
    assert described.adjusted is None


def test_seeds_and_tasks_that_only_one_has_do_not_count() -> None:
    runs = [
        run("new", 0, solved(1, 6)),
        run("old", 0, solved(2, None) | {"t/9": TaskOutcome(1)}),
        run("new", 1, solved(1, 1)),
    ]
    row = difference(runs, ("new", "old", "area"))
    assert row is not None
    assert row.per_seed == {"0": pytest.approx((0.1 + 0.5) / 2)}
    assert (row.cells, row.estimate.tasks, row.estimate.seeds) == (2, 2, 1)
    assert row.favourable == "1 of 1"
    assert difference(runs, ("new", "nobody", "area")) is None


def test_a_slow_first_draft_earns_nothing_and_only_tasks_that_both_solved_count() -> None:
    """Speedups compare best latencies; the agents' first drafts and the tasks that one solved alone are out."""
    latencies = {"new": (2.0, 3.0, None, 9.0), "old": (4.0, 6.0, 5.0, None)}
    runs = [
        run(agent, seed, {f"t/{i}": TaskOutcome(None if us is None else 1, us) for i, us in enumerate(own)})
        for agent, own in latencies.items()
        for seed in range(2)
    ]
    row = difference(runs, ("new", "old", "speedup"))
    assert row is not None
    assert exp(row.interval.mean) == pytest.approx(2.0)
    assert (row.cells, row.cells_in_all, row.estimate.tasks) == (4, 8, 2)
    assert row.shown == "2x [2x, 2x]"


def test_arms_take_the_place_of_seeds() -> None:
    runs = [
        run(f"{arm}/{agent}", seed, solved(*(at + seed for at in attempts)))
        for arm, gain in (("first", 0), ("second", 2))
        for agent, attempts in (("new", (3 - gain, 4 - gain)), ("old", (3, 4)))
        for seed in range(3)
    ]
    row = difference(runs, ("*/new", "*/old", "area"))
    assert row is not None
    assert row.per_seed == {"first": pytest.approx(0.0), "second": pytest.approx(0.2)}
    assert (row.estimate.seeds, row.estimate.tasks, row.favourable) == (2, 2, "1 of 2")


#: Studies that ask one question of each of many contenders: a part of the rule left out, a published policy.
ONE_EACH = {"ablation", "arena"}
#: Studies that only describe: constants before the runs, figures that authors were fitted to.
DESCRIPTIVE = {"memoryless", "tuning"}


@pytest.mark.parametrize("name", study_definition.names())
def test_every_study_names_at_most_three_contrasts_of_its_own_contenders(name: str) -> None:
    study = study_definition.load(name)
    contenders = {shard.contender for shard in study_definition.shards(study, "full")}
    anywhere = {f"*/{contender.rpartition('/')[2]}" for contender in contenders}
    contrasted = [contender for contender, _, _ in study.contrasts]
    assert len(contrasted) <= 3 or (name in ONE_EACH and len(set(contrasted)) == len(contrasted))
    assert bool(study.contrasts) == (name not in DESCRIPTIVE)
    for contender, reference, measure in study.contrasts:
        assert {contender, reference} <= contenders | anywhere
        assert study.yardstick not in (contender, reference)
        assert measure in MEASURES


def test_a_measure_that_does_not_exist_is_one_line() -> None:
    data = study_definition.load("main").model_dump()
    for wrong in ({"contrasts": [("value", "random", "luck")]}, {"margins": {"luck": 0.1}}):
        with pytest.raises(ConfigError, match="measures are area, correct, speedup, not 'luck'"):
            study_definition.parse("mine", data | wrong)
