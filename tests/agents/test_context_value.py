"""The context-value agent: its features of a context, its learning, and picks that complement each other."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any, ClassVar

import gymnasium as gym
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernel_gym  # noqa: F401
from kernel_gym.agents.context_value import (
    FILE,
    GATES,
    ContextValueAgent,
    GateModel,
    ItemEffects,
    logistic,
    read_item_values,
)
from kernel_gym.agents.support.context_features import FEATURES, TaskOutlook, TaskRecord, failure, features, statements
from kernel_gym.agents.support.open_attempts import REMEMBERED, OpenAttempts
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.known_optimum import DRAFT_SECRET
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.analysis import item_values
from kernel_gym.experiments.runs.play import play
from kernel_gym.kernel import Kernel
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible, Incorrect, Uncompilable, Verdict

ADDS = "    AscendC::Adds(row, row, -mean, count);  // centre\n"
EXPS = "    AscendC::Exp(out, out, tile);\n"


def attempt(source: str, verdict: Verdict, task: str = "s/a", **more: Any) -> Attempt:
    reward = 1.0 if verdict.feasible else -1.0
    default = Attempt(task, "math", Stage.DRAFT, 0, (), None, (), Kernel(source), verdict, reward, None, ())
    return replace(default, **more)


def candidate(id: int, source: str, verdict: Verdict | None, kind: Kind = Kind.TRACE, task: str = "s/b") -> Candidate:
    code = source if kind is Kind.TRACE else ""
    return Candidate(MemoryItem(kind, "", source, code=code, verdict=verdict, task=task, id=id), 0.5)


def named(row: Any) -> dict[str, float]:
    return dict(zip(FEATURES, row.tolist(), strict=True))


def info(pool: list[Candidate], picked: tuple[int, ...] = ()) -> dict[str, Any]:
    return {
        "task": "s/a",
        "category": "math",
        "stage": Stage.DRAFT,
        "start_due": False,
        "draft_due": False,
        "candidates": tuple(pool),
        "picked": picked,
        "start": 0,
        "best_us": 0.0,
    }


def test_statements_drop_names_and_numbers_and_keep_the_dialect() -> None:
    assert statements(ADDS) == statements("AscendC::Adds(x, y, -v0, n);") == {"AscendC::Adds(v,v,-v,v);"}
    assert statements(ADDS) != statements("AscendC::Adds(x, y, v0, n);")
    assert statements("// only words\n}\n") == frozenset()


def test_failures_with_the_same_words_are_equal() -> None:
    first, second = Uncompilable("line 7: no member Subs(int)"), Uncompilable("line 93: no member Subs(float)", line=93)
    assert failure(first) == failure(second) != failure(Incorrect("line 7: no member Subs(int)"))
    assert failure(first).names == {"Subs"}
    assert failure(Incorrect("at 3", rule="QUEUE_EMPTY")) == failure(Incorrect("at 4", rule="QUEUE_EMPTY"))


def records(**tasks: list[tuple[str, Verdict]]) -> dict[str, TaskRecord]:
    """Records of tasks, each given as its attempts: source and verdict."""
    by_task = {f"s/{name}": TaskRecord() for name in tasks}
    for name, attempts in tasks.items():
        for source, verdict in attempts:
            by_task[f"s/{name}"].add(attempt(source, verdict))
    return by_task


def test_code_that_is_shown_twice_covers_no_more() -> None:
    seen = records(a=[(ADDS, Uncompilable("no")), (EXPS, Uncompilable("no"))])
    outlook = TaskOutlook("s/a", seen, dict.fromkeys(statements(ADDS + EXPS), 2))
    adds, copy = (candidate(i, ADDS, Feasible("", latency=1.0)) for i in (1, 2))
    exps = candidate(3, EXPS, Feasible("", latency=1.0))

    def covered(*picks: Candidate) -> float:
        return named(features(outlook, picks, None, None))["verified"]

    assert covered(adds) == covered(adds, copy) == pytest.approx(0.5, abs=0.01)
    assert covered(adds, exps) == pytest.approx(1.0, abs=0.01)


def test_a_line_in_a_long_text_covers_less() -> None:
    outlook = TaskOutlook("s/a", records(a=[(ADDS, Uncompilable("no"))]), dict.fromkeys(statements(ADDS), 2))
    short, long = (candidate(i, ADDS + "\n" * extra, Feasible("", latency=1.0)) for i, extra in ((1, 0), (2, 30_000)))
    shares = [named(features(outlook, [pick], None, None))["verified"] for pick in (short, long)]
    assert shares[0] > 3 * shares[1] > 0


def test_a_second_experience_of_the_same_failure_counts_half() -> None:
    outlook = TaskOutlook("s/a", records(a=[("", Uncompilable(w)) for w in ("no Subs", "no Subs", "queue empty")]), {})
    experiences = [
        candidate(i, w, Uncompilable(w), Kind.EXPERIENCE) for i, w in enumerate(("no Subs", "no Subs", "queue empty"))
    ]

    def answered(*picks: Candidate) -> float:
        return named(features(outlook, picks, None, None))["answered"]

    assert answered(experiences[0]) == pytest.approx(2 / 6)
    assert answered(experiences[0], experiences[1]) == pytest.approx(1.5 * 2 / 6)
    assert answered(experiences[0], experiences[2]) == pytest.approx(3 / 6)


def test_failures_of_other_tasks_count_where_their_names_occur() -> None:
    way = Uncompilable("no matching function for call to 'Gather(int)'")
    seen = records(
        a=[("Gather(x);", Uncompilable("else"))], b=[("Gather(x);", way)], c=[("Exp(x);", Uncompilable("no"))]
    )
    assert TaskOutlook("s/a", seen, {}).rate(failure(way)) > 0 == TaskOutlook("s/c", seen, {}).rate(failure(way))


def test_statements_that_only_some_attempts_have_count_more() -> None:
    seen = records(a=[(ADDS + EXPS, Uncompilable("no")), (EXPS, Uncompilable("no"))])
    common = dict.fromkeys(statements(ADDS + EXPS), 2)
    outlook = TaskOutlook("s/a", seen, common)
    assert outlook.covered((ADDS,)) > outlook.covered((EXPS,)) > outlook.covered((EXPS,), (ADDS, EXPS)) == 0
    alone = TaskOutlook("s/a", seen, {})
    assert alone.covered((ADDS,)) == 0, "what no other task's kernels have cannot be shown by them"


def test_the_order_of_words_does_not_change_the_result() -> None:
    names = [f"V{i}(v,0,v);" for i in range(60)]
    sources = ["\n".join(names[i:]) for i in range(0, 60, 7)]
    seen = records(a=[(source, Uncompilable("no")) for source in sources])
    common = dict.fromkeys(statements(sources[0]), 2)
    backwards = {name: TaskRecord(**vars(record)) for name, record in seen.items()}
    backwards["s/a"].statements = Counter(dict(reversed(seen["s/a"].statements.items())))
    share = TaskOutlook("s/a", seen, common).covered(tuple(names))
    assert share == TaskOutlook("s/a", backwards, common).covered(tuple(reversed(names))) > 0


def test_failed_code_is_left_out_and_a_working_kernel_is_not() -> None:
    agent = ContextValueAgent(explore=0.0)
    broken = [candidate(i, EXPS * 40, Uncompilable("no")) for i in range(3)]
    mask = {"action_mask": np.ones(5, np.float32)}
    assert agent.act(mask, info([*broken, broken[0]])) == 4, "generate: nothing here helps"
    good = candidate(9, ADDS, Feasible("", latency=1.0))
    assert agent.act(mask, info([*broken, good])) == 3


def test_candidate_values_are_what_a_candidate_adds_and_change_nothing() -> None:
    agent = ContextValueAgent(seed=3)
    state = agent.rng.bit_generator.state
    pool = [candidate(1, ADDS, Feasible("", latency=1.0)), candidate(2, EXPS * 40, Uncompilable("no"))]
    good, bad = agent.candidate_values({"action_mask": np.ones(3, np.float32)}, info(pool))
    assert good > 0 > bad
    assert agent.rng.bit_generator.state == state


@given(st.lists(st.tuples(st.lists(st.floats(-2, 2), min_size=3, max_size=3), st.booleans()), max_size=40))
def test_a_gate_grows_surer_and_stays_sound(observations: list[tuple[list[float], bool]]) -> None:
    gate = GateModel(np.zeros(3), np.eye(3))
    for row, passed in observations:
        before = np.diag(gate.covariance).copy()
        gate.learn(np.array(row), float(passed))
        assert (np.diag(gate.covariance) <= before + 1e-12).all()
    assert np.isfinite(gate.mean).all()
    assert np.linalg.eigvalsh(gate.covariance).min() > 0


def test_a_gate_finds_the_weights_that_made_the_data() -> None:
    rng, true = np.random.default_rng(0), np.array([1.5, -1.0, 0.0])
    gate = GateModel(np.zeros(3), np.eye(3))
    for row in rng.standard_normal((3000, 3)):
        gate.learn(row, float(rng.random() < logistic(float(true @ row))))
    assert np.abs(gate.mean - true).max() < 0.25


def test_an_items_effect_follows_its_outcomes_and_its_variance_falls() -> None:
    effects = ItemEffects(0.25)
    for _ in range(20):
        effects.learn(Stage.DRAFT, [1, 2], 0.5, 1.0)
        effects.learn(Stage.DRAFT, [2, 3], 0.5, 0.0)
    means = [effects.of(Stage.DRAFT, item)[0] for item in (1, 2, 3)]
    assert means[0] > means[1] > means[2]
    assert all(effects.of(Stage.DRAFT, item)[1] < 0.25 for item in (1, 2, 3))
    assert effects.of(Stage.REFINE, 1) == (0.0, 0.25)


@pytest.mark.parametrize("secret", [1, 7])
def test_the_agent_finds_the_one_useful_memory(secret: int) -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", stages="draft", secret=secret)
    agent = ContextValueAgent(seed=secret)
    attempts = list(play(env, agent, 250, seed=secret))
    assert [attempt.reward for attempt in attempts[-40:]] == [1.0] * 40
    useful = [i for i in attempts[-1].context if DRAFT_SECRET in env.unwrapped.bank.get(i).text]  # type: ignore[attr-defined]
    assert useful


def test_wrong_constants_are_refused() -> None:
    for options in ({"deviation": 0.0}, {"explore": -1.0}, {"item_deviation": -0.1}):
        with pytest.raises(ConfigError, match="context-value"):
            ContextValueAgent(**options)


def test_folders_with_the_earlier_file_name_are_read(tmp_path: Path) -> None:
    """Run folders from before the agent's new name have `complement.json`."""
    agent = ContextValueAgent(seed=2)
    for _ in play(gym.make("kernel_gym/KnownOptimum-v0"), agent, 20, seed=2):
        pass
    agent.save(tmp_path)
    values = read_item_values(tmp_path)
    (tmp_path / FILE).rename(tmp_path / "complement.json")
    loaded = ContextValueAgent(seed=3)
    loaded.load(tmp_path)
    assert loaded.values == agent.values != {}
    assert loaded.rng.bit_generator.state == agent.rng.bit_generator.state
    assert read_item_values(tmp_path) == item_values.read_item_values(tmp_path).values == values
    ContextValueAgent(seed=4).save(tmp_path)
    assert read_item_values(tmp_path) == {}, "the present name goes first"


def test_every_gate_has_an_expectation_for_every_feature() -> None:
    assert all(len(weights) == len(GATES) for weights in FEATURES.values())


def test_every_attempt_has_its_own_draw_even_without_learning() -> None:
    """In an evaluation the agent does not learn how attempts ended."""
    env = gym.make("kernel_gym/KnownOptimum-v0", stages="both", picks=12, pool_factor=1, tasks_count=1)
    agent, beliefs, number = ContextValueAgent(1), list[tuple[int, Any]](), 0
    observation, state = env.reset(seed=1)
    stages = set()
    while number < 6:
        start, picked = state["start"], state["picked"]
        action = agent.act(observation, state)
        if state["start_due"]:
            start = state["candidates"][action].id
        elif action < len(state["candidates"]):
            picked = (*picked, state["candidates"][action].id)
        now = agent._open.find("known/task-0", start, picked)
        assert now is not None
        beliefs.append((number, now.belief))
        stages.add(state["stage"])
        observation, _, _, _, state = env.step(action)
        number += "attempt" in state
    assert stages == set(Stage)
    assert len({(attempt, id(belief)) for attempt, belief in beliefs}) == 6, "one an attempt"
    assert len({id(belief) for _, belief in beliefs}) == 6, "none twice"


class ByTask(OpenAttempts[Any]):
    """One attempt per task, whatever its state: enough where no two episodes have the same task."""

    def __init__(self) -> None:
        self.stored: dict[str, Any] = {}

    def begin(self, task: str, start: int | None, picked: Sequence[int], stored: Any) -> None:
        self.stored[task] = stored

    def find(self, task: str, start: int | None, picked: Sequence[int]) -> Any:
        return self.stored.get(task)

    def move(self, task: str, start: int | None, picked: Sequence[int], stored: Any) -> None:
        """Do nothing: an attempt is found by its task."""

    def end(self, task: str, start: int | None, picked: Sequence[int]) -> Any:
        return self.stored.pop(task, None)


def work(agent: ContextValueAgent, tasks: Sequence[str], benches: int, steps: int, **options: Any) -> list[Any]:
    """Return actions, attempts and their metrics, from the forecast environment."""
    envs = ForecastVectorEnv(benches, budget=6, tasks=tasks, **options)
    observations, infos = envs.reset(seed=3)
    done: list[Any] = []
    for _ in range(steps):
        actions = [agent.act(*view(observations, infos, i)) for i in range(benches)]
        observations, _, _, _, infos = envs.step(np.asarray(actions))
        attempts = [view({}, infos, i)[1].get("attempt") for i in range(benches)]
        done += [actions, *((attempt, agent.learn(attempt)) for attempt in attempts if attempt is not None)]
    return done


TASKS = ("relu", "softmax", "gelu")


@pytest.mark.parametrize("options", [{}, pytest.param({"memory": "fresh"}, marks=pytest.mark.slow)])
def test_with_one_episode_per_task_an_attempt_is_found_by_its_task(options: dict[str, Any]) -> None:
    agent, by_task = ContextValueAgent(5), ContextValueAgent(5)
    by_task._open = ByTask()
    assert work(agent, TASKS, 3, 120, **options) == work(by_task, TASKS, 3, 120, **options)
    assert agent.rng.bit_generator.state == by_task.rng.bit_generator.state


def test_episodes_of_one_task_are_distinguished() -> None:
    class Checked(ContextValueAgent):
        stages: ClassVar[Counter[Stage]] = Counter()

        def _update(self, attempt: Attempt, open_attempt: Any) -> Any:
            assert (open_attempt.start and open_attempt.start.id) == attempt.start
            assert set(attempt.context) <= open_attempt.seen.keys()
            self.stages[attempt.stage] += 1
            return super()._update(attempt, open_attempt)

    agent = Checked(5)
    done = work(agent, ("relu",), 5, 120)
    attempts = [entry for entry in done if isinstance(entry, tuple)]
    assert len(attempts) > 40
    assert all(metrics for _, metrics in attempts), "it learned from every one"
    assert min(agent.stages.values()) > 5
    assert len(agent.stages) == 2


def test_the_oldest_open_attempts_are_dropped() -> None:
    attempts = OpenAttempts[int]()
    for number in range(2 * REMEMBERED):
        attempts.begin("s/a", None, (number,), number)
    assert attempts.find("s/a", None, (0,)) is None
    assert attempts.end("s/a", None, (2 * REMEMBERED - 1,)) == 2 * REMEMBERED - 1
    assert attempts.end("s/a", None, (2 * REMEMBERED - 1,)) is None


def test_the_priors_say_what_they_know() -> None:
    nothing, informed = ContextValueAgent(prior="none"), ContextValueAgent()
    assert all(not model.mean.any() for model in nothing.gates.values())
    assert {float(model.covariance[0, 0]) for model in nothing.gates.values()} == {1.0}
    assert informed.prior == "author"
    assert informed.gates[Stage.DRAFT, "compiles"].mean[list(FEATURES).index("verified")] == 3.0
    with pytest.raises(ConfigError, match="prior is one of none, verdicts, author, not 'guess'"):
        ContextValueAgent(prior="guess")  # type: ignore[arg-type]


def test_the_packaged_prior_is_of_verdicts_and_says_what_made_it() -> None:
    weights = resources.files("kernel_gym.agents").joinpath("weights")
    about = json.loads(weights.joinpath("about.json").read_text())["context_value_prior"]
    learned = json.loads(weights.joinpath("context_value_prior.json").read_text())
    assert about["command"].startswith("kernel-gym pretrain prior ")
    assert (about["authors"], about["verdicts"]) == (learned["authors"], learned["verdicts"])
    agent = ContextValueAgent(prior="verdicts")
    never_faster = (Stage.DRAFT, "faster")  # a draft has nothing to be faster than
    assert {gate for gate, model in agent.gates.items() if not model.mean.any()} == {never_faster}
    deviations = np.sqrt(np.diag(agent.gates[Stage.DRAFT, "compiles"].covariance))
    assert len(set(deviations.round(4))) > 5


def test_a_prior_learned_from_verdicts_has_means_and_deviations_of_authors(tmp_path: Path) -> None:
    from kernel_gym.experiments.pretraining.prior import LEAST, Fitted, prior_of

    def fitted(author: str, weight: float) -> Fitted:
        means = {(stage.value, gate): np.full(len(FEATURES), weight) for stage in Stage for gate in GATES}
        return Fitted(author, 10, means)

    learned = prior_of([fitted("a", 1.0), fitted("b", 3.0)])
    assert (learned["authors"], learned["verdicts"]) == (2, 20)
    stage, gate, mean, deviation = learned["gates"][0]
    assert (stage, gate) == ("draft", "compiles")
    assert set(mean) == {2.0}
    assert deviation == pytest.approx([2**0.5] * len(FEATURES), abs=1e-3)
    file = tmp_path / "prior.json"
    file.write_text(json.dumps(learned))
    agent = ContextValueAgent(prior=str(file))
    assert agent.gates[Stage.DRAFT, "compiles"].mean == pytest.approx([2.0] * len(FEATURES))
    with pytest.raises(ConfigError, match="kernel-gym pretrain prior"):
        ContextValueAgent(prior=str(tmp_path / "missing.json"))
    same = prior_of([fitted("a", 1.0), fitted("b", 1.0)])
    assert set(same["gates"][0][3]) == {LEAST}
