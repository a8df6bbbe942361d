"""The contract of devices as tests that a plug-in author inherits.

    class TestMyDevice(DeviceContract):
        adding = 'extern "C" int kernel_launch(const KernelArgs *a, void *stream) { ... }'
        uncompilable = "nonsense;"
        refusing = "... return 42; ..."
        idle = "... return 0; ..."
        faulting = "... *(volatile int *)8 = 1; ..."
        endless = "... for (;;) {} ..."

        def make(self) -> Device:
            return MyDevice(timeout=5)

Run with pytest. The sources are kernels in the device's own language; each does what its name says. On a machine where
the device is unavailable the tests are skipped, and the reason is the device's own line.
"""

from __future__ import annotations

from abc import abstractmethod
from math import isfinite
from typing import ClassVar
from unittest import SkipTest

import numpy as np

from kernel_gym.hardware.device import Array, Build, Device, Inputs, PackedBuild, Portable, Run
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case, InputSpec, Signature, TensorSpec
from kernel_gym.tasks.task import Task

#: Lengths that the adding kernel has to serve: one element, less than any unit, no multiple of one, several tiles.
LENGTHS = (1, 7, 1000, 40_000)


class DeviceContract:
    """Tests that every device must pass. Inherit, define `make`, and give six kernels in the device's language."""

    #: Adds two float32 vectors of any length: `outputs[0] = inputs[0] + inputs[1]`.
    adding: ClassVar[str]
    #: Is refused by the compiler.
    uncompilable: ClassVar[str]
    #: Compiles; `kernel_launch` returns 42.
    refusing: ClassVar[str]
    #: Compiles; returns 0 and writes nothing.
    idle: ClassVar[str]
    #: Compiles; breaks a rule of the hardware or of the process.
    faulting: ClassVar[str]
    #: Compiles; never ends.
    endless: ClassVar[str]
    #: Whether two runs of one kernel take the same time to the last digit.
    exact_latency: ClassVar[bool] = False

    device: ClassVar[Device]

    @abstractmethod
    def make(self) -> Device:
        """Return a new device.

        Returns:
            The device; with a short timeout, if it has one.
        """

    @classmethod
    def setup_class(cls) -> None:
        """Make one device for all tests.

        Raises:
            SkipTest: If the device is unavailable here.
        """
        cls.device = cls().make()
        if reason := cls.device.unavailable_reason():
            raise SkipTest(reason)

    @classmethod
    def teardown_class(cls) -> None:
        """Close the device."""
        cls.device.close()

    # Names

    def test_it_is_a_device(self) -> None:
        """The device has the members of the contract, a name and a language."""
        assert isinstance(self.device, Device)
        assert self.device.name
        assert self.device.language
        assert self.device.sandbox_tier() in ("A", "B", "C", "D")

    def test_two_of_a_kind_have_one_identity(self) -> None:
        """The identity depends on settings and versions, not on the object."""
        other = self.make()
        try:
            assert other.identity() == self.device.identity() == self.device.identity()
        finally:
            other.close()

    # Building

    def test_a_build_is_ready_or_says_why_not(self) -> None:
        """A good build has an artifact; a refused one has diagnostics and raises nothing."""
        good, bad = self._build(self.adding), self._build(self.uncompilable)
        assert good.ok, good.diagnostics
        assert good.artifact is not None
        assert good.artifact.exists()
        assert not bad.ok
        assert bad.artifact is None
        assert all(diagnostic.message.strip() for diagnostic in bad.diagnostics)

    def test_the_compiler_speaks_in_the_authors_lines(self) -> None:
        """A line that a diagnostic names is a line of the source."""
        lines = len(self.uncompilable.splitlines())
        named = [diagnostic.line for diagnostic in self._build(self.uncompilable).diagnostics]
        assert all(1 <= line <= lines for line in named if line is not None)

    def test_other_languages_are_refused(self) -> None:
        """A kernel in another language is a failed build."""
        assert not self.device.build(Kernel(self.adding, "no such language"), _task()).ok

    def test_what_one_device_compiled_another_of_its_kind_runs(self) -> None:
        """A portable device runs a packed build of another device, without the other's files."""
        if not isinstance(self.device, Portable):
            raise SkipTest(f"{self.device.name} compiles what it runs itself")
        other = self.device.fork()
        good = PackedBuild.of(other.build(Kernel(self.adding, other.language, True), _task()), other.identity())
        bad = PackedBuild.of(other.build(Kernel(self.uncompilable, other.language, True), _task()), other.identity())
        other.close()
        values = _values(LENGTHS[-1])
        run = self.device.run(self.device.unpack(good), Inputs(_signature(LENGTHS[-1]), values))
        assert run.status == "ok", run.fault
        assert np.array_equal(run.outputs[0], values[0] + values[1])
        assert self.device.unpack(bad).diagnostics

    # Running

    def test_it_computes(self) -> None:
        """Outputs have the type and the shape of the signature and the right values; inputs stay as they were."""
        build = self._build(self.adding)
        for length in LENGTHS:
            values = _values(length)
            before = [value.copy() for value in values]
            run = self.device.run(build, Inputs(_signature(length), values))
            assert run.status == "ok", run.fault
            assert len(run.outputs) == 1
            assert (run.outputs[0].dtype, run.outputs[0].shape) == (np.dtype(np.float32), (length,))
            assert np.array_equal(run.outputs[0], values[0] + values[1]), f"wrong at length {length}"
            assert all(map(np.array_equal, values, before))

    def test_it_is_timed_with_values_and_without(self) -> None:
        """A latency is finite and never below the physical floor; without values no outputs come back."""
        build = self._build(self.adding)
        signature = _signature(LENGTHS[-1])
        for values in (_values(LENGTHS[-1]), None):
            run = self.device.run(build, Inputs(signature, values))
            assert run.status == "ok", run.fault
            assert run.latency_us is not None
            assert isfinite(run.latency_us)
            assert run.latency_us >= self.device.floor_us(signature) > 0
            assert bool(run.outputs) == (values is not None)

    def test_repetition_computes_the_same(self) -> None:
        """The same kernel on the same values gives the same bits, here and on a fork; the same time if it is exact."""
        build, other = self._build(self.adding), self.device.fork()
        try:
            again = other.build(Kernel(self.adding, self.device.language), _task())
            runs = [self._run(build), self._run(build), other.run(again, _inputs())]
        finally:
            other.close()
        assert len({run.outputs[0].tobytes() for run in runs}) == 1
        assert not self.exact_latency or len({run.latency_us for run in runs}) == 1

    def test_what_is_not_written_stays_poison(self) -> None:
        """Outputs are filled before the call, so that nothing of an earlier run shows through."""
        self._run(self._build(self.adding))
        for poison in (0x00, 0xA5):
            run = self._run(self._build(self.idle), poison)
            assert run.status == "ok", run.fault
            assert set(run.outputs[0].tobytes()) == {poison}

    # Failures

    def test_a_refusal_carries_its_code(self) -> None:
        """What `kernel_launch` returns is reported, and nothing else."""
        run = self._run(self._build(self.refusing))
        assert (run.status, run.code, run.outputs, run.latency_us) == ("refused", 42, (), None)

    def test_a_fault_has_a_name_and_leaves_the_device_unharmed(self) -> None:
        """A kernel that breaks a rule gives a run with a fault, and the next kernel runs as before."""
        run = self._run(self._build(self.faulting))
        assert run.status == "fault"
        assert run.fault is not None
        assert run.fault.rule == run.fault.rule.upper() != ""
        assert run.fault.message.strip()
        assert (run.outputs, run.latency_us) == ((), None)
        assert self._run(self._build(self.adding)).status == "ok"

    def test_an_endless_kernel_is_ended(self) -> None:
        """The run times out, and the device still works. What it wrote may be returned, with the time until then."""
        run = self._run(self._build(self.endless))
        assert run.status == "timeout"
        assert bool(run.outputs) == (run.latency_us is not None)
        assert self._run(self._build(self.adding)).status == "ok"

    # Closing

    def test_a_fork_lives_and_dies_alone(self) -> None:
        """Closing a fork leaves the other device at work."""
        build, other = self._build(self.adding), self.device.fork()
        assert other.identity() == self.device.identity()
        other.build(Kernel(self.adding, self.device.language), _task())
        other.close()
        assert self._run(build).status == "ok"

    def test_close_removes_its_files_and_may_be_called_twice(self) -> None:
        """No file of a build is left."""
        device = self.make()
        build = device.build(Kernel(self.adding, device.language), _task())
        assert build.artifact is not None
        device.close()
        device.close()
        assert not build.artifact.exists()

    def _build(self, source: str) -> Build:
        return self.device.build(Kernel(source, self.device.language), _task())

    def _run(self, build: Build, poison: int = 0xA5) -> Run:
        assert build.ok, build.diagnostics
        return self.device.run(build, _inputs(poison))


def _inputs(poison: int = 0xA5) -> Inputs:
    return Inputs(_signature(1000), _values(1000), poison=poison)


def _signature(length: int) -> Signature:
    return Signature((InputSpec((length,)), InputSpec((length,))), (TensorSpec((length,)),))


def _values(length: int) -> tuple[Array, ...]:
    x, y = np.random.default_rng(length).standard_normal((2, length)).astype(np.float32)
    return x, y


def _task() -> Task:
    source = (
        "import torch\n\nLENGTH = 1000\n\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x, y):\n        return x + y\n\n\n"
        "def get_inputs():\n    return [torch.rand(LENGTH), torch.rand(LENGTH)]\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    cases = (
        Case("public", "public"),
        Case("hidden", "hidden", (("LENGTH", 7),)),
        Case("timing", "timing", (("LENGTH", 40_000),)),
    )
    return Task("contract/add", "elementwise", source, cases)
