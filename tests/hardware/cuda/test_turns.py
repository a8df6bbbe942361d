"""Who may use the GPU at a time: many check, one times alone, one makes a context."""

from __future__ import annotations

import time
from collections import Counter
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Lock, Thread

import pytest

pytest.importorskip("cuda.bindings.driver", reason="needs cuda-bindings")
from kernel_gym.hardware.cuda.worker import Turn

ROUNDS, OF_EACH = 8, 3


class Scene:
    """Who is at work now, and whoever was at work together."""

    def __init__(self) -> None:
        self._now, self._lock = Counter[str](), Lock()
        self.together: list[Counter[str]] = []

    def act(self, role: str, turn: AbstractContextManager[None]) -> None:
        with turn:
            self._step(role, 1)
            time.sleep(1e-3)
            self._step(role, -1)

    def _step(self, role: str, change: int) -> None:
        with self._lock:
            self._now[role] += change
            self.together.append(+self._now)


def _work(scene: Scene, role: str, path: Path) -> None:
    turn = Turn(path)  # as every process does: locks belong to open files
    for _ in range(ROUNDS):
        begin = {"makes": turn.making_a_context(), "times": turn.taken(alone=True)}
        scene.act(role, begin.get(role) or turn.taken(alone=False))


def test_timing_is_exclusive_and_contexts_are_made_one_at_a_time(tmp_path: Path) -> None:
    scene = Scene()
    roles = [role for role in ("checks", "times", "makes") for _ in range(OF_EACH)]
    threads = [Thread(target=_work, args=(scene, role, tmp_path / "gpu")) for role in roles]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(scene.together) == 2 * ROUNDS * len(roles)
    assert all(now["makes"] <= 1 for now in scene.together)
    assert all(now.total() == 1 for now in scene.together if now["times"])
