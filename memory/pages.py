"""Which API pages an author gets: a mixture of three ways, none of them learned."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice

from kernel_gym.memory.item import MemoryItem

#: Category of the pages on a language's basics, which every author of that language gets.
LANGUAGE = "language"

#: At most so many pages of each way.
BASICS = 4
NAMED = 6
SIMILAR = 4

_NAME = re.compile(r"[A-Za-z_]\w*")


def select_pages(ranked: Sequence[MemoryItem], code: str) -> tuple[MemoryItem, ...]:
    """Choose among API pages that are ranked by similarity to the task.

    First the basics of the language in the order they were written, then the pages on names that occur in `code`, then
    the most similar of the rest; where there are more than fit, the more similar ones.
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
    # A line at a time, as for words: the kernels that are shown have most of their lines in common.
    return frozenset(_NAME.findall(line))
