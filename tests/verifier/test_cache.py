"""The cache of verdicts: many processes, damage, speed in memory."""

import json
import multiprocessing
import shutil

import pytest

import kernel_gym.hardware
import kernel_gym.tasks
import kernel_gym.verifier
from kernel_gym.verdict import Cheated, Feasible, Profile, Uncompilable, Unjudged
from kernel_gym.verifier.cache import VerdictCache, key_of, verifier_version

GOOD = Feasible("fine", latency=1.25, profile=Profile(pipes={"V": 0.5}, bottleneck="vector"), notes=("a", "b"))


def test_verdicts_come_back_as_they_were(tmp_path):
    for index, verdict in enumerate((GOOD, Uncompilable("no", line=3), Cheated("x", gate="binary", rule="ifunc"))):
        VerdictCache(tmp_path).put(key_of(str(index)), verdict)
        assert VerdictCache(tmp_path).get(key_of(str(index))) == verdict


@pytest.mark.parametrize("package", [kernel_gym.verifier, kernel_gym.hardware, kernel_gym.tasks])
def test_a_change_of_any_source_that_decides_a_verdict_changes_every_key(tmp_path, monkeypatch, package):
    before = key_of("kernel")
    copy = tmp_path / "copy"
    shutil.copytree(package.__path__[0], copy, ignore=shutil.ignore_patterns("*.cpp", "*.h", "__pycache__"))
    changed = max(copy.rglob("*.py"), key=lambda file: len(file.parts))
    changed.write_text(changed.read_text() + "\n")
    monkeypatch.setattr(package, "__path__", [str(copy)])
    verifier_version.cache_clear()
    try:
        assert key_of("kernel") != before
    finally:
        verifier_version.cache_clear()


def test_unjudged_verdicts_are_not_cached(tmp_path):
    cache = VerdictCache(tmp_path)
    cache.put("k", Unjudged("worker died"))
    assert cache.get("k") is None
    assert list(tmp_path.rglob("*")) == []


def test_damaged_entries_count_as_missing_and_are_written_anew(tmp_path):
    key = key_of("kernel")
    VerdictCache(tmp_path).put(key, GOOD)
    (file,) = (path for path in tmp_path.rglob("*.json"))
    whole = file.read_bytes()
    forged = json.loads(whole)
    forged["verdict"]["latency"] = 0.001
    for damage in (b"", whole[: len(whole) // 2], b"null", b"\xff\xfe", json.dumps(forged).encode()):
        file.write_bytes(damage)
        cache = VerdictCache(tmp_path)
        assert cache.get(key) is None
        cache.put(key, GOOD)
        assert VerdictCache(tmp_path).get(key) == GOOD


def test_an_unwritable_disk_does_not_change_the_verdict(tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("not a folder")
    cache = VerdictCache(blocked)
    cache.put("ab", GOOD)
    assert cache.get("ab") == GOOD


def test_memory_is_bounded(tmp_path):
    cache = VerdictCache(tmp_path, remembered=10)
    for index in range(50):
        cache.put(key_of(str(index)), GOOD)
    assert len(cache._memory) == 10
    assert cache.get(key_of("0")) == GOOD


def write_and_read(folder):
    cache = VerdictCache(folder)
    for _ in range(20):
        for index in range(15):
            key, verdict = key_of(str(index)), Uncompilable("x" * 5000, line=index)
            stored = VerdictCache(folder).get(key)
            assert stored is None or stored == verdict, stored
            cache.put(key, verdict)


def test_many_processes_share_a_folder(tmp_path):
    context = multiprocessing.get_context("fork")
    writers = [context.Process(target=write_and_read, args=(tmp_path,)) for _ in range(4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
        assert writer.exitcode == 0
    assert len(list(tmp_path.rglob("*.json"))) == 15
    assert list(tmp_path.rglob(".*")) == []
