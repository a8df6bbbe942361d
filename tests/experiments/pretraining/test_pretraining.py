"""Pretraining: fixed splits, credit for one attempt, a network that learns, a training that goes on."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.observation import Layout
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError
from kernel_gym.experiments import splits
from kernel_gym.experiments.pretraining import rollouts
from kernel_gym.experiments.pretraining.learners import DQNLearner, Learner, LoggedLearner, PPOLearner, _scaled
from kernel_gym.experiments.pretraining.pretraining import Judged, Pretraining, Settings, fixed_batches, standings
from kernel_gym.experiments.pretraining.rollouts import Batch, Decisions, draw_batch, make_attempts
from kernel_gym.experiments.studies import study_definition
from tests.support.forecast_tasks import FIVE

BATCH = Batch("middle", FIVE[:2], 3, 5)


def test_the_splits_are_halves_that_never_change() -> None:
    training, test = splits.split_tasks("training"), splits.split_tasks("test")
    assert len(training) == len(test) == 100
    assert not set(training) & set(test)
    assert sum(name.startswith("level1/") for name in test) == 50
    assert training[:2] == ("level1/average_pooling_1d", "level1/average_pooling_2d")
    assert not set(splits.AUTHORS["training"]) & set(splits.AUTHORS["test"])
    assert {splits.author(n).partition("~")[0] for n in splits.AUTHORS["test"]} == {"middle", "strong", "weak"}
    batch = draw_batch("test", (1, 2), 8, (5, 10))
    assert batch == draw_batch("test", (1, 2), 8, (5, 10))
    assert set(batch.tasks) <= set(test)


@pytest.mark.parametrize("size", ["quick", "full"])
def test_the_study_held_out_has_tasks_and_authors_that_training_never_sees(size: str) -> None:
    shards = study_definition.shards(study_definition.load("held-out"), size)
    assert {task for shard in shards for task in shard.tasks} <= set(splits.split_tasks("test"))
    profiles = {str(shard.config.env.author_options["profile"]) for shard in shards}
    assert len(profiles) == {"quick": 10, "full": 20}[size]
    assert min(int(profile.partition("~")[2]) for profile in profiles) > max(splits.AUTHORS["training"])


def test_every_pick_of_an_attempt_has_its_reward() -> None:
    made = make_attempts(BATCH, rollouts.uniform)
    assert len(made.rewards) == BATCH.attempts
    ends = np.flatnonzero(made.following < 0)
    assert len(ends) == BATCH.attempts
    assert sorted(made.returns[ends]) == sorted(made.rewards)
    inner = np.flatnonzero(made.following >= 0)
    assert np.array_equal(made.returns[inner], made.returns[made.following[inner]])
    assert (made.following[inner] > inner).all()
    assert made.masks[np.arange(len(made.actions)), made.actions].all()
    assert made.masks.sum(axis=1).min() > 1


def test_returns_can_be_means_over_kernels_of_the_same_context() -> None:
    batch = replace(BATCH, author="strong", budget=4)
    plain, redrawn = (make_attempts(replace(batch, redraws=count), rollouts.uniform) for count in (0, 31))
    # What is drawn in addition changes nothing in the run itself.
    assert np.array_equal(plain.rewards, redrawn.rewards)
    assert np.array_equal(plain.actions, redrawn.actions)
    assert set(plain.returns) <= set(plain.rewards)
    means = redrawn.returns[redrawn.following < 0]
    assert len(set(means.tolist()) - {-1.0, 1.0}) > 2
    # A task's first attempts are drafts: 32 rewards of +1 or -1.
    assert np.allclose(16 * (means[:2] + 1), np.round(16 * (means[:2] + 1)))


def test_deciding_several_times_is_deciding_on_repeated_requests() -> None:
    envs = BATCH.environments()
    observations, _ = envs.reset(seed=3)
    for _ in range(4):
        actions, _ = rollouts.uniform(*observations.values(), np.random.default_rng(1))
        observations, *_ = envs.step(actions)
    _, _, requests = envs.possible_requests()
    author, few = envs._episodes.author, requests[:5]
    doubles = author.draws(15, np.random.default_rng(0))
    several = author.decide(0, few, envs.items, doubles, times=3)
    repeated = author.decide(0, [request for request in few for _ in range(3)], envs.items, doubles)
    assert several == repeated
    assert len(set(map(str, several))) > 5


def test_the_network_is_asked_only_where_there_is_a_choice(monkeypatch: pytest.MonkeyPatch) -> None:
    layout = Layout(4)
    scorer = CandidateScorer(ScorerSizes.of(layout, 8, 1))
    rng = np.random.default_rng(0)
    seen = rng.random((3, layout.size)).astype(np.float32)
    mask = np.array([[1, 0, 1, 0, 1], [0, 0, 0, 0, 1], [1, 1, 1, 1, 0]], np.float32)
    batch = {"observations": torch.as_tensor(seen), "action_mask": torch.as_tensor(mask)}
    whole = scorer.masked(batch)[0].detach().numpy()
    asked, masked = list[int](), scorer.masked

    def counted(batch: Any) -> Any:
        asked.append(len(batch["action_mask"]))
        return masked(batch)

    monkeypatch.setattr(scorer, "masked", counted)
    scores = rollouts._scores(scorer, seen, mask)
    assert asked == [2]
    assert np.allclose(scores[[0, 2]], whole[[0, 2]], rtol=1e-5)
    actions, log_probabilities = rollouts.sampling(scorer)(seen, mask, rng)
    assert actions[1] == 4
    assert log_probabilities[1] == 0.0
    assert mask[np.arange(3), actions].all()


@pytest.mark.slow
def test_batches_are_made_longest_first_and_returned_in_order(tmp_path: Path) -> None:
    class Recorder(ThreadPoolExecutor):
        asked: list[int]

        def map(self, function: Any, batches: Any) -> Any:  # type: ignore[override]
            self.asked = [batch.attempts for batch in batches]
            return map(function, batches)

    training = Pretraining(Settings(tasks=2, budgets=(1, 2), batches=6, cloned=0, hidden=8), tmp_path)
    with Recorder(1) as executor:
        made = training._made(executor, "random", 0.0, 0)
    assert executor.asked == sorted(executor.asked, reverse=True)
    assert len(set(executor.asked)) == 2
    alone = training._made(None, "random", 0.0, 0)
    assert [len(some.rewards) for some in made] == [len(some.rewards) for some in alone]
    assert [len(some.rewards) for some in made] != executor.asked


def test_the_rule_is_that_of_the_agent() -> None:
    envs = ForecastVectorEnv(2, tasks=list(FIVE[:2]), budget=6)
    agent, rng = SimilarityFeasibleAgent(), np.random.default_rng(0)
    observations, infos = envs.reset(seed=0)
    for _ in range(60):
        actions, _ = rollouts.similarity_feasible(observations["observations"], observations["action_mask"], rng)
        for i in range(2):
            observation, info = view(observations, infos, i)
            if observation["action_mask"].sum() > 1:
                assert actions[i] == agent.act(observation, info)
        observations, *_, infos = envs.step(actions)


def decisions(reward: Any, count: int = 512) -> Decisions:
    """Decisions between two candidates that one feature tells apart; `reward` says what each choice earns."""
    layout, rng = Layout(2), np.random.default_rng(0)
    seen = np.zeros((count, layout.size), np.float32)
    good = rng.integers(2, size=count)
    seen[np.arange(count), layout.candidate("feasible")[good]] = 1.0
    seen[:, layout.candidate("age")] = 0.5
    mask = np.zeros((count, 3), np.bool_)
    mask[:, :2] = True
    actions = rng.integers(2, size=count)
    returns = np.array([reward(bool(right)) for right in actions == good], np.float32)
    return Decisions(
        seen, mask, actions, np.full(count, np.log(0.5), np.float32), returns, np.full(count, -1), returns, 0.5
    )


def prefers_good(learner: Learner, made: Decisions) -> float:
    """Return how often the network scores the good candidate higher."""
    with torch.no_grad():
        batch = {"observations": torch.as_tensor(made.observations), "action_mask": torch.as_tensor(made.masks).float()}
        chosen = learner.scorer.masked(batch)[0].argmax(-1).numpy()
    good = made.observations[np.arange(len(chosen)), Layout(2).candidate("feasible")[chosen]]
    return float(good.mean())


@pytest.mark.parametrize("kind", [PPOLearner, DQNLearner])
def test_learners_find_the_choice_that_is_rewarded(kind: type[Learner]) -> None:
    torch.manual_seed(0)
    learner = kind(CandidateScorer(ScorerSizes.of(Layout(2), 16, 1)), 3e-3)
    made = decisions(lambda right: 1.0 if right else -1.0)
    for _ in range(20):
        learner.learn([made])
    assert prefers_good(learner, made) > 0.95


def test_advantages_are_scaled_within_each_stage() -> None:
    drafting = torch.tensor([True, True, False, False])
    scaled = _scaled(torch.tensor([1.0, 3.0, 100.0, 300.0]), drafting)
    assert scaled.tolist() == pytest.approx([-0.7071, 0.7071, -0.7071, 0.7071], abs=1e-3)


def test_what_the_logging_policy_prefers_is_not_what_is_worth_picking() -> None:
    """Rewards depend on the state alone, and the policy picks the good candidate only in the states that pay."""
    rng, layout, count = np.random.default_rng(0), Layout(2), 4096
    made = decisions(lambda right: 0.0, count)
    pays = rng.random(count) < 0.5
    good = made.observations[:, layout.candidate("feasible")].argmax(axis=1)
    chances = np.zeros((count, 3))
    chances[np.arange(count), good] = np.where(pays, 0.9, 0.1)
    chances[np.arange(count), 1 - good] = np.where(pays, 0.1, 0.9)
    actions = np.where(rng.random(count) < chances[np.arange(count), good], good, 1 - good)
    log = replace(made, actions=actions, returns=np.where(pays, 1.0, -1.0).astype(np.float32))

    def preference(centring: Any) -> float:
        torch.manual_seed(0)
        learner = LoggedLearner(CandidateScorer(ScorerSizes.of(Layout(2), 16, 0)), 3e-3)
        learner.fit([log], [centring], epochs=30)
        with torch.no_grad():
            data = learner._data([log])
            scores = learner._forward(data, torch.arange(count))[0].numpy()
        return float((scores[np.arange(count), good] - scores[np.arange(count), 1 - good]).mean())

    # The state is not in the observation, so that the value cannot explain the rewards.
    assert abs(preference(chances)) < 0.3
    assert preference(np.tile([0.5, 0.5, 0.0], (count, 1))) > 1.0


def test_learning_from_a_log_finds_the_choice_that_is_rewarded() -> None:
    torch.manual_seed(0)
    learner = LoggedLearner(CandidateScorer(ScorerSizes.of(Layout(2), 16, 1)), 3e-3)
    made = decisions(lambda right: 1.0 if right else -1.0)
    learner.fit([made], [np.tile([0.5, 0.5, 0.0], (len(made.actions), 1))], epochs=40)
    assert prefers_good(learner, made) > 0.95


def test_policies_are_compared_in_area_task_by_task() -> None:
    rule = [Judged(-0.5, 0.5, {"a": 0.0, "b": 0.5}), Judged(-0.7, 0.5, {"a": 0.1, "c": 0.3})]
    better = [Judged(-0.4, 1.0, {"a": 0.2, "b": 0.6}, 0.5), Judged(-0.6, 0.5, {"a": 0.4, "c": 0.4}, 0.7)]
    table = standings({"rule": rule, "network": better}, "rule")
    assert "| rule | -0.600 | 0.500 | 0.225 |  |  |  |" in table
    assert "| network | -0.500 | 0.750 | 0.400 | +0.175 [" in table
    assert table.rstrip().endswith("| 0.60 |")


def test_authors_of_a_profile_can_be_tested() -> None:
    batches = fixed_batches(2, profile="calibrated")
    assert [batch.author for batch in batches] == ["calibrated~0", "calibrated~1"]
    assert [batch.tasks for batch in batches] == [batch.tasks for batch in fixed_batches(2)]


@pytest.mark.slow
def test_dqn_passes_values_on_within_an_attempt_only() -> None:
    torch.manual_seed(0)
    learner = DQNLearner(CandidateScorer(ScorerSizes.of(Layout(2), 16, 1)), 3e-3, renewal=5, intensity=20)
    made = decisions(lambda right: 1.0)
    # First decisions are never rewarded themselves: their target is the value of the second ones.
    half = len(made.actions) // 2
    following = np.where(np.arange(2 * half) < half, np.arange(2 * half) + half, -1)
    chained = replace(made, following=following, returns=np.where(following < 0, 1.0, -9.0).astype(np.float32))
    for _ in range(15):
        learner.learn([chained])
    with torch.no_grad():
        rows = torch.arange(half)
        values = learner._forward(learner._data([chained]), rows)[0].max(-1).values
    assert float(values.mean()) == pytest.approx(1.0, abs=0.2)


def test_cloning_repeats_what_was_done() -> None:
    torch.manual_seed(0)
    learner = PPOLearner(CandidateScorer(ScorerSizes.of(Layout(2), 16, 1)), 3e-3)
    made = decisions(lambda right: 0.0)
    good = made.observations[:, Layout(2).candidate("feasible")].argmax(axis=1)
    for _ in range(20):
        learner.clone([replace(made, actions=good)])
    assert prefers_good(learner, made) > 0.95


SMALL = Settings(attempts=12, cloned=4, tasks=2, budgets=(2,), batches=1, hidden=8)


@pytest.mark.parametrize("algorithm", ["ppo", "dqn"])
def test_a_training_that_was_stopped_goes_on_to_the_same_weights(
    algorithm: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rollouts, "split_tasks", lambda split: FIVE)
    settings = replace(SMALL, algorithm=algorithm)
    whole = Pretraining(settings, tmp_path / "whole")
    rows: list[dict[str, Any]] = []
    whole.run(rows.append)
    assert whole.attempts == 12
    assert [row["attempts"] for row in rows if "attempts" in row] == [4, 8, 12]
    assert whole.weights.is_file()
    if algorithm == "dqn":  # its replay is not kept
        return
    first = Pretraining(replace(settings, attempts=4), tmp_path / "parts")
    first.run(rows.append)
    second = Pretraining(settings, tmp_path / "parts")
    assert second.attempts == 4
    second.run(rows.append)
    for name, value in whole.learner.scorer.state_dict().items():
        assert torch.equal(value, second.learner.scorer.state_dict()[name]), name
    with pytest.raises(ConfigError, match=r"other settings \(hidden\)"):
        Pretraining(replace(settings, hidden=16), tmp_path / "parts")


def test_training_begins_with_the_weights_that_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rollouts, "split_tasks", lambda split: FIVE)
    first = Pretraining(SMALL, tmp_path / "first")
    first.save()
    settings = replace(SMALL, start=str(first.weights), cloned=0, seed=3)
    second = Pretraining(settings, tmp_path / "second")
    for name, value in first.learner.scorer.state_dict().items():
        assert torch.equal(value, second.learner.scorer.state_dict()[name]), name
