"""A study as a person reads it: tables of figures with intervals, paired differences, what a learner gains."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernel_gym.experiments.runs.comparison import FIGURES, RunOutcome, by_seed, intervals
from kernel_gym.experiments.statistics import Difference, Interval, corrected, detectable_effect, differences, interval
from kernel_gym.experiments.studies.gains import ClosedGap, closed_gap, gain
from kernel_gym.experiments.studies.study import Study
from kernel_gym.experiments.studies.study_definition import Protocol

Table = list[list[str]]

#: Figures that contenders are compared in; the first decides who the best heuristic is.
COMPARED = ("area", "correct")
_COLUMNS = ("mean [95% interval]", "effect", "per seed")
_TESTED = ("p (Holm)", "detectable", "")
PUBLISHED = "The paper's figures, with language models on a real NPU, for orientation:"
SIMULATED = "The author is simulated: this compares what it was shown, not language models."


def figures_table(runs: Sequence[RunOutcome], names: Sequence[str] = tuple(FIGURES)) -> Table:
    """Every contender's figures: mean [95% interval] over seeds."""
    rows = [[name, *(_cell(figures[figure]) for figure in names)] for name, figures in intervals(runs).items()]
    return [["agent", *names], *rows]


def differences_table(runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], figure: str = "area") -> Table:
    """Contenders against references, paired by seed."""
    found = differences(by_seed(runs, figure), pairs)
    head = [f"difference in {figure}", *_COLUMNS, *_TESTED]
    return [head, *(_difference_row(one) for one in found)]


def rankings_table(runs: Sequence[RunOutcome], figure: str = "area") -> Table:
    """Arms against agents: the figure's mean, who is first how often, and the mean rank. Empty with a single arm."""
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
    """The share of operators solved after so many attempts each; marks beyond the budget are left out."""
    reached = [mark for mark in marks if all(mark <= len(run.curve) for run in runs)]
    if not reached:
        return [[]]
    curves: dict[str, list[tuple[float, ...]]] = {}
    for run in runs:
        curves.setdefault(run.agent, []).append(run.curve)
    rows = [
        [name, *(_cell(interval([one[mark - 1] for one in own])) for mark in reached)] for name, own in curves.items()
    ]
    return [["correct after", *(f"{mark} attempts" for mark in reached)], *rows]


def gains_table(runs: Sequence[RunOutcome], protocol: Protocol) -> Table:
    """What each learner gains over the best heuristic, in every compared figure; corrected within a figure."""
    rows = []
    for figure in COMPARED:
        gains = [gain(runs, learner, protocol.heuristics, figure) for learner in protocol.learners]
        for found in corrected([one for one in gains if one is not None]):
            name, *rest = _difference_row(found)
            rows.append([name, figure, *rest])
    return [["gain over the best heuristic", "in", *_COLUMNS, *_TESTED], *rows]


def gaps_table(runs: Sequence[RunOutcome], protocol: Protocol) -> Table:
    """How much of the gap between the best heuristic and the yardstick each learner closes, figure by figure."""
    found = [
        [one.learner, figure, f"{one.heuristic} {one.gap.signed}", *_closed(one, protocol.yardstick)]
        for figure in COMPARED
        for learner in protocol.learners
        if (one := closed_gap(runs, learner, protocol.heuristics, protocol.yardstick, figure))
    ]
    return [[f"share of the gap to {protocol.yardstick}", "in", "gap from", "share [95% interval]", "per seed"], *found]


def _closed(found: ClosedGap, yardstick: str) -> list[str]:
    shares = ", ".join("no gap" if share is None else f"{share:+.0%}" for share in found.per_seed.values())
    if found.share is None:
        seeds = ", ".join(map(str, found.without))
        return [f"{yardstick} is not above {found.heuristic} in seed {seeds}", shares]
    return [f"{found.share.mean:+.0%} [{found.share.low:+.0%}, {found.share.high:+.0%}]", shares]


def _difference_row(found: Difference) -> list[str]:
    return [
        f"{found.contender} - {found.reference}",
        found.interval.signed,
        "-" if found.effect is None else f"{found.effect:+.2f}",
        ", ".join(f"{value:+.3f}" for value in found.per_seed.values()),
        f"{found.adjusted:.3f}",
        "-" if found.detectable is None else f"{found.detectable:.3f}",
        found.verdict,
    ]


def _cell(value: Interval | None) -> str:
    return "-" if value is None else f"{value.mean:.2f} [{value.low:.2f}, {value.high:.2f}]"


def markdown(table: Table) -> str:
    """A table in Markdown; figures to the right."""
    head, *rows = table
    lines = [head, ["---", *["---:"] * (len(head) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def results(name: str, protocol: Protocol, study: Study) -> str:
    """Everything a study came to, in Markdown: for all operators and for those of each suite."""
    parts = [f"# {name}", protocol.about, protocol.question, _size(study)]
    for title, runs in study.comparable().items():
        pairs = protocol.compared(list(intervals(runs)))
        shown = (figures_table(runs), *compared_tables(runs, pairs, protocol))
        parts += [f"## {title}", *(markdown(table) for table in shown)]
        if words := power(len({run.seed for run in runs}), len(pairs)):
            parts.append(words)
    parts.append("\n".join(f"- {figure}: {meaning}" for figure, meaning in FIGURES.items()))
    parts.append(LEGEND)
    if protocol.published:
        parts += [PUBLISHED, markdown(published_table(protocol))]
    parts.append(SIMULATED)
    return "\n\n".join(parts) + "\n"


def compared_tables(
    runs: Sequence[RunOutcome], pairs: Sequence[tuple[str, str]], protocol: Protocol | None = None
) -> list[Table]:
    """The comparisons of these pairs and, of a study, what learners gain; those that there are runs for."""
    compared = [differences_table(runs, pairs, figure) for figure in COMPARED]
    marked = [marks_table(runs, protocol.marks)] if protocol else []
    gains = [gains_table(runs, protocol), gaps_table(runs, protocol)] if protocol else []
    return [table for table in (*marked, rankings_table(runs), *compared, *gains) if len(table) > 1]


def published_table(protocol: Protocol) -> Table:
    """The paper's figures that stand beside a study."""
    return [["published", "value"], *([row.what, row.value] for row in protocol.published)]


LEGEND = (
    "Means over seeds with 95% bootstrap intervals. Differences are paired by seed; `effect` is the difference in "
    "units of its deviation over seeds (Cohen's d of pairs); p is that of a paired t-test (a sign test where all seeds "
    "differ by the same), corrected after Holm within a figure of a table; `detectable` is the smallest true "
    "difference that this many seeds with this much noise show with 80% power at the level of Holm's first step, so "
    "what is smaller may well be there and not be found. `speedup` is over the operators that a contender solved "
    "itself: one that solves harder ones too may show less of it."
)


def power(seeds: int, comparisons: int) -> str:
    """What so few seeds can show at all, in words."""
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
    mixed = " **Runs of different commits are mixed: make them anew before comparing.**" if len(commits) > 1 else ""
    return (
        f"{len(complete)} of {len(study.shards)} runs complete; {seeds} seeds, "
        f"{' or '.join(map(str, budgets))} attempts an operator. Commit {', '.join(commits)}.{mixed}{_missing(study)}"
    )


def _missing(study: Study) -> str:
    """Which runs are not there yet, by contender."""
    there = {shard.label for shard in study.complete()}
    seeds: dict[str, list[str]] = {}
    for shard in study.shards:
        if shard.label not in there:
            seeds.setdefault(shard.contender, []).append(str(shard.seed))
    names = ", ".join(f"{name} (seed {', '.join(some)})" for name, some in seeds.items())
    return f" Not there yet: {names}; differences are of the seeds that both have." if names else ""
