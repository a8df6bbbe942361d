"""The latency gate of devices with a real clock: every timed call computes, and its outputs are compared.

The kernel is called many times at the timing sizes, on several value sets in an unpredictable order, and each call
finds nothing left of earlier ones. Every set has stress values in some of its rows, unless an output depends on several
rows, where stress values may hide others: then the timed sets have normal values alone, and another call compares a set
with stress values. Where exponentials overflow on neither, one more call compares a set on which they do. The outputs
of the first call on every set are compared in full; later calls must give the same bits. A kernel that is faster on
values that it has met before keeps something between calls. Clocks are noisy, so it is refused only if that repeats on
other new values.

A kernel may also wait with what it keeps until all values are known, or hold answers to the values that all kernels of
a task share. So no latency is believed that is below every call on new values, or below the calls on one of the sets:
the kernel is timed again on new values of its own, and then takes at least as long as the fastest call on new ones.
"""

from __future__ import annotations

from itertools import chain
from statistics import median

from kernel_gym.hardware.device import Build, Clocked, Device, Timing
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Incorrect, Profile
from kernel_gym.verifier.correctness import POISON, Checked, check_one, failed, refuse
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.latency_simulated import Outcome, Timed, cheated
from kernel_gym.verifier.reference import ValueSet, rows_are_independent
from kernel_gym.verifier.value_sets import References
from kernel_gym.verifier.values import Kind

#: Number of value sets at the timing sizes, and number above this many bytes, where the reference takes seconds.
SETS, FEWER, LARGE_BYTES = 3, 2, 16 << 20
#: A kernel may be this much faster on values that it has met before, as share and in microseconds (clocks are noisy).
FASTER, FASTER_US = 0.7, 3.0
#: The share of calls on new values that must be slower than calls on known ones nearby.
MOSTLY = 0.75
#: A latency may be this much below the fastest call on new values and the calls on the slowest set, as share and in
#: microseconds.
BELOW, BELOW_US = 0.9, 1.0
#: How often a suspicion is tested on new values, on how many value sets, and on how many of large tensors.
ROUNDS, MANY, MANY_LARGE = 2, 9, 5
#: Why outputs change between calls.
UNSTABLE = (
    "they depend on memory that the kernel never wrote, or on the order of its threads (atomic additions of floats)"
)
#: A latency may be this much below the floor: the resolution of the clock.
CLOCK_STEP_US = 0.5


def measure(device: Device, build: Build, task: Task, checked: Checked, sets: KernelValues) -> Outcome:
    """Run the latency gate on a device with a clock."""
    assert isinstance(device, Clocked)
    signature = task.instance(task.timing).signature
    large = signature.nbytes > LARGE_BYTES
    kind: Kind = "mixed" if rows_are_independent(task) else "ordinary"
    drawn = [sets.timing()]
    if kind == "ordinary":
        drawn.append(sets.references.draw(task, task.timing, kind, "ordinary", build.kernel))
    own, further = drawn[-1], sets.references.draw_further(task, build.kernel, drawn)
    for values in chain(drawn[:-1], further):
        compared = check_one(device, build, task, values)
        if isinstance(compared, Incorrect):
            return compared
    others = sets.references.shared(task, task.timing, kind, "timed", build.kernel, (FEWER if large else SETS) - 1)
    timing = _timing(device, build, task, [own, *others])
    if not isinstance(timing, Timing):
        return timing
    latency = timing.runs[0].latency_us or 0.0
    if is_faster_when_known(timing) or is_below_new_values(timing):
        again = _timed_again(device, build, task, sets.references, kind, MANY_LARGE if large else MANY)
        if not isinstance(again, Timing):
            return again
        timing, latency = again, bounded_us(again)
    run, floor = timing.runs[0], device.floor_us(signature)
    if latency + CLOCK_STEP_US < floor:
        return cheated("below-floor", f"{latency:.3g} us, at least {floor:.3g} us")
    return Timed(latency, run.profile or Profile(), (_note(timing, latency),))


def _timing(device: Clocked, build: Build, task: Task, sets: list[ValueSet]) -> Timing | Incorrect:
    """Call the kernel many times on these sets; return the times, or the verdict on wrong outputs."""
    signature = task.instance(task.timing).signature
    timing = device.time(build, signature, [values.values for values in sets], POISON)
    if timing.runs[0].status != "ok":
        return failed(timing.runs[0], "at the timing sizes", "timing")
    return _wrong(timing, task, sets) or _unstable(timing) or timing


def _timed_again(
    device: Clocked, build: Build, task: Task, references: References, kind: Kind, count: int
) -> Timing | Cheated | Incorrect:
    """Time a suspicious kernel again on new values of its own; refuse it if it is faster on known values each time."""
    words = ""
    for number in range(ROUNDS):
        slots = (f"again {number} {index}" for index in range(count))
        sets = [references.draw(task, task.timing, kind, slot, build.kernel) for slot in slots]
        timing = _timing(device, build, task, sets)
        if not isinstance(timing, Timing):
            return timing
        if not is_faster_when_known(timing):
            return timing
        words = f"{median(timing.repeats):.4g} us, {median(timing.firsts):.4g} us on new values"
    return cheated("faster-when-known", words)


def is_faster_when_known(timing: Timing) -> bool:
    """Return True if most calls on new values are slower than the calls on known values around them."""
    if not timing.firsts or not timing.repeats:
        return False
    nearby = timing.nearby or (median(timing.repeats),) * len(timing.firsts)
    pairs = zip(timing.firsts, nearby, strict=True)
    return sum(known < FASTER * new - FASTER_US for new, known in pairs) >= MOSTLY * len(timing.firsts)


def is_below_new_values(timing: Timing) -> bool:
    """Return True if the latency is below all calls on new values, or below the calls on one of the sets."""
    slowest = max(min(timing.firsts, default=0.0), max(timing.medians, default=0.0))
    return (timing.runs[0].latency_us or 0.0) < BELOW * slowest - BELOW_US


def bounded_us(timing: Timing) -> float:
    """Return the latency, which is at least that of the fastest call on new values."""
    return max(timing.runs[0].latency_us or 0.0, min(timing.firsts, default=0.0))


def _wrong(timing: Timing, task: Task, sets: list[ValueSet]) -> Incorrect | None:
    verdicts = (refuse(run, task, values) for run, values in zip(timing.runs, sets, strict=True))
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _unstable(timing: Timing) -> Incorrect | None:
    if not timing.unstable:
        return None
    words = f"The outputs change between calls on the same inputs at the timing sizes: {UNSTABLE}"
    return Incorrect(words, cause="mismatch", rule="NONDETERMINISTIC", case="timing")


def _note(timing: Timing, latency: float) -> str:
    low, high = timing.interval
    calls = len(timing.firsts) + len(timing.repeats)
    note = f"median of {calls} timed calls, each compared; 95% interval {low:.3f} to {high:.3f} us"
    return note if latency <= high else f"{note}; the fastest call on new values counts"
