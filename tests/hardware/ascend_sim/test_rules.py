"""Every rule of the device: a program that breaks it, and beside it one that does not."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.ascend_sim.rules import rules, table
from kernel_gym.hardware.device import Run
from tests.support.kernels import Compiled, source

LENGTH, BLOCKS = 1024, 4

#: Global tensors of this core, three queues and a buffer.
SETUP = """
    const uint32_t L = 1024;
    GlobalTensor<float> xg, yg, zg, wg;
    xg.SetGlobalBuffer((__gm__ float *)x0 + L * GetBlockIdx(), L);
    yg.SetGlobalBuffer((__gm__ float *)x1 + L * GetBlockIdx(), L);
    zg.SetGlobalBuffer((__gm__ float *)z0 + L * GetBlockIdx(), L);
    wg.SetGlobalBuffer((__gm__ float *)ws + L * GetBlockIdx(), L);
    TQue<TPosition::VECIN, 2> qx, qy;
    TQue<TPosition::VECOUT, 2> qz;
    TBuf<TPosition::VECCALC> tb;
    pipe.InitBuffer(qx, 2, L * 4);
    pipe.InitBuffer(qy, 2, L * 4);
    pipe.InitBuffer(qz, 2, L * 4);
    pipe.InitBuffer(tb, 16384);
"""
LOAD = """
    LocalTensor<float> a = qx.AllocTensor<float>();
    DataCopy(a, xg, L);
    qx.EnQue(a);
    LocalTensor<float> b = qy.AllocTensor<float>();
    DataCopy(b, yg, L);
    qy.EnQue(b);
    a = qx.DeQue<float>();
    b = qy.DeQue<float>();
    LocalTensor<float> c = qz.AllocTensor<float>();
"""
STORE = """
    qz.EnQue(c);
    qx.FreeTensor(a);
    qy.FreeTensor(b);
    c = qz.DeQue<float>();
    DataCopy(zg, c, L);
    qz.FreeTensor(c);
"""
TBUF = "LocalTensor<float> t = tb.Get<float>();"


FRAMES = {"compute": (SETUP + LOAD, STORE), "plain": (SETUP, ""), "bare": ("", "")}
CASES = {case["name"]: case for case in yaml.safe_load(Path(__file__).with_name("rules.yaml").read_text())}


def body_of(case: dict[str, Any], which: str) -> str:
    """The device code of a case; without a good program of its own it is the plain addition."""
    ((frame, code),) = case.get(which, {"compute": "Add(c, a, b, L);"}).items()
    before, after = FRAMES[frame]
    return str(before + code + after)


@pytest.fixture(scope="module")
def device() -> Iterator[AscendSim]:
    with AscendSim() as simulator:
        yield simulator


#: Rules that need data; the others are checked in a timed run too.
DATA_RULES = {"UNINITIALISED", "GATHER"}


class Program(Compiled):
    """A kernel with two inputs and an output of 4096 floats."""

    def __init__(self, device: AscendSim, body: str, blocks: str = "4") -> None:
        super().__init__(device, source(body, 2, blocks))

    def run(self, compute: bool = True) -> Run:
        rng = np.random.default_rng(0)
        inputs = [rng.standard_normal(LENGTH * BLOCKS).astype(np.float32) for _ in range(2)]
        return self(inputs, [((LENGTH * BLOCKS,), "float32")], compute)


@pytest.mark.parametrize("name", CASES)
def test_a_program_that_breaks_a_rule_is_reported(device: AscendSim, name: str) -> None:
    case = CASES[name]
    kernel = Program(device, body_of(case, "bad"), str(case.get("blocks", BLOCKS)))
    fault = kernel.run().fault
    assert fault is not None
    assert fault.rule == case["rule"], fault
    assert case.get("says", "") in fault.message
    assert "\n" not in fault.message
    assert fault.line is not None
    assert fault.line > 0
    if case["rule"] not in DATA_RULES:
        timed = kernel.run(compute=False).fault
        assert timed is not None
        assert timed.rule == case["rule"], "a timed run checks the same rule"


@pytest.mark.parametrize("name", CASES)
@pytest.mark.slow
def test_the_same_program_without_the_mistake_runs(device: AscendSim, name: str) -> None:
    kernel = Program(device, body_of(CASES[name], "good"))
    for compute in (True, False):
        result = kernel.run(compute)
        assert result.status == "ok", result.fault


def test_the_message_names_line_core_and_buffers(device: AscendSim) -> None:
    body = body_of(CASES["buffers larger than UB"], "bad")
    line = source(body, 2).splitlines().index("    pipe.InitBuffer(qx, 2, L * 4);") + 1
    result = Program(device, body).run()
    assert result.fault is not None
    assert result.fault.core == 0
    assert f"VECIN of line {line}: 2 x 4096 = 8192" in result.fault.message
    assert result.fault.message.endswith("use smaller tiles or fewer buffers")


def test_a_copy_into_the_padding_is_only_warned_of(device: AscendSim) -> None:
    body = SETUP.replace("const uint32_t L = 1024", "const uint32_t L = 8") + LOAD + "Add(c, a, b, L);" + STORE
    ones = np.ones(5, np.float32)
    result = Compiled(device, source(body, 2))([ones, ones], [((5,), "float32")])
    assert result.status == "ok"
    assert any("GM_PADDING" in line for line in result.warnings)
    assert np.array_equal(result.outputs[0], ones + ones)


def test_the_reserved_end_of_ub_is_warned_of(device: AscendSim) -> None:
    body = SETUP + "TBuf<> u; pipe.InitBuffer(u, 190 * 1024 - 6 * 4096 - 16384);"
    result = Program(device, body).run()
    assert result.status == "ok"
    assert [line.split()[0] for line in result.warnings] == ["RESERVED_UB"]


@pytest.mark.parametrize(("event", "warned"), [("EVENT_ID5", False), ("EVENT_ID6", True), ("EVENT_ID7", True)])
def test_the_events_of_the_framework_are_warned_of(device: AscendSim, event: str, warned: bool) -> None:
    body = f"SetFlag<HardEvent::MTE2_V>({event}); WaitFlag<HardEvent::MTE2_V>({event});"
    result = Program(device, body).run()
    assert result.status == "ok"
    assert [line.split()[0] for line in result.warnings] == ["RESERVED_EVENT"] * warned


def test_a_line_that_was_cleaned_may_be_written_by_another_core(device: AscendSim) -> None:
    body = """
        GlobalTensor<float> z; z.SetGlobalBuffer((__gm__ float *)z0);
        z.SetValue(GetBlockIdx(), 1.0f);
        DataCacheCleanAndInvalid<float, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(z);
    """
    result = Program(device, body).run()
    assert result.status == "ok", result.fault
    assert np.array_equal(result.outputs[0][:BLOCKS], np.ones(BLOCKS))


def test_a_copy_of_scalars_in_the_data_cache_is_warned_of(device: AscendSim) -> None:
    body = SETUP + TBUF + "wg.SetValue(0, 1.0f); DataCopy(t, wg, 8);"
    result = Program(device, body).run()
    assert result.status == "ok", result.fault
    assert any("DCACHE" in line for line in result.warnings)


def test_using_the_part_of_a_block_that_hardware_drops_is_a_fault(device: AscendSim) -> None:
    copies = "DataCopy(t, xg, 13); PipeBarrier<PIPE_ALL>(); {} PipeBarrier<PIPE_ALL>(); DataCopy(zg, t, {});"
    needed = Program(device, SETUP + TBUF + copies.format("Adds(t, t, 1.0f, 16);", 16)).run()
    assert needed.fault is not None
    assert needed.fault.rule == "COPY_SIZE"
    assert "hardware drops the last 20" in needed.fault.message
    for code, count in (("Duplicate(t[8], 1.0f, 8);", 16), ("Adds(t, t, 1.0f, 8);", 8)):
        assert Program(device, SETUP + TBUF + copies.format(code, count)).run().fault is None


def test_the_scalar_unit_waits_by_itself(device: AscendSim) -> None:
    body = """
        DataCopy(t, xg, L);
        float v = t.GetValue(3);
        t.SetValue(4, v);
        Adds(t, t, v, L);
        float u = t.GetValue(5);
        PipeBarrier<PIPE_ALL>();
        DataCopy(zg, t, L);
    """
    assert Program(device, SETUP + TBUF + body).run().status == "ok"


#: Rules that no kernel can break through the headers: tested with raw records.
ONLY_RECORDS = {"PROTOCOL", "WORK_LIMIT"}
#: Rules that have tests of their own.
ELSEWHERE = {"MATMUL", "GM_PIECES", "GM_PADDING", "RESERVED_EVENT", "RESERVED_UB", "DCACHE"}


def test_every_rule_has_a_program_that_breaks_it() -> None:
    ids = {rule.id for rule in rules()}
    assert len(ids) > 40
    assert ids - {case["rule"] for case in CASES.values()} == ONLY_RECORDS | ELSEWHERE


def test_the_table_of_rules_says_what_to_do() -> None:
    assert "| `COPY_SIZE` | DataCopy moves whole blocks" in table()
    assert all(rule.hint for rule in rules() if rule.id not in {"PROTOCOL", "ASSERT", "MISUSE"})
    assert {rule.id for rule in rules() if rule.is_warning} == {
        "GM_PADDING",
        "RESERVED_EVENT",
        "RESERVED_UB",
        "DCACHE",
    }
