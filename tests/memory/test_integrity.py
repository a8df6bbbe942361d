"""Checks of a bank report every kind of damage."""

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest
from repository import ROOT

from kernel_gym.memory.bank import PREVIOUS, BankError, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Uncompilable

SCRIPT = ROOT / "scripts" / "memory.py"
DAMAGE = {
    "content": ("UPDATE items SET data = replace(data, 'body 1', 'body 9') WHERE id = 3", "item 3: its content"),
    "device": (
        "UPDATE items SET data = json_set(data, '$.verdict.device', 'other') WHERE id = 3",
        "item 3: its content is not what was stored",
    ),
    "order": ("UPDATE items SET born = born + 1 WHERE id = 2", "item 2: it does not follow"),
    "column": ("UPDATE items SET feasible = 1, latency = 0.5 WHERE id = 3", "item 3: its feasible is not"),
    "vector": ("UPDATE vectors SET data = x'00' WHERE item = 3", "vectors: those of static"),
    "gap": ("DELETE FROM items WHERE id = 2", "item 3: the item before it is missing"),
    "reference": ("UPDATE items SET parent = 3 WHERE id = 1", "item 1: refers to item 3"),
    "unreadable": ("UPDATE items SET data = '{}' WHERE id = 1", "item 1: cannot be read"),
    "statistics": ("INSERT INTO outcomes VALUES (77, 'draft', 1, 1.0, 0.2)", "outcomes: 1 rows belong to no item"),
    "edges": ("INSERT INTO edges (start, child) VALUES (1, 77)", "edges: 1 rows belong to no item"),
    "parent": ("UPDATE items SET parent = 1 WHERE id = 3", "item 3: it is no child of its own parent"),
    "title": ("UPDATE items SET data = json_set(data, '$.title', 5) WHERE id = 2", "item 2: cannot be read (title: "),
    "operators": (
        "UPDATE items SET data = json_set(data, '$.operators', json('[1]')) WHERE id = 2",
        "item 2: cannot be read (operators.0: ",
    ),
    "no verdict": (
        "UPDATE items SET data = json_set(data, '$.verdict', NULL) WHERE id = 2",
        "item 2: cannot be read (an item of the kind experience needs its verdict)",
    ),
    "birth": ("UPDATE items SET born = 'x' WHERE id = 2", "item 2: cannot be read (born: "),
    "stage": ("UPDATE outcomes SET stage = 'bogus' WHERE item = 2", "outcomes: those of item 2 cannot be read (0: "),
    "uses": ("UPDATE outcomes SET uses = 0 WHERE item = 2", "outcomes: those of item 2 cannot be read (1: "),
    "no trace": ("UPDATE items SET source = 2 WHERE id = 4", "item 4: refers to item 2"),
    "no start": ("INSERT INTO edges (start, child) VALUES (1, 2)", "edges: 1 ends are no traces"),
    "counter": ("UPDATE meta SET value = 0 WHERE key = 'attempts'", "attempts: the counter says 0"),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    file = tmp_path / "bank.sqlite"
    with MemoryBank(file, StaticEmbedder()) as bank:
        for i in range(3):
            bank.add(
                [
                    MemoryItem(Kind.TRACE, f"{i}", f"body {i}", verdict=Uncompilable("no")),
                    MemoryItem(Kind.EXPERIENCE, "", f"x{i}", verdict=Uncompilable("no"), source=PREVIOUS),
                ]
            )
        bank.record(Stage.DRAFT, [1, 2], 1.0)
    return file


def test_a_bank_is_intact_after_every_operation(path: Path, tmp_path: Path) -> None:
    with MemoryBank(path, StaticEmbedder()) as bank, MemoryBank(None, StaticEmbedder()) as other:
        before = bank.snapshot()
        bank.add([MemoryItem(Kind.PRACTICE, "p", "p")])
        bank.restore(before)
        bank.export(tmp_path / "out.jsonl")
        other.import_(tmp_path / "out.jsonl")
        assert bank.problems() == other.problems() == ()


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_found_and_named(path: Path, kind: str) -> None:
    statement, says = DAMAGE[kind]
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA foreign_keys = OFF")
    connection.execute(statement)
    connection.commit()
    connection.close()
    with MemoryBank(path, StaticEmbedder(), read_only=True) as bank:
        assert any(problem.startswith(says) for problem in bank.problems()), bank.problems()


@pytest.mark.parametrize("kind", ["stage", "uses", "unreadable", "no verdict"])
def test_an_unreadable_item_is_a_one_line_error_that_names_the_check(path: Path, kind: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(DAMAGE[kind][0])
    connection.commit()
    connection.close()
    with (
        MemoryBank(path, StaticEmbedder()) as bank,
        pytest.raises(BankError, match=r"cannot be read; `kernel-gym memory check`"),
    ):
        bank.retrieve("body", 9)


def test_outcomes_of_no_item_do_not_keep_a_bank_from_being_saved(path: Path, tmp_path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute(DAMAGE["statistics"][0])
    connection.commit()
    connection.close()
    with MemoryBank(path, StaticEmbedder(), read_only=True) as bank, MemoryBank(None, StaticEmbedder()) as other:
        bank.export(tmp_path / "out.jsonl")
        other.import_(tmp_path / "out.jsonl")
        assert other.items() == bank.items()
        assert other.problems() == ()


def test_the_command_reports_damage_by_its_exit_status(path: Path) -> None:
    done = subprocess.run([sys.executable, str(SCRIPT), "check", str(path)], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "whole: 6 items\n")
    connection = sqlite3.connect(path)
    connection.execute(DAMAGE["content"][0])
    connection.commit()
    connection.close()
    done = subprocess.run([sys.executable, str(SCRIPT), "check", str(path)], capture_output=True, text=True)
    assert done.returncode == 1
    assert "item 3: its content is not what was stored" in done.stdout


def test_an_item_that_was_rolled_back_is_never_shown_again(path: Path) -> None:
    with MemoryBank(path, StaticEmbedder()) as bank:
        lost = MemoryItem(Kind.PRACTICE, "lost", "lost")
        with pytest.raises(BankError):
            bank.add([lost, MemoryItem(Kind.TRACE, "bad", "bad", verdict=Uncompilable("no"), parent=999)])
        (id,) = bank.add([MemoryItem(Kind.PRACTICE, "kept", "kept")])
        assert bank.get(id).title == "kept"
        assert bank.problems() == ()
