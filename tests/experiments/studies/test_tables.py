"""Tables of a study on outcomes that are made up: what is corrected, and how it is said."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from kernel_gym.experiments.runs.figures import FIGURES, Over, RunOutcome, TaskOutcome, comparable
from kernel_gym.experiments.studies import study_definition, tables
from kernel_gym.experiments.studies.contrasts import MEASURES, judged

STUDY = study_definition.parse(
    "mine",
    {
        "about": "",
        "question": "",
        "agents": ["rule", "random", "one", "two"],
        "reference": "rule",
        "learners": ["one", "two"],
        "heuristics": ["rule", "random"],
        "yardstick": "seer",
        "phases": ["level1 1"],
        "sizes": {"quick": {}},
    },
)
AREAS = {
    "rule": (0.50, 0.60, 0.70),
    "random": (0.30, 0.40, 0.45),
    "one": (0.60, 0.71, 0.79),
    "two": (0.50, 0.62, 0.69),
}


TASKS = 10


def outcomes(areas: dict[str, tuple[float, ...]]) -> list[RunOutcome]:
    """Runs whose figures are all their areas, one a seed; of ten tasks, the share `area` is solved at once."""
    return [
        RunOutcome(agent, seed, dict.fromkeys(FIGURES, area), (area,), _solved(round(area * TASKS)))
        for agent, own in areas.items()
        for seed, area in enumerate(own)
    ]


def _solved(count: int) -> dict[str, TaskOutcome]:
    return {f"t/{i}": TaskOutcome(1, 4.0, 2.0) if i < count else TaskOutcome() for i in range(TASKS)}


def test_gains_are_over_the_best_heuristic_and_not_tested() -> None:
    head, *rows = tables.gains_table(outcomes(AREAS), STUDY)
    assert head == ["difference from the best heuristic (not tested)", *MEASURES]
    assert [row[0] for row in rows] == ["one - rule", "two - rule"]
    assert rows[0][1].startswith("+0.100 [")
    assert rows[0][3].endswith(" (18 of 30 solved by both)")
    assert len(tables.gains_table(outcomes({"one": (0.5,)}), STUDY)) == 1  # no heuristic has a run


def test_contrasts_have_a_conclusion_and_other_differences_have_none() -> None:
    runs = outcomes(AREAS)
    head, row = tables.contrasts_table(judged(runs, [("one", "random", "area")]))
    cells = dict(zip(head, row, strict=True))
    assert cells["contrast"] == "one - random"
    assert cells["seeds in favour"] == "3 of 3"
    assert cells["difference [95% interval]"].startswith("+0.333 [")
    assert cells["conclusion"].startswith(("better", "undecided"))
    described = tables.differences_table(runs, [("one", "random"), ("one", "nobody")])
    assert [line[0] for line in described] == ["difference (not tested)", "one - random"]
    assert not any(
        word in cell for line in described for cell in line for word in ("better", "undecided", "equivalent")
    )


def test_the_difference_that_more_seeds_detect_is_stated_for_contrasts_with_noise() -> None:
    named = judged(outcomes(AREAS), [("one", "random", "area"), ("one", "one", "area")])
    head, row = tables.power_table(named)
    assert head == ["detectable with", "3 seeds", "5 seeds", "10 seeds", "20 seeds", "40 seeds"]
    sizes = [float(cell) for cell in row[1:]]
    assert sizes == sorted(sizes, reverse=True)
    assert sizes[0] == pytest.approx(named[0].detectable or 0, rel=0.01)


def test_regret_attempts_and_latencies_are_listed_by_agent() -> None:
    runs = outcomes(AREAS | {"seer": (0.7, 0.8, 0.8)})
    head, *rows = tables.standing_table(runs, "seer")
    by_agent = {row[0]: dict(zip(head, row, strict=True)) for row in rows}
    assert by_agent["rule"]["regret in area to seer"].startswith("+0.167 [")
    assert by_agent["seer"]["regret in area to seer"] == "-"
    assert by_agent["one"]["attempts to solve"].startswith("1.0 [")
    assert by_agent["one"]["to 50% of tasks"].startswith("1 [1, ")
    assert by_agent["random"]["to 50% of tasks"].startswith(">1 [")
    assert by_agent["one"]["oracle's latency / own"] == "0.50 [0.50, 0.50]"


def test_columns_without_data_are_left_out() -> None:
    runs = [
        replace(run, tasks={task: replace(own, oracle_us=None) for task, own in run.tasks.items()})
        for run in outcomes(AREAS)
    ]
    levels = [f"to {share}% of tasks" for share in (25, 50, 75)]
    assert tables.standing_table(runs)[0] == ["agent", "attempts to solve", *levels]
    assert tables.standing_table([replace(run, tasks={}) for run in runs]) == [[]]


def test_a_yardstick_is_never_a_contender() -> None:
    assert STUDY.compared([*AREAS, "seer"]) == STUDY.compared(list(AREAS))


def test_the_share_solved_is_stated_at_marks_within_the_budget() -> None:
    curves = {"rule": [(0.1, 0.2, 0.3), (0.3, 0.4, 0.5)], "one": [(0.5, 0.6, 0.7), (0.5, 0.8, 0.9)]}
    runs = [
        RunOutcome(agent, seed, dict.fromkeys(FIGURES, 0.0), curve)
        for agent, own in curves.items()
        for seed, curve in enumerate(own)
    ]
    head, rule, row = tables.marks_table(runs, (2, 17))
    assert head == ["correct after", "2 attempts"]
    assert (rule[0], rule[1][:4], row[0], row[1][:4]) == ("rule", "0.30", "one", "0.70")
    assert tables.marks_table(runs, (17,)) == [[]]
    marked = STUDY.model_copy(update={"marks": (2,)})
    assert ["correct after", "2 attempts"] in [table[0] for table in tables.compared_tables(runs, [], marked)]


def test_only_runs_on_the_same_tasks_are_in_one_table() -> None:
    by_name = {name: outcomes({name: (0.5,)})[0] for name in ("one/a", "one/b", "two/a", "three")}
    groups: list[tuple[str, ...]] = []

    def run(name: str, *tasks: str) -> tuple[tuple[str, ...], Over]:
        def over(some: Sequence[str]) -> RunOutcome:
            groups.append(tuple(some))
            return by_name[name]

        return tasks, over

    whole = comparable([run("one/a", "x/1", "y/1"), run("three", "y/1", "x/1")])
    assert {title: [one.agent for one in group] for title, group in whole.items()} == {
        title: ["one/a", "three"] for title in ("x", "y", "All tasks")
    }
    assert groups == [("x/1",), ("x/1",), ("y/1",), ("y/1",), ("x/1", "y/1"), ("y/1", "x/1")]
    apart = comparable([run("one/a", "x/1", "x/2"), run("one/b", "x/1", "x/2"), run("two/a", "x/3", "y/1")])
    assert {title: [one.agent for one in group] for title, group in apart.items()} == {
        "x: 2 tasks of one": ["one/a", "one/b"],
        "x: 1 task of two": ["two/a"],
        "y": ["two/a"],
    }
    assert len(comparable([run("three", "x/1"), run("three", "x/2")])) == 2  # none is lost, however they are called
