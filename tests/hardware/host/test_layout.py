"""Where tensors lie on a device: every byte of the memory is a tensor's or guarded."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kernel_gym.hardware.host.calls import GUARD, Layout
from kernel_gym.hardware.host.tensors import GRAIN

MEMORY = 2 << 20


@given(st.lists(st.integers(0, 3 * MEMORY), max_size=6))
def test_tensors_and_guards_cover_whole_grains(sizes: list[int]) -> None:
    layout = Layout.of(sizes, MEMORY)
    assert layout.size % MEMORY == 0
    gaps = list(layout.gaps())
    tensors = list(zip(layout.offsets, sizes, strict=True))
    spans = sorted([*gaps, *tensors])
    assert sum(size for _, size in spans) == layout.size
    assert all(at + size == then for (at, size), (then, _) in pairwise(spans) if size)
    assert all(size >= GUARD for _, size in gaps)
    assert all(offset % GRAIN == 0 for offset in layout.offsets)
