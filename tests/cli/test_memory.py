import json
import shutil

import pytest
from repository import ROOT
from script import run_script

from kernel_gym import suites
from kernel_gym.agents.context_value import ContextValueAgent
from kernel_gym.agents.value import ValueAgent
from kernel_gym.config import resolve
from kernel_gym.experiments.runs.run_folder import RunFolder
from kernel_gym.memory.bank import PREVIOUS, MemoryBank
from kernel_gym.memory.embedding import StaticEmbedder
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.verdict import Feasible, Uncompilable
from kernel_gym.version import __version__

SCRIPT = ROOT / "scripts" / "memory.py"


def call(*arguments, status: int = 0) -> str:
    done = run_script("memory", *arguments)
    assert done.returncode == status, done.stderr
    return done.stdout if status == 0 else done.stderr


@pytest.fixture(scope="module")
def bank(tmp_path_factory):
    path = tmp_path_factory.mktemp("memory") / "bank.sqlite"
    with MemoryBank(path, StaticEmbedder()) as bank:
        bank.add([MemoryItem(Kind.PRACTICE, "double buffering", "two buffers a queue", bottlenecks=("mte2",))], False)
        slow = MemoryItem(Kind.TRACE, "slow relu", "Relu", "a", Feasible("ok", latency=9.0), "level1/relu")
        bank.add(
            [
                slow,
                MemoryItem(
                    Kind.TRACE, "fast relu", "Relu", "b", Feasible("", latency=2.0), "level1/relu", parent=PREVIOUS
                ),
            ]
        )
        bank.add([MemoryItem(Kind.TRACE, "broken exp", "Exp", "c", Uncompilable("no"), "level1/exp")])
        bank.record(Stage.REFINE, [1, 3], 0.5)
    return path


def test_list_filters_and_sorts(bank):
    assert [item["id"] for item in json.loads(call("list", bank, "--json"))] == [1, 2, 3, 4]
    listed = json.loads(call("list", bank, "--json", "--kind", "trace", "--feasible", "--sort", "latency"))
    assert [item["title"] for item in listed] == ["fast relu", "slow relu"]
    assert [item["id"] for item in json.loads(call("list", bank, "--json", "--sort", "refine"))][:2] == [1, 3]
    assert "refine +0.10 of 1" in call("list", bank, "--task", "level1/relu")


def test_learned_values_are_listed_beside_the_rewards_of_an_item(bank, tmp_path):
    agent = ValueAgent()
    agent.values = {("refine", "", 2): 0.75, ("draft", "", 2): -0.5, ("refine", "", 4): -1.0}
    agent.save(tmp_path / "agent")
    listed = json.loads(call("list", bank, "--agent", tmp_path / "agent", "--sort", "refine", "--json"))
    assert [item["id"] for item in listed] == [2, 1, 3, 4]
    assert listed[0]["learned"] == {"refine": 0.75, "draft": -0.5}
    assert "Q(refine) +0.75 Q(draft) -0.50" in call("lineage", bank, 2, "--agent", tmp_path / "agent")
    other = ContextValueAgent()
    other.effects.table = {("draft", 3): (0.25, 0.01)}
    other.save(tmp_path / "other")
    assert "log-odds(draft) +0.25" in call("lineage", bank, 3, "--agent", tmp_path / "other")
    listed = json.loads(call("list", bank, "--agent", tmp_path / "other", "--sort", "draft", "--json"))
    assert (listed[0]["id"], listed[0]["learned"]) == (3, {"draft": 0.25})
    refused = call("list", bank, "--agent", tmp_path, status=2)
    assert "holds no values of items" in refused
    assert "value (value.json) and context-value (context_value.json)" in refused


def test_a_task_may_be_called_by_its_number_and_a_mistyped_one_is_an_error(bank, tmp_path):
    number = suites.find_task("level1/relu").number
    assert len(json.loads(call("list", bank, "--task", f"level1/{number}", "--json"))) == 2
    without = json.loads(call("export", bank, tmp_path / "out", "--exclude-tasks", f"level1/{number}", "--json"))
    assert without["items"] == 2
    for mistyped in ("relu", "level1/relo"):
        assert "relu" in call("export", bank, tmp_path / "leak", "--exclude-tasks", mistyped, status=2)
    assert not (tmp_path / "leak").exists()


def test_search_finds(bank):
    results = json.loads(call("search", bank, "nn.ReLU", "-k", "2", "--json"))
    assert {item["task"] for item in results} == {"level1/relu"}
    assert results[0]["similarity"] >= results[1]["similarity"]


def test_show_prints_the_item_and_its_values(bank):
    item = json.loads(call("show", bank, "3", "--json"))
    assert (item["code"], item["latency_us"], item["values"]["refine"]["uses"]) == ("b", 2.0, 1)
    assert "two buffers a queue" in call("show", bank, "1")


def test_lineage_has_ancestors_and_children(bank):
    answer = json.loads(call("lineage", bank, "3", "--json"))
    assert [item["id"] for item in answer["lineage"]] == [2, 3]
    assert "fast relu" in call("lineage", bank, "2").partition("children:")[2]


def test_an_export_of_a_run_names_the_run(bank, tmp_path):
    config = resolve(overrides={"agent": "value", "seed": 3, "env": {"author_options": {"profile": "novice"}}})
    folder = RunFolder.open(tmp_path / "seed-3", config)
    shutil.copy(bank, folder.bank)
    call("export", folder.bank, tmp_path / "memory.jsonl")
    provenance = json.loads((tmp_path / "memory.jsonl").read_text().splitlines()[0])["provenance"]
    assert provenance == {
        "run": "seed-3",
        "kernel_gym": __version__,
        "commits": list(folder.commits),
        "agent": "value",
        "seed": 3,
        "author": "apprentice",
        "profile": "novice",
        "device": "ascend-sim",
    }


def test_new_export_and_import(bank, tmp_path):
    imported = tmp_path / "new.sqlite"
    assert json.loads(call("new", imported, "--json"))["items"] > 80
    file = tmp_path / "memory.jsonl"
    assert json.loads(call("export", bank, file, "--exclude-tasks", "level1/exp", "--json"))["items"] == 3
    assert "new items: 3" in call("import", imported, file)
    assert "exists already" in call("new", imported, status=2)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["list", "absent.sqlite"], "does not exist"),
        (["list", SCRIPT], "not usable as a memory bank"),
        (["show", "BANK", "77"], "no item 77; ids go from 1 to 4"),
        (["import", "BANK", SCRIPT], "not an export"),
        (["list", "BANK", "--embedder", "nobody"], "unknown embedder 'nobody'"),
    ],
)
def test_bad_input_is_one_line_and_exit_status_two(bank, arguments, says):
    error = call(*(bank if argument == "BANK" else argument for argument in arguments), status=2)
    assert says in error
    assert len(error.strip().splitlines()) == 1


def test_a_bad_option_is_refused(bank):
    assert "not a positive whole number" in call("search", bank, "x", "-k", "0", status=2)


def test_help_has_examples():
    assert "kernel-gym memory search" in call("--help")


def test_an_embedder_gets_its_options(bank, tmp_path):
    embeddings = tmp_path / "none.jsonl"
    embeddings.write_text("")
    words = ("--embedder", "endpoint", "--embedder-option", "model=m", "--embedder-option", f"transcript={embeddings}")
    assert f"{embeddings} has no answer" in call("search", bank, "relu", *words, status=2)
    assert "does not take these options" in call("list", bank, "--embedder-option", "depth=3", status=2)
    assert "a setting is key=value" in call("list", bank, "--embedder-option", "depth", status=2)
