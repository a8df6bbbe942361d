"""The trusted side survives whatever the ring holds."""

from __future__ import annotations

import pytest

from tests.support.executor_fuzz import fuzz


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(1, 4))])
def test_a_million_random_records_crash_nothing_under_sanitizers(seed: int) -> None:
    outcomes = fuzz(seed, 250_000, sanitizers=True)
    assert outcomes["accepted"] > 10_000


@pytest.mark.slow
def test_random_records_crash_nothing() -> None:
    outcomes = fuzz(7, 25_000)
    assert outcomes["accepted"] > 1_000
    assert len(outcomes) > 25, "the fuzzer reaches most rules"
    assert outcomes["PROTOCOL"] > 0
    assert outcomes["WORK_LIMIT"] > 0
