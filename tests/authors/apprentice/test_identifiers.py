"""Tests of the names in kernels for files of one's own: any file name gives a kernel that compiles."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from script import run_script

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, oracle
from kernel_gym.authors.apprentice.frontend.identifiers import KEYWORDS, task_identifier, tensor_identifier
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.verifier import Verifier

PROBLEM = """
import torch
import torch.nn as nn

rows, columns = 16, 64

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.new = nn.Parameter(torch.randn(columns))

    def forward(self, x, default):
        return torch.relu(x + default) * self.new

def get_inputs():
    return [torch.randn(rows, columns), torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""
FILES = ("mine.py", "1_Leaky-Add.py", "my-op.py", "new.py", "a b.c.py", "ü.py", "__.py")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim()) as verifier:
        yield verifier


@pytest.mark.parametrize("name", [*FILES[:3], *(pytest.param(name, marks=pytest.mark.slow) for name in FILES[3:])])
def test_the_oracle_profile_writes_a_feasible_kernel_whatever_the_file_is_called(
    name: str, verifier: Verifier, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(PROBLEM)
    task = suites.find_task(str(tmp_path / name))
    kernel = Apprentice("oracle").write(task, (), None, np.random.default_rng(0))
    verdict = verifier.verify(kernel, task)
    assert verdict.feasible, verdict.feedback


@pytest.mark.parametrize("name", FILES)
def test_the_kernel_function_of_cuda_has_a_valid_name(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(PROBLEM)
    source = oracle(suites.find_task(str(tmp_path / name)), "cuda").source
    assert re.search(rf"__global__ void (\w+ )*{task_identifier(name)}_kernel\(", source), source


@pytest.mark.parametrize(
    ("name", "identifier"),
    [
        ("relu", "relu"),
        ("mine.py", "mine"),
        ("1_Leaky-Add.py", "op_1_Leaky_Add"),
        ("my-op.py", "my_op"),
        ("new.py", "op_new"),
        ("ü.py", "op"),
    ],
)
def test_a_task_name_becomes_an_identifier(name: str, identifier: str) -> None:
    assert task_identifier(name) == identifier


def test_the_names_of_packaged_tasks_stay() -> None:
    names = [task.name for suite in suites.SUITES for task in suites.load_suite(suite)]
    assert [task_identifier(name) for name in names] == names


def test_a_tensor_name_becomes_an_identifier() -> None:
    names = ("x", "linear.weight", "0.weight", "new", "_", "β")
    labels = [tensor_identifier(name) for name in names]
    assert labels == ["x", "linearWeight", "tensor0Weight", "tensorNew", "tensor", "tensor"]
    assert KEYWORDS.fullmatch("co_await")
    assert not KEYWORDS.fullmatch("news")


def test_training_on_a_folder_of_files_compiles_kernels(tmp_path: Path) -> None:
    (tmp_path / "problems").mkdir()
    (tmp_path / "problems" / "1_Leaky-Add.py").write_text(PROBLEM)
    words = ("--agent", "random", "--suite", tmp_path / "problems", "--budget", 2, "--out", tmp_path / "run")
    finished = run_script("train", *words, "--set", "env.author_options.profile=oracle", "--set", "workers=1")
    assert finished.returncode == 0, finished.stderr
    assert '"compiled": true' in (tmp_path / "run" / "results.jsonl").read_text()
