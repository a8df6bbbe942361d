"""Configuration: layers in order, unknown keys refused, digests stable."""

from pathlib import Path

import pytest

from kernel_gym.config import resolve
from kernel_gym.errors import ConfigError


def test_layers_override_in_order(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_text("budget: 12\nenv: {picks: 3}\n")
    config = resolve(file, {"budget": 7}, ["env.pool_factor=2"])
    assert (config.budget, config.env.picks, config.env.pool_factor) == (7, 3, 2)
    assert config.env.author == "apprentice"


@pytest.mark.parametrize("word", ["bugdet=3", "env.pics=3", "nonsense"])
def test_unknown_keys_are_errors(word: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(sets=[word])
    assert "\n" not in str(error.value)


def test_wrong_values_say_which_key() -> None:
    with pytest.raises(ConfigError, match=r"env\.picks"):
        resolve(sets=["env.picks=0"])


def test_missing_and_broken_files_are_one_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.yaml"
    broken.write_text("a: [1\nb: }")
    for file in (tmp_path / "missing.yaml", broken):
        with pytest.raises(ConfigError) as error:
            resolve(file)
        assert "\n" not in str(error.value)


def test_digest_ignores_workers_only() -> None:
    base = resolve()
    assert resolve(overrides={"workers": 7}).digest == base.digest
    assert resolve(overrides={"seed": 1}).digest != base.digest
