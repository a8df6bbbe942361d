"""Estimates from logged attempts: right on a known problem, near the truth on forecasts."""

from pathlib import Path

import numpy as np
import pytest
import torch

from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.pretraining import offline
from kernel_gym.experiments.pretraining.rollouts import Batch, Decisions
from tests.support.forecast_tasks import FIVE

BATCH = Batch("middle", FIVE[:3], 4, 5)


def two_picks(count: int = 40_000, bad_model: bool = True) -> tuple[list[Decisions], float]:
    """Attempts of two picks between two candidates each: the reward is +1 if both are the first, else -1.

    The logging policy takes the first with probability 0.4, the target with 0.8, so that its mean reward is 0.28.
    """
    rng, layout = np.random.default_rng(0), Layout(2)
    actions = (rng.random((count, 2)) >= 0.4).astype(np.int64)
    returns = np.repeat(np.where(actions.sum(axis=1) == 0, 1.0, -1.0), 2).astype(np.float32)
    flat = actions.ravel()
    seen = np.zeros((2 * count, layout.size), np.float32)
    masks = np.tile([True, True, False], (2 * count, 1))
    chances = np.log(np.where(flat == 0, 0.4, 0.6)).astype(np.float32)
    following = np.where(np.arange(2 * count) % 2 == 0, np.arange(2 * count) + 1, -1)
    rewards = returns[::2]
    return [Decisions(seen, masks, flat, chances, returns, following, rewards, 0.0)], 2 * 0.8**2 - 1


def test_both_estimates_find_the_reward_of_another_policy() -> None:
    log, truth = two_picks()
    torch.manual_seed(0)
    model = CandidateScorer(ScorerSizes.of(Layout(2), 8, 0))  # untrained: the ratios have to correct it
    found = offline.estimate(log, lambda seen, mask: np.tile([0.8, 0.2, 0.0], (len(seen), 1)), model)
    assert found.logged == pytest.approx(2 * 0.4**2 - 1, abs=0.02)
    for value in (found.propensity, found.normalised, found.doubly_robust):
        assert value == pytest.approx(truth, abs=0.05)
    assert 1_000 < found.effective < 40_000


def test_the_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    made = offline.logged(BATCH, 0.5)
    offline.write_log(tmp_path, 3, made, BATCH)
    read = offline.read_log(tmp_path / "log-00003.npz")
    np.testing.assert_allclose(read.observations, made.observations, atol=1e-3)
    assert np.array_equal(read.actions, made.actions)
    assert np.array_equal(read.log_probabilities, made.log_probabilities)
    with pytest.raises(KernelGymError, match="pretrain log"):
        offline.read_log(tmp_path / "other.npz")


def test_logged_probabilities_are_those_of_the_policy() -> None:
    made = offline.logged(BATCH, 0.5)
    chances = offline.mixed(0.5)(made.observations, made.masks.astype(np.float32))
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    taken = chances[np.arange(len(made.actions)), made.actions]
    np.testing.assert_allclose(np.exp(made.log_probabilities), taken, rtol=1e-5)
    assert (chances[~made.masks] == 0).all()


def test_the_truth_of_the_logging_policy_is_what_it_earned() -> None:
    policy = offline.drawn_from(offline.mixed(1.0))
    own, other = offline.true_reward(BATCH, policy, policy)
    assert own == other == pytest.approx(float(offline.logged(BATCH, 1.0).rewards.mean()))


def test_a_network_is_fitted_to_a_log(tmp_path: Path) -> None:
    picks = offline.log_batch(tmp_path, 0.5, 0, BATCH)
    log = [offline.read_log(tmp_path / "log-00000.npz")]
    assert len(log[0].actions) == picks
    assert len(log[0].first) == len(BATCH.tasks)
    scorer, error = offline.fit_scores(log, offline.mixed(0.5), epochs=2, hidden=8, layers=0)
    assert 0.0 < error < 2.0
    batch = {"observations": torch.as_tensor(log[0].observations), "action_mask": torch.as_tensor(log[0].masks).float()}
    with torch.no_grad():
        assert scorer(batch)[0].isfinite().all()


def test_estimates_are_held_against_the_truth_of_the_same_batches() -> None:
    estimates = [offline.Estimate(-0.5, -0.3, -0.3, -0.25, 10.0), offline.Estimate(-0.7, -0.5, -0.4, -0.45, 10.0)]
    table = offline.errors_table(estimates, [-0.3, -0.4])
    assert "| logged | -0.6000 | -0.2500 | 0.0500 |" in table
    assert "| doubly_robust | -0.3500 | +0.0000 | 0.0500 |" in table
    assert table.endswith("| truth | -0.3500 | | |\n")
    other = offline.true_reward_of_shares(1.0, 1.0, BATCH)
    assert other == pytest.approx(float(offline.logged(BATCH, 1.0).rewards.mean()))
