"""Select a few tasks that represent a suite: each group of tasks by its share, evenly spaced within the group.

Nothing is random: the same suite and number give the same tasks everywhere. Groups are categories. A suite with a
single category (level 2 fuses everything) is grouped by the operator that each task begins with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from kernel_gym import suites
from kernel_gym.errors import ConfigError
from kernel_gym.tasks.task import Task


def select_tasks(words: str, share: float = 1.0) -> list[Task]:
    """Return the tasks that words like `level1 40`, `level1 20 after 40 + level2 20` or `level1/relu` name, or a share.

    `after 40` leaves out the 40 tasks that `level1 40` names, which holds tasks back. A share is taken of the named
    tasks, so that tasks held back at full size are held back at any size.

    Args:
        words: Parts joined by `+`, each `SUITE COUNT`, `SUITE COUNT after COUNT` or ids of tasks.
        share: The fraction of each part to take.

    Returns:
        The tasks, part by part, in the order of their suites.

    Raises:
        ConfigError: The words name no tasks, or more than the suite has.
    """
    return [task for part in words.split("+") for task in _select_part(part.split(), share)]


def _select_part(words: Sequence[str], share: float) -> list[Task]:
    if words and all("/" in word for word in words):
        tasks = [suites.find_task(word) for word in words]
        return stratified(tasks, max(1, round(len(tasks) * share)))
    try:
        suite, count, *after = words
        if after and after[0] != "after":
            raise ValueError(after)
        tasks = _select_after(suite, int(count), int(after[1]) if after else 0)
        return stratified(tasks, max(1, round(len(tasks) * share)))
    except (ValueError, IndexError) as error:
        raise ConfigError(f"tasks are named like 'level1 40' or 'level1 20 after 40', not {words}") from error


def _select_after(suite: str, count: int, held_back: int) -> list[Task]:
    tasks = list(suites.load_suite(suite))
    if count + held_back > len(tasks):
        raise ConfigError(f"{suite} has {len(tasks)} tasks, not {count + held_back}")
    excluded = {task.id for task in stratified(tasks, held_back)}
    return stratified([task for task in tasks if task.id not in excluded], count)


def stratified(tasks: Sequence[Task], count: int) -> list[Task]:
    """Return `count` of the tasks, in their order; each group has its share, largest remainders first."""
    groups = _groups(tasks)
    places = _places({name: len(group) for name, group in groups.items()}, count)
    selected = {task.id for name, group in groups.items() for task in _evenly_spaced(group, places[name])}
    return [task for task in tasks if task.id in selected]


def _groups(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    single = len({task.category for task in tasks}) == 1
    groups: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        groups[_first_operator(task) if single else task.category].append(task)
    return groups


def _first_operator(task: Task) -> str:
    """Return the first word of a task's name, with `conv_transpose` as one word."""
    return task.name.replace("conv_transpose", "convtranspose").partition("_")[0]


def _places(sizes: dict[str, int], count: int) -> dict[str, int]:
    exact = {name: Fraction(size * count, sum(sizes.values())) for name, size in sizes.items()} if sizes else {}
    places = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (places[name] - exact[name], name))
    for name in by_remainder[: count - sum(places.values())]:
        places[name] += 1
    return places


def _evenly_spaced(group: Sequence[Task], count: int) -> list[Task]:
    return [group[(2 * i + 1) * len(group) // (2 * count)] for i in range(count)]
