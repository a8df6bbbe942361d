"""The catalogue is complete: every exploit is tried and ends at the gate that is named, or cannot be tried here."""

import re
from pathlib import Path

import pytest
import yaml
from repository import ROOT

from kernel_gym.verdict import GATES
from kernel_gym.verifier.attacks import catalogue

CATALOGUE = yaml.safe_load((Path(__file__).parent / "catalogue.yaml").read_text())
#: The ids of the field's catalogue, by letter of their kind.
IDS = {
    "A": (1, 2, 3, 7, 8, 9, 10, 13, 14, 15, 16, 17),
    "B": (2, 4, 5, 7, 9, 10, 11, 12, 13, 14),
    "C": (2, 3, 4, 6, 7, 10, 11, 12, 13, 14, 16, 17, 18, 20),
    "D": (2, 3, 4, 5, 7, 8, 9),
    "E": (2, 3, 5, 6, 7, 8, 9, 10, 13, 14),
    "F": (2, 3, 5, 6, 7, 8, 9, 10, 13, 14),
    "G": (1, 3, 4, 8, 9, 10, 11, 12, 13, 14, 15),
    "H": (1, 2, 4, 6, 7, 8, 9, 10, 11, 12, 13, 16, 17, 20, 21),
    "I": (1, 2, 3, 4, 6, 7, 8, 9, 12, 13),
    "J": (1, 2, 4),
}
ATTACKS = catalogue.load("ascendc")
PROBES = (ROOT / "kernel_gym" / "confinement" / "src" / "probes.cpp").read_text()


def cases_of(id: str) -> dict[str, str]:
    return {attack.name: attack.expected for attack in ATTACKS if id in attack.causes}


def test_the_catalogue_is_complete(capsys):
    assert set(CATALOGUE) == {f"{letter}{number}" for letter, numbers in IDS.items() for number in numbers}
    tried = [id for id, entry in CATALOGUE.items() if "gate" in entry]
    with capsys.disabled():
        print(f"\n{len(tried)} exploits tried, {len(CATALOGUE) - len(tried)} for other devices")


@pytest.mark.parametrize("id", CATALOGUE)
def test_each_entry_has_a_test_or_a_reason(id):
    entry = CATALOGUE[id]
    if "elsewhere" in entry:
        assert set(entry) == {"elsewhere"}
        assert len(entry["elsewhere"]) > 30
        return
    assert entry["gate"] in (*GATES, "sandbox", "task", "process", "price")
    assert cases_of(id) or entry.get("probes") or entry.get("shown"), "nothing shows it"
    if cases_of(id):
        ends = "no gain" if entry["gate"] == "price" else entry["gate"]
        assert ends in cases_of(id).values()
    for probe in entry.get("probes", ()):
        assert f'"{probe}"' in PROBES
    for shown in entry.get("shown", ()):
        file, _, function = shown.partition("::")
        assert re.search(rf"^def {function}\(", (ROOT / file).read_text(), re.MULTILINE), shown


def test_every_case_has_an_id_of_the_catalogue():
    ids = {cause for attack in ATTACKS for cause in attack.causes if re.fullmatch(r"[A-J]\d+", cause)}
    assert ids <= {id for id, entry in CATALOGUE.items() if "gate" in entry}


def test_the_documentation_lists_them_all():
    text = (ROOT / "docs" / "reference" / "exploits.md").read_text()
    for id in CATALOGUE:
        assert re.search(rf"^\| {id} \||\b{id}\b", text, re.MULTILINE), id
