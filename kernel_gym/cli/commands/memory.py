"""Inspect a memory bank: list, search and show items, follow lineages, export, import and check; share it."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from kernel_gym import plugins, suites
from kernel_gym.cli import command_line
from kernel_gym.config import setting
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.memory import rows
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import Embedder
from kernel_gym.memory.item import Kind, MemoryItem, Outcomes, Stage
from kernel_gym.memory.seed import seed_items
from kernel_gym.service.shared_bank import SCHEME, SharedBank, share, unshare

EXAMPLES = """
kernel-gym memory new bank.sqlite
kernel-gym memory list bank.sqlite --kind trace --feasible
kernel-gym memory list bank.sqlite --task level1/softmax --sort draft
kernel-gym memory search bank.sqlite "softmax over the last dimension" --kind practice -k 5
kernel-gym memory show bank.sqlite 12 --json
kernel-gym memory list runs/value/bank.sqlite --agent runs/value/agent --sort refine
kernel-gym memory lineage bank.sqlite 31
kernel-gym memory export bank.sqlite memory.jsonl --exclude-tasks level1/relu,level1/gelu
kernel-gym memory import bank.sqlite memory.jsonl
kernel-gym memory search bank.sqlite "softmax" --embedder endpoint --embedder-option model=NAME
kernel-gym memory check bank.sqlite
kernel-gym memory share bank.sqlite ray://10.0.0.5:6379/team
kernel-gym memory list ray://auto/team --kind trace --feasible
kernel-gym memory unshare ray://auto/team
"""
Answer = list[dict[str, Any]] | dict[str, Any]
SORTS = ("id", "latency", "uses", *(stage.value for stage in Stage))


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    new = commands.add_parser("new", help="make a memory bank that holds the seed knowledge")
    new.add_argument("--language", default="ascendc", help="whose seed knowledge (default: ascendc)")
    listing = commands.add_parser("list", help="list items with their outcomes")
    search = commands.add_parser("search", help="find items by similarity to a text")
    show = commands.add_parser("show", help="print one item in full")
    lineage = commands.add_parser("lineage", help="print the traces that an item descends from, and its children")
    exporting = commands.add_parser("export", help="write items, statistics and their origin to a portable file")
    importing = commands.add_parser("import", help="add the items of an exported file")
    checking = commands.add_parser(
        "check", help="check the form and the address of every item; exit status 1 if one is wrong"
    )
    sharing = commands.add_parser("share", help="let an actor of a Ray cluster keep the bank, for runs on any machine")
    unsharing = commands.add_parser("unshare", help="end the actor that keeps a bank; the file stays")
    for command in (new, listing, search, show, lineage, exporting, importing, checking, sharing, unsharing):
        command.add_argument("bank", type=_bank, help="the bank's file, or ray://HOST:PORT/NAME of a shared bank")
        command.add_argument("--json", action="store_true", help="print data instead of tables")
        command.add_argument("--embedder", default="static", help="registered name or module:Class (default: static)")
        command.add_argument(
            "--embedder-option",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="option of the embedder, as in the run",
        )
    for command in (listing, search, show, lineage):
        command.add_argument("--agent", type=Path, help="folder of value or context-value: show its values of items")
    for command in (listing, search):
        command.add_argument("--kind", type=Kind, choices=list(Kind), help="only items of this kind")
        command.add_argument("--task", help="only items of this task")
        command.add_argument("--feasible", action="store_true", help="only items of kernels that passed every gate")
    listing.add_argument("--sort", choices=SORTS, default="id", help="a stage: by recent outcome or learned value")
    search.add_argument("query", help="text that items are compared with")
    search.add_argument("-k", type=command_line.count, default=10, help="how many (default: 10)")
    for command in (show, lineage):
        command.add_argument("id", type=int, help="number of the item")
    exporting.add_argument("file", type=Path, help="file to write, JSON lines")
    exporting.add_argument(
        "--exclude-tasks",
        type=command_line.words,
        default=(),
        metavar="A,B",
        help="leave out the items of these tasks, and all statistics, which may come from them",
    )
    importing.add_argument("file", type=Path, help="file that `export` wrote")
    sharing.add_argument("url", help="address that runs use: ray://HOST:PORT/NAME, or ray://auto/NAME")


def _bank(word: str) -> Path | str:
    return word if word.startswith(SCHEME) else Path(word)


def run(arguments: argparse.Namespace) -> int:
    """Run one command."""
    options: dict[str, Any] = {}
    for word in arguments.embedder_option:
        options |= setting(word)
    embedder = plugins.make("kernel_gym.embedders", arguments.embedder, options)
    with _open(arguments, embedder) as bank:
        answer = COMMANDS[arguments.command](bank, arguments)
    print(json.dumps(answer) if arguments.json else _words(answer))
    return 1 if isinstance(answer, dict) and answer.get("problems") else 0


def _open(arguments: argparse.Namespace, embedder: Embedder) -> MemoryBank:
    """Open the bank that a command works on."""
    if isinstance(arguments.bank, str):
        if arguments.command in ("new", "share"):
            raise KernelGymError(f"{arguments.command} takes the bank's file, not {arguments.bank}")
        return SharedBank(arguments.bank, embedder)
    if arguments.command == "unshare":
        raise KernelGymError(f"unshare takes ray://HOST:PORT/NAME, not {arguments.bank}")
    new, writes = arguments.command == "new", arguments.command in ("new", "import")
    if new == arguments.bank.exists():
        raise KernelGymError(f"{arguments.bank} {'exists already' if new else 'does not exist'}")
    return MemoryBank(arguments.bank, embedder, read_only=not writes)


def _new(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    added = bank.add(seed_items(arguments.language), attempt=False)
    return {"items": len(added)}


def _list(bank: MemoryBank, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    items = [
        item for item in bank.items(arguments.kind, _task(bank, arguments)) if item.feasible or not arguments.feasible
    ]
    summaries = _summaries(bank, items, arguments)
    return sorted(summaries, key=lambda summary: _rank(summary, arguments.sort))


def _search(bank: MemoryBank, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    kinds = [arguments.kind] if arguments.kind else None
    feasible = True if arguments.feasible else None
    results = bank.retrieve(arguments.query, arguments.k, kinds, task=_task(bank, arguments), feasible=feasible)
    summaries = _summaries(bank, [result.item for result in results], arguments)
    return [{"similarity": result.similarity} | summary for result, summary in zip(results, summaries, strict=True)]


def _show(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    item = bank.get(arguments.id)
    (summary,) = _summaries(bank, [item], arguments)
    return summary | rows.to_json(item) | {"origin": bank.origin(item.id)}


def _lineage(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    lineage, children = bank.lineage(arguments.id), bank.children(arguments.id)
    return {
        "lineage": _summaries(bank, lineage, arguments),
        "children": _summaries(bank, children, arguments),
    }


def _export(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    excluded = [_task_id(bank, name) for name in arguments.exclude_tasks]
    origin = {} if bank.path is None else RunFolder(bank.path.parent).origin
    return {"items": bank.export(arguments.file, excluded, origin), "file": str(arguments.file)}


def _import(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    return {"new_items": bank.import_(arguments.file), "items": len(bank)}


def _check(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    return {"items": len(bank), "problems": bank.problems()}


def _share(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    return {"file": share(arguments.url, arguments.bank, bank.embedder), "address": arguments.url}


def _unshare(bank: MemoryBank, arguments: argparse.Namespace) -> dict[str, Any]:
    unshare(arguments.bank)
    return {"ended": arguments.bank}


COMMANDS: dict[str, Callable[[MemoryBank, argparse.Namespace], Answer]] = {
    "new": _new,
    "list": _list,
    "search": _search,
    "show": _show,
    "lineage": _lineage,
    "export": _export,
    "import": _import,
    "check": _check,
    "share": _share,
    "unshare": _unshare,
}


def _task(bank: MemoryBank, arguments: argparse.Namespace) -> str | None:
    return None if arguments.task is None else _task_id(bank, arguments.task)


def _task_id(bank: MemoryBank, name: str) -> str:
    """Return the id of a task; a mistyped name is an error, since an export without it would leak that task's items."""
    return name if bank.items(task=name) else suites.find_task(name).id


def _summaries(bank: MemoryBank, items: Sequence[MemoryItem], arguments: argparse.Namespace) -> list[dict[str, Any]]:
    outcomes = bank.outcomes([item.id for item in items])
    summaries = [_summary(item, outcomes[item.id]) for item in items]
    if arguments.agent is not None:
        from kernel_gym.experiments.analysis.item_values import read_item_values

        values = read_item_values(arguments.agent)
        summaries = [
            summary | {"learned": values.values.get(summary["id"], {}), "learned_as": values.symbol}
            for summary in summaries
        ]
    return summaries


def _summary(item: MemoryItem, outcomes: dict[Stage, Outcomes]) -> dict[str, Any]:
    verdict = item.verdict
    return {
        "id": item.id,
        "kind": item.kind.value,
        "task": item.task,
        "title": item.title,
        "outcome": verdict.outcome if verdict is not None else None,
        "latency_us": verdict.latency_us if verdict is not None else None,
        "born": item.born,
        "values": {
            stage.value: {"uses": record.uses, "mean": record.mean, "recent": record.recent}
            for stage, record in outcomes.items()
        },
    }


def _rank(summary: dict[str, Any], sort: str) -> tuple[float, int]:
    values = summary["values"]
    if sort == "latency":
        return summary["latency_us"] or float("inf"), summary["id"]
    if sort == "uses":
        return -sum(record["uses"] for record in values.values()), summary["id"]
    if sort in values and "learned" in summary:
        return -max((q for name, q in summary["learned"].items() if name.startswith(sort)), default=0.0), summary["id"]
    return -values[sort]["recent"] if sort in values else 0.0, summary["id"]


def _words(answer: Answer) -> str:
    if isinstance(answer, list):
        return _table(answer)
    if "problems" in answer:
        return "\n".join(answer["problems"]) or f"whole: {answer['items']} items"
    if "lineage" in answer:
        return f"{_table(answer['lineage'])}\nchildren:\n{_table(answer['children'])}"
    if "text" in answer:
        origin = f", imported from {answer['origin']}" if answer["origin"] else ""
        about = [f"{name}: {', '.join(answer[name])}" for name in ("names", "operators", "bottlenecks") if answer[name]]
        return "\n".join([_table([answer]) + origin, *about, "", answer["text"]])
    return ", ".join(f"{name.replace('_', ' ')}: {value}" for name, value in answer.items())


def _table(summaries: Sequence[dict[str, Any]]) -> str:
    return "\n".join(_line(summary) for summary in summaries) or "nothing"


def _line(summary: dict[str, Any]) -> str:
    similarity = f"{summary['similarity']:6.3f} " if "similarity" in summary else ""
    latency = f"{summary['latency_us']:.2f} us" if summary["latency_us"] is not None else summary["outcome"] or ""
    values = " ".join(
        f"{stage} {record['recent']:+.2f} of {record['uses']}"
        for stage, record in summary["values"].items()
        if record["uses"]
    )
    symbol = summary.get("learned_as", "")
    learned = "".join(f" {symbol}({name}) {value:+.2f}" for name, value in summary.get("learned", {}).items())
    title = f"{summary['title'][:90]:90}"
    return f"{summary['id']:5} {similarity}{summary['kind']:10} {latency:13} {title} {values}{learned}".rstrip()
