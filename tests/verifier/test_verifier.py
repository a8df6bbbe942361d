"""The gates in their order, on a small device."""

import pytest

from kernel_gym.errors import ConfigError, DeviceUnavailable, InfrastructureError
from kernel_gym.hardware.host.cpp_syntax import Unparsable
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import GATES, Cheated, Feasible, Incorrect, Uncompilable, Unjudged, from_json
from kernel_gym.verifier import Inspection, Verifier

RELU = "a.store(0, np.maximum(a.load(0), 0))\na.op('Relu')\nreturn 0"


@pytest.fixture
def verifier(device):
    with Verifier(device) as judge:
        yield judge


def test_a_good_kernel_is_feasible(verifier, relu, python_kernel):
    verdict = verifier.verify(python_kernel(RELU), relu)
    assert isinstance(verdict, Feasible)
    assert verdict.latency_us > 5
    assert verdict.plain
    assert verdict.device == "numpy"
    assert verdict.sandbox_tier == "A"
    assert tuple(verdict.seconds) == GATES
    assert from_json(verdict.to_json()) == verdict


def test_each_gate_stops_its_kind_of_fault(verifier, relu, python_kernel):
    assert isinstance(verifier.verify(python_kernel("return ("), relu), Uncompilable)
    assert isinstance(verifier.verify(python_kernel("return 0"), relu), Incorrect)
    cheat = "a.store(0, np.maximum(a.load(0), 0))\nif a.large: a.extra_us = -10\nreturn 0"
    assert isinstance(verifier.verify(python_kernel(cheat), relu), Cheated)
    assert isinstance(verifier.verify(python_kernel(RELU), relu), Feasible)


def test_right_outputs_below_the_floor_are_cheating(verifier, relu, python_kernel):
    verdict = verifier.verify(python_kernel(RELU.replace("return 0", "if a.large: a.extra_us = -10\nreturn 0")), relu)
    assert isinstance(verdict, Cheated), verdict
    assert (verdict.gate, verdict.rule) == ("latency", "below-floor")
    assert verdict.compiled
    assert verdict.correct


def test_the_run_that_is_timed_is_the_run_that_is_compared(relu, python_kernel, make_device):
    class Watching(make_device):
        def run(self, build, inputs):
            runs.append(inputs)
            return super().run(build, inputs)

        def fork(self):
            return self

    runs = []
    with Verifier(Watching(), cache=False) as verifier:
        assert verifier.verify(python_kernel(RELU), relu).feasible
    assert all(inputs.values is not None for inputs in runs)
    assert [inputs.signature for inputs in runs].count(relu.instance(relu.timing).signature) == 1


@pytest.mark.parametrize("slow", ["spiked", "not spiked"])
def test_the_slower_of_two_runs_counts_where_rows_depend_on_each_other(verifier, make_task, python_kernel, slow):
    body = "x = np.abs(a.load(0))\nlarge = x > 20 * np.median(x, axis=1, keepdims=True)\n"
    body += "spiked = (large.mean(axis=1) > 0.01).any()\na.store(0, (x * x).mean())\n"
    body += "a.extra_us = 70 if a.large and {} else 0\nreturn 0"
    task = make_task("(x * x).mean()")
    steady, changing = (verifier.verify(python_kernel(body.format(test)), task) for test in ("False", slow))
    assert changing.latency == steady.latency + 70


def test_a_maximum_left_out_behind_a_layer_at_large_sizes_is_wrong(verifier, make_task, python_kernel):
    """No exponential overflows in the other runs: weights make spikes small, and rows depend on each other."""
    body = "x, w, b = (a.load(i) for i in range(3))\ny = (x @ w.T + b).astype(np.float32) / 8\n"
    body += "top = y.max(axis=0) if {} else 0\na.extra_us = 70 if {} else 0\n"
    body += "e = np.exp(y - top)\na.store(0, e / e.sum(axis=0))\nreturn 0"
    task = make_task("torch.softmax(self.layer(x) / 8, 0)", init="self.layer = nn.Linear(columns, 16)")
    honest, slow, lazy = (
        verifier.verify(python_kernel(body.format(*words)), task)
        for words in [("True", "False"), ("True", "y.max() > 150"), ("not a.large", "False")]
    )
    assert isinstance(honest, Feasible), honest
    assert slow.latency == honest.latency + 70
    assert isinstance(lazy, Incorrect)
    assert lazy.case == "timing"


def test_a_sum_over_stressed_rows_alone_is_wrong(verifier, make_task, python_kernel):
    body = "x = a.load(0)\nlarge = np.abs(x).max(axis=1) > 15\nx = x[large] if a.large and large.any() else x\n"
    body += "a.store(0, (x * x).sum() / a.values[0].size)\nreturn 0"
    verdict = verifier.verify(python_kernel(body), make_task("(x * x).mean()"))
    assert isinstance(verdict, Incorrect)
    assert verdict.case == "timing"


def test_honest_kernels_may_branch_on_large_sizes(verifier, relu, python_kernel):
    honest = "x = a.load(0)\na.store(0, np.maximum(x, 0))\nif a.large: a.op('Relu', block=9)\nreturn 0"
    verdict = verifier.verify(python_kernel(honest), relu)
    assert isinstance(verdict, Feasible)
    assert verdict.notes == ("no source screen for python",)


@pytest.mark.parametrize(
    "line",
    [
        pytest.param("y.flat[77_777] += 1", id="one element"),
        pytest.param("y[:, :8] = x[:, :8]", id="some columns"),
        pytest.param("y = y.astype(np.float16)", id="half precision"),
        pytest.param("y = np.where(np.abs(x) > 100, 0, y)", id="large magnitudes"),
        pytest.param("y[1::2] = np.minimum(y, 100)[1::2]", id="large magnitudes in every other row"),
    ],
)
def test_every_element_is_compared_at_the_timing_sizes(verifier, relu, python_kernel, line):
    cheat = f"x = a.load(0)\ny = np.maximum(x, 0)\nif a.large:\n    {line}\na.store(0, y)\nreturn 0"
    verdict = verifier.verify(python_kernel(cheat), relu)
    assert isinstance(verdict, Incorrect), verdict
    assert (verdict.cause, verdict.case) == ("mismatch", "timing")
    assert "at the timing sizes" in verdict.feedback


def test_wrong_at_large_sizes_only_is_not_feasible(verifier, relu, python_kernel):
    lazy = (
        "x = a.load(0)\na.store(0, np.maximum(x, 0) if x.size < 1000 else x)\nif x.size > 1000: a.op('x', 9)\nreturn 0"
    )
    verdict = verifier.verify(python_kernel(lazy), relu)
    assert not verdict.feasible
    assert verdict.case == "timing"


@pytest.mark.parametrize(
    ("body", "cause"),
    [("return 7 if a.large else 0", "refused"), ("if a.large: raise TimeoutError\nreturn 0", "timeout")],
)
def test_failures_at_the_timing_sizes(verifier, relu, python_kernel, body, cause):
    verdict = verifier.verify(python_kernel(f"a.store(0, np.maximum(a.load(0), 0))\n{body}"), relu)
    assert isinstance(verdict, Incorrect)
    assert (verdict.cause, verdict.case) == (cause, "timing")


def test_verdicts_are_cached_and_the_device_is_left_alone(relu, python_kernel, make_device):
    class Counting(make_device):
        def fork(self):
            return self

    device = Counting()
    with Verifier(device) as verifier:
        first = verifier.verify(python_kernel(RELU), relu)
        runs = device.runs
        assert verifier.verify(python_kernel(RELU), relu) == first
        assert device.runs == runs
    with Verifier(device) as another:
        assert another.verify(python_kernel(RELU), relu) == first
        assert device.runs == runs
    with Verifier(device, cache=False) as fresh:
        assert fresh.verify(python_kernel(RELU), relu) == first
        assert device.runs == 2 * runs


def test_a_batch_keeps_its_order_and_judges_equal_pairs_once(relu, python_kernel, device):
    good, bad, ugly = python_kernel(RELU), python_kernel("return 0"), python_kernel("return (")
    with Verifier(device, workers=3) as verifier:
        verdicts = verifier.verify_all([(good, relu), (bad, relu), (good, relu), (ugly, relu)] * 3)
    outcomes = [verdict.outcome for verdict in verdicts]
    assert outcomes == ["feasible", "incorrect", "feasible", "uncompilable"] * 3


def test_kernels_of_others_need_a_sandbox(relu, python_kernel, make_device):
    with Verifier(make_device("C")) as verifier:
        with pytest.raises(DeviceUnavailable, match="tier A or B") as error:
            verifier.verify(python_kernel(RELU), relu)
        assert "\n" not in str(error.value)
        assert verifier.verify(python_kernel(RELU, trusted=True), relu).feasible
    with Verifier(make_device("D"), unsafe=True) as unsafe:
        assert unsafe.verify(python_kernel(RELU), relu).sandbox_tier == "D"


def test_another_language_is_refused(verifier, relu):
    with pytest.raises(ConfigError, match="python, not ascendc"):
        verifier.verify(Kernel("int main() {}"), relu)


def test_infrastructure_errors_leave_the_kernel_unjudged(relu, python_kernel, make_device):
    class Broken(make_device):
        count = 0

        def fork(self):
            Broken.made += 1
            return Broken()

        def run(self, build, inputs):
            raise InfrastructureError("the server is gone")

    with Verifier(Broken()) as verifier:
        for _ in range(2):  # and it is not cached
            Broken.made = 0
            verdict = verifier.verify(python_kernel(RELU), relu)
            assert isinstance(verdict, Unjudged)
            assert "the server is gone" in verdict.feedback
            assert Broken.made == 1, "the caller decides whether to try again"


def test_the_request_after_an_infrastructure_error_gets_a_fresh_device(relu, python_kernel, make_device):
    class Flaky(make_device):
        forks = 0

        def fork(self):
            Flaky.forks += 1
            return make_device() if Flaky.forks > 2 else Flaky()

        def build(self, kernel, task):
            raise InfrastructureError("no space left")

    with Verifier(Flaky()) as verifier:
        verdicts = [verifier.verify(python_kernel(RELU), relu) for _ in range(3)]
    assert [verdict.outcome for verdict in verdicts] == ["unjudged", "unjudged", "feasible"]


def test_inspection_is_noted_and_may_decide(relu, python_kernel, device, make_device):
    def inspect(kernel, task):
        return Inspection("cheating", "it copies")

    with Verifier(device, inspect=inspect) as verifier:
        verdict = verifier.verify(python_kernel(RELU), relu)
        assert verdict.feasible
        assert "inspection: cheating; it copies" in verdict.notes
    with Verifier(make_device(), inspect=inspect, inspection_decides=True) as strict:
        assert strict.verify(python_kernel(RELU), relu).rule == "inspection"


def test_a_bug_of_the_verifier_is_raised_not_swallowed(relu, python_kernel, make_device):
    class Buggy(make_device):
        def fork(self):
            return Buggy()

        def build(self, kernel, task):
            raise ZeroDivisionError

    with Verifier(Buggy()) as verifier, pytest.raises(ZeroDivisionError):
        verifier.verify(python_kernel(RELU), relu)


def test_a_text_that_is_too_long_is_not_read(device, relu, python_kernel):
    with Verifier(device, cache=False) as verifier:
        verdict = verifier.verify(Kernel("x" * 1_000_001, "python"), relu)
    assert verdict.outcome == "uncompilable"
    assert "more than 1,000,000 characters" in verdict.feedback
    assert device.builds == 0


def test_a_text_that_takes_too_long_to_parse_is_uncompilable(relu, python_kernel, make_device):
    class Parsing(make_device):
        def fork(self):
            return Parsing()

        def build(self, kernel, task):
            raise Unparsable("The text is too far from C++")

    with Verifier(Parsing(), cache=False) as verifier:
        verdict = verifier.verify(python_kernel(RELU), relu)
    assert (verdict.outcome, verdict.feedback) == ("uncompilable", "The text is too far from C++")


def test_a_carriage_return_ends_a_line_for_every_reader():
    assert Kernel("a // b\r\nc // d\r asm").source == "a // b\nc // d\n asm"


def test_lone_surrogates_do_not_raise(device, relu):
    """A model's reply is JSON, which can hold them; no compiler, database or digest can."""
    kernel = Kernel("# \ud800 \udc80\ndef kernel_launch(a):\n    a.store(0, np.maximum(a.load(0), 0))\n", "python")
    assert kernel.source.startswith("# ? ?\n")
    with Verifier(device, cache=False) as verifier:
        assert verifier.verify(kernel, relu).feasible
