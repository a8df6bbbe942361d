"""The API key: read from the environment, refused in options, removed from texts that are printed or stored."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kernel_gym.errors import ConfigError

#: The environment variable that holds the key.
VARIABLE = "OPENAI_API_KEY"
_SECRET = re.compile(r"(^|_)(key|secret|password|authorization)($|_)", re.IGNORECASE)


def api_key() -> str:
    """Return the API key of the model endpoint; empty if none is set."""
    return os.environ.get(VARIABLE, "").strip()


def redact(text: str) -> str:
    """Return a text with the API key replaced by `[key]`."""
    return text.replace(api_key(), "[key]") if api_key() else text


def reject_secrets(options: Mapping[str, Any]) -> None:
    """Refuse options that hold a secret, because options are written into run folders.

    Args:
        options: Options by name; nested mappings are checked too.

    Raises:
        ConfigError: If an option is named like a secret, or is an address with a user or password.
    """
    for name, value in options.items():
        if _SECRET.search(name):
            raise ConfigError(f"option {name!r}: keys are not options: options are stored with the run; set {VARIABLE}")
        if isinstance(value, str) and "://" in value and "@" in urlsplit(value).netloc:
            raise ConfigError(f"option {name!r}: an address must not contain a user or a password; set {VARIABLE}")
        if isinstance(value, Mapping):
            reject_secrets(value)
