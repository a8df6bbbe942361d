"""Training data for language models, from the rows of `dataset.py`.

Three formats, as trainers take them: `chat` (one verified answer to a prompt), `preferences` (a better and a worse
answer to the same prompt) and `trajectories` (the attempts of an episode with their rewards). All are split by task: no
task is in both parts.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal

from kernel_gym import suites
from kernel_gym.authors.model.prompt import messages
from kernel_gym.errors import KernelGymError, TaskError
from kernel_gym.experiments.runs.dataset import Row
from kernel_gym.version import __version__

Format = Literal["chat", "preferences", "trajectories"]
#: About how many tokens a prompt may have that is made here.
PROMPT_TOKENS = 8192
#: Of two feasible kernels one is preferred if the other takes this many times as long.
FASTER = 1.1
#: Preference pairs of one task.
PAIRS = 50
_RANKS = {"cheated": 0, "uncompilable": 0, "incorrect": 1, "feasible": 2}


@dataclass
class Counts:
    """What became of the attempts."""

    attempts: int = 0
    left_out: Counter[str] = field(default_factory=Counter)
    written: Counter[str] = field(default_factory=Counter)
    tasks: dict[str, set[str]] = field(default_factory=lambda: {"train": set(), "test": set()})


def write(rows: Iterable[Row], format: Format, folder: Path, held_out: float, command: str = "") -> Counts:
    """Write `train.jsonl`, `test.jsonl` and a card.

    Args:
        rows: Rows of `dataset.py`.
        format: What a line holds.
        folder: The folder to write; it must not exist or be empty.
        held_out: The fraction of the tasks that is in `test.jsonl` only.
        command: The command that is at work, for the card.

    Returns:
        What was written and what was left out.

    Raises:
        KernelGymError: The folder is not empty, or there is nothing to write.
    """
    if folder.exists() and any(folder.iterdir()):
        raise KernelGymError(f"{folder} is not empty: name another folder")
    counts = Counts()
    lines = list(_FORMATS[format](_usable(rows, counts), counts))
    if not lines:
        raise KernelGymError(f"no attempt makes a line of format {format}: {_reasons(counts) or 'there is none'}")
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "train.jsonl").open("w") as train, (folder / "test.jsonl").open("w") as test:
        for line in lines:
            part = split(line["task"], held_out)
            counts.written[part] += 1
            counts.tasks[part].add(line["task"])
            (test if part == "test" else train).write(json.dumps(line) + "\n")
    (folder / "README.md").write_text(card(format, counts, held_out, command))
    return counts


def split(task: str, held_out: float) -> Literal["train", "test"]:
    """Return the part that a task belongs to: a hash of its id decides, so it is the same in every data set."""
    number = int.from_bytes(hashlib.sha256(task.encode()).digest()[:4], "big")
    return "test" if number < held_out * 2**32 else "train"


def _usable(rows: Iterable[Row], counts: Counts) -> Iterator[Row]:
    """Yield the rows that have a kernel, a verdict on it and a task that still exists."""
    for row in rows:
        counts.attempts += 1
        if row["verdict"]["outcome"] == "unjudged":
            counts.left_out["not judged"] += 1
        elif not row["kernel"]:
            counts.left_out["no kernel on record"] += 1
        elif _task_prompt(row["task"], _language(row)) is None:
            counts.left_out["the task's file no longer exists"] += 1
        else:
            yield row


def chat(rows: Iterable[Row], counts: Counts) -> Iterator[Row]:
    """Yield a conversation for each feasible kernel; the same kernel of a task once."""
    seen: set[tuple[str, str]] = set()
    for row in rows:
        if not row["verdict"]["feasible"]:
            counts.left_out["not feasible"] += 1
        elif (row["task"], row["kernel"]) in seen:
            counts.left_out["the same kernel again"] += 1
        else:
            seen.add((row["task"], row["kernel"]))
            yield _origin(row) | {"messages": [*_prompt(row), _answer(row)], "latency_us": _latency(row)}


def preferences(rows: Iterable[Row], counts: Counts) -> Iterator[Row]:
    """Yield pairs of answers to the task's own prompt, the better one as `chosen`; at most `PAIRS` of a task."""
    by_task: dict[str, dict[str, Row]] = defaultdict(dict)
    for row in rows:
        if row["kernel"] in by_task[row["task"]]:
            counts.left_out["the same kernel again"] += 1
        by_task[row["task"]].setdefault(row["kernel"], row)
    for kernels in by_task.values():
        distinct = list(kernels.values())
        pairs = [(better, worse) for better in distinct for worse in distinct if _better(better, worse)]
        pairs.sort(key=lambda pair: _digest(pair[0]["kernel"] + pair[1]["kernel"]))
        counts.left_out[f"pairs beyond {PAIRS} of a task"] += max(0, len(pairs) - PAIRS)
        for better, worse in pairs[:PAIRS]:
            yield _origin(better) | {
                "prompt": _task_prompt(better["task"], _language(better)),
                "chosen": [_fenced(better)],
                "rejected": [_fenced(worse)],
                "chosen_outcome": better["verdict"]["outcome"],
                "rejected_outcome": worse["verdict"]["outcome"],
                "chosen_latency_us": _latency(better),
                "rejected_latency_us": _latency(worse),
            }


def trajectories(rows: Iterable[Row], counts: Counts) -> Iterator[Row]:
    """Yield an episode's attempts in order, each with its prompt, answer, feedback and reward."""
    episodes: dict[tuple[str, str], list[Row]] = defaultdict(list)
    for row in rows:
        episodes[row["run"], row["task"]].append(row)
    for attempts in episodes.values():
        steps = [
            {
                "stage": row["stage"],
                "messages": [*_prompt(row), _answer(row)],
                "reward": row["reward"],
                "outcome": row["verdict"]["outcome"],
                "feedback": row["verdict"]["feedback"],
                "latency_us": _latency(row),
            }
            for row in attempts
        ]
        yield _origin(attempts[0]) | {"steps": steps, "return": sum(row["reward"] for row in attempts)}


_FORMATS: Mapping[str, Callable[[Iterable[Row], Counts], Iterator[Row]]] = {
    "chat": chat,
    "preferences": preferences,
    "trajectories": trajectories,
}


def _origin(row: Row) -> Row:
    return {name: row[name] for name in ("task", "run", "agent", "author", "seed")}


def _prompt(row: Row) -> list[dict[str, str]]:
    """Return the prompt that a model was given; for a program, which had none, the task's own."""
    return row["prompt"] or _task_prompt(row["task"], _language(row)) or []


def _answer(row: Row) -> dict[str, str]:
    """Return the model's answer word for word; for a program, its kernel in a fence."""
    return {"role": "assistant", "content": row["answer"]} if row["answer"] else _fenced(row)


def _fenced(row: Row) -> dict[str, str]:
    return {"role": "assistant", "content": f"```cpp\n{row['kernel'].rstrip()}\n```"}


def _better(one: Row, other: Row) -> bool:
    ranks = [_RANKS[row["verdict"]["outcome"]] for row in (one, other)]
    if ranks == [2, 2]:
        return bool(FASTER * one["verdict"]["latency_us"] <= other["verdict"]["latency_us"])
    return ranks[0] > ranks[1]


def _latency(row: Row) -> float | None:
    latency: float | None = row["verdict"]["latency_us"]
    return latency


def _language(row: Row) -> str:
    return "cuda" if row["verdict"].get("device") == "cuda" else "ascendc"


@cache
def _task_prompt(task: str, language: str) -> list[dict[str, str]] | None:
    try:
        return messages(suites.find_task(task), (), None, PROMPT_TOKENS, language)
    except TaskError:
        return None


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def _reasons(counts: Counts) -> str:
    return ", ".join(f"{count} {reason}" for reason, count in counts.left_out.items() if count)


_FIELDS = {
    "chat": "`messages`: system, user and assistant; `latency_us`: latency of the kernel in the answer",
    "preferences": "`prompt`, `chosen`, `rejected`: messages; their outcomes and latencies",
    "trajectories": "`steps`: messages, reward, outcome, feedback and latency of each attempt; `return`: their sum",
}


def card(format: Format, counts: Counts, held_out: float, command: str) -> str:
    """Return the data set's card: what is in it, how it was made, how it is split, what was left out."""
    rows = "\n".join(f"| {part} | {counts.written[part]} | {len(counts.tasks[part])} |" for part in ("train", "test"))
    left_out = "\n".join(f"| {reason} | {count} |" for reason, count in counts.left_out.items() if count)
    return f"""---
license: apache-2.0
tags: [kernels, reinforcement-learning, kernel_gym]
configs:
- config_name: default
  data_files:
  - split: train
    path: train.jsonl
  - split: test
    path: test.jsonl
---

# Kernels with verdicts, format `{format}`

Made by kernel_gym {__version__} from {counts.attempts} attempts{f": `{command}`" if command else ""}. Its verifier
compiled, checked and timed every kernel. `author` says who wrote it: `apprentice` is a program, not a language model.

| part | lines | tasks |
|---|---|---|
{rows}

Lines have `task`, `run`, `agent`, `author`, `seed`, and {_FIELDS[format]}. A prompt is the one that a model was given;
for the kernels of a program, and in pairs, it is the task without memories.

The split is by task: a hash of the task's id puts {held_out:.0%} of all tasks into `test`, the same in every data set.

| left out | |
|---|---|
{left_out or "| nothing | 0 |"}
"""
