"""Keys stay in the environment: they are not options, and they are cut out of whatever is printed or kept."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from kernel_gym.errors import ConfigError

VARIABLE = "OPENAI_API_KEY"
_SECRET = re.compile(r"(^|_)(key|secret|password|authorization)($|_)", re.IGNORECASE)


def api_key() -> str:
    """The key of the model endpoint; empty if there is none."""
    return os.environ.get(VARIABLE, "").strip()


def redact(text: str) -> str:
    """A text without the key in it."""
    return text.replace(api_key(), "[key]") if api_key() else text


def reject_secrets(options: Mapping[str, Any]) -> None:
    """Refuse options that carry a secret: options are written into run folders."""
    for name, value in options.items():
        if _SECRET.search(name):
            raise ConfigError(f"option {name!r}: keys are not options, they would be kept with the run; set {VARIABLE}")
        if isinstance(value, str) and "://" in value and "@" in urlsplit(value).netloc:
            raise ConfigError(f"option {name!r}: an address must not carry a user or a password; set {VARIABLE}")
        if isinstance(value, Mapping):
            reject_secrets(value)
