"""Tests of the fit of author profiles to figures of authors without memory."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.idioms import idioms
from kernel_gym.authors.apprentice.behaviour.profile import Profile, load_profile, profile_members
from kernel_gym.authors.apprentice.calibration.fit import fit, fit_members, with_constants
from kernel_gym.authors.apprentice.calibration.idiom_table import IdiomTable, idiom_table
from kernel_gym.authors.apprentice.calibration.protocols import Protocols
from kernel_gym.authors.apprentice.calibration.targets import Figure, Targets, load_targets, packaged_targets
from kernel_gym.authors.demonstration import demonstration
from kernel_gym.cli import author_fit
from kernel_gym.cli.author_fit import profile_text
from kernel_gym.cli.main import main
from kernel_gym.errors import ConfigError

NAMES = ("relu", "gelu", "softmax", "square_matrix_multiplication")


@pytest.fixture(scope="module")
def table() -> IdiomTable:
    return idiom_table([suites.find_task(f"level1/{name}") for name in NAMES], Apprentice("middle"))


def figure(protocol: str, attempts: int, gate: str, share: float = 0.0) -> Figure:
    return Figure(protocol=protocol, suite="level1", attempts=attempts, gate=gate, share=share)


def test_the_chance_of_a_draft_is_the_share_of_the_authors_drafts(table):
    """The closed form agrees with what the author writes, counted by the declared effects of its mistakes."""
    author = Apprentice(Profile(name="test", skill=1.5, boundary=2.0))
    context = (demonstration("ascendc"),)
    task, rng = suites.find_task("level1/gelu"), np.random.default_rng(0)
    drafts = [author.explain(task, context, None, rng).choices for _ in range(150)]
    good = np.mean([not any(_harmful(choice) for choice in draft) for draft in drafts])
    odds = Protocols(table)._odds(author.profile)
    computed = Protocols(table)._pass_rates(odds)["correct"][0, NAMES.index("gelu")]
    assert good == pytest.approx(computed, abs=3 * np.sqrt(computed * (1 - computed) / 150) + 0.01)


def _harmful(choice) -> bool:
    if choice.right:
        return False
    idiom = idioms().get(choice.idiom)
    return idiom is None or idiom.effect_of(next(s for s in idiom.wrong if s.name == choice.spelling)) != "slow"


def test_more_attempts_solve_more_and_compiling_is_easier(table):
    protocols, profile = Protocols(table), Profile(name="test", skill=-1.0, belief=1.0)
    for protocol in ("pass@k", "repair"):
        for gate in ("compiled", "correct"):
            shares = protocols.figures(profile, [figure(protocol, n, gate) for n in (1, 4, 30)])
            assert all(a <= b for a, b in pairwise(shares))
        one, other = protocols.figures(profile, [figure(protocol, 4, "compiled"), figure(protocol, 4, "correct")])
        assert one >= other


def test_a_repair_that_always_works_solves_everything(table):
    profile = Profile(name="test", skill=-2.0, hinted=100.0, copying=1.0, inertia=1.0)
    (share,) = Protocols(table).figures(profile, [figure("repair", 60, "correct")])
    assert share == 1.0


def test_beliefs_make_repeated_drafts_worth_less(table):
    open_minded, stubborn = (Profile(name="test", belief=belief, skill=-0.5) for belief in (0.0, 4.0))
    gains = [
        np.diff(Protocols(table, persons=32).figures(profile, [figure("pass@k", n, "compiled") for n in (1, 30)]))[0]
        for profile in (open_minded, stubborn)
    ]
    assert gains[1] < gains[0]


def test_a_fit_finds_a_profile_that_gives_the_targets(table):
    truth = Profile(name="truth", skill=-0.7, verified=3.0)
    wanted = [figure("pass@k", n, gate) for n in (1, 4, 30) for gate in ("compiled", "correct")]
    shares = Protocols(table).figures(truth, wanted)
    figures = tuple(f.model_copy(update={"share": float(s)}) for f, s in zip(wanted, shares, strict=True))
    targets = Targets(source="test", fit=("skill", "verified"), figures=figures)
    result = fit(targets, Protocols(table), load_profile("middle"), generations=8, members=4)
    assert all(row.within for row in result.rows)
    assert result.ensemble[0]["skill"] == pytest.approx(-0.7, abs=0.4)
    assert result.deviance == min(result.deviances)
    assert with_constants(load_profile("middle"), result.ensemble[0]) == result.profile


def test_a_fitted_profile_can_be_used(table, tmp_path):
    targets = Targets(source="test", fit=("skill", "meaning"), figures=(figure("pass@k", 1, "correct", 0.3),))
    result = fit(targets, Protocols(table), load_profile("middle"), generations=1, members=3)
    file = tmp_path / "mine.yaml"
    file.write_text(profile_text(result, targets))
    assert load_profile(str(file)).skill == result.profile.skill
    assert load_profile(f"{file}~1").formula == result.ensemble[1]["formula"]


def test_members_draw_what_the_targets_do_not_determine(table, tmp_path):
    targets = Targets(
        source="test", fit=("skill",), draw=("page", "skeleton"), figures=(figure("pass@k", 1, "correct", 0.3),)
    )
    result = fit(targets, Protocols(table), load_profile("middle"), generations=2, members=4)
    assert len({member["page"] for member in result.ensemble}) == len(result.ensemble) > 1
    assert all(0.75 <= member["page"] <= 3.0 and 0 <= member["skeleton"] <= 1 for member in result.ensemble)
    assert [member["page"] for member in result.ensemble] == [
        round(load_profile(f"middle~{number}").page, 4) for number in range(len(result.ensemble))
    ]
    assert result.profile.page == load_profile("middle").page, "the best profile draws nothing"
    for names in ({"draw": ("skill",)}, {"draw": ("belief",)}):  # one is fitted, the other has no range
        with pytest.raises(ConfigError, match="cannot be drawn"):
            fit(targets.model_copy(update=names), Protocols(table), load_profile("middle"))


def test_each_member_of_an_ensemble_is_fitted_on_its_own(table, tmp_path):
    strong = tmp_path / "strong.yaml"
    strong.write_text("skill: 1.0\nmembers: [{skill: 1.0, verified: 2.0}, {skill: 0.5, verified: 6.0}]\n")
    targets = Targets(source="test", person=50, fit=("skill",), figures=(figure("pass@k", 4, "correct", 0.1),))
    result = fit_members(targets, Protocols(table), str(strong), generations=4)
    assert [member["verified"] for member in result.ensemble] == [2.0, 6.0]
    assert all(member["skill"] < 0.5 for member in result.ensemble)
    assert result.ensemble[0]["skill"] > result.ensemble[1]["skill"], "who reads a demonstration worse needs more skill"
    weaker = tmp_path / "weaker.yaml"
    weaker.write_text(profile_text(result, targets))
    assert (load_profile(f"{weaker}~1").person, load_profile(f"{weaker}~1").verified) == (51, 6.0)
    assert load_profile(f"{strong}~1").person == 1


def test_a_figure_may_be_over_several_suites():
    both = Figure(protocol="pass@k", suite="level1+level2", attempts=1, gate="correct", share=0.1)
    assert both.suites == ("level1", "level2")
    assert load_targets("weaker-1").figures[0].suites == ("level1", "level2")


def test_constants_that_are_fitted_as_one_are_one_row(table, capsys):
    targets = Targets(source="test", fit=("skill", "meaning"), figures=(figure("pass@k", 1, "correct", 0.3),))
    author_fit._print(fit(targets, Protocols(table), load_profile("middle"), generations=1, members=2))
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.startswith("  ")]
    assert names == ["skill", "meaning"]


@pytest.mark.slow
def test_the_result_does_not_depend_on_the_number_of_processes(table):
    targets = Targets(source="test", fit=("skill",), figures=(figure("repair", 4, "correct", 0.3),))
    one, two = (
        fit(targets, Protocols(table), load_profile("middle"), generations=2, workers=workers) for workers in (1, 2)
    )
    assert one == two


@pytest.mark.parametrize("name", packaged_targets())
def test_packaged_targets_can_be_read(name):
    targets = load_targets(name)
    assert targets.source
    assert load_profile(targets.base)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("source: s\nfigures: []\n", "figures"),
        (
            "source: s\nfigures: [{protocol: agent, suite: level1, attempts: 1, gate: correct, share: 0.1}]\n",
            "protocol",
        ),
        ("source: [", "not YAML"),
        ("just words\n", "the file"),
    ],
)
def test_wrong_targets_are_one_line(tmp_path, text, part):
    file = tmp_path / "targets.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=part) as raised:
        load_targets(str(file))
    assert "\n" not in str(raised.value)


def test_a_constant_that_cannot_be_fitted_is_named(table):
    targets = Targets(source="test", fit=("charm",), figures=(figure("pass@k", 1, "correct", 0.3),))
    with pytest.raises(ConfigError, match="charm cannot be fitted"):
        fit(targets, Protocols(table), load_profile("middle"))


def test_the_command_fits_an_ensemble_and_then_each_of_its_members(tmp_path, monkeypatch, capsys):
    tasks = [suites.find_task(f"level1/{name}") for name in NAMES[:2]]
    monkeypatch.setattr(suites, "load_suite", lambda name: tasks)
    targets, strong, weaker = (tmp_path / name for name in ("targets.yaml", "strong.yaml", "weaker.yaml"))
    row = "{protocol: pass@k, suite: level1, attempts: 4, gate: correct, share: 0.2, tasks: 5}"
    targets.write_text(f"source: test\nfit: [skill]\ndraw: [skeleton]\nfigures: [{row}]\n")
    common = ["author", "fit", str(targets), "--generations", "8"]
    for words in (["--members", "2", "--out", str(strong)], ["--base", str(strong), "--out", str(weaker)]):
        with pytest.raises(SystemExit) as ended:
            main([*common, *words])
        assert ended.value.code == 0
        assert "1 of 1 targets lie in the interval" in capsys.readouterr().out
    assert len(profile_members(str(strong))) == len(profile_members(str(weaker))) == 2
    assert [member["skeleton"] for member in profile_members(str(strong))] == [
        member["skeleton"] for member in profile_members(str(weaker))
    ]
