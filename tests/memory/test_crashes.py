"""A bank that several connections use at once, and its state after a crash."""

import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from tests.memory.test_bank import BankAgainstModel, similarity

EMBEDDER = StaticEmbedder()


class SharedBankAgainstModel(BankAgainstModel):
    """Two banks on one file behave like one; either may stop in the middle of a transaction or be opened again."""

    def __init__(self):
        self.folder = Path(tempfile.mkdtemp())
        self.banks = [MemoryBank(self.folder / "bank.sqlite", EMBEDDER) for _ in range(2)]
        super().__init__()

    @property
    def bank(self):
        return self.banks[0]

    @bank.setter
    def bank(self, unshared):
        unshared.close()

    @rule()
    def take_turns(self):
        self.banks.reverse()

    @rule()
    def copy_over(self):
        """Open a bank again, as after a restart."""
        self.banks[0].close()
        self.banks[0] = MemoryBank(self.folder / "bank.sqlite", EMBEDDER)

    @rule(count=st.integers(1, 3))
    def break_off(self, count):
        """Lose the connection in the middle of a transaction."""
        lost = MemoryBank(self.folder / "bank.sqlite", EMBEDDER)
        lost._store.connection.execute("BEGIN IMMEDIATE")
        for i in range(count):
            lost._store.insert(MemoryItem(Kind.PRACTICE, "lost", f"lost {i}"))
        lost._store.attempts = 10**6
        lost.close()

    @invariant()
    def both_find_everything(self):
        for bank in self.banks:
            results = sorted(bank.retrieve("softmax rows", 99), key=lambda result: result.item.id)
            assert [result.item for result in results] == self.model
            expected = [similarity("softmax rows", item) for item in self.model]
            assert [result.similarity for result in results] == pytest.approx(expected, abs=2e-6)

    def teardown(self):
        assert [bank.problems() for bank in self.banks] == [(), ()]
        for bank in self.banks:
            bank.close()
        shutil.rmtree(self.folder)


SharedBankAgainstModel.TestCase.settings = settings(max_examples=15, stateful_step_count=20, deadline=None)
TestSharedBankAgainstModel = SharedBankAgainstModel.TestCase

steps = st.lists(st.one_of(st.integers(1, 3), st.floats(-1, 1)), min_size=1, max_size=12)


def go(bank: MemoryBank, step: float, turn: int) -> None:
    """Add so many items as one attempt, or record this reward."""
    if isinstance(step, int):
        bank.add([MemoryItem(Kind.PRACTICE, f"{turn}/{i}", f"{turn}/{i} " + "x" * 300) for i in range(step)])
    elif len(bank):
        bank.record(Stage.DRAFT, range(1, len(bank) + 1), step)


@given(steps=steps, cuts=st.lists(st.floats(0, 1), min_size=1, max_size=4))
@settings(max_examples=25, deadline=None)
def test_whenever_the_machine_stops_the_bank_is_as_it_was_after_one_of_its_changes(steps, cuts):
    """A file whose log is cut at any byte holds a committed state; with the whole log, the last one."""
    with tempfile.TemporaryDirectory() as name, MemoryBank(Path(name) / "bank.sqlite", EMBEDDER) as bank:
        states = [bank.snapshot()]
        for turn, step in enumerate(steps):
            go(bank, step, turn)
            states.append(bank.snapshot())
        log = (Path(name) / "bank.sqlite-wal").read_bytes()
        reached = [found_after_crash(Path(name), log[: round(cut * len(log))], states) for cut in sorted(cuts)]
        assert reached == sorted(reached), "a longer log has later changes"
        assert found_after_crash(Path(name), log, states) == states.index(states[-1])


def found_after_crash(folder: Path, log: bytes, states: list) -> int:
    """Return the index of the state that a bank with this much of its log is in."""
    with tempfile.TemporaryDirectory() as name:
        image = Path(name) / "bank.sqlite"
        shutil.copyfile(folder / "bank.sqlite", image)
        Path(f"{image}-wal").write_bytes(log)
        with MemoryBank(image, EMBEDDER) as bank:
            assert bank.problems() == ()
            return states.index(bank.snapshot())
