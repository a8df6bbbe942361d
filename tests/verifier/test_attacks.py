"""The standing adversary: every attack of the catalogue ends where it must, and every honest oddity is feasible.

One attack for each cause is a test of every day, all the others are slow tests.
"""

import shutil
from concurrent.futures import Future
from dataclasses import replace

import pytest

from kernel_gym.errors import KernelGymError
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.verdict import Feasible, Incorrect, Unjudged
from kernel_gym.verifier import Verifier
from kernel_gym.verifier.attacks import catalogue, trial
from kernel_gym.verifier.attacks.trial import Result
from kernel_gym.verifier.attacks.variants import variants

ATTACKS = catalogue.load("ascendc")
#: Honest kernels that were refused once are judged every day.
ONCE_REFUSED = ("always_inline", "sum_of_600_terms", "macros_and_joined_lines", "mutable_member")
FEW = (*catalogue.one_per_cause(ATTACKS), *catalogue.select(ATTACKS, names=ONCE_REFUSED))
needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def verifier(tmp_path_factory):
    with Verifier(AscendSim(), cache=tmp_path_factory.mktemp("verdicts"), unsafe=True) as judge:
        yield judge


def check(verifier, attack) -> None:
    (result,) = trial.run(verifier, [attack])
    print(f"{attack.name}: {result.outcome}: {result.verdict.feedback} {result.verdict.notes}")
    assert result.fault == "", result.verdict
    assert result.as_expected, result.verdict
    assert result.verdict.feedback
    assert "root:" not in result.verdict.feedback


@needs_compiler
@pytest.mark.parametrize("attack", FEW, ids=lambda attack: attack.name)
def test_one_attack_of_each_cause(verifier, attack):
    check(verifier, attack)


@needs_compiler
@pytest.mark.slow
@pytest.mark.parametrize("attack", [a for a in ATTACKS if a not in FEW], ids=lambda attack: attack.name)
def test_attack(verifier, attack):
    check(verifier, attack)


def test_names_are_unique_and_no_attack_is_its_honest_kernel():
    assert len({attack.name for attack in ATTACKS}) == len(ATTACKS)
    assert len({attack.kernel.source for attack in ATTACKS}) == len(ATTACKS)


def test_one_per_cause_covers_every_cause():
    assert {cause for attack in FEW for cause in attack.causes} == {c for attack in ATTACKS for c in attack.causes}
    assert len(FEW) < len(ATTACKS)


HONEST = """// task: level1/relu
// cause: honest
// expect: feasible
// about: the base
int first;  // @first
int last;
// @end
"""
HEADER = "// task: level1/relu\n// cause: S1 A9\n// expect: refused\n// about: a try\n"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    (tmp_path / "ascendc" / "honest").mkdir(parents=True)
    (tmp_path / "ascendc" / "honest" / "relu.cpp").write_text(HONEST)
    monkeypatch.setattr(catalogue, "HERE", tmp_path)
    catalogue.load.cache_clear()
    yield tmp_path / "ascendc"
    catalogue.load.cache_clear()


def test_an_attack_is_a_file(folder):
    (folder / "try.cpp").write_text(HEADER + "// untold: 42\nint whole;\n")
    attack, honest = catalogue.load("ascendc")
    assert (attack.name, attack.task, attack.causes, attack.expected) == (
        "try",
        "level1/relu",
        ("S1", "A9"),
        "refused",
    )
    assert (attack.about, attack.honest, attack.untold, attack.kernel.source) == ("a try", "relu", "42", "int whole;\n")
    assert honest.kernel.source == "int first;\nint last;\n\n"


def test_an_attack_may_be_changes_to_the_honest_kernel(folder):
    changes = "// at: first\nint before;\n// instead of: first\nint other;\n// at: end x 3\n/*\n"
    (folder / "try.cpp").write_text(HEADER + changes)
    attack, _ = catalogue.load("ascendc")
    assert attack.kernel.source == "int before;\nint other;\nint last;\n/*/*/*\n\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("int whole;\n", "the header has no 'about'"),
        (HEADER.replace("refused", "never"), "expect 'never' is none of feasible"),
        (HEADER + "// at: nowhere\nint x;\n", "no line marked '// @nowhere'"),
    ],
)
def test_a_damaged_file_is_named(folder, text, words):
    (folder / "try.cpp").write_text(text)
    with pytest.raises(KernelGymError, match=r"^try\.cpp: ") as error:
        catalogue.load("ascendc")
    assert words in str(error.value)


def test_attacks_are_selected_by_name_and_cause():
    assert {a.name for a in catalogue.select(ATTACKS, names=["relu", "softmax"])} == {"relu", "softmax"}
    assert all("S3" in attack.causes for attack in catalogue.select(ATTACKS, causes=["S3"]))
    assert catalogue.select(ATTACKS) == ATTACKS
    with pytest.raises(KernelGymError, match="no attack of cause 'S99'"):
        catalogue.select(ATTACKS, causes=["S99"])
    with pytest.raises(KernelGymError, match="no attacks in 'python'"):
        catalogue.load("python")


SLOW, FAST = Feasible("Correct.", latency=99.0), Feasible("Correct.", latency=50.0)
WRONG = Incorrect("Wrong result of 42.", cause="mismatch")


@pytest.mark.parametrize(
    ("expected", "verdict", "fault"),
    [
        ("feasible", FAST, ""),
        ("feasible", WRONG, "refused"),
        ("refused", WRONG, ""),
        ("refused", SLOW, "got through"),
        ("screen", SLOW, "got through"),
        ("no gain", WRONG, ""),
        ("no gain", SLOW, ""),
        ("no gain", FAST, "got through"),
        ("right", WRONG, ""),
        ("right", FAST, "got through"),
        ("refused", Unjudged("not judged: broken"), "not judged"),
    ],
)
def test_faults_of_results_are_named(expected, verdict, fault):
    attack = replace(ATTACKS[0], expected=expected)
    assert Result(attack, verdict, 100.0).fault == fault
    told = Result(replace(attack, untold="of 42"), verdict, 100.0).fault
    assert told == ("told" if verdict is WRONG else fault)


def test_another_gate_than_expected_is_no_fault_but_not_as_expected():
    result = Result(replace(ATTACKS[0], expected="screen"), WRONG, None)
    assert (result.fault, result.as_expected, result.outcome) == ("", False, "correctness")


def test_a_feasible_kernel_may_be_right_in_a_second_opinion():
    attack = replace(ATTACKS[0], expected="right")
    assert Result(attack, FAST, None, right=True).fault == ""


def test_variants_are_the_same_for_the_same_seed():
    honest = [attack for attack in ATTACKS if attack.expected == "feasible"]
    some = list(variants(honest, 20, 1))
    assert some == list(variants(honest, 20, 1))
    assert all(attack.expected == "feasible" and attack.causes == ("variants",) for attack in some)
    assert len({attack.kernel.source for attack in some}) > 10


class Lenient:
    """A verifier that calls every kernel feasible."""

    def __init__(self, device):
        self.device, self.asked = device, 0

    def submit(self, kernel, task):
        self.asked += 1
        verdict = Future()
        verdict.set_result(FAST)
        return verdict


@needs_compiler
def test_a_wrong_feasible_would_be_noticed_and_equal_texts_are_judged_once():
    honest, wrong = catalogue.select(ATTACKS, names=["relu", "A9_skipped_work_at_large_sizes"])[::-1]
    doubtful = [replace(attack, expected="right") for attack in (honest, wrong, wrong)]
    names = ["fine", "damaged", "damaged_again"]
    with AscendSim() as device:
        lenient = Lenient(device)
        attacks = [replace(attack, name=name) for name, attack in zip(names, doubtful, strict=True)]
        results = list(trial.run(lenient, attacks, workers=2))
    assert [(result.attack.name, result.fault) for result in results] == [
        ("fine", ""),
        ("damaged", "got through"),
        ("damaged_again", "got through"),
    ]
    assert lenient.asked == 3  # the honest kernel for comparison, and two texts
