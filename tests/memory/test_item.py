"""Every kind of memory has contents of its own, and no others."""

import pytest

from kernel_gym.memory.item import CONTENTS, Kind, MemoryItem
from kernel_gym.verdict import Feasible

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
    if name in CONTENTS[kind]:
        assert getattr(MemoryItem(kind, "", "", **{name: VALUES[name]}), name) == VALUES[name]
    else:
        with pytest.raises(ValueError, match=f"{kind.value} has no {name}"):
            MemoryItem(kind, "", "", **{name: VALUES[name]})


def test_all_contents_are_some_kinds() -> None:
    assert frozenset[str]().union(*CONTENTS.values()) == VALUES.keys()
