"""Programs of records that once got time for nothing: each pays now."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator

import pytest
from timeline_driver import (
    ALL,
    MTE2,
    M,
    V,
    X,
    Y,
    Z,
    copy_in,
    copy_out,
    latency,
    launch,
    program,
    signal,
    time,
    vector,
    wait,
)

from kernel_gym.hardware.ascend_sim import chip


def test_a_read_of_a_part_of_a_line_does_not_bring_the_rest_of_it() -> None:
    def tiles(core: int, parts: bool) -> Iterator[str]:
        for begin in range(X + (core << 24), X + (core << 24) + 16 * 32256, 32256):
            if not parts:
                yield copy_in(begin, 32256)
                continue
            yield copy_in(begin + 96, 576, 42, 192)  # from the end of a line to the beginning of another
            yield copy_in(begin + 672, 192, 21, 1344)
            yield copy_in(begin + 1440, 96, 21, 1440)
            yield copy_in(begin, 96, 21, 1440)

    whole, parts = (time(launch(tiles(core, parts) for core in range(48))) for parts in (False, True))
    assert parts["bytes"]["hbm_read"] >= whole["bytes"]["hbm_read"]
    assert parts["latency_us"] > whole["latency_us"]


# ---- the last wave --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bypass", [0, 1])
def test_no_launch_is_shorter_than_the_vector_time_of_its_busiest_core(bypass: int) -> None:
    tile = [copy_in(X, 32768, bypass=bypass), vector(13, 255), vector(13, 255), vector(13, 255)]

    def block(core: int, tiles: int) -> list[str]:
        return [line.replace(f"gm={X}", f"gm={X + (core << 24) + i * 32768}") for i in range(tiles) for line in tile]

    profile = chip.load("910B1")
    report = time(launch(block(core, 40 if core == 0 else 4) for core in range(48)), profile)
    exp = profile["vector.exp.startup"] + 255 * profile["vector.exp.repeat"]
    assert report["latency_us"] >= 120 * exp / profile["clock_mhz"]


def test_a_core_without_transfers_takes_its_own_time_beside_others_that_have_many() -> None:
    def loading(core: int, tiles: int) -> list[str]:
        return [copy_in(X + (core << 28) + i * 32768, 32768) for i in range(tiles)]

    busy = [vector(13, 255)] * 150
    few = [loading(core, 5) for core in range(2, 42)]
    alone = latency(launch([busy]))
    for blocks in ([busy, loading(1, 60), *few], [loading(1, 60), *few, busy]):
        assert latency(launch(blocks)) >= alone


def steps(core: int, copies: int) -> Iterator[str]:
    """Vector and scalar code in turn; beside it, copies in that nobody uses."""
    for step in range(14):
        yield from [copy_in(Y + (core << 28) + step * 16384, 16384)] * (step < copies)
        yield from [vector(13, 255), signal(V, 1), wait(0, 1), "plain_code a=1400"]


@pytest.mark.parametrize("slow", [1, 24, 40])
@pytest.mark.parametrize("loads", [0, 20])
@pytest.mark.parametrize("others", [False, True])
@pytest.mark.parametrize("cubes", [False, True])
def test_copies_beside_other_work_do_not_shorten_it_as_other_cores_end(
    slow: int, loads: int, others: bool, cubes: bool
) -> None:
    def loading(core: int) -> list[str]:
        return [*(copy_in(X + (core << 28) + i * 16384, 16384) for i in range(loads)), f"barrier pipe={ALL}"]

    def us(copies: int) -> float:
        busy = [[*loading(core), *steps(core, copies)] for core in range(slow)]
        idle = [loading(core) if others else [] for core in range(slow, CORES)]
        return mixed_us([*busy, *idle].__getitem__) if cubes else latency(launch([*busy, *idle]))

    assert min(us(4), us(8), us(14)) >= us(0) - 0.01


@pytest.mark.parametrize("copies", [4, 13, 26])
def test_copies_beside_products_do_not_shorten_the_time_of_the_cube(copies: int) -> None:
    shape = "m=128 k=1024 base_m=128 base_n=256 base_k=64 depth_a=8 depth_b=8"

    def body(core: int, count: int) -> list[str]:
        columns = 224 if core % 2 else 112
        tiles = [copy_in(Y + (core << 28) + i * 32768, 32768) for i in range(count)]
        return [f"matmul pipe={M} dtype=0 op=0 n={columns} {shape}", *(tiles if core % 2 else [])]

    assert mixed_us(lambda core: body(core, copies)) >= mixed_us(lambda core: body(core, 0))


@pytest.mark.parametrize("copies", [2, 8, 32])
def test_copies_beside_products_that_are_fetched_do_not_shorten_them(copies: int) -> None:
    shape = "m=128 n=128 k=4096 base_m=128 base_n=128 base_k=64 depth_a=4 depth_b=4"

    def body(core: int, count: int) -> list[str]:
        tiles = [copy_in(Y + (core << 28) + i * 32768, 32768) for i in range(count)]
        product = f"matmul pipe={M} dtype=1 op=0 {shape} left={X + (core << 28)} left_bytes={1 << 20} lefts=1"
        return [product, *(tiles if core % 2 else [])]

    assert mixed_us(lambda core: body(core, copies)) >= mixed_us(lambda core: body(core, 0))


def test_a_barrier_covers_copies_out() -> None:
    copies = [copy_out(X + i * 65536, 65536) for i in range(4)]
    after = [f"barrier pipe={ALL}", f"vector pipe={V} op=0 repeats=64"]
    assert latency(launch([[*copies, *after]])) > latency(launch([copies]))


# ---- bytes of several cores ------------------------------------------------------------------------------------------

CORES, TILE, TILES = 48, 32768, 32


def reading(core: int) -> list[str]:
    return [copy_in(X + (core * TILES + i) * TILE, TILE, bypass=0) for i in range(TILES)]


@pytest.mark.parametrize("share", [0.25, 1.0])
def test_reading_what_another_core_has_fetched_makes_no_launch_shorter(share: float) -> None:
    honest = latency(launch(map(reading, range(CORES))))
    more = int(share * TILES)
    again = latency(launch(reading(core) + reading(core ^ 1)[::-1][:more] for core in range(CORES)))
    some = latency(launch(reading(core) + (reading(core - 1)[:more] if core % 2 else []) for core in range(CORES)))
    assert min(again, some) >= honest
    assert latency(launch([*map(reading, range(CORES)), *(reading(core)[:more] for core in range(CORES))])) >= honest


@pytest.mark.parametrize("bypass", [0, 1])
def test_reading_ones_own_bytes_again_takes_over_nothing(bypass: int) -> None:
    def again(core: int) -> list[str]:
        return [line.replace("bypass=0", f"bypass={bypass}") for line in reading(core)]

    honest = latency(launch(reading(core) + again(core) for core in range(CORES)))
    others = latency(launch(reading(core) + again(core) + again((core + 24) % CORES) for core in range(CORES)))
    first = latency(launch(reading((core + 24) % CORES) + again(core) + again(core) for core in range(CORES)))
    assert min(others, first) >= honest


def test_what_all_cores_read_through_the_workspace_is_contended_for_as_well() -> None:
    tiles, part = 8, 8 * TILE // CORES // 32 * 32

    def us(copied: bool) -> float:
        first, then = [f"launch_begin a={CORES} b=0"], []
        for core in range(CORES):
            begins = core * part
            copies = [copy_in(X + begins, part), f"barrier pipe={ALL}"]
            if copied:
                copies += [copy_out(Z + begins, part), f"barrier pipe={ALL}"]
            reads = [copy_in((Z if copied else X) + i % tiles * TILE, TILE) for i in range(8 * tiles)]
            first += [
                f"core_begin core={core}",
                *(f"{record} core={core}" for record in copies),
                f"sync_all core={core}",
            ]
            then += [f"{record} core={core}" for record in [*reads, "core_end"]]
        return latency([*first, *then, "launch_end"])

    assert us(copied=True) >= us(copied=False)


@pytest.mark.parametrize("cores", [8, 16, CORES])
@pytest.mark.parametrize("first", [0, 1])
def test_a_cache_hint_does_not_keep_cores_out_of_each_others_way(first: int, cores: int) -> None:
    def reads(*hints: int) -> list[str]:
        return [copy_in(X + i * TILE, TILE, bypass=hint) for hint in hints for i in range(8)]

    honest = latency(launch([reads(0, 0, 0, 0)] * cores))
    assert latency(launch([reads(first, 1, 1, 1)] * cores)) >= honest


@pytest.mark.parametrize("between", [0, 4])
def test_what_is_read_behind_a_flag_repays_nobody(between: int) -> None:
    flag = 0x80000000

    def us(neighbour: int, before: int) -> float:
        first, behind = [f"launch_begin a={CORES} b=0"], []
        for core in range(CORES):
            told = [*reading(core), f"signal pipe={MTE2} token={flag} a={min(core, 1)}"]
            waits = [*reading((core + 1) % CORES)[:before], f"wait pipe=0 token={flag}", f"barrier pipe={ALL}"]
            written = [copy_out(Y + (core * TILES + i) * TILE, TILE) for i in range(TILES)]
            first += [f"core_begin core={core}", *(f"{record} core={core}" for record in told)]
            behind += [f"{record} core={core}" for record in [*waits, *reading((core + neighbour) % CORES), *written]]
            behind.append(f"core_end core={core}")
        return latency([*first, *behind, "launch_end"])

    assert us(neighbour=1, before=between) >= us(neighbour=0, before=0)


def product(pair: int) -> str:
    """A column times 32 rows of 8,192 floats, 1 MB that nobody else multiplies."""
    shape = "m=32 n=1 k=8192 base_m=32 base_n=1 base_k=256 depth_a=8 depth_b=8"
    return f"matmul pipe={M} dtype=1 op=1 {shape} left={X + pair * TILES * TILE} left_bytes={TILES * TILE} lefts=1"


def mixed_us(body: Callable[[int], list[str]]) -> float:
    """The latency of all cores of both kinds; `body` has the records of a vector core."""
    first, *records = launch(map(body, range(CORES)))
    return latency([first.replace(f"a={CORES} b=0", f"a={CORES // 2} b=2"), *records])


@pytest.mark.parametrize("beside", ["nothing", "the same bytes", "other bytes"])
def test_cube_cores_and_the_vector_cores_beside_them_have_one_memory(beside: str) -> None:
    def other(pair: int) -> list[str]:
        tiles = reading(pair if beside == "the same bytes" else CORES + pair)
        return [] if beside == "nothing" else tiles[TILES // 2 :] + tiles[: TILES // 2]

    us = mixed_us(lambda core: other(core // 2) if core % 2 else [product(core // 2)]) - mixed_us(lambda _: [])
    fetched = CORES // 2 * TILES * TILE * (2 if beside == "other bytes" else 1)
    assert us >= 0.999 * fetched / (1e3 * chip.load("910B1")["memory.hbm_gbs"])


def test_cube_cores_and_the_vector_cores_beside_them_have_one_l2() -> None:
    us = mixed_us(lambda core: [product(core // 2)] * (0 if core % 2 else 8) + 8 * reading(core // 2))
    read = 8 * CORES * TILES * TILE + 8 * CORES // 2 * (TILES * TILE // 2)  # products are of halves
    assert us - mixed_us(lambda _: []) >= 0.999 * read / (1e3 * chip.load("910B1")["memory.l2_gbs"])


@pytest.mark.parametrize("trickle", [0, 1])
def test_transfers_of_all_cores_do_not_shorten_what_one_of_them_does_last(trickle: int) -> None:
    flag = 0xC0000000

    def block(core: int, last: list[str]) -> list[str]:
        body = [*reading(core), f"barrier pipe={ALL}", f"signal pipe=0 token={flag + core}"]
        waits = [f"wait pipe=0 token={flag + other}" for other in range(CORES)]
        return [*body, *waits, *last] if core == CORES - 1 else body

    def us(last: list[str]) -> float:
        return latency(launch(block(core, last) for core in range(CORES)))

    last = [*([vector(13, 255)] * 50), *([copy_in(Y, 512)] * trickle)]
    alone = latency(launch([last])) - latency(launch([[]]))
    assert us(last) - us([]) >= 0.9 * alone


@pytest.mark.parametrize("size", [4096, 8192, 16384, 32768])
def test_reading_what_a_neighbour_has_fetched_does_not_shorten_its_fetch(size: int) -> None:
    def block(core: int, neighbour: bool) -> Iterator[str]:
        for tile in range(24):
            yield from [copy_in(X + (core * 24 + tile) * size, size), signal(MTE2, 1), wait(V, 1)]
            if neighbour:  # while it computes
                yield copy_in(X + ((core ^ 1) * 24 + tile) * size, size)
            yield from [vector(13, 300), signal(V, 2), wait(MTE2, 2)]

    helped, honest = (latency(launch(block(core, more) for core in range(CORES))) for more in (True, False))
    assert helped >= honest


# ---- cores in step ---------------------------------------------------------------------------------------------------


def tiles(count: int, times: int = 1, first: int = 0, **more: int) -> list[str]:
    """Reads of the same tiles, from `first` on."""
    return [copy_in(X + (first + i) % count * TILE, TILE, **more) for _ in range(times) for i in range(count)]


@pytest.mark.parametrize(("count", "times"), [(8, 1), (8, 8), (64, 4)])
def test_reads_in_step_are_contended_for_after_a_read_in_another_order(count: int, times: int) -> None:
    in_step = tiles(count, times)
    more = launch(tiles(count, 1, core * count // CORES) + in_step for core in range(CORES))
    assert latency(more) >= latency(launch([in_step] * CORES))


@pytest.mark.parametrize("waves", [2, 4, 12])
@pytest.mark.parametrize("times", [1, 8])
def test_blocks_that_start_beside_empty_ones_are_in_step_as_well(waves: int, times: int) -> None:
    body = tiles(8, times)
    blocks = [body if block % CORES < CORES // waves else ["overhead op=2"] for block in range(waves * CORES)]
    assert latency(launch(blocks)) >= latency(launch([body] * CORES))


@pytest.mark.parametrize("cycles", [300, 1000, 2000])
@pytest.mark.parametrize("groups", [2, 8, CORES])
def test_waiting_does_not_bring_cores_out_of_step(groups: int, cycles: int) -> None:
    body = tiles(16, 4)
    delayed = launch([f"plain_code a={core % groups * cycles}", *body] for core in range(CORES))
    assert latency(delayed) >= latency(launch([body] * CORES))


def test_reads_behind_other_work_do_not_bring_cores_out_of_step() -> None:
    def block(core: int, more: int) -> list[str]:
        work = [
            [copy_in(Y + (core << 24) + i * TILE, TILE)] * (i < core * more) + [vector(13, 255)] * 6
            for i in range(CORES)
        ]
        return [*(record for each in work for record in each), f"barrier pipe={ALL}", *tiles(8, 8)]

    hidden, honest = (latency(launch(block(core, more) for core in range(CORES))) for more in (1, 0))
    assert hidden >= honest


@pytest.mark.parametrize("count", [48, 64])
def test_cores_that_begin_at_tiles_of_their_own_are_out_of_step(count: int) -> None:
    rotated = launch(tiles(count, 4, core * count // CORES) for core in range(CORES))
    assert latency(rotated) < 0.6 * latency(launch([tiles(count, 4)] * CORES))


@pytest.mark.parametrize(("rotated", "in_step"), [(8, 6), (16, 3)])
def test_a_core_contends_with_those_in_step_alone(rotated: int, in_step: int) -> None:
    groups = latency(launch(tiles(rotated, 4, core % rotated) for core in range(CORES)))
    none, all_of_them = (
        latency(launch([tiles(rotated, 4)] * CORES), chip.load("910B1").changed(copy__contended=each))
        for each in (0, chip.load("910B1")["copy.contended"])
    )
    assert none < groups < none + 1.2 * (all_of_them - none) * (in_step - 1) / (CORES - 1)


# ---- the time that timing takes --------------------------------------------------------------------------------------


def timed_within(seconds: float, lines: list[str]) -> float:
    profile = [f"chip {key} {value}" for key, value in chip.load("910B1").pairs()]
    text = "\n".join([*profile, *lines])
    done = subprocess.run([program()], input=text, text=True, check=True, timeout=seconds, capture_output=True)
    return float(json.loads(done.stdout)["latency_us"])


def test_the_time_to_time_a_launch_grows_with_its_blocks() -> None:
    """Blocks beyond the cores read the same bytes; once a list of all of them was walked for each."""
    timed_within(60, launch([copy_in(X, 4096)] for _ in range(20000)))


def test_the_time_to_time_cores_in_turn_does_not_grow_with_the_visits_of_one() -> None:
    """Once each access walked over all visits of the other core."""
    often = ["mark", copy_in(X, TILES * 2048) + " core=1", "repeat 8000"]
    in_turn = [f"{copy_in(X, TILES * 2048)} core={turn % 2}" for turn in range(400)]
    first = ["launch_begin a=2 b=0", "core_begin core=0", copy_in(X, TILES * 2048) + " core=0", "core_begin core=1"]
    timed_within(60, [*first, *often, *in_turn, "core_end core=0", "core_end core=1", "launch_end"])


@pytest.mark.slow
def test_a_phase_with_more_records_than_are_kept_takes_no_less_time_for_each() -> None:
    """Run by `make test-slow`."""

    def us(copies: int, own: int) -> float:
        lines = ["launch_begin a=2 b=0"]
        for core in range(2):
            body = [copy_in(X + core * own, 512), vector(0, 1)]
            lines += [f"core_begin core={core}", "mark", *(f"{record} core={core}" for record in body)]
            lines += [f"repeat {copies}", f"core_end core={core}"]
        return timed_within(120, [*lines, "launch_end"])

    few, many = 100_000, 1_100_000
    for own in (0, 1 << 24):
        assert us(many, own) >= many / few * 0.98 * us(few, own)
    assert us(many, 1 << 24) <= many / few * 1.02 * us(few, 1 << 24)
