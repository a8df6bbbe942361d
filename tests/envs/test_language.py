"""Authors and memories speak the language of the device."""

from __future__ import annotations

import pytest

from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError


@pytest.mark.parametrize(("device", "language"), [("ascend-sim", "ascendc"), ("ascend", "ascendc"), ("cuda", "cuda")])
def test_an_author_writes_what_the_device_runs(device: str, language: str) -> None:
    author = factories.author(Options(device=device))
    assert author.language == language


def test_a_model_is_asked_for_what_the_device_runs() -> None:
    options = {"model": "m", "base_url": "http://localhost:1/v1"}
    assert factories.author(Options(device="cuda", author="openai", author_options=options)).language == "cuda"


def test_the_seed_knowledge_is_of_that_language() -> None:
    options = Options(device="cuda")
    with factories.bank(options, factories.author(options).language) as bank:
        pages = bank.api_pages("softmax", "", language="cuda")
    assert pages
    assert {page.language for page in pages} == {"cuda"}


def test_an_author_of_another_language_is_refused() -> None:
    message = "the device cuda runs cuda, but apprentice writes ascendc"
    with pytest.raises(ConfigError, match=message):
        factories.author(Options(device="cuda", author_options={"language": "ascendc"}))
