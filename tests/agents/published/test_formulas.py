"""On trees made by hand every published agent chooses what its formula says, with numbers computed by hand."""

from collections import Counter
from math import exp, log, sqrt
from typing import Any

import numpy as np
import pytest

from kernel_gym.agents.published import islands
from kernel_gym.agents.published.forecaster import ForecasterAgent, columns
from kernel_gym.agents.published.greedy import GreedyAgent
from kernel_gym.agents.published.islands import IslandsAgent
from kernel_gym.agents.published.judge import JudgeAgent
from kernel_gym.agents.published.map_elites import MapElitesAgent, cell
from kernel_gym.agents.published.max_value import MaxValueAgent
from kernel_gym.agents.published.one_shot import OneShotAgent
from kernel_gym.agents.published.pareto import ParetoAgent
from kernel_gym.agents.published.puct import PUCTAgent
from kernel_gym.agents.published.shinka import ShinkaAgent
from kernel_gym.agents.published.tree_agent import Tree, Visit
from kernel_gym.agents.published.uct import UCTAgent
from kernel_gym.agents.published.world_model import PRIOR, WorldModelAgent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.pool import Candidate
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible, Incorrect, Profile


def tree() -> Tree:
    """A draft of 100 us; from it 50 us and 80 us; from the 50 us one a failure and 60 us."""
    return Tree(
        [
            Visit(0, 1, 100.0, traits=(0, 0, 0)),
            Visit(1, 2, 50.0, bottleneck="mte2", traits=(1, 0, 0)),
            Visit(1, 3, 80.0, traits=(0, 0, 0)),
            Visit(2, 4, None, compiled=False),
            Visit(2, 5, 60.0, traits=(1, 0, 0)),
        ]
    )


def practice(id: int, similarity: float = 0.5, *bottlenecks: str) -> Candidate:
    return Candidate(MemoryItem(Kind.PRACTICE, f"p{id}", "text", bottlenecks=bottlenecks, id=id), similarity)


def trace(
    id: int, similarity: float = 0.5, task: str = "s/a", category: str = "math", feasible: bool = True
) -> Candidate:
    verdict = Feasible("ok", latency=1.0) if feasible else Incorrect("wrong")
    item = MemoryItem(Kind.TRACE, f"t{id}", "text", code="code", verdict=verdict, task=task, category=category, id=id)
    return Candidate(item, similarity)


def info(stage: Stage = Stage.REFINE, picked: tuple[int, ...] = (), start: int = 1, **more: Any) -> dict[str, Any]:
    known = {"task": "s/a", "category": "math", "stage": stage, "picked": picked, "start": start, "candidates": ()}
    return known | more


def attempt(
    reward: float, context: tuple[int, ...], stage: Stage = Stage.REFINE, task: str = "s/a", **more: Any
) -> Attempt:
    known: dict[str, Any] = {
        "category": "math",
        "index": 1,
        "start": 1 if stage is Stage.REFINE else None,
        "api_pages": (),
        "kernel": Kernel("x"),
        "verdict": Incorrect(""),
        "best_us": None,
        "produced": (),
    }
    return Attempt(task=task, stage=stage, context=context, reward=reward, **known | more)


def test_puct_scores() -> None:
    # Rewards 1, 2, 1.25 and 1.667; T = 4; ranks of 2, 5, 3, 1 are 0 to 3; the sum of 4..1 is 10; the spread is 1.
    scores = PUCTAgent().scores(tree(), [2, 5, 3, 1])
    assert scores == pytest.approx(
        {
            2: 100 / 60 + 0.4 * sqrt(5) / (1 + 2),  # its best child has 60 us; 2 tries
            5: 100 / 60 + 0.3 * sqrt(5),
            3: 1.25 + 0.2 * sqrt(5),
            1: 2.0 + 0.1 * sqrt(5) / (1 + 4),  # 2 tries of its own, 2 below
        }
    )
    assert PUCTAgent().choose_start(tree(), [2, 5, 3, 1]) == 5


def test_puct_keeps_the_two_best_children_of_a_kernel() -> None:
    grown = tree()
    grown.add(Visit(1, 6, 40.0))
    assert set(PUCTAgent().scores(grown, [6, 2, 5, 3, 1])) == {1, 2, 5, 6}
    assert set(PUCTAgent(buffer=2).scores(grown, [6, 2, 5, 3, 1])) == {6, 2}


def test_puct_counts_a_kernel_whose_children_all_failed_as_worthless() -> None:
    failed = Tree([Visit(0, 1, 100.0), Visit(0, 2, 90.0), Visit(2, 3, None)])
    scores = PUCTAgent().scores(failed, [2, 1])
    assert scores[2] == pytest.approx(0.0 + (100 / 90 - 1) * 2 / 3 * sqrt(2) / 2)


def test_uct_sums_guarded_rewards_along_the_lineage() -> None:
    # 1 -> 2 saves half, 1 -> 3 a fifth; 2 -> failure and 2 -> 60 us (slower) save nothing.
    assert UCTAgent.gains(tree()) == pytest.approx({1: 0.7, 2: 0.5, 3: 0.2, 5: 0.0})


def test_uct_descends_to_the_greatest_bound() -> None:
    # Root 1 has 2 tries, not fewer than 0.5 sqrt 5. N of 2 is 3, of 3 it is 1, of 1 it is 5.
    bounds = {2: 0.5 / 3 + sqrt(2) * sqrt(log(5) / 3), 3: 0.2 + sqrt(2) * sqrt(log(5))}
    assert bounds[3] > bounds[2]
    assert UCTAgent(width=0.5).choose_start(tree(), [2, 5, 3, 1]) == 3
    assert UCTAgent(width=0.5, c=0.0).choose_start(tree(), [2, 5, 3, 1]) == 3, "0.2 is more than 0.5 / 3"
    assert UCTAgent(width=1.5).choose_start(tree(), [2, 5, 3, 1]) == 1, "2 tries are fewer than 1.5 sqrt 5"


def test_uct_never_moves_to_a_kernel_that_is_slower_than_its_parent() -> None:
    slower = Tree([Visit(0, 1, 100.0), Visit(1, 2, 120.0)])
    assert UCTAgent(width=0.1).choose_start(slower, [1, 2]) == 1


def test_shinka_weights() -> None:
    # Speedups 2, 5/3, 5/4 and 1: the median is 35/24, the deviations 13/24, 5/24, 5/24, 11/24 have the median 1/3.
    weights = ShinkaAgent().weights(tree(), [2, 5, 3, 1])
    sigmoids = [1 / (1 + exp(-10 * (speedup - 35 / 24) / (1 / 3))) for speedup in (2, 5 / 3, 5 / 4, 1)]
    assert weights == pytest.approx([sigmoids[0] / 3, sigmoids[1], sigmoids[2], sigmoids[3] / 3])


def test_shinka_draws_from_the_island_whose_turn_it_is() -> None:
    # Attempts 0 to 3 refined; 2 was found by number 0, 3 by 1, 5 by 3. Number 4 is the turn of island 0: 1 and 2.
    drawn = {ShinkaAgent(seed).choose_start(tree(), [2, 5, 3, 1]) for seed in range(40)}
    assert drawn <= {1, 2}
    assert 2 in drawn


def test_shinka_shows_one_of_the_archive_and_one_of_the_best() -> None:
    offered = {0: trace(5), 1: trace(3), 2: practice(9), 3: trace(77, task="s/b")}
    picks = {ShinkaAgent(seed).pick(tree(), offered, info()) for seed in range(20)}
    assert picks == {0, 1}
    assert ShinkaAgent().pick(tree(), offered, info(picked=(3,))) == 0, "60 us is faster than 80 us"
    assert ShinkaAgent().pick(tree(), offered, info(picked=(3, 5))) is None


def test_islands_take_turns_and_the_best_migrate() -> None:
    apart, moved = IslandsAgent(islands=2, interval=50), IslandsAgent(islands=2, interval=1)
    assert apart.members(tree()) == [[1, 2], [1, 3, 5]]
    # After attempts 0 and 1 the best of each island moves: 2 to island 1, 3 to island 0; after 2 and 3 again 2 and 2.
    assert [set(island) for island in moved.members(tree())] == [{1, 2, 3}, {1, 3, 2, 5}]
    drawn = Counter(IslandsAgent(seed, islands=2).choose_start(tree(), [2, 5, 3, 1]) for seed in range(300))
    assert set(drawn) == {1, 2}, "the turn of island 0"


def test_islands_draw_a_parent_of_the_island_of_the_archive_or_by_fitness(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(islands, "ARCHIVE", 1)
    # Island 0 has 1 and 2, with speedups 1 and 2; the archive of one kernel is 2.
    drawn = Counter(IslandsAgent(seed, islands=2).choose_start(tree(), [2, 5, 3, 1]) for seed in range(2000))
    assert drawn[2] / 2000 == pytest.approx(0.2 / 2 + 0.7 + 0.1 * 2 / 3, abs=0.03)


def test_inspirations_are_the_best_one_of_the_top_then_neighbours_of_the_parent() -> None:
    # 20 drafts on the one island; the length of the source is 100 for each number, the lines are alike.
    grown = Tree([Visit(0, n, 1000.0 / n, traits=(100.0 * n, 5.0)) for n in range(1, 21)])
    offered = {n: trace(n) for n in range(1, 21)}
    seen: list[set[int | None]] = [set(), set(), set()]
    for seed in range(200):
        agent = IslandsAgent(seed, islands=1)
        for picks, shown in enumerate(((), (99,), (99, 98))):
            seen[picks].add(agent.pick(grown, offered, info(start=1, picked=shown)))
    assert seen[0] == {20}
    assert seen[1] == {20, 19}, "10% of 20 kernels"
    # A bin is 190 wide and the parent is in the first: kernels up to 3 bins of length from the least are near.
    assert seen[2] == {n for n in range(1, 21) if int((100 * n - 100) / 190) <= 2}


def test_the_first_inspiration_is_the_best_of_the_island() -> None:
    offered = {0: practice(9), 1: trace(2), 2: trace(1), 3: trace(3)}
    agent = IslandsAgent(islands=2)
    assert agent.pick(tree(), offered, info(start=2)) == 1
    assert agent.pick(tree(), {0: offered[0], 3: offered[3]}, info()) is None, "3 lives on the other island"
    assert agent.pick(tree(), offered, info(picked=(1, 2, 3, 4, 5))) is None


def test_map_elites_keeps_the_fastest_of_a_cell() -> None:
    agent = MapElitesAgent()
    assert agent.elites(tree(), [2, 5, 3, 1]) == {(1, 0, 0): 2, (0, 0, 0): 3}
    fitness = [agent.fitness(tree(), visit) for visit in tree().visits]
    assert fitness == pytest.approx([0.75, 1.0, 0.5 + 0.25 * 1.25, 0.0, 0.5 + 0.25 * 100 / 60])
    assert agent.fitness(tree(), Visit(1, 9, None, compiled=True)) == 0.1
    drawn = Counter(MapElitesAgent(seed).choose_start(tree(), [2, 5, 3, 1]) for seed in range(2000))
    # Fitness 1 and 0.8125; curiosity 1/3 and 1, because 2 has two tries.
    share = 0.3 / 2 + 0.4 * 1.0 / 1.8125 + 0.3 * (1 / 3) / (4 / 3)
    assert drawn[2] / 2000 == pytest.approx(share, abs=0.04)


def test_cells_are_read_off_source_and_profile() -> None:
    source = "pipe.InitBuffer(a);\n" * 3 + "AscendC::Add(x);\nAscendC::Exp(y);\nq.EnQue(x);\nq.DeQue();\n"
    assert cell(source) == (1, 0, 0)
    assert cell(source, "mte2") == (2, 0, 0)
    assert cell(source + "AscendC::A(); AscendC::B(); q.EnQue(); q.EnQue(); q.DeQue();") == (1, 1, 1)


def test_pareto_draws_by_the_number_of_fronts_without_the_dominated() -> None:
    agent = ParetoAgent()
    for task, item, reward in (
        ("a", 1, 0.5),
        ("b", 1, 0.5),
        ("c", 1, 0.1),
        ("c", 2, 0.9),
        ("a", 3, 0.5),  # best at a, where 1 is too: dominated
        ("b", 4, 0.2),
    ):
        agent.learn(attempt(reward, (item,), task=task))
    assert agent.front_counts("refine") == {1: 2, 2: 1}
    assert agent.front_counts("draft") == {}
    offered = {0: practice(4), 1: practice(1), 2: practice(2)}
    drawn = Counter(agent.pick(Tree(), offered, info()) for _ in range(900))
    assert drawn[1] / 900 == pytest.approx(2 / 3, abs=0.05)
    assert drawn[0] == 0


def test_judge_goes_on_from_the_last_kernel_and_shows_one_practice_against_its_bottleneck() -> None:
    agent, last = JudgeAgent(), tree()
    assert agent.choose_start(last, [2, 5, 3, 1]) == 5, "slower than 2, but the last"
    offered = {0: practice(7, 0.9), 1: practice(8, 0.2, "mte2"), 2: practice(9, 0.3, "vector", "mte2")}
    assert agent.pick(last, offered, info(start=2)) == 2
    assert agent.pick(last, offered, info(start=2, picked=(9,))) is None


def test_judge_shows_a_failed_attempt_alone() -> None:
    failed = Tree([*tree().visits, Visit(5, 6, None)])
    offered = {0: practice(8, 0.9, "mte2"), 1: trace(6, 0.1, feasible=False)}
    assert JudgeAgent().choose_start(failed, [2, 5, 3, 1]) == 5
    assert JudgeAgent().pick(failed, offered, info(start=2)) == 1
    drafting = Tree([Visit(0, 6, None)])
    assert JudgeAgent().pick_for_draft(drafting, offered, info(Stage.DRAFT, start=0)) == 1
    assert JudgeAgent().pick_for_draft(drafting, offered, info(Stage.DRAFT, start=6)) is None, "it is being mended"


def test_greedy_starts_from_the_incumbent_and_moves_on_after_ten_failures() -> None:
    agent, search = GreedyAgent(), tree()
    assert agent.choose_start(search, [2, 5, 3, 1]) == 2
    for _ in range(8):
        search.add(Visit(2, 4, None))
    assert search.stale == 11
    assert agent.choose_start(search, [2, 5, 3, 1]) == 5
    search.add(Visit(5, 8, 40.0))
    assert agent.choose_start(search, [8, 2, 5, 3, 1]) == 8


def test_greedy_shows_the_last_attempts_and_the_practices_of_its_tier() -> None:
    offered = {0: practice(20, 0.9, "vector"), 1: practice(21, 0.1, "mte2"), 2: trace(3), 3: trace(5)}
    agent = GreedyAgent()
    assert agent.pick(tree(), offered, info()) == 3, "the newest"
    assert agent.pick(tree(), offered, info(picked=(5, 3))) == 1, "3 failures of 10: the second tier"
    stale = Tree([*tree().visits, *[Visit(2, 4, None)] * 3])
    assert agent.pick(stale, offered, info(picked=(5, 3))) == 0, "6 failures of 10: the third tier"


def test_one_shot_shows_one_verified_example_of_the_category() -> None:
    offered = {
        0: trace(1, 0.9, task="s/b", category="loss"),
        1: trace(2, 0.8, task="s/c", feasible=False),
        2: trace(3, 0.3, task="s/d"),
        3: trace(4, 0.2, task="s/e"),
        4: trace(5, 0.95),
    }
    assert OneShotAgent().pick(Tree(), offered, info()) == 2
    assert OneShotAgent().pick_for_draft(Tree(), offered, info(Stage.DRAFT, picked=(3,))) is None


def test_max_value_learns_the_gain_over_the_best_so_far() -> None:
    agent = MaxValueAgent(alpha=0.5)
    for reward in (-1.0, 0.6, -1.0):
        agent.learn(attempt(reward, (4,)))
    assert agent.value(Stage.REFINE, 4) == pytest.approx(0.15), "0, then 0.3, then half of it: failures cost nothing"
    agent.learn(attempt(-1.0, (4,), Stage.DRAFT))
    assert agent.value(Stage.DRAFT, 4) == -0.5


def test_world_model_predicts_from_start_point_and_practice() -> None:
    agent, known = WorldModelAgent(), tree()
    agent.known = {7: ("mte2",), 8: ()}
    # Kernel 2 is the best, has 2 tries of which 1 failed, and its bottleneck is mte2.
    assert agent.features(known, 2, 7).tolist() == pytest.approx([1, 0, log(3), 0.5, 1, 0, 0])
    assert agent.predict(known, 2, 7) == pytest.approx(PRIOR[0] - 0.1 * log(3) - 0.15 + 0.2)
    assert agent.predict(known, 3, 8) == pytest.approx(PRIOR[0] + 0.5 * log(50 / 80))
    assert agent.choose_start(known, [2, 5, 3, 1]) == 2
    assert agent.pick(known, {0: practice(8, 0.9), 1: practice(7, 0.1, "mte2")}, info(start=2)) == 1


def test_world_model_abandons_a_kernel_after_five_rounds_without_gain() -> None:
    agent, search = WorldModelAgent(), tree()
    search.add(Visit(2, 4, None))
    search.add(Visit(2, 4, None))
    assert agent.abandoned(search) == set(), "4 rounds"
    search.add(Visit(2, 4, None))
    assert agent.abandoned(search) == {2}
    assert agent.choose_start(search, [2, 5, 3, 1]) == 5


def test_world_model_learns_one_step_of_bayesian_regression() -> None:
    agent = WorldModelAgent()
    agent.trees["s/a"] = tree()
    row = agent.features(tree(), 1, 0)
    before = np.asarray(PRIOR)
    agent.learn(attempt(0.8, ()))
    gain = 0.1 * row / (0.25 + 0.1 * row @ row)  # Kalman's gain for prior variance 0.1 and noise 0.25
    assert agent.weights == pytest.approx(before + gain * (0.8 - row @ before))


def test_forecaster_verifies_the_promising_or_the_unsure() -> None:
    agent = ForecasterAgent(kappa=0.0)
    good, bad = "int good_line;", "int bad_line;"
    for _ in range(5):
        agent.learn(attempt(1.0, (), Stage.DRAFT, kernel=Kernel(good), verdict=Feasible("", latency=1.0)))
        agent.learn(attempt(-1.0, (), Stage.DRAFT, kernel=Kernel(bad)))
    assert agent.promise(good, False) > 0.5 > agent.promise(bad, False)
    unsure = "int never_seen;"
    assert agent.promise(unsure, False) == 0.5
    agent.kappa = 10.0
    assert agent.promise(unsure, False) > agent.promise(good, False)


def test_forecaster_combines_chance_gain_and_uncertainty() -> None:
    agent, source = ForecasterAgent(kappa=0.3), "int line_one;\nint line_two;"
    where = list(columns(source))
    agent.feasible[0, where], agent.latency[0, where] = 0.5, -0.1
    # p = s(1), the latency is forecast as exp(-0.2) of the best; 4 weights with variance 0.5 over 2 lines.
    assert agent.promise(source, True) == pytest.approx(1 / (1 + exp(-1)) * 1.2 + 0.3 * sqrt(2.0) / sqrt(2))


def test_profiles_reach_the_tree() -> None:
    agent = JudgeAgent()
    verdict = Feasible("", latency=2.0, profile=Profile(bottleneck="vector"))
    agent.learn(attempt(0.1, (), verdict=verdict, produced=(9, 10), start=None, stage=Stage.DRAFT))
    assert agent.trees["s/a"].visits == [Visit(0, 9, 2.0, True, "vector")]
