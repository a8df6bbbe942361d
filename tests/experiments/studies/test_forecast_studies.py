"""Studies on forecasts: the runs are forecast, folders tell them apart, and what needs a device says so."""

from pathlib import Path

import pytest

from kernel_gym.errors import ConfigError
from kernel_gym.experiments.studies import study_commands
from kernel_gym.experiments.studies.study_commands import StudyRequest


def test_every_run_of_a_study_is_forecast(tmp_path: Path) -> None:
    live, forecast = (StudyRequest("lambda", "quick", forecast=some).study(tmp_path) for some in (False, True))
    assert not any(shard.config.env.forecast for shard in live.shards)
    assert all(shard.config.env.forecast for shard in forecast.shards)


def test_a_folder_does_not_mix_forecasts_and_verdicts(tmp_path: Path) -> None:
    study_commands._write_study_file(StudyRequest("lambda", "quick", forecast=True), tmp_path)
    study_commands._write_study_file(StudyRequest("lambda", "quick", forecast=True), tmp_path)
    with pytest.raises(ConfigError, match="on forecasts; choose another --out"):
        study_commands._write_study_file(StudyRequest("lambda", "quick"), tmp_path)


def test_a_study_on_the_memory_of_another_arm_needs_a_device(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="unseen needs a device"):
        StudyRequest("unseen", "quick", forecast=True).study(tmp_path)


def test_the_studies_use_context_value_without_the_authors_prior(tmp_path: Path) -> None:
    for name in ("main", "unseen", "sensitivity"):
        shards = [
            shard for shard in StudyRequest(name, "quick").study(tmp_path).shards if shard.agent == "context-value"
        ]
        assert shards
        assert all(shard.config.agent_options == {"prior": "none"} for shard in shards)
