"""Conformance tests for embedders, to be inherited by the authors of plug-ins.

Write a test class that says how your embedder is made, and run it with pytest:

    from kernel_gym.memory.conformance import EmbedderConformance

    class TestMyEmbedder(EmbedderConformance):
        def make(self):
            return MyEmbedder()
"""

from __future__ import annotations

import pickle
from abc import ABC, abstractmethod

import numpy as np

from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import Embedder
from kernel_gym.memory.item import Kind, MemoryItem

TEXTS = (
    "softmax over the last dimension of a batch of rows",
    "ReduceMax(m, x, work, n); Adds(y, x, -m.GetValue(0), n); Exp(y, y, n);",
    "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return torch.relu(x)",
)


class EmbedderConformance(ABC):
    """Tests that every embedder must pass."""

    @abstractmethod
    def make(self) -> Embedder:
        """Make the embedder under test.

        Returns:
            A new embedder, with the same settings in every call.
        """

    def test_it_is_an_embedder(self) -> None:
        """It has the members of the contract."""
        assert isinstance(self.make(), Embedder)

    def test_rows_are_unit_vectors(self) -> None:
        """`embed` returns one float32 row of length one for each text, in order."""
        embedder = self.make()
        rows = embedder.embed(TEXTS)
        assert rows.shape == (len(TEXTS), embedder.dimension)
        assert rows.dtype == np.float32
        assert np.allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-4)

    def test_a_text_always_gets_the_same_vector(self) -> None:
        """The vector does not depend on other texts, repetition or pickling."""
        embedder = self.make()
        rows = embedder.embed(TEXTS)
        assert np.array_equal(embedder.embed(TEXTS), rows)
        assert np.allclose(embedder.embed(TEXTS[1:2])[0], rows[1], atol=1e-5)
        assert np.allclose(pickle.loads(pickle.dumps(embedder)).embed(TEXTS), rows, atol=1e-5)

    def test_an_empty_text_is_no_error(self) -> None:
        """`embed` accepts empty texts, such as an author's empty answer."""
        assert np.isfinite(self.make().embed([""])).all()

    def test_two_of_a_kind_have_one_identity(self) -> None:
        """The identity depends on settings, not on the object."""
        assert self.make().identity() == self.make().identity()

    def test_a_bank_finds_an_item_by_its_own_words(self) -> None:
        """A search for a text returns the item with that text."""
        with MemoryBank(None, self.make()) as bank:
            bank.add([MemoryItem(Kind.PRACTICE, text, text) for text in TEXTS])
            assert [bank.retrieve(text, 1)[0].item.text for text in TEXTS] == list(TEXTS)
