"""Print the speed of verdicts on an NVIDIA GPU, beside the usual evaluation of the same kernels, as JSON.

With `--margins`, print the latencies of the apprentice's best kernel and of a beginner's for every level-1 task.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from statistics import mean, median
from typing import Any

from kernel_gym import suites
from kernel_gym.cli import command_line
from kernel_gym.errors import DeviceUnavailable, KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Verdict

EXAMPLES = """
kernel-gym bench-cuda
kernel-gym bench-cuda --tasks relu,softmax --repeats 4 --usual relu
kernel-gym bench-cuda --margins
"""
#: Elementwise, softmax, norms, reductions, a loss, products, a pooling and a convolution.
MIX = (
    "relu", "gelu", "softmax", "layer_norm", "rms_norm", "sum_reduction_over_a_dimension", "mse_loss",
    "square_matrix_multiplication", "matrix_vector_multiplication", "max_pooling_2d", "cumsum",
    "conv_standard_2d_square_input_square_kernel",
)  # fmt: skip
#: The tasks of these that are also evaluated the usual way, most of a minute each.
USUAL = ("relu", "softmax", "square_matrix_multiplication", "conv_standard_2d_square_input_square_kernel")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument("--tasks", default=",".join(MIX), help="names of level-1 tasks (default: a mix of twelve)")
    parser.add_argument("--repeats", type=int, default=10, help="verdicts on each task (default: %(default)s)")
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) // 2), help="verifications at once")
    parser.add_argument("--usual", default=",".join(USUAL), help="those also evaluated the usual way (default: four)")
    parser.add_argument("--margins", action="store_true", help="best kernels beside beginners', for all of level 1")
    parser.add_argument("--usual-of", default="", help=argparse.SUPPRESS)


def run(arguments: argparse.Namespace) -> int:
    """Measure and print the figures."""
    if arguments.usual_of:
        print(json.dumps(_usual(arguments.usual_of)))
        return 0
    if arguments.margins:
        print(json.dumps(_margins(arguments.workers), indent=1))
        return 0
    tasks = [suites.find_task(f"level1/{name}") for name in command_line.words(arguments.tasks)]
    report = _verdicts(tasks, arguments.repeats, arguments.workers)
    usual = [_in_a_process(f"level1/{name}") for name in command_line.words(arguments.usual)]
    if usual:
        report["usual_evaluation"] = usual
        report["usual_seconds"] = round(mean(evaluation["seconds"] for evaluation in usual), 2)
        report["times_faster"] = round(report["usual_seconds"] * report["verdicts_per_minute"] / 60, 1)
        report["times_faster_one_at_a_time"] = round(report["usual_seconds"] / report["verdict_p50_s"], 1)
    print(json.dumps(report, indent=1))
    return 0


def _verdicts(tasks: Sequence[Task], repeats: int, workers: int) -> dict[str, Any]:
    from kernel_gym.authors.apprentice import oracle
    from kernel_gym.hardware.cuda.machine import facts
    from kernel_gym.verifier import Verifier

    kernels = [oracle(task, "cuda") for task in tasks]
    with Verifier(_device(), cache=False, workers=workers) as verifier:
        begin = time.perf_counter()
        first = verifier.verify_all(list(zip(kernels, tasks, strict=True)))
        first_seconds = time.perf_counter() - begin
        _see_that_all_pass(first, tasks)
        pairs = [(_variant(kernels[i], n), tasks[i]) for n in range(repeats) for i in range(len(tasks))]
        begin = time.perf_counter()
        verdicts = verifier.verify_all(pairs)
        seconds = time.perf_counter() - begin
        _see_that_all_pass(verdicts, [task for _, task in pairs])
        alone = [_alone(verifier, _variant(kernel, -1), task) for kernel, task in zip(kernels, tasks, strict=True)]
    return {
        "gpu": facts()["name"],
        "workers": workers,
        "tasks": [task.id for task in tasks],
        "first_verdicts_s": round(first_seconds, 2),
        "verdicts": len(verdicts),
        "verdicts_per_minute": round(60 * len(verdicts) / seconds, 1),
        "verdict_p50_s": round(median(alone), 3),  # one at a time
        "gates_p50_ms": _gates(verdicts),
        "latencies_us": {
            task.id: round(verdict.latency_us or 0, 2) for verdict, task in zip(first, tasks, strict=True)
        },
    }


def _device() -> Any:
    from kernel_gym.hardware.cuda.device import Cuda

    device = Cuda()
    if reason := device.unavailable_reason():
        raise DeviceUnavailable(f"cuda cannot be used here: {reason}")
    return device


def _margins(workers: int) -> dict[str, Any]:
    """Measure the best and a beginner's kernel of every task; the tasks with the least spread come first."""
    from kernel_gym.authors.apprentice import naive, oracle
    from kernel_gym.hardware.cuda.machine import facts
    from kernel_gym.verifier import Verifier

    tasks = suites.load_suite("level1")
    with Verifier(_device(), cache=False, workers=workers) as verifier:
        pairs = [(write(task, "cuda"), task) for task in tasks for write in (oracle, naive)]
        verdicts = verifier.verify_all(pairs)
    both = {task.id: pair for task, pair in zip(tasks, zip(verdicts[::2], verdicts[1::2], strict=True), strict=True)}
    margins = {name: _margin(*pair) for name, pair in both.items()}
    spreads = sorted(margin["spread"] for margin in margins.values() if "spread" in margin)
    return {
        "gpu": facts()["name"],
        "tasks": len(tasks),
        "feasible_oracles": sum(fast.feasible for fast, _ in both.values()),
        "feasible_naive": sum(slow.feasible for _, slow in both.values()),
        "faster_oracles": sum(spread >= 1 for spread in spreads),
        "spread": {"least": spreads[0], "median": round(median(spreads), 2), "most": spreads[-1]} if spreads else {},
        "margins": dict(sorted(margins.items(), key=lambda item: item[1].get("spread", 0.0))),
    }


def _margin(fast: Verdict, slow: Verdict) -> dict[str, Any]:
    if fast.latency_us is None or slow.latency_us is None:
        return {"oracle": fast.feedback, "naive": slow.feedback}
    spread = round(slow.latency_us / fast.latency_us, 2)
    return {"oracle_us": round(fast.latency_us, 2), "naive_us": round(slow.latency_us, 2), "spread": spread}


def _variant(kernel: Kernel, number: int) -> Kernel:
    return replace(kernel, source=f"{kernel.source}\n// {number}\n")


def _alone(verifier: Any, kernel: Kernel, task: Task) -> float:
    begin = time.perf_counter()
    verifier.verify(kernel, task)
    return time.perf_counter() - begin


def _see_that_all_pass(verdicts: Sequence[Verdict], tasks: Sequence[Task]) -> None:
    for verdict, task in zip(verdicts, tasks, strict=True):
        if not verdict.feasible:
            raise KernelGymError(f"the kernel to measure with is not feasible on {task.id}: {verdict.feedback}")


def _gates(verdicts: Sequence[Verdict]) -> dict[str, float]:
    names = verdicts[0].seconds
    return {gate: round(1000 * median(verdict.seconds.get(gate, 0.0) for verdict in verdicts), 1) for gate in names}


def _in_a_process(task: str) -> dict[str, Any]:
    """Run the usual evaluation in a process of its own, as it would run for every kernel."""
    run = subprocess.run(
        [sys.executable, "-m", "kernel_gym", "bench-cuda", "--usual-of", task],
        capture_output=True,
        text=True,
        check=False,
    )
    if run.returncode:
        raise KernelGymError(f"the usual evaluation failed: {(run.stderr.strip().splitlines() or ['no message'])[-1]}")
    return {"task": task, **json.loads(run.stdout.splitlines()[-1])}


def _usual(task_id: str) -> dict[str, float]:
    from kernel_gym.authors.apprentice import oracle
    from kernel_gym.benchmarks.torch_evaluation import evaluate

    task = suites.find_task(task_id)
    return {name: round(value, 3) for name, value in evaluate(oracle(task, "cuda"), task).items()}
