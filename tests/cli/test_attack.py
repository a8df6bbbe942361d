"""`kernel-gym attack`: what is listed, what is judged, and the exit status."""

import json
import shutil

import pytest

from kernel_gym.cli.main import main
from kernel_gym.verifier.attacks import catalogue

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
FILES = {
    "honest/relu": "feasible",
    "got_through": "refused",
    "wrong": "correctness",
    "falsely_refused": "feasible",
}


@pytest.fixture
def attack(capsys):
    def run(*words):
        with pytest.raises(SystemExit) as end:
            main(["attack", *words])
        captured = capsys.readouterr()
        return end.value.code, captured.out, captured.err

    return run


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A catalogue of a few attacks, one of which gets through, and one honest kernel of two that is refused."""
    relu = catalogue.honest("ascendc", "relu").kernel.source
    (tmp_path / "ascendc" / "honest").mkdir(parents=True)
    for name, expected in FILES.items():
        text = relu if name in ("honest/relu", "got_through") else relu.replace("AscendC::Relu(", "AscendC::Abs(")
        header = f"// task: level1/relu\n// cause: {name[0].upper()}1\n// expect: {expected}\n// about: a try\n"
        (tmp_path / "ascendc" / f"{name}.cpp").write_text(f"{header}// {name}\n{text}")
    monkeypatch.setattr(catalogue, "HERE", tmp_path)
    catalogue.load.cache_clear()
    yield
    catalogue.load.cache_clear()


def test_attacks_can_be_listed(attack):
    status, out, _ = attack("--list", "--cause", "S4", "--json")
    rows = json.loads(out)
    assert status == 0
    assert {"I13_a_constant_that_can_be_written"} <= {row["name"] for row in rows}
    assert all("S4" in row["cause"] and row["about"] for row in rows)
    assert "I13_a_constant_that_can_be_written" in attack("--list")[1]


def test_an_unknown_name_is_a_one_line_error(attack):
    status, _, err = attack("--only", "nothing")
    assert (status, err.count("\n")) == (2, 1)
    assert "no attack of name 'nothing'" in err


@needs_compiler
def test_the_exit_status_is_1_if_a_verdict_is_not_the_expected_one(attack, folder):
    status, out, _ = attack("--unsafe", "--json")
    faults = {row["name"]: row["fault"] for row in json.loads(out)}
    assert status == 1
    assert faults == {"relu": "", "wrong": "", "got_through": "got through", "falsely_refused": "refused"}
    status, out, _ = attack("--unsafe")
    assert status == 1
    assert "4 kernels: 1 got through, 1 refused" in out
    status, out, _ = attack("--unsafe", "--only", "relu,wrong")
    assert status == 0
    assert "2 kernels: none got through, none refused" in out
    assert "latency / honest" in out


@needs_compiler
@pytest.mark.slow
def test_damaged_kernels_are_judged_once(attack, folder, tmp_path):
    words = (
        "--unsafe",
        "--damaged",
        "2",
        "--variants",
        "1",
        "--seed",
        "7",
        "--out",
        str(tmp_path / "results"),
        "--json",
    )
    status, out, _ = attack(*words)
    names = [row["name"] for row in json.loads(out)]
    assert (status, names) == (0, ["damaged_7_0", "damaged_7_1", "variant_7_0"])
    assert [json.loads(line)["name"] for line in (tmp_path / "results").read_text().splitlines()] == names
    assert json.loads(attack(*words)[1]) == []


@needs_compiler
@pytest.mark.slow
def test_an_interrupted_run_goes_on_and_tells_of_all(attack, folder, tmp_path):
    out = tmp_path / "results"
    words = ("--unsafe", "--out", str(out))
    assert attack(*words, "--only", "relu,got_through")[0] == 1
    out.write_bytes(out.read_bytes() + b'{"name": "wro')  # killed while it wrote
    status, shown, err = attack(*words, "--only", "relu,got_through,wrong")
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert sorted(row["name"] for row in rows) == ["got_through", "relu", "wrong"]
    assert status == 1  # because of what an earlier run found
    assert "3 kernels: 1 got through" in shown
    assert "outcomes: feasible 2, correctness 1" in shown
    assert "1 of 1 kernels" in err
    assert "a minute, 0 faults" in err


@needs_compiler
@pytest.mark.slow
def test_a_result_for_another_text_of_the_same_name_does_not_count(attack, folder, tmp_path):
    out = tmp_path / "results"
    words = ("--unsafe", "--out", str(out), "--only", "relu", "--json")
    attack(*words)
    row = json.loads(out.read_text())
    out.write_text(json.dumps(row | {"digest": "another"}) + "\n")
    assert [new["name"] for new in json.loads(attack(*words)[1])] == ["relu"]
