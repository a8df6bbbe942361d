"""Count the gates at which first drafts fail, with an empty context and with the oracle's kernel shown."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import islice, zip_longest

import numpy as np

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice, Unsupported, fluent, lower
from kernel_gym.authors.contract import Context, Note
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible, Incorrect, Verdict
from kernel_gym.verifier import Verifier

#: Profile, suite, category and what was shown.
Key = tuple[str, str, str, str]


def count_ends(task: Task, profile: str, tries: int, verifier: Verifier) -> Iterator[tuple[Key, Counter[str]]]:
    """Yield how often the drafts of one task end at each gate, for each context."""
    for shown, context in _contexts(task):
        drafts = [_draft(profile, task, context, seed) for seed in range(tries)]
        verdicts = verifier.verify_all([(draft, task) for draft in drafts])
        yield (profile, task.suite, task.category, shown), Counter(_end(verdict) for verdict in verdicts)


def sample_tasks(suite: str, names: Sequence[str], sample: int | None) -> Iterator[Task]:
    """Yield tasks of a suite that the apprentice can lower, spread over the categories; all if `sample` is None."""
    tasks = [task for task in suites.load_suite(suite) if not names or task.name in names]
    if not tasks:
        raise ConfigError(f"no task {', '.join(names)} in {suite}")
    yield from islice(filter(_lowers, _spread(tasks)), sample)


def _spread(tasks: list[Task]) -> list[Task]:
    """Return the tasks in an order in which every beginning has tasks of all categories."""
    groups = [[task for task in tasks if task.category == name] for name in sorted({t.category for t in tasks})]
    rng = np.random.default_rng(0)
    shuffled = [[group[int(n)] for n in rng.permutation(len(group))] for group in groups]
    return [task for rank in zip_longest(*shuffled) for task in rank if task is not None]


def _lowers(task: Task) -> bool:
    try:
        lower(task)
    except Unsupported:
        return False
    return True


def _contexts(task: Task) -> list[tuple[str, Context]]:
    source = fluent(task).source
    return [("empty", ()), ("oracle", (Note("trace", source, source, Feasible("Correct.", latency=1.0)),))]


def _draft(profile: str, task: Task, context: Context, seed: int) -> Kernel:
    return Apprentice(profile).write(task, context, None, np.random.default_rng([seed, task.number or 0]))


def _end(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else verdict.outcome
