"""Who beats whom: wins, shares over runs and tasks, and the arms that are pooled."""

import pytest

from kernel_gym.experiments.runs.figures import RunOutcome, TaskOutcome
from kernel_gym.experiments.studies import study_definition
from kernel_gym.experiments.studies.ranking import Ranking, win


def run(agent: str, seed: int, **best_us: float | None) -> RunOutcome:
    tasks = {f"level1/{task}": TaskOutcome(None if us is None else 1, us) for task, us in best_us.items()}
    return RunOutcome(agent, seed, {}, (0.0,), tasks)


RUNS = [
    run("weak/fast", 0, a=10.0, b=20.0),
    run("weak/slow", 0, a=20.0, b=20.1),
    run("weak/none", 0, a=None, b=None),
    run("strong/fast", 0, a=10.0, b=30.0),
    run("strong/slow", 0, a=20.0, b=20.0),
    run("strong/none", 0, a=None, b=5.0),
    run("long/slow", 0, a=1.0, b=1.0),
]


@pytest.mark.parametrize(
    ("own", "other", "expected"),
    [(1.0, 2.0, 1.0), (2.0, 1.0, 0.0), (1.0, 1.005, 0.5), (None, None, 0.5), (9.0, None, 1.0)],
)
def test_a_win_is_a_faster_kernel_or_the_only_one(own: float | None, other: float | None, expected: float) -> None:
    assert win(TaskOutcome(1, own), TaskOutcome(1, other)) == expected


def test_shares_are_over_all_others_runs_and_tasks_of_the_pooled_arms() -> None:
    ranking = Ranking(RUNS, ["weak", "strong"])
    # fast: beats slow in 1, 0.5, 1, 0 and none in 1, 1, 1, 0 of the four cells.
    assert ranking.means["fast"].mean == pytest.approx((2.5 + 3) / 8)
    assert ranking.means["slow"].mean == pytest.approx((1.5 + 3) / 8)
    assert ranking.means["none"].mean == pytest.approx((1 + 1) / 8)
    assert ranking.agents == ["fast", "slow", "none"]
    assert [row[1] for row in ranking.standings()[1:]] == ranking.agents
    assert ranking.standings()[1][3] == "0.75", "beaten only once, by slow and none at b"


def test_pairs_show_how_often_the_row_beats_the_column() -> None:
    table = Ranking(RUNS, ["weak", "strong"]).pairs()
    assert table[0] == ["beats", "fast", "slow", "none"]
    assert table[1][1] == ""
    assert table[1][2].startswith("0.62")
    assert table[2][1].startswith("0.38")


def test_categories_have_columns_with_their_numbers_of_tasks() -> None:
    table = Ranking(RUNS, ["weak"]).by_category({"level1/a": "math", "level1/b": "loss"})
    assert table[0] == ["beats another", "loss (1)", "math (1)"]
    assert table[1][0] == "fast"
    assert table[1][2].startswith("1.00")


def test_a_single_run_has_no_interval_and_no_mark() -> None:
    ranking = Ranking(RUNS, ["weak"])
    assert [row[2] for row in ranking.standings()[1:]] == ["0.88", "0.62", "0.00"]
    assert ranking.pairs()[1:] == [
        ["fast", "", "0.75", "1.00"],
        ["slow", "0.25", "", "1.00"],
        ["none", "0.00", "0.00", ""],
    ]
    assert ranking.by_category({"level1/a": "math", "level1/b": "loss"})[1] == ["fast", "0.75", "1.00"]


def test_several_runs_have_intervals_and_marks() -> None:
    best_us, tasks = {"x": 9.0, "y": 20.0}, [f"task_{number}" for number in range(6)]
    runs = [
        run(f"weak/{agent}", seed, **dict.fromkeys(tasks, us)) for seed in range(6) for agent, us in best_us.items()
    ]
    runs[0] = run("weak/x", 0, **dict.fromkeys(tasks, 9.0) | {"task_0": 20.0})
    ranking = Ranking(runs, ["weak"])
    assert ranking.standings()[1][2].startswith("0.99 [0.9")
    assert ranking.pairs()[1][2] == "0.99+"
    assert ranking.pairs()[2][1] == "0.01-"


def test_an_arm_that_does_not_exist_cannot_be_ranked() -> None:
    data = study_definition.load("arena").model_dump() | {"rankings": {"nowhere": ("nowhere",)}}
    with pytest.raises(study_definition.ConfigError, match="rankings are over arms of the study, not 'nowhere'"):
        study_definition.parse("arena", data)


def test_the_arena_has_every_published_agent_and_its_scaled_constants() -> None:
    shards = study_definition.shards(study_definition.load("arena"), "full")
    by_label = {shard.label: shard.config for shard in shards}
    assert by_label["middle/islands/seed-0"].agent_options == {"islands": 2, "interval": 10}
    assert by_label["long/islands/seed-0"].agent_options == {"islands": 5, "interval": 50}
    assert by_label["long/puct/seed-0"].budget == 300 == 10 * by_label["middle/puct/seed-0"].budget
    assert {config.env.drafts for config in by_label.values() if config.agent == "forecaster"} == {4}
    assert {config.env.drafts for config in by_label.values() if config.agent != "forecaster"} == {1}
    assert {config.env.start_points for config in by_label.values()} == {"all"}
    own = [config for label, config in by_label.items() if label.startswith("own/")]
    assert len({config.agent for config in own}) == 12
    assert all(config.agent_options["drafting"] == "own" and config.env.repair for config in own)
