"""The pages of the method have the constants that the code has."""

import inspect
import re

import pytest
from repository import ROOT

from kernel_gym.agents.context_value import DEVIATIONS, ContextValueAgent
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.support.context_features import BORROWED, FEATURES, GLANCE

METHOD = ROOT / "docs" / "method"
PAGE = (METHOD / "agents.md").read_text()


@pytest.mark.parametrize("name", FEATURES)
def test_prior_weights_are_as_documented(name: str) -> None:
    row = re.search(rf"^\| {name} \|.*\| ([^|]+) \|$", PAGE, re.MULTILINE)
    assert row is not None
    assert tuple(float(number) for number in row[1].split(", ")) == FEATURES[name]


def test_constants_are_as_documented() -> None:
    defaults = inspect.signature(ContextValueAgent).parameters
    authors, none = DEVIATIONS["author"], DEVIATIONS["none"]
    assert f"deviation of each weight: {authors:g} with `author`, {none:g} with `none`" in PAGE
    for name in ("item_deviation", "explore"):
        assert f"| `{name}` | {defaults[name].default} |" in PAGE
    assert f"weight of {BORROWED:g} attempts" in PAGE
    assert f"1 / (1 + n / {GLANCE})" in PAGE
    draws = inspect.signature(OracleAgent).parameters["draws"].default
    assert f"over {draws} schedules" in (METHOD / "credit.md").read_text()
