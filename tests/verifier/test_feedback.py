"""Feedback teaches and does not leak: at hidden sizes it has no number that a kernel, values or sizes decide."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.verdict import Incorrect
from kernel_gym.verifier.correctness import Checked, check
from kernel_gym.verifier.kernel_values import KernelValues
from kernel_gym.verifier.patterns import without_numbers
from kernel_gym.verifier.value_sets import References

#: Ways to make a kernel fail at hidden sizes with a number of the author's choice; `secret` is what it wants to tell.
CHANNELS = {
    "exit code": "return 1 + secret",
    "fault address": "raise DeviceError('OUT_OF_BOUNDS', f'UB[{secret:#x}] of {secret} bytes', 3)",
    "fault in words": "raise DeviceError('CAPACITY', f'take {secret}.5 bytes (line 9: {secret} more): use fewer', 3)",
    "assertion": "raise DeviceError('ASSERT', 'assertion failed: ' + chr(97 + secret % 26), 3)",
    "number of wrong elements": "y.ravel()[: 2 + secret % 5] = 1e6",
    "place of a wrong element": "y.ravel()[secret % y.size] = 1e6",
    "size of an error": "y += 10 + secret",
    "factor": "y *= 3 + secret % 1000",
    "number of unwritten elements": "y = y.copy(); y.ravel()[: 2 + secret % 5] = np.nan",
}


#: Numbers that are the same for every kernel and every secret.
CONSTANT = re.compile(r"output 0|line 3|return 0")


def feedback(device, task, python_kernel, action, secret, place="x.shape[0] != 8") -> str:
    """Return the feedback on a kernel that fails with the number `secret` wherever `place` holds."""
    body = f"x = a.load(0)\ny = np.maximum(x, 0)\nsecret = {secret}\nif {place}:\n    {action}\na.store(0, y)\nreturn 0"
    kernel = python_kernel(body)
    verdict = check(device, device.build(kernel, task), task, KernelValues(References(), task, kernel))
    assert isinstance(verdict, Incorrect)
    return verdict.feedback


@pytest.mark.parametrize("action", CHANNELS.values(), ids=CHANNELS)
@settings(max_examples=4, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(numbers=st.tuples(st.integers(0, 2**31), st.integers(0, 2**31)))
def test_kernels_that_differ_in_a_number_get_the_same_feedback(action, device, relu, python_kernel, numbers):
    first, second = (feedback(device, relu, python_kernel, action, number) for number in numbers)
    assert _kind(first) == _kind(second)
    for text in (first, second):
        assert not re.search(r"\d", CONSTANT.sub("", text)), text


def _kind(text: str) -> str:
    """Return feedback without the words that say where the wrong elements are: they are a kind of mistake."""
    return text.split(": output 0: ")[0]


@pytest.mark.parametrize("action", CHANNELS.values(), ids=CHANNELS)
def test_feedback_does_not_show_the_values(action, device, relu, python_kernel, monkeypatch):
    """The number is taken from the values: under another secret the feedback is of the same kind, without numbers."""
    texts = []
    for word in ("one", "two", "three"):
        monkeypatch.setenv("KERNEL_GYM_SECRET", word)
        seen = "int(abs(np.nan_to_num(x.ravel()[0], posinf=9.0, neginf=9.0)) * 1e4)"
        texts.append(feedback(device, relu, python_kernel, action, seen))
    assert len({_kind(text) for text in texts}) == 1
    assert not any(re.search(r"\d", CONSTANT.sub("", text)) for text in texts)


def test_public_sizes_keep_their_numbers(device, relu, python_kernel):
    at_public = "x.shape[0] == 8"
    assert "returned 7" in feedback(device, relu, python_kernel, "return secret", 7, at_public)
    assert "0x2a" in feedback(device, relu, python_kernel, CHANNELS["fault address"], 42, at_public)
    assert "320 elements" in feedback(device, relu, python_kernel, "y += 10", 0, at_public)


def test_warnings_of_hidden_sizes_have_no_numbers(relu, python_kernel, make_device):
    class Warning(type(make_device())):
        def run(self, build, inputs):
            rows = inputs.signature.inputs[0].shape[0]
            return replace(super().run(build, inputs), warnings=(f"SLOW_{rows > 8} line 4: {rows} rows at 0x{rows:x}",))

    device = Warning()
    kernel = python_kernel("a.store(0, np.maximum(a.load(0), 0))\nreturn 0")
    checked = check(device, device.build(kernel, relu), relu, KernelValues(References(), relu, kernel))
    assert isinstance(checked, Checked)
    assert set(checked.warnings) == {"SLOW_False line 4: 8 rows at 0x8"}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("DataCopy moves 36 bytes at UB[0x40]: blocks of 32", "DataCopy moves N bytes at UB[N]: blocks of N"),
        ("only the tail is wrong (from element 24): check the tail", "only the tail is wrong: check the tail"),
        ("off by a factor of 3.01e+05", "off by a factor of N"),
        ("WaitFlag<V_MTE2>(3), L0A, int32_t (line 12)", "WaitFlag<V_MTE2>(N), L0A, int32_t (line 12)"),
    ],
)
def test_without_numbers(text, expected):
    assert without_numbers(text) == expected


SUM = "torch.sum(x).reshape(1)"
#: Answers from a table of inputs that were met before; tells the answer to the first unknown input as an exit code.
TABLE = """
import struct
x = a.load(0).astype(np.float32)
answer = {table}.get(hash(x.tobytes()))
if answer is None:
    known = struct.unpack('<I', np.float32(x.astype(np.float64).sum()).tobytes())[0]
    return f"{{hash(x.tobytes())}}:{{known}}"
a.store(0, struct.unpack('<f', struct.pack('<I', answer))[0])
return 0
"""


def test_answers_cannot_be_learned_from_feedback(device, make_task, python_kernel):
    """The attack that returned 56 learned answers from a table: no table is ever enough, the values do not repeat."""
    task, table = make_task(SUM), {}
    for _ in range(80):
        kernel = python_kernel(TABLE.format(table=table).strip())
        verdict = check(device, device.build(kernel, task), task, KernelValues(References(), task, kernel))
        assert isinstance(verdict, Incorrect)
        learned = re.search(r"returned (-?\d+):(\d+)", verdict.feedback)
        assert learned is not None
        table[int(learned[1])] = int(learned[2])
    assert verdict.case == "public"  # it never got beyond the first set
    assert len(table) == 80


ASCEND = """
#include "kernel_operator.h"
#include "kernel_gym.h"
using namespace AscendC;

extern "C" __global__ __aicore__ void relu(GM_ADDR x, GM_ADDR y, int32_t n, int32_t hidden)
{
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    pipe.InitBuffer(buffer, 32768);
    LocalTensor<float> t = buffer.Get<float>();
    GlobalTensor<float> in, out;
    in.SetGlobalBuffer((__gm__ float *)x, n);
    out.SetGlobalBuffer((__gm__ float *)y, n);
    for (int32_t i = 0; i < n; ++i) {
        float v = in.GetValue(i);
        out.SetValue(i, v > 0.0f ? v : 0.0f);
    }
    int32_t secret = hidden ? SECRET : 0;
    if (hidden) { ACTION }
}

extern "C" int kernel_launch(const KernelArgs *args, void *stream)
{
    int32_t n = 1;
    for (int32_t i = 0; i < args->inputs[0].ndim; ++i) n *= args->inputs[0].shape[i];
    int32_t hidden = !(args->inputs[0].shape[0] == 32 && args->inputs[0].shape[1] == 256);
    if (hidden && EXIT) return EXIT;
    relu<<<1, nullptr, stream>>>((GM_ADDR)args->inputs[0].ptr, (GM_ADDR)args->outputs[0].ptr, n, hidden);
    return 0;
}
"""
SIMULATED = {
    "exit code": ("", "SECRET"),
    "address": ("t.SetValue(10000 + secret, 1.0f);", "0"),
    "count": ("Relu(t, t, 9000 + secret);", "0"),
    "wrong value": ("out.SetValue(0, 1000.0f + secret);", "0"),
    "read of what was never written": ("out.SetValue(0, t.GetValue(secret));", "0"),
}


@pytest.fixture(scope="module")
def simulator():
    device = AscendSim()
    yield device
    device.close()


@pytest.mark.parametrize(("action", "exit"), SIMULATED.values(), ids=SIMULATED)
def test_feedback_of_the_simulator_does_not_show_a_number(simulator, action, exit):
    task = find_task("level1/relu")
    texts = []
    for number in ("5", "77"):
        source = ASCEND.replace("ACTION", action).replace("EXIT", exit).replace("SECRET", number)
        build = simulator.build(Kernel(source), task)
        assert build.ok, build.diagnostics
        verdict = check(simulator, build, task, KernelValues(References(), task, build.kernel))
        assert isinstance(verdict, Incorrect)
        assert verdict.case == "hidden", verdict.feedback
        texts.append(verdict.feedback)
    assert texts[0] == texts[1]
