"""Several drafts for one verification, all start points, held-out sizes and coverage: the options of comparisons."""

from typing import Any

import gymnasium as gym
import numpy as np
import pytest
from numpy.typing import NDArray

import kernel_gym  # noqa: F401
from kernel_gym.agents.published.forecaster import ForecasterAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.authors.contract import Context, StartPoint
from kernel_gym.envs.known_optimum import ArithmeticJudge
from kernel_gym.envs.rewards import coverage, shaped
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Stage
from kernel_gym.suites import find_task
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Profile, Verdict
from kernel_gym.verifier.hidden_sizes import held_out

KNOWN = "kernel_gym/KnownOptimum-v0"
FORECAST = "kernel_gym/KernelSynthesisForecast-v0"


class MarkedAuthor:
    """Writes a feasible kernel with the line `right`, or a wrong one with the line `left`, one in three."""

    language = "text"

    def __init__(self, failures: int = 0) -> None:
        self.failures, self.asked = failures, 0

    def identity(self) -> str:
        return "marked"

    def write(self, task: Task, context: Context, start: StartPoint | None, rng: np.random.Generator) -> Kernel:
        self.asked += 1
        if self.asked <= self.failures:
            raise InfrastructureError("the endpoint is down")
        number = float(rng.random())
        return Kernel(
            f"latency {100 + number!r}\nright" if number < 1 / 3 else f"wrong {number!r}\nleft", self.language
        )


def drafting(drafts: int, author: Any = None, **options: Any) -> gym.Env[Any, Any]:
    return gym.make(KNOWN, author=author or MarkedAuthor(), drafts=drafts, **{"budget": 6, "picks": 1} | options)


def test_a_further_action_chooses_the_draft_that_is_verified() -> None:
    env = drafting(3, stages="both", memory="shared")
    observation, info = env.reset(seed=1)
    observation, _, _, _, info = env.step(np.int64(0))
    assert info["draft_due"]
    assert [candidate.item.title for candidate in info["candidates"]] == ["draft 1", "draft 2", "draft 3"]
    assert observation["action_mask"].tolist() == [1.0] * 3 + [0.0] * (len(observation["action_mask"]) - 3)
    sources, picked = [candidate.item.code for candidate in info["candidates"]], info["picked"]
    assert len(set(sources)) == 3
    observation, _, _, _, info = env.step(np.int64(2))
    assert not info["draft_due"]
    assert info["attempt"].kernel.source == sources[2]
    assert info["attempt"].context == picked != ()
    assert info["attempts_left"] == 5, "one verification"


def test_a_masked_choice_verifies_the_first_draft() -> None:
    env = drafting(2)
    env.reset(seed=1)
    _, _, _, _, info = env.step(np.int64(0))
    first = info["candidates"][0].item.code
    _, _, _, _, info = env.step(np.int64(env.action_space.n - 1))  # type: ignore[attr-defined]
    assert info["attempt"].kernel.source == first


def test_an_author_that_cannot_be_reached_costs_no_budget() -> None:
    env = drafting(2, MarkedAuthor(failures=100))
    env.reset(seed=1)
    _, _, _, _, info = env.step(np.int64(0))
    assert "could not be reached" in info["failure"]
    assert info["attempts_left"] == 6


def test_one_draft_is_as_before() -> None:
    sources = [[a.kernel.source for a in play(drafting(n), SimilarityAgent(), 5, seed=4)] for n in (1, 1)]
    assert sources[0] == sources[1]
    env = drafting(1)
    _, info = env.reset(seed=4)
    assert not info["draft_due"]


def test_the_forecaster_learns_which_drafts_to_verify() -> None:
    shares = {}
    for kind in (ForecasterAgent, SimilarityAgent):
        agent = ForecasterAgent(drafting="own") if kind is ForecasterAgent else SimilarityAgent()
        attempts = list(play(drafting(4, stages="both", memory="shared", budget=40), agent, 80, seed=2))
        shares[kind] = np.mean([attempt.verdict.feasible for attempt in attempts[-60:]])
    assert shares[ForecasterAgent] > 0.7, "1 - (2/3)^4 = 0.8 of the sets have a feasible draft"
    assert shares[SimilarityAgent] < 0.5


def test_the_vector_form_has_drafts_of_all_tasks_chosen_before_it_verifies() -> None:
    envs = gym.make_vec(KNOWN, num_envs=2, author=MarkedAuthor(), drafts=3, budget=4, picks=1)
    envs.reset(seed=1)
    _, _, _, _, infos = envs.step(np.array([0, 0]))
    assert infos["draft_due"].tolist() == [True, True]
    chosen = [infos["candidates"][i][i + 1].item.code for i in range(2)]
    _, _, _, _, infos = envs.step(np.array([1, 2]))
    assert [attempt.kernel.source for attempt in infos["attempt"]] == chosen


def observations(env: Any, actions: NDArray[Any]) -> list[Any]:
    steps = [env.reset(seed=3)]
    for action in actions:
        observation, _, over, _, info = env.step(action)
        steps.append((observation, info))
        if over:
            break
    return steps


def test_forecast_drafts_hide_their_verdicts_and_the_first_is_the_one_of_a_single_draft() -> None:
    options: dict[str, Any] = {"tasks": ["relu"], "budget": 2, "picks": 1, "pool_factor": 2}
    alone, several = (gym.make(FORECAST, drafts=n, **options) for n in (1, 3))
    (_, (_, single)) = observations(alone, np.array([0]))[-2:]
    steps = observations(several, np.array([0, 2]))
    (_, offered), (_, chosen) = steps[1:]
    assert offered["draft_due"]
    assert [candidate.item.verdict.outcome for candidate in offered["candidates"]] == ["unjudged"] * 3
    assert offered["candidates"][0].item.code == single["attempt"].kernel.source
    assert chosen["attempt"].kernel.source == offered["candidates"][2].item.code
    assert chosen["attempts_left"] == 1


def test_forecast_and_live_describe_drafts_alike() -> None:
    live = drafting(3).unwrapped
    live.reset(seed=1)
    live.step(np.int64(0))
    forecast = gym.make(FORECAST, drafts=3, tasks=["relu"], budget=2, picks=1, pool_factor=6).unwrapped
    forecast.reset(seed=1)
    observation, *_ = forecast.step(np.int64(0))
    rows = live.layout.drafts(3)
    assert np.array_equal(observation["observations"][: rows.size], rows.ravel())
    assert np.array_equal(live._episode.observation()["observations"][: rows.size], rows.ravel())


def test_the_forecast_vector_form_verifies_one_draft_for_each_task() -> None:
    envs = gym.make_vec(FORECAST, num_envs=2, tasks=["relu", "softmax"], drafts=2, budget=3, picks=1, pool_factor=2)
    agent, (seen, infos) = ForecasterAgent(drafting="own"), envs.reset(seed=1)
    verified = 0
    for _ in range(9):
        seen, _, _, _, infos = envs.step(np.array([agent.act(*view(seen, infos, i)) for i in range(2)]))
        for attempt in infos.get("attempt", ()):
            verified += 1
            agent.learn(attempt)
    assert verified == 6


@pytest.mark.parametrize("memory", ["shared", "fresh"])
def test_all_start_points_are_offered(memory: str) -> None:
    options = {"landscape": "hill", "stages": "both", "memory": memory, "picks": 1, "pool_factor": 2, "tasks_count": 1}
    offered = {}
    for start_points in ("fastest", "all"):
        env = gym.make(KNOWN, budget=9, start_points=start_points, **options)
        list(play(env, SimilarityAgent(), 8, seed=1))
        info = env.unwrapped._episode.info()  # type: ignore[attr-defined]
        assert info["start_due"]
        offered[start_points] = [candidate.latency_us for candidate in info["candidates"]]
    assert len(offered["fastest"]) == 2
    assert len(offered["all"]) == 8
    assert offered["all"] == sorted(offered["all"])
    assert offered["all"][:2] == offered["fastest"]


def test_all_start_points_of_a_forecast_are_offered_and_pools_stay_as_wide() -> None:
    env = gym.make(FORECAST, tasks=["relu"], budget=24, picks=1, pool_factor=2, start_points="all")
    assert env.action_space.n == 25  # type: ignore[attr-defined]
    most, pools, kernels = 0, set[int](), set[int]()
    _, info = env.reset(seed=1)
    for _ in range(200):
        if info["start_due"]:
            most = max(most, len(info["candidates"]))
        else:
            pools.add(len(info["candidates"]))
        _, _, over, _, info = env.step(np.int64(0))
        if "attempt" in info and info["attempt"].verdict.feasible:
            kernels.add(info["attempt"].produced[0])
        if over:
            break
    assert most >= len(kernels) - 1 > 2
    assert pools <= {0, 2}


def test_coverage_is_whether_time_goes_into_the_work_of_the_kernel() -> None:
    busy, idle = (Feasible("", latency=1.0, profile=Profile(bottleneck=name)) for name in ("mte2", "launch"))
    assert (coverage(busy), coverage(idle), coverage(Incorrect(""))) == (1.0, 0.0, 0.0)
    assert shaped(0.5, busy, 0.2) == pytest.approx(0.4 + 0.2)
    assert shaped(0.5, idle, 0.2) == pytest.approx(0.4)
    assert shaped(-1.0, Incorrect(""), 0.2) == -1.0
    assert shaped(0.5, busy, 0.0) == 0.5


def test_coverage_shapes_the_reward_of_refining_alone() -> None:
    rewards = {}
    for weight in (0.0, 0.5):
        env = gym.make(FORECAST, tasks=["relu"], budget=12, coverage=weight)
        rewards[weight] = [
            (attempt.stage, attempt.reward, coverage(attempt.verdict), attempt.verdict.feasible)
            for attempt in play(env, SimilarityAgent(), 12, seed=1)
        ]
    for (stage, plain, covered, feasible), (_, mixed, _, _) in zip(rewards[0.0], rewards[0.5], strict=True):
        expected = 0.5 * plain + 0.5 * covered if stage is Stage.REFINE and feasible else plain
        assert mixed == pytest.approx(expected)
    assert rewards[0.0] != rewards[0.5]


def test_held_out_sizes_differ_from_the_timing_sizes_and_nothing_else_does() -> None:
    task = find_task("level1/relu")
    other = held_out(task)
    assert other.timing.sizes != task.timing.sizes
    assert dict(other.timing.sizes).keys() == dict(task.timing.sizes).keys()
    assert (other.id, other.source, other.public, other.hidden) == (task.id, task.source, task.public, task.hidden)
    assert held_out(task).cases == other.cases, "the same in every process"


@pytest.mark.parametrize("sizes", ["timing", "held-out"])
def test_held_out_sizes_decide_in_the_environment(stand_ins: Any, sizes: str) -> None:
    class SizedJudge(ArithmeticJudge):
        """Finds every kernel as slow as the timing sizes are large."""

        def verify(self, kernel: Kernel, task: Task) -> Verdict:
            return Feasible("feasible", latency=float(sum(size for _, size in task.timing.sizes)))

    env = gym.make(
        "kernel_gym/KernelSynthesis-v0",
        suite="level1",
        tasks=("relu",),
        author=stand_ins.Listed("x"),
        verifier=SizedJudge(),
        sizes=sizes,
    )
    (attempt,) = play(env, SimilarityAgent(), 1, seed=1)
    task = find_task("level1/relu")
    expected = task if sizes == "timing" else held_out(task)
    assert attempt.verdict.latency_us == sum(size for _, size in expected.timing.sizes)


def test_options_that_cannot_be_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"coverage must lie in \[0, 1\), not 1.0"):
        gym.make(KNOWN, coverage=1.0)
    with pytest.raises(ConfigError, match="drafts must be at least 1, not 0"):
        gym.make(KNOWN, drafts=0)
    with pytest.raises(ConfigError, match="the forecast environment has no sizes"):
        gym.make(FORECAST, tasks=["relu"], sizes="held-out")
    with pytest.raises(ConfigError, match="start_points is one of fastest, all, not 'some'"):
        gym.make(KNOWN, start_points="some")
