"""The latency gate of devices with a real clock: every timed call computes, and its outputs are compared.

The kernel is called many times at the timing sizes, on several value sets in an unpredictable order, and each call
finds nothing left of earlier ones. Every set has stress values in some of its rows. The outputs of the first call on
every set are compared in full; later calls must give the same bits. A kernel that is faster on values that it has met
before keeps something between calls.
"""

from __future__ import annotations

from statistics import median

from kernel_gym.hardware.device import Build, Clocked, Device, Run, Timing
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Incorrect, Profile
from kernel_gym.verifier.correctness import POISON, Checked, failed, refuse
from kernel_gym.verifier.latency_simulated import Outcome, Timed, cheated
from kernel_gym.verifier.reference import References, ValueSet

#: Number of value sets at the timing sizes, and number above this many bytes, where the reference takes seconds.
SETS, FEWER, LARGE_BYTES = 3, 2, 16 << 20
#: A kernel may be this much faster on values that it has met before, as share and in microseconds (clocks are noisy).
FASTER, FASTER_US = 0.7, 3.0
#: A latency may be this much below the floor: the resolution of the clock.
CLOCK_STEP_US = 0.5


def measure(device: Device, build: Build, task: Task, checked: Checked, references: References) -> Outcome:
    """Run the latency gate on a device with a clock."""
    assert isinstance(device, Clocked)
    signature = task.instance(task.timing).signature
    count = SETS if signature.nbytes <= LARGE_BYTES else FEWER
    sets = references.several(task, task.timing, "mixed", "timed", build.kernel, count)
    timing = device.time(build, signature, [values.values for values in sets], POISON)
    if timing.runs[0].status != "ok":
        return failed(timing.runs[0], "at the timing sizes", "timing")
    refused = _wrong(timing, task, sets) or _suspicious(timing)
    if refused:
        return refused
    run = timing.runs[0]
    latency, floor = run.latency_us or 0.0, device.floor_us(signature)
    if latency + CLOCK_STEP_US < floor:
        return cheated("below-floor", f"{latency:.3g} us, at least {floor:.3g} us")
    return Timed(latency, run.profile or Profile(), (_note(timing, run),))


def _wrong(timing: Timing, task: Task, sets: list[ValueSet]) -> Incorrect | None:
    verdicts = (refuse(run, task, values) for run, values in zip(timing.runs, sets, strict=True))
    return next((verdict for verdict in verdicts if verdict is not None), None)


def _suspicious(timing: Timing) -> Cheated | Incorrect | None:
    if timing.unstable:
        words = (
            "The outputs change between calls on the same inputs at the timing sizes: they depend on memory that the "
            "kernel never wrote, or on the order of its threads (atomic additions of floats)"
        )
        return Incorrect(words, cause="mismatch", rule="NONDETERMINISTIC", case="timing")
    if timing.firsts and timing.repeats:
        first, again = min(timing.firsts), median(timing.repeats)
        if again < FASTER * first - FASTER_US:
            return cheated("faster-when-known", f"{again:.4g} us, {first:.4g} us on new values")
    return None


def _note(timing: Timing, run: Run) -> str:
    low, high = timing.interval
    calls = len(timing.firsts) + len(timing.repeats)
    return f"median of {calls} timed calls, each compared; 95% interval {low:.3f} to {high:.3f} us"
