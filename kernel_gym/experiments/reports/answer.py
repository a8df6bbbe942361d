"""The answer of a comparison in one sentence: which contender is best and by how much, or that none is shown to be.

A contender is called best only if its area is above that of every other one, all pairs considered: the differences are
paired by seed and task, corrected after Holm over all pairs, and their intervals are above zero.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from itertools import combinations
from statistics import fmean

from kernel_gym.experiments.runs.figures import RunOutcome, by_seed
from kernel_gym.experiments.statistics import LEVEL, interval
from kernel_gym.experiments.studies.contrasts import Difference, judged

FIGURE = "area"
#: What the figure is, in words.
MEANING = "area under its solve curve"


def answer(runs: Sequence[RunOutcome], yardsticks: Collection[str] = ()) -> str:
    """Return the sentence.

    Args:
        runs: The runs that are compared, on the same tasks.
        yardsticks: Contenders that pick with knowledge which no agent has; they are left out.

    Returns:
        One sentence, true of the intervals in the tables.
    """
    contenders = [run for run in runs if run.agent not in yardsticks] or list(runs)
    values = by_seed(contenders, FIGURE)
    seeds = len({run.seed for run in contenders})
    size = f"{len(contenders[0].curve)} attempts a task, {seeds} seed{'s' * (seeds != 1)}"
    ranked = sorted(values, key=lambda name: -fmean(values[name].values()))
    if len(ranked) == 1:
        return f"{ranked[0]} solved {_share(contenders, ranked[0])} of the tasks ({size})."
    best, second = ranked[:2]
    if all(len(seeds) < 2 for seeds in values.values()):
        return (
            f"A single seed decides nothing between contenders: {best} has the largest {MEANING}, "
            f"{_mean(values[best])} ({size})."
        )
    leads = _leads(contenders, ranked)
    beaten = [name for name in ranked[1:] if _is_above(leads.get(name))]
    if len(beaten) == len(ranked) - 1:
        lead = _lead(leads.get(second))
        return f"{best} is best: the {MEANING} is {_mean(values[best])}, {lead} above {second} ({size})."
    if beaten:
        others = ", ".join(name for name in ranked[1:] if name not in beaten)
        return (
            f"{best} is better than {', '.join(beaten)}; whether it differs from {others} is undecided: its lead over "
            f"{second} in the {MEANING} is {_lead(leads.get(second), tested=True)} ({size})."
        )
    return (
        f"No contender is shown to be best: {best} has the largest {MEANING}, {_mean(values[best])}, but its lead over "
        f"{second}, {_lead(leads.get(second), tested=True)}, decides nothing ({size})."
    )


def _leads(runs: Sequence[RunOutcome], ranked: Sequence[str]) -> dict[str, Difference]:
    """Return the difference between the first contender and each other one, corrected over all pairs."""
    pairs = [(contender, reference, FIGURE) for contender, reference in combinations(ranked, 2)]
    return {pair.reference: pair for pair in judged(runs, pairs) if pair.contender == ranked[0]}


def _is_above(lead: Difference | None) -> bool:
    return lead is not None and lead.adjusted is not None and lead.adjusted < LEVEL and lead.interval.low > 0


def _lead(lead: Difference | None, tested: bool = False) -> str:
    """Return a lead with its interval; `tested` adds p, which may not be small although the interval is above zero."""
    if lead is None:
        return "unknown without a seed in common"
    spread, p = lead.interval, f", p {lead.adjusted:.2f} after Holm over all pairs" if tested else ""
    return f"{spread.mean:.3f} [{spread.low:.3f}, {spread.high:.3f}]{p}"


def _mean(seeds: Mapping[int, float]) -> str:
    return f"{fmean(seeds.values()):.3f}"


def _share(runs: Sequence[RunOutcome], contender: str) -> str:
    spread = interval(list(by_seed(runs, "correct").get(contender, {}).values()))
    if spread is None:
        return "none"
    width = f" [{spread.low:.0%}, {spread.high:.0%}]" if spread.high > spread.low else ""
    return f"{spread.mean:.0%}{width}"
