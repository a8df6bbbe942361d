"""Profiles a kernel, in figures and in words, from the compiler's figures and the measured time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

from kernel_gym.hardware.host.latency_statistics import Measured
from kernel_gym.tasks.specs import Signature
from kernel_gym.verdict import Profile

#: A kernel that moves its tensors at this share of the memory's rate is memory-bound.
NEAR_PEAK = 0.6
#: Below these figures the GPU has too little work to hide latencies.
FEW_WARPS, LOW_OCCUPANCY = 1.0, 0.25
#: The minimum cost of a launch.
LAUNCH_US = 2.0


def diagnose(
    timing: Measured, kernels: Sequence[Mapping[str, Any]], facts: Mapping[str, Any], signature: Signature
) -> Profile:
    """Return the profile of a plan of launches."""
    read = sum(spec.nbytes for spec in signature.inputs)
    written = sum(spec.nbytes for spec in signature.outputs)
    at_peak = (read + written) / (peak_gbs(facts) * 1e3)
    counts = _counts(kernels, facts) | {"timed_calls": timing.samples}
    bottleneck, words = _bottleneck(timing.latency_us, at_peak, counts, facts)
    return Profile(
        pipes={"memory_at_peak": at_peak},
        bytes={"inputs": read, "outputs": written},
        waits={"interval_low": timing.low_us, "interval_high": timing.high_us},
        counts=counts,
        bottleneck=bottleneck,
        diagnosis=words,
    )


def peak_gbs(facts: Mapping[str, Any]) -> float:
    """Return the highest rate of the memory in GB/s, by its clock and width (two transfers a cycle)."""
    return float(2.0 * facts["memory_clock_khz"] * facts["bus_bits"] / 8 / 1e6)


def _counts(kernels: Sequence[Mapping[str, Any]], facts: Mapping[str, Any]) -> dict[str, int]:
    """Return figures of the launch with the most threads, and sums over all."""
    if not kernels:
        return {"launches": 0}
    main = max(kernels, key=lambda launch: prod(launch["grid"]) * prod(launch["block"]))
    threads = prod(main["block"])
    return {
        "launches": len(kernels),
        "blocks": prod(main["grid"]),
        "threads_per_block": threads,
        "registers": main["registers"],
        "shared_bytes": main["shared"] + main["dynamic"],
        "stack_bytes": main["local"],
        "resident_blocks": main["resident"],
        "occupancy_percent": round(100 * main["resident"] * threads / facts["threads"]),
    }


def _bottleneck(latency: float, at_peak: float, counts: Mapping[str, int], facts: Mapping[str, Any]) -> tuple[str, str]:
    launches, share = counts["launches"], at_peak / latency if latency else 0.0
    figures = f"{100 * share:.0f}% of the memory's peak rate"
    if not launches:
        return "launch", "nothing is launched"
    if share >= NEAR_PEAK:
        return "memory", f"bound by memory: {figures}; only fewer bytes would be faster"
    if latency < 2 * LAUNCH_US * launches:
        return "launch", f"bound by {launches} launches of about {LAUNCH_US:.0f} us each: fuse them or do more in each"
    waves = counts["blocks"] / max(1, counts["resident_blocks"] * facts["multiprocessors"])
    if counts["blocks"] < facts["multiprocessors"]:
        return "parallelism", (
            f"{counts['blocks']} blocks leave most of {facts['multiprocessors']} multiprocessors idle: "
            f"split the work further ({figures})"
        )
    if counts["stack_bytes"] > 0 and counts["registers"] >= 128:
        return (
            "registers",
            f"{counts['registers']} registers and {counts['stack_bytes']} bytes of stack a thread: spills",
        )
    if counts["occupancy_percent"] < 100 * LOW_OCCUPANCY:
        return "occupancy", (
            f"{counts['occupancy_percent']}% occupancy ({counts['registers']} registers a thread, "
            f"{counts['shared_bytes']} bytes of shared memory a block) hides few waits ({figures})"
        )
    if 1.0 < waves < 2.0:
        return "tail", f"{waves:.1f} waves of blocks: the last one leaves the GPU half empty ({figures})"
    return "compute", (
        f"neither memory ({figures}) nor launches bound it: too many instructions or accesses a byte, or waits "
        "for each other"
    )
