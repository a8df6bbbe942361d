"""Choice of the API pages that the environment adds to a context: three rules, none of them learned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from kernel_gym.memory.item import MemoryItem

#: Category of the pages on the basics of a language, which are part of every context.
LANGUAGE = "language"

#: The most pages of each rule: basics, pages on names in the code, similar pages.
BASICS = 4
NAMED = 6
SIMILAR = 4

_NAME = re.compile(r"[A-Za-z_]\w*")


def select_pages(ranked: Sequence[MemoryItem], code: str) -> tuple[MemoryItem, ...]:
    """Choose the API pages of a context.

    First come the basics of the language in the order of their ids, then pages on names that occur in `code`, then the
    most similar of the rest. Each group is limited by `BASICS`, `NAMED` and `SIMILAR`; more similar pages go first.

    Args:
        ranked: All API pages of the language, most similar to the task first.
        code: The code in the context, with that of the start point.

    Returns:
        The chosen pages, no page twice.
    """
    basics = sorted((page for page in ranked if page.category == LANGUAGE), key=lambda page: page.id)[:BASICS]
    others = [page for page in ranked if page.category != LANGUAGE]
    present = frozenset[str]().union(*map(_names, code.splitlines()))
    named = list(islice((page for page in others if not present.isdisjoint(page.names)), NAMED))
    taken = {page.id for page in named}
    similar = islice((page for page in others if page.id not in taken), SIMILAR)
    return (*basics, *named, *similar)


@lru_cache(maxsize=32768)
def _names(line: str) -> frozenset[str]:
    # Cached by line: kernels have most of their lines in common.
    return frozenset(_NAME.findall(line))
