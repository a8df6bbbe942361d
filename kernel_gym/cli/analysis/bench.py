"""Print benchmark figures as JSON: verdicts, memory, author, attempts, service, cluster, and torch's own build."""

import argparse
import json
import os
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

from kernel_gym import plugins, suites
from kernel_gym.cli import command_line
from kernel_gym.cli.command_line import UsageError

EXAMPLES = """
kernel-gym bench
kernel-gym bench --only verdicts
kernel-gym bench --only attempts,cluster
"""
#: Tasks of the part `prices`, by what takes the time: moving, vector work, reading values, products, convolutions.
PRICED = (
    "level1/relu",
    "level1/gelu",
    "level1/softmax",
    "level1/layer_norm",
    "level1/square_matrix_multiplication",
    "level1/conv_standard_2d_square_input_square_kernel",
    "level2/conv2d_relu_bias_add",
)
CPP_RELU = """
#include <torch/extension.h>
torch::Tensor relu(torch::Tensor x) {
    auto y = torch::empty_like(x);
    const float *in = x.data_ptr<float>();
    float *out = y.data_ptr<float>();
    for (int64_t i = 0; i < x.numel(); ++i) out[i] = in[i] > 0 ? in[i] : 0;
    return y;
}
"""


def verdicts() -> dict[str, float]:
    """Measure the verifier on the simulator, with the oracle kernel of relu."""
    from kernel_gym.authors.apprentice import oracle
    from kernel_gym.benchmarks.verifier_speed import benchmark

    device = plugins.load("kernel_gym.devices", "ascend-sim")()
    try:
        task = suites.find_task("level1/relu")
        return benchmark(device, oracle(task), task)
    finally:
        device.close()


def prices() -> dict[str, float]:
    """Measure the processor time of a verdict by both policies on the simulator, with the oracles of several tasks."""
    from kernel_gym.authors.apprentice import oracle
    from kernel_gym.benchmarks.verifier_speed import processor_seconds
    from kernel_gym.verdict import POLICIES

    device = plugins.load("kernel_gym.devices", "ascend-sim")()
    try:
        return {
            f"verdict_cpu_s_{'' if policy == 'strict' else f'{policy}_'}{task.name}": processor_seconds(
                device, oracle(task), task, policy=policy
            )
            for task in map(suites.find_task, PRICED)
            for policy in POLICIES
        }
    finally:
        device.close()


def device() -> dict[str, float]:
    """Measure the simulator alone: compilation, records a second, a matrix product, memory."""
    from kernel_gym.benchmarks.simulator_speed import benchmark
    from kernel_gym.hardware.ascend_sim.device import AscendSim

    with AscendSim() as simulator:
        return benchmark(simulator)


def large_runs() -> dict[str, float]:
    """Measure large runs of the simulator: elementwise and element by element on 256 MB, a product of 2,048 cubed."""
    from kernel_gym.benchmarks.simulator_speed import LARGE_BUDGET, benchmark_large_runs
    from kernel_gym.hardware.ascend_sim.device import AscendSim

    with AscendSim(timeout=600, budget=LARGE_BUDGET) as simulator:
        return benchmark_large_runs(simulator)


def memory() -> dict[str, float]:
    """Measure embedding, search and writing of the memory bank."""
    from kernel_gym.benchmarks.memory_speed import benchmark

    return benchmark()


def large_memory() -> dict[str, float]:
    """Measure a memory bank of a million items: its file, opening, searching, resident memory; a few minutes."""
    from kernel_gym.benchmarks.large_memory import benchmark

    return benchmark()


def author() -> dict[str, float]:
    """Measure how many kernels the apprentice writes a second on one core, for tasks that are lowered already."""
    import numpy as np

    from kernel_gym.authors.apprentice import Apprentice

    apprentice = Apprentice()
    tasks = [suites.find_task(f"level1/{name}") for name in ("relu", "softmax", "layer_norm", "gelu")]
    for task in tasks:
        apprentice.write(task, (), None, np.random.default_rng(0))
    started = time.perf_counter()
    for i in range(400):
        apprentice.write(tasks[i % 4], (), None, np.random.default_rng(i))
    return {"kernels_written_per_second": 400 / (time.perf_counter() - started)}


def attempts() -> dict[str, float]:
    """Measure an attempt without its verdict: processor time, bytes of journal and bank; all verdicts are cached."""
    figures: dict[str, float] = {}
    for agent in ("value", "similarity-feasible"):
        with TemporaryDirectory() as folder:
            for again in ("first", "second"):
                # A process each: the second run has to read and write everything anew.
                with ProcessPoolExecutor(1, get_context("spawn")) as process:
                    figures |= process.submit(_attempt_figures, agent, Path(folder, again)).result()
    return figures


def _attempt_figures(agent: str, out: Path) -> dict[str, float]:
    """Return the processor time of an attempt, without the first one at each task, and what it writes."""
    import torch._dynamo  # noqa: F401 - torch imports it when a task is solved: a second, once a process

    from kernel_gym.config import resolve
    from kernel_gym.experiments.runs.journal import Journal
    from kernel_gym.experiments.runs.run_folder import RunFolder
    from kernel_gym.experiments.runs.training import train

    tasks = ["relu", "gelu", "softmax", "swish", "layer_norm"]
    config = resolve(overrides={"agent": agent, "suite": "level1", "tasks": tasks, "budget": 20})
    clock: list[float] = []
    folder = RunFolder.open(out, config)
    train(config, folder, lambda done, of, solved: clock.append(time.process_time()))
    with folder.open_bank() as bank:
        items = len(bank)
    records = Journal.read(folder.journal)
    journal, started = Journal(out / "again.jsonl"), time.perf_counter()
    for record in records:
        journal.write(record)
    return {
        "journal_append_ms": (time.perf_counter() - started) / len(records) * 1e3,
        f"attempt_cpu_ms_{agent}": (clock[-1] - clock[len(tasks) - 1]) / (len(clock) - len(tasks)) * 1e3,
        "journal_bytes_per_attempt": folder.journal.stat().st_size / folder.attempts,
        "bank_bytes_per_item": folder.bank.stat().st_size / items,
    }


def forecast() -> dict[str, float]:
    """Measure the attempts a second of the forecast environment on one core."""
    from kernel_gym.benchmarks.forecast_speed import benchmark

    return benchmark()


def service() -> dict[str, float]:
    """Measure a verification service: requests a second, and verdicts through it beside verdicts without it."""
    from kernel_gym.benchmarks.service_speed import benchmark

    return benchmark(len(os.sched_getaffinity(0)))


def cluster() -> dict[str, float]:
    """Measure clusters of 1, 2 and 4 nodes on this machine: verdicts a second, the driver's share, a shared bank."""
    from kernel_gym.benchmarks.cluster_speed import benchmark

    return benchmark()


def load_inline() -> dict[str, float]:
    """Measure the build of one C++ kernel of relu against torch's headers, for comparison."""
    from torch.utils.cpp_extension import load_inline

    with TemporaryDirectory() as folder:
        started = time.perf_counter()
        load_inline(  # type: ignore[no-untyped-call]
            "kernel_gym_bench_relu", [CPP_RELU], functions=["relu"], build_directory=folder
        )
        return {"load_inline_ms": (time.perf_counter() - started) * 1e3}


PARTS = {
    "verdicts": verdicts,
    "prices": prices,
    "device": device,
    "large_runs": large_runs,
    "memory": memory,
    "large_memory": large_memory,
    "author": author,
    "attempts": attempts,
    "forecast": forecast,
    "service": service,
    "cluster": cluster,
    "load_inline": load_inline,
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument(
        "--only",
        type=command_line.words,
        default=tuple(PARTS),
        help=f"comma-separated parts (default: all): {', '.join(PARTS)}",
    )


def run(arguments: argparse.Namespace) -> int:
    """Measure and print the figures."""
    if unknown := set(arguments.only) - set(PARTS):
        raise UsageError(f"no figures called {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    figures: dict[str, float] = {"cores": os.cpu_count() or 1}
    for name in arguments.only:
        figures |= PARTS[name]()
    if "attempt_cpu_ms_value" in figures and "cluster_driver_ms_per_verdict" in figures:
        from kernel_gym.benchmarks.cluster_speed import driver_figures

        figures |= driver_figures(figures)
    if "load_inline_ms" in figures and "verdict_cold_p50_s" in figures:
        figures["load_inline_over_verdict"] = figures["load_inline_ms"] / 1e3 / figures["verdict_cold_p50_s"]
    if "load_inline_ms" in figures and "compile_p50_ms" in figures:
        figures["load_inline_over_compile"] = figures["load_inline_ms"] / figures["compile_p50_ms"]
    print(json.dumps({name: round(value, 3) for name, value in figures.items()}, indent=1))
    return 0
