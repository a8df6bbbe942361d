"""Verdicts on bundles: the same gates as for kernels in one file, with feedback that names the string."""

import pytest
from repository import ROOT

from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.hardware.bundles import launch_text
from kernel_gym.hardware.bundles.host import HostProgram, Operator, Parameter, Tiling
from kernel_gym.hardware.device import Diagnostic
from kernel_gym.kernel import Kernel
from kernel_gym.suites.problem_files import load_file
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable
from kernel_gym.verifier import Verifier

SAMPLES = ROOT / "tests" / "hardware" / "bundles" / "samples"


@pytest.fixture(scope="module")
def verify():
    with Verifier(AscendSim(), cache=False, policy="reference", unsafe=True) as reference:

        def judge(text, name="relu", verifier=reference):
            return verifier.verify(Kernel(text), load_file(SAMPLES / f"{name}.reference.py", trust=True))

        yield judge


def test_a_bundle_passes_all_gates(verify, sample):
    verdict = verify(sample("halves"), "halves")
    assert isinstance(verdict, Feasible), verdict.feedback
    assert verdict.policy == "reference"
    assert 5 < verdict.latency < 20


def test_missing_strings_are_a_compile_error(verify, sample):
    verdict = verify(sample("relu", ("python_bind_src = ", "bind_src = ")))
    assert isinstance(verdict, Uncompilable)
    assert verdict.feedback.startswith("the bundle lacks python_bind_src")


@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (("namespace optiling {\nconst", 'const int n = system("ls");\nnamespace optiling {\nconst'), Cheated, "host operator line 5: a kernel may not call the host system"),
        (("using namespace AscendC;", "static int counter;"), Cheated, "kernel line 3: memory shared by all cores"),
        (("Relu(y, x, n);", "Subs(y, x, 1.0f, n);"), Uncompilable, "kernel line 27:"),
        (("using namespace AscendC;", "#include <vector>"), Uncompilable, "kernel line 3: no such header"),
    ],
)  # fmt: skip
def test_screen_and_dialect_name_the_string_and_the_line(verify, sample, change, kind, words):
    verdict = verify(sample("relu", change))
    assert isinstance(verdict, kind), verdict.feedback
    assert words in verdict.feedback


@pytest.mark.slow
@pytest.mark.parametrize("name", ["relu", "scale", "linear"])
@pytest.mark.parametrize("policy", ["reference", "strict"])
def test_samples_in_different_styles_are_feasible(sample, name, policy):
    with Verifier(AscendSim(), cache=False, policy=policy, unsafe=True) as verifier:
        task = load_file(SAMPLES / f"{name}.reference.py", trust=True)
        verdict = verifier.verify(Kernel(sample(name)), task)
    assert isinstance(verdict, Feasible), verdict.feedback


MODEL = "        return custom_ops_lib.relu_custom(x)"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("change", "kind", "words"),
    [
        (("Relu(y, x, n);", "Abs(y, x, n);"), Incorrect, "Wrong result"),
        (("extern \"C\" __global__ __aicore__ void relu_custom", "extern \"C\" __global__ __aicore__ void relu"), Uncompilable, "no kernel function relu_custom"),
        (("tiling.set_tileLength(4096)", "tiling.set_tileLength(40960)"), Incorrect, "CAPACITY kernel line 15"),
        (("context->SetBlockDim(BLOCK_DIM);", ""), Incorrect, "HOST host operator: SetBlockDim: 0"),
        (("aclnnReluCustom", "aclnnReluCustomV2"), Incorrect, "BINDING Python binding: aclnnReluCustomV2 does not exist"),
        (("self, result)", "result)"), Incorrect, "takes 1 inputs, 0 attributes and 1 outputs"),
        (("at::empty_like(self);", "at::full_like(self, 3.0);"), Feasible, "Correct"),
        (("at::empty_like(self);", "self.clone();\n    result = self;"), Feasible, "Correct"),
        (("Relu(y, x, n);", "Relu(y, x, n - 1);"), Incorrect, "UNINITIALISED kernel line 31"),
        (("at::empty_like(self);", "at::empty({3}, self.options());"), Incorrect, "GM_"),
        ((MODEL, "        return custom_ops_lib.relu(x)"), Incorrect, "MODEL model line 12: AttributeError"),
        ((MODEL, "        return custom_ops_lib.relu_custom(x)[:1]"), Incorrect, "ModelNew returns float32[1, 300]"),
        ((MODEL, "        return torch.relu(x)"), Cheated, "launches no kernel"),
        ((MODEL, "        custom_ops_lib.relu_custom(x)\n        return torch.relu(x)"), Cheated, "the same without the kernel"),
        ((MODEL, "        while True: pass"), Incorrect, "took longer than"),
        (("class ModelNew", "class Another"), Incorrect, "it defines no class ModelNew"),
    ],
)  # fmt: skip
def test_what_is_wrong_with_a_bundle_is_told(verify, sample, monkeypatch, change, kind, words):
    from kernel_gym.hardware.bundles import model_process

    monkeypatch.setattr(model_process, "SECONDS", 15.0)
    verdict = verify(sample("relu", change))
    assert isinstance(verdict, kind), verdict.feedback
    assert words in verdict.feedback


@pytest.mark.slow
def test_torch_that_computes_beside_the_kernel_is_noted_and_refused_by_strict(verify, sample):
    text = sample("relu", (MODEL, "        return custom_ops_lib.relu_custom(x * 2) / 2"))
    verdict = verify(text)
    assert isinstance(verdict, Feasible), verdict.feedback
    assert any("torch computes input 0 of launch 1, output 0" in note for note in verdict.notes)
    with Verifier(AscendSim(), cache=False, policy="strict", unsafe=True) as strict:
        refused = verify(text, verifier=strict)
    assert isinstance(refused, Cheated)
    assert refused.rule == "torch-computes"


@pytest.mark.slow
def test_the_workspace_has_the_size_that_the_tiling_function_asks_for(verify, sample):
    verdict = verify(sample("halves", ("perBlock * cores * sizeof(float);", "64;")), "halves")
    assert isinstance(verdict, Incorrect)
    assert "GM_" in verdict.feedback
    assert "kernel line" in verdict.feedback


PROGRAM = HostProgram(
    ROOT,
    Operator("A", (Parameter("x", False, ("float16", "float32")),), (Parameter("y", False, ()),), ()),
    "T",
    "struct T {};\n",
)
HEAD = 'extern "C" __global__ __aicore__ void a(GM_ADDR x, GM_ADDR y, GM_ADDR workspace, GM_ADDR data) {}'


def test_the_kernel_s_lines_keep_their_numbers():
    text = launch_text.compose(f"// one\n{HEAD}", "a", PROGRAM, 1)
    behind = text.partition('#line 1 "kernel.cpp"\n')[2]
    assert behind.splitlines()[1] == HEAD
    assert "#define DTYPE_X float\n" in text
    assert "DTYPE_Y" not in text
    assert "TILING_KEY_IS(value) (::kernel_gym_bundle::key(data) == (value))" in text


def test_a_kernel_takes_the_operator_s_tensors_a_workspace_and_a_tiling():
    wrong = launch_text.compose(HEAD.replace("GM_ADDR y, ", ""), "a", PROGRAM, 0)
    assert isinstance(wrong, Diagnostic)
    assert wrong.message == "a takes 3 arguments, the operator has x, y, workspace, tiling"


def test_tiling_data_travels_in_the_integers_of_a_launch():
    assert launch_text.integers([0, -1, 1], Tiling(b"\1" * 9, 7, 5, 0)) == (7, 0, -1, 1, 5, 0x0101010101010101, 1)


def test_all_lines_from_the_author_s_first_on_are_screened():
    begin = 'static_assert ( true , "the kernel begins" ) ;\n'
    text = f'# 2 "kernel_gym"\nours;\n{begin}# 1 "kernel.cpp"\ntheirs;\n# 2 "kernel_gym"\nhost;\n'
    assert launch_text.of_author(text) == f'{begin}# 1 "kernel.cpp"\ntheirs;\n# 2 "kernel.cpp"\nhost;\n'
    forged = text.replace("theirs;", f'theirs;\n{begin}# 1 "kernel_gym"\nhidden;')
    assert "hidden;" in launch_text.of_author(forged)
    assert '"kernel_gym"' in launch_text.of_author(forged)  # the screen refuses it
