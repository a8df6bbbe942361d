"""The documentation site: pages, navigation, generated parts, reference, the build itself."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml
from repository import ROOT

import kernel_gym

DOCS = ROOT / "docs"
CONFIG: dict[str, Any] = yaml.safe_load((ROOT / "mkdocs.yml").read_text())
GENERATED = {"reference/command-line.md", "contributing.md", "changelog.md"}


def loaded(name: str) -> ModuleType:
    """A Python file of `docs/`, which is no package."""
    spec = spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def entries(nav: Any) -> Iterator[str]:
    """Every page of the navigation."""
    if isinstance(nav, str):
        yield nav
    else:
        for part in nav.values() if isinstance(nav, dict) else nav:
            yield from entries(part)


def test_the_navigation_has_every_page_once() -> None:
    pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    assert sorted(entries(CONFIG["nav"])) == sorted(pages | GENERATED)


def test_diagrams_match_their_description() -> None:
    diagrams = loaded("diagrams").DIAGRAMS
    assert {path.stem for path in (DOCS / "diagrams").glob("*.svg")} == set(diagrams)
    for name, diagram in diagrams.items():
        assert (DOCS / "diagrams" / f"{name}.svg").read_text() == diagram.svg()


@pytest.mark.parametrize("page", sorted((DOCS / "concepts").glob("*.md")), ids=lambda page: page.stem)
def test_every_concept_has_one_diagram(page: Path) -> None:
    assert len(re.findall(r"!\[[^\]]+\]\(\.\./diagrams/\w+\.svg\)", page.read_text())) == 1


def resolved(path: str) -> Any:
    """The object of a dotted path."""
    module, _, name = path.rpartition(".")
    try:
        return getattr(import_module(module), name)
    except AttributeError:
        return import_module(path)


def test_every_public_name_has_a_reference_entry() -> None:
    paths = [
        path
        for page in (DOCS / "reference").glob("*.md")
        for path in re.findall(r"^::: (\S+)$", page.read_text(), re.MULTILINE)
    ]
    documented = [resolved(path) for path in paths]
    documented += [value for entry in documented if isinstance(entry, ModuleType) for value in vars(entry).values()]
    index = (DOCS / "reference" / "index.md").read_text()
    for name in kernel_gym.__all__:
        assert name in index, f"{name} is not in the table of names"
        if name != "__version__":
            public = getattr(kernel_gym, name)
            assert any(public is entry for entry in documented), f"{name} has no reference entry"


def test_generated_tables_exist() -> None:
    pytest.importorskip("mkdocs", reason="needs mkdocs: pip install 'kernel_gym[docs]'")
    hooks = loaded("hooks")
    names = {name for page in DOCS.rglob("*.md") for name in hooks.MARKER.findall(page.read_text())}
    assert names == set(hooks.TABLES)
    for table in hooks.TABLES.values():
        assert len(table().splitlines()) > 3


@pytest.mark.slow
def test_the_site_builds_without_a_warning_and_loads_nothing_from_elsewhere(tmp_path: Path) -> None:
    """Run by `make test-slow`; `make docs` builds the site strictly, too."""
    pytest.importorskip("mkdocs", reason="needs mkdocs: pip install 'kernel_gym[docs]'")
    shutil.rmtree(ROOT / "build" / "docs", ignore_errors=True)  # as in a fresh clone
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env={"NO_MKDOCS_2_WARNING": "1"})
    assert done.returncode == 0, done.stderr
    pages = list(tmp_path.rglob("*.html"))
    assert len(pages) > 50
    for page in pages:
        loads = re.findall(r"<(?:script|link|img|iframe)\b[^>]*\b(?:src|href)=\"(https?://[^\"]+)", page.read_text())
        assert loads == [], f"{page.name}: {loads}"


def test_examples_in_docstrings_are_called_so_that_the_reference_shows_them_as_code() -> None:
    for folder in ("kernel_gym", "agents", "envs", "memory", "hardware"):
        for file in (ROOT / folder).rglob("*.py"):
            assert not re.search(r"^ *Example:$", file.read_text(), re.MULTILINE), f"{file}: write Examples:"
