"""Runs as datasets."""

import json
from pathlib import Path
from typing import Any

import pytest
from journals import journal_row
from model_server import saying, serving
from repository import ROOT
from script import run_script

from kernel_gym.config import resolve
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.dataset import RecordedRun, open_runs
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import train

RELU = (ROOT / "tests" / "verifier" / "honest" / "relu_class.cpp").read_text()
SLOWER = RELU.replace("Relu(y, x, n);", "Relu(y, x, n);\n        AscendC::Relu(y, y, n);")
#: Something wrong, something right, and a change of it as a diff.
ANSWERS = [
    "no code",
    f"Here:\n```cpp\n{RELU}```",
    "```diff\n@@ -1 +1 @@\n         AscendC::Relu(y, x, n);\n+        AscendC::Relu(y, y, n);\n```",
]


@pytest.fixture(scope="module", autouse=True)
def _environment(tmp_path_factory: pytest.TempPathFactory) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("OPENAI_API_KEY", "sk-dataset-0123456789")
        patch.setenv("KERNEL_GYM_CACHE", str(tmp_path_factory.mktemp("verdicts")))
        yield


def run(folder: Path, budget: int = 3, **env: Any) -> Path:
    overrides = {"agent": "similarity", "tasks": ["relu"], "budget": budget, "workers": 1, "env": env}
    config = resolve(overrides=overrides)
    train(config, RunFolder.open(folder, config))
    return folder


def modelled(folder: Path, **env: Any) -> Path:
    with serving(*(saying(answer) for answer in ANSWERS)) as server:
        options = {"model": "m", "base_url": server.url, "context_tokens": 5000}
        return run(folder, author="openai", author_options=options, **env)


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    return list(RecordedRun.open(modelled(tmp_path_factory.mktemp("runs") / "model")).rows())


def test_a_row_describes_an_attempt_completely(rows: list[dict[str, Any]]) -> None:
    assert [row["verdict"]["outcome"] for row in rows] == ["uncompilable", "feasible", "feasible"]
    assert [row["reward"] for row in rows[:2]] == [-1.0, 1.0]
    assert [row["kernel"] for row in rows] == ["", RELU, SLOWER]
    assert [row["stage"] for row in rows] == ["draft", "draft", "refine"]
    assert [row["start"] and row["start"]["code"] for row in rows] == [None, None, RELU]
    assert [row["answer"] for row in rows] == ANSWERS
    assert all("torch.relu" in row["operator"] for row in rows)
    json.dumps(rows)


def test_the_prompt_shows_what_the_context_names(rows: list[dict[str, Any]]) -> None:
    for row in rows:
        assert row["context"]
        prompt = row["prompt"][1]["content"]
        assert row["context"][0]["text"].strip() in prompt
        assert row["operator"] in prompt
    assert RELU.strip() in rows[2]["prompt"][1]["content"]
    assert rows[0]["tokens_in"] == 100


def test_frozen_memory_still_has_the_kernels_of_a_model(tmp_path: Path) -> None:
    rows = list(RecordedRun.open(modelled(tmp_path / "run", memory="frozen")).rows())
    assert [row["kernel"] for row in rows] == ["", RELU, SLOWER]


def test_the_apprentice_has_kernels_but_no_prompts(tmp_path: Path) -> None:
    (row,) = RecordedRun.open(run(tmp_path / "run", budget=1)).rows()
    assert "kernel_launch" in row["kernel"]
    assert (row["prompt"], row["answer"], row["tokens_in"]) == (None, None, None)
    assert row["author"] == "apprentice"


def test_a_comparison_gives_the_rows_of_all_its_runs(tmp_path: Path) -> None:
    for name in ("value/seed-0", "random/seed-0"):
        run(tmp_path / "comparison" / name, budget=1)
    RunFolder.open(tmp_path / "comparison" / "random" / "seed-1", resolve())  # not begun
    rows = [row for recorded in open_runs(tmp_path / "comparison") for row in recorded.rows()]
    assert [row["run"] for row in rows] == ["random/seed-0", "value/seed-0"]
    (alone,) = open_runs(tmp_path / "comparison" / "value" / "seed-0")
    assert alone.name == "seed-0"
    with pytest.raises(KernelGymError, match="holds no run"):
        open_runs(tmp_path / "nothing")


def test_a_folder_without_a_run_is_a_one_line_error(tmp_path: Path) -> None:
    config = resolve(overrides={"env": {"memory": "fresh"}})
    RunFolder.open(tmp_path / "empty", config)
    (tmp_path / "fresh").mkdir()
    RunFolder.open(tmp_path / "fresh", config).journal.write_text(json.dumps(journal_row()) + "\n")
    for name, message in (("missing", "holds no run"), ("empty", "no attempt"), ("fresh", "memory=fresh")):
        with pytest.raises(KernelGymError, match=message):
            RecordedRun.open(tmp_path / name)


def test_the_command_writes_lines_once(tmp_path: Path) -> None:
    folder, out = modelled(tmp_path / "run"), tmp_path / "rows.jsonl"
    words = (folder, "--out", out, "--feasible", "--json")
    output = run_script("dataset", *words, check=True).stdout
    assert json.loads(output) == {"file": str(out), "rows": 2, "feasible": 2, "prompts": 2, "without_kernel": 0}
    assert [json.loads(line)["kernel"] for line in out.read_text().splitlines()] == [RELU, SLOWER]
    again = run_script("dataset", *words)
    assert again.returncode == 2
    assert again.stderr == f"dataset.py: cannot write {out}: File exists\n"
