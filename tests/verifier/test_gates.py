"""The gates have one order, in the code and on the page about the gates."""

import re

from repository import ROOT

from kernel_gym.verdict import GATES, Cheated


def test_the_page_numbers_the_gates_in_their_order():
    page = (ROOT / "docs" / "concepts" / "gates.md").read_text()
    rows = re.findall(r"^\| (\d) (\w+)", page, re.MULTILINE)
    assert rows == [(str(number), gate) for number, gate in enumerate(GATES, 1)]


def test_the_diagram_numbers_them_so_too():
    diagram = (ROOT / "docs" / "diagrams" / "gates.svg").read_text()
    assert re.findall(r">(\d) (\w+)<", diagram) == [(str(number), gate) for number, gate in enumerate(GATES, 1)]


def test_cheating_found_at_a_gate_means_that_the_gates_before_were_passed():
    verdicts = [Cheated("", gate=gate) for gate in GATES]
    assert [verdict.compiled for verdict in verdicts] == [None, None, True, True, True]
    assert [verdict.correct for verdict in verdicts] == [None, None, None, None, True]
