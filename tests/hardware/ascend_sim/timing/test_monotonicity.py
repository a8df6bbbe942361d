"""A search for programs that do more work in less time: there are none beyond rounding.

Programs run on several cores, each on global bytes of its own. A change adds an instruction, enlarges an operand or
adds a wait on one core; the launch must not become shorter. Bytes that several cores read are left out on purpose:
there a longer burst may save a part of a sector that others contend for, as published measurements say (copy.shared in
chips/base.yaml). A copy added or enlarged before another may turn to its page of memory while other work goes on; that
is worth one turn at most (copy.turn).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from timeline_driver import ALL, KB, MTE2, MTE3, M, V, X, Y, Z, latency, launch

from kernel_gym.hardware.ascend_sim import chip

#: Times are whole 1024ths of a cycle; what a program of some hundred instructions loses by rounding is below this.
ROUNDING_US = 4 / chip.load("910B1")["clock_mhz"]
TURN_US = chip.load("910B1")["copy.turn"] / chip.load("910B1")["clock_mhz"]
SHARED = 0x80000000


@dataclass(frozen=True)
class Record:
    """One instruction; `size` names the field that a larger operand multiplies."""

    kind: str
    fields: tuple[tuple[str, int], ...]
    size: str = ""

    def line(self, core: int) -> str:
        words = [f"{key}={value + (core << 30 if key in ('gm', 'left') else 0)}" for key, value in self.fields]
        return " ".join([self.kind, *words])

    def larger(self, factor: int) -> Record:
        return replace(self, fields=tuple((k, v * factor if k == self.size else v) for k, v in self.fields))

    def fetched(self) -> Record:
        """A product whose left matrix need not be fetched."""
        return replace(self, fields=tuple((k, v) for k, v in self.fields if not k.startswith("left")))


def record(kind: str, size: str = "", **fields: int) -> Record:
    return Record(kind, tuple(fields.items()), size)


places = st.integers(0, 60).map(lambda i: i * 64 * KB)
pieces = st.integers(1, 16).map(lambda n: n * 512)
pipes = st.sampled_from([V, MTE2, MTE3])
tokens = st.integers(0, 5)
records = st.one_of(
    st.builds(
        lambda at, size, bypass: record("copy_in", "bytes", pipe=MTE2, gm=X + at, bytes=size, bursts=1, bypass=bypass),
        places, pieces, st.integers(0, 1),
    ),
    st.builds(
        lambda at, count: record("copy_in", "bursts", pipe=MTE2, gm=X + at, bytes=64, bursts=count, gap=448),
        places, st.integers(1, 30),
    ),
    st.builds(
        lambda at, size, atomic: record("copy_out", "bytes", pipe=MTE3, gm=Z + at, bytes=size, bursts=1, atomic=atomic),
        places, pieces, st.integers(0, 1),
    ),
    st.builds(
        lambda op, repeats, src1: record(
            "vector", "repeats", pipe=V, op=op, repeats=repeats, operands=3, dst=0x20000, src1=src1
        ),
        st.integers(0, 30), st.integers(1, 64), st.sampled_from([0, 256, 0x4000]),
    ),
    st.builds(lambda pipe, token: record("signal", pipe=pipe, token=token), pipes, tokens),
    st.builds(lambda pipe, token: record("wait", pipe=pipe, token=token), st.one_of(pipes, st.just(0)), tokens),
    st.sampled_from([record("barrier", pipe=ALL), record("barrier", pipe=V), record("scalar_local")]),
    st.builds(lambda n: record("plain_code", "a", a=n), st.integers(1, 200)),
    st.builds(lambda at: record("scalar_global", gm=X + at), places),
)  # fmt: skip
blocks = st.lists(records, min_size=1, max_size=20)
programs = st.lists(blocks, min_size=1, max_size=6)
Program = list[list[Record]]


def us(program: Program, kind: int = 0) -> float:
    return latency(launch(([each.line(core) for each in body] for core, body in enumerate(program)), kind))


def changed(program: Program, data: st.DataObject) -> tuple[Program, float]:
    """The program with more work on one of its cores, and by how much it may become shorter."""
    core = data.draw(st.integers(0, len(program) - 1))
    body = list(program[core])
    place = data.draw(st.integers(0, len(body) - 1))
    how = data.draw(st.sampled_from(["add", "enlarge", "wait"]))
    if how == "enlarge" and body[place].size:
        body[place] = body[place].larger(data.draw(st.integers(2, 4)))
    elif how == "wait":
        waiting = st.builds(lambda pipe, token: record("wait", pipe=pipe, token=token), pipes, tokens)
        body.insert(place, data.draw(st.one_of(waiting, st.just(record("barrier", pipe=ALL)))))
    else:
        body.insert(place, data.draw(records.filter(lambda each: each.kind != "signal")))
    copies = [position for position, each in enumerate(body) if each.kind == "copy_in"]
    turns = place in copies[:-1]
    return [*program[:core], body, *program[core + 1 :]], ROUNDING_US + (TURN_US if turns else 0.0)


def search(program: Program, data: st.DataObject) -> None:
    more, shorter = changed(program, data)
    assert us(more) >= us(program) - shorter


@settings(max_examples=25, suppress_health_check=[HealthCheck.too_slow])
@given(programs, st.data())
def test_more_work_is_never_faster(program: Program, data: st.DataObject) -> None:
    search(program, data)


@pytest.mark.slow
@pytest.mark.timeout(0)
@settings(max_examples=3000, suppress_health_check=[HealthCheck.too_slow])
@given(programs, st.data())
def test_a_long_search_finds_no_free_work(program: Program, data: st.DataObject) -> None:
    search(program, data)


def chained(first: list[Record], second: list[Record], token: int) -> list[str]:
    """Two cores, of which the second starts when the first is done."""
    lines = ["launch_begin a=2 b=0", "core_begin core=0", *(f"{each.line(0)} core=0" for each in first)]
    lines += [
        f"barrier pipe={ALL} core=0",
        f"signal pipe=0 token={token} core=0",
        "core_end core=0",
        "core_begin core=1",
    ]
    lines += [f"wait pipe=0 token={token} core=1", *(f"{each.line(1)} core=1" for each in second), "core_end core=1"]
    return [*lines, "launch_end"]


@settings(max_examples=8)
@given(blocks, blocks, st.sampled_from([SHARED, SHARED + 0x40000000]), st.data())
def test_a_core_that_waits_for_another_takes_the_time_of_both(
    first: list[Record], second: list[Record], token: int, data: st.DataObject
) -> None:
    free: Any = chip.load("910B1").changed(launch__base_us=0, launch__core_us=0)
    times = [latency(launch([[each.line(core) for each in body]]), free) for core, body in enumerate((first, second))]
    assert latency(chained(first, second, token), free) >= max(times) - ROUNDING_US
    [larger], shorter = changed([first], data)
    assert latency(chained(larger, second, token)) >= latency(chained(first, second, token)) - shorter


# ---- cores that end sooner leave HBM to others, which shortens transfers alone ---------------------------------------

CORES = 48
counts = st.sampled_from([64, 128, 256])
some_tokens = st.integers(0, 2)
copies = st.builds(
    lambda at, size: record("copy_in", pipe=MTE2, gm=X + at, bytes=size, bursts=1),
    places, st.sampled_from([16 * KB, 64 * KB, 128 * KB]),
)  # fmt: skip
own = st.one_of(  # without transfers
    st.builds(
        lambda op, n: record("vector", pipe=V, op=op, repeats=n, operands=3, dst=0x20000, src1=256),
        st.sampled_from([0, 13]), st.sampled_from([64, 255, 2000]),
    ),
    st.builds(lambda n: record("plain_code", a=n), st.sampled_from([100, 2000, 10000])),
    st.builds(lambda pipe, token: record("signal", pipe=pipe, token=token), st.sampled_from([V, M]), some_tokens),
    st.builds(lambda pipe, token: record("wait", pipe=pipe, token=token), st.sampled_from([0, V, M]), some_tokens),
    st.builds(lambda m, n, k: product(m, n, 8 * k), counts, counts, counts),
)  # fmt: skip
transfers = st.one_of(
    copies,
    st.builds(
        lambda at, size: record("copy_out", pipe=MTE3, gm=Z + at, bytes=size, bursts=1),
        places, st.sampled_from([16 * KB, 64 * KB]),
    ),
    st.builds(lambda m, k, at: product(m, 64, 4 * k, Y + at), counts, counts, places),
)  # fmt: skip
kinds = st.lists(st.lists(st.one_of(own, transfers), min_size=1, max_size=8), min_size=1, max_size=3)
searched = settings(max_examples=30, suppress_health_check=[HealthCheck.too_slow])


def product(m: int, n: int, k: int, left: int = 0) -> Record:
    """A product; its left matrix is fetched from `left`, if that is given."""
    tiling = {"base_m": 128, "base_n": 256, "base_k": 64, "depth_a": 8, "depth_b": 8}
    fetched = {"left": left, "left_bytes": 2 * m * k, "lefts": 1} if left else {}
    return record("matmul", pipe=M, dtype=1, op=0, m=m, n=n, k=k, **tiling, **fetched)


def all_cores_us(program: Program, profile: chip.ChipProfile | None = None) -> float:
    """The latency of a program of all vector cores, of which two share a cube if it has products."""
    alone, *lines = launch([each.line(core) for each in body] for core, body in enumerate(program))
    has_products = any(line.startswith("matmul") for line in lines)
    return latency([f"launch_begin a={CORES // 2} b=2" if has_products else alone, *lines], profile)


def on_cores(bodies: Program, every: int) -> Program:
    """A few bodies on one pair of cores in `every`; the others have nothing to do."""
    return [bodies[core % len(bodies)] if core // 2 % every == 0 else [] for core in range(CORES)]


def copying(program: Program, data: st.DataObject) -> Program:
    """The program with copies in that nobody uses, on one core or on one of each pair."""
    core, alone = data.draw(st.integers(0, CORES - 1)), data.draw(st.booleans())
    more = data.draw(st.lists(copies, min_size=1, max_size=6))

    def body(number: int, old: list[Record]) -> list[Record]:
        chosen = number == core if alone else number % 2 == core % 2
        return [*old[: len(old) // 2], *more, *old[len(old) // 2 :]] if chosen and old else old

    return [body(number, old) for number, old in enumerate(program)]


@searched
@given(st.lists(st.lists(own, min_size=1, max_size=8), min_size=1, max_size=3), st.integers(1, 3), st.data())
def test_copies_shorten_nothing_where_nothing_else_is_transferred(
    bodies: Program, every: int, data: st.DataObject
) -> None:
    program = on_cores(bodies, every)
    assert all_cores_us(copying(program, data)) >= all_cores_us(program) - ROUNDING_US


fetching = st.builds(lambda m, n, k, at: product(m, n, 8 * k, Y + at), counts, counts, counts, places)
unused = st.one_of(
    copies,
    st.builds(
        lambda at, size: record("copy_out", pipe=MTE3, gm=Z + at, bytes=size, bursts=1, atomic=1),
        places, st.sampled_from([4 * KB, 64 * KB, 256 * KB]),
    ),
)  # fmt: skip
WIDE = [product(128, 256, 512, Y + (place << 24)) for place in range(3)]
SUM = record("copy_out", pipe=MTE3, gm=Z, bytes=256 * KB, bursts=1, atomic=1)


@searched
@given(
    fetching,
    st.lists(fetching, min_size=1, max_size=3),
    st.integers(1, CORES // 2),
    st.lists(unused, min_size=1, max_size=4),
    st.integers(0, 1),
)
@example(WIDE[0], WIDE[1:], 1, [SUM], 1)
@example(WIDE[0], WIDE[1:], 12, [record("copy_in", pipe=MTE2, gm=X, bytes=256 * KB, bursts=1)], 1)
def test_copies_beside_products_shorten_no_launch(
    first: Record, further: list[Record], busy: int, more: list[Record], lane: int
) -> None:
    program = [[first, *(further if core // 2 < busy else [])] for core in range(CORES)]
    copying = [[*more, *body] if core // 2 < busy and core % 2 == lane else body for core, body in enumerate(program)]
    assert all_cores_us(copying) >= all_cores_us(program) - ROUNDING_US


@searched
@given(kinds, st.integers(1, 3), st.data())
def test_copies_shorten_no_launch_below_what_it_takes_where_each_core_has_all_that_its_port_takes(
    bodies: Program, every: int, data: st.DataObject
) -> None:
    profile = chip.load("910B1")
    ample = profile.changed(memory__hbm_gbs=CORES * profile["memory.hbm_gbs"])
    program = on_cores(bodies, every)
    assert all_cores_us(copying(program, data)) >= all_cores_us(program, ample) - ROUNDING_US - TURN_US


@searched
@given(kinds, st.integers(1, 3), st.data())
def test_no_launch_is_shorter_than_the_products_of_its_busiest_cube(
    bodies: Program, every: int, data: st.DataObject
) -> None:
    program = copying(on_cores(bodies, every), data)
    work = [[each.fetched() for each in body if each.kind == "matmul"] for body in program[:2]]
    assert all_cores_us(program) >= all_cores_us([*work, *[[]] * (CORES - 2)]) - ROUNDING_US


shared_places = st.sampled_from(["all", "lane", "pair", "core"])
sharing = st.lists(st.tuples(shared_places, counts, counts, st.integers(1, 8)), min_size=1, max_size=3)


def sharing_us(lanes: list[list[tuple[str, int, int, int]]], delays: tuple[int, int]) -> float:
    """Products of all cubes, whose left matrices are common to some cores; each lane begins after a delay."""

    def line(core: int, share: str, m: int, n: int, k: int) -> str:
        place = {"all": 0, "lane": 1 + core % 2, "pair": 100 + core // 2, "core": 200 + core}[share]
        return product(m, n, 512 * k, Y + (place << 28)).line(0)

    bodies = [
        [f"plain_code a={delays[core % 2]}", *(line(core, *each) for each in lanes[core % 2])] for core in range(CORES)
    ]
    return latency([f"launch_begin a={CORES // 2} b=2", *launch(bodies)[1:]])


@searched
@given(st.tuples(sharing, sharing), st.integers(0, 1), st.sampled_from([50, 500, 1500, 1900, 2500, 10_000, 40_000]))
@example(([("all", 256, 64, 8)], [("all", 256, 64, 8)]), 1, 2500)
@example(([("all", 64, 64, 1)], [("all", 64, 64, 1)]), 1, 1500)
@example(([("lane", 256, 64, 2)], [("pair", 128, 64, 8)]), 0, 2000)
def test_a_delay_of_one_lane_of_each_cube_makes_no_launch_shorter(
    lanes: tuple[Any, Any], lane: int, delay: int
) -> None:
    later = (delay, 0) if lane == 0 else (0, delay)
    assert sharing_us([*lanes], later) >= sharing_us([*lanes], (0, 0)) - ROUNDING_US


def test_products_on_other_cubes_make_a_long_one_no_shorter() -> None:
    """The long one takes tens of milliseconds, the others end long before it."""
    long, small = product(100_000, 16, 8192, X), product(128, 16, 1024, Y)
    beside = [[long], *([small] if core % 2 == 0 else [] for core in range(1, CORES))]
    assert all_cores_us(beside) >= all_cores_us([[long], *[[]] * (CORES - 1)]) > 20_000
