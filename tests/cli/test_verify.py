"""The command `verify`: its output and exit status."""

import json
import re

import pytest
from repository import ROOT
from script import run_script

from kernel_gym.cli.commands import verify

RELU = ROOT / "tests" / "verifier" / "honest" / "relu_class.cpp"


def run(*arguments):
    return run_script("verify", *arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--task", "level1/relu", "--kernel", "missing.asc"), "missing.asc"),
        (("--task", "level1/rolu", "--kernel", RELU), "did you mean"),
        (("--task", "level1/relu", "--kernel", RELU, "--device", "abacus"), "ascend-sim"),
    ],
)
def test_bad_input_is_one_line_and_status_2(arguments, words):
    done = run(*arguments)
    assert done.returncode == 2
    assert done.stdout == ""
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_a_byte_order_mark_is_no_part_of_a_kernel(tmp_path):
    (tmp_path / "kernel.cpp").write_text(RELU.read_text(), encoding="utf-8-sig")
    assert verify._read(tmp_path / "kernel.cpp") == RELU.read_text()


def test_a_verdict_is_status_0_and_the_last_line_is_json(tmp_path):
    done = run("--task", "level1/relu", "--kernel", RELU, "--json", "--unsafe")
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert done.returncode == 0
    assert (verdict["feasible"], verdict["hack"], verdict["compiled"], verdict["correct"]) == (True, False, True, True)
    assert verdict["latency_us"] > 0
    assert verdict["feedback"]


def test_the_policy_is_chosen_and_named(tmp_path):
    by_policy = {}
    for policy in ("strict", "reference"):
        done = run("--task", "level1/relu", "--kernel", RELU, "--json", "--unsafe", "--policy", policy)
        by_policy[policy] = json.loads(done.stdout.splitlines()[-1])
        assert (by_policy[policy]["policy"], by_policy[policy]["outcome"]) == (policy, "feasible")
    assert len(by_policy["strict"]["secret"]) == 16
    assert "policy strict" in run("--task", "level1/relu", "--kernel", RELU, "--unsafe").stdout


def test_output_without_json_is_readable_text(tmp_path):
    wrong = tmp_path / "wrong.asc"
    wrong.write_text(RELU.read_text().replace("AscendC::Relu(y", "AscendC::Abs(y"))
    done = run("--task", "level1/relu", "--kernel", wrong, "--profile", "--unsafe")
    assert done.returncode == 0
    assert "not correct" in done.stdout
    assert "elements" in done.stdout


def test_a_latency_is_compared_with_the_floor_and_the_oracle(tmp_path):
    done = run("--task", "level1/relu", "--kernel", RELU, "--json", "--unsafe")
    verdict = json.loads(done.stdout.splitlines()[-1])
    assert 0 < verdict["floor_us"] < verdict["oracle_us"]
    done = run("--task", "level1/relu", "--kernel", RELU, "--unsafe")
    latency = verdict["latency_us"]
    floor, oracle = (f"{latency / verdict[name]:.2f} x" for name in ("floor_us", "oracle_us"))
    words = f"{latency:.1f} us: {floor} the floor ({verdict['floor_us']:.1f} us), {oracle} the oracle ("
    assert words in " ".join(done.stdout.split())
    alone = json.loads(run("--task", "level1/relu", "--kernel", RELU, "--json", "--unsafe", "--no-oracle").stdout)
    assert alone["oracle_us"] is None
    assert alone["floor_us"] == verdict["floor_us"]


def test_the_first_wrong_elements_are_printed_with_expected_and_actual_values(tmp_path):
    wrong = tmp_path / "wrong.asc"
    wrong.write_text(RELU.read_text().replace("AscendC::Relu(y", "AscendC::Abs(y"))
    done = run("--task", "level1/relu", "--kernel", wrong, "--unsafe")
    assert re.search(r"output 0 \[\d+, \d+\]: expected 0, got [\d.]+", done.stdout)
    verdict = json.loads(run("--task", "level1/relu", "--kernel", wrong, "--unsafe", "--json").stdout)
    assert len(verdict["wrong"]) == 5
    assert "floor_us" not in verdict


def test_a_folder_of_bundles_is_a_table_or_lines_of_json(tmp_path):
    (tmp_path / "relu.py").write_text("kernel_src = ''\n")
    (tmp_path / "sigmoid.py").write_text("kernel_src = ('\n")
    done = run("--bundles", tmp_path, "--task", "level1", "--unsafe")
    assert done.returncode == 0
    assert "2 bundles, policy reference: 2 uncompilable" in done.stdout
    rows = [json.loads(line) for line in run("--bundles", tmp_path, "--task", "level1", "--json").stdout.splitlines()]
    assert [(row["bundle"], row["outcome"], row["policy"]) for row in rows] == [
        ("relu", "uncompilable", "reference"),
        ("sigmoid", "uncompilable", "reference"),
    ]
    assert "lacks project_json_src" in rows[0]["feedback"]


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--bundles", "nowhere"), "no folder 'nowhere'"),
        (("--bundles", ROOT / "docs" / "walkthrough"), "no reference for small_relu.py"),
    ],
)
def test_a_folder_without_bundles_or_references_is_one_line(arguments, words):
    done = run(*arguments)
    assert done.returncode == 2
    assert words in done.stderr
