"""Tables of a study on outcomes that are made up: what is corrected, and how it is said."""

from collections.abc import Sequence

import pytest

from kernel_gym.experiments.runs.figures import FIGURES, Over, RunOutcome, comparable
from kernel_gym.experiments.studies import study_definition, tables
from kernel_gym.experiments.studies.gains import closed_gap, gain

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


def outcomes(areas: dict[str, tuple[float, ...]]) -> list[RunOutcome]:
    """Runs whose figures are all their areas, one a seed."""
    return [
        RunOutcome(agent, seed, dict.fromkeys(FIGURES, area), (area,))
        for agent, own in areas.items()
        for seed, area in enumerate(own)
    ]


def test_gains_are_over_the_best_heuristic_and_corrected_together() -> None:
    runs = outcomes(AREAS)
    head, *rows = tables.gains_table(runs, STUDY)
    assert [row[:2] for row in rows] == [
        [f"{name} - rule", figure] for figure in tables.COMPARED for name in STUDY.learners
    ]
    alone = gain(runs, "one", STUDY.heuristics)
    assert alone is not None
    assert rows[0][head.index("p (Holm)")] == f"{2 * alone.p:.3f}"
    (row,) = tables.gains_table(outcomes({name: AREAS[name] for name in ("rule", "one")}), STUDY)[1:2]
    assert row[head.index("p (Holm)")] == f"{alone.p:.3f}"
    assert float(row[head.index("detectable")]) < float(rows[0][head.index("detectable")])


@pytest.mark.parametrize(("seeds", "comparisons", "says"), [(3, 1, "3.3 times"), (3, 9, "9.8 times"), (1, 3, "single")])
def test_what_few_seeds_can_show_is_said(seeds: int, comparisons: int, says: str) -> None:
    assert says in tables.power(seeds, comparisons)


def test_the_share_of_the_gap_is_stated_seed_by_seed() -> None:
    runs = outcomes(AREAS | {"seer": (0.70, 0.82, 0.79)})
    gap = closed_gap(runs, "one", STUDY.heuristics, "seer")
    assert gap is not None
    assert (gap.heuristic, gap.without) == ("rule", [])
    assert list(gap.per_seed.values()) == pytest.approx([0.5, 0.5, 1.0])
    assert gap.share is not None
    assert gap.share.mean == pytest.approx(2 / 3)
    assert gap.gap.mean == pytest.approx((0.2 + 0.22 + 0.09) / 3)
    rows = tables.gaps_table(runs, STUDY)[1:]
    assert rows[0][:2] == ["one", "area"]
    assert rows[0][-2:] == ["+67% [+50%, +100%]", "+50%, +50%, +100%"]
    assert rows[1][-1] == "+0%, +9%, -11%"


def test_where_the_yardstick_is_not_above_there_is_no_share() -> None:
    runs = outcomes(AREAS | {"seer": (0.70, 0.60, 0.79)})
    rows = tables.gaps_table(runs, STUDY)[1:]
    assert rows[0][-2:] == ["seer is not above rule in seed 1", "+50%, no gap, +100%"]


def test_a_yardstick_that_is_not_complete_is_left_out_and_never_a_contender() -> None:
    assert len(tables.gaps_table(outcomes(AREAS | {"seer": (0.70, 0.82)}), STUDY)) == 1
    assert len(tables.gaps_table(outcomes(AREAS), STUDY)) == 1
    assert STUDY.compared([*AREAS, "seer"]) == STUDY.compared(list(AREAS))
    whole = tables.compared_tables(outcomes(AREAS | {"seer": (0.70, 0.82, 0.79)}), [], STUDY)
    assert sum(table[0][0].startswith("share of the gap") for table in whole) == 1


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


def test_only_runs_on_the_same_tasks_stand_together() -> None:
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
