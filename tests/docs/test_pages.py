"""The pages of docs/ say what is so: verdicts as shown, tables from the code, links that lead somewhere."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import gymnasium as gym
import pytest
import yaml
from repository import ROOT

from kernel_gym import suites
from kernel_gym.agents.value import ValueAgent
from kernel_gym.envs.options import Options
from kernel_gym.hardware.ascend_sim import calibration, rules
from kernel_gym.hardware.ascend_sim.device import AscendSim
from kernel_gym.kernel import Kernel
from kernel_gym.memory import api_pages
from kernel_gym.memory.bank import HEADLINE_SHARE, RECENT_WEIGHT
from kernel_gym.memory.item import Kind
from kernel_gym.memory.seed import seed_items
from kernel_gym.verdict import Feasible, Verdict
from kernel_gym.verifier import Verifier

DOCS = ROOT / "docs"
RECORDS = DOCS / "results"
SITE = [page for page in sorted(DOCS.rglob("*.md")) if page.parent != RECORDS]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE]
WALKTHROUGH = (DOCS / "walkthrough.md").read_text()
SHOWN = re.findall(
    r"```console\n\$ kernel-gym verify --task (\S+) --kernel docs/walkthrough/(\S+)\n(.*?)\n```",
    WALKTHROUGH,
    re.DOTALL,
)
STEPS = ("04_vector", "05_cores", "06_aligned", "08_tiles", "09_two_buffers", "10_fewer_cores")

needs_compiler = pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(AscendSim(), cache=False, unsafe=True) as verifier:
        yield verifier


@pytest.fixture(scope="module")
def verdicts(verifier: Verifier) -> dict[tuple[str, str], Verdict]:
    """What the verifier says of every kernel that the walkthrough shows."""
    return {(task, name): judged(verifier, task, name) for task, name, _ in SHOWN}


def judged(verifier: Verifier, task: str, name: str) -> Verdict:
    problem = suites.find_task(str(ROOT / task) if task.endswith(".py") else task)
    return verifier.verify(Kernel((DOCS / "walkthrough" / name).read_text()), problem)


def test_every_kernel_of_the_walkthrough_is_shown() -> None:
    assert {name for _, name, _ in SHOWN} == {path.name for path in (DOCS / "walkthrough").glob("*.cpp")}


@needs_compiler
@pytest.mark.parametrize(("task", "name", "words"), SHOWN, ids=[f"{task} {name}" for task, name, _ in SHOWN])
def test_the_verifier_says_what_the_walkthrough_shows(
    verdicts: dict[tuple[str, str], Verdict], task: str, name: str, words: str
) -> None:
    assert verdicts[task, name].feedback == " ".join(words.split())


@needs_compiler
def test_every_step_of_the_walkthrough_is_faster(verdicts: dict[tuple[str, str], Verdict]) -> None:
    times = [verdicts["level1/relu", f"{step}.cpp"].latency_us or 0.0 for step in STEPS]
    assert times == sorted(times, reverse=True)
    assert len(set(times)) == len(STEPS)


@needs_compiler
@pytest.mark.parametrize("step", STEPS)
def test_the_profile_matches_the_table(verdicts: dict[tuple[str, str], Verdict], step: str) -> None:
    verdict = verdicts["level1/relu", f"{step}.cpp"]
    assert isinstance(verdict, Feasible)
    busy = [f"{verdict.profile.pipes[pipe]:.3f}" for pipe in ("MTE2", "MTE3", "V", "S")]
    row = [f"`{step}.cpp`", f"{verdict.latency:.3f}", *busy, f"{verdict.profile.waits['launch']:.2f}"]
    assert f"| {' | '.join(row)} |" in WALKTHROUGH


def test_the_sizes_are_those_of_the_task() -> None:
    for case in suites.find_task("level1/relu").cases:
        sizes = list(dict(case.sizes).values())
        assert re.search(rf"{case.name} +x float32{re.escape(str(sizes))} ", WALKTHROUGH), case


def test_the_number_of_rules_matches_the_page() -> None:
    warnings = sum(rule.is_warning for rule in rules.rules())
    sentence = f"checks {len(rules.rules())} rules, {warnings} of them warnings"
    assert sentence in (DOCS / "reference" / "simulator-rules.md").read_text()


def test_the_program_of_the_linter_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "hardware").symlink_to(ROOT / "hardware")
    monkeypatch.chdir(tmp_path)
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / "guides" / "linter.md").read_text(), re.DOTALL)
    exec(compile(program, "linter.md", "exec"), {})
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(".")
    assert lines[1].endswith("[0. 0. 0.]")
    assert (tmp_path / "relu.json").read_text().startswith('{"traceEvents":[')


def test_the_calibration_table_has_every_point() -> None:
    text = (DOCS / "reference" / "calibration.md").read_text()
    for point in calibration.points():
        assert f"| {point.id} | {point.set} | {point.what} | {point.us:,.2f} | " in text


def test_figures_that_are_guesses_are_counted() -> None:
    """The page says how many of the chip's figures have which source."""
    lines = (ROOT / "hardware" / "ascend_sim" / "chips" / "base.yaml").read_text().splitlines()
    figures = [line for line in lines if re.match(r"\s*\w+: (?:[\d.]+|\{.*\})\s*(#.*)?$", line)]
    text = (DOCS / "reference" / "calibration.md").read_text()
    passes = yaml.safe_load("\n".join(lines))
    assert f"{len(passes['library']) + len(passes['tile'])} pass counts" in text
    for source in ("documented", "measured", "fitted", "guess"):
        count = sum(1 for line in figures if re.search(rf"#\s*{source}", line))
        assert f"| {source} | {count} |" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_have_a_target(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith(("http://", "https://")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_and_files_exist(page: Path) -> None:
    text = page.read_text()
    makefile = (ROOT / "Makefile").read_text()
    for path in set(
        re.findall(r"\b(?:scripts|tests|docs|envs|agents|memory|hardware|kernel_gym)/[\w/.-]+\.\w+\b", text)
    ):
        assert Path(path).stem == "NAME" or (ROOT / path).exists(), f"{page.name}: {path}"
    for target in set(re.findall(r"(?:^|`)make ([\w-]+)", text, re.MULTILINE)):
        assert re.search(rf"^{target}:|^\.PHONY:.*\b{target}\b", makefile, re.MULTILINE), f"{page.name}: make {target}"


@pytest.mark.parametrize("page", SITE, ids=lambda page: str(page.relative_to(ROOT)))
def test_tests_that_are_named_exist(page: Path) -> None:
    """`test_file.py::test_name` in a page is a test; `"A1 zeros"` after it is one of its cases."""
    for file, name in re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", page.read_text()):
        assert re.search(rf"def {name}\b", (ROOT / file).read_text()), f"{page.name}: {file}::{name}"


def test_every_tried_exploit_is_listed() -> None:
    from kernel_gym.verifier.attacks import catalogue

    text = (DOCS / "reference" / "exploits.md").read_text()
    for id in {cause for attack in catalogue.load("ascendc") for cause in attack.causes}:
        assert not re.fullmatch(r"[A-J]\d+", id) or re.search(rf"^\| {id} \|", text, re.MULTILINE), id


def test_every_cause_of_an_attack_is_explained() -> None:
    from kernel_gym.verifier.attacks import catalogue

    text = (DOCS / "reference" / "security.md").read_text()
    causes = {cause for language in ("ascendc", "cuda") for a in catalogue.load(language) for cause in a.causes}
    for id in (cause for cause in causes if cause.startswith("S")):
        assert re.search(rf"^\| {id} \|", text, re.MULTILINE), id


def test_attacks_that_the_page_on_security_names_exist() -> None:
    """The third column names attacks of the simulator, the fourth those of CUDA."""
    from kernel_gym.verifier.attacks import catalogue

    rows = re.findall(r"^\| S\d+ \|(.*)\|(.*)\|(.*)\|$", (DOCS / "reference" / "security.md").read_text(), re.MULTILINE)
    assert len(rows) > 25
    for column, language in ((1, "ascendc"), (2, "cuda")):
        known = {attack.name for attack in catalogue.load(language)}
        for row in rows:
            named = set(re.findall(r"`(\w+)`", row[column]))
            assert named <= known, named - known


def test_pages_use_current_names() -> None:
    """Agents and tasks were renamed; records of runs, and the pages that say so, have the older names."""
    says_so = {"results.md", "agents.md"}
    for page in SITE:
        if page.name not in says_so:
            assert not re.search(r"`complement`|`knowing`", page.read_text()), page.name


def test_no_page_names_a_folder_of_a_machine() -> None:
    for page in PAGES:
        assert not re.search(r"(?<![\w.])/(?:home|root|work|Users)/", page.read_text()), page.name


def blocks(page: str) -> list[str]:
    return re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)


def test_the_spaces_match_the_page() -> None:
    env = gym.make("kernel_gym/KnownOptimum-v0", picks=5, pool_factor=4)
    observation, _ = env.reset(seed=0)
    layout = env.unwrapped.layout  # type: ignore[attr-defined]
    width, size = layout.candidate_width, observation["observations"].size
    text = " ".join((DOCS / "reference" / "environment.md").read_text().split())
    assert f"`Discrete({len(observation['action_mask'])})`" in text
    assert f"`Box` of {size} numbers ({width} for each of the 20 candidates, {size - 20 * width} global)" in text
    for line in blocks("reference/environment.md")[0].splitlines()[1:]:
        exec(line, {"layout": layout, "observation": observation, "env": env})


def test_the_constants_are_the_code_s_own() -> None:
    """Every row of the table of constants, from the objects that use them."""
    agent, options = ValueAgent(), Options()
    seeds = Counter(item.kind for item in seed_items("ascendc"))
    text = (DOCS / "method" / "index.md").read_text()
    for row in (
        f"| N, items shown | {options.picks} |",
        f"| {options.pool_factor}; {options.slots} | `env.pool_factor` |",
        f"| {options.budget} | `budget` |",
        f"| {agent.alpha} | `agent_options.alpha` |",
        f"| {agent.epsilon} | `agent_options.epsilon` |",
        f"| {agent.q0:g} | `agent_options.q0` |",
        f"| {agent.normaliser.floor}; {agent.normaliser.clip:g} | `agent_options.sigma_floor`",
        f"| at most {api_pages.BASICS}, {api_pages.NAMED}, {api_pages.SIMILAR} |",
        f"| {seeds[Kind.API]} API pages, {seeds[Kind.PRACTICE]} practices |",
        f"| {RECENT_WEIGHT} | `memory/store.py`",
        f"| {HEADLINE_SHARE} | `memory/bank.py`",
    ):
        assert row in text
