"""Compose what the author of a kernel is shown: the picked items, API pages and the start point, as text.

Authors see text, never the bank. `pool.py` retrieves the candidates, the agent picks (`Episode.pick`), and the bank
selects the API pages. A model author may shorten the context to fit its prompt.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.envs.options import Pages
from kernel_gym.kernel import Kernel
from kernel_gym.memory.api_pages import LANGUAGE
from kernel_gym.memory.experience import title
from kernel_gym.memory.item import MemoryItem
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Profile

FindPages = Callable[[str, str], Sequence[MemoryItem]]
"""Finds API pages for a query (the task's description) and the code that the author is shown."""


@dataclass(frozen=True)
class GenerationRequest:
    """What the author is asked: write a kernel for `task`, shown `context`, refining or mending `start` if given.

    `api_pages` holds the ids of the API pages at the end of the context.
    """

    task: Task
    context: Context
    start: StartPoint | None = None
    api_pages: tuple[int, ...] = ()


def generation_request(
    task: Task,
    picked: Sequence[MemoryItem],
    find_pages: FindPages,
    start: MemoryItem | None = None,
    children: Iterable[MemoryItem] = (),
    pages: Pages = "all",
    language: str = "ascendc",
) -> GenerationRequest:
    """Compose what the author is asked.

    Args:
        task: The task to write a kernel for.
        picked: The picked memories, in the order of the picks.
        find_pages: Finds the API pages that follow the picked memories.
        start: The trace to refine or to mend; None for a new draft.
        children: Traces of earlier attempts that refined `start`.
        pages: Which of the API pages are shown, or the demonstration in their place.
        language: The language of the demonstration.

    Returns:
        The request: the picked memories and the API pages as notes, and the start point.
    """
    code = "\n".join(item.code for item in [*picked, *([] if start is None else [start])])
    shown = find_pages(describe(task), code) if pages in ("all", "basics") else ()
    if pages == "basics":
        shown = [page for page in shown if page.category == LANGUAGE]
    context = tuple(note(item, task) for item in [*picked, *shown])
    return GenerationRequest(
        task,
        (*context, demonstration(language)) if pages == "demonstration" else context,
        None if start is None else start_point(start, children),
        tuple(page.id for page in shown),
    )


def describe(task: Task) -> str:
    """Return the task as a query: its name, category, description and source."""
    return "\n".join(part for part in (task.name, task.category, task.description, task.source) if part)


def refining_query(task: Task, start: MemoryItem) -> str:
    """Return the query for memories that help to refine `start`: the task with the profile's diagnosis."""
    measured = profile(start)
    return f"{describe(task)}\n{measured.bottleneck} {measured.diagnosis}".strip()


def note(item: MemoryItem, task: Task) -> Note:
    """Return a memory as the author of a kernel for `task` sees it."""
    return Note(item.kind.value, item.text, item.code, item.verdict, item.task == task.id)


def start_point(item: MemoryItem, children: Iterable[MemoryItem]) -> StartPoint:
    """Return a trace as the kernel to refine or to mend, with a line for each earlier attempt that refined it."""
    if item.verdict is None:
        raise ValueError(f"item {item.id} has no verdict and cannot be a start point")
    lines = tuple(child_line(child, item) for child in children)
    return StartPoint(Kernel(item.code, item.language), item.verdict, lines)


def child_line(child: MemoryItem, start: MemoryItem) -> str:
    """Return one line on an earlier attempt from a start point: what it changed and how it ended."""
    if child.verdict is None:
        raise ValueError(f"item {child.id} has no verdict to report")
    # A trace's own title says what was changed in the start point that it was first reached from.
    changed = child.title if child.parent == start.id else title(child.task, child.code, child.verdict, start)
    if child.verdict.latency_us is None:
        feedback = child.verdict.feedback.strip().splitlines()
        return f"{changed}: {feedback[0] if feedback else 'infeasible'}"
    return f"{changed}; {latency(start) / child.verdict.latency_us:.2f}x as fast as the start point"


def latency(item: MemoryItem) -> float:
    """Return the latency of a feasible trace."""
    if item.verdict is None or item.verdict.latency_us is None:
        raise ValueError(f"item {item.id} has no latency")
    return item.verdict.latency_us


def profile(item: MemoryItem) -> Profile:
    """Return where the time of a feasible trace went; an empty profile for any other item."""
    return item.verdict.profile if isinstance(item.verdict, Feasible) else Profile()
