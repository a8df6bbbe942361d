"""Orderings that any useful timing of elementwise kernels has: these are what an author is rewarded for."""

from __future__ import annotations

from itertools import pairwise

import pytest
from timeline_driver import KB, X, copy_in, elementwise, latency, launch, vector

MB = 1024 * KB


def add(cores: int = 40, tile: int = 4096, buffers: int = 2) -> float:
    """Add of a million and a quarter floats; `tile` in elements."""
    return latency(elementwise(5 * MB, cores, 4 * tile, buffers))


def falling(*latencies: float) -> bool:
    return all(later < 0.97 * earlier for earlier, later in pairwise(latencies))


def test_more_cores_are_faster() -> None:
    assert falling(add(1), add(10), add(40))


@pytest.mark.slow
def test_larger_tiles_are_faster_and_never_tie() -> None:
    assert falling(add(tile=64), add(tile=512), add(tile=4096))


@pytest.mark.parametrize("tile", [512, 4096])
def test_two_buffers_are_faster_than_one(tile: int) -> None:
    assert falling(add(tile=tile, buffers=1), add(tile=tile, buffers=2))


def test_small_tiles_gain_more_from_a_second_buffer() -> None:
    gains = [add(tile=tile, buffers=1) / add(tile=tile, buffers=2) for tile in (512, 4096)]
    assert gains[0] > gains[1]


def test_many_cores_on_little_data_lose_to_few() -> None:
    little = [latency(elementwise(96 * KB, cores, 2 * KB, 2)) for cores in (1, 8, 48)]
    assert little[1] < little[0] < little[2]


def test_a_scalar_loop_is_far_slower_than_vector_instructions() -> None:
    elements = 16 * KB
    turn = ["scalar_local", "scalar_local", "scalar_local", "plain_code a=3"]
    scalar = latency(launch([[copy_in(X, 4 * elements), *turn * elements]]))
    vectors = latency(launch([[copy_in(X, 4 * elements), vector(0, elements // 64)]]))
    assert scalar > 20 * vectors


def test_a_conflict_free_layout_is_faster() -> None:
    def adds(src1: int) -> float:
        return latency(launch([[vector(0, 64, operands=3, dst=0x20000, src1=src1)] * 100]))

    assert adds(0x4100) < 0.65 * adds(0x4000)


def test_contiguous_rows_beat_scattered_ones_of_the_same_size() -> None:
    def rows(width: int) -> float:
        return latency(launch([copy_in(X, width, bursts=256 * KB // width, gap=7 * width)] for _ in range(1)))

    assert falling(rows(64), rows(256), rows(2048))


def test_aligned_rows_beat_unaligned_ones() -> None:
    def rows(pitch: int) -> float:
        body = [copy_in(X + i * 64 * pitch, 2048, bursts=64, gap=pitch - 2048) for i in range(4)]
        return latency(launch([body]))

    assert rows(24576) < 0.85 * rows(24574)
