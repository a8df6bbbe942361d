"""The latency gate of devices with a clock: noise refuses no honest kernel, and a kernel that remembers is refused."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from itertools import islice
from typing import Any, cast

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_gym import suites
from kernel_gym.hardware.device import Array, Build, Device, Run, Timing
from kernel_gym.hardware.host import calls as call_sequence
from kernel_gym.hardware.host.calls import SPREAD, CallSequence, Layout, Outcome, Sample, set_order
from kernel_gym.hardware.host.latency_statistics import measured, novelty, set_medians
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Signature
from kernel_gym.verdict import Cheated, Incorrect
from kernel_gym.verifier import latency_clocked, reference_policy
from kernel_gym.verifier.correctness import Checked
from kernel_gym.verifier.expected import Expected
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.latency_simulated import Timed
from kernel_gym.verifier.reference import ValueSet
from kernel_gym.verifier.value_sets import References

TASK = suites.find_task("level1/relu")
BUILD = Build(Kernel("", "cuda"))
CALLS = 30
#: Factor of a call's time by its number since the device was made, and whether its values are new to the kernel.
Noise = Callable[[int, random.Random], float]


class StubCalls(CallSequence):
    """Calls whose times are made up; the order of the sets is that of real devices."""

    def __init__(self, device: StubClock, sets: Sequence[tuple[Array, ...]], seed: int) -> None:
        super().__init__({"sets": len(sets), "timed": True, "seed": seed}, Layout.of([4]), Layout.of([4]), 0, 0)
        self.device, self.sets = device, sets

    def call(self, index: int, order: random.Random) -> float:
        return self.device.microseconds(float(self.sets[index][0][0]))

    def check(self, index: int, first: bool, outcome: Outcome) -> None:
        pass

    def digest(self) -> object:
        return 0

    def keep(self, index: int) -> None:
        pass

    def is_certain(self, samples: Sequence[Sample], sets: int, seconds: float) -> bool:
        return len(samples) >= CALLS


class StubClock:
    """A device with a clock: `cost` is the time on new values and on known ones, `noise` multiplies it."""

    def __init__(self, cost: tuple[float, float], noise: Noise, seed: int) -> None:
        self.cost, self.noise = cost, noise
        self.rng = random.Random(seed)
        self.met = set[float]()
        self.calls = 0
        self.rounds = 0

    def microseconds(self, value: float) -> float:
        new, known = self.cost
        base = known if value in self.met else new
        self.met.add(value)
        self.calls += 1
        return base * self.noise(self.calls, self.rng)

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        self.rounds += 1
        outcome = StubCalls(self, sets, self.rng.getrandbits(32)).measure()
        latency = measured([sample.microseconds for sample in outcome.samples])
        samples = [asdict(sample) for sample in outcome.samples]
        calls, medians = novelty(samples), set_medians(samples)
        runs = tuple(Run("ok", outputs=values, latency_us=latency.latency_us) for values in sets)
        interval = latency.low_us, latency.high_us
        return Timing(runs, calls.firsts, calls.repeats, False, interval, calls.nearby, medians)

    def floor_us(self, signature: Signature) -> float:
        return 0.0


class StubReferences:
    """Value sets of one number each, every one another."""

    def __init__(self) -> None:
        self.drawn = 0

    def draw(self, *_: object) -> ValueSet:
        self.drawn += 1
        truth = np.array([float(self.drawn)])
        expected = (Expected(truth, np.ones(1, bool)),)
        return ValueSet(TASK.timing, "mixed", 0, (truth.astype(np.float32),), expected)

    def shared(self, *arguments: object) -> list[ValueSet]:
        return [self.draw() for _ in range(cast(int, arguments[-1]))]

    def draw_further(self, *_: object) -> Iterator[ValueSet]:
        return iter(())


def stub_values() -> KernelValues:
    return KernelValues(cast(References, StubReferences()), TASK, BUILD.kernel)


def judged(cost: tuple[float, float], noise: Noise, seed: int) -> tuple[Any, StubClock]:
    device = StubClock(cost, noise, seed)
    return latency_clocked.measure(cast(Device, device), BUILD, TASK, Checked(), stub_values()), device


def quiet(call: int, rng: random.Random) -> float:
    return rng.uniform(0.98, 1.02)


def disturbed(share: float, factor: float) -> Noise:
    """A share of the calls, at random, is slower by a factor."""
    return lambda call, rng: quiet(call, rng) * (factor if rng.random() < share else 1.0)


def drift(per_call: float) -> Noise:
    """Every call is slower, or faster, than the one before."""
    return lambda call, rng: quiet(call, rng) * (1.0 + per_call) ** min(call, 120)


def slow_phase(begin: int, length: int, factor: float) -> Noise:
    return lambda call, rng: quiet(call, rng) * (factor if begin <= call < begin + length else 1.0)


def phases(mean: float, factor: float) -> Noise:
    """Slow and normal phases take turns, of random lengths."""
    state = {"slow": False}

    def noise(call: int, rng: random.Random) -> float:
        state["slow"] ^= rng.random() < 1.0 / mean
        return quiet(call, rng) * (factor if state["slow"] else 1.0)

    return noise


HONEST_NOISE: dict[str, Callable[[int], Noise]] = {
    "quiet": lambda _: quiet,
    "a tenth disturbed": lambda _: disturbed(0.1, 20.0),
    "a third disturbed": lambda _: disturbed(0.33, 5.0),
    "drift up": lambda _: drift(0.03),
    "drift down": lambda _: drift(-0.03),
    "a slow start": lambda seed: slow_phase(0, 1 + seed % 30, 4.0),
    "one slow phase": lambda seed: slow_phase(seed % 31, 3 + seed % 17, 4.0),
    "short phases": lambda _: phases(3.0, 4.0),
    "long phases": lambda _: phases(12.0, 4.0),
}


@pytest.mark.parametrize("name", HONEST_NOISE)
def test_noise_refuses_no_honest_kernel(name: str) -> None:
    for seed in range(200):
        outcome, _ = judged((50.0, 50.0), HONEST_NOISE[name](seed), seed)
        assert isinstance(outcome, Timed), (name, seed, outcome)


@pytest.mark.parametrize("name", ["quiet", "a tenth disturbed", "drift up", "drift down", "one slow phase"])
def test_a_kernel_that_remembers_is_refused_under_noise(name: str) -> None:
    refused = [judged((100.0, 30.0), HONEST_NOISE[name](seed), seed)[0] for seed in range(100)]
    shares = sum(isinstance(outcome, Cheated) for outcome in refused) / len(refused)
    assert shares >= (1.0 if name in ("quiet", "drift up", "drift down") else 0.9)
    assert {outcome.rule for outcome in refused if isinstance(outcome, Cheated)} == {"faster-when-known"}


@settings(max_examples=100)
@given(st.integers(0, 2**32), st.integers(0, 100), st.integers(0, 120), st.floats(1.5, 50.0))
def test_one_slow_phase_of_any_place_and_length_refuses_no_honest_kernel(
    seed: int, begin: int, length: int, factor: float
) -> None:
    assert isinstance(judged((40.0, 40.0), slow_phase(begin, length, factor), seed)[0], Timed)


def test_a_kernel_is_measured_again_only_if_it_is_suspicious() -> None:
    assert judged((50.0, 50.0), quiet, 1)[1].rounds == 1
    assert judged((100.0, 30.0), quiet, 1)[1].rounds == 1 + latency_clocked.ROUNDS


def test_the_values_of_the_second_measurement_are_new_and_compared() -> None:
    """A kernel that is right on the first values only is wrong, even while it is being suspected."""

    class WrongLater(StubClock):
        def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
            timing = super().time(build, signature, sets, poison)
            if self.rounds == 1:
                return timing
            wrong = tuple(Run("ok", outputs=(np.float32([0.5]),), latency_us=1.0) for _ in sets)
            return Timing(wrong, timing.firsts, timing.repeats)

    device = WrongLater((100.0, 30.0), quiet, 1)
    outcome = latency_clocked.measure(cast(Device, device), BUILD, TASK, Checked(), stub_values())
    assert isinstance(outcome, Incorrect)
    assert outcome.cause == "mismatch"


class PatientClock(StubClock):
    """A kernel that keeps answers and uses them only after so many calls, when it has met every set."""

    def __init__(self, honest_until: int, again: bool, seed: int) -> None:
        super().__init__((100.0, 30.0), lambda call, rng: rng.uniform(0.95, 1.05), seed)
        self.honest_until, self.again = honest_until, again

    def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
        self.calls = 0 if self.again else self.calls
        return super().time(build, signature, sets, poison)

    def microseconds(self, value: float) -> float:
        if self.calls < self.honest_until or (self.rounds > 1 and not self.again):
            self.met.discard(value)
        return super().microseconds(value)


@pytest.mark.parametrize("again", [False, True])
def test_a_kernel_that_waits_with_what_it_keeps_gains_nothing(monkeypatch: pytest.MonkeyPatch, again: bool) -> None:
    monkeypatch.setattr(f"{__name__}.CALLS", 100)
    for seed in range(50):
        device = PatientClock(24, again, seed)
        outcome = latency_clocked.measure(cast(Device, device), BUILD, TASK, Checked(), stub_values())
        assert isinstance(outcome, Cheated) or outcome.latency_us > 94.0, seed  # type: ignore[union-attr]


@pytest.mark.parametrize("sets", [latency_clocked.SETS, latency_clocked.FEWER])
def test_answers_to_the_values_that_kernels_share_gain_nothing(monkeypatch: pytest.MonkeyPatch, sets: int) -> None:
    """An author may learn them, one number a submission, by the time that a kernel takes."""
    monkeypatch.setattr(latency_clocked, "FEWER", sets)

    class Learned(StubClock):
        def microseconds(self, value: float) -> float:
            self.calls += 1
            return (10.0 if value in shared else 100.0) * self.noise(self.calls, self.rng)

    class Noted(StubReferences):
        def shared(self, *arguments: object) -> list[ValueSet]:
            drawn = super().shared(*arguments)
            shared.update(float(values.values[0][0]) for values in drawn)
            return drawn

    for seed in range(50):
        shared: set[float] = set()
        device = Learned((0.0, 0.0), quiet, seed)
        with KernelValues(cast(References, Noted()), TASK, BUILD.kernel) as values:
            outcome = latency_clocked.measure(cast(Device, device), BUILD, TASK, Checked(), values)
        assert len(shared) == sets - 1
        assert isinstance(outcome, Timed)
        assert outcome.latency_us > 97.0, seed


def test_a_slow_kernel_is_timed_by_fewer_calls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty calls of a kernel that takes seconds would end in no verdict."""
    device = StubClock((5e6, 5e6), quiet, 3)
    monkeypatch.setattr(call_sequence.time, "perf_counter", lambda: 5.0 * device.calls)
    timing = device.time(BUILD, Signature((), ()), [(np.float32([n]),) for n in range(3)], 0)
    assert device.met == {0.0, 1.0, 2.0}
    assert device.calls <= 6
    assert timing.runs[0].latency_us == pytest.approx(5e6, rel=0.03)


@pytest.mark.parametrize(("patient", "unstable"), [(False, True), (True, False), (False, False)])
def test_the_policy_reference_believes_no_other_times(
    monkeypatch: pytest.MonkeyPatch, patient: bool, unstable: bool
) -> None:
    monkeypatch.setattr(f"{__name__}.CALLS", 100)
    monkeypatch.setattr(reference_policy, "_trial", lambda task, seeds, number: (np.float32([number]),))
    monkeypatch.setattr(reference_policy, "_mismatch", lambda *_: None)
    monkeypatch.setattr(reference_policy, "evaluate", lambda *_: ())

    class Changing(PatientClock):
        def time(self, build: Build, signature: Signature, sets: Sequence[tuple[Array, ...]], poison: int) -> Timing:
            return replace(super().time(build, signature, sets, poison), unstable=unstable)

    device = Changing(24 if patient else 1000, True, 5)
    values = KernelValues(References(), TASK, BUILD.kernel)
    outcome = reference_policy.measure(cast(Device, device), BUILD, TASK, Checked(), values)
    if unstable:
        assert isinstance(outcome, Incorrect)
        assert outcome.rule == "NONDETERMINISTIC"
    else:
        assert isinstance(outcome, Timed)
        assert outcome.latency_us > 94.0


def test_a_device_without_neighbours_is_judged_by_its_medians() -> None:
    slow_first = Timing((Run("ok"),), firsts=(100.0, 101.0), repeats=(10.0, 10.5, 11.0))
    steady = Timing((Run("ok"),), firsts=(12.0, 11.5), repeats=(10.0, 10.5, 11.0))
    assert latency_clocked.is_faster_when_known(slow_first)
    assert not latency_clocked.is_faster_when_known(steady)


@given(st.integers(1, 25), st.integers(0, 2**32))
def test_first_calls_are_spread_and_every_set_is_called(sets: int, seed: int) -> None:
    calls = list(islice(set_order(sets, random.Random(seed), SPREAD), max(SPREAD, sets)))
    places = [calls.index(index) for index in range(sets)]  # raises if a set is missing
    length = max(1, SPREAD // sets)
    assert sorted(place // length for place in places) == list(range(sets))


def test_a_call_on_new_values_is_compared_with_known_calls_nearby() -> None:
    times = [10.0, 100.0, 11.0, 12.0, 13.0, 14.0, 15.0, 500.0, 500.0]
    samples = [{"microseconds": time, "first": time == 100.0} for time in times]
    assert novelty(samples).nearby == (12.5,)
    assert novelty([{"microseconds": 3.0, "first": True}]).nearby == ()


@pytest.mark.parametrize(
    ("independent", "timed", "checked"), [(True, {"mixed"}, ["overflow"]), (False, {"ordinary"}, ["mixed", "overflow"])]
)
def test_stress_is_not_timed_where_it_may_hide_other_rows(
    monkeypatch: pytest.MonkeyPatch, independent: bool, timed: set[str], checked: list[str]
) -> None:
    kinds: dict[float, str] = {}
    compared: list[str] = []

    class Kinds(StubReferences):
        def draw(self, *arguments: object) -> ValueSet:
            values = super().draw()
            kinds[float(values.values[0][0])] = cast(str, arguments[2])
            return values

        def shared(self, *arguments: object) -> list[ValueSet]:
            return [self.draw(*arguments) for _ in range(cast(int, arguments[-1]))]

        def draw_further(self, *_: object) -> Iterator[ValueSet]:
            yield self.draw(None, None, "overflow")

    def compare(device: object, build: object, task: object, values: ValueSet) -> Run:
        compared.append(kinds[float(values.values[0][0])])
        return Run("ok")

    monkeypatch.setattr(latency_clocked, "rows_are_independent", lambda task: independent)
    monkeypatch.setattr(latency_clocked, "check_one", compare)
    device = StubClock((20.0, 20.0), lambda call, rng: 1.0, 0)
    with KernelValues(cast(References, Kinds()), TASK, BUILD.kernel) as values:
        outcome = latency_clocked.measure(cast(Device, device), BUILD, TASK, Checked(), values)
    assert isinstance(outcome, Timed)
    assert {kinds[number] for number in device.met} == timed
    assert compared == checked
