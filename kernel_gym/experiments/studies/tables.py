"""Write a study as tables: figures with intervals, paired differences, gains of the learners."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_gym.experiments.runs.figures import FIGURES, RunOutcome, by_seed, intervals
from kernel_gym.experiments.statistics import Difference, Interval, corrected, detectable_effect, differences, interval
from kernel_gym.experiments.studies.gains import ClosedGap, closed_gap, gain
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import StudyDefinition

Table = list[list[str]]

#: Figures that contenders are compared by.
COMPARED = ("area", "correct")
_COLUMNS = ("mean [95% interval]", "effect", "per seed")
_TESTED = ("p (Holm)", "detectable", "")
PUBLISHED = "The paper's figures, with language models on a real NPU, for orientation:"
SIMULATED_AUTHOR = "The author is simulated: this compares what it was shown, not language models."


def figures_table(runs: Sequence[RunOutcome], names: Sequence[str] = tuple(FIGURES)) -> Table:
    """Return every contender's figures: mean [95% interval] over seeds."""
    rows = [[name, *(_cell(figures[figure]) for figure in names)] for name, figures in intervals(runs).items()]
    return [["agent", *names], *rows]


def differences_table(runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], figure: str = "area") -> Table:
    """Return the differences between contenders and references, paired by seed."""
    head = [f"difference in {figure}", *_COLUMNS, *_TESTED]
    return [head, *map(_difference_row, differences(by_seed(runs, figure), pairs))]


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
    """Return what each learner gains over the best heuristic, for every compared figure; corrected within a figure."""
    rows = []
    for figure in COMPARED:
        gains = [gain(runs, learner, definition.heuristics, figure) for learner in definition.learners]
        for difference in corrected([difference for difference in gains if difference is not None]):
            name, *rest = _difference_row(difference)
            rows.append([name, figure, *rest])
    return [["gain over the best heuristic", "in", *_COLUMNS, *_TESTED], *rows]


def gaps_table(runs: Sequence[RunOutcome], definition: StudyDefinition) -> Table:
    """Return how much of the gap between the best heuristic and the yardstick each learner closes, by figure."""
    rows = [
        [gap.learner, figure, f"{gap.heuristic} {gap.gap.signed}", *_closed(gap, definition.yardstick)]
        for figure in COMPARED
        for learner in definition.learners
        if (gap := closed_gap(runs, learner, definition.heuristics, definition.yardstick, figure))
    ]
    return [
        [f"share of the gap to {definition.yardstick}", "in", "gap from", "share [95% interval]", "per seed"],
        *rows,
    ]


def _closed(gap: ClosedGap, yardstick: str) -> list[str]:
    shares = ", ".join("no gap" if share is None else f"{share:+.0%}" for share in gap.per_seed.values())
    if gap.share is None:
        seeds = ", ".join(map(str, gap.without))
        return [f"{yardstick} is not above {gap.heuristic} in seed {seeds}", shares]
    return [f"{gap.share.mean:+.0%} [{gap.share.low:+.0%}, {gap.share.high:+.0%}]", shares]


def _difference_row(row: Difference) -> list[str]:
    return [
        f"{row.contender} - {row.reference}",
        row.interval.signed,
        "-" if row.effect is None else f"{row.effect:+.2f}",
        ", ".join(f"{value:+.3f}" for value in row.per_seed.values()),
        f"{row.adjusted:.3f}",
        "-" if row.detectable is None else f"{row.detectable:.3f}",
        row.verdict,
    ]


def _cell(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"


def markdown(table: Table) -> str:
    """Return a table in Markdown, with figures aligned right."""
    head, *rows = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def results(name: str, definition: StudyDefinition, study: Study) -> str:
    """Return all results of a study in Markdown: for all tasks and for those of each suite."""
    parts = [f"# {name}", definition.about, definition.question, _size(study)]
    for title, runs in study.comparable().items():
        pairs = definition.compared(list(intervals(runs)))
        tables = (figures_table(runs), *compared_tables(runs, pairs, definition))
        parts += [f"## {title}", *map(markdown, tables)]
        if words := power(len({run.seed for run in runs}), len(pairs)):
            parts.append(words)
    parts.append("\n".join(f"- {figure}: {meaning}" for figure, meaning in FIGURES.items()))
    parts.append(LEGEND)
    if definition.published:
        parts += [PUBLISHED, markdown(published_table(definition))]
    parts.append(SIMULATED_AUTHOR)
    return "\n\n".join(parts) + "\n"


def compared_tables(
    runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], definition: StudyDefinition | None = None
) -> list[Table]:
    """Return the tables that compare pairs and, for a study, the gains of its learners; empty ones are left out."""
    compared = [differences_table(runs, pairs, figure) for figure in COMPARED]
    marked = [marks_table(runs, definition.marks)] if definition else []
    gains = [gains_table(runs, definition), gaps_table(runs, definition)] if definition else []
    return [table for table in (*marked, rankings_table(runs), *compared, *gains) if len(table) > 1]


def published_table(definition: StudyDefinition) -> Table:
    """Return the paper's figures that belong to a study."""
    return [["published", "value"], *([row.what, row.value] for row in definition.published)]


LEGEND = (
    "Means over seeds with 95% bootstrap intervals. Differences are paired by seed; `effect` is the difference in "
    "units of its deviation over seeds (Cohen's d of pairs); p is that of a paired t-test (a sign test where all seeds "
    "differ by the same), corrected after Holm within a figure of a table; `detectable` is the smallest true "
    "difference that this many seeds with this much noise show with 80% power at the level of Holm's first step, so "
    "a smaller one may exist and not be found. `speedup` is over the tasks that a contender solved itself: a contender "
    "that solves harder tasks too may show a smaller one."
)


def power(seeds: int, comparisons: int) -> str:
    """Return a sentence on the differences that so many seeds can show."""
    if seeds < 2 or not comparisons:
        return "With a single seed no difference can count." if comparisons else ""
    return (
        f"With {seeds} seeds and {comparisons} comparison{'s' * (comparisons > 1)} a figure, only a true difference of "
        f"{detectable_effect(seeds, comparisons):.1f} times its deviation over seeds is found in four of five studies."
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
