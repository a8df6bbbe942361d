"""The profile of a kernel as a table: what the pipes, the memory and the synchronisation cost, with units."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from typing import TypeAlias

from rich.table import Table

from kernel_gym.verdict import Profile

#: What is measured, its value with its unit, its share of the latency, and a remark.
Row: TypeAlias = tuple[str, str, str, str]

#: How the keys of a profile read; a key that is not listed is shown as it is.
LABELS = {
    "hbm_read": "read from HBM",
    "hbm_write": "written to HBM",
    "l2_read": "read from L2",
    "l2_write": "written to L2",
    "ub": "moved within local memory",
    "inputs": "input tensors",
    "outputs": "output tensors",
    "bursts_in": "bursts copied in",
    "bursts_out": "bursts copied out",
    "misaligned": "misaligned copies",
    "scalar_accesses": "scalar accesses",
    "cache_misses": "cache misses of the scalar unit",
    "shared_bytes": "shared memory a block",
    "stack_bytes": "stack a thread",
    "registers": "registers a thread",
    "threads_per_block": "threads a block",
    "resident_blocks": "blocks on a multiprocessor at a time",
    "occupancy_percent": "occupancy",
    "available_cores": "cores of the chip",
    "repeats": "repeats of vector instructions",
    "records": "simulated instructions",
    "memory_at_peak": "all tensors once at the memory's peak rate",
    "interval_low": "latency, lower end of the interval",
    "interval_high": "latency, upper end of the interval",
    "launch": "launching",
    "timed_calls": "timed calls",
}
UNITS = {"shared_bytes": "bytes", "stack_bytes": "bytes", "occupancy_percent": "%"}
#: Counts that belong to the memory; times that are no waits.
MEMORY = {"bursts_in", "bursts_out", "misaligned", "scalar_accesses", "cache_misses", "shared_bytes", "stack_bytes"}
MEASUREMENT = {"interval_low", "interval_high", "timed_calls"}


def profile_table(profile: Profile, latency: float) -> Table:
    """Return the table of a profile.

    Args:
        profile: The profile.
        latency: Latency of the kernel in microseconds, which times are shares of.
    """
    table = Table(box=None, title="profile", title_justify="left", header_style="dim")
    table.add_column(no_wrap=True)
    table.add_column(justify="right", no_wrap=True)
    table.add_column("of latency", justify="right", no_wrap=True)
    table.add_column(style="dim", no_wrap=True)
    for group, rows in groups(profile, latency).items():
        if rows:
            table.add_row(f"[bold]{group}[/]")
        for what, *cells in rows:
            table.add_row(f"  {what}", *cells)
    return table


def groups(profile: Profile, latency: float) -> dict[str, list[Row]]:
    """Return the rows of a profile by group: pipes, memory, synchronisation, work, measurement."""
    counts = {name: count for name, count in profile.counts.items() if name not in profile.pipes}
    return {
        "pipes": list(_pipes(profile, latency)),
        "memory": [*_bytes(profile, latency), *_counted(counts, MEMORY)],
        "synchronisation": [
            (_wait(name), f"{us:.3f} us", _share(us, latency), "")
            for name, us in profile.waits.items()
            if name not in MEASUREMENT
        ],
        "work": _counted(counts, counts.keys() - MEMORY - MEASUREMENT),
        "measurement": [
            *((LABELS[name], f"{us:.3f} us", "", "") for name, us in profile.waits.items() if name in MEASUREMENT),
            *_counted(counts, MEASUREMENT),
        ],
    }


def _pipes(profile: Profile, latency: float) -> Iterator[Row]:
    for name, us in profile.pipes.items():
        count = profile.counts.get(name)
        instructions = "" if count is None else f"{count:,} instructions"
        yield LABELS.get(name, f"{name} busy"), f"{us:.3f} us", _share(us, latency), instructions


def _bytes(profile: Profile, latency: float) -> Iterator[Row]:
    for name, count in profile.bytes.items():
        rate = f"{count / latency / 1e3:,.0f} GB/s" if count else ""
        yield LABELS.get(name, name), f"{count / 1e6:,.3f} MB", "", rate


def _counted(counts: Mapping[str, int], names: Set[str]) -> list[Row]:
    return [
        (LABELS.get(name, name), f"{count:,} {UNITS.get(name, '')}".strip(), "", "")
        for name, count in counts.items()
        if name in names
    ]


def _wait(name: str) -> str:
    """Return `V waits for MTE2` for `V<-MTE2`."""
    pipe, arrow, cause = name.partition("<-")
    if not arrow:
        return LABELS.get(name, name)
    return f"{pipe} waits for {'the other cores' if cause == 'sync' else cause}"


def _share(us: float, latency: float) -> str:
    return f"{100 * us / latency:.0f}%"
