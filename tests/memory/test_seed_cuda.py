"""Seed knowledge on CUDA: number of items, pages that use the names they document, no mistake in the text."""

import re

import pytest

from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.moves import moves
from kernel_gym.memory.api_pages import BASICS, LANGUAGE
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind
from kernel_gym.memory.seed import BOTTLENECKS, seed_items

ITEMS = seed_items("cuda")
PAGES = [item for item in ITEMS if item.kind is Kind.API]
PRACTICES = [item for item in ITEMS if item.kind is Kind.PRACTICE]


def test_there_are_enough_pages_and_practices() -> None:
    assert len(PAGES) >= 28
    assert len([item for item in PRACTICES if item.bottlenecks]) >= 15
    assert len([item for item in PRACTICES if not item.bottlenecks]) >= 8
    assert sum(page.category == LANGUAGE for page in PAGES) == BASICS
    assert len({item.text for item in ITEMS}) == len({item.title for item in ITEMS}) == len(ITEMS)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.title)
def test_a_page_shows_its_names_in_code(page) -> None:
    assert "Example:" in page.text
    assert "Common mistake:" in page.text
    assert [name for name in page.names if name not in page.text] == []
    assert len(page.text) < 2600


def test_practices_are_tagged_with_what_the_profile_names() -> None:
    assert {tag for item in PRACTICES for tag in item.bottlenecks} == BOTTLENECKS["cuda"]
    assert {fit for move in moves("cuda") for fit in move.fits} <= BOTTLENECKS["cuda"]


def test_no_text_shows_a_spelling_that_the_apprentice_gets_wrong() -> None:
    shown = [
        (idiom.id, wrong.name, item.title)
        for idiom in idioms("cuda").values()
        for wrong in idiom.wrong
        for item in ITEMS
        if any(re.search(pattern, item.text) for pattern in wrong.seen)
    ]
    assert shown == []


def test_a_bank_hands_out_pages_of_the_language_alone() -> None:
    with MemoryBank(None, StaticEmbedder()) as bank:
        bank.add((*seed_items("ascendc"), *ITEMS), attempt=False)
        pages = bank.api_pages("softmax of rows", "sum += __shfl_down_sync(0xffffffffu, sum, 1);", language="cuda")
    assert {page.language for page in pages} == {"cuda"}
    assert any("__shfl_down_sync" in page.names for page in pages)
