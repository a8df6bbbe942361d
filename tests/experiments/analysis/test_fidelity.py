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
    shutil.copy(samples / "relu.py", tmp_path)
    shutil.copy(samples / "relu.reference.py", tmp_path)
    relu = (HONEST / "relu_class.cpp").read_text()
    (tmp_path / "right.cpp").write_text(relu)
    (tmp_path / "wrong.cpp").write_text(relu.replace("AscendC::Relu(y", "AscendC::Abs(y"))
    (tmp_path / "unknown.cpp").write_text(relu.replace("AscendC::Relu(y", "AscendC::Rely(y"))
    rows = [
        ("relu.py", "relu.reference.py", "pass", "8.0", "bundles"),
        ("right.cpp", "level1/relu", "pass", "40", "files"),
    ]
    rows += [("wrong.cpp", "level1/relu", "wrong", "", ""), ("unknown.cpp", "level1/relu", "compile_error", "", "")]
    rows += [("missing.cpp", "level1/relu", "pass", "", "")]
    with (tmp_path / "corpus.csv").open("w", newline="") as file:
        csv.writer(file).writerows([fidelity.COLUMNS, *rows])
    out = tmp_path / f"compared{suffix}"
    arguments = ("fidelity", tmp_path / "corpus.csv", "--json", "--unsafe", "--trust", "--out", out)
    done = run_script(*arguments)
    figures = json.loads(done.stdout.splitlines()[-1])
    counts = {name: (rate["count"], rate["total"]) for name, rate in figures["agreement"].items()}
    assert counts == {"pass": (2, 3), "compile_error": (1, 1), "wrong": (1, 1)}
    assert [table["group"] for table in figures["latency"]] == ["", "bundles", "files"]
    assert [c["kernel"] for c in figures["disagreements"]] == ["missing.cpp"]
    for name in ("relu.py", "right.cpp", "wrong.cpp", "unknown.cpp"):
        (tmp_path / name).unlink()  # what is in the file is not verified again
    assert json.loads(run_script(*arguments).stdout.splitlines()[-1]) == figures
