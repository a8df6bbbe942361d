"""Fidelity: figures of a corpus, its file, and a small corpus of our own kernels."""

import csv
import json
import shutil

import pytest
from repository import ROOT
from script import run_script

from kernel_gym.errors import ConfigError
from kernel_gym.experiments.analysis import fidelity
from kernel_gym.experiments.analysis.fidelity import Comparison
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable

HONEST = ROOT / "tests" / "verifier" / "honest"
BUNDLES = ("relu", "halves", "scale", "linear")


def row(hardware, here, hardware_us=None, here_us=None, group=""):
    return Comparison("k", "r", group, hardware, here, hardware_us, here_us, "why")


def test_the_interval_is_wilson_s():
    # 57 of 59 accepted: 96.6% [88.5, 99.1].
    assert fidelity.rate(57, 59).text == "57 of 59, 96.6% [88.5, 99.1]"


def test_confusion_and_agreement_count_acceptance():
    rows = [row("pass", "pass"), row("pass", "fault"), row("wrong", "compile_error"), row("wrong", "pass")]
    rows += [row("fault", "cheated"), row("compile_error", "unjudged")]
    assert fidelity.confusion(rows)["wrong"] == dict.fromkeys(fidelity.OURS, 0) | {"compile_error": 1, "pass": 1}
    counts = {name: (rate.count, rate.total) for name, rate in fidelity.agreement(rows).items()}
    assert counts == {"pass": (1, 2), "compile_error": (0, 1), "wrong": (1, 2), "fault": (1, 1)}
    assert [c.here for c in fidelity.disagreements(rows)] == ["fault", "pass", "unjudged"]


def test_latency_errors_by_group():
    rows = [row("pass", "pass", 10, 11, "a"), row("pass", "pass", 20, 15, "a"), row("pass", "pass", 40, 60, "b")]
    rows += [row("pass", "fault", 5, None, "a"), row("wrong", "pass", None, 7, "a")]
    whole, a, b = fidelity.latency_errors(rows)
    assert (whole.group, whole.count, whole.tau) == ("", 3, 1.0)
    assert whole.median_error == pytest.approx(0.25)
    assert whole.bias == pytest.approx(0.1)
    assert (a.group, a.count, a.near) == ("a", 2, 0.5)
    assert (b.count, b.tau) == (1, None)


@pytest.mark.parametrize(
    ("verdict", "name"),
    [
        (Feasible("", latency=1.0), "pass"),
        (Uncompilable(""), "compile_error"),
        (Incorrect("", cause="mismatch"), "wrong"),
        (Incorrect("", cause="timeout"), "fault"),
        (Cheated(""), "cheated"),
        (None, "unjudged"),
    ],
)
def test_verdicts_have_counterparts_on_hardware(verdict, name):
    assert fidelity.outcome(verdict) == name


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("kernel,reference\na,b\n", "the column verdict is missing"),
        ("kernel,reference,verdict\na,b,good\n", "corpus.csv:2: the verdict is one of pass"),
        ("kernel,reference,verdict,latency_us\na,b,pass,fast\n", "corpus.csv:2: latency_us is a number"),
    ],
)
def test_a_broken_corpus_is_one_clear_line(tmp_path, text, words):
    path = tmp_path / "corpus.csv"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words):
        fidelity.read_corpus(path)


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".json"])
def test_a_small_corpus_of_our_own_comes_out_right(tmp_path, suffix):
    """Run by `make test-slow`."""
    samples = ROOT / "tests" / "hardware" / "bundles" / "samples"
    for file in samples.glob("*.py"):
        shutil.copy(file, tmp_path)
    relu, bundle = (HONEST / "relu_class.cpp").read_text(), (samples / "relu.py").read_text()
    texts = {
        "right.cpp": relu,
        "wrong.cpp": relu.replace("AscendC::Relu(y", "AscendC::Abs(y"),
        "unknown.cpp": relu.replace("AscendC::Relu(y", "AscendC::Rely(y"),
        "beyond.cpp": relu.replace("AscendC::Relu(y, x, ", "AscendC::Relu(y, x, 1000000 + "),
        "wrong.py": bundle.replace("Relu(y, x, n)", "Abs(y, x, n)"),
        "unregistered.py": bundle.replace("OP_ADD(ReluCustom);", ""),
    }
    for name, text in texts.items():
        assert text not in (relu, bundle) or name == "right.cpp"
        (tmp_path / name).write_text(text)
    rows = [(f"{name}.py", f"{name}.reference.py", "pass", "8.0", "bundles") for name in BUNDLES]
    rows += [("right.cpp", "level1/relu", "pass", "40", "files"), ("missing.cpp", "level1/relu", "pass", "", "")]
    rows += [("wrong.cpp", "level1/relu", "wrong", "", ""), ("wrong.py", "relu.reference.py", "wrong", "", "")]
    rows += [("unknown.cpp", "level1/relu", "compile_error", "", ""), ("beyond.cpp", "level1/relu", "fault", "", "")]
    rows += [("unregistered.py", "relu.reference.py", "compile_error", "", "")]
    with (tmp_path / "corpus.csv").open("w", newline="") as file:
        csv.writer(file).writerows([fidelity.COLUMNS, *rows])
    out = tmp_path / f"compared{suffix}"
    arguments = ("fidelity", tmp_path / "corpus.csv", "--json", "--unsafe", "--trust", "--out", out)
    done = run_script(*arguments)
    figures = json.loads(done.stdout.splitlines()[-1])
    counts = {name: (rate["count"], rate["total"]) for name, rate in figures["agreement"].items()}
    assert counts == {"pass": (5, 6), "compile_error": (2, 2), "wrong": (2, 2), "fault": (1, 1)}
    diagonal = {"pass": 5, "compile_error": 2, "wrong": 2, "fault": 1}
    assert {name: row[name] for name, row in figures["confusion"].items() if name in diagonal} == diagonal
    assert [table["group"] for table in figures["latency"]] == ["", "bundles", "files"]
    assert [c["kernel"] for c in figures["disagreements"]] == ["missing.cpp"]
    for name in (*texts, *(f"{name}.py" for name in BUNDLES)):
        (tmp_path / name).unlink()  # what is in the file is not verified again
    assert json.loads(run_script(*arguments).stdout.splitlines()[-1]) == figures
