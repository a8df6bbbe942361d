"""Turning memories into what the author reads. Authors see text, never the bank."""

from __future__ import annotations

from collections.abc import Iterable

from kernel_gym.authors.contract import Note, StartPoint
from kernel_gym.kernel import Kernel
from kernel_gym.memory.experience import title
from kernel_gym.memory.item import MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Profile


def describe(task: Task) -> str:
    """The task as a query: its name, category, description and source."""
    return "\n".join(part for part in (task.name, task.category, task.description, task.source) if part)


def note(item: MemoryItem, task: Task) -> Note:
    """A memory as the author of a kernel for `task` sees it."""
    return Note(item.kind.value, item.text, item.code, item.verdict, item.task == task.id)


def start_point(item: MemoryItem, children: Iterable[MemoryItem]) -> StartPoint:
    """A feasible trace as the kernel to refine, with what earlier attempts from it, its children, came to."""
    if item.verdict is None:
        raise ValueError(f"item {item.id} has no verdict and cannot be refined")
    lines = tuple(child_line(child, item) for child in children)
    return StartPoint(Kernel(item.code, item.language), item.verdict, lines)


def child_line(child: MemoryItem, start: MemoryItem) -> str:
    """What an earlier attempt from a start point was and what came of it, in one line."""
    if child.verdict is None:
        raise ValueError(f"item {child.id} has no verdict to tell of")
    # Its own title says what was changed in the start point that it was first reached from.
    known = child.parent == start.id
    changed = child.title if known else title(child.task, child.code, child.verdict, start)
    if child.verdict.latency_us is None:
        said = child.verdict.feedback.strip().splitlines()
        return f"{changed}: {said[0] if said else 'infeasible'}"
    return f"{changed}; {latency(start) / child.verdict.latency_us:.2f}x as fast as the start point"


def latency(item: MemoryItem) -> float:
    """Latency of a feasible trace."""
    if item.verdict is None or item.verdict.latency_us is None:
        raise ValueError(f"item {item.id} has no latency")
    return item.verdict.latency_us


def profile(item: MemoryItem) -> Profile:
    """Where the time of a feasible trace went; an empty profile for any other item."""
    return item.verdict.profile if isinstance(item.verdict, Feasible) else Profile()
