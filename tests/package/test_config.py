"""Configuration: layers in order, unknown keys refused, digests stable; options of the environment declared once."""

import argparse
from dataclasses import fields
from inspect import cleandoc
from pathlib import Path
from typing import get_type_hints

import pytest
import yaml

from kernel_gym.cli import main
from kernel_gym.config import EnvConfig, RunConfig, resolve
from kernel_gym.envs.options import Composition, MemoryMode, Options, Stages, meanings, reference_table
from kernel_gym.envs.synthesis import KernelSynthesisEnv
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.runs.run_folder import load_config


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


@pytest.mark.parametrize(
    ("word", "near"), [("bugdet=3", "budget"), ("env.pics=3", "env.picks"), ("picks=3", "env.picks"), ("zzz=1", "")]
)
def test_an_unknown_key_is_an_error_with_the_nearest(word: str, near: str) -> None:
    with pytest.raises(ConfigError) as error:
        resolve(sets=[word])
    assert str(error.value).partition("; ")[2] == (f"did you mean {near!r}?" if near else "")


def test_configurations_name_the_keys_in_which_they_differ() -> None:
    other = resolve(overrides={"seed": 1, "workers": 7, "env": {"author_options": {"profile": "weak"}}})
    assert resolve().differing_keys(other) == ["env.author_options.profile", "seed"]
    assert not other.differing_keys(other)


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


NAMES = {option.name for option in fields(Options)}
#: Options that cannot be written in YAML, or that a run decides.
NOT_CONFIGURED = {"verifier", "bank", "operators", "statistics"}


def test_every_option_of_the_environment_can_be_configured() -> None:
    assert set(EnvConfig.model_fields) - NAMES == {"table", "forecast"}
    assert set(EnvConfig.model_fields) | set(RunConfig.model_fields) >= NAMES - NOT_CONFIGURED
    assert not set(EnvConfig.model_fields) & set(RunConfig.model_fields)


def test_defaults_are_those_of_the_environment() -> None:
    config, options = resolve(), Options()
    for name in set(EnvConfig.model_fields) - {"table", "forecast"}:
        assert getattr(config.env, name) == getattr(options, name), name
    assert (config.suite, config.budget, config.workers) == (options.suite, options.budget, options.workers)
    for name, field in EnvConfig.model_fields.items():  # keys that run folders of before may lack
        if not field.is_required() and name not in ("table", "forecast", "layout"):
            assert field.get_default(call_default_factory=True) == getattr(options, name), name


def test_layers_leave_the_defaults_as_they_are() -> None:
    before = resolve()
    resolve(overrides={"agent_options": {"alpha": 0.5}, "env": {"author_options": {"profile": "weak"}}})
    assert resolve() == before


def test_choices_are_those_of_the_environment() -> None:
    hints = get_type_hints(EnvConfig)
    assert (hints["stages"], hints["memory"], hints["composition"]) == (Stages, MemoryMode, Composition)


def test_the_docstring_holds_the_table_of_options() -> None:
    assert set(meanings()) == NAMES
    assert reference_table(summary=True) in cleandoc(KernelSynthesisEnv.__doc__ or "")
    assert reference_table().count("\n") == len(NAMES) + 1


def test_a_file_that_is_not_utf8_is_one_line(tmp_path: Path) -> None:
    file = tmp_path / "run.yaml"
    file.write_bytes("agent: value  # größer\n".encode("latin-1"))
    with pytest.raises(ConfigError, match=r"configuration .*run\.yaml is not UTF-8 text \(invalid .* at byte 1\d\)"):
        resolve(file)


def test_the_policy_is_an_option_of_every_command_that_judges() -> None:
    for command in ("verify", "train", "compare", "evaluate", "study", "oracles"):
        parser = argparse.ArgumentParser()
        main.load(command).add_arguments(parser)
        assert "--policy {strict,reference}" in parser.format_help(), command


def test_configurations_without_a_policy_are_strict(tmp_path: Path) -> None:
    config = resolve(overrides={"env": {"policy": "reference"}})
    assert config.env.policy == "reference"
    data = resolve().model_dump(mode="json")
    del data["env"]["policy"]
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(data))
    assert load_config(tmp_path).env.policy == "strict"
    assert load_config(tmp_path).differing_keys(config) == ["env.policy"]
