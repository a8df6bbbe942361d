"""The task set of the package `verifiers`: real tasks and traces of the package, verdicts of the real verifier.

Run by `make test-verifiers`, in an environment of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from code_blocks import blocks
from model_server import serving, streaming
from repository import ROOT

vf = pytest.importorskip("verifiers.v1", reason="needs the extra verifiers, in an environment of its own")

from verifiers.v1.errors import TaskError  # noqa: E402
from verifiers.v1.graph import MessageNode  # noqa: E402
from verifiers.v1.trace import AgentInfo, TraceTask  # noqa: E402
from verifiers.v1.utils.loaders import load_taskset, taskset_class  # noqa: E402

from kernel_gym import suites  # noqa: E402
from kernel_gym.authors.apprentice import oracle  # noqa: E402
from kernel_gym.integrations.verifiers import KernelTaskset, KernelTasksetConfig  # noqa: E402

RELU = suites.find_task("level1/relu")


@pytest.fixture
def taskset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """The task set as the commands of the package load it: from a module that exports it."""
    (tmp_path / "kernels.py").write_text(
        'from kernel_gym.integrations.verifiers import KernelTaskset\n\n__all__ = ["KernelTaskset"]\n'
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert taskset_class("kernels") is KernelTaskset
    config = KernelTasksetConfig(id="kernels", tasks=["relu", "tanh"])
    return load_taskset(config)


def scored(task: Any, reply: str) -> Any:
    """The trace of a reply, scored by the package."""
    recorded = TraceTask(type=type(task).__name__, data=task.data, key=task.key, hash=task.hash)
    trace = vf.Trace(task=recorded, agent=AgentInfo(config=vf.AgentConfig()))
    trace.nodes.append(MessageNode(message=vf.AssistantMessage(content=reply), sampled=True))
    asyncio.run(task.score(trace))
    return trace


def test_the_tasks_have_the_prompts_of_the_suite(taskset: Any) -> None:
    relu, tanh = taskset
    assert [task.data.id for task in (relu, tanh)] == ["level1/relu", "level1/tanh"]
    assert [task.key for task in (relu, tanh)] == ["level1/relu", "level1/tanh"]
    assert "class Model" in relu.data.prompt
    assert [task.data.id for task in taskset.include(ids=["level1/tanh"])] == ["level1/tanh"]


def test_the_reward_is_the_verifiers(taskset: Any) -> None:
    relu, tanh = taskset
    kernel = f"Here it is:\n```cpp\n{oracle(RELU).source}\n```"
    right = scored(relu, kernel)
    assert right.reward == 1.0
    assert right.metrics["feasible"] == 1.0
    assert right.metrics["latency_us"] > 0
    assert right.info["verdict"]["outcome"] == "feasible"
    wrong = scored(tanh, kernel)
    assert (wrong.reward, wrong.metrics["compiled"], wrong.metrics["feasible"]) == (-0.5, 1.0, 0.0)
    assert "latency_us" not in wrong.metrics
    none = scored(relu, "I do not know.")
    assert (none.reward, none.metrics["compiled"]) == (-1.0, 0.0)


def test_a_failure_of_the_infrastructure_is_no_reward(taskset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    from kernel_gym.integrations import verifiers as module
    from kernel_gym.verdict import Unjudged

    class Failing:
        def verify(self, kernel: object, task: object) -> Unjudged:
            return Unjudged("the device is gone")

    monkeypatch.setattr(module, "_verifier", lambda *settings: Failing())
    relu, _ = taskset
    with pytest.raises(TaskError, match="the device is gone"):
        scored(relu, "```cpp\nint kernel_launch;\n```")


def test_validation_judges_the_oracle(taskset: Any) -> None:
    relu, _ = taskset
    assert asyncio.run(relu.validate(None)) is True


def test_the_commands_of_the_page_work(tmp_path: Path) -> None:
    """A model behind a real server is asked by the package's own command, and its kernel is judged."""
    page = blocks(ROOT / "docs" / "guides" / "train-models.md")
    (module,) = (block for block in page if block.title)
    (command,) = (line for block in page for line in block.commands if "vf-eval" in line)
    (tmp_path / module.title).write_text(module.code)
    with serving(streaming(f"```cpp\n{oracle(RELU).source}\n```", piece=400)) as server:
        words = shlex.split(command.replace("https://HOST/v1", server.url).replace("NAME", "m"))
        assert words[:2] == ["PYTHONPATH=.", ".venv-verifiers/bin/vf-eval"]
        program = Path(sys.executable).with_name("vf-eval")
        variables = os.environ | {"PYTHONPATH": ".", "OPENAI_API_KEY": "none", "KERNEL_GYM_CACHE": str(tmp_path)}
        done = subprocess.run(
            [program, *words[2:]], cwd=tmp_path, env=variables, capture_output=True, text=True, check=False
        )
    assert done.returncode == 0, done.stdout + done.stderr
    (traces,) = (tmp_path / "outputs").rglob("traces.jsonl")
    (episode,) = map(json.loads, traces.read_text().splitlines())
    assert episode["errors"] == []
    assert [trace["rewards"] for trace in episode["traces"]] == [{"kernel": {"score": 1.0, "weight": 1.0}}]
