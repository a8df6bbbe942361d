"""Turns the timing pass's report into a Profile: the bottleneck and a diagnosis in words.

The diagnosis names the cost and a remedy. It depends on the report alone, so the same run always gets the same
diagnosis.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from kernel_gym.verdict import Profile

#: The bottleneck that each pipe is reported as.
PIPES = {
    "MTE2": "mte2",
    "MTE3": "mte3",
    "V": "vector",
    "S": "scalar",
    "M": "cube",
    "MTE1": "cube",
    "FIX": "cube",
}
#: Starting a copy costs about as much as moving this many bytes.
COPY_START = 2 * 1024
#: Reading from inside a sector costs about one sector more.
SECTOR = 512
#: Shares of the time below this are not reported (for launching: shares of the latency).
WORTH_NAMING, LAUNCH_WORTH_NAMING = 0.15, 0.25
#: Vector instructions with fewer repeats spend more time on starting than on computing.
FEW_REPEATS = 16


@dataclass(frozen=True)
class Reading:
    """The report with the sums that the diagnosis needs."""

    timing: Mapping[str, Any]

    @property
    def latency(self) -> float:
        return float(self.timing["latency_us"])

    @property
    def core_time(self) -> float:
        """Mean working time of the cores that ran blocks."""
        return float(self.timing["mean_us"])

    @property
    def launching(self) -> float:
        """Part of the latency that launches take."""
        return float(self.timing["launch_us"]) / self.latency

    def count(self, name: str) -> int:
        return int(self.timing["counts"].get(name, 0))

    def moved(self, *paths: str) -> int:
        return sum(int(self.timing["bytes"].get(path, 0)) for path in paths)

    def busy(self, pipe: str) -> float:
        """Return the part of the cores' time in which a pipe worked, 0 to 1."""
        time = float(self.timing["pipes"].get(pipe, 0.0))
        return min(1.0, time / self.core_time) if self.core_time else 0.0

    def waited(self, wait: str) -> float:
        """Return the part of the cores' time spent in one kind of wait."""
        return float(self.timing["waits"].get(wait, 0.0)) / self.core_time if self.core_time else 0.0

    def line(self, pipe: str) -> str:
        """Return ` (most of it in line 41)`, naming the line that kept the pipe busiest, or an empty text."""
        lines = [entry["line"] for entry in self.timing["lines"] if entry["pipe"] == pipe]
        return f" (most of it in line {lines[0]})" if lines else ""


def diagnose(timing: Mapping[str, Any]) -> Profile:
    """Return the Profile of a run from the `timing` of the device's answer; `waits` includes the time of launching."""
    reading = Reading(timing)
    name = bottleneck(reading)
    return Profile(
        pipes={key: float(value) for key, value in timing["pipes"].items()},
        bytes={key: int(value) for key, value in timing["bytes"].items()},
        waits={"launch": float(timing["launch_us"]), **{key: float(value) for key, value in timing["waits"].items()}},
        counts={key: int(value) for key, value in timing["counts"].items()},
        bottleneck=name,
        diagnosis=_WORDS[name](reading) if name else "",
    )


def bottleneck(reading: Reading) -> str:
    """Return the bottleneck; wasted cores take precedence over the work of a single core."""
    if reading.latency <= 0:
        return ""
    if reading.launching > 0.4:
        return "launch"
    if _by_elements(reading):
        return "scalar"
    if _idle_cores(reading) > 0.4:
        return "balance"
    if reading.waited("S<-sync") > 0.3:
        return "sync"
    busiest = max(PIPES, key=reading.busy)
    return PIPES[busiest]


def _by_elements(reading: Reading) -> bool:
    """Return whether cores spend their time on single elements; then vector instructions gain more than more cores."""
    accesses = reading.count("scalar_accesses")
    return reading.busy("S") > 0.7 and accesses > 0.05 * max(1, reading.count("S"))


def _idle_cores(reading: Reading) -> float:
    """Return the part of the chip's core time that an even split over all cores would save, less its launch cost."""
    longest, available = float(reading.timing["longest_us"]), max(1, reading.count("available_cores"))
    used = reading.count("cores")
    if not longest or not used:
        return 0.0
    per_core = float(reading.timing["launch_us"]) / max(1, used * reading.count("launches"))
    even = reading.core_time * used / available + per_core * (available - used)
    return max(0.0, 1.0 - even / longest)


def _launch(reading: Reading) -> str:
    launches, cores = reading.count("launches"), reading.count("cores")
    cure = "one launch instead would save most of it" if launches > 1 else f"fewer than {cores} cores start faster"
    if cores == 1 and launches == 1:
        cure = "at this size little else is left"
    share, number = _percent(reading.launching), _plural(launches, "launch", "launches")
    return f"Launching takes {share} of the time ({number}): {cure}."


def _balance(reading: Reading) -> str:
    used, available = reading.count("cores"), reading.count("available_cores")
    if used < 0.6 * available:
        return f"Only {used} of {available} cores work: split the data over more blocks."
    longest = float(reading.timing["longest_us"])
    waves = reading.count("waves")
    rest = f" in {waves} waves of blocks" if waves > reading.count("launches") else ""
    return (
        f"The slowest core works {longest:.1f} us, the average {reading.core_time:.1f} us{rest}: "
        "give each block an equal part of the data."
    )


def _sync(reading: Reading) -> str:
    share = _percent(reading.waited("S<-sync"))
    return f"Cores wait for one another {share} of the time at SyncAll: fewer meetings, or even work before each."


def _copies(reading: Reading, pipe: str, bursts: str, moved: int) -> str:
    instructions = max(1, reading.count(pipe))
    piece, burst = moved / instructions, moved / max(1, reading.count(bursts))
    head = f"{pipe} is busy {_percent(reading.busy(pipe))} of the time"
    where = reading.line(pipe)
    if reading.busy(pipe) < 0.65 or (reading.busy(pipe) < 0.9 and reading.waited(f"{pipe}<-V") > 0.12):
        return _in_turn(reading, pipe)
    starting, crossing = _waste(reading, instructions, moved)
    if max(starting, crossing) > WORTH_NAMING and crossing > starting:
        return f"{head}, much of it because rows start off a 512-byte boundary{where}: align or pad them."
    if burst < SECTOR <= piece:
        return f"{head} moving bursts of {_size(burst)}{where}: longer contiguous rows cost less each."
    if starting > WORTH_NAMING:
        return f"{head} moving pieces of {_size(piece)}{where}: larger tiles would spend less on starting copies."
    rate = moved / reading.latency / 1e6
    return f"{head} moving {_size(moved)} at {rate:.2f} TB/s{where}: {_what_is_left(reading)}."


def _waste(reading: Reading, instructions: int, moved: int) -> tuple[float, float]:
    """Return the parts of the copies' time spent on starting them and on reading from inside sectors."""
    started, crossed = instructions * COPY_START, reading.count("misaligned") * SECTOR
    return started / max(1, started + moved), crossed / max(1, crossed + moved)


def _what_is_left(reading: Reading) -> str:
    """Return advice for copies that cannot be made faster."""
    cores = reading.count("cores")
    if reading.launching > LAUNCH_WORTH_NAMING and cores > 1:
        return (
            f"moving less is left, and launching {cores} cores, which takes {_percent(reading.launching)}: "
            "fewer may reach the same rate and start sooner"
        )
    return "moving less (fusing, reusing what is in UB) is left"


def _in_turn(reading: Reading, pipe: str) -> str:
    others = sorted((other for other in PIPES if other != pipe and reading.busy(other) > 0.1), key=reading.busy)
    if not others:
        return f"{pipe} is busy {_percent(reading.busy(pipe))} of the time and the core waits for each copy to arrive."
    named = " and ".join(f"{other} {_percent(reading.busy(other))}" for other in reversed(others[-2:]))
    return (
        f"Pipes work in turn ({pipe} busy {_percent(reading.busy(pipe))}, {named}): "
        "two buffers in each queue would let copies and computing overlap."
    )


def _mte2(reading: Reading) -> str:
    if float(reading.timing["contention_us"]) > 0.3 * reading.core_time:
        return "All cores read the same data at once: let each core start at another place, or keep it in UB."
    return _copies(reading, "MTE2", "bursts_in", reading.moved("hbm_read", "l2_read"))


def _mte3(reading: Reading) -> str:
    return _copies(reading, "MTE3", "bursts_out", reading.moved("l2_write"))


def _vector(reading: Reading) -> str:
    head = f"The vector unit is busy {_percent(reading.busy('V'))} of the time{reading.line('V')}"
    instructions = max(1, reading.count("V"))
    conflicts = float(reading.timing["conflict_us"]) / max(1e-9, float(reading.timing["pipes"].get("V", 0.0)))
    repeats = reading.count("repeats") / instructions
    if repeats < FEW_REPEATS:
        return f"{head} with {repeats:.1f} repeats an instruction: larger tiles would spend less on starting."
    if conflicts > 0.25:
        return (
            f"{head}, {_percent(conflicts)} of that on bank conflicts: "
            "place the two sources 256 bytes apart modulo 512, in different bank groups."
        )
    if reading.busy("V") < 0.65:
        return _in_turn(reading, "V")
    return f"{head}: fewer or cheaper instructions for each element are left."


def _scalar(reading: Reading) -> str:
    head = f"The scalar unit is busy {_percent(reading.busy('S'))} of the time{reading.line('S')}"
    accesses = reading.count("scalar_accesses")
    if accesses > 0.05 * max(1, reading.count("S")):
        misses = reading.count("cache_misses")
        missed = f", {misses} of them cache misses" if misses > 0.05 * accesses else ""
        return f"{head} with {accesses} element accesses{missed}: use vector instructions on whole tiles."
    return f"{head} with plain code and issuing: larger tiles mean fewer turns of the loop."


def _cube(reading: Reading) -> str:
    busy = {pipe: reading.busy(pipe) for pipe in ("M", "MTE1", "MTE2", "FIX")}
    slowest = max(busy, key=lambda pipe: busy[pipe])
    if slowest == "M":
        return f"The cube is busy {_percent(busy['M'])} of the time: this is close to what the product costs."
    return f"Matmul is held up by {slowest} ({_percent(busy[slowest])} of the time): larger base blocks reuse more."


_WORDS: dict[str, Callable[[Reading], str]] = {
    "launch": _launch,
    "balance": _balance,
    "sync": _sync,
    "mte2": _mte2,
    "mte3": _mte3,
    "vector": _vector,
    "scalar": _scalar,
    "cube": _cube,
}


def _percent(share: float) -> str:
    return f"{100 * share:.0f}%"


def _plural(count: int, singular: str, plural: str) -> str:
    return f"{count} {singular if count == 1 else plural}"


def _size(size: float) -> str:
    for unit in ("bytes", "KB", "MB"):
        if size < 1024:
            return f"{size:.0f} {unit}" if unit == "bytes" else f"{size:.1f} {unit}"
        size /= 1024
    return f"{size:.1f} GB"
