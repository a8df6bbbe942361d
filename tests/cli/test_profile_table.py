"""The table of `verify --profile`: groups, units, shares of the latency."""

from __future__ import annotations

from rich.console import Console

from kernel_gym.cli.profile_table import groups, profile_table
from kernel_gym.verdict import Profile

SIMULATED = Profile(
    pipes={"V": 25.0, "MTE2": 50.0},
    bytes={"hbm_read": 33_554_432, "hbm_write": 0},
    waits={"launch": 10.0, "V<-MTE2": 40.0, "S<-sync": 5.0},
    counts={"V": 1234, "MTE2": 820, "launches": 1, "cores": 48, "misaligned": 7},
)
CLOCKED = Profile(
    pipes={"memory_at_peak": 2.0},
    bytes={"inputs": 1000},
    waits={"interval_low": 9.9, "interval_high": 10.1},
    counts={"launches": 2, "shared_bytes": 4096, "occupancy_percent": 50, "timed_calls": 200, "novel": 3},
)


def test_pipes_memory_and_synchronisation_have_units_and_shares() -> None:
    table = groups(SIMULATED, 100.0)
    assert table["pipes"] == [
        ("V busy", "25.000 us", "25%", "1,234 instructions"),
        ("MTE2 busy", "50.000 us", "50%", "820 instructions"),
    ]
    assert table["memory"] == [
        ("read from HBM", "33.554 MB", "", "336 GB/s"),
        ("written to HBM", "0.000 MB", "", ""),
        ("misaligned copies", "7", "", ""),
    ]
    assert table["synchronisation"] == [
        ("launching", "10.000 us", "10%", ""),
        ("V waits for MTE2", "40.000 us", "40%", ""),
        ("S waits for the other cores", "5.000 us", "5%", ""),
    ]
    assert table["work"] == [("launches", "1", "", ""), ("cores", "48", "", "")]
    assert table["measurement"] == []


def test_a_measured_interval_is_not_listed_as_a_wait() -> None:
    table = groups(CLOCKED, 10.0)
    assert table["synchronisation"] == []
    assert ("latency, lower end of the interval", "9.900 us", "", "") in table["measurement"]
    assert ("timed calls", "200", "", "") in table["measurement"]
    assert ("shared memory a block", "4,096 bytes", "", "") in table["memory"]
    assert ("occupancy", "50 %", "", "") in table["work"]
    assert ("novel", "3", "", "") in table["work"]


def test_groups_without_rows_are_left_out() -> None:
    console = Console(width=100, record=True)
    console.print(profile_table(SIMULATED, 100.0))
    text = console.export_text()
    assert "synchronisation" in text
    assert "measurement" not in text
    assert all(len(line) <= 80 for line in map(str.rstrip, text.splitlines()))
