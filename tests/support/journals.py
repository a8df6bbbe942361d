"""Lines of a journal for tests that need no run."""

from typing import Any

from kernel_gym.verdict import Feasible


def journal_row(
    task: str = "level1/relu", reward: float = 1.0, kernel: str = "abc", us: float = 2.0, seconds: float = 0.1
) -> dict[str, Any]:
    """An attempt that came to a feasible kernel, as it is read from a journal."""
    verdict = Feasible("good", seconds={"compile": seconds}, latency=us).to_json() | {"notes": []}
    numbers: dict[str, Any] = {"index": 0, "context": [3], "start": None, "api_pages": [1, 2], "produced": [4]}
    return {"task": task, "stage": "draft", "kernel": kernel, "reward": reward, "verdict": verdict, **numbers}
