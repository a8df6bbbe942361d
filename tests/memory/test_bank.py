"""The bank compared with a plain Python model of it, and each of its promises."""

import copy
import pickle
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from kernel_gym.memory.bank import HEADLINE_SHARE, PREVIOUS, RECENT_WEIGHT, BankError, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import CONTENTS, Kind, MemoryItem, Stage
from kernel_gym.service.shared_bank import SharedBank, share
from kernel_gym.verdict import Feasible, Incorrect, Profile, Uncompilable

EMBEDDER = StaticEmbedder()
OK = Feasible("ok", latency=3.0)
PHRASES = ("relu", "softmax rows", "reduce sum", "matmul tile", "double buffer", "tail copy", "gelu tanh", "")

phrases = st.sampled_from(PHRASES)
devices = st.sampled_from(["", "one", "other"])
verdicts = st.one_of(
    st.builds(Uncompilable, feedback=phrases, device=devices, line=st.one_of(st.none(), st.integers(1, 99))),
    st.builds(Incorrect, feedback=phrases, cause=st.sampled_from(["fault", "mismatch"]), rule=phrases),
    st.builds(
        Feasible,
        feedback=phrases,
        device=devices,
        latency=st.floats(0.5, 1e4),
        profile=st.builds(Profile, pipes=st.dictionaries(st.sampled_from(["V", "MTE2"]), st.floats(0, 9))),
        notes=st.lists(phrases, max_size=2).map(tuple),
    ),
)
own_contents = {
    "code": st.sampled_from([phrase for phrase in PHRASES if phrase]),
    "verdict": verdicts,
    "names": st.lists(st.sampled_from(["Relu", "Exp"]), min_size=1, max_size=2).map(tuple),
    "bottlenecks": st.lists(st.sampled_from(["mte2", "vector"]), max_size=2).map(tuple),
}
memories = st.one_of(
    st.builds(
        MemoryItem,
        kind=st.just(kind),
        title=phrases,
        text=st.text(max_size=8),
        task=st.sampled_from(["", "level1/relu", "level1/softmax"]),
        category=st.sampled_from(["", "activation"]),
        operators=st.lists(st.sampled_from(["aten.relu", "aten.sum"]), max_size=2).map(tuple),
        stage=st.sampled_from([None, *Stage]),
        **{name: values for name, values in own_contents.items() if name in CONTENTS[kind]},
    )
    for kind in Kind
)


def relu_trace(code: str = "Relu(y, x, n);", latency: float = 3.0, **fields) -> MemoryItem:
    verdict = Feasible("ok", latency=latency)
    return MemoryItem(Kind.TRACE, "relu", code, code=code, verdict=verdict, task="level1/relu", **fields)


def content(item: MemoryItem) -> tuple[str, ...]:
    """Return what two items that are the same have in common."""
    device = item.verdict.device if item.kind is Kind.TRACE and item.verdict is not None else ""
    return item.kind, item.task, item.code or item.text, device


class BankAgainstModel(RuleBasedStateMachine):
    """Public operations, in any order, behave like a list and a few dictionaries."""

    def __init__(self):
        super().__init__()
        self.bank = MemoryBank(None, EMBEDDER)
        self.model: list[MemoryItem] = []
        self.rewards: dict[tuple[int, Stage], list[float]] = {}
        self.attempts = 0
        self.saved = []

    @rule(items=st.lists(memories, max_size=4), attempt=st.booleans())
    def add(self, items, attempt):
        self.attempts += attempt
        expected = []
        for item in items:
            same = [old.id for old in self.model if content(old) == content(item)]
            if not same:
                self.model.append(replace(item, id=len(self.model) + 1, born=self.attempts))
            expected.append(same[0] if same else len(self.model))
        assert self.bank.add(items, attempt) == tuple(expected)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), stage=st.sampled_from(Stage), reward=st.floats(-1, 1))
    def record(self, data, stage, reward):
        ids = data.draw(st.lists(st.integers(1, len(self.model)), max_size=4))
        self.bank.record(stage, ids, reward)
        for id in set(ids):
            self.rewards.setdefault((id, stage), []).append(reward)

    @rule()
    def save(self):
        snapshot = pickle.loads(pickle.dumps(self.bank.snapshot()))
        self.saved.append((snapshot, list(self.model), copy.deepcopy(self.rewards), self.attempts))

    @precondition(lambda self: self.saved)
    @rule(data=st.data())
    def restore(self, data):
        place = data.draw(st.integers(0, len(self.saved) - 1))
        snapshot, model, rewards, attempts = self.saved[place]
        self.bank.restore(snapshot)
        self.model, self.rewards, self.attempts = list(model), copy.deepcopy(rewards), attempts
        # Later states go on from items that are gone now.
        self.saved = [state for state in self.saved if len(state[1]) <= len(model)]

    @rule()
    def copy_over(self):
        before = self.bank
        self.bank = copy.deepcopy(before)
        before.add([MemoryItem(Kind.PRACTICE, "only in the original", "only in the original")])

    @rule(query=phrases, k=st.integers(0, 8), data=st.data())
    def retrieve(self, query, k, data):
        kinds = data.draw(st.one_of(st.none(), st.sets(st.sampled_from(Kind))))
        feasible = data.draw(st.sampled_from([None, True, False]))
        task = data.draw(st.sampled_from([None, "level1/relu"]))
        exclude = data.draw(st.sets(st.integers(1, 12), max_size=4))
        where = data.draw(st.sampled_from([None, lambda item: bool(item.names)]))
        passing = [
            item
            for item in self.model
            if (kinds is None or item.kind in kinds)
            and (feasible is None or item.feasible == feasible)
            and (task is None or item.task == task)
            and item.id not in exclude
            and (where is None or where(item))
        ]
        expected = sorted(passing, key=lambda item: (-similarity(query, item), item.id))[:k]
        results = self.bank.retrieve(query, k, kinds, exclude, feasible=feasible, task=task, where=where)
        assert [result.similarity for result in results] == pytest.approx(
            [similarity(query, item) for item in expected], abs=2e-6
        )
        assert len({result.item.id for result in results}) == len(results)
        assert all(result.item in passing for result in results)
        assert all(
            result.outcomes[stage] == self.expected(result.item.id, stage) for result in results for stage in Stage
        )
        # The order is exact wherever two similarities are not closer than rounding can tell.
        for result, item in zip(results, expected, strict=True):
            assert result.item == item or abs(similarity(query, item) - similarity(query, result.item)) < 2e-6
        ties = [(-result.similarity, result.item.id) for result in results]
        assert ties == sorted(ties)

    def expected(self, id: int, stage: Stage):
        rewards, recent = self.rewards.get((id, stage), []), 0.0
        for reward in rewards:
            recent += RECENT_WEIGHT * (reward - recent)
        return _Close(len(rewards), sum(rewards) / max(1, len(rewards)), recent)

    @invariant()
    def same_content(self):
        assert len(self.bank) == len(self.model)
        assert self.bank.items() == tuple(self.model)
        assert self.bank.attempts == self.attempts
        assert self.bank.items(Kind.TRACE, "level1/relu") == tuple(
            item for item in self.model if item.kind is Kind.TRACE and item.task == "level1/relu"
        )

    def teardown(self):
        self.bank.close()


class _Close:
    """Return statistics that are equal to these up to rounding."""

    def __init__(self, uses: int, mean: float, recent: float):
        self.figures = (uses, mean, recent)

    def __eq__(self, other):
        return (other.uses, other.mean, other.recent) == pytest.approx(self.figures, abs=1e-9)


def similarity(query: str, item: MemoryItem) -> float:
    """Return the cosine of query and item in double precision, by its definition."""
    parts = (item.title, item.task, item.category, *item.operators, *item.names, *item.bottlenecks)
    headline, text, query_vector = (
        row.astype(np.float64) for row in EMBEDDER.embed([" ".join(filter(None, parts)), item.text, query])
    )
    mixed = HEADLINE_SHARE * headline + (1 - HEADLINE_SHARE) * text
    norm = np.linalg.norm(mixed)
    return float(mixed @ query_vector / norm) if norm else 0.0


@pytest.fixture(params=["memory", "file", pytest.param("actor", marks=pytest.mark.slow)])
def new_bank(request, tmp_path):
    """Return a function that makes an empty bank of each sort; those of actors are made by `make test-slow`."""
    if request.param == "memory":
        return lambda: MemoryBank(None, EMBEDDER)
    if request.param == "file":
        return lambda: MemoryBank(tmp_path / "bank.sqlite", EMBEDDER)
    cluster = request.getfixturevalue("ray_cluster")
    return lambda: shared(cluster, tmp_path / "bank.sqlite")


def shared(cluster, path: Path) -> SharedBank:
    """Return a new bank that an actor keeps."""
    MemoryBank(path, EMBEDDER).close()
    url = f"ray://{cluster.address}/{uuid4().hex}"
    share(url, path, EMBEDDER)
    return SharedBank(url, EMBEDDER)


BankAgainstModel.TestCase.settings = settings(max_examples=40, stateful_step_count=25, deadline=None)
TestBankAgainstModel = BankAgainstModel.TestCase


@given(st.lists(memories, min_size=1, max_size=30), phrases, st.integers(1, 10))
@settings(max_examples=25, deadline=None)
def test_any_k_is_a_beginning_of_the_whole_ranking(items, query, k):
    with MemoryBank(None, EMBEDDER) as bank:
        bank.add(items)
        assert bank.retrieve(query, k) == bank.retrieve(query, len(bank))[:k]


def test_start_points_are_the_feasible_traces_of_the_task_fastest_first(new_bank):
    with new_bank() as bank:
        slow, fast = bank.add([relu_trace("slow", 9.0), relu_trace("fast", 2.0)])
        bank.add([replace(relu_trace("broken"), verdict=Uncompilable("no")), replace(relu_trace(), task="level1/gelu")])
        bank.add([MemoryItem(Kind.EXPERIENCE, "", "worked", verdict=Feasible("", latency=1.0), task="level1/relu")])
        assert [item.id for item in bank.start_points("level1/relu")] == [fast, slow]


def test_children_and_lineage_follow_parents_and_sources(new_bank):
    with new_bank() as bank:
        (root,) = bank.add([relu_trace("root")])
        first, note = bank.add(
            [relu_trace("first", parent=root), MemoryItem(Kind.EXPERIENCE, "", "faster", verdict=OK, source=PREVIOUS)]
        )
        (second,) = bank.add([relu_trace("second", parent=first)])
        assert [item.id for item in bank.children(root)] == [first]
        assert [item.id for item in bank.lineage(second)] == [root, first, second]
        assert [item.id for item in bank.lineage(note)] == [root, first, note]


def test_a_kernel_is_a_child_of_every_start_point_it_was_reached_from(new_bank):
    with new_bank() as bank:
        (one,) = bank.add([relu_trace("one")])
        (other,) = bank.add([relu_trace("other")])
        (child,) = bank.add([relu_trace("child", parent=one)])
        before = bank.snapshot()
        assert bank.add([relu_trace("child", parent=other)]) == (child,)
        assert bank.add([relu_trace("child", parent=child)]) == (child,), "nothing was changed"
        assert [[item.id for item in bank.children(id)] for id in (one, other, child)] == [[child], [child], []]
        assert [item.id for item in bank.lineage(child)] == [one, child], "where it was first reached from"
        bank.restore(before)
        assert bank.children(other) == ()


def test_references_to_nothing_are_refused_and_nothing_is_added(new_bank):
    with new_bank() as bank:
        for item in (relu_trace(parent=7), MemoryItem(Kind.EXPERIENCE, "", "", verdict=OK, source=PREVIOUS)):
            with pytest.raises(BankError):
                bank.add([item])
        with pytest.raises(BankError, match="no item 1"):
            bank.get(1)
        with pytest.raises(BankError, match="no item 3"):
            bank.record(Stage.DRAFT, [3], 1.0)
        with pytest.raises(BankError, match="finite"):
            bank.record(Stage.DRAFT, [], float("nan"))
        assert (len(bank), bank.attempts) == (0, 0)


def test_a_frozen_bank_quietly_changes_nothing(new_bank):
    with new_bank() as bank:
        bank.add([relu_trace()])
        before = bank.snapshot()
        bank.frozen = True
        assert bank.add([relu_trace("new")]) == ()
        bank.record(Stage.DRAFT, [1], 1.0)
        assert bank.snapshot() == before
        assert copy.deepcopy(bank).frozen


def test_a_read_only_bank_raises_on_change_and_still_finds(tmp_path):
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path, EMBEDDER) as bank:
        bank.add([relu_trace()])
        snapshot = bank.snapshot()
    with MemoryBank(path, EMBEDDER, read_only=True) as bank:
        assert bank.retrieve("relu", 1)[0].item.id == 1
        for change in (
            lambda: bank.add([relu_trace("new")]),
            lambda: bank.record(Stage.DRAFT, [1], 1.0),
            lambda: bank.restore(snapshot),
        ):
            with pytest.raises(BankError, match="read-only"):
                change()
    with pytest.raises(BankError, match="no memory bank"):
        MemoryBank(tmp_path / "absent", EMBEDDER, read_only=True)


def test_a_snapshot_whose_items_are_gone_is_refused(new_bank):
    with new_bank() as bank:
        empty = bank.snapshot()
        bank.add([relu_trace("a")])
        lost = bank.snapshot()
        bank.restore(empty)
        bank.add([relu_trace("b")])
        with pytest.raises(BankError, match="no longer holds"):
            bank.restore(lost)
        assert bank.get(1).code == "b"


def test_a_file_bank_is_pickled_by_path(tmp_path):
    with MemoryBank(tmp_path / "bank.sqlite", EMBEDDER) as bank, pickle.loads(pickle.dumps(bank)) as other:
        bank.add([relu_trace()])
        assert other.retrieve("relu", 1)[0].item == bank.get(1)


def test_vectors_of_another_embedder_are_made_on_opening(tmp_path):
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path, EMBEDDER) as bank:
        bank.add([relu_trace(), replace(relu_trace("Exp(y, x, n);"), title="exp", task="level1/exp")])
    small = StaticEmbedder(64)
    for _ in range(2):  # made the first time, read the second
        with MemoryBank(path, small) as bank:
            assert bank.vectors([1, 2]).shape == (2, 64)
            assert [result.item.id for result in bank.retrieve("nn.ReLU", 2)] == [1, 2]
    with MemoryBank(path, StaticEmbedder(32), read_only=True) as bank:
        assert [result.item.id for result in bank.retrieve("nn.ReLU", 2)] == [1, 2]


def test_look_up_shows_given_items_as_retrieve_does(new_bank):
    with new_bank() as bank:
        bank.add([relu_trace(str(i)) for i in range(5)])
        bank.record(Stage.REFINE, [2], 0.5)
        results = {result.item.id: result for result in bank.retrieve("relu", 5)}
        assert bank.look_up([4, 2], "relu") == (results[4], results[2])


def test_an_embedder_is_asked_for_its_identity_once():
    class Counting(StaticEmbedder):
        queries = 0

        def identity(self) -> str:
            Counting.queries += 1
            return super().identity()

    with MemoryBank(None, Counting()) as bank:
        for i in range(3):
            bank.add([relu_trace(f"Relu(y, x, {i});")])
            bank.retrieve("text", 2)
    assert Counting.queries == 1
