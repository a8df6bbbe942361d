"""Write the report of a study or a comparison: one HTML file that loads nothing else.

Everything is read from the run folders: journals, banks, configurations. Traces of the fastest kernels are made by
running them once more, if this machine can.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from kernel_gym import suites
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments import drawing
from kernel_gym.experiments.reports import episodes, page_template, pipe_trace, task_matrix, unrelated_runs
from kernel_gym.experiments.reports.sections import UNIT, answers, curves, sections
from kernel_gym.experiments.reports.top_memories import top_memories
from kernel_gym.experiments.runs.figures import FIGURES
from kernel_gym.experiments.runs.finished_run import STEPS, TIERS, FinishedRun
from kernel_gym.experiments.runs.journal import Record
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.experiments.runs.run_plan import environment_options
from kernel_gym.experiments.studies import agent_comparison, study_commands, tables
from kernel_gym.experiments.studies.contrasts import Difference, judged
from kernel_gym.experiments.studies.evaluation import complete_runs
from kernel_gym.experiments.studies.study_definition import StudyDefinition
from kernel_gym.memory.item import MemoryItem

#: The number of memories of each stage, and of kernels, that are shown with their text.
SHOWN_MEMORIES, SHOWN_KERNELS = 8, 8
#: Uses the author's own probabilities, so its runs are not chosen for the details.
YARDSTICK = "oracle"


def write_report(
    folder: Path, file: Path, reference: str = "", traces: bool = True, detailed: str = "", attempts: str = "auto"
) -> Path:
    """Write the report of all complete runs below a folder.

    Args:
        folder: The folder of a run, a comparison or a study.
        file: The HTML file to write.
        reference: The contender that the others are compared with; that of the comparison or study if left out.
        traces: Whether to run the fastest kernels once more and draw what their pipes did.
        detailed: The run whose details are shown, as `CONTENDER/SEED`; the one with the largest area if left out.
        attempts: The runs whose attempts can be browsed: `all`, `one` (the run in detail), `none`, or `auto`: all
            unless they have more than `episodes.MOST_ATTEMPTS` attempts.

    Returns:
        The file.

    Raises:
        ConfigError: The reference or the detailed run does not exist.
        KernelGymError: There is no complete run below the folder, or a run cannot be read.
    """
    runs = finished(folder)
    contenders = {run.contender for run in runs}
    if reference and reference not in contenders:
        raise ConfigError(f"no run of {reference!r} is complete; there are {', '.join(sorted(contenders))}")
    best = _detailed(runs, detailed)
    content = _content(folder, runs, reference, traces, best)
    why = "The run that was named." if detailed else "The run with the largest area."
    browsed = episodes.shown_runs(runs, best, attempts)
    page = page_template.render(content | {"why": why} | _task_content(runs, best, browsed))
    file.write_text(page)
    return file


def write_pictures(folder: Path, out: Path, detailed: str = "") -> list[Path]:
    """Write the pictures of a report as SVG files.

    Args:
        folder: The folder of a run, a comparison or a study.
        out: The folder of the files: curves and, of one run, the attempts, the transfer between tasks, a pipe trace.
        detailed: That run, as `CONTENDER/SEED`; the one with the largest area if left out.

    Returns:
        The files; pictures that the run has no data for are left out.

    Raises:
        ConfigError: The detailed run does not exist.
        KernelGymError: There is no complete run below the folder, or a run cannot be read.
    """
    runs = finished(folder)
    best = _detailed(runs, detailed)
    kernel = next(iter(_kernels(best, traces=True)), None)
    compared = next(group for group in _groups(folder, runs).values() if best in group)
    pictures = {
        "curves": drawing.curves(curves([run.outcome for run in compared]), UNIT, key=True),
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
    """Return all complete runs below a folder; runs of one contender have the same settings."""
    runs = [FinishedRun.read(run, folder) for run in complete_runs([folder])]
    return runs if unrelated_runs.is_designed(folder) else unrelated_runs.with_own_names(runs)


def _groups(folder: Path, runs: Sequence[FinishedRun]) -> Mapping[str, Sequence[FinishedRun]]:
    """Return the runs that can be in one table, by their settings: all of them if they are of one comparison."""
    return {"": runs} if unrelated_runs.is_designed(folder) else unrelated_runs.by_settings(runs)


def _content(
    folder: Path, runs: Sequence[FinishedRun], reference: str, traces: bool, best: FinishedRun
) -> dict[str, Any]:
    items = _items(best.folder)
    definition = study_commands.definition_in(folder)
    against = reference or ("" if definition else agent_comparison.reference(folder))
    ranked_by, memories = top_memories(best, SHOWN_MEMORIES)
    yardsticks = {run.contender for run in runs if run.config.agent == YARDSTICK}
    compared = sections(_groups(folder, runs), against, definition, yardsticks)
    return {
        "title": folder.absolute().name,
        "notes": [] if unrelated_runs.is_designed(folder) else unrelated_runs.notes(runs),
        "answers": answers(compared),
        "contents": _contents(compared),
        "contrasts_title": tables.CONTRASTS,
        "contrasts": tables.contrast_tables(_judged(runs, definition, "" if reference else against)),
        "untested": tables.untested(definition.contrasts if definition else ()),
        "sections": compared,
        "figures": FIGURES,
        "legend": tables.LEGEND.replace("`", ""),
        "simulated": tables.SIMULATED_AUTHOR if best.config.env.author == "apprentice" else "",
        "published": tables.published_table(definition) if definition and definition.published else [],
        "published_words": tables.PUBLISHED,
        "grades": list(zip(drawing.GRADES, TIERS, strict=True)),
        "steps": list(zip(drawing.GRADES, STEPS, strict=True)),
        "tiers": list(_tiers(runs, items)),
        "speedups": drawing.spread(_speedups_by_contender(runs)),
        "best": best,
        "timeline": drawing.timeline(list(best.steps().items()), best.config.budget),
        "transfer": _transfer(best, items),
        "ranked_by": ranked_by,
        "memories": memories,
        "kernels": _kernels(best, traces),
        "runs": _runs(runs),
        "config": (best.folder.path / "config.yaml").read_text(),
        "provenance": _provenance(best.folder),
    }


#: What the cells of the matrix can show.
MEASURES = {
    "solved": "seeds that solved the task",
    "latency": "lowest latency in microseconds",
    "first": "attempts to the first correct kernel",
}
#: The sections after the comparisons: id -> title.
SECTIONS = {
    "tasks": "Every task with every contender",
    "tiers": "How far tasks came",
    "speedups": "Speedups",
    "timeline": "One run in detail",
    "episodes": "Episodes",
    "transfer": "Transfer between tasks",
    "memories": "Most valuable memories",
    "kernels": "Best kernels",
    "configuration": "Configuration",
}


def _contents(compared: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    """Return id and title of every section."""
    results = [(f"results-{number}", f"Results: {section['name']}") for number, section in enumerate(compared, 1)]
    return [("contrasts", tables.CONTRASTS), *results, *SECTIONS.items()]


def _task_content(runs: Sequence[FinishedRun], best: FinishedRun, browsed: Sequence[FinishedRun]) -> dict[str, Any]:
    """Return the matrix of tasks and contenders, and the attempts that can be browsed."""
    if len(browsed) == len(runs):
        words = f"All {sum(len(run.records) for run in runs):,} attempts: what was shown, written and judged."
    else:
        words = "The attempts of the run in detail alone: what was shown, written and judged."
    return {
        "measures": MEASURES,
        "contenders": task_matrix.contenders_of(runs),
        "matrix": task_matrix.task_matrix(runs, browsed),
        "episodes": episodes.packed(browsed) if browsed else "",
        "episode_run": task_matrix.run_name(best),
        "episode_words": words,
    }


def _judged(runs: Sequence[FinishedRun], definition: StudyDefinition | None, reference: str) -> list[Difference]:
    """Return the contrasts that were named before the runs: a study's, or those of a comparison with its reference."""
    outcomes = [run.outcome for run in runs]
    if definition:
        return judged(outcomes, definition.contrasts, definition.margins)
    contenders = dict.fromkeys(run.contender for run in runs if reference and run.contender != reference)
    return judged(outcomes, [(contender, reference, "area") for contender in contenders])


def _provenance(folder: RunFolder) -> dict[str, str]:
    provenance = folder.provenance
    resumed = {f"from attempt {part['attempt']}": part for part in provenance.pop("resumed", ())}
    again = {when: f"commit {part['commit']}, {_shareable(part['command'])}" for when, part in resumed.items()}
    words = {"command": _shareable(provenance.get("command", ()))}
    words["packages"] = ", ".join(f"{name} {version}" for name, version in provenance.get("packages", {}).items())
    return {name: words.get(name, str(value)) for name, value in provenance.items()} | again


def _shareable(command: Sequence[str]) -> str:
    """Return a command line in which absolute paths are cut to their last part, because reports are passed on."""
    arguments = (argument.rpartition("=") for argument in command)
    return " ".join(f"{option}{equals}{_last_part(value)}" for option, equals, value in arguments)


def _last_part(value: str) -> str:
    return f".../{Path(value).name}" if Path(value).is_absolute() else value


def _detailed(runs: Sequence[FinishedRun], name: str) -> FinishedRun:
    """Return the run whose details are shown: the named one, or that with the largest area."""
    if name:
        contender, _, seed = name.rpartition("/")
        named = [
            run for run in runs if (run.contender, str(run.config.seed)) == (contender, seed.removeprefix("seed-"))
        ]
        if not named:
            existing = ", ".join(f"{run.contender}/{run.config.seed}" for run in runs)
            raise ConfigError(f"no complete run is called {name!r}; there are {existing}")
        return named[0]
    contenders = [run for run in runs if run.config.agent != YARDSTICK] or runs
    return max(contenders, key=lambda run: run.outcome.figures["area"] or 0.0)


def _speedups_by_contender(runs: Sequence[FinishedRun]) -> dict[str, list[float]]:
    speedups: dict[str, list[float]] = {}
    for run in runs:
        speedups.setdefault(run.contender, []).extend(run.speedups())
    return speedups


def _tiers(runs: Sequence[FinishedRun], items: Mapping[int, MemoryItem]) -> Iterator[tuple[str, int, str]]:
    """Yield, for each category, its name, the number of its tasks and a picture of how far they came."""
    categories = {item.task: item.category for item in items.values() if item.task}
    counts: dict[str, dict[str, list[int]]] = defaultdict(dict)
    tasks: dict[str, set[str]] = defaultdict(set)
    for run in runs:
        for task, reached in run.tiers().items():
            category = _category(task) or categories.get(task, "other")
            tasks[category].add(task)
            counts[category].setdefault(run.contender, [0] * len(TIERS))[reached] += 1
    for category in sorted(counts):
        yield category, len(tasks[category]), drawing.tiers(counts[category])


def _category(task: str) -> str:
    """Return a task's category; empty for a task that is not available here."""
    try:
        return suites.find_task(task).category
    except KernelGymError:
        return ""


def _transfer(run: FinishedRun, items: Mapping[int, MemoryItem]) -> str:
    """Draw from which tasks the feasible memories came that were shown at the first success of each task."""
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
    with folder.open_bank() as bank:
        return {item.id: item for item in bank.items()}


def _kernels(run: FinishedRun, traces: bool) -> list[dict[str, Any]]:
    """Return the kernels that gained most over their first draft, with their source and where their time went."""
    gains = []
    for task, history in run.histories().items():
        feasible = [record for record in history if record["verdict"]["feasible"]]
        fastest = min(feasible, key=lambda record: record["verdict"]["latency_us"], default=None)
        if fastest and (source := _source(run, fastest)).exists():
            best = fastest["verdict"]
            gain = feasible[0]["verdict"]["latency_us"] / best["latency_us"]
            gains.append((gain, task, best, source.read_text()))
    gains.sort(key=lambda row: (-row[0], row[1]))
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
        for gain, task, best, source in gains[:SHOWN_KERNELS]
    ]


def _source(run: FinishedRun, record: Record) -> Path:
    """Return the file of a fastest kernel. With stages=draft a later episode may have replaced the one in `best`."""
    drafts_only = run.config.env.stages == "draft"
    return run.folder.kernel(record["kernel"]) if drafts_only else run.folder.best(record["task"])


def _trace(run: FinishedRun, task: str, source: str) -> dict[str, str]:
    """Return a picture of what the kernel's pipes did when, or why there is none."""
    from kernel_gym.envs import factories

    try:
        device = factories.device(environment_options(run.config, run.folder))
    except KernelGymError as error:
        return {"missing": str(error)}
    try:
        return {"svg": pipe_trace.picture(pipe_trace.trace_kernel(source, task, device))}
    except KernelGymError as error:
        return {"missing": str(error)}
    finally:
        device.close()


def _runs(runs: Sequence[FinishedRun]) -> list[list[str]]:
    """Return the table of every contender's runs, with the settings in which it differs from others."""
    flat = {id(run): _flat(run.config.model_dump(mode="json", exclude={"seed", "workers"})) for run in runs}
    keys = {key for settings in flat.values() for key in settings}
    differing = sorted(key for key in keys if len({settings.get(key, "") for settings in flat.values()}) > 1)
    rows: dict[str, list[str]] = {}
    commits: dict[str, dict[str, None]] = defaultdict(dict)
    for run in runs:
        settings = "; ".join(f"{key}: {flat[id(run)][key]}" for key in differing if key in flat[id(run)])
        row = rows.setdefault(run.contender, [run.contender, "", "", settings])
        row[1] = f"{row[1]}, {run.config.seed}" if row[1] else str(run.config.seed)
        commits[run.contender] |= dict.fromkeys(commit[:12] for commit in run.folder.commits)
        row[2] = ", ".join(commits[run.contender])
    return [["runs of", "seeds", "commit", "settings of its own"], *rows.values()]


def _flat(settings: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    """Return settings with dotted keys; lists of tasks are given by their length."""
    flat: dict[str, str] = {}
    for key, value in settings.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[f"{prefix}{key}"] = f"{len(value)} tasks" if key == "tasks" else str(value)
    return flat
