"""Bundles that try to earn a verdict, a file or a number that is not theirs."""

import os
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from repository import ROOT

from kernel_gym.confinement import building
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.bundles import call, host, model_process, model_server, tilings, time_left
from kernel_gym.hardware.bundles.host import Attribute, HostFailure
from kernel_gym.hardware.bundles.model_process import ModelFailure
from kernel_gym.hardware.bundles.provenance import Origin
from kernel_gym.hardware.bundles.text import read
from kernel_gym.hardware.bundles.time_left import TimeLeft
from kernel_gym.hardware.device import Fault, Inputs, Run
from kernel_gym.kernel import Kernel
from kernel_gym.suites import find_task
from kernel_gym.suites.problem_files import load_file
from kernel_gym.tasks.specs import Signature
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.correctness import failed

SAMPLES = ROOT / "tests" / "hardware" / "bundles" / "samples"
MODEL = "        return custom_ops_lib.relu_custom(x)"
#: A binding that takes its output from Python.
GIVEN = (
    "(const at::Tensor &self) {\n    at::Tensor result = at::empty_like(self);",
    "(const at::Tensor &self, at::Tensor &result) {",
)
COPIES = ("Relu(y, x, n);", "Adds(y, x, 0.0f, n);")
SERVER = "import gc, json\nfrom kernel_gym.tasks import messages\nserver = next(o for o in gc.get_objects() if type(o).__name__ == 'Server')\n"


def model(text):
    return MODEL, "\n".join("        " + line for line in text.splitlines())


def answer(reply):
    """Return a model that writes to the pipe of the process itself."""
    return model(f"{SERVER}messages.send(server._outgoing, json.dumps({reply!r}))\nreturn x")


def before_host(text):
    return "namespace optiling {\nconst", f"{text}\nnamespace optiling {{\nconst"


@pytest.mark.slow
def test_a_link_in_place_of_the_file_of_errors_is_not_followed(sample, tmp_path):
    (tmp_path / "secret").write_text("the secret")
    link = f"import os\nos.symlink({str(tmp_path / 'secret')!r}, 'errors')\nos._exit(1)"
    verdict = judge(sample("relu", model(link)), "reference")
    assert "ended its process (status 1)" in verdict.feedback
    assert "secret" not in verdict.feedback


def test_a_response_is_a_plain_file(tmp_path):
    (tmp_path / "file").write_text("words")
    (tmp_path / "link").symlink_to(tmp_path / "file")
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    texts = [host._response(tmp_path / name) for name in ("file", "link", "folder", "pipe", "missing")]
    assert texts == ["words", None, None, None, None]


def test_folders_that_are_nested_too_deep_for_python_are_removed(tmp_path):
    home = os.getcwd()
    (tmp_path / "deep").mkdir()
    os.chdir(tmp_path / "deep")
    try:
        for _ in range(1500):
            os.mkdir("d")
            os.chdir("d")
    finally:
        os.chdir(home)
    building.remove(tmp_path / "deep")
    assert not (tmp_path / "deep").exists()


@pytest.mark.parametrize(
    "text",
    [
        "struct A { uint32_t n; float f[3]; unsigned int k; std::int64_t z; };\nstruct B { alignas(8) A a; TCubeTiling cube; };\n",
        "struct E { uint64_t nothing; };\n",
    ],
)
def test_tiling_structs_become_device_code(text):
    assert host._structs(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "struct A { inline static int shared; };\n",
        "static int shared;\n",
        "struct A { uint32_t n; }; int shared;\n",
        "struct A { int f() { return 1; } };\n",
        'struct A { int n = __builtin_printf("x"); };\n',
        "struct A { Unknown n; };\n",
        "#define float double\n",
    ],
)
def test_other_text_does_not_become_device_code(text):
    with pytest.raises(HostFailure, match="fields of arithmetic types"):
        host._structs(text)


@pytest.mark.parametrize(("kind", "value"), [("float", 10**400), ("string", "\ud800"), ("ints", [float("nan"), "1"])])
def test_attributes_that_c_does_not_have_are_refused(kind, value):
    with pytest.raises(HostFailure, match="the attribute a is"):
        host._value(Attribute("a", kind), value)


X = torch.ones(2, 3)


@pytest.mark.parametrize(
    "reply",
    [
        {"arguments": [1], "addresses": [0]},
        {"arguments": 5, "addresses": [0]},
        {"arguments": [["tensor", 1]], "addresses": [0]},
        {"arguments": [["tensor", 0], ["tensor", 0]], "addresses": [0]},
        {"arguments": [["tensor", 0]], "addresses": ["0"]},
        {"arguments": [["tensor", 0]], "addresses": []},
        {"arguments": [["tensor", True]], "addresses": [0]},
        {"arguments": [["tensor", 0.0]], "addresses": [0]},
        {"arguments": [["tensor"]], "addresses": [0]},
        {"arguments": [["tensor", 0]], "addresses": [0]},
        {"arguments": [["tensor", 0]], "addresses": [0], "made": [True]},
        {},
    ],
)
def test_a_launch_that_is_no_launch_is_the_model_s_fault(reply):
    with pytest.raises(ModelFailure, match="not its own"):
        model_process._launched(reply | {"name": "aclnnA"}, [X], lambda *_: {})


@pytest.mark.parametrize("value", [{"a": 1}, [{}], [[[[1]]]]], ids=["object", "objects", "deep"])
def test_a_launch_takes_plain_values(value):
    with pytest.raises(ModelFailure, match="numbers, strings and lists of them"):
        model_process._launched({"arguments": [["value", value]], "addresses": []}, [], lambda *_: {})


@pytest.mark.parametrize("value", [None, 1, 0.5, "text", [1, 2], [[[True]]]])
def test_plain_values_reach_the_launch(value):
    given = []
    model_process._launched(
        {"arguments": [["value", value]], "addresses": [], "made": []}, [], lambda *launch: given.append(launch)
    )
    assert given[0][1] == [value]


def a_call(sample, **changes):
    built = call.BuiltBundle(read(sample("relu")), None, None, 0, None, TimeLeft(60.0, "all calls"))
    return call.Call(built, sample("relu"), Inputs(Signature((), ()), **changes), None, (), 100, None)


def test_an_address_stands_for_one_content(sample):
    one = a_call(sample)
    a, b = np.zeros(4, np.float32), np.ones(4, np.float32)
    assert [one._number(7, a), one._number(7, a.copy()), one._number(8, b), one._number(7, b)] == [0, 0, 1, 2]
    assert one._number(8, b.reshape(2, 2)) == 1  # a view


def test_a_line_that_a_text_does_not_have_is_not_told(sample):
    one = a_call(sample)
    known = one.failed(ModelFailure("model", "words", 3)).fault
    assert known.place == "model line 3"
    unknown = one.failed(ModelFailure("model", "words", 123456)).fault
    assert (unknown.place, unknown.line) == ("model", None)


def test_a_message_can_be_written_to_a_file(sample):
    fault = a_call(sample).failed(ModelFailure("model", "half a character \ud800" + 1000 * "x")).fault
    assert fault.message.startswith("half a character ?x")
    assert len(fault.message) == 400


@pytest.mark.parametrize("rule", ["MODEL", "BINDING", "HOST"])
def test_the_author_s_words_are_told_at_public_sizes_only(rule):
    run = Run("fault", fault=Fault(rule, "RuntimeError: abcabc", 3, place="model line 3"))
    assert "abcabc" in failed(run, "at the public sizes", "public").feedback
    assert "abcabc" not in failed(run, "at a hidden size", "hidden").feedback
    assert "abcabc" not in failed(run, "at the timing sizes", "timing").feedback


def test_all_launches_of_a_call_share_one_budget(sample):
    one = a_call(sample, effort=2)
    one.runs = [Run("ok", spent=150)]
    assert not one._is_over_budget(Run("ok", spent=50))
    assert one._is_over_budget(Run("ok", spent=51))
    assert one._stopped(Run("ok", spent=51)).fault.rule == "BUDGET"


@pytest.mark.parametrize(
    ("kind", "role", "made", "nbytes"),
    [
        ("input", "input", False, None),
        ("input", "output", False, None),
        ("input", "memory", False, 800),  # the next call would need it again
        ("result", "memory", False, None),
        ("result", "input", True, 800),  # a copy, or an operation that changed nothing
        ("moved", "input", False, 800),
        ("constant", "input", False, None),  # of the constructor
        ("constant", "input", True, 400),  # a fill
        ("constant", "memory", False, 400),
        ("constant", "output", False, 400),
    ],
)
def test_what_torch_moves_copies_or_fills_has_a_price(sample, kind, role, made, nbytes):
    one = a_call(sample, poison=0xA5)
    one._probe = SimpleNamespace(origin=lambda *_: Origin(kind, 0, 0, 100))
    assert one._note("it", np.zeros(100, np.float32), role, made) == bool(nbytes)
    assert one.moved == ([("it", nbytes)] if nbytes else [])
    if kind in ("input", "result"):
        assert not one._note("nothing", np.zeros(0, np.float32), role, made)


def test_a_copy_that_has_its_price_as_an_input_has_no_other_as_memory(sample):
    one = a_call(sample)
    one._probe = SimpleNamespace(origin=lambda *_: Origin("input", 0, 0, 100))
    assert one._note("it", np.zeros(100, np.float32), "memory", made=False, is_paid=True)
    assert one.moved == []


def test_a_result_that_is_used_again_after_a_launch_wrote_over_it_was_copied(sample):
    one, result = a_call(sample), np.ones(100, np.float32)
    one._probe = SimpleNamespace(origin=lambda *_: Origin("result", 3, 0, 100))
    for role in ("input", "memory", "memory", "input", "output"):
        one._note(role, result, role, made=False)
    assert one.moved == [("memory", 800), ("input", 800), ("output", 800)]
    one._probe = SimpleNamespace(origin=lambda *_: Origin("result", 3, 100, 200))
    assert not one._note("another part", result, "memory", made=False)


def test_memory_that_nobody_wrote_has_no_price(sample):
    one = a_call(sample, poison=0xA5)
    one._probe = SimpleNamespace(origin=lambda *_: Origin("constant"))
    one._note("it", np.full(400, 0xA5, np.uint8).view(np.float32), "memory", made=True)
    assert one.moved == []


#: Models whose launch has a task's input as memory of its output, and a process that says that torch copied nothing.
HIDDEN = f"{SERVER}server._made = lambda tensors: []\n"
OVER_INPUTS = {
    "the input itself": "return custom_ops_lib.relu_custom(x, x)",
    "in another shape": "return custom_ops_lib.relu_custom(x.view(-1), x.view(-1)).view(x.shape)",
    "at another place": f"{HIDDEN}return custom_ops_lib.relu_custom(x, x.clone())",
    "and not as input": "z = custom_ops_lib.relu_custom(x, torch.empty_like(x))\nreturn custom_ops_lib.relu_custom(z, x)",
    "a part of it": "y = custom_ops_lib.relu_custom(x, torch.empty_like(x))\ncustom_ops_lib.relu_custom(x[:1], x[1:2])\nreturn y",
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow if i else ()) for i, name in enumerate(OVER_INPUTS)]
)
def test_an_input_that_is_the_memory_of_an_output_is_timed_as_a_copy(sample, name):
    """A kernel could add to it, and never read it."""
    verdict = judge(sample("relu", GIVEN, model(OVER_INPUTS[name])), "reference")
    assert isinstance(verdict, Feasible), verdict.feedback
    assert any("torch puts together the content of output 0 of launch" in note for note in verdict.notes)


def test_tensors_that_torch_wrote_in_a_call_are_known_by_their_memory():
    server, x, y = model_server.Server(None, None), torch.ones(4, 3), torch.ones(3)
    server._keep([x, y])
    assert server._made([x, x[1:], x.t(), x.clone(), torch.zeros(3), x[torch.arange(4)], y]) == [3, 4, 5]
    x.clamp_(0)
    assert server._made([x, x[1:], y]) == [0, 1]
    with torch.inference_mode():
        assert server._made([torch.zeros(3)]) == [0]


def test_tensors_of_the_constructor_are_none_of_the_call():
    part = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3))
    part.tables = {"of": [torch.arange(4)]}
    assert {tensor.numel() for tensor in model_server._tensors_of(part)} == {1, 3, 4, 6}


@pytest.mark.slow
def test_a_fill_and_a_copy_by_torch_are_timed(sample):
    def latency(text):
        verdict = judge(sample("relu", GIVEN, model(f"return {text}")), "strict")
        assert isinstance(verdict, Feasible), verdict.feedback
        return verdict.latency

    unset = latency("custom_ops_lib.relu_custom(x, torch.empty_like(x))")
    assert latency("custom_ops_lib.relu_custom(x, torch.zeros_like(x))") > unset + 3
    assert latency("custom_ops_lib.relu_custom(x, torch.empty_like(x))[torch.arange(x.shape[0])]") > unset + 3
    assert latency("custom_ops_lib.relu_custom(x, torch.empty_like(x)).clamp_(0)") > unset + 3


def judge(text, policy, reference=SAMPLES / "relu.reference.py"):
    with Verifier(AscendSim(), cache=False, policy=policy, unsafe=True) as verifier:
        return verifier.verify(Kernel(text), load_file(reference, trust=True))


@pytest.mark.slow
def test_a_copy_that_a_launch_changes_in_place_is_timed_once(sample):
    def latency(text):
        verdict = judge(sample("relu", ("at::Tensor result = at::empty_like(self);", text[0]), text[1]), "strict")
        assert isinstance(verdict, Feasible), verdict.feedback
        return verdict.latency

    call = "EXEC_NPU_CMD(aclnnReluCustom, self, result);"
    given = latency(("at::Tensor result = at::empty_like(self);", (call, call)))
    one, other = (
        latency(("at::Tensor result = self.clone();", (call, f"EXEC_NPU_CMD(aclnnReluCustom, {name}, result);")))
        for name in ("self", "result")
    )
    assert given < one == pytest.approx(other, rel=0.01)


COPIED = """#define TWICE(x) (((x) * 0.5f + 1.5f) * 0.5f + 1.5f)
#define SIXTEEN(x) TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(TWICE(x))))))))
struct Copied {
    float sum;
    __aicore__ inline Copied(const Copied &other, float sum = SIXTEEN(SIXTEEN((float)GetBlockIdx()))) : sum(sum) {}
};

extern "C" __global__"""
USED = """float sum = 0;
    for (int i = 0; i < 1000; ++i) {
        GET_TILING_DATA_WITH_STRUCT(Copied, copied, tiling);
        sum += copied.sum;
    }
    if (sum > 0) op.Process();"""


@pytest.mark.slow
def test_work_in_the_copy_constructor_of_a_tiling_struct_is_not_free(sample):
    """`GET_TILING_DATA_WITH_STRUCT` calls it, and evaluates its default arguments."""
    plain = judge(sample("relu"), "strict")
    worked = judge(sample("relu", ('extern "C" __global__', COPIED), ("op.Process();", USED)), "strict")
    assert isinstance(worked, Feasible), worked.feedback
    assert worked.latency > plain.latency + 10


def test_an_answer_that_torch_put_into_the_output_is_not_the_kernel_s(sample):
    text = sample(
        "relu", GIVEN, ("    op.Process();", ""), model("return custom_ops_lib.relu_custom(x, torch.relu(x))")
    )
    verdict = judge(text, "strict")
    assert isinstance(verdict, Cheated), verdict.feedback
    assert verdict.feedback == "TORCH_COMPUTES: torch computes the content of output 0 of launch 1: the kernel has to"


def test_an_output_at_the_address_of_an_input_is_other_memory_for_the_cache(sample):
    """What is written there does not bring the input into the cache: a read behind it would find what was written."""
    one = a_call(sample, poison=0xA5)
    x, first = np.ones(4, np.float32), 64
    given = [one._number(first, x), one._number(first, x)]
    assert given == [0, 0]
    assert one._number(first, x, given) == 1
    assert one._number(first, x) == 1


def test_which_input_an_output_is_may_not_depend_on_values(sample):
    """It carries a bit. The values of the second call are all larger than 1e10."""
    text = sample(
        "relu", GIVEN, model("return custom_ops_lib.relu_custom(x, x if x.max() < 1e10 else torch.empty_like(x))")
    )
    verdict = judge(text, "strict")
    assert isinstance(verdict, Cheated), verdict.feedback
    assert "which tensors launch 1 gets, the content of output 0 of launch 1: the kernel has to" in verdict.feedback


@pytest.mark.slow
def test_which_of_two_equal_constants_a_launch_gets_may_not_depend_on_values(sample):
    """The values of the second call are all larger than 1e10."""
    constants = "one, other = torch.zeros(8), torch.zeros(8)\ncustom_ops_lib.relu_custom(one)\n"
    launches = "custom_ops_lib.relu_custom({})\nreturn custom_ops_lib.relu_custom(x)"
    verdict = judge(sample("relu", model(constants + launches.format("one if x.max() < 1e10 else other"))), "strict")
    assert isinstance(verdict, Cheated), verdict.feedback
    assert verdict.feedback == "TORCH_COMPUTES: torch computes which tensors launch 2 gets: the kernel has to"
    for argument in ("one", "other"):
        verdict = judge(sample("relu", model(constants + launches.format(argument))), "strict")
        assert isinstance(verdict, Feasible), verdict.feedback


def test_every_launch_has_variables_without_values_of_its_own(sample, monkeypatch):
    """Only the verifier's secret tells what they hold; the model's process is not told the key."""
    launched, asked = [], []
    run, forward = AscendSim.run, model_process.ModelProcess.forward

    def ran(device, build, inputs):
        launched.append(inputs)
        return run(device, build, inputs)

    def called(process, request, *others):
        asked.append(request)
        return forward(process, request, *others)

    monkeypatch.setattr(AscendSim, "run", ran)
    monkeypatch.setattr(model_process.ModelProcess, "forward", called)
    verdict = judge(sample("relu", model("custom_ops_lib.relu_custom(x)\n" + MODEL.strip())), "reference")
    assert isinstance(verdict, Feasible), verdict.feedback
    launches = [inputs for inputs in launched if inputs.case is None]
    assert len({(inputs.key, inputs.launch) for inputs in launches}) == len(launches) > 2
    assert {inputs.launch for inputs in launches} == {0, 1}
    assert not {str(inputs.key) for inputs in launches} & {str(value) for each in asked for value in each.values()}
    assert not any("key" in each for each in asked)


@pytest.fixture
def tiled(monkeypatch):
    """Return which processes lived when the tiling function ran, for each of its runs."""
    lived, started, tile, start = [], [], host.tile, model_process.ModelProcess.__init__

    def run(program, request, left):
        lived.append([process for process in started if process.alive])
        return tile(program, request, left)

    def begin(process):
        start(process)
        started.append(process)

    monkeypatch.setattr(host, "tile", run)
    monkeypatch.setattr(model_process.ModelProcess, "__init__", begin)
    return lived


@pytest.mark.parametrize("policy", ["strict", "reference"])
def test_a_tiling_function_runs_while_no_process_knows_values(sample, tiled, policy):
    verdict = judge(sample("relu"), policy)
    assert isinstance(verdict, Feasible), verdict.feedback
    assert tiled
    assert not any(tiled)


@pytest.mark.slow
def test_a_tiling_that_a_process_with_the_values_could_set_is_computed(sample, tiled):
    """The values of the second call are all larger than 1e10: it makes another request."""
    text = sample("relu", model("return custom_ops_lib.relu_custom(x[:1] if x.min() > 1e10 else x)"))
    verdict = judge(text, "strict")
    assert isinstance(verdict, Cheated), verdict.feedback
    assert "what launch 1 asks the tiling function" in verdict.feedback
    assert any(tiled)


def test_a_tiling_is_made_once_and_before_the_values_of_its_case_are_known(monkeypatch):
    runs, kept = [], tilings.Tilings()
    monkeypatch.setattr(host, "tile", lambda _, request, left: runs.append(request) or request)
    kept.make(None, ["a", "b", "a"], "case", LONG)
    kept.make(None, ["c"], "case", LONG)  # with other poison
    kept.make(None, ["b", "d"], "other case", LONG)
    assert runs == ["a", "b", "d"]
    assert [kept.find(request) for request in "abcd"] == ["a", "b", None, "d"]


def test_a_tiling_function_that_fails_is_not_asked_again(monkeypatch):
    asked = []

    def fail(_, request, left):
        asked.append(request)
        raise HostFailure("it fails", late=True)

    kept = tilings.Tilings()
    monkeypatch.setattr(host, "tile", fail)
    kept.make(None, ["a", "b"], "case", LONG)
    kept.make(None, ["a", "b"], "other case", LONG)
    assert asked == ["a"]  # its launch ends the call
    with pytest.raises(HostFailure, match="it fails") as raised:
        kept.find("a")
    assert raised.value.late


LONG = TimeLeft(1000.0, "all calls")


def test_time_is_taken_from_all_limits_at_once(monkeypatch):
    moments = iter([0.0, 7.0, 20.0, 24.0])
    monkeypatch.setattr(time_left.time, "monotonic", lambda: next(moments))
    verdict = TimeLeft(10.0, "all calls")
    for used, left, why in ((7, 1.0, "the model took longer than 8 s"), (4, 0.0, "all calls took longer than 10 s")):
        one = TimeLeft(8.0, "the model", verdict)
        with one.spend():
            pass
        assert (one.seconds, one.why()) == (left, why), used


def test_a_larger_task_has_more_time_up_to_a_limit(monkeypatch):
    relu, seconds = find_task("level1/relu"), []
    for nbytes in (1 << 60, relu.instance(relu.timing).signature.nbytes // 2, 1):
        monkeypatch.setattr(time_left, "BYTES", nbytes)
        seconds.append(time_left.of_verdict(relu).seconds)
    assert seconds == [300.0, 600.0, 1200.0]


@pytest.mark.parametrize(
    ("limits", "changes", "words"),
    [
        pytest.param((time_left, 6.0), (model("import time\ntime.sleep(2)\nreturn custom_ops_lib.relu_custom(x)"),), "the Python and the tiling functions of all calls took longer than 6 s", marks=pytest.mark.slow),
        ((tilings, 3.0), (before_host("#include <chrono>\nstatic void nap() { const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(1); while (std::chrono::steady_clock::now() < end); }"),
          ("context->SetBlockDim(BLOCK_DIM);", "nap(); context->SetBlockDim(BLOCK_DIM);"),
          model("for k in range(1, 30): custom_ops_lib.relu_custom(x[:k])\nreturn custom_ops_lib.relu_custom(x)")), "the tiling function for all launches of a call took longer than 3 s"),
    ],
)  # fmt: skip
def test_all_calls_and_all_tilings_of_a_call_have_one_limit(sample, monkeypatch, limits, changes, words):
    monkeypatch.setattr(limits[0], "SECONDS", limits[1])
    verdict = judge(sample("relu", *changes), "reference")
    assert isinstance(verdict, Incorrect), verdict.feedback
    assert verdict.cause == "timeout"
    assert words in verdict.feedback


LOCK = """#include <fcntl.h>
static uint32_t told() {
    struct flock lock = {};
    lock.l_type = F_WRLCK, lock.l_len = 1 << 20;
    const int told = fcntl(open64("/usr/lib/os-release", O_RDONLY), F_GETLK, &lock);
    return told == 0 && lock.l_type != F_UNLCK ? 1 : 40;
}"""


def test_locks_tell_a_tiling_function_nothing(sample, monkeypatch):
    """A model that locks a file by its values changes neither the number of blocks nor the latency."""
    lock = "import fcntl, os\nfile = os.open('/usr/lib/os-release', os.O_RDONLY)\n"
    lock += "try: fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB, 1, 1000)\nexcept OSError: pass\n"
    changes = before_host(LOCK), ("SetBlockDim(BLOCK_DIM)", "SetBlockDim(told())")
    text = sample("relu", *changes, model(f"{lock}return custom_ops_lib.relu_custom(x)"))
    asked: list[host.Tiling] = []
    tile = host.tile
    monkeypatch.setattr(host, "tile", lambda *arguments: asked.append(tile(*arguments)) or asked[-1])
    assert isinstance(judge(text, "strict"), Feasible | Incorrect)
    assert {tiling.blocks for tiling in asked} == {40}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ((COPIES, model("return custom_ops_lib.relu_custom(torch.relu(x))")), Cheated, "torch computes input 0 of launch 1"),
        ((model("import sys\nf = sys._getframe()\nwhile 'request' not in f.f_locals: f = f.f_back\n"
                "if f.f_locals['request']['case'][1] != 'timing': return custom_ops_lib.relu_custom(x)\n"
                "return torch.relu(x) * 1.0000001 + 0 * custom_ops_lib.relu_custom(x)"),), Cheated, "torch computes output N"),
        ((model("if x.shape[0] == 64: return custom_ops_lib.relu_custom(x)\nraise RuntimeError('hidden')"),), Incorrect, "the model fails"),
        ((model("return custom_ops_lib.relu_custom(x.t().contiguous()).t()"),), Feasible, "Correct"),
        ((GIVEN, model("return custom_ops_lib.relu_custom(x, torch.empty_like(x))")), Feasible, "Correct"),
    ],
)  # fmt: skip
def test_strict_verdicts_are_about_the_kernel_s_work(sample, changes, kind, words):
    verdict = judge(sample("relu", *changes), "strict")
    assert isinstance(verdict, kind), verdict.feedback
    assert words in verdict.feedback
    assert "hidden'" not in verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize(
    ("changes", "kind", "words"),
    [
        ((before_host('#include <unistd.h>\nstatic int a = (unlinkat(-100, "request", 0), symlinkat("/tmp/none", -100, "response"), 0);'),), Feasible, "Correct"),  # refused
        ((before_host('static std::string a = optiling::tiling_definitions()["ReluCustom"] = "static int shared;";'),), Uncompilable, "fields of arithmetic types"),
        ((answer({"kind": "launch", "arguments": 5}),), Incorrect, "not its own"),
        ((answer({"kind": "launch", "arguments": [["value", "x" * (1 << 16)]]}),), Incorrect, "more than 65,536 characters"),
        ((answer({"kind": "error", "part": "Correct. 1 us", "message": "x", "line": 123456789}),), Incorrect, "MODEL model: x"),
        ((model("while True: custom_ops_lib.relu_custom(x)"),), Incorrect, "more than 3 launches"),
        ((model("return torch.zeros(1 << 20)"),), Incorrect, "the model sent what no launch and no result has: more tensors"),
        ((model("return custom_ops_lib.relu_custom(x).reshape((1,) * 65 + x.shape)"),), Incorrect, "a tensor of more than 32 dimensions"),
        ((model("return custom_ops_lib.relu_custom(x.reshape((1,) * 65 + x.shape)).reshape(x.shape)"),), Incorrect, "a tensor of more than 32 dimensions"),
        ((model("import os\nfor _ in range(3000):\n    os.mkdir('d'); os.chdir('d')\nreturn custom_ops_lib.relu_custom(x)"),), Feasible, "Correct"),
    ],
)  # fmt: skip
def test_hostile_bundles_get_a_verdict(sample, monkeypatch, changes, kind, words):
    monkeypatch.setattr(call, "MOST_LAUNCHES", 3)
    monkeypatch.setattr(model_process, "LEAST_BYTES", 1 << 20)
    verdict = judge(sample("relu", *changes), "reference")
    assert isinstance(verdict, kind), verdict.feedback
    assert words in verdict.feedback
    assert "123456789" not in verdict.feedback


@pytest.mark.slow
def test_torch_s_work_is_timed(sample, tmp_path):
    reference = tmp_path / "big.py"
    reference.write_text((SAMPLES / "relu.reference.py").read_text().replace("rows = 64", "rows = 16384"))
    honest = judge(sample("relu"), "reference", reference)
    sham = "return torch.relu(x) + 0 * custom_ops_lib.relu_custom(x[:1].contiguous()).sum()"
    cheap = judge(sample("relu", model(sham)), "reference", reference)
    assert isinstance(cheap, Feasible), cheap.feedback
    assert cheap.latency > honest.latency


@pytest.mark.slow
def test_nothing_that_host_code_writes_survives_its_run(sample, tmp_path):
    counting = (
        "    context->SetBlockDim(BLOCK_DIM);",
        '    int n = 0; { std::ifstream in("calls"); in >> n; } std::ofstream("calls") << n + 1;\n'
        "    context->SetBlockDim(n + 1);",
    )
    program = host.build(read(sample("relu", counting, before_host("#include <fstream>"))), tmp_path)
    x = host.TensorArgument((7, 300), "float32")
    request = host.request(program.operator, [x], [x], [], (48, 24, 196608, 524288))
    assert [host.tile(program, request).blocks for _ in range(2)] == [1, 1]
