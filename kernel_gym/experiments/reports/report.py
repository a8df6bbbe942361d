"""The report of a study or a comparison: one HTML file that needs nothing else.

It is read from the run folders: journals, banks, configurations. What can't be told from them is left out. Traces of
the fastest kernels are made by running them once more, if this machine can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment

from kernel_gym import suites
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments import drawing
from kernel_gym.experiments.reports import pipe_trace
from kernel_gym.experiments.reports.sections import UNIT, curves, sections
from kernel_gym.experiments.reports.top_memories import most_valuable
from kernel_gym.experiments.runs.comparison import FIGURES
from kernel_gym.experiments.runs.finished_run import STEPS, TIERS, FinishedRun
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.training import environment_options
from kernel_gym.experiments.studies import study_commands, summary, tables
from kernel_gym.experiments.studies.evaluation import complete_runs
from kernel_gym.memory.item import MemoryItem

#: How many memories of each stage, and how many kernels, are shown with their text.
SHOWN_MEMORIES, SHOWN_KERNELS = 8, 8
#: Looks into the author, so its runs are not what the details are about.
YARDSTICK = "oracle"


def write_report(folder: Path, file: Path, reference: str = "", traces: bool = True, detailed: str = "") -> Path:
    """Write the report of all complete runs below a folder; `traces` runs the fastest kernels once more.

    `detailed` is the run whose details are shown, `CONTENDER/SEED`; left out, the one that did best.
    """
    runs = finished(folder)
    contenders = {run.contender for run in runs}
    if reference and reference not in contenders:
        raise ConfigError(f"no run of {reference!r} is complete; there are {', '.join(sorted(contenders))}")
    template = Environment(autoescape=True).from_string(
        files("kernel_gym.experiments.reports").joinpath("report.html.j2").read_text()
    )
    file.write_text(template.render(**_content(folder, runs, reference, traces, detailed)))
    return file


def write_pictures(folder: Path, out: Path, detailed: str = "") -> list[Path]:
    """Write the pictures of a report as SVG files: curves, and of one run what it did and who helped whom."""
    runs = finished(folder)
    best = _detailed(runs, detailed)
    kernel = next(iter(_kernels(best, traces=True)), None)
    pictures = {
        "curves": drawing.curves(curves([run.outcome for run in runs]), UNIT, key=True),
        "timeline": drawing.timeline(list(best.steps().items()), best.config.budget),
        "transfer": _transfer(best, _items(best.folder)),
        "pipes": kernel["trace"].get("svg", "") if kernel else "",
    }
    out.mkdir(parents=True, exist_ok=True)
    written = []
    for name, svg in pictures.items():
        if svg:
            written.append(out / f"{name}.svg")
            written[-1].write_text(drawing.alone(svg))
    return written


def finished(folder: Path) -> list[FinishedRun]:
    """All complete runs below a folder."""
    return [FinishedRun.read(run, folder) for run in complete_runs([folder])]


def _content(folder: Path, runs: Sequence[FinishedRun], reference: str, traces: bool, detailed: str) -> dict[str, Any]:
    best = _detailed(runs, detailed)
    items = _items(best.folder)
    protocol = study_commands.marked(folder)
    against = reference or ("" if protocol else summary.reference(folder))
    ranked_by, valuable = most_valuable(best, SHOWN_MEMORIES)
    return {
        "title": folder.absolute().name,
        "sections": sections(runs, against, protocol),
        "figures": FIGURES,
        "legend": tables.LEGEND.replace("`", ""),
        "simulated": tables.SIMULATED if best.config.env.author == "apprentice" else "",
        "published": tables.published_table(protocol) if protocol and protocol.published else [],
        "published_words": tables.PUBLISHED,
        "grades": list(zip(drawing.GRADES, TIERS, strict=True)),
        "steps": list(zip(drawing.GRADES, STEPS, strict=True)),
        "tiers": list(_tiers(runs, items)),
        "speedups": drawing.spread(_by_contender(runs)),
        "best": best,
        "why": "As asked for." if detailed else "The run with the largest area.",
        "timeline": drawing.timeline(list(best.steps().items()), best.config.budget),
        "transfer": _transfer(best, items),
        "ranked_by": ranked_by,
        "memories": valuable,
        "kernels": _kernels(best, traces),
        "runs": _runs(runs),
        "config": (best.folder.path / "config.yaml").read_text(),
        "provenance": _provenance(best.folder),
    }


def _provenance(folder: RunFolder) -> dict[str, str]:
    found = folder.provenance
    resumed = {f"from attempt {part['attempt']}": part for part in found.pop("resumed", ())}
    again = {when: f"commit {part['commit']}, {_typed(part['command'])}" for when, part in resumed.items()}
    words = {"command": _typed(found.get("command", ()))}
    words["packages"] = ", ".join(f"{name} {version}" for name, version in found.get("packages", {}).items())
    return {name: words.get(name, str(value)) for name, value in found.items()} | again


def _typed(command: Sequence[str]) -> str:
    """A command line as it can be shown to others: of absolute paths the last part, since a report travels."""
    factories = (argument.rpartition("=") for argument in command)
    return " ".join(f"{option}{equals}{_last(value)}" for option, equals, value in factories)


def _last(value: str) -> str:
    return f".../{Path(value).name}" if Path(value).is_absolute() else value


def _detailed(runs: Sequence[FinishedRun], wanted: str) -> FinishedRun:
    """The run whose details are shown: the one asked for, or the contender's with the largest area."""
    if wanted:
        contender, _, seed = wanted.rpartition("/")
        found = [
            run for run in runs if (run.contender, str(run.config.seed)) == (contender, seed.removeprefix("seed-"))
        ]
        if not found:
            there = ", ".join(f"{run.contender}/{run.config.seed}" for run in runs)
            raise ConfigError(f"no complete run is called {wanted!r}; there are {there}")
        return found[0]
    contenders = [run for run in runs if run.config.agent != YARDSTICK] or runs
    return max(contenders, key=lambda run: run.outcome.figures["area"] or 0.0)


def _by_contender(runs: Sequence[FinishedRun]) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for run in runs:
        found.setdefault(run.contender, []).extend(run.speedups())
    return found


def _tiers(runs: Sequence[FinishedRun], items: Mapping[int, MemoryItem]) -> Iterator[tuple[str, int, str]]:
    """How far operators came, by category and contender: category, its operators, a picture."""
    kept = {item.task: item.category for item in items.values() if item.task}
    counts: dict[str, dict[str, list[int]]] = defaultdict(dict)
    operators: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for task, reached in run.tiers().items():
            kind = _category(task) or kept.get(task, "other")
            operators[kind].add(task)
            counts[kind].setdefault(run.contender, [0] * len(TIERS))[reached] += 1
    for kind in sorted(counts):
        yield kind, len(operators[kind]), drawing.tiers(counts[kind])


def _category(task: str) -> str:
    """As the task's suite has it; empty for an operator that is not here."""
    try:
        return suites.find_task(task).category
    except KernelGymError:
        return ""


def _transfer(run: FinishedRun, items: Mapping[int, MemoryItem]) -> str:
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
    with folder.memory() as bank:
        return {item.id: item for item in bank.items()}


def _kernels(run: FinishedRun, traces: bool) -> list[dict[str, Any]]:
    """The kernels that gained most over their first draft, with their source and where their time went."""
    found = []
    for task, history in run.histories().items():
        feasible = [record for record in history if record["verdict"]["feasible"]]
        fastest = min(feasible, key=lambda record: record["verdict"]["latency_us"], default=None)
        if fastest and (source := _source(run, fastest)).exists():
            best = fastest["verdict"]
            gain = feasible[0]["verdict"]["latency_us"] / best["latency_us"]
            found.append((gain, task, best, source.read_text()))
    found.sort(key=lambda row: (-row[0], row[1]))
    return [
        {
            "task": task,
            "gain": gain,
            "latency": best["latency_us"],
            "words": best["profile"]["diagnosis"] or best["profile"]["bottleneck"],
            "pipes": drawing.bars(best["profile"]["pipes"]),
            "trace": _trace(run, task, source) if traces else {},
            "source": source,
        }
        for gain, task, best, source in found[:SHOWN_KERNELS]
    ]


def _source(run: FinishedRun, record: Record) -> Path:
    """The file of a fastest kernel; where drafting is all, a later episode may have written a faster one."""
    drafting = run.config.env.stages == "draft"
    return run.folder.kernel(record["kernel"]) if drafting else run.folder.best(record["task"])


def _trace(run: FinishedRun, task: str, source: str) -> dict[str, str]:
    """What the kernel's pipes did when: a picture, or why there is none."""
    from kernel_gym.envs import factories

    try:
        device = factories.device(environment_options(run.config, run.folder))
    except KernelGymError as error:
        return {"missing": str(error)}
    try:
        return {"svg": pipe_trace.picture(pipe_trace.traced(source, task, device))}
    except KernelGymError as error:
        return {"missing": str(error)}
    finally:
        device.close()


def _runs(runs: Sequence[FinishedRun]) -> list[list[str]]:
    """Every contender's runs, with the settings in which it differs from others."""
    flat = {id(run): _flat(run.config.model_dump(mode="json", exclude={"seed", "workers"})) for run in runs}
    keys = {key for settings in flat.values() for key in settings}
    own = sorted(key for key in keys if len({settings.get(key, "") for settings in flat.values()}) > 1)
    rows: dict[str, list[str]] = {}
    commits: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        settings = "; ".join(f"{key}: {flat[id(run)][key]}" for key in own if key in flat[id(run)])
        row = rows.setdefault(run.contender, [run.contender, "", "", settings])
        row[1] = f"{row[1]}, {run.config.seed}" if row[1] else str(run.config.seed)
        commits[run.contender] |= dict.fromkeys(commit[:12] for commit in run.folder.commits)
        row[2] = ", ".join(commits[run.contender])
    return [["runs of", "seeds", "commit", "settings of its own"], *rows.values()]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Settings with dotted keys; lists of operators by their length."""
    found: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            found |= _flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = f"{len(value)} operators" if key == "tasks" else str(value)
    return found
