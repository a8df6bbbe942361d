"""Credit ends at the attempt: every attempt is an episode of its own."""

import numpy as np

from kernel_gym.agents.support.attempt_episodes import AttemptEpisodes
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from tests.support.forecast_tasks import FIVE


def test_every_attempt_ends_an_episode_and_none_is_lost() -> None:
    plain, envs = (ForecastVectorEnv(2, tasks=list(FIVE[:2]), budget=2, picks=2) for _ in range(2))
    wrapped = AttemptEpisodes(envs)
    rng = np.random.default_rng(0)
    observations, _ = wrapped.reset(seed=1)
    expected, _ = plain.reset(seed=1)
    ends, rewards, other = 0, list[float](), list[float]()
    was_over = np.zeros(2, np.bool_)
    for _ in range(30):
        actions = (rng.random(observations["action_mask"].shape) * observations["action_mask"]).argmax(axis=1)
        held = was_over.all() and not plain._episodes.over.any()
        observations, paid, terminated, _, infos = wrapped.step(actions)
        if not held:
            expected, plain_paid, over, _, _ = plain.step(actions)
            other += plain_paid[plain_paid != 0].tolist()
            assert (terminated | ~over).all()
        assert np.array_equal(observations["observations"], expected["observations"])
        assert terminated.all() == ("attempt" in infos)
        rewards += paid[paid != 0].tolist()
        ends += int(terminated.all())
        was_over = terminated
    assert ends > 5
    assert rewards == other
    assert len(rewards) == 2 * ends
