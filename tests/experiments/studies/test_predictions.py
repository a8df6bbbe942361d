"""Predictions beside published figures: the mixture over authors, its interval, hit or miss."""

import numpy as np
import pytest
from scipy import stats

from kernel_gym.authors.apprentice.calibration.targets import load_targets
from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome
from kernel_gym.experiments.studies import study_definition
from kernel_gym.experiments.studies.predictions import prediction_rows, predictions_summary, predictions_table
from kernel_gym.experiments.studies.study_definition import Prediction


def run(agent: str, seed: int, solved: int, tasks: int = 100, at: int = 1, suite: str = "level1") -> RunOutcome:
    """A run that solved some of its tasks at one attempt, each of them made twice as fast later."""
    reached = {f"{suite}/{n}": TaskOutcome(at, 5.0, None, 10.0) if n < solved else TaskOutcome() for n in range(tasks)}
    return RunOutcome(agent, seed, {}, (0.0,) * 30, reached)


def predicted(published: float, *runs: RunOutcome, **fields: object) -> tuple[float, float, bool]:
    prediction = Prediction.model_validate({"figure": "f", "published": published, "tasks": 100} | fields)
    (row,) = prediction_rows([prediction], runs)
    return row.low, row.high, row.hit


def test_one_author_predicts_a_binomial_count() -> None:
    low, high, hit = predicted(0.6, run("a/value", 0, 50), of=["a/value"])
    assert (low, high) == tuple(stats.binom.ppf([0.025, 0.975], 100, 0.5) / 100)
    assert hit
    assert not predicted(0.61, run("a/value", 0, 50), of=["a/value"])[2]


def test_authors_that_differ_widen_the_interval() -> None:
    low, high, _ = predicted(0.5, run("a/value", 0, 20), run("a/value", 1, 80), of=["a/value"])
    drawn = np.random.default_rng(0).binomial(100, [[0.2], [0.8]], (2, 20_000)) / 100
    assert [low, high] == pytest.approx(np.quantile(drawn, [0.025, 0.975]), abs=0.011)


def test_a_difference_is_taken_author_by_author() -> None:
    runs = [run(arm, seed, solved) for seed, solved in ((0, 20), (1, 70)) for arm in ("a/value",)]
    runs += [run("b/value", 0, 10), run("b/value", 1, 60), run("b/value", 2, 99)]
    low, high, hit = predicted(0.10, *runs, of=["a/value"], minus="b/value")
    assert hit
    assert -0.1 < low < 0.10 < high < 0.3
    rng = np.random.default_rng(0)
    drawn = [rng.binomial(100, a, 4000) - rng.binomial(100, b, 4000) for a, b in ((0.2, 0.1), (0.7, 0.6))]
    assert np.quantile(np.concatenate(drawn) / 100, [0.025, 0.975]) == pytest.approx([low, high], abs=0.011)
    prediction = Prediction(figure="f", published=0.1, tasks=100, of=("a/value",), minus="b/value")
    (row,) = prediction_rows([prediction], runs)
    assert row.values == pytest.approx((0.1, 0.1))
    assert row.agreeing == 2


def test_only_attempts_and_tasks_that_count_do() -> None:
    early, late = run("a/value", 0, 100, at=17), run("a/value", 0, 100, at=18)
    assert predicted(1.0, early, of=["a/value"], after=17)[2]
    assert not predicted(1.0, late, of=["a/value"], after=17)[2]
    both = RunOutcome("a/value", 0, {}, (0.0,) * 30, early.tasks | run("", 0, 0, suite="level2").tasks)
    assert predicted(0.0, both, of=["a/value"], suite="level2/")[:2] == (0.0, 0.0)


def test_the_median_speedup_is_over_all_named_runs() -> None:
    runs = run("a/value", 0, 30), run("b/value", 0, 30, suite="level2")
    fields = {"of": ["a/value", "b/value"], "measure": "speedup", "tasks": 20}
    assert predicted(2.0, *runs, **fields) == (2.0, 2.0, True)
    assert not predicted(3.6, *runs, **fields)[2]


def test_predictions_without_runs_are_left_out_and_the_table_says_hit_or_miss() -> None:
    study = study_definition.load("predictions")
    rows = prediction_rows(study.predictions, [run("level1/value", 0, 89), run("lambda-2/value", 0, 10)])
    assert [row.prediction.published for row in rows] == [0.90, 0.67]
    table = predictions_table(rows)
    assert [line[-1] for line in table[1:]] == ["hit", "miss"]
    assert table[1][1] == "90%"
    assert predictions_summary(rows).startswith("1 of 2 published figures")


def test_a_kernel_that_compiled_counts_where_that_is_the_measure() -> None:
    tasks = {f"level1/{n}": TaskOutcome(compiled_at=4) if n < 50 else TaskOutcome() for n in range(100)}
    reached = RunOutcome("a/value", 0, {}, (0.0,) * 30, tasks)
    assert predicted(0.5, reached, of=["a/value"], measure="compiled")[2]
    assert predicted(0.0, reached, of=["a/value"], measure="compiled", after=3)[:2] == (0.0, 0.0)
    assert predicted(0.0, reached, of=["a/value"])[:2] == (0.0, 0.0)


def test_the_summary_says_how_many_authors_there_are() -> None:
    runs = [run("level1/value", 0, 89), run("level1/value", 1, 80), run("lambda-2/value", 0, 10)]
    rows = prediction_rows(study_definition.load("predictions").predictions, runs)
    assert "what 1 to 2 authors" in predictions_summary(rows)
    assert [line[4] for line in predictions_table(rows)] == ["authors", "2", "1"]


def test_the_memoryless_study_has_the_targets_of_the_fit() -> None:
    agents = {"pass@k": "pass@k", "repair": "refinement"}
    fitted = {
        (f"{figure.suite}/{agents[figure.protocol]}", figure.attempts, figure.gate, figure.share)
        for figure in load_targets("gpt-5.2").figures
    }
    targets = study_definition.load("memoryless").targets
    assert {(row.of[0], row.after or 30, row.measure, row.published) for row in targets} == fitted
    assert len(targets) == 16


def test_every_predicted_contender_is_one_of_the_study() -> None:
    definition = study_definition.load("predictions")
    contenders = {shard.contender for shard in study_definition.shards(definition, "full")}
    named = {name for row in definition.predictions for name in (*row.of, row.minus) if name}
    assert named <= contenders
    page = study_definition.shards(definition, "quick")
    assert {shard.config.env.author_options["profile"] for shard in page} >= {"calibrated~0", "weaker-2~1"}
    assert all(shard.config.agent_options == {"rule": "published"} for shard in page if shard.agent == "value")
