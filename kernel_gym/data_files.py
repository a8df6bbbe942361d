"""Reads the package's data files."""

from __future__ import annotations

from typing import Any

import yaml

#: The parser of libyaml, where PyYAML was built with it, is ten times as fast as the one in Python.
_LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


def parse_yaml(text: str) -> Any:
    """Return the content of a YAML file, as `yaml.safe_load` does.

    Raises:
        yaml.YAMLError: The text is not YAML.
    """
    return yaml.load(text, Loader=_LOADER)
