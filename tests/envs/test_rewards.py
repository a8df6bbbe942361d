"""The rewards of the method."""

from math import tanh

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.envs.rewards import REWARDS, DraftReward, RefineReward
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Unjudged

latencies = st.floats(1e-3, 1e9)


def test_drafting_rewards_feasibility_alone() -> None:
    assert DraftReward()(Feasible("", latency=1.0)) == 1.0
    assert [DraftReward()(verdict) for verdict in (Cheated(""), Uncompilable(""), Incorrect(""))] == [-1.0] * 3


def test_refining_rewards_latency_relative_to_the_best() -> None:
    reward = RefineReward()
    assert reward(Feasible("", latency=5.0), 5.0) == 0.0
    assert reward(Feasible("", latency=1.0), 2.0) == pytest.approx(0.6)
    assert reward(Feasible("", latency=2.0), 1.0) == pytest.approx(-0.6)
    assert reward(Incorrect(""), 2.0) == -1.0


def test_refining_without_a_best_latency_is_a_mistake() -> None:
    with pytest.raises(ValueError, match="best latency"):
        RefineReward()(Feasible("", latency=1.0), None)


@pytest.mark.parametrize("stage", list(Stage))
def test_an_infrastructure_failure_has_reward_zero(stage: Stage) -> None:
    assert REWARDS[stage](Unjudged("down"), None) == REWARDS[stage].on_error == 0.0


@given(latency=latencies, best=latencies)
def test_rewards_stay_within_their_range(latency: float, best: float) -> None:
    low, high = RefineReward.range
    assert low <= RefineReward()(Feasible("", latency=latency), best) <= high


@given(best=latencies, faster=latencies, slower=latencies)
def test_faster_is_never_worse(best: float, faster: float, slower: float) -> None:
    faster, slower = sorted((faster, slower))
    reward = RefineReward()
    assert reward(Feasible("", latency=faster), best) >= reward(Feasible("", latency=slower), best) >= tanh(-50.0)
