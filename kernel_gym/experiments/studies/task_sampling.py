"""A few operators that stand for a suite: every group of operators by its share, spread evenly within the group.

Nothing is drawn: the same suite and number give the same operators everywhere. Groups are categories; a suite that is
all one category (level 2 fuses everything) is grouped by the operator that each task begins with.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from fractions import Fraction

from kernel_gym import suites
from kernel_gym.errors import ConfigError
from kernel_gym.tasks.task import Task


def chosen(words: str, share: float = 1.0) -> list[Task]:
    """The operators that words like `level1 40` or `level1 20 after 40 + level2 20` name, or a share of them.

    `after 40` leaves out the 40 that `level1 40` names: operators that were kept back. A share is taken of what is
    named, so that what is kept back at full size is kept back at any.
    """
    return [task for part in words.split("+") for task in _part(part.split(), share)]


def _part(words: Sequence[str], share: float) -> list[Task]:
    try:
        suite, count, *after = words
        if after and after[0] != "after":
            raise ValueError(after)
        named = _chosen(suite, int(count), int(after[1]) if after else 0)
        return stratified(named, max(1, round(len(named) * share)))
    except (ValueError, IndexError) as error:
        raise ConfigError(f"operators are named like 'level1 40' or 'level1 20 after 40', not {words}") from error


def _chosen(suite: str, count: int, skipped: int) -> list[Task]:
    tasks = list(suites.load_suite(suite))
    if count + skipped > len(tasks):
        raise ConfigError(f"{suite} has {len(tasks)} operators, not {count + skipped}")
    kept_back = {task.id for task in stratified(tasks, skipped)}
    return stratified([task for task in tasks if task.id not in kept_back], count)


def stratified(tasks: Sequence[Task], count: int) -> list[Task]:
    """`count` of the tasks, in their order; each group has its share, largest remainders first."""
    groups = _groups(tasks)
    places = _places({name: len(group) for name, group in groups.items()}, count)
    kept = {task.id for name, group in groups.items() for task in _spread(group, places[name])}
    return [task for task in tasks if task.id in kept]


def _groups(tasks: Sequence[Task]) -> dict[str, list[Task]]:
    single = len({task.category for task in tasks}) == 1
    groups: dict[str, list[Task]] = defaultdict(list)
    for task in tasks:
        groups[_first_operator(task) if single else task.category].append(task)
    return groups


def _first_operator(task: Task) -> str:
    """`conv_transpose2d_relu` begins with `convtranspose2d`, and so does `convtranspose2d_relu`."""
    return task.name.replace("conv_transpose", "convtranspose").partition("_")[0]


def _places(sizes: dict[str, int], count: int) -> dict[str, int]:
    exact = {name: Fraction(size * count, sum(sizes.values())) for name, size in sizes.items()} if sizes else {}
    places = {name: int(share) for name, share in exact.items()}
    by_remainder = sorted(exact, key=lambda name: (places[name] - exact[name], name))
    for name in by_remainder[: count - sum(places.values())]:
        places[name] += 1
    return places


def _spread(group: Sequence[Task], count: int) -> list[Task]:
    return [group[(2 * i + 1) * len(group) // (2 * count)] for i in range(count)]
