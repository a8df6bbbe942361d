"""A small real device for testing the verifier, and tasks to judge on it.

Kernels of the `NumpyDevice` are Python: they define `kernel_launch(a)`, which loads inputs and stores outputs through
`a`. They come from the tests alone, so they run in this process.
"""

from __future__ import annotations

import builtins
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest

from kernel_gym.hardware.device import Build, Diagnostic, Fault, Inputs, Run, empty_outputs
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Profile


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("KERNEL_GYM_SECRET", "a secret of the tests")
    monkeypatch.setenv("KERNEL_GYM_CACHE", str(tmp_path / "verdicts"))


class DeviceError(Exception):
    """Raised by a kernel of the NumpyDevice to break a rule of the hardware."""


class Call:
    """What `kernel_launch` is handed, and the record of what it did."""

    def __init__(self, inputs: Inputs) -> None:
        self.signature = inputs.signature
        self.large = inputs.signature.inputs[0].numel > 100_000  # the timing sizes
        self.values = inputs.values
        self.outputs = empty_outputs(inputs.signature, inputs.poison)
        self.read = [0] * len(self.values)
        self.written = [0] * len(self.outputs)
        self.mix: Counter[str] = Counter()
        self.blocks: set[int] = set()
        self.extra_us = 0.0
        self.data_dependent = False
        self.ub = 0
        self.poison = inputs.poison

    def load(self, index):
        self.mix["load"] += 1
        self.read[index] = self.values[index].nbytes
        return self.values[index].astype(np.float64)

    def store(self, index, value):
        self.mix["store"] += 1
        self.written[index] = self.outputs[index].nbytes
        with np.errstate(all="ignore"):
            self.outputs[index][...] = value

    def op(self, name, block=0, ub=0):
        self.mix[name] += 1
        self.ub += ub
        self.blocks.add(block)

    @property
    def latency(self) -> float:
        return 5.0 + (sum(self.read) + sum(self.written) + self.ub) / 1e6 + self.extra_us


class NumpyDevice:
    name = "numpy"
    language = "python"

    def __init__(self, tier: str = "A") -> None:
        self.tier = tier
        self.runs = 0
        self.builds = 0

    def unavailable_reason(self):
        return None

    def identity(self):
        return "numpy-1"

    def sandbox_tier(self):
        return self.tier

    def build(self, kernel: Kernel, task: Task) -> Build:
        self.builds += 1
        try:
            compile(kernel.source, "kernel", "exec")
        except SyntaxError as error:
            return Build(kernel, diagnostics=(Diagnostic(str(error.msg), error.lineno),))
        return Build(kernel)

    def run(self, build: Build, inputs: Inputs) -> Run:
        self.runs += 1
        names = {"np": np, "DeviceError": DeviceError, "__builtins__": builtins}
        exec(build.kernel.source, names)
        call = Call(inputs)
        try:
            with np.errstate(all="ignore"):
                code = names["kernel_launch"](call)
        except DeviceError as error:
            return Run("fault", fault=Fault(*error.args))
        except TimeoutError:
            return Run("timeout")
        if code:
            return Run("refused", code=code)
        run = Run(
            "ok",
            latency_us=call.latency,
            profile=Profile(bottleneck="mte2", bytes={"ub": call.ub}),
            blocks=frozenset(call.blocks),
            mix=dict(call.mix),
            read=tuple(call.read),
            written=tuple(call.written),
            data_dependent=call.data_dependent,
        )
        return replace(run, outputs=call.outputs)

    def floor_us(self, signature: Signature) -> float:
        return 5.0

    def fork(self):
        return NumpyDevice(self.tier)

    def close(self):
        pass


RELU = """
import torch
import torch.nn as nn

rows = 8
columns = 40

class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs():
    return [torch.randn(rows, columns)]

def get_init_inputs():
    return []
"""

CASES = (
    Case("public", "public"),
    Case("tail", "hidden", (("rows", 3), ("columns", 37))),
    Case("one", "hidden", (("rows", 1), ("columns", 17))),
    Case("timing", "timing", (("rows", 512), ("columns", 1024))),
)


def task_of(source: str, id: str = "test/relu") -> Task:
    return Task(id=id, category="activation", source=source, cases=CASES)


def operator(expression: str, arguments: str = "x", inputs: str = "torch.randn(rows, columns)", init: str = "") -> Task:
    """A task whose forward is one expression."""
    body = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    source = (
        RELU.replace("class Model(nn.Module):\n", f"class Model(nn.Module):\n{body}")
        .replace("forward(self, x)", f"forward(self, {arguments})")
        .replace("torch.relu(x)", expression)
        .replace("torch.randn(rows, columns)", inputs)
    )
    return task_of(source, f"test/{abs(hash(source))}")


@pytest.fixture
def relu() -> Task:
    return task_of(RELU)


@pytest.fixture
def make_task():
    return operator


@pytest.fixture
def device() -> NumpyDevice:
    return NumpyDevice()


@pytest.fixture
def make_device():
    return NumpyDevice


@pytest.fixture
def python_kernel():
    def make(body: str, trusted: bool = False) -> Kernel:
        return Kernel(
            "def kernel_launch(a):\n" + "".join(f"    {line}\n" for line in body.splitlines()), "python", trusted
        )

    return make
