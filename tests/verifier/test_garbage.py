"""Damaged kernels: nothing breaks, nothing leaks, and what is called feasible is right by an independent check."""

import gc
import os
import random
import shutil
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case
from kernel_gym.verdict import Unjudged
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.screening.source import read

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

SOURCES = [path.read_text() for path in sorted((Path(__file__).parent / "honest").glob("relu_*.cpp"))]
NUMBERS = ["0", "1", "2", "3", "8", "31", "32", "63", "64", "100", "1000", "4095", "65536", "4294967295"]
OPERATORS = ["+", "-", "*", "/", "%", "<", ">", "<=", ">=", "==", "&&", "||", "=", "+=", ","]


#: Bytes by which the process may grow over half of the kernels.
LEAK = 256 << 20


def mutant(rng: random.Random) -> str:
    """A kernel with a few statements or tokens changed; most still compile."""
    lines = rng.choice(SOURCES).splitlines()
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        change = rng.choice((change_token, change_token, drop_statement, repeat_statement, swap_statements))
        change(lines, rng)
    text = "\n".join(lines) + "\n"
    if rng.random() < 0.05:
        text = text[: rng.randrange(len(text))] + "".join(chr(rng.randrange(1, 256)) for _ in range(20))
    return text


def statements(lines: list[str]) -> list[int]:
    return [i for i, line in enumerate(lines) if line.startswith("    ") and line.endswith(";")]


def drop_statement(lines: list[str], rng: random.Random) -> None:
    lines[rng.choice(statements(lines))] = ""


def repeat_statement(lines: list[str], rng: random.Random) -> None:
    lines[rng.choice(statements(lines))] += lines[rng.choice(statements(lines))]


def swap_statements(lines: list[str], rng: random.Random) -> None:
    a = rng.choice(statements(lines))
    b = min(statements(lines), key=lambda i: (i == a, abs(i - a)))
    lines[a], lines[b] = lines[b], lines[a]


def change_token(lines: list[str], rng: random.Random) -> None:
    row = rng.choice([i for i, line in enumerate(lines) if read(line).tokens and not line.startswith("#")])
    tokens = [token.text for token in read(lines[row]).tokens]
    old = rng.choice(tokens)
    kinds = (NUMBERS, OPERATORS, [word for word in tokens if word.isidentifier()] or [""])
    new = rng.choice(
        next((kind for kind in kinds if old in kind or (kind is NUMBERS and old.isdigit())), ["", old * 2])
    )
    lines[row] = lines[row].replace(old, new, 1)


def is_right(device: AscendSim, kernel: Kernel, task, rng: random.Random) -> bool:
    """Without the verifier: other sizes, other values, numpy's maximum, plain equality."""
    build = device.build(kernel, task)
    names = [name for name, _ in task.timing.sizes]
    case = Case("second", "hidden", tuple((name, rng.choice((1, 5, 37, 64, 129))) for name in names))
    signature = task.instance(case).signature
    values = np.random.default_rng(rng.randrange(2**32)).standard_normal(signature.inputs[0].shape).astype(np.float32)
    run = device.run(build, Inputs(signature, (values,)))
    return run.status == "ok" and np.array_equal(run.outputs[0], np.maximum(values, 0))


def resident_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def children() -> list[str]:
    processes = []
    for thread in Path("/proc/self/task").iterdir():
        with suppress(FileNotFoundError):  # a thread may end meanwhile
            processes += (thread / "children").read_text().split()
    return processes


def leftovers(folder: Path) -> tuple[int, int, int]:
    gc.collect()  # files that earlier tests left to the garbage collector must not be closed in between
    return len(children()), len(os.listdir("/proc/self/fd")), len(list(folder.iterdir()))


def judge_mutants(count: int, seed: int, folder: Path) -> dict[str, int]:
    rng, task = random.Random(seed), suites.find_task("level1/relu")
    outcomes: dict[str, int] = {}
    with Verifier(AscendSim(), cache=False, unsafe=True) as verifier, AscendSim() as second:
        verifier.verify(Kernel(SOURCES[0]), task)
        assert is_right(second, Kernel(SOURCES[0]), task, rng)
        before, warm = leftovers(folder), 0
        for index in range(count):
            if index == count // 2:
                warm = resident_bytes()
            kernel = Kernel(mutant(rng))
            verdict = verifier.verify(kernel, task)
            assert not isinstance(verdict, Unjudged), (verdict.feedback, kernel.source)
            assert verdict.feedback
            assert not verdict.feasible or is_right(second, kernel, task, rng), kernel.source
            outcomes[verdict.outcome] = outcomes.get(verdict.outcome, 0) + 1
        assert leftovers(folder) == before
        assert resident_bytes() - warm < LEAK, "memory that grows with every kernel"
        assert verifier.verify(Kernel(SOURCES[0]), task).feasible
    return outcomes


def test_damaged_kernels(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outcomes = judge_mutants(60, 1, tmp_path)
    with capsys.disabled():
        print(f"\ndamaged kernels: {outcomes}")
    assert sum(outcomes.values()) == 60
    assert len(outcomes) >= 3


@pytest.mark.slow
@pytest.mark.timeout(0)
def test_ten_thousand_damaged_kernels(tmp_path, monkeypatch, capsys):
    """Half an hour: `python -m pytest -m slow tests/verifier/test_garbage.py`."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    outcomes = judge_mutants(10_000, 2, tmp_path)
    with capsys.disabled():
        print(f"\ndamaged kernels: {outcomes}")
