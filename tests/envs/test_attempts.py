"""The contract of an attempt: picks, masks, start points, budget, errors, memory."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym.envs.episode import PATIENCE
from kernel_gym.envs.known_optimum import HashEmbedder, known_options
from kernel_gym.envs.services import RETRIES
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.errors import ConfigError, TaskError
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.item import Kind, MemoryItem, Stage

K, N = 12, 3


def attempt(env: KernelSynthesisEnv, *actions: int) -> Any:
    """The result of the last of these actions."""
    result: Any = None
    for action in actions:
        result = env.step(np.int64(action))
    return result


def test_after_n_picks_the_kernel_is_generated_automatically(make: Any) -> None:
    env = make()
    _, info = env.reset(seed=0)
    ids = [candidate.id for candidate in info["candidates"]]
    for action in (4, 0):
        _, reward, _, _, info = env.step(action)
        assert reward == 0.0
        assert "attempt" not in info
        assert [candidate.id for candidate in info["candidates"]] == ids, "the pool is fixed within an attempt"
    _, reward, _, _, info = env.step(7)
    assert info["attempt"].context == (ids[4], ids[0], ids[7])
    assert reward == info["attempt"].reward != 0.0


def test_action_k_generates_the_kernel(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    *_, info = attempt(env, 5, K)
    assert len(info["attempt"].context) == 1


def test_a_masked_pick_adds_nothing_and_counts_as_a_pick(make: Any) -> None:
    env = make()
    _, info = env.reset(seed=0)
    first = info["candidates"][2].id
    observation, *_ = attempt(env, 2)
    assert observation["action_mask"][2] == 0.0
    *_, info = attempt(env, 2, 2)
    assert info["attempt"].context == (first,)


def test_slots_without_a_candidate_are_masked_and_zero(make: Any, stand_ins: Any) -> None:
    env = make(bank=stand_ins.bank(practices=4))
    observation, info = env.reset(seed=0)
    assert len(info["candidates"]) == 4
    assert observation["action_mask"].tolist() == [1.0] * 4 + [0.0] * 8 + [1.0]
    assert not observation["observations"][env.layout.candidate("kind")[4:]].any()


def test_an_action_outside_the_space_is_refused(make: Any) -> None:
    env = make()
    env.reset(seed=0)
    with pytest.raises(gym.error.InvalidAction, match="12"):
        env.step(K + 1)


def test_drafting_ends_with_the_first_feasible_kernel(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong", "latency 8.0", "latency 4.0"))
    env.reset(seed=0)
    _, reward, _, _, info = attempt(env, K)
    assert (reward, info["stage"]) == (-1.0, Stage.DRAFT)
    _, reward, _, _, info = attempt(env, K)
    assert (reward, info["stage"], info["start_due"]) == (1.0, Stage.REFINE, True)
    _, reward, _, _, info = attempt(env, 0, K)
    assert reward == pytest.approx(0.6)
    assert (info["first_us"], info["best_us"]) == (8.0, 4.0)


def test_refining_first_asks_for_the_start_point(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("latency 8.0", "latency 4.0", "latency 6.0")
    env = make(author=author)
    env.reset(seed=0)
    attempt(env, K)
    attempt(env, 0, K)
    observation, _, _, _, info = attempt(env, 0, K)
    assert [candidate.kind for candidate in info["candidates"]] == ["start"] * 3
    assert [candidate.latency_us for candidate in info["candidates"]] == [4.0, 6.0, 8.0]
    assert observation["action_mask"].tolist() == [1.0] * 3 + [0.0] * 10, "nothing but start points is legal"
    chosen = info["candidates"][1].id
    observation, _, _, _, info = attempt(env, 1)
    assert info["start"] == chosen
    assert info["picks_left"] == N, "the start point is an extra pick"
    assert observation["action_mask"][-1] == 1.0
    assert chosen not in [candidate.id for candidate in info["candidates"]]
    *_, info = attempt(env, K)
    assert info["attempt"].start == chosen
    assert author.asked[-1][2].verdict.latency_us == 6.0


@pytest.mark.parametrize("illegal", [5, K])
def test_an_illegal_start_point_is_replaced_by_the_fastest(make: Any, stand_ins: Any, illegal: int) -> None:
    env = make(author=stand_ins.Listed("latency 8.0", "latency 4.0"))
    env.reset(seed=0)
    attempt(env, K)
    attempt(env, 0, K)
    *_, info = attempt(env, illegal)
    assert env.bank.get(info["start"]).verdict.latency_us == 4.0
    assert info["picks_left"] == N


def test_a_start_point_lists_the_results_of_its_children(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("latency 8.0", "wrong", "latency 4.0")
    env = make(author=author)
    env.reset(seed=0)
    attempt(env, K)
    for _ in range(3):
        attempt(env, K, K)
    env.reset(seed=0)
    author.asked.clear()
    attempt(env, K)
    attempt(env, 0, K)
    attempt(env, 0, K)
    _, info = env.reset(options={"task": "some/task-0"})
    slow = next(i for i, candidate in enumerate(info["candidates"]) if candidate.latency_us == 8.0)
    attempt(env, slow, K)
    lines = author.asked[-1][2].children
    assert len(lines) == 2
    assert "something else" in lines[0]
    assert "2.00x" in lines[1]


def test_a_repeated_kernel_is_listed_under_every_start_point_that_led_to_it(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("latency 8.0", "latency 6.0", "latency 4.0", "latency 4.0", "wrong")
    env = make(author=author)
    env.reset(seed=0)
    attempt(env, K)
    attempt(env, 0, K)
    *_, info = attempt(env, 0, K)  # 4 us from 6 us
    at = {candidate.latency_us: slot for slot, candidate in enumerate(info["candidates"])}
    *_, info = attempt(env, at[8.0], K)  # and from 8 us
    attempt(env, at[8.0], K)
    lines = author.asked[-1][2].children
    assert ["2.00x" in line for line in lines] == [False, True]
    assert "`latency 8.0` -> `latency 4.0`" in lines[1], "what was changed in this start point, not in the other"


def test_practices_for_the_bottleneck_join_the_pool(make: Any, stand_ins: Any) -> None:
    options = {"verifier": stand_ins.Profiling(), "author": stand_ins.Listed("latency 8.0")}
    env = make(bank=stand_ins.bank(practices=200), **options)
    env.reset(seed=0)
    attempt(env, K)
    *_, info = attempt(env, 0)
    matching = [candidate for candidate in info["candidates"] if "mte2" in candidate.item.bottlenecks]
    assert len(matching) >= K // 4
    similarities = [candidate.similarity for candidate in info["candidates"]]
    assert similarities == sorted(similarities, reverse=True)


def test_api_pages_are_added_listed_and_never_valued(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed("wrong")
    env = make(author=author, bank=stand_ins.bank(practices=5, pages=20))
    _, info = env.reset(seed=0)
    assert all(candidate.item.kind is not Kind.API for candidate in info["candidates"])
    *_, info = attempt(env, 0, K)
    pages = info["attempt"].api_pages
    assert 0 < len(pages) <= 14
    assert [note.kind for note in author.asked[0][1]] == ["practice"] + ["api"] * len(pages)
    outcomes = env.bank.outcomes([*info["attempt"].context, *pages])
    assert [outcomes[i][Stage.DRAFT].uses for i in (*info["attempt"].context, *pages)] == [1] + [0] * len(pages)


def test_an_empty_answer_is_an_infeasible_attempt(make: Any, stand_ins: Any) -> None:
    judge = stand_ins.Failing(0)
    env = make(author=stand_ins.Listed(" \n"), verifier=judge)
    env.reset(seed=0)
    _, reward, _, _, info = attempt(env, K)
    assert reward == -1.0
    assert info["attempt"].verdict.outcome == "uncompilable"
    assert info["attempts_left"] == 5
    assert judge.asked == 0


def test_two_retries_are_made(make: Any, stand_ins: Any) -> None:
    judge = stand_ins.Failing(RETRIES)
    env = make(author=stand_ins.Listed("latency 1.0"), verifier=judge)
    env.reset(seed=0)
    _, reward, _, _, info = attempt(env, K)
    assert (reward, judge.asked) == (1.0, RETRIES + 1)
    assert info["attempt"].verdict.feasible


@pytest.mark.parametrize("failures", [1, RETRIES, RETRIES + 1])
def test_a_retry_does_not_ask_the_author_for_a_kernel_it_has_written(make: Any, stand_ins: Any, failures: int) -> None:
    author, judge = stand_ins.Listed("latency 1.0"), stand_ins.Failing(failures)
    env = make(author=author, verifier=judge)
    env.reset(seed=0)
    attempt(env, K)
    assert len(author.asked) == 1
    assert judge.asked == min(failures, RETRIES) + 1


def test_an_author_that_fails_is_asked_again_with_the_same_draws(make: Any, stand_ins: Any) -> None:
    author, judge = stand_ins.FailingAuthor(RETRIES, "latency 1.0"), stand_ins.Failing(0)
    env = make(author=author, verifier=judge)
    env.reset(seed=0)
    assert attempt(env, K)[1] == 1.0
    assert (len(author.asked), judge.asked) == (RETRIES + 1, 1)
    assert len({draw for *_, draw in author.asked}) == 1
    author.failures = 10**6
    assert "the endpoint is down" in attempt(env, 0, K)[4]["failure"]
    assert (len(author.asked), judge.asked) == (2 * (RETRIES + 1), 1)


def test_errors_of_author_and_verifier_share_the_retries(make: Any, stand_ins: Any) -> None:
    author, judge = stand_ins.FailingAuthor(1, "latency 1.0"), stand_ins.Failing(RETRIES)
    env = make(author=author, verifier=judge)
    env.reset(seed=0)
    assert "worker died" in attempt(env, K)[4]["failure"]
    assert (len(author.asked), judge.asked) == (2, RETRIES)


def test_an_attempt_that_was_not_judged_is_drawn_again(make: Any, stand_ins: Any) -> None:
    author, judge = stand_ins.Listed("wrong"), stand_ins.Failing(RETRIES + 1)
    env = make(author=author, verifier=judge)
    env.reset(seed=0)
    for _ in range(3):
        attempt(env, K)
    unjudged, first, second = (draw for *_, draw in author.asked)
    assert unjudged == first != second


def test_an_error_after_all_retries_costs_nothing_and_five_in_a_row_truncate(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("latency 1.0"), verifier=stand_ins.Failing(1000))
    env.reset(seed=0)
    size = len(env.bank)
    for failures in range(1, PATIENCE + 1):
        _, reward, terminated, truncated, info = attempt(env, 0, K)
        assert (reward, terminated, truncated) == (0.0, False, failures == PATIENCE)
        assert "worker died" in info["failure"]
        assert "attempt" not in info
        assert info["attempts_left"] == 6
    assert len(env.bank) == size
    assert env.bank.attempts == 0
    assert all(not any(o.uses for o in record.values()) for record in env.bank.outcomes(range(1, size + 1)).values())


def test_a_verdict_in_between_sets_the_count_of_errors_back(make: Any, stand_ins: Any) -> None:
    judge = stand_ins.Failing((RETRIES + 1) * (PATIENCE - 1))
    env = make(author=stand_ins.Listed("wrong"), verifier=judge)
    env.reset(seed=0)
    for _ in range(PATIENCE - 1):
        assert attempt(env, K)[3] is False
    assert "attempt" in attempt(env, K)[4]
    judge.failures = 10**6
    assert [attempt(env, K)[3] for _ in range(PATIENCE)] == [False] * (PATIENCE - 1) + [True]


def test_the_budget_ends_the_episode(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong"))
    env.reset(seed=0)
    ends = [attempt(env, K)[2] for _ in range(6)]
    assert ends == [False] * 5 + [True]
    with pytest.raises(gym.error.ResetNeeded):
        env.step(0)


def test_drafting_alone_ends_with_a_feasible_kernel(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong", "latency 1.0"), stages="draft")
    env.reset(seed=0)
    assert attempt(env, K)[2] is False
    assert attempt(env, K)[2] is True


def test_refining_alone_needs_something_to_refine(make: Any, stand_ins: Any) -> None:
    env = make(stages="refine")
    with pytest.raises(ConfigError, match="feasible kernel for some/task-0"):
        env.reset(seed=0)
    drafted = make(author=stand_ins.Listed("latency 9.0"))
    drafted.reset(seed=0)
    attempt(drafted, K)
    env = make(stages="refine", bank=drafted.bank)
    _, info = env.reset(seed=0)
    assert (info["stage"], info["start_due"], info["best_us"]) == (Stage.REFINE, True, 9.0)


def test_the_items_of_an_attempt_join_the_bank(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("latency 8.0", "latency 7.0"))
    _, info = env.reset(seed=0)
    shown = info["candidates"][1].id
    *_, info = attempt(env, 1, K)
    trace, experience = (env.bank.get(i) for i in info["attempt"].produced)
    assert (trace.kind, experience.kind) == (Kind.TRACE, Kind.EXPERIENCE)
    assert experience.source == trace.id
    assert trace.operators == ("aten.op0.default", "aten.relu.default")
    assert env.bank.outcomes([shown])[shown][Stage.DRAFT].mean == 1.0
    *_, info = attempt(env, 0, K)
    assert env.bank.get(info["attempt"].produced[0]).parent == trace.id
    assert env.bank.outcomes([trace.id])[trace.id][Stage.REFINE].uses == 1


def test_frozen_memory_takes_in_no_candidates(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong", "latency 8.0", "latency 4.0"), memory="frozen")
    _, info = env.reset(seed=0)
    before = {candidate.id for candidate in info["candidates"]}
    attempt(env, K)
    *_, info = attempt(env, K)
    assert [candidate.latency_us for candidate in info["candidates"]] == [8.0], "its own kernel can be refined"
    *_, info = attempt(env, 0)
    assert {candidate.id for candidate in info["candidates"]} == before
    _, info = env.reset(options={"task": "some/task-0"})
    assert info["stage"] is Stage.DRAFT, "what another episode found is not known"


def test_without_statistics_no_outcome_is_recorded(make: Any, stand_ins: Any) -> None:
    for statistics, uses in ((True, 1), (False, 0)):
        env = make(author=stand_ins.Listed("wrong"), statistics=statistics)
        _, info = env.reset(seed=0)
        shown = info["candidates"][0].id
        attempt(env, 0, K)
        assert env.bank.outcomes([shown])[shown][Stage.DRAFT].uses == uses


def test_frozen_memory_hides_the_children_of_other_episodes(make: Any, stand_ins: Any) -> None:
    drafted = make(author=stand_ins.Listed("latency 9.0"))
    drafted.reset(seed=0)
    attempt(drafted, K)
    author = stand_ins.Listed("latency 3.0", "latency 5.0")
    env = make(author=author, bank=drafted.bank, memory="frozen", stages="refine", tasks=stand_ins.tasks(1))
    for _ in range(2):
        observation, info = env.reset()
        assert [candidate.latency_us for candidate in info["candidates"]] == [9.0]
        assert observation["observations"][env.layout.candidate("relative_latency")][0] == 1.0
        attempt(env, 0, K)
        assert author.asked[-1][2].children == ()
    attempt(env, 1, K)
    assert len(author.asked[-1][2].children) == 1, "its own it knows"


def test_fresh_memory_begins_every_episode_as_constructed(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("latency 8.0"), memory="fresh")
    _, first = env.reset(seed=0)
    attempt(env, K)
    assert len(env.bank) == 32
    _, again = env.reset(options={"task": "some/task-0"})
    assert len(env.bank) == 30
    assert again["candidates"] == first["candidates"]


def test_shared_memory_continues_refining_an_earlier_kernel(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("latency 8.0", "latency 4.0"))
    env.reset(seed=0)
    attempt(env, K)
    _, info = env.reset(options={"task": "some/task-0"})
    assert (info["stage"], info["best_us"], info["attempts_left"]) == (Stage.REFINE, 8.0, 6)


SCHEDULE = [(0, 1), (1, 3), (3, 2), (4, 4)]


@pytest.mark.parametrize("composition", [pytest.param("similarity", marks=pytest.mark.slow), "stratified"])
def test_a_scheduled_lambda_gives_the_pool_of_that_lambda(make: Any, stand_ins: Any, composition: str) -> None:
    """For any picks so far, the pool equals that of an environment with that lambda alone."""
    rng, seen = np.random.default_rng(7), set()
    options = {"bank": stand_ins.bank(60), "verifier": stand_ins.Profiling(), "composition": composition, "picks": 4}
    env = make(pool_schedule=SCHEDULE, **options)
    observation, info = env.reset(seed=3)
    for _ in range(150):
        offered = env.unwrapped.options.width(6 - info["attempts_left"]) // 4
        fixed = make(pool_factor=offered, **options)
        _, other = fixed.reset(options={"task": info["task"]})
        if info["start"]:
            slot = [candidate.id for candidate in other["candidates"]].index(info["start"])
            *_, other = fixed.step(np.int64(slot))
        assert info["candidates"] == other["candidates"]
        assert observation["action_mask"][:-1].sum() == len(info["candidates"]) - len(info["picked"])
        seen.add((offered, info["stage"], info["start_due"]))
        observation, _, ended, _, info = env.step(rng.choice(np.flatnonzero(observation["action_mask"])))
        if ended:
            observation, info = env.reset()
    assert len(seen) >= 10


def test_a_schedule_of_lambda_leaves_the_spaces_as_they_are(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong"), pool_schedule=[(0, 1), (2, 3)])
    observation, info = env.reset(seed=0)
    widths = [int(observation["action_mask"][:-1].sum())]
    for _ in range(3):
        observation, _, _, _, info = attempt(env, K)
        widths.append(int(observation["action_mask"][:-1].sum()))
        assert len(info["candidates"]) == widths[-1]
        assert env.observation_space.contains(observation)
    assert widths == [3, 3, 9, 9]
    *_, info = attempt(env, K - 1, K)
    assert info["attempt"].context == ()


def test_stratified_pools_hold_every_kind(make: Any, stand_ins: Any) -> None:
    author = stand_ins.Listed(*[f"wrong {i}" for i in range(20)], "latency 8.0")
    env = make(author=author, composition="stratified", budget=21, stages="draft")
    _, info = env.reset(seed=0)
    for _ in range(21):
        *_, info = attempt(env, K)
    _, info = env.reset()
    kinds = {(candidate.kind, candidate.item.feasible) for candidate in info["candidates"]}
    assert {
        ("trace", True),
        ("trace", False),
        ("experience", True),
        ("experience", False),
        ("practice", False),
    } == kinds


def test_seeding_restores_bank_and_curriculum_and_plain_reset_keeps_them(make: Any, stand_ins: Any) -> None:
    env = make(author=stand_ins.Listed("wrong", "latency 3.0"))
    _, first = env.reset(seed=5)
    attempt(env, 0, K)
    _, second = env.reset()
    assert (first["task"], second["task"]) == ("some/task-0", "some/task-1")
    assert len(env.bank) == 32
    _, again = env.reset(seed=5)
    assert len(env.bank) == 30
    assert again["candidates"] == first["candidates"]
    assert again["task"] == first["task"]


def test_a_first_reset_without_a_seed_leaves_alone_what_others_put_into_the_bank(
    make: Any, stand_ins: Any, tmp_path: Any
) -> None:
    file, shared = tmp_path / "bank.sqlite", {"embedder": HashEmbedder()}
    with MemoryBank(file, HashEmbedder()) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "p", "p", language="text")], attempt=False)
        first, second = (make(bank=file, author=stand_ins.Listed(f"wrong {i}"), **shared) for i in range(2))
        first.reset()
        attempt(first, K)
        second.reset()
        attempt(second, K)
        assert (bank.attempts, len(bank)) == (2, 4), "what the first one committed is still there"
        second.reset(seed=0)
        assert (bank.attempts, len(bank)) == (0, 1), "a seed is what puts it back"


def test_looking_at_the_random_generator_does_not_change_the_run_seed(make: Any) -> None:
    first, second = make(seed=9, curriculum="mixed"), make(seed=9, curriculum="mixed")
    assert second.np_random is not None
    assert first.reset()[1]["task"] == second.reset()[1]["task"]
    assert second.np_random_seed == 9


def test_acting_before_the_first_reset_is_an_error(make: Any) -> None:
    for act in (lambda: make().step(0), lambda: make(render_mode="ansi").render()):
        with pytest.raises(gym.error.ResetNeeded, match="call reset"):
            act()


def test_the_authors_randomness_is_that_of_seed_task_and_attempt(make: Any, stand_ins: Any) -> None:
    def draws(seed: int, *actions: int) -> list[tuple[str, float]]:
        author = stand_ins.Listed("wrong")
        env = make(author=author)
        env.reset(seed=seed)
        for _ in range(2):
            attempt(env, *actions)
        env.reset(options={"task": "some/task-2"})
        attempt(env, *actions)
        return [(task.id, number) for task, _, _, number in author.asked]

    assert draws(1, K) == draws(1, 3, 4, K), "what is picked does not change the draw"
    assert len({number for seed in (1, 2) for _, number in draws(seed, K)}) == 6


def test_the_constructors_seed_is_the_first_run_seed(make: Any) -> None:
    first, second = make(seed=9, curriculum="mixed"), make(curriculum="mixed")
    assert first.reset()[1]["task"] == second.reset(seed=9)[1]["task"]
    assert first.np_random_seed == 9


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"budget": 0}, "budget must be at least 1"),
        ({"workers": -1}, "workers must be at least 0"),
        ({"render_mode": "smell"}, "render_mode is one of ansi, human"),
        ({"stages": "drafts"}, "stages is one of both, draft, refine"),
        ({"memory": "none"}, "memory is one of"),
        ({"composition": "best"}, "composition is one of"),
        ({"pool_schedule": [(0, 9)]}, "within 1..4"),
        ({"curriculum": "harder"}, "unknown curriculum"),
        ({"tasks": []}, "no tasks"),
        ({"speed": 9}, "unknown option speed"),
    ],
)
def test_a_wrong_option_is_a_one_line_error(make: Any, wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        make(**wrong)


def test_a_missing_task_is_named(make: Any) -> None:
    with pytest.raises(TaskError, match="some/task-7"):
        make().reset(seed=0, options={"task": "some/task-7"})


@settings(max_examples=40)
@given(
    actions=st.lists(st.integers(0, 12), min_size=1, max_size=120),
    seed=st.integers(0, 2**31),
    memory=st.sampled_from(["shared", "fresh", "frozen"]),
    stages=st.sampled_from(["both", "draft"]),
    composition=st.sampled_from(["similarity", "stratified"]),
)
def test_no_sequence_of_actions_raises_and_every_episode_ends(
    actions: list[int], seed: int, memory: str, stages: str, composition: str
) -> None:
    env = KernelSynthesisEnv(
        **known_options(
            memories=9, picks=3, pool_factor=4, budget=4, memory=memory, stages=stages, composition=composition
        )
    )
    observation, _ = env.reset(seed=seed)
    steps = 0
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(np.int64(action))
        steps += 1
        assert env.observation_space.contains(observation)
        assert observation["action_mask"].any()
        assert reward == 0.0 or "attempt" in info
        assert steps <= 4 * (3 + 1)
        if terminated or truncated:
            observation, _ = env.reset()
            steps = 0
