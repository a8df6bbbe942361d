"""Write the curves of each contender over its seeds to TensorBoard: a run beside its seeds' with means and intervals.

The tab "Custom Scalars" draws them as lines with bands. The step is the number of attempts, as in the runs.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from kernel_gym.experiments.runs.figures import curves
from kernel_gym.experiments.runs.finished_run import FinishedRun
from kernel_gym.experiments.runs.tracking.events import RUN_CHARTS, SEED_CHARTS
from kernel_gym.experiments.statistics import band
from kernel_gym.experiments.studies.evaluation import complete_runs


def write_seed_curves(folder: Path) -> list[Path]:
    """Write the curves of every contender with several seeds below a folder; those of an earlier call are replaced.

    Args:
        folder: The folder of a comparison or a study.

    Returns:
        The contenders' folders.
    """
    contenders: dict[Path, list[FinishedRun]] = defaultdict(list)
    for run in complete_runs([folder]):
        contenders[run.path.parent].append(FinishedRun.read(run, folder))
    written = [path for path, runs in contenders.items() if len(runs) > 1 and path != folder]
    for path in written:
        _write(path, contenders[path])
    return written


def _write(folder: Path, runs: Sequence[FinishedRun]) -> None:
    from torch.utils.tensorboard import SummaryWriter

    for earlier in folder.glob("events.out.tfevents.*"):
        earlier.unlink()
    with SummaryWriter(str(folder)) as writer:
        writer.add_custom_scalars(SEED_CHARTS | RUN_CHARTS)
        for (curve, attempts), values in _over_seeds(runs).items():
            for end, value in zip(("", "/low", "/high"), values, strict=True):
                writer.add_scalar(f"mean/{curve}{end}", value, attempts * len(runs[0].tasks))


def _over_seeds(runs: Sequence[FinishedRun]) -> dict[tuple[str, int], tuple[float, float, float]]:
    """Return (curve, attempts per task) -> mean and both ends of its interval, where every seed has a value."""
    points: dict[tuple[str, int], tuple[float, float, float]] = {}
    by_seed = [curves(run.config, run.records, run.tasks) for run in runs]
    for name in by_seed[0]:
        steps = list(zip(*(seed[name] for seed in by_seed), strict=False))
        common = [t for t, values in enumerate(steps) if None not in values]
        if common:
            means, lows, highs = band([[seed[name][t] or 0.0 for t in common] for seed in by_seed])
            for t, *values in zip(common, means, lows, highs, strict=True):
                points[name, t + 1] = (float(values[0]), float(values[1]), float(values[2]))
    return points
