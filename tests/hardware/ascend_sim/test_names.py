"""Every name that kernels use most is there or says why not, and the suite's own kernels use every name there is."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.verifier.diagnostics import hint_for
from tests.hardware.ascend_sim.test_header import errors
from tests.support.kernels import Compiled
from tests.support.public_names import HARDWARE, exercised, offered

NAMES: dict[str, Any] = yaml.safe_load((HARDWARE / "names.yaml").read_text())
KERNELS = sorted((HARDWARE / "kernels").glob("*.cpp"))


def test_the_150_names_are_used_by_a_kernel_or_have_a_reason() -> None:
    order = NAMES["order"].split()
    assert len(order) == len(set(order)) == 150
    used = exercised()
    assert [name for name in order if name not in used and name not in NAMES["absent"]] == []
    assert set(NAMES["absent"]) <= set(order)
    assert all(entry["why"] for entry in NAMES["absent"].values())


def test_absent_names_do_not_compile_and_the_error_has_a_hint(tmp_path: Path) -> None:
    entries = [*NAMES["absent"].values(), *NAMES["lacking"].values()]
    messages = errors(tmp_path, [entry["statement"] for entry in entries])
    for entry in entries:
        hint = hint_for(messages[entry["statement"]])
        assert hint is not None, messages[entry["statement"]]
        assert entry["hint"].replace("\\", "") in hint, (entry, hint)


def test_the_kernels_of_the_suite_use_every_name_that_the_headers_offer() -> None:
    names = offered()
    assert len(names) > 450
    assert {"TBufPool", "MrgSort", "SoftmaxFlashV2", "AscendQuant", "LoadData3DParamsV2", "IBWait", "Fixpipe"} <= names
    assert sorted(names - exercised()) == []


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


@pytest.mark.parametrize("path", KERNELS, ids=lambda path: path.stem)
def test_a_kernel_of_names_runs(device: AscendSim, path: Path) -> None:
    kernel = Compiled(device, path.read_text())
    rng = np.random.default_rng(0)
    inputs = [rng.uniform(0.1, 0.9, 1024).astype(np.float32) for _ in range(2)]
    run = kernel(inputs, [((1024,), "float32")])
    assert run.status == "ok", run.fault
    assert run.code == 0
    x, y = inputs
    want = {
        "memory": x + 1,
        "cube": np.full(1024, 16),
        "vector": x,
        "meetings": x + 4,
        "host": x,
        "matmul": (x.reshape(32, 32).astype(np.float64) @ y.reshape(32, 32)).astype(np.float32).reshape(-1),
    }[path.stem]
    assert np.allclose(run.outputs[0], want, rtol=1e-5)
