"""Search the constants of pretraining with Ray Tune: random draws, of which the worse half stops early (ASHA)."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from kernel_gym.experiments.pretraining.pretraining import Pretraining, Settings, evaluate, fixed_batches

#: Batches of the training split on which a trial is judged; the test split stays unseen.
JUDGED = 4


def search(settings: Settings, folder: Path, trials: int, workers: int) -> list[dict[str, Any]]:
    """Try constants of the learner and return the trials, best first; a search that was stopped goes on.

    Args:
        settings: What is trained; its attempts are those of a trial that runs to its end.
        folder: Ray Tune's folder and those of the trials.
        trials: How many constants are drawn.
        workers: Trials at once.

    Returns:
        The constants and the reward of each trial.

    Raises:
        ConfigError: Ray is not installed.
    """
    import kernel_gym.agents.rllib  # noqa: F401  sets what Ray reads at its first import; says which extra is missing

    import ray  # isort: skip
    from ray import tune  # isort: skip

    folder = folder.resolve()
    ray.init(num_cpus=workers, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    try:
        trainable = tune.with_parameters(_trial, settings=asdict(settings), folder=str(folder))
        stored = folder / "tune"
        if tune.Tuner.can_restore(str(stored)):
            tuner = tune.Tuner.restore(str(stored), trainable, resume_unfinished=True)
        else:
            tuner = tune.Tuner(
                trainable,
                param_space=_space(tune, settings),
                tune_config=tune.TuneConfig(
                    metric="reward", mode="max", num_samples=trials, scheduler=tune.schedulers.ASHAScheduler(max_t=4)
                ),
                run_config=tune.RunConfig(name="tune", storage_path=str(folder), verbose=0),
            )
        results = [result for result in tuner.fit() if result.metrics and "reward" in result.metrics]
    finally:
        ray.shutdown()
    rows = [{"reward": round(result.metrics["reward"], 4), **(result.config or {})} for result in results]
    return sorted(rows, key=lambda row: (-row["reward"], str(row)))


def _space(tune: Any, settings: Settings) -> dict[str, Any]:
    space = {"learning_rate": tune.loguniform(1e-4, 2e-3)}
    if settings.algorithm == "ppo":
        return space | {"entropy": tune.loguniform(1e-3, 3e-2), "epochs": tune.choice([1, 2, 4])}
    return space | {"intensity": tune.choice([2.0, 4.0, 8.0]), "renewal": tune.choice([100, 200, 500])}


def _trial(config: dict[str, Any], settings: dict[str, Any], folder: str) -> None:
    """Train with these constants, in four parts, and report the reward after each."""
    from ray import tune

    whole = replace(Settings(**settings), options=dict(config))
    judged_on = fixed_batches(JUDGED, "training", whole.tasks, max(whole.budgets), whole.measurements)
    name = tune.get_context().get_trial_id()
    for part in (0.25, 0.5, 0.75, 1.0):
        training = Pretraining(replace(whole, attempts=round(part * whole.attempts)), Path(folder) / f"trial-{name}")
        training.run(lambda row: None)
        judged = evaluate("greedy", judged_on, weights=training.plain_weights())
        tune.report({"reward": sum(some.reward for some in judged) / len(judged), "attempts": training.attempts})
