"""No launch is shorter than its transfers and computations take if the cores that transfer share HBM like a fluid."""

from __future__ import annotations

from hypothesis import example, given, settings
from hypothesis import strategies as st
from timeline_driver import ALL, FIX, KB, MTE3, X, Z, copy_in, copy_out, latency, launch

from kernel_gym.hardware.ascend_sim import chip

PROFILE = chip.load("910B1")
READ, WRITE, FIX_WRITE, COMPUTE = "read", "write", "fix", "compute"
#: Bytes in a microsecond: of HBM, of the ports of a core, and HBM's time for a written byte in that of a read one.
HBM, READ_PORT, WRITE_PORT = (
    PROFILE[f"memory.{name}"] * 1000 for name in ("hbm_gbs", "hbm_core_gbs", "write_core_gbs")
)
WRITE_FACTOR = PROFILE["memory.hbm_write"]
PORTS = {
    READ: (READ_PORT, 1.0),
    WRITE: (WRITE_PORT, WRITE_FACTOR),
    FIX_WRITE: (PROFILE["cube.fix_gbs"] * 1000, WRITE_FACTOR),
}
CORES, CUBES = 48, 24

#: What a core does, one after another: bytes that it reads or writes past L2, and microseconds for which it computes.
Program = list[tuple[str, int]]
transfers = st.tuples(st.sampled_from([READ, WRITE]), st.sampled_from([32, 64, 96, 128, 192]).map(lambda n: n * KB))
parts = st.one_of(transfers, transfers, st.tuples(st.just(COMPUTE), st.sampled_from([1, 4, 16])))
programs = st.lists(parts, min_size=1, max_size=4)
fixes = st.tuples(st.just(FIX_WRITE), st.sampled_from([32, 128, 256, 512]).map(lambda n: n * KB))
cube_programs = st.lists(
    st.one_of(fixes, fixes, st.tuples(st.just(COMPUTE), st.sampled_from([1, 4, 16]))), min_size=1, max_size=4
)


def fluid_us(cores: list[Program]) -> float:
    """Return when the last core ends."""
    steps = [[[kind, float(amount)] for kind, amount in program] for program in cores]
    now = 0.0
    while any(steps):
        current = [core[0] for core in steps if core]
        rates = [1.0] * len(current)  # a microsecond of computing, or bytes of a transfer, in a microsecond
        left, waiting = HBM, [i for i, (kind, _) in enumerate(current) if kind != COMPUTE]
        # Those whose ports take the least are served first, and leave what they do not take.
        for place, i in enumerate(sorted(waiting, key=lambda i: PORTS[current[i][0]][0] * PORTS[current[i][0]][1])):
            port, factor = PORTS[current[i][0]]
            rates[i] = min(port, left / (len(waiting) - place) / factor)
            left -= rates[i] * factor
        passed = min(step[1] / rate for step, rate in zip(current, rates, strict=True))
        for step, rate in zip(current, rates, strict=True):
            step[1] -= passed * rate
        steps = [core[1:] if core and core[0][1] <= 1e-6 else core for core in steps]
        now += passed
    return now


def records(number: int, program: Program) -> list[str]:
    lines, place = [], number << 25
    for kind, amount in program:
        if kind == COMPUTE:
            lines.append(f"plain_code a={int(amount * PROFILE['clock_mhz'])}")
        else:
            line = copy_in(X + place, amount) if kind == READ else copy_out(Z + place, amount, bypass=1)
            lines.append(line.replace(f"pipe={MTE3}", f"pipe={FIX}") if kind == FIX_WRITE else line)
            place += amount
        lines.append(f"barrier pipe={ALL}")
    return lines


@settings(max_examples=60)
@given(programs, programs, st.integers(1, CORES - 1))
@example([(WRITE, 64 * KB)], [(WRITE, 192 * KB)], 38)
@example([(READ, 192 * KB)], [(READ, 192 * KB), (COMPUTE, 12), (READ, 192 * KB)], 24)
@example([(WRITE, 32 * KB), (WRITE, 128 * KB), (COMPUTE, 16), (WRITE, 192 * KB)], [(WRITE, 192 * KB)], 30)
def test_no_launch_is_shorter_than_a_fluid(first: Program, second: Program, several: int) -> None:
    cores = [first if number < several else second for number in range(CORES)]
    empty = latency(launch([[]] * CORES))
    timed = latency(launch(records(number, program) for number, program in enumerate(cores))) - empty
    assert timed >= 0.999 * fluid_us(cores)


@settings(max_examples=30)
@given(cube_programs, cube_programs, st.integers(1, CUBES - 1))
@example([(FIX_WRITE, 128 * KB)], [(FIX_WRITE, 128 * KB), (COMPUTE, 16), (FIX_WRITE, 128 * KB)], 7)
def test_no_launch_of_cubes_is_shorter_than_a_fluid(first: Program, second: Program, several: int) -> None:
    cores = [first if number < several else second for number in range(CUBES)]
    empty = latency(launch([[]] * CUBES, 1))
    timed = latency(launch((records(number, program) for number, program in enumerate(cores)), 1)) - empty
    assert timed >= 0.999 * fluid_us(cores)
