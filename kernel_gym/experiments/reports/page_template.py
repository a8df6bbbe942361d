"""Render the page of a report: one HTML file with its style, its script and its data.

A Content-Security-Policy with the script's hash keeps the page from loading anything and from running any other script,
because it shows kernels, which are untrusted.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from importlib.resources import files
from typing import Any

from jinja2 import Environment

SCRIPTS = ("tables.js", "curves.js", "diff.js", "episodes.js")


def render(content: Mapping[str, Any]) -> str:
    """Return the page with this content; all texts are escaped."""
    script = "\n".join(['"use strict";', *map(_file, SCRIPTS)])
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    template = Environment(autoescape=True).from_string(_file("report.html.j2"))
    return template.render(**content, style=_file("report.css"), script=script, script_hash=digest)


def _file(name: str) -> str:
    return files("kernel_gym.experiments.reports").joinpath("page", name).read_text()
