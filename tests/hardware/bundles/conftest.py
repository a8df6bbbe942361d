"""Sample bundles, and variants of them with one place changed."""

from collections.abc import Callable
from pathlib import Path

import pytest

SAMPLES = Path(__file__).parent / "samples"


@pytest.fixture
def sample() -> Callable[..., str]:
    """Return a sample's text; further arguments are pairs of what is replaced, each of which must occur."""

    def read(name: str, *changes: tuple[str, str]) -> str:
        text = (SAMPLES / f"{name}.py").read_text()
        for old, new in changes:
            assert old in text, old
            text = text.replace(old, new)
        return text

    return read
