"""The scaling figures: the calculation of the driver's share, and small runs of the measurements."""

from __future__ import annotations

import pytest

from kernel_gym.benchmarks import cluster_speed, large_memory

FIGURES = {
    "attempt_cpu_ms_value": 8.0,
    "cluster_driver_ms_per_verdict": 2.0,
    "cluster_verdicts_per_second_1": 2.0,
}


def test_the_driver_takes_half_of_the_time_at_the_calculated_number_of_devices() -> None:
    devices = cluster_speed.driver_figures(FIGURES)["driver_devices_at_half"]
    assert devices == pytest.approx(50)
    half = cluster_speed.driver_figures(FIGURES, tasks=700, devices=50)
    assert half["driver_share_700_tasks_50_devices"] == pytest.approx(0.5)
    assert half["driver_iteration_s_700_tasks_50_devices"] == pytest.approx(14)


def test_more_devices_leave_the_drivers_part_of_an_iteration() -> None:
    shares = [
        cluster_speed.driver_figures(FIGURES, 1000, devices)[f"driver_share_1000_tasks_{devices}_devices"]
        for devices in (1, 64, 1000)
    ]
    assert shares == sorted(shares)
    assert shares == pytest.approx([10 / 510, 10 / 17.8125, 10 / 10.5])


@pytest.mark.slow
def test_a_large_memory_is_measured() -> None:
    """Run by `make test-slow`."""
    figures = large_memory.benchmark(size=300, repeats=2)
    assert {name.removesuffix("_of_300") for name in figures} == {
        "large_memory_add_us",
        "large_memory_bytes_per_item",
        "large_memory_open_s",
        "large_memory_first_search_s",
        "large_memory_top64_ms",
        "large_memory_top64_of_a_task_ms",
        "large_memory_resident_mb",
    }
    assert figures.pop("large_memory_resident_mb_of_300") >= 0  # the process needed more to start than for 300 items
    assert all(value > 0 for value in figures.values())


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_cluster_is_measured() -> None:
    """Run by `make test-slow`."""
    pytest.importorskip("ray", reason="needs Ray")
    figures = cluster_speed.benchmark(workers=(1,), verdicts=2, items=100)
    assert figures["cluster_verdicts_per_second_1"] > 0
    assert figures["cluster_driver_share_1"] > 0
    assert {name for name in figures if name.startswith("shared_bank")} == {
        f"shared_bank_{call}_of_100_ms" for call in ("top64", "add", "record_8")
    }
