import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.benchmarks.memory_speed import RandomEmbedder
from kernel_gym.errors import ConfigError
from kernel_gym.memory import api_pages
from kernel_gym.memory.conformance import EmbedderConformance
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.words import _IDENTIFIER, _words_of, words

EMBEDDER = StaticEmbedder()


class TestStaticEmbedder(EmbedderConformance):
    def make(self):
        return StaticEmbedder()


class TestRandomEmbedder(EmbedderConformance):
    def make(self):
        return RandomEmbedder(64)


@pytest.mark.parametrize(
    ("left", "right"),
    [
        ("DataCopyPad", "data_copy_pad"),
        ("nn.ReLU(x)", "nn Relu x"),
        ("torch.relu", "torch.ReLU"),
        ("F.log_softmax", "F.LogSoftmax"),
        ("BatchNorm2d(16)", "batch_norm2d(64)"),
    ],
)
def test_spellings_of_one_name_are_the_same_words(left, right):
    assert list(words(left)) == list(words(right))


def test_related_texts_are_nearer_than_unrelated_ones():
    softmax, row_softmax, gemm, matmul = EMBEDDER.embed(
        ["softmax over the last dimension", "row-wise nn.Softmax", "gemm kernel", "product of matrices, torch.matmul"]
    )
    assert softmax @ row_softmax > softmax @ gemm + 0.2
    assert gemm @ matmul > gemm @ softmax + 0.2


def test_operators_whose_names_share_tokens_are_kept_apart():
    relu, call, gelu = EMBEDDER.embed(["nn.ReLU()", "Relu(y, x, n);", "nn.GELU()"])
    assert relu @ call > 0.9
    assert relu @ gelu < 0.5


@given(st.lists(st.text(max_size=200), max_size=6))
def test_rows_are_finite_unit_vectors(texts):
    rows = EMBEDDER.embed(texts)
    assert rows.shape == (len(texts), EMBEDDER.dimension)
    assert rows.dtype == np.float32
    norms = np.linalg.norm(rows, axis=1)
    assert all(abs(norm - 1) < 1e-5 or norm == 0 for norm in norms)


@given(st.lists(st.text(max_size=100), min_size=1, max_size=4))
def test_neither_cache_nor_neighbours_nor_pickling_change_a_vector(texts):
    together = EMBEDDER.embed(texts)
    alone = np.stack([StaticEmbedder(remember=0).embed([text])[0] for text in texts[:1]])
    assert np.array_equal(together[:1], alone)
    assert np.array_equal(pickle.loads(pickle.dumps(EMBEDDER)).embed(texts), together)


def test_a_small_cache_forgets_the_oldest_text():
    embedder = StaticEmbedder(remember=2)
    embedder.embed(["a", "b", "a", "c"])
    assert len(embedder._texts) == 2
    assert embedder._texts.get("b") is None


def test_different_settings_have_different_identities():
    assert StaticEmbedder(128).identity() != StaticEmbedder(256).identity()
    assert StaticEmbedder(128).embed(["exp"]).shape == (1, 128)
    with pytest.raises(ConfigError, match=r"16\.\.256"):
        StaticEmbedder(1000)


def test_it_never_imports_the_weights_package():
    import subprocess
    import sys

    program = (
        "import sys; from kernel_gym.memory.embedding import StaticEmbedder as S; S().embed(['relu']); "
        "sys.exit('wordllama' in sys.modules or 'torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


@given(st.text(st.sampled_from("aB2_@ \t\n\r\v\f\x1c\x85\u2028(;")))
def test_no_word_goes_over_the_end_of_a_line(text):
    """Words are cached by line, which must give the same words as the whole text."""
    whole = [word for name in _IDENTIFIER.findall(text) for word in _words_of(name)]
    assert list(words(text)) == whole
    assert set().union(*map(api_pages._names, text.splitlines())) == set(api_pages._NAME.findall(text))
