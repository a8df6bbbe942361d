"""Several processes that use one bank, and processes that are killed while they write."""

import multiprocessing
import os
import signal
import sqlite3
import subprocess
import sys
import time

import pytest

from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage

EMBEDDER = StaticEmbedder()
WRITERS, ROUNDS = 4, 12


def note(name: str) -> MemoryItem:
    return MemoryItem(Kind.PRACTICE, f"note {name}", f"note {name} on a softmax kernel", task="level1/softmax")


def write(path, who: int) -> None:
    """Open the shared file, add two items per round, and record a use of the first item."""
    with MemoryBank(path, EMBEDDER) as bank:
        for turn in range(ROUNDS):
            bank.add([note(f"{who}/{turn}/a"), note(f"{who}/{turn}/b"), note("shared")])
            bank.record(Stage.DRAFT, [1], 1.0)
            assert len(bank.retrieve("softmax", 8)) >= 2


def whole(path) -> bool:
    connection = sqlite3.connect(path)
    result = connection.execute("PRAGMA integrity_check").fetchone()[0]
    connection.close()
    return result == "ok"


def test_concurrent_writers_lose_nothing(tmp_path):
    path = tmp_path / "bank.sqlite"
    context = multiprocessing.get_context("forkserver")
    processes = [context.Process(target=write, args=(path, who)) for who in range(WRITERS)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
    assert [process.exitcode for process in processes] == [0] * WRITERS
    with MemoryBank(path, EMBEDDER) as bank:
        assert bank.attempts == WRITERS * ROUNDS
        assert len(bank) == 2 * WRITERS * ROUNDS + 1
        assert bank.outcomes([1])[1][Stage.DRAFT].uses == WRITERS * ROUNDS
        texts = [item.title for item in bank.items()]
        # What one call added stands together: transactions don't interleave.
        for who in range(WRITERS):
            for turn in range(ROUNDS):
                place = texts.index(f"note {who}/{turn}/a")
                assert texts[place + 1] == f"note {who}/{turn}/b"
    assert whole(path)


def test_one_process_sees_what_another_adds_and_restores(tmp_path):
    path = tmp_path / "bank.sqlite"
    with MemoryBank(path, EMBEDDER) as ours, MemoryBank(path, EMBEDDER) as theirs:
        ours.add([note("first")])
        state = ours.snapshot()
        assert [result.item.title for result in theirs.retrieve("softmax", 9)] == ["note first"]
        theirs.add([note("second")])
        assert [item.title for item in ours.items()] == ["note first", "note second"]
        assert len(ours.retrieve("softmax", 9)) == 2
        theirs.restore(state)
        theirs.add([note("third")])
        # Item 2 is another one now; nothing remembered of the old one may be shown.
        assert {result.item.title for result in ours.retrieve("softmax", 9)} == {"note first", "note third"}
        assert ours.get(2).title == "note third"


def test_a_forked_child_may_go_on_using_the_bank(tmp_path):
    with MemoryBank(tmp_path / "bank.sqlite", EMBEDDER) as bank:
        bank.add([note("parent")])
        child = os.fork()
        if child == 0:
            bank.add([note("child")])
            os._exit(0 if len(bank.retrieve("softmax", 9)) == 2 else 1)
        assert os.waitpid(child, 0)[1] == 0
        bank.add([note("after")])
        assert [item.title for item in bank.items()] == ["note parent", "note child", "note after"]


OPEN_TOGETHER = """
import multiprocessing, os, sys
from pathlib import Path
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem
embedder = StaticEmbedder()
embedder.embed(["x"])  # read the tables once, before the fork
def open_new(path, barrier):
    barrier.wait()
    with MemoryBank(path, embedder) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "x", str(os.getpid()))])
fork = multiprocessing.get_context("fork")
for turn in range(15):
    barrier = fork.Barrier(6)
    children = [fork.Process(target=open_new, args=(Path(sys.argv[1]) / f"{turn}", barrier)) for _ in range(6)]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 6
"""


def test_a_new_file_may_be_opened_by_many_at_once(tmp_path):
    subprocess.run([sys.executable, "-c", OPEN_TOGETHER, str(tmp_path)], check=True)
    for file in tmp_path.iterdir():
        with MemoryBank(file, EMBEDDER) as bank:
            assert (len(bank), bank.attempts) == (6, 6)


ENDLESS_WRITER = """
import sys
from pathlib import Path
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
bank = MemoryBank(Path(sys.argv[1]), StaticEmbedder())
turn = bank.attempts
while True:
    turn += 1
    bank.add([MemoryItem(Kind.PRACTICE, f"{turn}/{part}", f"{turn}/{part} " + "x" * 500) for part in range(3)])
    bank.record(Stage.DRAFT, [1], 1.0)
    print(turn, flush=True)
"""


@pytest.mark.parametrize("patience", [0.0, 0.03, 0.1])
def test_a_killed_writer_loses_nothing_it_committed(tmp_path, patience):
    path = tmp_path / "bank.sqlite"
    for _ in range(2):  # the second writer goes on where the first was killed
        writer = subprocess.Popen(
            [sys.executable, "-c", ENDLESS_WRITER, str(path)], stdout=subprocess.PIPE, text=True, bufsize=1
        )
        writer.stdout.readline()
        time.sleep(patience)
        writer.send_signal(signal.SIGKILL)
        reported = [line for line in writer.stdout.read().splitlines() if line]
        writer.wait()
        with MemoryBank(path, EMBEDDER) as bank:
            turns = bank.attempts
            assert turns >= (int(reported[-1]) if reported else 1)
            # Whole attempts only: three items for each attempt counted.
            assert [item.title for item in bank.items()] == [f"{t}/{p}" for t in range(1, turns + 1) for p in range(3)]
            assert turns - 2 <= bank.outcomes([1])[1][Stage.DRAFT].uses <= turns
            assert len(bank.retrieve("x", 5)) == min(5, 3 * turns)
    assert whole(path)
