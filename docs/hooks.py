"""What the site has beyond Markdown files: generated tables and pages, and one tree of sources for the reference.

A page asks for a table with the comment `<!-- generated: NAME -->`; `TABLES` makes them from the objects that the
code uses. `mkdocs.yml` names this file.
"""

from __future__ import annotations

import os
import re
import shutil
from argparse import ArgumentParser
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from kernel_gym.cli import main
from kernel_gym.env_registration import PRESETS
from kernel_gym.envs.options import reference_table
from kernel_gym.experiments.runs.figures import FIGURES
from kernel_gym.experiments.runs.tracking import metrics
from kernel_gym.experiments.studies import study_definition
from kernel_gym.hardware.ascend_sim import rules

ROOT = Path(__file__).resolve().parent.parent
TREE = ROOT / "build" / "docs"
FOLDERS = ("agents", "envs", "hardware", "memory")
MARKER = re.compile(r"<!-- generated: ([\w-]+) -->")
LINK = re.compile(r"\[([^\]]*)\]\((?!https?:|#)([^)\s]+)\)")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def presets() -> str:
    """Return the registered environments that differ in options alone."""
    rows = [
        [f"`kernel_gym/{name}`", ", ".join(f"`{key}={value!r}`" for key, value in kwargs.items())]
        for name, kwargs in PRESETS.items()
    ]
    return table(["id", "options"], rows)


def figures() -> str:
    """Return the figures of a comparison."""
    return table(["figure", "meaning"], [[f"`{name}`", meaning] for name, meaning in FIGURES.items()])


def studies() -> str:
    """Return the named studies with what they ask and how large they are."""
    rows = []
    for name in study_definition.names():
        study = study_definition.load(name)
        rows.append([f"`{name}`", study.question, *(_size(study, size) for size in ("quick", "full"))])
    return table(["study", "question", "quick", "full"], rows)


def contrasts() -> str:
    """Return the contrasts that every study tests."""
    rows = [
        [f"`{name}`", f"`{contender}`", f"`{reference}`", f"`{measure}`"]
        for name in study_definition.names()
        for contender, reference, measure in study_definition.load(name).contrasts
    ]
    return table(["study", "contender", "reference", "measure"], rows)


def _size(study: Any, size: str) -> str:
    shards = study_definition.shards(study, size)
    attempts = sum(len(shard.tasks) * shard.config.budget for shard in shards)
    return f"{len(shards)} runs, {attempts:,} attempts"


def published() -> str:
    """Return the paper's figures that stand beside the studies."""
    rows = [
        [f"`{name}`", row.what, row.value]
        for name in study_definition.names()
        for row in study_definition.load(name).published
    ]
    return table(["study", "what", "published"], rows)


def defaults() -> str:
    """Return the packaged defaults of a run."""
    return f"```yaml\n{(ROOT / 'kernel_gym' / 'defaults.yaml').read_text().rstrip()}\n```"


TABLES: Mapping[str, Callable[[], str]] = {
    "contrasts": contrasts,
    "defaults": defaults,
    "figures": figures,
    "metrics": metrics.table,
    "options": reference_table,
    "presets": presets,
    "published": published,
    "rules": rules.table,
    "studies": studies,
}


def command_line() -> str:
    """Return the page of the command line: the help of every command and its sub-commands."""
    os.environ["COLUMNS"] = "100"
    commands = _sub_parsers(main.parser())
    page = ["# Command line", COMMAND_LINE]
    for group, names in main.GROUPS.items():
        page += [f"## {group[0].upper()}{group[1:]}"]
        for name in names:
            parsers = [commands[name], *_sub_parsers(commands[name]).values()]
            page += [f"### kernel-gym {name}", *(f"```text\n{one.format_help().rstrip()}\n```" for one in parsers)]
    return "\n\n".join(page)


def _sub_parsers(parser: ArgumentParser) -> dict[str, ArgumentParser]:
    return next((action.choices for action in parser._actions if isinstance(action.choices, dict)), {})


COMMAND_LINE = """`kernel-gym COMMAND` and `python -m kernel_gym COMMAND` are the same, and in a checkout so is
`scripts/COMMAND.py` (`-` in a command is `_` in a script). This page is made from the parsers.

Bad input is one line on standard error and exit status 2. `--json` prints data instead of tables."""


def project_page(name: str) -> str:
    """Return a file of the repository's root as a page: links into `docs/` lead to pages, others are words."""

    def internal(link: re.Match[str]) -> str:
        words, target = link.groups()
        return f"[{words}]({target.removeprefix('docs/')})" if target.startswith("docs/") else words

    return LINK.sub(internal, (ROOT / name).read_text())


def on_startup(command: str, dirty: bool) -> None:
    """Lay out the package as it is installed: its folders lie side by side in the repository.

    This happens before plugins are configured: mkdocstrings ignores search paths that are not there by then.
    """
    shutil.rmtree(TREE, ignore_errors=True)
    ignore = shutil.ignore_patterns("__pycache__")
    shutil.copytree(ROOT / "kernel_gym", TREE / "kernel_gym", copy_function=os.symlink, ignore=ignore)
    for folder in FOLDERS:
        shutil.copytree(ROOT / folder, TREE / "kernel_gym" / folder, copy_function=os.symlink, ignore=ignore)


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add generated pages, and keep reports apart from the pages of the same name."""
    for report in files.media_files():
        if report.src_uri.startswith("results/") and report.src_uri.endswith(".html"):
            report.dest_uri = report.dest_uri.removesuffix(".html") + "-report.html"
            report.url = report.dest_uri
    pages = {
        "reference/command-line.md": command_line(),
        "contributing.md": project_page("CONTRIBUTING.md"),
        "changelog.md": project_page("CHANGELOG.md"),
    }
    for path, text in pages.items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, **_: object) -> str:
    """Put the generated tables where a page asks for them."""
    return MARKER.sub(lambda marker: TABLES[marker[1]](), markdown)
