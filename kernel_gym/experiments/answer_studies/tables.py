"""The results of an answer study as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from kernel_gym.experiments.answer_studies.definition import AnswerStudy
from kernel_gym.experiments.answer_studies.figures import ConditionFigures, Difference
from kernel_gym.experiments.statistics import Interval

#: How many kinds of mistakes the table has; the others are one column.
KINDS = 8


def results(
    name: str, study: AnswerStudy, model: str, rows: Sequence[ConditionFigures], pairs: Sequence[Difference]
) -> str:
    """Return the page of a study's results.

    Args:
        name: Name of the study.
        study: The study.
        model: Name of the model.
        rows: The figures of each condition.
        pairs: The differences of the named pairs.

    Returns:
        The page.
    """
    answers = sum(row.answers for row in rows)
    parts = [
        f"# {name}",
        study.question,
        f"Model: {model}. {answers:,} answers in {len(rows)} conditions on {len(study.tasks)} tasks of level 1, at "
        f"most {study.max_tokens:,} tokens each, every one judged by the verifier. Shares are means over tasks; "
        "brackets are 95% bootstrap intervals over tasks.",
        "## What was shown, and what came of it",
        _conditions(study, rows),
        "## Differences",
        "The second condition minus the first, task by task. An interval that has 0 in it shows no difference.",
        _differences(pairs),
        "## Mistakes",
        "The first mistake of each answer, as a share of all answers of the condition.",
        _mistakes(rows),
    ]
    if any(row.persistence for row in rows):
        parts += [
            "## Persistence",
            "How often an answer repeats the mistake of the failed attempt that it was shown (the same kind, about the "
            "same name), and how often answers that were not shown it make it.",
            _table(
                ("shown", "same mistake again", "without being shown"),
                ((row.name, _share(row.persistence), _share(row.chance)) for row in rows if row.persistence),
            ),
        ]
    if any(row.taken for row in rows):
        parts += [
            "## Spellings taken over",
            "Of the names that only the shown memories have (neither the system prompt nor the task): the share that "
            "an answer uses, and the share of the same names in answers that were shown nothing.",
            _table(
                ("shown", "taken over", "without being shown"),
                ((row.name, _share(row.taken), _share(row.taken_by_chance)) for row in rows if row.taken),
            ),
        ]
    return "\n\n".join(parts) + "\n"


def _conditions(study: AnswerStudy, rows: Sequence[ConditionFigures]) -> str:
    return _table(
        ("condition", "shown", "answers", "compiled", "correct", "tasks solved", "prompt tokens", "answer tokens"),
        (
            (
                row.name,
                study.condition(row.name).about,
                str(row.answers),
                _share(row.compiled),
                _share(row.correct),
                f"{row.solved} of {row.tasks}",
                f"{row.prompt_tokens:,.0f}",
                f"{row.tokens:,.0f}",
            )
            for row in rows
        ),
    )


def _differences(pairs: Sequence[Difference]) -> str:
    return _table(
        ("difference", "compiled", "correct"),
        ((f"{pair.second} - {pair.first}", pair.compiled.signed, pair.correct.signed) for pair in pairs),
    )


def _mistakes(rows: Sequence[ConditionFigures]) -> str:
    totals: dict[str, float] = {}
    for row in rows:
        for kind, share in row.mistakes.items():
            totals[kind] = totals.get(kind, 0.0) + share
    kinds = sorted(totals, key=lambda kind: -totals[kind])[:KINDS]
    return _table(
        ("condition", *kinds, "other"),
        (
            (
                row.name,
                *(f"{row.mistakes.get(kind, 0.0):.2f}" for kind in kinds),
                f"{sum(share for kind, share in row.mistakes.items() if kind not in kinds):.2f}",
            )
            for row in rows
        ),
    )


def _share(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.3f} [{value.low:.3f}, {value.high:.3f}]"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)
