"""The knowing picker on forecasts: its chances are those of the author, and it is better than random picks."""

from typing import Any

import numpy as np

from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.envs.vector import view
from kernel_gym.experiments.pretraining import rollouts
from kernel_gym.experiments.pretraining.knowing import KnowingPicker, Watched
from kernel_gym.experiments.pretraining.rollouts import Batch, make_attempts
from tests.support.forecast_tasks import FIVE

BATCH = Batch("middle", FIVE[:3], 4, 5)


def test_expected_rewards_are_those_of_the_oracle() -> None:
    envs, rng = BATCH.environments(), np.random.default_rng(0)
    picker, oracle = KnowingPicker(BATCH, envs), OracleAgent(draws=16)
    observations, infos = envs.reset(seed=1)
    pairs = []
    for step in range(16):
        seen, mask = observations["observations"], observations["action_mask"]
        if step in (0, 7, 15):
            values = picker.values(seen, mask)
            for i in range(3):
                _, info = view(observations, infos, i)
                slots = np.flatnonzero(mask[i, :-1] > 0.5).tolist()[::5]
                if slots and not info["start_due"] and not info["start"]:
                    chances = oracle.success_chances(info, slots)
                    pairs += list(zip(values[i, slots], 2 * np.array(chances) - 1, strict=True))
        assert np.isneginf(picker.values(seen, mask)[mask < 0.5]).all()
        observations, *_, infos = envs.step(rollouts.uniform(seen, mask, rng)[0])
    ours, theirs = np.array(pairs).T
    assert len(pairs) > 8
    # Few schedules are drawn, others than the oracle's.
    assert np.abs(ours - theirs).mean() < 0.06
    assert np.corrcoef(ours, theirs)[0, 1] > 0.95


def test_the_best_picks_have_all_of_the_gain_and_the_worst_less_than_none() -> None:
    shares = {}
    for name in ("best", "worst"):
        envs = BATCH.environments()
        picker = KnowingPicker(BATCH, envs)

        def worst(seen: Any, mask: Any, rng: Any, picker: KnowingPicker = picker) -> Any:
            values = picker.values(seen, mask)
            return np.where(mask > 0.5, values, np.inf).argmin(axis=1), np.zeros(len(mask), np.float32)

        watched = Watched(picker if name == "best" else worst, picker)
        made = make_attempts(BATCH, watched, envs)
        assert len(made.rewards) == BATCH.attempts
        assert all(low <= best for low, _, best in watched.gains)
        shares[name] = watched.captured
    assert shares["best"] == 1.0
    assert shares["worst"] < 0.0
