"""Whole verdicts on the simulator: every kind of kernel gets its gate and a reason, and the next one is unaffected."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.device import Inputs
from kernel_gym.hardware.host.tensors import random_inputs
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable
from kernel_gym.verifier import Verifier

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")

HONEST = Path(__file__).parent / "honest"
RELU = (HONEST / "relu_class.cpp").read_text()
CALL = "        AscendC::Relu(y, x, n);\n"


@pytest.fixture(scope="module")
def relu():
    return suites.find_task("level1/relu")


@pytest.fixture(scope="module")
def verifier():
    with Verifier(AscendSim(), cache=False, unsafe=True) as judge:
        yield judge


@pytest.fixture(scope="module")
def judge(verifier, relu):
    """Judge a text, and then run a good kernel on the same device: whatever the first one did, the second is right."""
    device, signature = verifier.device, relu.instance(relu.public).signature
    good, inputs = device.build(Kernel(RELU), relu), Inputs(signature, random_inputs(signature, 0), case=relu.public)

    def make(text):
        verdict = verifier.verify(Kernel(text), relu)
        run = device.run(good, inputs)
        assert run.status == "ok", run.fault
        np.testing.assert_array_equal(run.outputs[0], np.maximum(inputs.values[0], 0))
        return verdict

    yield make
    assert verifier.verify(Kernel(RELU), relu).feasible


ENDLESS = "volatile bool go = true; while (go) {}"


def changed(old: str, new: str, text: str = RELU) -> str:
    assert old in text
    return text.replace(old, new)


def before_relu(lines: str) -> str:
    return changed(CALL, f"        {lines}\n{CALL}")


def racing() -> str:
    text = changed("TQue<AscendC::TPosition::VECIN, 1> inQueue", "TBuf<AscendC::TPosition::VECCALC> inQueue")
    for old, new in (
        ("InitBuffer(inQueue, 2, ", "InitBuffer(inQueue, "),
        ("inQueue.AllocTensor<float>()", "inQueue.Get<float>()"),
        ("inQueue.DeQue<float>()", "inQueue.Get<float>()"),
        ("        inQueue.EnQue(x);\n", ""),
        ("        inQueue.FreeTensor(x);\n", ""),
    ):
        text = changed(old, new, text)
    return text


@pytest.mark.parametrize(
    ("name", "task"),
    [
        ("relu_class", "level1/relu"),
        pytest.param("relu_template", "level1/relu", marks=pytest.mark.slow),
        pytest.param("relu_two_launches", "level1/relu", marks=pytest.mark.slow),
        pytest.param("softmax_rows", "level1/softmax", marks=pytest.mark.slow),
    ],
)
def test_honest_kernels_are_feasible_and_repeat(verifier, name, task):
    text = (HONEST / f"{name}.cpp").read_text()
    first, second = (verifier.verify(Kernel(text), suites.find_task(task)) for _ in range(2))
    assert isinstance(first, Feasible), first.feedback
    assert first == second
    assert first.profile.pipes


@pytest.mark.parametrize(
    ("text", "cause", "rule", "words"),
    [
        pytest.param(changed("AscendC::Relu(", "AscendC::Abs("), "mismatch", "", "wrong", id="wrong"),
        pytest.param(racing(), "fault", "MISSING_SYNC", "PipeBarrier", id="racing"),
        pytest.param(changed("tile = 4096", "tile = 40960"), "fault", "CAPACITY", "smaller tiles", id="overflowing"),
        pytest.param(changed("        inQueue.FreeTensor(x);\n", ""), "fault", "QUEUE", "FreeTensor", id="leaking"),
        pytest.param(before_relu("volatile int *p = nullptr; *p = 1;"), "fault", "POINTER", "pointer", id="crashing"),
        pytest.param(before_relu(ENDLESS), "timeout", "BUDGET", "did not end", id="looping"),
        pytest.param(
            changed("    ReluTiling t;\n", f"    {ENDLESS}\n    ReluTiling t;\n"),
            "timeout", "TIMEOUT", "the host function", id="looping on the host",
        ),
        pytest.param(
            changed("AscendC::DataCopyPad(yGm[offset], y, copy);", "AscendC::DataCopy(yGm[offset], y, n / 8 * 8);"),
            "mismatch", "", "never written", id="tail",
        ),
        pytest.param(
            changed("AscendC::DataCopyPad(yGm[offset], y, copy);", "AscendC::DataCopy(yGm[offset], y, n);"),
            "fault", "COPY_SIZE", "DataCopyPad", id="unaligned",
        ),
        pytest.param(changed("return 0;\n}", "return t.total % 64;\n}"), "refused", "", "returned", id="refusing"),
        pytest.param(
            changed("    relu_kernel<<<", "    if (false) relu_kernel<<<"),
            "mismatch", "", "nothing was written", id="null",
        ),
    ],
)  # fmt: skip
def test_incorrect_kernels_get_the_reason(judge, text, cause, rule, words):
    verdict = judge(text)
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.cause == cause, verdict.feedback
    assert rule in verdict.rule
    assert words in verdict.feedback
    assert verdict.compiled
    assert verdict.latency_us is None


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (changed("AscendC::Relu(y, x, n)", "AscendC::Subs(y, x, 0.0f, n)"), "Subs", "Adds"),
        (changed("AscendC::Relu(y, x, n)", "AscendC::ReduceSum(y, x, n)"), "ReduceSum", "work"),
        (before_relu("float s = 1.0f / n;"), "1.0f / n", "int32_t"),
        (before_relu("float s = sqrtf(2.0f);"), "sqrtf", "GetValue"),
        (
            changed("pipe.InitBuffer(inQueue, 2, tile * sizeof(float));", "pipe.InitBuffer(inQueue, tile);"),
            "InitBuffer",
            "bytes",
        ),
        (changed(CALL, CALL.replace(";", "")), "outQueue", "syntax"),
        ("", "", "__global__"),
        ("int main() { return 0; }", "", "__global__"),
    ],
)
def test_uncompilable_kernels_get_the_line_and_a_hint(judge, text, line, words):
    verdict = judge(text)
    assert isinstance(verdict, Uncompilable), verdict
    assert words in verdict.feedback
    assert "/" not in verdict.feedback.replace("1.0f / n", "").replace("set/", "")
    if line:
        assert line in text.splitlines()[verdict.line - 1]


IN = "    __aicore__ inline void CopyIn(uint32_t offset, uint32_t n)\n    {\n"
OUT = "    __aicore__ inline void CopyOut(uint32_t offset, uint32_t n)\n    {\n"
SHRINK = "        n = n - (n >> 12) * 4000;\n"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(before_relu("if (n > 2048) { n = 64; }"), id="skips large tiles"),
        pytest.param(changed(CALL, SHRINK + CALL), id="skips without a branch", marks=pytest.mark.slow),
        pytest.param(changed(OUT, OUT + SHRINK), id="writes a part"),
        pytest.param(changed(IN, IN + SHRINK), id="reads a part", marks=pytest.mark.slow),
        pytest.param(changed("<<<blocks", "<<<(t.total > 100000 ? 1 : blocks)"), id="launches a part"),
        pytest.param(
            changed("CopyIn(offset, n)", "CopyIn(offset % 4096, n)"), id="reads one tile again", marks=pytest.mark.slow
        ),
    ],
)
def test_less_work_at_the_timing_sizes_is_wrong(judge, text):
    verdict = judge(text)
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.case == "timing"


TELLING = "AscendC::Duplicate(y, 1.0f, 8); float one = y.GetValue(0); "


def test_values_that_are_read_are_real_in_every_run(judge):
    honest = judge(before_relu(TELLING + "n = n * static_cast<uint32_t>(one == 1.0f);"))
    assert honest.feasible, honest.feedback


def test_lower_precision_at_large_sizes_is_found(judge):
    lower = (
        "if (n > 2048) { AscendC::LocalTensor<half> h = y.ReinterpretCast<half>();"
        " AscendC::Cast(h, x, AscendC::RoundMode::CAST_RINT, n);"
        " AscendC::Cast(x, h, AscendC::RoundMode::CAST_NONE, n); }"
    )
    verdict = judge(before_relu(lower))
    assert isinstance(verdict, Incorrect), verdict
    assert verdict.case == "timing"


@pytest.mark.parametrize(
    "text",
    [
        changed("uint32_t cores = 40;", "uint32_t cores = 40; if (t.total > 1000000) { cores = 48; }"),
        changed("    AscendC::TPipe pipe;", "    AscendC::TPipe pipe;\n    AscendC::TBuf<> extra;").replace(
            "        pipe.InitBuffer(outQueue",
            "        pipe.InitBuffer(extra, 16384);\n        AscendC::LocalTensor<float> e = extra.Get<float>();\n"
            "        AscendC::Duplicate(e, 0.0f, 4096);\n        pipe.InitBuffer(outQueue",
        ),
    ],
    ids=["more cores for large sizes", "set-up that small sizes do not amortise"],
)  # fmt: skip
def test_honest_kernels_may_branch_on_large_sizes(verifier, relu, text):
    verdict = verifier.verify(Kernel(text), relu)
    assert isinstance(verdict, Feasible), verdict.feedback


@pytest.mark.parametrize(
    "line",
    [
        "int counter;",
        "#define J(a, b) a##b",
        "#include </etc/passwd>",
        '#pragma GCC optimize("fast-math")',
        'extern "C" void asc_vector(int);',
        "__attribute__((constructor)) void early() {}",
    ],
)
def test_the_screen_stops_cheats_before_anything_runs(judge, line):
    verdict = judge(changed("class KernelRelu {", f"{line}\nclass KernelRelu {{"))
    assert isinstance(verdict, Cheated), verdict
    assert verdict.gate == "screen"
    assert verdict.compiled is None
    assert "line 11" in verdict.feedback


def test_workers_side_by_side_agree_with_one(relu):
    texts = [
        RELU,
        changed("AscendC::Relu(", "AscendC::Abs("),
        racing(),
        before_relu("volatile int *p = nullptr; *p = 1;"),
    ]
    pairs = [(Kernel(text), relu) for text in texts]
    with Verifier(AscendSim(), cache=False, unsafe=True, workers=2) as many:
        verdicts = many.verify_all(pairs * 2)
    assert [v.outcome for v in verdicts] == ["feasible", "incorrect", "incorrect", "incorrect"] * 2


def children() -> set[str]:
    return {pid for task in Path("/proc/self/task").iterdir() for pid in (task / "children").read_text().split()}


def test_nothing_is_left_behind(relu, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    before = children()
    with Verifier(AscendSim(), cache=False, unsafe=True, workers=2) as verifier:
        verifier.verify_all([(Kernel(RELU), relu), (Kernel(before_relu("volatile int *p = nullptr; *p = 1;")), relu)])
    assert children() <= before
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "right", "wrong", "ends"),
    [
        (
            "relu_two_launches",
            "uint32_t n = (total + TILE - 1) / TILE;",
            "uint32_t n = (total + n - 1) / TILE;",
            Uncompilable,
        ),
        ("relu_class", CALL, CALL + "        float zero;\n        AscendC::Adds(y, y, zero, n);\n", Incorrect),
    ],
)
def test_uninitialised_memory_is_not_zero(judge, name, right, wrong, ends):
    """Otherwise such kernels could be right because of an earlier call's stack contents."""
    text = (HONEST / f"{name}.cpp").read_text()
    assert text.count(right) == 1
    verdict = judge(text.replace(right, wrong))
    assert isinstance(verdict, ends), verdict
    assert ends is Incorrect or "'n' is used uninitialized" in verdict.feedback


def test_a_table_of_the_host_costs_its_copy_by_reference_too(verifier, relu):
    """Every core copies the arguments of a launch, whatever it reads of them."""
    text = changed("    uint32_t tile;\n};\n", "    uint32_t tile;\n    uint32_t table[2048];\n};\n")
    text = changed("ReluTiling t;", "ReluTiling t{};", text)
    by_reference = changed("GM_ADDR y, ReluTiling t)", "GM_ADDR y, const ReluTiling &t)", text)
    plain, by_value, referred = (verifier.verify(Kernel(each), relu).latency_us for each in (RELU, text, by_reference))
    assert by_value == referred > plain


@pytest.mark.parametrize("parameter", ["ReluTiling t", "const ReluTiling &t"])
def test_arguments_of_a_launch_have_no_copy_constructors_of_their_own(verifier, relu, parameter):
    """One could leave out the copy that every core pays for."""
    own = (
        "    ReluTiling() {}\n    ReluTiling(const ReluTiling &o) : total(o.total), perCore(o.perCore), tile(4096) {}\n"
    )
    text = changed("    uint32_t tile;\n};\n", f"    uint32_t tile;\n{own}}};\n")
    verdict = verifier.verify(Kernel(changed("ReluTiling t)", f"{parameter})", text)), relu)
    assert isinstance(verdict, Uncompilable)
    assert "arguments are copied as bytes" in verdict.feedback
