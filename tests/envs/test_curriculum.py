"""Which task comes next."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from kernel_gym.envs.curriculum import Curriculum, whole_levels
from kernel_gym.errors import ConfigError
from kernel_gym.tasks.task import Task


def dealt(curriculum: Curriculum, count: int) -> list[str]:
    return [curriculum.next().name for _ in range(count)]


def test_sequential_repeats_the_tasks_in_order(stand_ins: Any) -> None:
    assert dealt(Curriculum(stand_ins.tasks(2)), 5) == ["task-0", "task-1", "task-0", "task-1", "task-0"]


def test_levels_come_one_after_another(stand_ins: Any) -> None:
    assert dealt(Curriculum(stand_ins.tasks(4), "levels"), 4) == ["task-1", "task-3", "task-0", "task-2"]


def test_the_batch_size_keeps_levels_apart(stand_ins: Any) -> None:
    tasks = stand_ins.tasks(10)
    level_1, level_2 = ([task for task in tasks if task.level == level] for level in (1, 2))
    for ones, twos, most in ((5, 5, 5), (4, 2, 2), (3, 2, 1), (3, 0, 3)):
        assert whole_levels([*level_1[:ones], *level_2[:twos]]) == most


def test_mixed_is_a_new_order_each_round_and_the_same_for_a_seed(stand_ins: Any) -> None:
    curriculum = Curriculum(stand_ins.tasks(8), "mixed")
    curriculum.restart(4)
    rounds = [dealt(curriculum, 8) for _ in range(3)]
    assert all(sorted(names) == sorted(rounds[0]) for names in rounds)
    assert rounds[0] != rounds[1]
    curriculum.restart(4)
    assert [dealt(curriculum, 8) for _ in range(3)] == rounds
    curriculum.restart(5)
    assert dealt(curriculum, 8) != rounds[0]


def test_a_user_function_is_a_curriculum(stand_ins: Any) -> None:
    def only_last(tasks: Sequence[Task], round_: int, rng: np.random.Generator) -> Sequence[Task]:
        return [tasks[-1]] * (round_ + 1)

    assert dealt(Curriculum(stand_ins.tasks(3), only_last), 3) == ["task-2"] * 3
    with pytest.raises(ConfigError, match="empty round"):
        Curriculum(stand_ins.tasks(3), lambda tasks, round_, rng: []).next()


def test_a_user_function_is_a_curriculum_by_name(
    stand_ins: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", sys.path.copy())
    Path("my_orders.py").write_text("limit = 3\ndef backwards(tasks, round_, rng):\n    return tasks[::-1]\n")
    assert dealt(Curriculum(stand_ins.tasks(3), "my_orders:backwards"), 3) == ["task-2", "task-1", "task-0"]
    for name, says in (("my_orders:limit", "no function"), ("my_orders:none", "cannot load"), ("harder", "unknown")):
        with pytest.raises(ConfigError, match=says):
            Curriculum(stand_ins.tasks(3), name)


def test_tasks_can_be_named_by_id_or_number(stand_ins: Any) -> None:
    curriculum = Curriculum(stand_ins.tasks(3))
    assert curriculum.named("some/task-1") is curriculum.named("some/1")
