"""Chip profiles: data that is complete, checked on both sides, and easy to vary."""

from __future__ import annotations

from pathlib import Path

import pytest
from timeline_driver import copy_in, latency, launch, time, vector

from kernel_gym.errors import ConfigError
from kernel_gym.hardware.ascend_sim import chip

WORK = launch([copy_in(0x100000000000 + (core << 20), 65536), vector(0, 64)] for core in range(40))


def test_every_chip_of_the_family_can_be_loaded() -> None:
    assert chip.available() == ["910B1", "910B2", "910B3", "910B4"]
    for name in chip.available():
        assert time(WORK, chip.load(name))["chip"] == name


def test_figures_that_kernels_of_others_tell() -> None:
    """Lower bounds and measurements from public kernels that ran on a 910B."""
    figures = chip.load()
    assert figures["cube.fix_gbs"] >= 150
    assert figures["memory.hbm_core_gbs"] == 100
    assert 1.01 <= figures["matmul.overlap"] <= 1.05
    assert figures["unit.row_reduce"] == 0.5


def test_every_vector_instruction_takes_time_to_start() -> None:
    startups = {
        key: value for key, value in chip.load().figures.items() if key.endswith(".startup") and key[:4] != "pass"
    }
    rows = {key.rpartition(".")[0] for key in chip.load().figures if key.startswith(("vector.", "basic.", "reduce."))}
    assert {f"{row}.startup" for row in rows} <= set(startups)
    assert {"basic.sort.startup", "basic.merge.startup"} < set(startups)
    assert all(startups[f"{row}.startup"] >= 18 for row in rows), "the least that was measured is that of brcb"


def test_chips_differ_where_they_should() -> None:
    times = {name: latency(WORK, chip.load(name)) for name in chip.available()}
    assert times["910B1"] < times["910B2"] < times["910B4"]
    assert chip.load()["vector_cores"] == 48
    assert chip.load("910B3")["vector_cores"] == 40


def test_a_figure_that_is_missing_or_unknown_is_refused_by_the_device() -> None:
    whole = chip.load()
    less = chip.ChipProfile("less", {key: value for key, value in whole.figures.items() if key != "copy.issue"})
    with pytest.raises(RuntimeError, match=r"chip figure copy\.issue is missing"):
        time(WORK, less)
    with pytest.raises(RuntimeError, match=r"unknown chip figure copy\.speed"):
        time(WORK, chip.ChipProfile("more", {**whole.figures, "copy.speed": 1.0}))
    with pytest.raises(RuntimeError, match=r"memory\.hbm_gbs must be above zero"):
        time(WORK, whole.changed(memory__hbm_gbs=0))


def test_a_profile_may_start_from_another(tmp_path: Path) -> None:
    path = tmp_path / "mine.yaml"
    path.write_text(
        f"base: {chip.CHIPS / '910B2.yaml'}\nname: mine\nmemory: {{hbm_gbs: 3000}}\nvector: {{add: {{repeat: 3}}}}\n"
    )
    mine, other = chip.load(path), chip.load("910B2")
    changed = {key for key in other.figures if mine[key] != other[key]}
    assert changed == {"memory.hbm_gbs", "vector.add.repeat", "vector.add.repeat16"}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("name: two words\n", "without spaces"),
        ("clock_mhz: 1\n", "`name`"),
        ("name: x\nclock_mhz: fast\n", "clock_mhz must be a number"),
        ("name: x\nclock_mhz: -1\n", "not negative"),
        ("name: x\nclock_mhz: true\n", "must be a number"),
        ("- 1\n", "mapping"),
        ("base: bad.yaml\nname: x\n", "circle"),
        ("base: nowhere.yaml\nname: x\n", "cannot read"),
        ("name: [\n", "cannot read"),
    ],
)
def test_a_bad_profile_is_one_clear_line(tmp_path: Path, text: str, complaint: str) -> None:
    path = tmp_path / "bad.yaml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=complaint) as caught:
        chip.load(path)
    assert "\n" not in str(caught.value)


def test_an_unknown_chip_names_those_that_exist() -> None:
    with pytest.raises(ConfigError, match="no chip profile 910Z; there are 910B1, 910B2"):
        chip.load("910Z")
    with pytest.raises(ConfigError, match=r"has no figure copy\.speed"):
        chip.load().changed(copy__speed=1)
