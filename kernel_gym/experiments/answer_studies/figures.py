"""The figures of an answer study: shares with intervals over tasks, mistakes, persistence and spellings taken over."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from kernel_gym import suites
from kernel_gym.experiments.answer_studies.definition import AnswerStudy
from kernel_gym.experiments.answer_studies.mistakes import mistake, same_mistake_key, spellings
from kernel_gym.experiments.answer_studies.study_folder import Answer, Messages, StudyFolder
from kernel_gym.experiments.statistics import Interval, interval

Measure = Callable[[Answer], float]


@dataclass(frozen=True)
class ConditionFigures:
    """The figures of one condition.

    Args:
        name: The condition.
        answers: Judged answers.
        tasks: Tasks that they are for.
        solved: Tasks with a correct answer.
        compiled: Share of answers that compiled.
        correct: Share of correct answers.
        tokens: Mean length of an answer in tokens.
        prompt_tokens: Mean length of a prompt in tokens.
        mistakes: Share of each kind of mistake among all answers, the most frequent first.
        persistence: Share of answers with the same mistake as the failed attempt that they were shown; None if none
            was shown.
        chance: The same share among answers of the condition that the failed attempts come from.
        taken: Share of the spellings that only the memories have which an answer takes over; None if none was shown.
        taken_by_chance: The same share, of the same spellings, in answers to the same tasks that were shown nothing.
    """

    name: str
    answers: int
    tasks: int
    solved: int
    compiled: Interval
    correct: Interval
    tokens: float
    prompt_tokens: float
    mistakes: dict[str, float]
    persistence: Interval | None = None
    chance: Interval | None = None
    taken: Interval | None = None
    taken_by_chance: Interval | None = None


@dataclass(frozen=True)
class Difference:
    """The second condition minus the first, over the tasks that both have."""

    first: str
    second: str
    compiled: Interval
    correct: Interval


def compiled(answer: Answer) -> float:
    """Return 1 if the answer's kernel compiled."""
    return float(bool(answer.verdict and answer.verdict.compiled))


def correct(answer: Answer) -> float:
    """Return 1 if the answer's kernel passed every gate."""
    return float(bool(answer.verdict and answer.verdict.feasible))


def by_condition(answers: Iterable[Answer]) -> dict[str, list[Answer]]:
    """Return the judged answers of each condition."""
    groups: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.verdict is not None:
            groups[answer.question.condition].append(answer)
    return groups


def study_figures(study: AnswerStudy, folder: StudyFolder) -> tuple[list[ConditionFigures], list[Difference]]:
    """Return the figures of all conditions that have judged answers, and the differences of the named pairs."""
    groups, prompts = by_condition(folder.answers()), folder.prompts()
    rows = [
        _figures(study, condition.name, groups, prompts) for condition in study.conditions if condition.name in groups
    ]
    pairs = [pair for pair in study.pairs if pair[0] in groups and pair[1] in groups]
    return rows, [difference(first, second, groups) for first, second in pairs]


def _figures(
    study: AnswerStudy, name: str, groups: dict[str, list[Answer]], prompts: dict[str, Messages]
) -> ConditionFigures:
    answers, condition = groups[name], study.condition(name)
    kinds = Counter(kind for answer in answers if (kind := _mistake(answer)))
    baseline = groups.get(condition.after or study.conditions[0].name, [])
    persistence = chance = taken = by_chance = None
    if condition.after:
        persistence = over_tasks(answers, lambda answer: float(_same(answer) == answer.question.mistake))
        chance = _chance(answers, baseline)
    shown = {answer.key: shown_spellings(answer, prompts[answer.question.prompt]) for answer in answers}
    if any(shown.values()):
        taken = over_tasks(answers, lambda answer: _share(shown[answer.key], answer))
        by_chance = _taken_by_chance(answers, shown, baseline) if not condition.after else None
    replies = [answer.reply for answer in answers if answer.reply is not None]
    return ConditionFigures(
        name=name,
        answers=len(answers),
        tasks=len({answer.question.task for answer in answers}),
        solved=len({answer.question.task for answer in answers if correct(answer)}),
        compiled=over_tasks(answers, compiled),
        correct=over_tasks(answers, correct),
        tokens=float(np.mean([reply.tokens_out for reply in replies])),
        prompt_tokens=float(np.mean([reply.tokens_in for reply in replies])),
        mistakes={kind: count / len(answers) for kind, count in kinds.most_common()},
        persistence=persistence,
        chance=chance,
        taken=taken,
        taken_by_chance=by_chance,
    )


def over_tasks(answers: Sequence[Answer], measure: Measure) -> Interval:
    """Return the mean over tasks of the means of their answers; the interval is a bootstrap over tasks."""
    means = _task_means(answers, measure)
    return interval([means[task] for task in sorted(means)]) or Interval(0.0, 0.0, 0.0)


def _task_means(answers: Sequence[Answer], measure: Measure) -> dict[str, float]:
    values: dict[str, list[float]] = defaultdict(list)
    for answer in answers:
        values[answer.question.task].append(measure(answer))
    return {task: float(np.mean(numbers)) for task, numbers in values.items()}


def difference(first: str, second: str, groups: dict[str, list[Answer]]) -> Difference:
    """Return how two conditions differ, task by task."""

    def paired(measure: Measure) -> Interval:
        one, other = (_task_means(groups[name], measure) for name in (first, second))
        return interval([other[task] - one[task] for task in sorted({*one} & {*other})]) or Interval(0.0, 0.0, 0.0)

    return Difference(first, second, paired(compiled), paired(correct))


def _mistake(answer: Answer) -> str:
    return mistake(answer.verdict, answer.kernel, answer.reply) if answer.verdict is not None else ""


def _same(answer: Answer) -> str:
    return same_mistake_key(answer.verdict, answer.kernel, answer.reply) if answer.verdict is not None else ""


def _chance(answers: Sequence[Answer], baseline: Sequence[Answer]) -> Interval:
    """Return how often the shown mistakes occur in other answers to the same task that were not shown them."""
    by_task: dict[str, list[str]] = defaultdict(list)
    for answer in baseline:
        by_task[answer.question.task].append(_same(answer))

    def rate(answer: Answer) -> float:
        others = list(by_task[answer.question.task])
        if answer.question.mistake in others:
            others.remove(answer.question.mistake)  # the attempt that is shown
        return float(np.mean([other == answer.question.mistake for other in others])) if others else 0.0

    return over_tasks(answers, rate)


def shown_spellings(answer: Answer, messages: Messages) -> frozenset[str]:
    """Return the identifiers that only the shown memories have: not the system prompt, nor the task."""
    system, user = messages[0]["content"], messages[1]["content"]
    source = suites.find_task(answer.question.task).source
    return spellings(user.replace(source, "")) - spellings(system) - spellings(source) - _FRAME


#: Words of the templates around memories.
_FRAME = spellings(
    "The operator Timed For example inputs outputs float32 int64 ints floats cpp python Good practice Experience API "
    "An earlier attempt at this operator A kernel for another operator feasible uncompilable incorrect cheated not "
    "judged Write the kernel whole file above with every function that calls one block Your answer failed Why cause "
    "Find this failure and correct everywhere occurs Keep what right corrected"
)


def _share(names: frozenset[str], answer: Answer) -> float:
    return len(names & spellings(answer.kernel.source)) / len(names) if names else 0.0


def _taken_by_chance(
    answers: Sequence[Answer], shown: dict[str, frozenset[str]], baseline: Sequence[Answer]
) -> Interval | None:
    """Return the share of the same spellings in answers to the same tasks that were shown nothing."""
    by_task: dict[str, list[Answer]] = defaultdict(list)
    for answer in baseline:
        by_task[answer.question.task].append(answer)
    present = [answer for answer in answers if by_task[answer.question.task]]
    if not present:
        return None
    return over_tasks(
        present,
        lambda answer: float(np.mean([_share(shown[answer.key], other) for other in by_task[answer.question.task]])),
    )
