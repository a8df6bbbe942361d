"""Values that are functions of features: learned from rewards alone, and valid for items that were never shown."""

import numpy as np
import pytest

from kernel_gym.agents.feature_value import FeatureValueAgent, Regression
from kernel_gym.envs.known_optimum import KnownOptimumEnv
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.play import play


def test_the_regression_finds_the_weights_and_its_doubt_falls() -> None:
    rng, truth = np.random.default_rng(0), np.array([0.5, -0.3, 0.0])
    model = Regression(np.zeros(3), np.eye(3), 0.1)
    for _ in range(300):
        row = rng.uniform(-1, 1, 3)
        model.learn(row, float(truth @ row) + 0.1 * rng.standard_normal())
    assert model.mean == pytest.approx(truth, abs=0.05)
    assert np.sqrt(np.diag(model.covariance)).max() < 0.03


def test_it_learns_which_items_help_and_values_those_that_it_never_showed() -> None:
    env, agent = KnownOptimumEnv(), FeatureValueAgent(seed=1)
    rewards = [attempt.reward for attempt in play(env, agent, 120, seed=1)]
    assert np.mean(rewards[:5]) < 0
    assert np.mean(rewards[60:]) > 0.9
    observation, info = env.reset(seed=2)
    values = agent.candidate_values(observation, info)
    assert len(values) == len(info["candidates"])
    assert len(set(values)) > 1


def test_options_out_of_range_are_refused() -> None:
    with pytest.raises(ConfigError, match="deviation and noise must be above 0"):
        FeatureValueAgent(noise=0.0)
