"""Studies on forecasts: the runs are forecast, folders tell them apart, arms begin with the memory of others."""

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


def test_a_study_may_always_be_on_forecasts(tmp_path: Path) -> None:
    assert all(shard.config.env.forecast for shard in StudyRequest("predictions", "quick").study(tmp_path).shards)


def test_selected_arms_come_with_those_that_build_their_memory(tmp_path: Path) -> None:
    study = StudyRequest("predictions", "quick", seeds=("0",), arms=("weaker-1",)).study(tmp_path)
    assert [shard.label for shard in study.shards] == ["strong/value/seed-0", "weaker-1/value/seed-0"]
    with pytest.raises(ConfigError, match=r"arms are level1, .*, not 'nowhere'"):
        StudyRequest("predictions", "quick", arms=("nowhere",)).study(tmp_path)


@pytest.mark.slow
def test_an_arm_begins_with_the_memory_of_another(tmp_path: Path) -> None:
    request = StudyRequest("unseen", "quick", ("value",), ("0",), budget=2, forecast=True)
    assert study_commands.run(request, tmp_path, 1) == []
    folder = tmp_path / "frozen" / "value" / "seed-0"
    assert (folder / "memory.jsonl").exists()
    assert len((folder / "results.jsonl").read_text().splitlines()) == 8 * 2
    assert "frozen/value" in study_commands.write_results(request, tmp_path)


def test_the_studies_use_context_value_without_the_authors_prior(tmp_path: Path) -> None:
    for name in ("main", "unseen", "sensitivity", "sensitivity-calibrated", "placebo-calibrated"):
        shards = [
            shard for shard in StudyRequest(name, "quick").study(tmp_path).shards if shard.agent == "context-value"
        ]
        assert shards
        assert all(shard.config.agent_options == {"prior": "none"} for shard in shards)
