import hashlib
import resource
import sqlite3
from contextlib import closing, contextmanager
from pathlib import Path

import pytest

from kernel_gym.errors import KernelGymError
from kernel_gym.memory import rows
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.memory.schema import MIGRATIONS, BankError, migrate
from kernel_gym.memory.store import Store
from kernel_gym.verdict import Uncompilable

EMBEDDER = StaticEmbedder()
ITEM = MemoryItem(Kind.PRACTICE, "double buffering", "give each queue two buffers", id=1)


def a_bank(path):
    with MemoryBank(path, EMBEDDER) as bank:
        bank.add([ITEM] + [MemoryItem(Kind.PRACTICE, f"{i}", f"{i}" * 300) for i in range(200)])


def test_a_file_of_version_one_is_brought_up_to_date(tmp_path):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, 1)
    digest = rows.digest(ITEM)
    connection.execute(
        "INSERT INTO items (id, digest, chain, kind, task, category, language, feasible, born, data)"
        " VALUES (1, ?, ?, 'practice', '', '', 'ascendc', 0, 0, ?)",
        (digest, rows.chain("", digest, 0), rows.pack(ITEM)),
    )
    connection.execute("INSERT INTO outcomes VALUES (1, 'refine', 2, 1.0, 0.3)")
    connection.close()

    before = path.read_bytes()
    with MemoryBank(path, EMBEDDER, read_only=True) as bank:  # read through a copy, the file stays as it was
        assert bank.get(1) == ITEM
        assert bank.problems() == ()
        with pytest.raises(BankError, match="read-only"):
            bank.add([ITEM])
    assert path.read_bytes() == before
    with MemoryBank(path, EMBEDDER) as bank:
        assert bank.get(1) == ITEM
        (result,) = bank.retrieve("two buffers", 1)
        assert (result.item, result.outcomes[Stage.REFINE].mean, bank.origin(1)) == (ITEM, 0.5, "")
        bank.restore(bank.snapshot())
    connection = sqlite3.connect(path)
    assert connection.execute("PRAGMA user_version").fetchone()[0] == len(MIGRATIONS)
    assert connection.execute("SELECT count(*) FROM vectors").fetchone()[0] == 1


def test_children_of_a_file_of_version_two_are_found(tmp_path):
    path = tmp_path / "old.sqlite"
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, 2)
    chain = ""
    for id, parent in ((1, None), (2, 1)):
        item = MemoryItem(Kind.TRACE, f"{id}", f"{id}", verdict=Uncompilable(""))
        chain = rows.chain(chain, digest := rows.digest(item), 0)
        connection.execute(
            "INSERT INTO items (id, digest, chain, kind, task, category, language, feasible, parent, born, data)"
            " VALUES (?, ?, ?, 'trace', '', '', 'ascendc', 0, ?, 0, ?)",
            (id, digest, chain, parent, rows.pack(item)),
        )
    connection.close()
    for read_only in (True, False):
        with MemoryBank(path, EMBEDDER, read_only=read_only) as bank:
            assert [item.id for item in bank.children(1)] == [2]
            assert bank.problems() == ()


def a_bank_of_version_three(path):
    """Make traces of two devices and one without a device, with addresses of the earlier version."""
    connection = sqlite3.connect(path, isolation_level=None)
    migrate(connection, 3)
    chain = ""
    for id, device in enumerate(("", "one", "one", "other"), start=1):
        digest = hashlib.sha256(f"trace\0\0ascendc\0{id}".encode()).hexdigest()
        chain = hashlib.sha256(f"{chain}\0{digest}\0{0}".encode()).hexdigest()
        connection.execute(
            "INSERT INTO items (id, digest, chain, kind, task, category, language, feasible, born, data)"
            " VALUES (?, ?, ?, 'trace', '', '', 'ascendc', 0, 0, ?)",
            (id, digest, chain, rows.pack(judged(id, device))),
        )
    return connection


def judged(id, device):
    return MemoryItem(Kind.TRACE, f"{id}", f"{id}", verdict=Uncompilable("", device=device), id=id)


def test_traces_of_a_file_of_version_three_are_those_of_their_device(tmp_path):
    path = tmp_path / "old.sqlite"
    a_bank_of_version_three(path).close()
    for read_only in (True, False):
        with MemoryBank(path, EMBEDDER, read_only=read_only) as bank:
            assert [item.verdict.device for item in bank.items()] == ["", "one", "one", "other"]
            assert bank.problems() == ()
    with MemoryBank(path, EMBEDDER) as bank:
        assert bank.add([judged(1, ""), judged(2, "one"), judged(4, "other")]) == (1, 2, 4)
        assert bank.add([judged(2, "other"), judged(4, "one")]) == (5, 6)
        assert bank.problems() == ()


@pytest.mark.parametrize(
    ("damage", "problem"),
    [
        ("UPDATE items SET data = replace(data, '\"2\"', '\"9\"') WHERE id = 2", "item 2: its content is not what was"),
        ("UPDATE items SET data = 'nothing' WHERE id = 2", "item 2: cannot be read"),
        ("UPDATE items SET born = 7 WHERE id = 2", "item 2: it does not follow from the item before it"),
    ],
)
def test_damage_is_still_reported_after_a_migration(tmp_path, damage, problem):
    path = tmp_path / "old.sqlite"
    connection = a_bank_of_version_three(path)
    connection.execute("UPDATE meta SET value = 7 WHERE key = 'attempts'")
    connection.execute(damage)
    connection.close()
    with MemoryBank(path, EMBEDDER, read_only=True) as bank:
        assert len(bank.problems()) == 1
        assert bank.problems()[0].startswith(problem)


def test_migrating_twice_changes_nothing():
    connection = sqlite3.connect(":memory:", isolation_level=None)
    migrate(connection)
    before = connection.execute("SELECT sql FROM sqlite_master").fetchall()
    migrate(connection)
    assert connection.execute("SELECT sql FROM sqlite_master").fetchall() == before


def test_a_newer_file_is_refused_in_one_line(tmp_path):
    path = tmp_path / "new.sqlite"
    a_bank(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(BankError, match="newer kernel_gym") as caught:
        MemoryBank(path, EMBEDDER)
    assert "\n" not in str(caught.value)


def test_a_foreign_database_is_refused(tmp_path):
    path = tmp_path / "foreign.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.commit()
    connection.close()
    with pytest.raises(BankError, match="not a memory bank"):
        MemoryBank(path, EMBEDDER)


@pytest.mark.parametrize("damage", ["text", "truncated", "scribbled"])
def test_a_broken_file_is_refused_in_one_line(tmp_path, damage):
    path = tmp_path / "broken.sqlite"
    a_bank(path)
    data = bytearray(path.read_bytes())
    if damage == "text":
        data = bytearray(b"these are not the bytes of a database" * 40)
    elif damage == "truncated":
        del data[len(data) // 2 :]
    else:
        data[4096 : len(data) - 4096] = b"\x5a" * (len(data) - 8192)
    path.write_bytes(data)
    with pytest.raises(KernelGymError) as caught:
        MemoryBank(path, EMBEDDER)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(BankError, match="no folder"):
        MemoryBank(tmp_path / "absent" / "bank.sqlite", EMBEDDER)


def test_an_empty_file_is_no_bank_to_read(tmp_path):
    (tmp_path / "empty.sqlite").touch()
    with pytest.raises(BankError, match="is empty"):
        MemoryBank(tmp_path / "empty.sqlite", EMBEDDER, read_only=True)


@contextmanager
def no_room(path, bank):
    """Limit the size of files, so that writing fails."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (path.stat().st_size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def full(path, bank):
    connection = bank._store.connection
    pages = connection.execute("PRAGMA page_count").fetchone()[0]
    connection.execute(f"PRAGMA max_page_count = {pages}")
    yield
    connection.execute(f"PRAGMA max_page_count = {2**30}")


@contextmanager
def read_only(path, bank):
    bank._store.connection.execute("PRAGMA query_only = ON")
    yield
    bank._store.connection.execute("PRAGMA query_only = OFF")


@pytest.mark.parametrize("trouble", [no_room, full, read_only])
def test_errors_around_a_healthy_bank_do_not_advise_to_delete_it(tmp_path, trouble):
    path = tmp_path / "bank.sqlite"
    a_bank(path)
    more = [MemoryItem(Kind.PRACTICE, f"more {i}", f"{i} " * 3_000) for i in range(100)]
    with MemoryBank(path, EMBEDDER) as bank:
        with trouble(path, bank), pytest.raises(BankError) as caught:
            bank.add(more)
        assert "nothing in it is lost" in str(caught.value)
        assert "delete" not in str(caught.value)
        assert "\n" not in str(caught.value)
        assert (len(bank), bank.problems()) == (201, ())
        assert len(bank.add(more)) == 100
    with MemoryBank(path, EMBEDDER) as bank:
        assert bank.get(1).text == ITEM.text
        assert (len(bank), bank.problems()) == (301, ())


def test_a_closed_bank_says_so(tmp_path):
    a_bank(tmp_path / "bank.sqlite")
    bank = MemoryBank(tmp_path / "bank.sqlite", EMBEDDER)
    bank.close()
    uses = (
        lambda: bank.get(1),
        lambda: len(bank),
        lambda: bank.attempts,
        lambda: bank.outcomes([1]),
        lambda: bank.retrieve("buffers", 1),
        lambda: bank.add([ITEM]),
    )
    for use in uses:
        with pytest.raises(BankError, match="closed") as caught:
            use()
        assert "delete" not in str(caught.value)


def test_a_folder_in_place_of_a_bank_cannot_be_opened(tmp_path):
    with pytest.raises(BankError, match="cannot open") as caught:
        MemoryBank(tmp_path, EMBEDDER)
    assert "delete" not in str(caught.value)


def test_a_store_is_found_by_a_relative_path(tmp_path, monkeypatch):
    a_bank(tmp_path / "bank.sqlite")
    monkeypatch.chdir(tmp_path)
    with closing(Store(Path("bank.sqlite"), read_only=True)) as store:
        assert store.tip()[0] == 201
