"""The method's page has the constants that the code has."""

import inspect
import re
from pathlib import Path

import pytest

from kernel_gym.agents.complement import ComplementAgent
from kernel_gym.agents.context_features import BORROWED, FEATURES, GLANCE
from kernel_gym.agents.knowing import KnowingAgent

PAGE = (Path(__file__).parents[2] / "docs" / "method.md").read_text()


@pytest.mark.parametrize("name", FEATURES)
def test_prior_weights_are_as_documented(name: str) -> None:
    row = re.search(rf"^\| {name} \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert row is not None
    assert tuple(float(number) for number in row[1].split(", ")) == FEATURES[name]


def test_constants_are_as_documented() -> None:
    defaults = inspect.signature(ComplementAgent).parameters
    for name in ("deviation", "item_deviation", "explore"):
        assert f"`{name}` {defaults[name].default}" in PAGE
    assert f"weight of {BORROWED:g} attempts" in PAGE
    assert f"1 / (1 + n / {GLANCE})" in PAGE
    assert f"over {inspect.signature(KnowingAgent).parameters['draws'].default} schedules" in PAGE
