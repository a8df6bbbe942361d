"""What kernel texts show is read once: processes share it, and a broken file costs time alone."""

import multiprocessing
from pathlib import Path
from typing import Any

import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice.ascendc.schedule import NAIVE
from kernel_gym.authors.apprentice.forecast.fact_store import FactStore
from kernel_gym.authors.apprentice.forecast.kernel_texts import TaskTexts, TextFacts, TextReader
from kernel_gym.authors.apprentice.language_backend import backend
from kernel_gym.memory.words import words


def texts_of(file: Path, *known: str) -> tuple[TextReader, TaskTexts]:
    """Return the kernels of relu with a reader that has met some words already."""
    reader = TextReader(backend("ascendc"), [frozenset({"DataCopy"}), frozenset({"Exp"})], words)
    for word in known:
        reader.vocabulary.setdefault(word, len(reader.vocabulary))
    task = suites.find_task("level1/relu")
    return reader, TaskTexts(task, backend("ascendc"), reader, FactStore(file), lambda task: texts_of(file)[1])


def facts_of(reader: TextReader, texts: TaskTexts) -> list[Any]:
    """Return what a kernel and each of its single mistakes show, in plain values."""
    text = texts.text(NAIVE)
    shown: list[Any] = [plain(reader, text.facts), text.needed]
    for column in text.needed:
        mistake = texts.mistake(NAIVE, column, 1)
        shown += [plain(reader, mistake.difference), mistake.line, mistake.code]
    return shown


def plain(reader: TextReader, facts: TextFacts) -> tuple[Any, ...]:
    counts = zip(reader.vocabulary, facts.words.tolist(), strict=False)
    return facts.flags.tolist(), facts.length, {word: count for word, count in counts if count}


def test_what_was_read_is_not_written_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "folder" / "facts.sqlite"
    first = facts_of(*texts_of(file))
    assert len(first) > 10
    assert first[0][2]
    monkeypatch.setattr(TaskTexts, "_written", lambda *_: pytest.fail("a kernel was written again"))
    assert facts_of(*texts_of(file, "words", "in", "another", "order")) == first


def test_a_file_that_cannot_be_read_costs_time_alone(tmp_path: Path) -> None:
    damaged, whole = tmp_path / "damaged.sqlite", tmp_path / "whole.sqlite"
    damaged.write_bytes(b"this is no database, " * 100)
    assert facts_of(*texts_of(damaged)) == facts_of(*texts_of(whole))
    assert facts_of(*texts_of(tmp_path / "whole.sqlite" / "below a file")) == facts_of(*texts_of(whole))


def test_processes_share_a_store_also_after_a_fork(tmp_path: Path) -> None:
    store = FactStore(tmp_path / "facts.sqlite")
    store.keep("mine", {"count": 1})
    child = multiprocessing.get_context("fork").Process(target=store.keep, args=("the child's", {"count": 2}))
    child.start()
    child.join()
    assert store.load("mine") == {"count": 1}
    assert store.load("the child's") == {"count": 2}
    assert store.load("nobody's") is None
