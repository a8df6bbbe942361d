"""Write a study as tables: the contrasts that were named before its runs, then figures and differences by suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log, nan
from statistics import fmean

import numpy as np

from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome, TaskOutcome, by_seed, intervals
from kernel_gym.experiments.statistics import Cells, Interval, crossed_mean, interval
from kernel_gym.experiments.studies.contrasts import MEASURES, Contrast, Difference, difference, judged
from kernel_gym.experiments.studies.predictions import prediction_rows, predictions_summary, predictions_table
from kernel_gym.experiments.studies.ranking import LEGEND as WINS
from kernel_gym.experiments.studies.ranking import Ranking
from kernel_gym.experiments.studies.sample_efficiency import LEVELS, attempts_needed, attempts_to_solve
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import StudyDefinition
from kernel_gym.suites import find_task

Table = list[list[str]]

#: The title of the contrasts.
CONTRASTS = "Contrasts named before the runs"
#: Numbers of seeds for which the smallest detectable difference is stated.
SEEDS = (3, 5, 10, 20, 40)
PUBLISHED = "The paper's figures, with language models on a real NPU, for orientation:"
#: Settings of a language model that tables state.
MODEL_SETTINGS = ("prompt_version", "context_tokens", "max_tokens", "temperature")
SIMULATED_AUTHOR = "The author is simulated: this compares what it was shown, not language models."


def figures_table(runs: Sequence[RunOutcome], names: Sequence[str] = tuple(FIGURES)) -> Table:
    """Return every contender's figures: mean [95% interval] over seeds."""
    rows = [[name, *(_cell(figures[figure]) for figure in names)] for name, figures in intervals(runs).items()]
    return [["agent", *names], *rows]


def untested(contrasts: Sequence[Contrast]) -> str:
    """Return the text that replaces the tested differences if there are none."""
    if contrasts:
        return "No contrast has complete runs of both contenders yet, so nothing is tested."
    return "No contrast was named before these runs, so nothing is tested: all differences are descriptive."


def contrasts_table(differences: Sequence[Difference]) -> Table:
    """Return the tested differences and what each of them shows."""
    rows = [
        [
            f"{row.contender} - {row.reference}",
            row.measure,
            f"{row.shown}{_counted(row)}",
            row.favourable,
            "-" if row.adjusted is None else f"{row.adjusted:.3f}",
            row.conclusion,
        ]
        for row in differences
    ]
    return [["contrast", "in", "difference [95% interval]", "seeds in favour", "p (Holm)", "conclusion"], *rows]


def contrast_tables(differences: Sequence[Difference]) -> list[Table]:
    """Return the tables of the tested differences: what they show, and what more seeds would; no empty ones."""
    return [table for table in (contrasts_table(differences), power_table(differences)) if len(table) > 1]


def power_table(differences: Sequence[Difference]) -> Table:
    """Return the smallest difference that each contrast detects with 80% power, for several numbers of seeds."""
    rows = [
        [f"{row.contender} - {row.reference} in {row.measure}", *(row.size(size) for size in sizes if size is not None)]
        for row in differences
        if None not in (sizes := [row.detectable_with(seeds) for seeds in SEEDS])
    ]
    return [["detectable with", *(f"{seeds} seeds" for seeds in SEEDS)], *rows]


def differences_table(
    runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], title: str = "difference (not tested)"
) -> Table:
    """Return the differences between contenders and references in every measure, paired by seed and task."""
    rows = [
        [f"{contender} - {reference}", *(_described(runs, contender, reference, measure) for measure in MEASURES)]
        for contender, reference in pairs
    ]
    return [[title, *MEASURES], *(row for row in rows if any(cell != "-" for cell in row[1:]))]


def _described(runs: Sequence[RunOutcome], contender: str, reference: str, measure: str) -> str:
    row = difference(runs, (contender, reference, measure))
    return "-" if row is None else f"{row.shown}{_counted(row)}"


def _counted(row: Difference) -> str:
    """Say over how many cells a difference is, where some do not count."""
    return "" if row.cells == row.cells_in_all else f" ({row.cells} of {row.cells_in_all} solved by both)"


def standing_table(runs: Sequence[RunOutcome], yardstick: str = "") -> Table:
    """Return every contender's regret, the attempts it needs, and how its latencies compare with the oracle's.

    The regret column is left out without a yardstick, the column of latencies if no run recorded the oracle's.
    """
    contenders = {run.agent: [other for other in runs if other.agent == run.agent] for run in runs}
    needed = [f"to {level:.0%} of tasks" for level in LEVELS]
    head = ["agent", f"regret in area to {yardstick}", "attempts to solve", *needed, "oracle's latency / own"]
    rows = [
        [
            name,
            _described(runs, yardstick, name, "area") if yardstick and name != yardstick else "-",
            _cell(mean.interval, 1) if (mean := attempts_to_solve(own)) else "-",
            *(str(attempts_needed(own, level) or "-") for level in LEVELS),
            _against_oracle(own),
        ]
        for name, own in contenders.items()
    ]
    kept = [i for i in range(len(head)) if i == 0 or any(row[i] != "-" for row in rows)]
    return [[row[i] for i in kept] for row in (head, *rows)] if len(kept) > 1 else [[]]


def _against_oracle(runs: Sequence[RunOutcome]) -> str:
    """Return the geometric mean of the oracle's latency / the best latency over the solved tasks, with its interval."""
    tasks = sorted({task for run in runs for task in run.tasks})
    ratios: Cells = np.asarray([[_log_ratio(run.tasks.get(task)) for task in tasks] for run in runs], dtype=float)
    mean = crossed_mean(ratios)
    if mean is None:
        return "-"
    low, high = np.exp([mean.interval.low, mean.interval.high])
    return f"{np.exp(mean.mean):.2f} [{low:.2f}, {high:.2f}]"


def _log_ratio(task: TaskOutcome | None) -> float:
    return log(task.oracle_us / task.best_us) if task and task.oracle_us and task.best_us else nan


def rankings_table(runs: Sequence[RunOutcome], figure: str = "area") -> Table:
    """Return a figure's mean by arm and agent, how often each agent is first, and its mean rank; empty for one arm."""
    means = {name: sum(seeds.values()) / len(seeds) for name, seeds in by_seed(runs, figure).items()}
    arms = list(dict.fromkeys(name.rpartition("/")[0] for name in means))
    agents = list(dict.fromkeys(name.rpartition("/")[2] for name in means))
    shared = [arm for arm in arms if all(f"{arm}/{agent}" in means for agent in agents)]
    if len(shared) < 2 or len(agents) < 2:
        return [[]]
    rows = [[arm, *(f"{means[f'{arm}/{agent}']:.3f}" for agent in agents)] for arm in shared]
    ranks = {agent: [_rank(means, arm, agent, agents) for arm in shared] for agent in agents}
    rows.append(["times first", *(str(ranks[agent].count(1)) for agent in agents)])
    rows.append(["mean rank", *(f"{sum(ranks[agent]) / len(shared):.2f}" for agent in agents)])
    return [[f"{figure} by arm", *agents], *rows]


def _rank(means: Mapping[str, float], arm: str, agent: str, agents: Sequence[str]) -> int:
    return 1 + sum(means[f"{arm}/{other}"] > means[f"{arm}/{agent}"] for other in agents)


def marks_table(runs: Sequence[RunOutcome], marks: Sequence[int]) -> Table:
    """Return the share of tasks solved after so many attempts each; marks beyond the budget are left out."""
    reached = [mark for mark in marks if all(mark <= len(run.curve) for run in runs)]
    if not reached:
        return [[]]
    curves: dict[str, list[tuple[float, ...]]] = {}
    for run in runs:
        curves.setdefault(run.agent, []).append(run.curve)
    rows = [
        [name, *(_cell(interval([curve[mark - 1] for curve in own])) for mark in reached)]
        for name, own in curves.items()
    ]
    return [["correct after", *(f"{mark} attempts" for mark in reached)], *rows]


def gains_table(runs: Sequence[RunOutcome], definition: StudyDefinition) -> Table:
    """Return the difference of each learner from the heuristic with the largest area, which these runs chose."""
    values = by_seed(runs, "area")
    present = [name for name in definition.heuristics if values.get(name)]
    best = max(present, key=lambda name: fmean(values[name].values()), default="")
    title = "difference from the best heuristic (not tested)"
    return differences_table(runs, [(learner, best) for learner in definition.learners], title)


def _cell(value: Interval | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    mean, low, high = (f"{number:.{digits}f}" for number in (value.mean, value.low, value.high))
    return f"{mean} [{low}, {high}]"


def markdown(table: Table) -> str:
    """Return a table in Markdown, with figures aligned right."""
    head, *rows = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def results(name: str, definition: StudyDefinition, study: Study) -> str:
    """Return all results of a study in Markdown: its contrasts, then the tables of all tasks and of each suite."""
    outcomes = study.outcomes()
    differences = judged(outcomes, definition.contrasts, definition.margins)
    parts = [f"# {name}", definition.about, definition.question, _size(study), f"## {CONTRASTS}"]
    parts += [markdown(table) for table in contrast_tables(differences)] or [untested(definition.contrasts)]
    for title, figures in (("Predictions", definition.predictions), ("Targets of the fit", definition.targets)):
        if rows := prediction_rows(figures, outcomes):
            parts += [f"## {title}", predictions_summary(rows), markdown(predictions_table(rows))]
    parts += _rankings(definition, outcomes)
    for title, runs in study.comparable().items():
        pairs = definition.compared(list(intervals(runs)))
        tables = [figures_table(runs), standing_table(runs, definition.yardstick)]
        tables += compared_tables(runs, pairs, definition)
        parts += [f"## {title}", *(markdown(table) for table in tables if len(table) > 1)]
    parts.append("\n".join(f"- {figure}: {meaning}" for figure, meaning in FIGURES.items()))
    parts.append(LEGEND)
    if definition.published:
        parts += [PUBLISHED, markdown(published_table(definition))]
    parts.append(_author(study))
    return "\n\n".join(parts) + "\n"


def _rankings(definition: StudyDefinition, runs: Sequence[RunOutcome]) -> list[str]:
    """Return the rankings that the study names, each with pairs and categories; arms without runs have none."""
    parts: list[str] = []
    for title, arms in definition.rankings.items():
        ranking = Ranking(runs, arms)
        if len(ranking.agents) < 2:
            continue
        categories = {task: find_task(task).category for task in ranking.tasks}
        tables = (ranking.standings(), ranking.pairs(), ranking.by_category(categories))
        parts += [f"## {title}", *map(markdown, tables)]
    return [*parts, WINS] if parts else []


def _author(study: Study) -> str:
    """Say who wrote the kernels."""
    models = sorted({str(shard.config.env.author_options.get("model", "")) for shard in study.shards} - {""})
    if not models:
        return SIMULATED_AUTHOR
    options = study.shards[0].config.env.author_options
    settings = ", ".join(f"{name} {options[name]}" for name in MODEL_SETTINGS if name in options)
    return f"The author is the language model {', '.join(models)}" + (f" ({settings})." if settings else ".")


def compared_tables(
    runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], definition: StudyDefinition | None = None
) -> list[Table]:
    """Return the tables that compare contenders, all descriptive; empty ones are left out."""
    marked = [marks_table(runs, definition.marks)] if definition else []
    gains = [gains_table(runs, definition)] if definition else []
    compared = (*marked, rankings_table(runs), differences_table(runs, pairs), *gains)
    return [table for table in compared if len(table) > 1]


def published_table(definition: StudyDefinition) -> Table:
    """Return the paper's figures that belong to a study."""
    return [["published", "value"], *([row.what, row.value] for row in definition.published)]


LEGEND = (
    "Figures of an agent are means over seeds with 95% bootstrap intervals over seeds, for these tasks. Differences "
    "are paired by seed and task, and their 95% intervals come from a two-way bootstrap over seeds and tasks, so they "
    "are meant for other seeds and for other tasks of the same kind. Only contrasts are tested, with p after Holm over "
    "those that were named. Better and worse mean p after Holm below 0.05. Equivalent means that the whole interval is "
    "within the margin. Undecided means neither; then the smallest true difference that such a study detects with 80% "
    "power is stated. `detectable with` has the same for other numbers of seeds, with these tasks and this noise. "
    "`speedup` of a difference is a factor, over the tasks that both solved. `speedup` of an agent is over the tasks "
    "that it solved itself and from its own first feasible draft, so a slow first draft raises it. `attempts to solve` "
    "is the mean attempt of the first feasible kernel; a task that is not solved counts with the budget. `to 50% of "
    "tasks` is the attempt at which half of the tasks are solved. `oracle's latency / own` is the latency of the "
    "oracle's kernel / that of the agent's best, geometric mean over the tasks that it solved."
)


def _size(study: Study) -> str:
    complete = study.complete()
    seeds = len({shard.seed for shard in study.shards})
    budgets = sorted({shard.config.budget for shard in study.shards})
    commits = study.commits()
    mixed = (
        " **The runs are of different commits: run them again at one before comparing.**" if len(commits) > 1 else ""
    )
    return (
        f"{len(complete)} of {len(study.shards)} runs complete; {seeds} seeds, "
        f"{' or '.join(map(str, budgets))} attempts per task. Commit {', '.join(commits)}.{mixed}{_missing(study)}"
    )


def _missing(study: Study) -> str:
    """Name the runs that are not complete, by contender."""
    complete = {shard.label for shard in study.complete()}
    seeds: dict[str, list[str]] = {}
    for shard in study.shards:
        if shard.label not in complete:
            seeds.setdefault(shard.contender, []).append(str(shard.seed))
    names = ", ".join(f"{name} (seed {', '.join(missing)})" for name, missing in seeds.items())
    return f" Not complete yet: {names}; differences are over the seeds that both have." if names else ""
