"""`kernel-gym suite coverage`: what becomes of problem files, in a table and as CSV, and going on from a file."""

import csv
import json
from pathlib import Path

import pytest
from script import run_script

from kernel_gym.experiments.analysis import file_coverage
from kernel_gym.experiments.analysis.file_coverage import Coverage, as_csv, as_markdown

GOOD = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(8, 64)]

def get_init_inputs():
    return []
"""
RESULTS = [
    Coverage("a/1.py", "a", True, True, True, 2.5),
    Coverage("a/2.py", "a", True, True, False, reason="wrong"),
    Coverage("a/3.py", "a", True, False, reason="aten.sort.default"),
    Coverage("b/1.py", "b", False, reason="defines no Model | at all"),
]


def test_the_table_counts_by_group_and_the_reasons_by_number():
    lines = as_markdown(RESULTS).splitlines()
    assert "| a | 3 | 3 | 2 | 2 | 1 |" in lines
    assert "| b | 1 | 0 | 0 | 0 | 0 |" in lines
    assert "| all | 4 | 3 | 2 | 2 | 1 |" in lines
    assert "| 1 | load | defines no Model \\| at all |" in lines
    assert "| 1 | oracle | aten.sort.default |" in lines
    assert "| 1 | verdict | wrong |" in lines


def test_the_csv_has_a_row_for_each_file():
    rows = list(csv.DictReader(as_csv(RESULTS).splitlines()))
    assert [row["file"] for row in rows] == ["a/1.py", "a/2.py", "a/3.py", "b/1.py"]
    assert (rows[0]["latency_us"], rows[2]["feasible"]) == ("2.50", "")


def test_a_fault_of_the_author_is_the_reason_of_its_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    def fail(task: object) -> None:
        raise IndexError("list index out of range")

    (tmp_path / "1_ReLU.py").write_text(GOOD)
    monkeypatch.setattr(file_coverage, "oracle", fail)
    result = file_coverage.cover(tmp_path / "1_ReLU.py", None)
    assert (result.loads, result.oracle, result.reason) == (True, False, "IndexError: list index out of range")


@pytest.mark.slow
def test_the_command_counts_a_folder_and_goes_on(tmp_path: Path):
    folder = tmp_path / "mine"
    folder.mkdir()
    (folder / "1_ReLU.py").write_text(GOOD)
    (folder / "2_Fourier.py").write_text(GOOD.replace("torch.relu(x)", "torch.fft.rfft(x).abs()"))
    (folder / "3_Broken.py").write_text("import torch_npu\n")
    arguments = [str(folder), "--trust", "--out", str(tmp_path / "out.jsonl"), "--csv", str(tmp_path / "out.csv")]
    first = run_script("suite", "coverage", *arguments)
    assert "| mine | 3 | 2 | 1 | 1 | 1 |" in first.stdout, first.stderr
    assert "another form, NPUKernelBench's" in first.stdout
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 4
    (tmp_path / "out.jsonl").write_text(
        (tmp_path / "out.jsonl").read_text().replace("aten._fft_r2c.default", "said before")
    )
    again = run_script("suite", "coverage", *arguments, "--json")
    assert [row["reason"] for row in json.loads(again.stdout)][1] == "said before"


@pytest.mark.slow
def test_several_workers_say_the_same_as_one(tmp_path: Path):
    for name in ("1_ReLU", "2_Again"):
        (tmp_path / f"{name}.py").write_text(GOOD)
    (tmp_path / "3_Broken.py").write_text("import torch_npu\n")
    first, second = (
        json.loads(run_script("suite", "coverage", str(tmp_path), "--every", "2", "--json", *options).stdout)
        for options in ([], ["--workers", "2"])
    )
    assert [(row["file"], row["loads"], row["feasible"]) for row in first] == [
        (row["file"], row["loads"], row["feasible"]) for row in second
    ]
    assert [row["feasible"] for row in first] == [True, None, None]
