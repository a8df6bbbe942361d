"""Plug-ins: by name, by module:Class, with clear errors."""

import pytest

from kernel_gym import plugins
from kernel_gym.errors import ConfigError


def test_registered_names_are_known() -> None:
    assert "ascend-sim" in plugins.names("kernel_gym.devices")
    assert {"random", "similarity", "value"} <= set(plugins.names("kernel_gym.agents"))


def test_a_class_is_loaded_by_module_and_name() -> None:
    from pathlib import Path

    assert plugins.load("kernel_gym.agents", "pathlib:Path") is Path


@pytest.mark.parametrize("name", ["no-such-agent", "no.such.module:Thing", "pathlib:NoSuchThing"])
def test_unknown_names_are_one_line(name: str) -> None:
    with pytest.raises(ConfigError) as error:
        plugins.load("kernel_gym.agents", name)
    assert "\n" not in str(error.value)


def test_a_mistyped_name_gets_a_suggestion() -> None:
    with pytest.raises(ConfigError, match=r"unknown agent 'similarty'; did you mean 'similarity'\? known: "):
        plugins.load("kernel_gym.agents", "similarty")
    with pytest.raises(ConfigError, match=r"unknown device 'abacus'; known: ascend, ascend-sim"):
        plugins.load("kernel_gym.devices", "abacus")
