"""The report of a study or a comparison: one HTML file that needs nothing else.

It is read from the run folders alone: journals, banks, configurations. What can't be told from them is left out.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from kernel_gym.agents import drawing, tables
from kernel_gym.agents.comparison import FIGURES, RunOutcome, by_seed, outcome
from kernel_gym.agents.evaluation import complete_runs
from kernel_gym.agents.journal import Record
from kernel_gym.agents.run_folder import RunFolder, load_config
from kernel_gym.config import RunConfig
from kernel_gym.errors import KernelGymError
from kernel_gym.memory.bank import Bank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import MemoryItem, Stage

#: How many memories and kernels are shown with their text.
SHOWN_MEMORIES, SHOWN_KERNELS = 12, 8
#: A memory that was shown less often says little about its worth.
LEAST_USES = 3


@dataclass(frozen=True)
class Run:
    """A complete run as the report reads it."""

    contender: str
    folder: RunFolder
    config: RunConfig
    records: list[Record]

    @classmethod
    def read(cls, folder: RunFolder, root: Path) -> Run:
        """From its folder; its name is where it lies below the study's folder."""
        relative = folder.path.relative_to(root) if folder.path != root else Path(folder.path.name)
        config = load_config(folder.path)
        name = "/".join(part for part in relative.parts if not part.startswith("seed-")) or config.agent
        return cls(name, folder, config, folder.records(len(config.tasks) * config.budget))

    @property
    def tasks(self) -> list[str]:
        """Its operators, in the order they were met."""
        return list(dict.fromkeys(record["task"] for record in self.records))

    def outcome(self, suite: str = "") -> RunOutcome | None:
        """Its figures, over all operators or those of a suite."""
        tasks = [task for task in self.tasks if not suite or task.startswith(f"{suite}/")]
        return outcome(self.contender, self.config.seed, self.records, tasks, self.config.budget) if tasks else None

    def histories(self) -> dict[str, list[Record]]:
        """Operator -> its attempts."""
        found: dict[str, list[Record]] = defaultdict(list)
        for record in self.records:
            found[record["task"]].append(record)
        return found

    def speedups(self) -> list[float]:
        """First feasible latency / best latency of every solved operator."""
        latencies = [
            [record["verdict"]["latency_us"] for record in history if record["verdict"]["feasible"]]
            for history in self.histories().values()
        ]
        return [found[0] / min(found) for found in latencies if found]


def write_report(folder: Path, file: Path, reference: str = "") -> Path:
    """Write the report of all complete runs below a folder."""
    runs = [Run.read(run, folder) for run in complete_runs([folder])]
    template = Environment(autoescape=True).from_string(
        files("kernel_gym.agents").joinpath("report.html.j2").read_text()
    )
    file.write_text(template.render(**_content(folder, runs, reference)))
    return file


def _content(folder: Path, runs: Sequence[Run], reference: str) -> dict[str, Any]:
    contenders = list(dict.fromkeys(run.contender for run in runs))
    best = _best(runs)
    items = _items(best.folder)
    return {
        "title": folder.name,
        "contenders": [(name, drawing.colour(i)) for i, name in enumerate(contenders)],
        "sections": [_section(runs, suite, reference) for suite in _suites(runs)],
        "figures": FIGURES,
        "legend": tables.LEGEND,
        "simulated": tables.SIMULATED if best.config.env.author == "apprentice" else "",
        "tiers": _tiers(runs, items),
        "speedups": drawing.spread(_by_contender(runs)),
        "best": best,
        "timeline": drawing.timeline(_timeline(best), best.config.budget),
        "transfer": _transfer(best, items),
        "memories": _memories(best.folder),
        "kernels": _kernels(best),
        "config": (best.folder.path / "config.yaml").read_text(),
        "provenance": _provenance(best.folder),
    }


def _provenance(folder: RunFolder) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads((folder.path / "provenance.json").read_text())
    except (OSError, ValueError) as error:
        raise KernelGymError(f"{folder.path} has no readable provenance.json; copy the whole folder") from error
    return found


def _best(runs: Sequence[Run]) -> Run:
    """The run whose details are shown: the one with the largest area."""
    return max(runs, key=lambda run: (found.figures["area"] or 0.0) if (found := run.outcome()) else 0.0)


def _suites(runs: Sequence[Run]) -> list[str]:
    found = sorted({task.partition("/")[0] for run in runs for task in run.tasks})
    return [*found, ""] if len(found) > 1 else [""]


def _section(runs: Sequence[Run], suite: str, reference: str) -> dict[str, Any]:
    outcomes = [found for run in runs if (found := run.outcome(suite)) is not None]
    names = list(by_seed(outcomes, "area"))
    against = reference if reference in names else names[0]
    series: dict[str, list[tuple[float, ...]]] = defaultdict(list)
    for one in outcomes:
        series[one.agent].append(one.curve)
    return {
        "name": suite or "All operators",
        "curves": drawing.curves(series, "attempts an operator"),
        "figures": tables.figures_table(outcomes),
        "differences": tables.differences_table(outcomes, [(name, against) for name in names if name != against]),
    }


def _by_contender(runs: Sequence[Run]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.contender, []).extend(run.speedups())
    return found


def _tiers(runs: Sequence[Run], items: Mapping[int, MemoryItem]) -> list[list[str]]:
    """Share of operators solved, by category and contender."""
    category = {item.task: item.category for item in items.values() if item.task}
    solved: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for run in runs:
        for task, history in run.histories().items():
            key = category.get(task, "other"), run.contender
            solved[key].append(any(record["verdict"]["feasible"] for record in history))
    names = list(dict.fromkeys(run.contender for run in runs))
    rows = [
        [kind, *(f"{sum(found) / len(found):.0%}" if (found := solved.get((kind, name))) else "-" for name in names)]
        for kind in sorted({kind for kind, _ in solved})
    ]
    return [["category", *names], *rows]


def _timeline(run: Run) -> list[tuple[str, int | None, list[int]]]:
    rows = []
    for task, history in run.histories().items():
        best, solved = float("inf"), None
        better: list[int] = []
        for at, record in enumerate(history):
            latency = record["verdict"]["latency_us"]
            if latency is not None and latency < best:
                solved, better = (at, better) if solved is None else (solved, [*better, at])
                best = latency
        rows.append((task, solved, better))
    return rows


def _transfer(run: Run, items: Mapping[int, MemoryItem]) -> str:
    """Whose feasible memories the first success of each operator was shown."""
    edges: Counter[tuple[str, str]] = Counter()
    for task, history in run.histories().items():
        first = next((record for record in history if record["verdict"]["feasible"]), None)
        for id in first["context"] if first else ():
            item = items.get(id)
            if item is not None and item.feasible and item.task in run.tasks and item.task != task:
                edges[item.task, task] += 1
    return drawing.arcs(run.tasks, edges) if edges else ""


def _items(folder: RunFolder) -> dict[int, MemoryItem]:
    if not folder.bank.exists():
        return {}
    with Bank(folder.bank, StaticEmbedder(), read_only=True) as bank:
        return {item.id: item for item in bank.items()}


def _memories(folder: RunFolder) -> list[dict[str, Any]]:
    """The memories after which attempts went best, by stage."""
    if not folder.bank.exists():
        return []
    with Bank(folder.bank, StaticEmbedder(), read_only=True) as bank:
        items = {item.id: item for item in bank.items()}
        outcomes = bank.outcomes(list(items))
    scored = [
        (one.mean, one.uses, stage.value, items[id])
        for id, stages in outcomes.items()
        for stage in Stage
        if (one := stages[stage]).uses >= LEAST_USES
    ]
    scored.sort(key=lambda row: (-row[0], -row[1], row[3].id))
    return [
        {"mean": mean, "uses": uses, "stage": stage, "title": item.title, "text": item.text[:4000]}
        for mean, uses, stage, item in scored[:SHOWN_MEMORIES]
    ]


def _kernels(run: Run) -> list[dict[str, Any]]:
    """The kernels that gained most over their first draft, with their source and where their time went."""
    found = []
    for task, history in run.histories().items():
        feasible = [record["verdict"] for record in history if record["verdict"]["feasible"]]
        source = run.folder.path / "best" / f"{task.replace('/', '-')}.cpp"
        if feasible and source.exists():
            best = min(feasible, key=lambda verdict: verdict["latency_us"])
            gain = feasible[0]["latency_us"] / best["latency_us"]
            found.append((gain, task, best, source.read_text()))
    found.sort(key=lambda row: (-row[0], row[1]))
    return [
        {
            "task": task,
            "gain": gain,
            "latency": best["latency_us"],
            "words": best["profile"]["diagnosis"] or best["profile"]["bottleneck"],
            "pipes": drawing.bars(best["profile"]["pipes"]),
            "source": source,
        }
        for gain, task, best, source in found[:SHOWN_KERNELS]
    ]
