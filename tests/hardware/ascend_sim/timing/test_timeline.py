"""The timing pass on small cases whose times are computed by hand.

The profile has round figures: a cycle is a nanosecond, launching and issuing are free unless a test says otherwise.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timeline_driver import (
    ALL,
    KB,
    MTE2,
    MTE3,
    V,
    X,
    Y,
    Z,
    copy_in,
    copy_out,
    latency,
    launch,
    signal,
    time,
    vector,
    wait,
)

from kernel_gym.hardware.ascend_sim import chip

ADD, DIV, EXP, RELU = 0, 3, 13, 19
HALF = 1
ROUND = chip.load("910B1").changed(
    clock_mhz=1000,
    launch__base_us=0,
    launch__core_us=0,
    launch__cube_us=0,
    launch__block_cycles=0,
    launch__sync_cycles=0,
    scalar__issue=0,
    scalar__local=11,
    scalar__global_hit=10,
    scalar__global_miss=300,
    memory__hbm_gbs=64,  # 64 bytes a cycle for the chip
    memory__hbm_core_gbs=32,
    memory__l2_gbs=6400,
    memory__l2_core_gbs=64,
    memory__write_core_gbs=16,
    copy__issue=10,
    copy__burst=0,
    copy__turn=0,
    copy__latency=100,
    copy__write_latency=0,
)


def ns(lines: list[str], profile: chip.ChipProfile = ROUND) -> float:
    return round(latency(lines, profile) * 1000, 6)


def one(*records: str) -> list[str]:
    return launch([list(records)])


def test_a_vector_instruction_takes_startup_and_repeats() -> None:
    assert ns(one(vector(RELU, 10))) == 23 + 10
    assert ns(one(vector(DIV, 8))) == 31 + 4 * 8


def test_exp_of_half_takes_as_long_for_an_element_as_exp_of_float() -> None:
    assert ns(one(vector(EXP, 4, dtype=HALF))) == ns(one(vector(EXP, 8)))


def test_a_count_that_fills_no_repeat_costs_extra() -> None:
    assert ns(one(vector(RELU, 3, tail=1))) == 23 + 3 + 16


@pytest.mark.parametrize(
    ("dst", "src0", "src1", "per_repeat"),
    [
        (0x20000, 0, 0x100, 1),  # the sources lie in the two halves of the bank groups
        (0x20000, 0, 0x1000, 2),  # both sources start in group 0
        (0x20000, 0, 0xE0, 2),  # they share one block's group
        (0x1000, 0, 0x100, 1.79),  # destination and source in one bank
    ],
)
def test_bank_conflicts_slow_every_repeat(dst: int, src0: int, src1: int, per_repeat: float) -> None:
    add = vector(ADD, 64, operands=3, dst=dst, src0=src0, src1=src1)
    assert ns(one(add)) == pytest.approx(24 + 64 * per_repeat, abs=0.05)


@pytest.mark.parametrize(
    ("fields", "per_repeat"),
    [
        ({"src0_block": 16}, 8),  # eight blocks of a source in one group
        ({"dst_block": 128}, 8),
        ({"src0_block": 8}, 4),  # in two groups
        ({"src0_block": 16, "elements": 64 * 16}, 2),  # two blocks of 16 elements
        ({"src0_block": 0}, 1),  # one block
        (
            {"operands": 3, "src1": 0x100, "src1_repeat": 0},
            1.5,
        ),  # the second source meets every other repeat of the first
        ({"operands": 3, "src0_block": 16, "src1": 0x20000, "src1_block": 16}, 16),
    ],
)
def test_blocks_of_an_operand_in_one_bank_group_are_read_one_after_another(
    fields: dict[str, int], per_repeat: float
) -> None:
    add = vector(ADD, 64, **{"operands": 2, "dst": 0x10100, **fields})
    assert ns(one(add)) == pytest.approx(24 + 64 * per_repeat, abs=0.05)


def test_sources_that_meet_do_not_hide_the_destination() -> None:
    """A division takes longer than its sources do that meet in a bank group."""
    apart, meeting = (ns(one(vector(DIV, 64, operands=3, dst=0, src0=0, src1=src1))) for src1 in (0x1100, 0x1000))
    assert meeting >= apart > ns(one(vector(DIV, 64, operands=3, dst=0x20000, src0=0, src1=0x1100)))


def test_each_block_of_an_operand_has_a_bank() -> None:
    """A destination that begins below the sources' bank pays where it lies in it."""
    below, across, within = (
        ns(one(vector(ADD, 64, operands=3, dst=dst, src0=0x14000, src1=0x18100))) for dst in (0xC000, 0xE000, 0x10000)
    )
    assert within - below == pytest.approx(64 * 0.79, abs=0.05)
    assert across - below == pytest.approx(32 * 0.79, abs=0.05)


ADDRESSES = st.integers(0, 5000).map(lambda block: block * 32)


@settings(max_examples=50)
@given(st.sampled_from((ADD, DIV)), ADDRESSES, ADDRESSES, ADDRESSES, st.integers(1, 32))
def test_no_place_of_an_operand_is_better_than_a_bank_of_its_own(
    op: int, dst: int, src0: int, src1: int, repeats: int
) -> None:
    def time_of(dst: int, src1: int) -> float:
        return ns(one(vector(op, repeats, operands=3, dst=dst, src0=src0, src1=src1)))

    time = time_of(dst, src1)
    assert time >= time_of(1 << 18, src1)  # in no bank of the sources
    assert time >= time_of(1 << 18, src0 + 256)  # and these in the two halves of the groups


def test_a_short_last_repeat_makes_no_other_shorter() -> None:
    add = vector(ADD, 2, operands=2, dst=0x10100, src0_block=16)
    cut = vector(ADD, 2, operands=2, dst=0x10100, src0_block=16, elements=65, tail=1)
    assert ns(one(cut)) > ns(one(add))


def test_a_copy_takes_issue_bytes_and_latency() -> None:
    assert ns(one(copy_in(X, 3200))) == 10 + 3200 / 32 + 100
    assert ns(one(copy_out(Z, 3200))) == 10 + 3200 / 16


def test_copies_in_a_row_hide_the_latency_of_all_but_the_last() -> None:
    assert ns(one(copy_in(X, 512), copy_in(Y, 512), copy_in(Z, 512))) == 3 * (10 + 512 / 32) + 100


def test_every_burst_has_a_cost() -> None:
    profile = ROUND.changed(copy__burst=2)
    assert ns(one(copy_in(X, 512, bursts=8, gap=512)), profile) == 10 + 8 * 2 + 8 * 512 / 32 + 100


def test_a_burst_off_the_sector_reads_one_sector_more() -> None:
    assert ns(one(copy_in(X + 32, 512))) == 10 + 2 * 512 / 32 + 100


def test_what_was_read_or_written_before_comes_from_l2() -> None:
    again = ns(one(copy_in(X, 4 * KB), copy_in(X, 4 * KB)))
    assert again == 10 + 4096 / 32 + 10 + 4096 / 64 + 100
    written = one(copy_out(Z, 4 * KB), signal(MTE3, 1), wait(MTE2, 1), copy_in(Z, 4 * KB))
    assert ns(written) == 10 + 4096 / 16 + 10 + 4096 / 64 + 100


def test_what_no_longer_fits_into_l2_comes_from_hbm_again() -> None:
    small = ROUND.changed(memory__l2_bytes=8 * KB, memory__l2_usable=1)
    once = time(one(copy_in(X, 4 * KB), copy_in(Y, 16 * KB), copy_in(X, 4 * KB)), small)
    assert once["bytes"]["l2_read"] == 0
    assert once["bytes"]["hbm_read"] == 24 * KB


def test_dirty_data_that_must_leave_l2_takes_its_share_of_hbm() -> None:
    small = ROUND.changed(memory__l2_bytes=8 * KB, memory__l2_usable=1)
    report = time(one(copy_out(Z, 64 * KB)), small)
    assert report["bytes"]["hbm_write"] == 56 * KB


def test_an_atomic_copy_fetches_what_is_not_in_l2() -> None:
    def fetched(*records: str) -> int:
        return int(time(one(*records), ROUND)["bytes"]["hbm_read"])

    added = copy_out(Z, 4 * KB, atomic=1)
    assert fetched(added) == fetched(added, added) == fetched(added, copy_in(Z, 4 * KB)) == 4 * KB
    assert fetched(copy_out(Z, 4 * KB), added) == 0
    profile = ROUND.changed(memory__write_core_gbs=6400)
    assert ns(one(added), profile) == 4 * KB / 64 > ns(one(copy_out(Z, 4 * KB)), profile)


def test_cores_fetch_together_what_they_add_to() -> None:
    report = time(launch([[copy_out(Z, 4 * KB, atomic=1)] for _ in range(8)]), ROUND)
    assert report["bytes"]["hbm_read"] == 4 * KB


def test_a_write_of_a_part_of_a_block_fetches_the_rest_of_it() -> None:
    parts = [copy_out(Z + 4, 8), copy_out(Z + 36, 64)]  # in one block, and in three of which one is whole
    assert time(one(*parts), ROUND)["bytes"]["hbm_read"] == 3 * 32
    assert time(one(*parts, copy_in(Z, 128)), ROUND)["bytes"]["hbm_read"] == 3 * 32
    assert time(one(copy_out(Z, 128), *parts), ROUND)["bytes"]["hbm_read"] == 0


def test_a_bypassing_read_leaves_no_trace_in_l2() -> None:
    report = time(one(copy_in(X, 4 * KB, bypass=1), copy_in(X, 4 * KB)), ROUND)
    assert report["bytes"]["hbm_read"] == 8 * KB


def test_a_bypassing_write_goes_to_hbm() -> None:
    report = time(one(copy_out(Z, 4 * KB, bypass=1)), ROUND)
    assert report["bytes"]["hbm_write"] == 4 * KB


def test_cores_share_hbm() -> None:
    def on(cores: int) -> list[str]:
        return launch([copy_in(X + core * 64 * KB, 3200)] for core in range(cores))

    assert ns(on(2)) == 10 + 3200 / 32 + 100
    assert ns(on(4)) == 10 + 3200 / 16 + 100


def test_cores_that_finish_leave_their_share_of_hbm_to_the_others() -> None:
    body = [copy_in(X + i * 64 * KB, 64 * KB) for i in range(8)]
    idle: list[str] = []
    assert ns(launch([body, idle, idle, idle])) == pytest.approx(ns(launch([body])), rel=0.01)


def test_data_that_all_cores_read_is_fetched_once_for_all() -> None:
    shared = [copy_in(X + i * 64 * KB, 64 * KB) for i in range(8)]
    profile = ROUND.changed(copy__shared=0, copy__contended=0)
    report = time(launch([shared] * 8), profile)
    assert report["bytes"]["hbm_read"] == 512 * KB
    assert report["longest_us"] * 1000 == pytest.approx(8 * 10 + 512 * KB / 32 + 100)  # the rate of a core's port


def test_reading_the_same_data_at_the_same_time_is_contended() -> None:
    narrow = ROUND.changed(copy__window=4 * KB)
    together = [copy_in(X + i * 4 * KB, 4 * KB) for i in range(64)]
    report = time(launch([together] * 8), narrow)
    apart = time(launch(together[8 * core :] + together[: 8 * core] for core in range(8)), narrow)
    assert report["contention_us"] > 1.5 * apart["contention_us"]


def test_parts_of_sectors_that_others_read_too_cost_more_than_whole_ones() -> None:
    narrow = ROUND.changed(copy__window=4 * KB)

    def read(width: int) -> float:
        tiles = [copy_in(X + i * 4 * KB, width, bursts=4 * KB // width) for i in range(64)]
        return float(time(launch(tiles[8 * core :] + tiles[: 8 * core] for core in range(8)), narrow)["contention_us"])

    assert read(128) > 4 * read(512)


def test_pipes_work_side_by_side_and_each_in_order() -> None:
    assert ns(one(copy_in(X, 3200), vector(RELU, 277))) == 23 + 277
    assert ns(one(vector(RELU, 10), vector(RELU, 10))) == 2 * 33


def test_a_wait_orders_two_pipes() -> None:
    lines = one(
        copy_in(X, 3200), signal(MTE2, 1), wait(V, 1), vector(RELU, 10), signal(V, 2), wait(MTE3, 2), copy_out(Z, 320)
    )
    assert ns(lines) == 210 + 33 + 30
    waits = time(lines, ROUND)["waits"]
    assert waits["V<-MTE2"] == pytest.approx(0.210)
    assert waits["MTE3<-V"] == pytest.approx(0.243)


def test_two_buffers_hide_loads_behind_work() -> None:
    def body(buffers: int) -> list[str]:
        lines = []
        for i in range(4):
            slot = i % buffers
            lines += [wait(MTE2, 10 + slot)] if i >= buffers else []
            lines += [copy_in(X + i * 4 * KB, 3200), signal(MTE2, slot), wait(V, slot)]
            lines += [vector(RELU, 187), signal(V, 10 + slot)]
        return lines

    assert ns(one(*body(1))) == 4 * (210 + 210)
    assert ns(one(*body(2))) == 210 + 4 * 210


def test_barriers_wait_for_results() -> None:
    assert ns(one(copy_in(X, 3200), f"barrier pipe={ALL}", vector(RELU, 10))) == 210 + 33
    assert ns(one(copy_in(X, 3200), f"barrier pipe={MTE2}", copy_in(Y, 3200))) == 2 * 210


def test_the_scalar_unit_issues_everything() -> None:
    issuing = ROUND.changed(scalar__issue=1)
    assert ns(one("plain_code a=50", vector(RELU, 10)), issuing) == 50 + 1 + 33
    assert ns(one(*["scalar_local"] * 10)) == 110


def test_a_scalar_write_waits_for_what_was_read() -> None:
    profile = ROUND.changed(scalar__local=4, scalar__load_use=20)
    read, write = "scalar_local", "scalar_local b=1"
    assert ns(one(read, write), profile) == 4 + 20 + 4
    assert ns(one(*[read] * 8, *[write] * 8), profile) == 8 * 4 + 20 + 8 * 4
    assert ns(one(*[read, write] * 8), profile) == 8 * (4 + 20 + 4)
    assert ns(one(read, vector(RELU, 10)), profile) == 4 + 20 + 33


def test_bytes_written_to_hbm_take_longer_than_bytes_read() -> None:
    profile = ROUND.changed(memory__write_core_gbs=640, memory__hbm_write=2)
    assert ns(one(copy_out(Z, 6400, bypass=1)), profile) == 2 * 6400 / 64


def test_short_rows_move_whole_lines() -> None:
    assert ns(one(copy_in(X, 4, bursts=10, gap=124))) == 10 + 10 * 128 / 32 + 100
    assert ns(one(copy_out(Z, 4, bursts=10, gap=124))) == 10 + 10 * 32 / 16


def test_touching_lines_first_does_not_make_them_cheaper() -> None:
    """Once a part of a line was paid for and the whole of it was in L2."""

    def tiles(core: int) -> list[str]:
        return [copy_in(X + (core << 30) + i * 32 * KB, 32 * KB) for i in range(8)]

    touches = [copy_in(X + i * 32 * KB, 32, bursts=256, gap=96) for i in range(8)]
    others = [tiles(core) for core in range(1, 48)]
    assert latency(launch([[*touches, *tiles(0)], *others])) > latency(launch([tiles(0), *others]))


def test_rows_in_other_pages_cost_extra() -> None:
    profile = ROUND.changed(copy__page=40)
    near, far = (one(copy_in(X, 64, bursts=4, gap=gap)) for gap in (448, (2 << 20) - 64))
    assert ns(far, profile) == ns(near, profile) + 3 * 40


def test_a_copy_in_another_page_starts_later_unless_cores_share_hbm() -> None:
    profile = ROUND.changed(copy__turn=50)
    page = 2 << 20

    def in_pages(*pages: int, core: int = 0) -> list[str]:
        return [copy_in(X + (core << 28) + number * page + i * KB, KB) for i, number in enumerate(pages)]

    one_page = ns(launch([in_pages(0, 0, 0, 0)]), profile)
    assert ns(launch([in_pages(0, 1, 1, 0)]), profile) == one_page + 2 * 50
    on_all = [
        ns(launch(in_pages(*pages, core=core) for core in range(48)), profile) for pages in ((0, 0, 0, 0), (0, 1, 0, 1))
    ]
    assert on_all[0] == on_all[1]


def test_a_copy_that_comes_from_l2_neither_pays_for_a_page_nor_opens_one() -> None:
    profile = ROUND.changed(copy__turn=50)
    far = X + (2 << 20)
    first = [copy_in(far, 512), copy_in(X, 512)]
    assert ns(one(*first, copy_in(far, 512), copy_in(far + 512, 512)), profile) == (
        4 * 10 + 3 * (50 + 512 / 32) + 512 / 64 + 100
    )


def test_an_idle_pipe_waits_while_the_cores_writes_take_the_path() -> None:
    profile = ROUND.changed(memory__write_core_gbs=640, memory__hbm_write=1)
    loads = [copy_in(X, 3200), signal(MTE2, 1), wait(MTE3, 1), copy_out(Z, 6400, bypass=1)]
    report = time(one(*loads, wait(MTE2, 1), copy_in(Y, 3200)), profile)
    assert report["pipes"]["MTE2"] == pytest.approx(2 * 0.210)
    assert report["waits"]["MTE2<-MTE3"] > 0.03
    beside = time(one(copy_out(Z, 6400, bypass=1), copy_in(X, 3200), copy_in(Y, 3200)), profile)
    assert beside["pipes"]["MTE2"] > 0.310


def test_the_sum_of_a_row_costs_half_of_its_repeats() -> None:
    profile = ROUND.changed(unit__row_reduce=0.5)
    row, parts = (one(vector(0, 1, family=family)) for family in (5, 6))
    assert ns(parts, profile) == 46 + 7
    assert ns(row, profile) == 46 + 3.5


def test_a_full_queue_holds_the_scalar_unit() -> None:
    shallow = ROUND.changed(scalar__queue_depth=2)
    report = time(one(*[vector(RELU, 77)] * 4, "plain_code a=1"), shallow)
    assert report["waits"]["S<-V"] == pytest.approx(0.100)


def test_global_scalar_accesses_go_through_a_cache() -> None:
    line = [f"scalar_global gm={X + 4 * i}" for i in range(16)]
    assert ns(one(*line)) == 300 + 15 * 10
    assert ns(one(*[f"scalar_global gm={X + 64 * i}" for i in range(16)])) == 16 * 300


def test_a_line_that_was_cleaned_is_read_again() -> None:
    read, other, flag = f"scalar_global gm={X}", f"scalar_global gm={X + 64}", 3
    assert ns(one(read, other, f"cache_clean gm={X + 4} op={flag}", read, other)) == 300 + 300 + 1 + 300 + 10
    assert ns(one(read, other, f"cache_clean a=1 op={flag}", read, other)) == 4 * 300 + 1


def test_a_global_write_waits_for_what_was_read() -> None:
    profile = ROUND.changed(scalar__local=4, scalar__load_use=20)
    assert ns(one("scalar_local", f"scalar_global gm={X} b=1"), profile) == 4 + 20 + 300
    assert ns(one("scalar_local", f"scalar_global gm={X}"), profile) == 4 + 300


def test_sync_all_waits_for_the_slowest() -> None:
    begin = ["launch_begin a=2 b=0", "core_begin core=0", f"{vector(RELU, 10)} core=0", "sync_all core=0"]
    other = [
        "core_begin core=1",
        f"{vector(RELU, 77)} core=1",
        "sync_all core=1",
        f"{vector(RELU, 10)} core=1",
        "core_end core=1",
    ]
    rest = ["core_resume core=0", f"{vector(RELU, 10)} core=0", "core_end core=0", "launch_end"]
    synced = ROUND.changed(launch__sync_cycles=50)
    assert ns(begin + other + rest, synced) == 100 + 50 + 33
    assert time(begin + other + rest, synced)["waits"]["S<-sync"] == pytest.approx((117 + 50) / 2 / 1000)


def phases(*cores: tuple[list[str], ...]) -> list[str]:
    """Return a launch in which cores meet after each of their lists of records but the last."""
    lines = [f"launch_begin a={len(cores)} b=0", *(f"core_begin core={core}" for core in range(len(cores)))]
    for number, phase in enumerate(zip(*cores, strict=True)):
        for core, records in enumerate(phase):
            lines += [f"core_resume core={core}", *(f"{record} core={core}" for record in records)]
            lines += [f"{'sync_all' if number + 1 < len(cores[0]) else 'core_end'} core={core}"]
    return [*lines, "launch_end"]


def test_data_that_all_cores_read_before_they_meet_is_fetched_once_for_all() -> None:
    """A meeting does not wait longer for the core that was timed first: it fetched for all of them."""
    shared = [copy_in(X + i * 64 * KB, 64 * KB) for i in range(8)]
    others = [copy_in(X + i * 64 * KB, 64 * KB) for i in range(8, 16)]
    profile = ROUND.changed(copy__shared=0, copy__contended=0, launch__sync_cycles=50)
    alone = ns(launch([shared] * 8), profile)
    assert ns(phases(*[(shared, [])] * 8), profile) == alone + 50
    assert ns(phases(*[(shared, others, [])] * 8), profile) == pytest.approx(2 * (alone + 50), rel=1e-3)


def test_readers_after_a_meeting_do_not_share_what_was_fetched_before_it() -> None:
    shared = [copy_in(X + i * 64 * KB, 64 * KB) for i in range(8)]
    profile = ROUND.changed(copy__shared=0, copy__contended=0)
    unread = ns(phases((shared, []), *[([], [])] * 7), profile)
    assert ns(phases((shared, []), *[([], shared)] * 7), profile) >= unread + 512 * KB / 64


def test_blocks_beyond_the_cores_wait_for_a_free_one() -> None:
    chip = ROUND.changed(vector_cores=2, launch__block_cycles=7)
    report = time(launch([[vector(RELU, 77)], [vector(RELU, 7)], [vector(RELU, 27)]]), chip)
    assert report["latency_us"] * 1000 == pytest.approx(100)
    assert report["counts"]["waves"] == 2
    long = launch([[vector(RELU, 77)]] * 3)
    assert ns(long, chip) == 100 + 7 + 100


def test_each_launch_pays_for_its_cores() -> None:
    paying = ROUND.changed(launch__base_us=0.5, launch__core_us=0.25)
    assert ns(launch([[vector(RELU, 10)]] * 4), paying) == 500 + 4 * 250 + 33
    assert ns(2 * launch([[vector(RELU, 10)]]), paying) == 2 * (750 + 33)


def test_each_of_several_launches_costs_no_less_than_sync_all() -> None:
    """All cores of the launch before have ended when a further one begins."""
    paying = ROUND.changed(launch__base_us=0.5, launch__core_us=0.25, launch__sync_cycles=900)
    assert ns(launch([[vector(RELU, 10)]]), paying) == 750 + 33
    assert ns(2 * launch([[vector(RELU, 10)]]), paying) == 2 * (900 + 33)
    assert ns(3 * launch([[vector(RELU, 10)]]), paying) == 3 * (900 + 33)
    small, large = launch([[vector(RELU, 10)]]), launch([[vector(RELU, 10)]] * 2)
    assert ns(small + large, paying) == ns(large + small, paying) == 900 + 33 + 1000 + 33
    assert ns(2 * launch([[vector(RELU, 10)]] * 2), paying) == 2 * (1000 + 33)


def test_the_cube_counts_fractals() -> None:
    assert ns(one("cube pipe=2 dtype=1 a=128 b=256 c=64")) == 6 + 8 * 16 * 4
    assert ns(one("cube pipe=2 dtype=0 a=16 b=16 c=16")) == 6 + 2 * 2


def test_two_vector_cores_share_the_cube_of_their_block() -> None:
    matmul = "matmul pipe=2 dtype=1 op=0 m=256 n=256 k=256 base_m=128 base_n=128 base_k=64 depth_a=4 depth_b=4"

    def mixed(lanes: int) -> float:
        bodies = [line for lane in range(lanes) for line in (f"core_begin core={lane}", f"{matmul} core={lane}")]
        ends = [f"core_end core={lane}" for lane in range(lanes)]
        return ns(["launch_begin a=1 b=2", *bodies, *ends, "launch_end"])

    assert mixed(2) == pytest.approx(2 * mixed(1))


def test_matmul_overlaps_loads_and_products_only_with_two_buffers() -> None:
    def matmul(depth: int, base: int = 128) -> float:
        shape = f"m=1024 n=1024 k=1024 base_m={base} base_n={base} base_k=64 depth_a={depth} depth_b={depth}"
        return ns(launch([[f"matmul pipe=2 dtype=1 op=0 {shape}"]], kind=1))

    products = 8 * 8 * 16 * 8 * 8 * 4
    assert products < matmul(4) < matmul(1)
    assert matmul(4) < matmul(4, base=32)


def test_the_cube_drains_at_each_step_unless_loads_run_ahead() -> None:
    def cube(depth: int, drain: int) -> float:
        shape = f"m=256 n=256 k=256 base_m=128 base_n=128 base_k=64 depth_a={depth} depth_b={depth}"
        records = launch([[f"matmul pipe=2 dtype=1 op=0 {shape}"]], kind=1)
        return float(time(records, ROUND.changed(matmul__drain=drain))["pipes"]["M"])

    assert cube(1, 60) == pytest.approx(cube(1, 0) + 2 * 2 * 4 * 0.060)
    assert cube(8, 60) == cube(8, 0)


def test_blocks_that_do_not_fit_on_the_chip_are_not_faster() -> None:
    def matmul(base: int, depth: int) -> float:
        shape = f"m=1024 n=1024 k=1024 base_m={base} base_n={base} base_k={base} depth_a={depth} depth_b={depth}"
        return ns(launch([[f"matmul pipe=2 dtype=1 op=0 {shape}"]], kind=1))

    assert matmul(1024, 4) == matmul(512, 4)
    assert matmul(1024, 1000000) == matmul(1024, 1000)


def test_a_token_out_of_range_is_an_error() -> None:
    with pytest.raises(RuntimeError, match="token 65536"):
        time(one(signal(V, 65536)))


def test_the_report_says_where_time_and_bytes_went() -> None:
    report = time(
        one(copy_in(X, 3200, line=7), signal(MTE2, 1), wait(V, 1), vector(RELU, 10, operands=2, line=9)), ROUND
    )
    assert report["pipes"]["MTE2"] == pytest.approx(0.210)
    assert report["pipes"]["V"] == pytest.approx(0.033)
    assert report["utilisation"]["V"] == pytest.approx(33 / 243)
    assert report["bytes"] == {"hbm_read": 3200, "hbm_write": 0, "l2_read": 0, "l2_write": 0, "ub": 2 * 2560}
    assert [entry["line"] for entry in report["lines"]] == [7, 9]


def test_a_trace_shows_each_instruction_on_its_pipe(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "trace.json"
    time(one(copy_in(X, 3200, line=7), vector(RELU, 10)), ROUND, str(path))
    events = [event for event in json.loads(path.read_text())["traceEvents"] if "line" in event.get("args", {})]
    assert [(event["name"], event["args"]["line"]) for event in events] == [("copy_in", 7), ("relu", 0)]
    assert events[0]["dur"] == pytest.approx(0.210)


def test_a_trace_names_cores_blocks_and_launches(tmp_path) -> None:  # type: ignore[no-untyped-def]
    path = tmp_path / "trace.json"
    two = ROUND.changed(vector_cores=2)
    time([*launch([[vector(RELU, 7)]] * 3), *launch([[vector(RELU, 7)]])], two, str(path))
    events = json.loads(path.read_text())["traceEvents"]
    names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
    assert sorted(names.values()) == ["core 0", "core 0, block 2", "core 1", "launches"]
    launches = [event for event in events if event.get("cat") == "launch"]
    assert [(event["name"], event["args"]) for event in launches] == [
        ("launch 1", {"blocks": 3, "cores": 2}),
        ("launch 2", {"blocks": 1, "cores": 1}),
    ]
    assert launches[0]["ts"] + launches[0]["dur"] <= launches[1]["ts"]


def test_blocks_of_one_core_fill_l2_together() -> None:
    small = ROUND.changed(vector_cores=1, memory__l2_bytes=8 * KB, memory__l2_usable=1, copy__window=0)
    report = time(launch([[copy_in(X, 4 * KB)], [copy_in(Y, 16 * KB)], [copy_in(X, 4 * KB)]]), small)
    assert report["bytes"]["hbm_read"] == 24 * KB
    report = time(launch([[copy_out(Z + i * 8 * KB, 8 * KB)] for i in range(8)]), small)
    assert report["bytes"]["hbm_write"] == 56 * KB
    report = time(2 * launch([[copy_in(X, 4 * KB)], [copy_in(X, 4 * KB)]]), small)
    assert report["bytes"]["hbm_read"] == 4 * KB


SMALL_PRODUCT = "matmul pipe=2 dtype=1 op=0 m=128 n=128 k=128 base_m=128 base_n=128 base_k=128"


def test_a_product_that_is_added_to_memory_costs_the_factor_of_atomic_copies() -> None:
    def product(atomic: int) -> float:
        return ns(launch([[f"{SMALL_PRODUCT} atomic={atomic}"]], kind=1), ROUND.changed(cube__fix_gbs=32))

    assert ROUND.figures["memory.atomic"] == 2
    assert product(1) - product(0) == pytest.approx(128 * 128 * 4 / 32)
    added = launch([[copy_out(Z, 4 * KB, atomic=1)]])
    assert ns(added) == 10 + 2 * 4 * KB / 16


def test_a_product_fetches_what_it_is_added_to() -> None:
    def fetched(atomic: int) -> int:
        product = f"{SMALL_PRODUCT} out={Z} out_bytes={64 * KB} outs=1 atomic={atomic}"
        return int(time(launch([[product]], kind=1), ROUND)["bytes"]["hbm_read"])

    assert [fetched(0), fetched(1)] == [0, 64 * KB]


def test_the_bias_of_a_product_is_fetched_and_loaded() -> None:
    profile = ROUND.changed(memory__l1_core_gbs=128, cube__load_latency=30, cube__table_bytes=16)

    def pipes(bias: str) -> dict[str, float]:
        pipes: dict[str, float] = time(launch([[f"{SMALL_PRODUCT} {bias}"]], kind=1), profile)["pipes"]
        return {name: us * 1000 for name, us in pipes.items()}

    without, bias = pipes(""), pipes(f"bias={X} bias_bytes=512 biases=1")
    assert bias["MTE2"] - without.get("MTE2", 0) == pytest.approx(10 + 512 / 32 + 100)
    assert bias["MTE1"] - without.get("MTE1", 0) == pytest.approx(30 + 512 / 16)
