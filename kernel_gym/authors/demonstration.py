"""The kernel that authors are shown in protocols with one demonstration."""

from __future__ import annotations

from functools import lru_cache
from importlib import resources

from kernel_gym.authors.contract import Note
from kernel_gym.errors import ConfigError
from kernel_gym.verdict import Feasible

#: The example kernel of each language, among the prompts of model authors.
_EXAMPLES = {"ascendc": "example.cpp", "cuda": "example_cuda.cu"}


@lru_cache(maxsize=4)
def demonstration(language: str) -> Note:
    """Return the demonstration of a language: a verified kernel of no task.

    Raises:
        ConfigError: There is none for the language.
    """
    if language not in _EXAMPLES:
        raise ConfigError(f"there is no demonstration for {language!r}, only for {', '.join(_EXAMPLES)}")
    source = resources.files("kernel_gym.authors.model").joinpath("prompts", "1", _EXAMPLES[language]).read_text()
    return Note("trace", source, source, Feasible("Correct.", latency=1.0))
