"""Tables of a study on outcomes that are made up: what is corrected, and how it is said."""

import pytest

from kernel_gym.agents import protocol, tables
from kernel_gym.agents.comparison import FIGURES, RunOutcome

STUDY = protocol.parse(
    "mine",
    {
        "about": "",
        "question": "",
        "agents": ["rule", "random", "one", "two"],
        "reference": "rule",
        "learners": ["one", "two"],
        "heuristics": ["rule", "random"],
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
    alone = tables.gain(runs, "one", STUDY.heuristics)
    assert alone is not None
    assert rows[0][head.index("p (Holm)")] == f"{2 * alone.p:.3f}"
    (row,) = tables.gains_table(outcomes({name: AREAS[name] for name in ("rule", "one")}), STUDY)[1:2]
    assert row[head.index("p (Holm)")] == f"{alone.p:.3f}"
    assert float(row[head.index("detectable")]) < float(rows[0][head.index("detectable")])


@pytest.mark.parametrize(("seeds", "comparisons", "says"), [(3, 1, "3.3 times"), (3, 9, "9.8 times"), (1, 3, "single")])
def test_what_few_seeds_can_show_is_said(seeds: int, comparisons: int, says: str) -> None:
    assert says in tables.power(seeds, comparisons)
