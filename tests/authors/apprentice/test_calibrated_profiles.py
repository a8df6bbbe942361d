"""The packaged profiles that were fitted agree with their targets."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from kernel_gym import suites
from kernel_gym.authors.apprentice import Apprentice
from kernel_gym.authors.apprentice.behaviour.profile import load_profile, profile_members
from kernel_gym.authors.apprentice.calibration.fit import beside_targets, deviance
from kernel_gym.authors.apprentice.calibration.idiom_table import IdiomTable, idiom_table
from kernel_gym.authors.apprentice.calibration.protocols import Protocols
from kernel_gym.authors.apprentice.calibration.targets import load_targets


@pytest.fixture(scope="module")
def table() -> IdiomTable:
    """What kernels for all tasks of levels 1 and 2 need."""
    return idiom_table([task for level in ("level1", "level2") for task in suites.load_suite(level)], Apprentice())


@pytest.mark.slow
def test_the_calibrated_author_reaches_its_targets(table: IdiomTable) -> None:
    targets, protocols = load_targets("gpt-5.2"), Protocols(table)
    rows = beside_targets(targets, protocols.figures(load_profile("calibrated"), targets.figures))
    assert len(rows) == 16
    assert sum(row.within for row in rows) >= 14, [row.label for row in rows if not row.within]


@pytest.mark.slow
def test_all_members_fit_equally_well_and_differ(table: IdiomTable) -> None:
    targets, protocols = load_targets("gpt-5.2"), Protocols(table)
    members = [load_profile(f"calibrated~{number}") for number in range(len(profile_members("calibrated")))]
    assert len(members) == 16
    deviances = [deviance(targets, protocols.figures(member, targets.figures)) for member in members]
    assert deviances[0] == min(deviances)
    assert max(deviances) <= deviances[0] + stats.chi2.ppf(0.5, len(targets.fit)) + 1e-6
    assert len({member.skeleton for member in members}) == len({member.person for member in members}) == 16
    assert np.ptp([member.skill for member in members]) > 0.1


@pytest.mark.slow
@pytest.mark.parametrize("name", ["weaker-1", "weaker-2", "local"])
def test_the_other_fitted_authors_reach_theirs(table: IdiomTable, name: str) -> None:
    targets, protocols = load_targets(name), Protocols(table)
    rows = beside_targets(targets, protocols.figures(load_profile(f"{name}~0"), targets.figures))
    assert all(row.within for row in rows)


def test_a_weaker_author_is_the_strong_one_with_less_skill() -> None:
    for number in range(16):
        strong, weaker, weakest = (load_profile(f"{name}~{number}") for name in ("calibrated", "weaker-1", "weaker-2"))
        assert strong.skill > weaker.skill > weakest.skill
        assert weaker.model_copy(update={"skill": 0, "name": "", "about": "", "person": 0}) == strong.model_copy(
            update={"skill": 0, "name": "", "about": "", "person": 0}
        )
        assert len({strong.person, weaker.person, weakest.person}) == 3


def test_a_placebo_is_a_member_that_reads_nothing_with_more_skill() -> None:
    for number in range(16):
        member, placebo = (load_profile(f"{name}~{number}") for name in ("calibrated", "calibrated-placebo"))
        assert not placebo.reads
        assert placebo.skill > member.skill
        own = {"skill": 0.0, "reads": True, "name": "", "about": ""}
        assert placebo.model_copy(update=own) == member.model_copy(update=own)
