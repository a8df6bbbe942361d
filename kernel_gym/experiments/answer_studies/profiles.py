"""How well the profiles of the simulated author predict a model's answers, condition by condition.

A profile is shown what the model was shown. Its chances of a kernel that compiles and of a correct one are computed and
not drawn (`apprentice.prediction`), and set beside the measured shares.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import spearmanr

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.profile import profile_members, profile_names
from kernel_gym.authors.apprentice.prediction import predict
from kernel_gym.experiments.answer_studies.contexts import Contexts, learn_memory
from kernel_gym.experiments.answer_studies.definition import AnswerStudy, Condition
from kernel_gym.experiments.answer_studies.figures import by_condition, compiled, correct, over_tasks
from kernel_gym.experiments.answer_studies.planning import failures_shown, shown_context
from kernel_gym.experiments.answer_studies.study_folder import Answer, StudyFolder
from kernel_gym.experiments.statistics import Interval

#: Contexts of each task where they differ from answer to answer, and schedules drawn for each.
CONTEXTS, DRAWS = 3, 4
#: Most members of a fitted profile; its prediction is their mean.
MEMBERS = 4


@dataclass(frozen=True)
class Predicted:
    """A condition: the measured shares, and those that each profile predicts on the same tasks."""

    condition: str
    compiled: Interval
    correct: Interval
    profiles: dict[str, tuple[float, float]]


def predictions(
    study: AnswerStudy,
    folder: StudyFolder,
    profiles: Sequence[str],
    workers: int,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Predicted]:
    """Compare profiles with the judged answers of a study.

    Args:
        study: The study.
        folder: Its folder, with judged answers.
        profiles: Names of profiles; empty for all of the package but `oracle`, which makes no mistake.
        workers: Verifications at once, where agents first learn on the other tasks.
        progress: Called with the conditions done and all of them.

    Returns:
        One comparison for each condition of the simulator that has judged answers.
    """
    groups = by_condition(folder.answers())
    conditions = [
        condition for condition in study.conditions if condition.name in groups and condition.device == "ascend-sim"
    ]
    memory = folder.path / "memory"
    if any("picks" in condition.shows for condition in conditions):
        learn_memory(study, memory, workers)
    contexts = Contexts(study, "ascendc", memory)
    authors = {name: _authors(name) for name in profiles or sorted({*profile_names()} - {"oracle"})}
    rows = []
    for done, condition in enumerate(conditions, 1):
        failures = failures_shown(study, folder, condition) or {}
        rows.append(_predicted(condition, groups[condition.name], authors, contexts, failures))
        progress(done, len(conditions))
    return rows


def _authors(profile: str) -> list[Apprentice]:
    """Return the authors whose mean is the prediction of a profile: its members, if it was fitted."""
    members = len(profile_members(profile))
    return [Apprentice(f"{profile}~{number}") for number in range(min(members, MEMBERS))] or [Apprentice(profile)]


def _predicted(
    condition: Condition,
    answers: Sequence[Answer],
    authors: dict[str, list[Apprentice]],
    contexts: Contexts,
    failures: dict[str, list[Answer]],
) -> Predicted:
    varied = condition.agent == "random" or bool(condition.after)
    shares: dict[str, list[tuple[float, float]]] = {name: [] for name in authors}
    for name in sorted({answer.question.task for answer in answers}):
        task = suites.find_task(name)
        shown = [
            shown_context(condition, task, number, contexts, failures)[0] for number in range(CONTEXTS if varied else 1)
        ]
        for profile, members in authors.items():
            chances = [
                predict(member, task, context, draws=DRAWS, seed=seed)
                for member in members
                for seed, context in enumerate(shown)
            ]
            means = [(chance.compiled, chance.feasible) for chance in chances]
            shares[profile].append(tuple(np.mean(means, axis=0).tolist()))
    return Predicted(
        condition.name,
        over_tasks(answers, compiled),
        over_tasks(answers, correct),
        {profile: tuple(np.mean(pairs, axis=0).tolist()) for profile, pairs in shares.items()},
    )


def profile_page(rows: Sequence[Predicted]) -> str:
    """Return the comparison as Markdown: a table of each measure, and how far the profiles are off."""
    parts = [
        "## How well the profiles predict these answers",
        "The simulated author was shown what the model was shown, and its chances were computed. Bold: within the "
        "interval of the model's share. The last rows have the mean absolute error over conditions, and the rank "
        "correlation of the conditions.",
    ]
    for number, measure in enumerate(("compiled", "correct")):
        parts += [f"### {measure.capitalize()}", _table(rows, measure, number)]
    return "\n\n".join(parts) + "\n"


def _table(rows: Sequence[Predicted], measure: str, number: int) -> str:
    profiles = list(rows[0].profiles)
    lines = [["condition", "model", *profiles], ["---"] * (2 + len(profiles))]
    measured = [getattr(row, measure) for row in rows]
    for row, share in zip(rows, measured, strict=True):
        cells = [_cell(row.profiles[profile][number], share) for profile in profiles]
        lines.append([row.condition, f"{share.mean:.3f} [{share.low:.3f}, {share.high:.3f}]", *cells])
    means = np.array([share.mean for share in measured])
    predicted = {profile: np.array([row.profiles[profile][number] for row in rows]) for profile in profiles}
    lines.append(["mean error", "", *(f"{np.abs(predicted[profile] - means).mean():.3f}" for profile in profiles)])
    lines.append(["rank correlation", "", *(_correlation(predicted[profile], means) for profile in profiles)])
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _cell(value: float, share: Interval) -> str:
    return f"**{value:.3f}**" if share.low <= value <= share.high else f"{value:.3f}"


def _correlation(predicted: np.ndarray, measured: np.ndarray) -> str:
    if len({*measured.tolist()}) < 2 or len({*predicted.tolist()}) < 2:
        return "-"
    return f"{spearmanr(predicted, measured).statistic:+.2f}"
