"""The README's own code runs as shown."""

import re
import subprocess
import sys
from pathlib import Path

from repository import ROOT

BLOCKS = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


def test_the_custom_agent_is_short_and_competes_as_shown(tmp_path: Path) -> None:
    agent = next(block for block in BLOCKS if "class Newest" in block)
    assert len(agent.splitlines()) < 30
    (tmp_path / "my_agent.py").write_text(agent)
    command = [sys.executable, str(ROOT / "scripts" / "compare.py"), "--agents", "similarity,my_agent:Newest"]
    command += ["--suite", "basics", "--budget", "2", "--seeds", "1", "--out", "runs/mine"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "my_agent:Newest" in done.stdout
    assert "tensorboard --logdir runs/mine" in done.stdout


def test_the_environment_runs_as_shown(tmp_path: Path) -> None:
    loop = next(block for block in BLOCKS if "gym.make" in block)
    done = subprocess.run([sys.executable, "-c", loop], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() in ("uncompilable", "incorrect", "feasible")


def test_what_the_readme_names_exists() -> None:
    text = (ROOT / "README.md").read_text()
    for script in set(re.findall(r"scripts/(\w+\.py)", text)):
        assert (ROOT / "scripts" / script).is_file(), script
    targets = set(re.findall(r"^make (\w+)", text, re.MULTILINE))
    makefile = (ROOT / "Makefile").read_text()
    assert targets
    for target in targets:
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
