"""Plans the questions of an answer study. What has been planned stays: later changes of the code do not touch it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from kernel_gym import suites
from kernel_gym.authors.contract import Context
from kernel_gym.authors.model.author import nonce_of
from kernel_gym.authors.model.prompt import messages
from kernel_gym.envs.seeding import generator
from kernel_gym.experiments.answer_studies.contexts import Contexts, learn_memory
from kernel_gym.experiments.answer_studies.definition import AnswerStudy, Condition
from kernel_gym.experiments.answer_studies.mistakes import failed_note, same_mistake_key
from kernel_gym.experiments.answer_studies.study_folder import Answer, Messages, Question, StudyFolder, prompt_digest
from kernel_gym.tasks.task import Task


def plan(study: AnswerStudy, folder: StudyFolder, conditions: Sequence[str] = (), workers: int = 1) -> list[str]:
    """Plan the questions of all conditions that can be planned and are not yet.

    Args:
        study: The study.
        folder: Its folder.
        conditions: Names of the conditions to plan; empty for all.
        workers: Verifications at once, where agents first learn on the other tasks.

    Returns:
        The conditions that have to wait until another one is judged.
    """
    chosen = [study.condition(name) for name in conditions] or list(study.conditions)
    planned = {question.condition for question in folder.questions()}
    waiting = []
    contexts: dict[str, Contexts] = {}
    memory = folder.path / "memory"
    for condition in chosen:
        if condition.name in planned:
            continue
        failures = failures_shown(study, folder, condition)
        if failures is None:
            waiting.append(condition.name)
            continue
        if "picks" in condition.shows:
            learn_memory(study, memory, workers)
        if condition.language not in contexts:
            contexts[condition.language] = Contexts(study, condition.language, memory)
        folder.add(_questions(study, condition, contexts[condition.language], failures))
    return waiting


def tasks_of(study: AnswerStudy) -> Iterator[tuple[str, int]]:
    """Yield task and number of every answer of a condition, spread evenly over the tasks."""
    for place in range(study.answers):
        yield study.tasks[place % len(study.tasks)], place // len(study.tasks)


def shown_context(
    condition: Condition, task: Task, number: int, contexts: Contexts, failures: dict[str, list[Answer]]
) -> tuple[Context, str]:
    """Return the notes of a question, and the mistake of the failed attempt among them; empty if there is none."""
    context = contexts.context(condition, task, number)
    if not condition.after:
        return context, ""
    shown = failures[task.id][number % len(failures[task.id])]
    if shown.verdict is None:
        raise ValueError("a failed answer has a verdict")
    failed = failed_note(shown.kernel, shown.verdict, "message" in condition.shows)
    return (failed, *context), same_mistake_key(shown.verdict, shown.kernel, shown.reply)


def failures_shown(study: AnswerStudy, folder: StudyFolder, condition: Condition) -> dict[str, list[Answer]] | None:
    """Return the failed answers that a condition shows, by task; None if they are not judged yet."""
    if not condition.after:
        return {}
    answers = [answer for answer in folder.answers() if answer.question.condition == condition.after]
    if len(answers) < study.answers or any(answer.verdict is None for answer in answers):
        return None
    failures: dict[str, list[Answer]] = defaultdict(list)
    for answer in answers:
        if answer.kernel.source and answer.verdict is not None and not answer.verdict.feasible:
            failures[answer.question.task].append(answer)
    return failures


def _questions(
    study: AnswerStudy, condition: Condition, contexts: Contexts, failures: dict[str, list[Answer]]
) -> Iterator[tuple[Question, Messages]]:
    """Yield the questions of a condition; a task without a failed answer to show has none."""
    for name, number in tasks_of(study):
        task = suites.find_task(name)
        if condition.after and not failures.get(name):
            continue
        context, mistake = shown_context(condition, task, number, contexts, failures)
        prompt = messages(task, context, None, study.context_tokens, condition.language, condition.prompt_version)
        nonce = nonce_of(generator("answers", condition.name, name, number))
        digest = prompt_digest(prompt)
        yield Question(condition.name, name, number, condition.device, nonce, digest, mistake), prompt
