"""Training data from the attempts of runs: conversations, preference pairs, trajectories."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from script import run_script

from kernel_gym import suites
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.training_data import PAIRS, split, write


def row(kernel: str, outcome: str, latency: float | None = None, **changes: Any) -> dict[str, Any]:
    verdict = {
        "outcome": outcome,
        "feasible": outcome == "feasible",
        "latency_us": latency,
        "feedback": f"is {outcome}",
    }
    return {
        "run": "value/seed-0", "agent": "value", "author": "apprentice", "seed": 0, "task": "level1/relu",
        "stage": "draft", "attempt": 0, "kernel": kernel,
        "verdict": verdict | {"device": "ascend-sim", "feedback": f"is {outcome}"},
        "reward": 1.0 if outcome == "feasible" else -1.0, "prompt": None, "answer": None,
    } | changes  # fmt: skip


ANSWER = "Here:\n```cpp\nfast\n```"
ROWS = [
    row("wrong", "incorrect"),
    row("slow", "feasible", 20.0),
    row("slow", "feasible", 20.0, run="value/seed-1"),
    row(
        "fast", "feasible", 10.0, prompt=[{"role": "user", "content": "write relu"}], answer="Here:\n```cpp\nfast\n```"
    ),
    row("nearly as fast", "feasible", 10.5),
    row("", "uncompilable"),
    row("lost", "unjudged"),
    row("gone", "feasible", 1.0, task="elsewhere/mine.py"),
]


def answered(content: str) -> str:
    return content.partition("```cpp\n")[2].partition("\n```")[0]


def lines(folder: Path, part: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / f"{part}.jsonl").read_text().splitlines()]


def made(tmp_path: Path, format: Any, rows: Any = ROWS, held_out: float = 0.0) -> list[dict[str, Any]]:
    write(rows, format, tmp_path / "data", held_out)
    return lines(tmp_path / "data", "train")


def test_conversations_are_the_feasible_kernels_each_once(tmp_path: Path) -> None:
    made_lines = made(tmp_path, "chat")
    assert [answered(line["messages"][-1]["content"]) for line in made_lines] == ["slow", "fast", "nearly as fast"]
    assert [line["latency_us"] for line in made_lines] == [20.0, 10.0, 10.5]


def test_a_models_exchange_is_kept_word_for_word_and_a_program_answers_the_tasks_prompt(tmp_path: Path) -> None:
    program, model, _ = made(tmp_path, "chat")
    assert model["messages"] == [
        {"role": "user", "content": "write relu"},
        {"role": "assistant", "content": ANSWER},
    ]
    assert [message["role"] for message in program["messages"]] == ["system", "user", "assistant"]
    assert "class Model" in program["messages"][1]["content"]


def test_a_pair_prefers_the_kernel_that_passed_more_gates_or_is_clearly_faster(tmp_path: Path) -> None:
    pairs = {
        tuple(answered(line[side][0]["content"]) for side in ("chosen", "rejected"))
        for line in made(tmp_path, "preferences")
    }
    assert pairs == {
        ("slow", "wrong"), ("fast", "wrong"), ("nearly as fast", "wrong"),
        ("fast", "slow"), ("nearly as fast", "slow"),
    }  # fmt: skip


def test_a_task_gives_a_limited_number_of_pairs_whatever_the_order_of_the_runs(tmp_path: Path) -> None:
    rows = [row(f"kernel {i}", "feasible", 10.0 * 2**i) for i in range(15)]
    write(rows, "preferences", tmp_path / "one", 0.0)
    write(rows[::-1], "preferences", tmp_path / "other", 0.0)
    one, other = ([line["chosen"] for line in lines(tmp_path / name, "train")] for name in ("one", "other"))
    assert len(one) == PAIRS
    assert one == other


def test_a_trajectory_has_the_attempts_of_an_episode_with_their_rewards(tmp_path: Path) -> None:
    first, second = made(tmp_path, "trajectories")
    assert [step["outcome"] for step in first["steps"]] == ["incorrect", "feasible", "feasible", "feasible"]
    assert first["return"] == sum(step["reward"] for step in first["steps"]) == 2.0
    assert [step["feedback"] for step in second["steps"]] == ["is feasible"]


def test_the_split_is_by_task_and_does_not_depend_on_what_else_is_there(tmp_path: Path) -> None:
    rows = [row("kernel", "feasible", 9.0, task=task.id) for task in suites.load_suite("level1")]
    write(rows, "chat", tmp_path / "data", 0.3)
    parts = {part: {line["task"] for line in lines(tmp_path / "data", part)} for part in ("train", "test")}
    assert not parts["train"] & parts["test"]
    assert 15 <= len(parts["test"]) <= 45
    assert {split(task, 0.3) for task in parts["test"]} == {"test"}
    assert {task for task in parts["train"] if split(task, 0.1) == "test"} == set()


def test_the_card_counts_what_was_written_and_left_out(tmp_path: Path) -> None:
    counts = write(ROWS, "chat", tmp_path / "data", 0.0, "kernel-gym dataset runs/x --format chat")
    card = (tmp_path / "data" / "README.md").read_text()
    assert yaml.safe_load(card.split("---")[1])["license"] == "apache-2.0"
    assert "from 8 attempts: `kernel-gym dataset runs/x --format chat`" in " ".join(card.split())
    assert "| train | 3 | 1 |" in card
    assert counts.left_out == {
        "not judged": 1, "no kernel on record": 1, "the task's file no longer exists": 1,
        "not feasible": 1, "the same kernel again": 1,
    }  # fmt: skip
    assert all(f"| {reason} | {count} |" in card for reason, count in counts.left_out.items())


def test_nothing_to_write_and_a_folder_in_use_are_one_line_each(tmp_path: Path) -> None:
    with pytest.raises(KernelGymError, match="no attempt makes a line of format chat: 1 not feasible"):
        write([row("wrong", "incorrect")], "chat", tmp_path / "data", 0.0)
    assert not (tmp_path / "data").exists()
    (tmp_path / "file").write_text("mine")
    with pytest.raises(KernelGymError, match="is not empty"):
        write(ROWS, "chat", tmp_path, 0.0)
    done = run_script("dataset", "nowhere", "--format", "chat", "--held-out", "1.5", "--out", tmp_path / "out")
    assert "not a number from 0 to below 1" in done.stderr
