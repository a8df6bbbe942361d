"""Every kind of item has its own fields: required, allowed and forbidden ones."""

import pytest

from kernel_gym.memory.item import CONTENTS, NEEDED, Kind, MemoryItem
from kernel_gym.verdict import Feasible, Uncompilable

VALUES = {
    "code": "Relu(y, x, n);",
    "verdict": Feasible("", latency=1.0),
    "parent": 1,
    "source": 1,
    "names": ("Relu",),
    "bottlenecks": ("mte2",),
}


@pytest.mark.parametrize("kind", Kind)
@pytest.mark.parametrize("name", VALUES)
def test_contents_belong_to_kinds(kind: Kind, name: str) -> None:
    own = {needed: VALUES[needed] for needed in NEEDED[kind]} | ({"code": "c"} if kind is Kind.TRACE else {})
    if name in CONTENTS[kind]:
        assert getattr(MemoryItem(kind, "", "", **own | {name: VALUES[name]}), name) == VALUES[name]
    else:
        with pytest.raises(ValueError, match=f"{kind.value} has no {name}"):
            MemoryItem(kind, "", "", **own | {name: VALUES[name]})


@pytest.mark.parametrize(("kind", "name"), [(kind, name) for kind in Kind for name in NEEDED[kind]])
def test_an_item_without_the_content_of_its_kind_is_refused(kind: Kind, name: str) -> None:
    with pytest.raises(ValueError, match=f"{kind.value} needs its {name}"):
        MemoryItem(kind, "", "")


def test_a_feasible_item_has_code() -> None:
    assert MemoryItem(Kind.TRACE, "", "", verdict=Uncompilable("the author gave no answer")).code == ""
    with pytest.raises(ValueError, match="needs its code"):
        MemoryItem(Kind.TRACE, "", "", verdict=Feasible("", latency=1.0))


def test_every_content_belongs_to_a_kind() -> None:
    assert frozenset[str]().union(*CONTENTS.values()) == VALUES.keys()
