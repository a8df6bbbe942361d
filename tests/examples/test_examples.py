"""Every file in examples/ runs as it is and prints what it promises; the pages show the files as they are."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import numpy as np
import pytest
from code_blocks import blocks
from PIL import Image
from python_process import run_python
from repository import ROOT

EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def run(name: str, folder: Path, *arguments: str, change: tuple[str, str] = ("", "")) -> str:
    """Run an example in a folder, with a part of its text replaced, and return what it prints."""
    file = ROOT / "examples" / name
    if change[0]:
        code, file = file.read_text(), folder / name
        assert code.count(change[0]) == 1
        file.write_text(code.replace(*change))
    done = run_python(file, *arguments, cwd=folder, PYTHONPATH=os.pathsep.join([str(ROOT / "examples"), *sys.path]))
    assert done.returncode == 0, f"{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


@pytest.mark.slow
def test_a_gymnasium_loop_plays_an_episode(tmp_path: Path) -> None:
    lines = run("gymnasium_loop.py", tmp_path).splitlines()
    assert len(lines) == 2
    assert all(re.fullmatch(r"basics/vector_add: \w+, reward [+-]\d\.\d\d", line) for line in lines)


@pytest.mark.slow
def test_a_kernel_is_verified_from_python(tmp_path: Path) -> None:
    feasible, limit, wrong = run("verify_kernel.py", tmp_path).splitlines()
    latency, times, floor = map(float, re.findall(r"[\d.]+", feasible)[:3])
    assert feasible.startswith("feasible: ")
    assert times == pytest.approx(latency / floor, abs=0.1)
    assert limit.startswith("limited by ")
    assert wrong.startswith("incorrect: Wrong result at ")


@pytest.mark.timeout(900)
@pytest.mark.slow
def test_a_user_agent_is_compared(tmp_path: Path) -> None:
    printed = run("own_agent.py", tmp_path)
    assert "own_agent:Newest" in printed
    assert "similarity" in printed
    assert list((tmp_path / "runs" / "own-agent").rglob("results.jsonl"))


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_rllib_learns(tmp_path: Path) -> None:
    """Run by `make test-slow`."""
    pytest.importorskip("ray", reason="needs ray: pip install 'kernel_gym[rllib]'")
    printed = run("rllib_ppo.py", tmp_path)
    returns = [float(number) for number in re.findall(r"mean return (-?[\d.]+);", printed)]
    assert len(returns) == 6
    assert returns[-1] > returns[0] + 4.0


@pytest.mark.timeout(900)
@pytest.mark.parametrize(("steps", "end"), [(2560, -1.5), pytest.param(6144, 0.9, marks=pytest.mark.slow)])
def test_maskable_ppo_learns_and_writes_its_curve(steps: int, end: float, tmp_path: Path) -> None:
    """The whole example is run by `make test-sb3`."""
    pytest.importorskip("sb3_contrib", reason="needs sb3-contrib: make test-sb3")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    printed = run("maskable_ppo.py", tmp_path, change=("learn(6144)", f"learn({steps})"))
    (last,) = re.findall(r"episodes: (-?[\d.]+);", printed)
    (events,) = (tmp_path / "runs" / "maskable-ppo").rglob("events.*")
    curve = EventAccumulator(str(events)).Reload().Scalars("rollout/ep_rew_mean")
    assert len(curve) == steps // 512
    assert curve[0].value < -3 < end < float(last)
    assert (tmp_path / "runs" / "maskable-ppo" / "model.zip").exists()


@pytest.mark.slow
def test_an_episode_is_drawn_as_in_the_documentation(tmp_path: Path) -> None:
    run("record_video.py", tmp_path, "frame.png")
    frame, shown = (np.asarray(Image.open(file)) for file in (tmp_path / "frame.png", ROOT / "docs/pictures/frame.png"))
    assert frame.shape == shown.shape
    # Letters may be a shade different with another release of the library that draws them.
    assert (np.abs(frame.astype(int) - shown).max(axis=-1) > 64).mean() < 0.01


@pytest.mark.slow
def test_a_tiny_model_takes_steps_on_the_verifiers_rewards(tmp_path: Path) -> None:
    pytest.importorskip("trl", reason="needs TRL: make test-trl")
    assert run("grpo.py", tmp_path).splitlines()[-1] == f"2 steps; last verdicts: {', '.join(['uncompilable'] * 4)}"


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda example: example.stem)
def test_every_example_is_tested_and_linked(example: Path) -> None:
    assert f'"{example.name}"' in Path(__file__).read_text()
    assert any(f"examples/{example.name}" in page.read_text() for page in PAGES)


def test_pages_show_the_examples_as_they_are() -> None:
    shown = [block for page in PAGES for block in blocks(page) if block.title in {file.name for file in EXAMPLES}]
    assert {"gymnasium_loop.py", "maskable_ppo.py", "rllib_ppo.py", "verify_kernel.py"} <= {one.title for one in shown}
    for block in shown:
        assert block.code == (ROOT / "examples" / block.title).read_text()


def test_the_example_of_maskable_ppo_is_short() -> None:
    code = (ROOT / "examples" / "maskable_ppo.py").read_text().splitlines()[1:]
    assert sum(bool(line.strip()) for line in code) <= 10
