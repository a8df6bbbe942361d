"""The table of features: its size, and that nothing a user would care about is missing here."""

from __future__ import annotations

import re

from repository import ROOT

ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in (ROOT / "docs" / "peers.md").read_text().splitlines()
    if line.startswith("| ") and not line.startswith("| feature")
]


def test_there_are_28_features_of_six_projects() -> None:
    assert len(ROWS) == 28
    assert {len(row) for row in ROWS} == {7}
    assert all(cell for row in ROWS for cell in row)


def test_we_have_every_feature() -> None:
    assert [row[0] for row in ROWS if row[1].startswith(("no", "-"))] == []


def test_every_note_is_referred_to_and_the_other_way_round() -> None:
    text = (ROOT / "docs" / "peers.md").read_text()
    notes = re.findall(r"^(\d+)\. ", text, re.MULTILINE)
    referred = {number for row in ROWS for cell in row for number in re.findall(r", (\d)$", cell)}
    assert referred == set(notes)
