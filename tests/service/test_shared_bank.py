"""One memory for many runs: a bank behind an actor, its loss, and runs that share it."""

from __future__ import annotations

import os
import shlex
import signal
import tempfile
from collections.abc import Iterator
from multiprocessing import get_context
from pathlib import Path
from threading import Event, Thread
from typing import Any
from uuid import uuid4

import pytest
from code_blocks import blocks
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import rule
from python_process import run_python
from repository import ROOT

from kernel_gym.config import resolve
from kernel_gym.envs import factories
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.journal import Journal
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train
from kernel_gym.memory.bank import BankError, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.service.local_cluster import local_cluster
from kernel_gym.service.shared_bank import Keeper, SharedBank, UnknownEmbedder, share, split, unshare
from kernel_gym.verdict import Uncompilable
from tests.memory.test_bank import BankAgainstModel
from tests.memory.test_crashes import SharedBankAgainstModel

EMBEDDER = StaticEmbedder()
PAGE = ROOT / "docs" / "guides" / "shared-memory.md"


def note(text: str) -> MemoryItem:
    return MemoryItem(Kind.PRACTICE, text, text)


# Without Ray: the actor's class and what needs no cluster


def test_a_repeated_change_is_made_once_also_after_a_restart(tmp_path: Path) -> None:
    path, name = tmp_path / "bank.sqlite", EMBEDDER.identity()
    for _ in range(2):  # the second keeper opens the file as a restarted actor does
        keeper = Keeper(str(path))
        keeper.introduce(EMBEDDER)
        for _ in range(2):
            assert list(keeper.change(name, "writer", 1, "add", [note("a"), note("b")], True)) == [1, 2]
        assert keeper.read(name, "attempts") == 1
    for _ in range(2):
        assert keeper.change(name, "writer", 2, "record", Stage.DRAFT, [1], 1.0) is None
    assert list(keeper.change(name, "other", 1, "add", [note("c")], True)) == [3]
    assert keeper.read(name, "outcomes", [1])[1][Stage.DRAFT].uses == 1
    assert keeper.read(name, "attempts") == 2
    assert keeper.read(name, "problems") == ()


def test_a_change_that_fails_leaves_nothing_and_can_be_repeated(tmp_path: Path) -> None:
    keeper, name = Keeper(str(tmp_path / "bank.sqlite")), EMBEDDER.identity()
    keeper.introduce(EMBEDDER)
    stray = MemoryItem(Kind.EXPERIENCE, "", "of nothing", verdict=Uncompilable("no"), source=7)
    with pytest.raises(BankError, match="no item 7"):
        keeper.change(name, "writer", 1, "add", [note("a"), stray], True)
    assert (keeper.read(name, "__len__"), keeper.read(name, "attempts")) == (0, 0)
    assert list(keeper.change(name, "writer", 1, "add", [note("a")], True)) == [1]


def test_a_keeper_asks_for_an_embedder_that_it_was_not_given(tmp_path: Path) -> None:
    keeper, small = Keeper(str(tmp_path / "bank.sqlite")), StaticEmbedder(64)
    keeper.introduce(EMBEDDER)
    keeper.change(EMBEDDER.identity(), "writer", 1, "add", [note("a")], True)
    with pytest.raises(UnknownEmbedder):
        keeper.read(small.identity(), "attempts")
    keeper.introduce(small)
    assert keeper.read(small.identity(), "vectors", [1]).shape == (1, 64)
    assert keeper.read(EMBEDDER.identity(), "vectors", [1]).shape == (1, 128)


@pytest.mark.parametrize("url", ["team", "ray://auto", "ray:///team", "ray://auto/", "ray://auto/a/b"])
def test_a_wrong_address_is_one_line(url: str) -> None:
    with pytest.raises(ConfigError, match=r"the address of a shared bank is ray://HOST:PORT/NAME"):
        split(url)


def test_a_shared_bank_has_every_public_method_of_a_plain_one() -> None:
    """What a new method of the bank would do without an override is decided here."""
    local = {"change_once", "children", "embed_items"}
    public = {name for name in vars(MemoryBank) if not name.startswith("_")} | {"__len__"}
    assert public - local == {name for name in vars(SharedBank) if name in public}


def test_options_that_contradict_a_shared_bank_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="which other runs share"):
        factories.bank(Options(bank="ray://auto/team", memory="fresh"), "ascendc")
    with pytest.raises(ConfigError, match="the bank of a run is in its folder"):
        resolve(overrides={"env": {"bank": str(tmp_path / "bank.sqlite")}})
    config = resolve(overrides={"env": {"bank": "ray://auto/team"}, "initial_memory": "memory.jsonl"})
    with pytest.raises(ConfigError, match="imported into it"):
        train(config, RunFolder(tmp_path))


def test_a_run_on_its_own_bank_keeps_the_digest_of_its_configuration() -> None:
    assert "bank" not in resolve()._decisive["env"]
    assert resolve(overrides={"env": {"bank": "ray://auto/team"}}).differing_keys(resolve()) == ["env.bank"]


def test_a_begun_run_on_a_shared_bank_is_not_replayed(tmp_path: Path) -> None:
    config = resolve(overrides={"tasks": ["relu"], "env": {"bank": "ray://auto/team"}})
    folder = RunFolder.open(tmp_path / "run", config)
    folder.journal.write_text("{}\n")
    with pytest.raises(KernelGymError, match="its attempts are in the bank"):
        train(config, folder)


# On a cluster


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    pytest.importorskip("ray", reason="needs Ray")
    with local_cluster(2) as cluster:
        yield cluster


def shared(cluster: Any, path: Path) -> str:
    """Share a bank with the seed knowledge; return its address."""
    with MemoryBank(path, EMBEDDER) as bank:
        bank.add(seed_items("ascendc"), attempt=False)
    url = f"ray://{cluster.address}/{uuid4().hex}"
    share(url, path, EMBEDDER)
    return url


def kill_actor(bank: SharedBank) -> None:
    """Kill the process of a bank's actor, once it runs."""
    bank._ask("read", "attempts")
    os.kill(bank._ray.get(bank._actor.__ray_call__.remote(lambda keeper: os.getpid())), signal.SIGKILL)


class ActorBankAgainstModel(SharedBankAgainstModel):
    """Two clients of one actor behave like one bank, also when the actor is killed between any two calls."""

    cluster: Any

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp())
        path = self.folder / "bank.sqlite"
        MemoryBank(path, EMBEDDER).close()
        self.url = f"ray://{self.cluster.address}/{uuid4().hex}"
        share(self.url, path, EMBEDDER)
        self.banks = [SharedBank(self.url, EMBEDDER) for _ in range(2)]
        BankAgainstModel.__init__(self)

    @rule()
    def copy_over(self) -> None:
        self.banks[0] = SharedBank(self.url, EMBEDDER)

    @rule(count=st.just(1))
    def break_off(self, count: int) -> None:
        kill_actor(self.banks[0])

    def teardown(self) -> None:
        assert [bank.problems() for bank in self.banks] == [(), ()]
        unshare(self.url)


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_clients_of_an_actor_behave_like_one_bank(cluster: Any) -> None:
    """Run by `make test-slow`."""
    from hypothesis.stateful import run_state_machine_as_test

    ActorBankAgainstModel.cluster = cluster
    run_state_machine_as_test(
        ActorBankAgainstModel, settings=settings(max_examples=5, stateful_step_count=15, deadline=None)
    )


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_files_of_the_client_are_read_and_written_by_the_client(cluster: Any, tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    bank = SharedBank(shared(cluster, tmp_path / "bank.sqlite"), EMBEDDER)
    (added,) = bank.add([note("new")])
    assert bank.export(tmp_path / "export.jsonl") == len(bank)
    other = SharedBank(shared(cluster, tmp_path / "other.sqlite"), EMBEDDER)
    assert other.import_(tmp_path / "export.jsonl") == 1
    assert other.local_ids(tmp_path / "export.jsonl")[added] == len(other)
    with pytest.raises(BankError, match="is not an export"):
        other.import_(tmp_path / "absent")
    bank.copy_to(tmp_path / "copy.sqlite")
    with MemoryBank(tmp_path / "copy.sqlite", EMBEDDER) as copy:
        assert copy.snapshot() == bank.snapshot()
        assert copy.problems() == ()
    with pytest.raises(ConfigError, match="choose another name"):
        share(bank.url, tmp_path / "other.sqlite", EMBEDDER)


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_bank_that_is_not_shared_again_ends_the_run_in_one_line(cluster: Any, tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    url = shared(cluster, tmp_path / "bank.sqlite")
    bank = SharedBank(url, EMBEDDER, patience=1.0)
    unshare(url)
    with pytest.raises(KernelGymError, match="nothing in its file is lost"):
        bank.add([note("new")])
    with pytest.raises(ConfigError, match="start it with `kernel-gym memory share`"):
        SharedBank(url, EMBEDDER)
    share(url, tmp_path / "bank.sqlite", EMBEDDER)
    assert bank.add([note("new")]) == (len(bank),)


def run_on_bank(url: str, seed: int, folder: Path) -> None:
    overrides = {"agent": "random", "tasks": ["relu", "tanh"], "budget": 3, "seed": seed, "env": {"bank": url}}
    config = resolve(overrides=overrides)
    train(config, RunFolder.open(folder, config))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_runs_share_a_bank_whose_actor_is_killed_and_no_attempt_is_lost(cluster: Any, tmp_path: Path) -> None:
    """Run by `make test-slow`: two runs in processes of their own, and an actor that is killed five times."""
    url = shared(cluster, tmp_path / "bank.sqlite")
    bank, over, kills = SharedBank(url, EMBEDDER), Event(), []
    begun = len(bank)

    def kill() -> None:
        while len(kills) < 5 and not over.wait(3.0):  # for ever, a slow machine would make no attempt in between
            attempts = bank.attempts
            if attempts:
                kill_actor(bank)
                kills.append(attempts)

    killer = Thread(target=kill)
    killer.start()
    context = get_context("spawn")
    runs = [context.Process(target=run_on_bank, args=(url, seed, tmp_path / f"run-{seed}")) for seed in (0, 1)]
    try:
        for run in runs:
            run.start()
        for run in runs:
            run.join()
    finally:
        over.set()
        killer.join()
    assert [run.exitcode for run in runs] == [0, 0]
    assert kills, "the actor was killed while attempts were made"
    journals = [Journal.read(RunFolder(tmp_path / f"run-{seed}").journal) for seed in (0, 1)]
    assert bank.attempts == sum(map(len, journals)) == 12
    kernels = {item.code for item in bank.items(Kind.TRACE) if item.born}
    assert len(bank) > begun
    assert bank.problems() == ()
    recorded = sum(bank.outcomes([id])[id][stage].uses for id in range(1, len(bank) + 1) for stage in Stage)
    shown = [{*row["context"], *([] if row["start"] is None else [row["start"]])} for rows in journals for row in rows]
    assert recorded == sum(map(len, shown))
    for seed in (0, 1):
        with RunFolder(tmp_path / f"run-{seed}").open_bank() as copy:
            assert {item.code for item in copy.items(Kind.TRACE) if item.born} <= kernels


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_commands_of_the_page_work(cluster: Any, tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    commands = [line for block in blocks(PAGE) if block.language == "bash" for line in block.commands]
    assert [words.split()[1:3] for words in commands if words.startswith("kernel-gym memory")]
    for line in commands:
        words = shlex.split(line.replace("HOST:PORT", cluster.address))
        assert words[0] == "kernel-gym"
        done = run_python("-m", "kernel_gym", *words[1:], cwd=tmp_path)
        assert done.returncode == 0, f"{line}\n{done.stdout}\n{done.stderr}"
