"""The loop of pretraining: batches of attempts in several processes, an update, a checkpoint."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.agents import scoring
from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.authors.apprentice.forecast.measurements import PACKAGED
from kernel_gym.envs.observation import Layout
from kernel_gym.envs.options import Options
from kernel_gym.errors import ConfigError
from kernel_gym.experiments.pretraining import rollouts
from kernel_gym.experiments.pretraining.knowing import KnowingPicker, Watched
from kernel_gym.experiments.pretraining.learners import LEARNERS, Learner
from kernel_gym.experiments.pretraining.rollouts import Batch, Decisions, Policy, draw_batch, make_attempts
from kernel_gym.experiments.splits import Split
from kernel_gym.experiments.statistics import crossed_mean

Report = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Settings:
    """What is trained, and how long.

    Attributes:
        algorithm: `ppo` or `dqn`.
        attempts: Attempts to make, those of cloning not counted.
        cloned: Attempts of the rule `similarity-feasible` that the network is first trained to repeat; 0 for none.
        start: Weights to begin with, by name or file; empty for random ones.
        tasks: Tasks of a batch.
        budgets: Budgets that a batch's is drawn from.
        batches: Batches between two updates.
        hidden: Width of the network.
        layers: Layers of self-attention.
        seed: Seed of everything.
        redraws: Further kernels that are drawn for each context, so that returns are means of several rewards.
        epsilon: Final share of random actions with `dqn`.
        measurements: What verdicts are forecast from.
        options: Options of the learner, by name.
    """

    algorithm: Literal["ppo", "dqn"] = "ppo"
    attempts: int = 1_000_000
    cloned: int = 20_000
    start: str = ""
    tasks: int = 32
    budgets: tuple[int, ...] = (5, 10, 20)
    batches: int = 16
    hidden: int = 64
    layers: int = 1
    seed: int = 0
    redraws: int = 0
    epsilon: float = 0.05
    measurements: str = PACKAGED
    options: dict[str, float] = field(default_factory=dict)


class Pretraining:
    """One training, in a folder from which it goes on.

    Args:
        settings: What is trained.
        folder: Holds the checkpoint, the progress and, in the end, the weights.
        workers: Processes that make attempts.

    Raises:
        ConfigError: The folder holds a training with other settings.
    """

    def __init__(self, settings: Settings, folder: Path, workers: int = 1) -> None:
        self.settings, self.folder, self.workers = settings, folder, workers
        self.attempts = self.updates = 0
        torch.manual_seed(settings.seed)
        sizes = ScorerSizes.of(Layout(Options().slots), settings.hidden, settings.layers)
        device = "cuda" if torch.cuda.is_available() else "cpu"
        scorer = (scoring.load_weights(settings.start) if settings.start else CandidateScorer(sizes)).to(device)
        self.learner: Learner = LEARNERS[settings.algorithm](scorer, seed=settings.seed, **settings.options)
        folder.mkdir(parents=True, exist_ok=True)
        if self.checkpoint.is_file():
            self._resume()

    @property
    def checkpoint(self) -> Path:
        """The file that training goes on from."""
        return self.folder / "checkpoint.pt"

    @property
    def weights(self) -> Path:
        """The file with the network, which the agent `trained` loads."""
        return self.folder / f"{self.settings.algorithm}.pt"

    def run(self, report: Report, minutes: float = float("inf"), every: int = 10) -> None:
        """Train until the attempts are made or the time is over; the same call goes on.

        Args:
            report: Called with figures after every update.
            minutes: Time after which training stops with a checkpoint.
            every: Updates between two checkpoints.
        """
        end = time.monotonic() + 60 * minutes
        with processes(self.workers) as executor:
            if not self.updates and self.settings.cloned:
                self._clone(executor, report)
            while self.attempts < self.settings.attempts and time.monotonic() < end:
                report(self._update(executor))
                if self.updates % every == 0:
                    self.save()
            self.save()

    def _clone(self, executor: Executor | None, report: Report) -> None:
        """Train the network to act as the rule does."""
        made = number = 0
        while made < self.settings.cloned:
            decisions = self._made(executor, "rule", 0.0, -1 - number)
            made, number = made + sum(len(some.rewards) for some in decisions), number + 1
            report({"cloned": made} | self.learner.clone(decisions) | _outcome(decisions))

    def _update(self, executor: Executor | None) -> dict[str, Any]:
        kind = "sampling" if self.settings.algorithm == "ppo" else "exploring"
        decisions = self._made(executor, kind, self._epsilon(), self.updates)
        figures = self.learner.learn(decisions)
        self.attempts += sum(len(some.rewards) for some in decisions)
        self.updates += 1
        row = {"attempts": self.attempts, "updates": self.updates} | figures | _outcome(decisions)
        with (self.folder / "progress.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return row

    def _epsilon(self) -> float:
        """Return the share of random actions, which falls during the first third of training."""
        done = min(1.0, 3 * self.attempts / self.settings.attempts)
        first = 0.3 if self.settings.cloned else 1.0
        return first + (self.settings.epsilon - first) * done

    def _made(self, executor: Executor | None, kind: str, epsilon: float, number: int) -> list[Decisions]:
        """Return the decisions of the batches of one update."""
        settings = self.settings
        seeds = ((settings.seed, number + 10**6, i) for i in range(settings.batches))
        drawn = partial(draw_batch, "training", measurements=settings.measurements, redraws=settings.redraws)
        batches = [drawn(seed, settings.tasks, settings.budgets) for seed in seeds]
        work = partial(_attempts, self.plain_weights(), kind, epsilon)
        if executor is None:
            return list(map(work, batches))
        # The longest first, so that no process begins one when the others are done.
        order = sorted(range(len(batches)), key=lambda i: -batches[i].attempts)
        made = dict(zip(order, executor.map(work, [batches[i] for i in order]), strict=True))
        return [made[i] for i in range(len(batches))]

    def plain_weights(self) -> dict[str, Any]:
        """Return sizes and weights of the network, which `evaluate` takes."""
        state = {name: value.cpu() for name, value in self.learner.scorer.state_dict().items()}
        return {"sizes": asdict(self.learner.scorer.sizes), "weights": state}

    def save(self) -> None:
        """Write checkpoint and weights so that a kill leaves the earlier ones whole."""
        state = {"settings": asdict(self.settings), "attempts": self.attempts, "updates": self.updates}
        draft = self.checkpoint.with_suffix(".draft")
        torch.save(state | {"learner": self.learner.state()}, draft)
        draft.replace(self.checkpoint)
        network = copy_of(self.plain_weights())
        scoring.save(network, self.weights)

    def _resume(self) -> None:
        saved = torch.load(self.checkpoint, weights_only=True, map_location="cpu")
        settings = asdict(self.settings)
        before = asdict(Settings()) | saved["settings"] | {"attempts": settings["attempts"]}
        if before != settings:
            changed = ", ".join(sorted(name for name in settings if settings[name] != before.get(name)))
            raise ConfigError(f"{self.folder} holds a training with other settings ({changed}): choose another folder")
        self.attempts, self.updates = saved["attempts"], saved["updates"]
        self.learner.restore(saved["learner"])


@dataclass(frozen=True)
class Judged:
    """What a policy reached in a batch.

    Attributes:
        reward: Mean reward of an attempt.
        solved: Share of tasks with a feasible kernel.
        areas: By task: share of the budget that was left when it was solved, 0 if it was not.
        captured: Share of the knowing picker's gain over random picks, in drafting; None if it was not computed.
    """

    reward: float
    solved: float
    areas: dict[str, float]
    captured: float | None = None


def evaluate(
    policy: str,
    batches: Sequence[Batch],
    workers: int = 1,
    weights: dict[str, Any] | None = None,
    knowing: bool = False,
) -> list[Judged]:
    """Return what a policy reaches in each batch.

    Args:
        policy: `greedy` or `sampling` with weights, else `rule`, `random` or `knowing`.
        batches: Where it is tested.
        workers: Processes.
        weights: Sizes and weights of the network.
        knowing: Compare each pick with the knowing picker's, which takes several times as long.

    Returns:
        One result for each batch.
    """
    with processes(workers) as executor:
        work = partial(_judged, weights or {}, policy, knowing)
        return list(executor.map(work, batches) if executor else map(work, batches))


def _judged(weights: dict[str, Any], kind: str, knowing: bool, batch: Batch) -> Judged:
    envs = batch.environments()
    picker = KnowingPicker(batch, envs)
    policy: Policy = picker if kind == "knowing" else _policy(weights, kind, 0.0)
    watched = Watched(policy, picker)
    made = make_attempts(batch, watched if knowing else policy, envs)
    areas = {task: 1.0 - first / batch.budget for task, first in zip(batch.tasks, made.first.tolist(), strict=True)}
    return Judged(float(made.rewards.mean()), made.solved, areas, watched.captured if knowing else None)


def standings(results: Mapping[str, Sequence[Judged]], reference: str) -> str:
    """Return a Markdown table of policies that were tested in the same batches.

    Differences of area have 95% intervals over authors and tasks, both resampled.

    Args:
        results: What each policy reached in each batch.
        reference: The policy that the others are compared with.

    Returns:
        The table.
    """
    lines = [
        f"| policy | mean reward | solved | area | area above `{reference}` | p | share of the knowing picker's gain |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, judged in results.items():
        reward, solved = (float(np.mean([getattr(some, key) for some in judged])) for key in ("reward", "solved"))
        area = float(np.mean([value for some in judged for value in some.areas.values()]))
        gain = crossed_mean(area_gains(judged, results[reference]))
        shown, p = ("", "") if gain is None or name == reference else (gain.interval.signed, f"{gain.p:.2g}")
        captured = [some.captured for some in judged if some.captured is not None]
        share = f"{np.mean(captured):.2f}" if captured else ""
        lines.append(f"| {name} | {reward:+.3f} | {solved:.3f} | {area:.3f} | {shown} | {p} | {share} |")
    return "\n".join(lines) + "\n"


def area_gains(judged: Sequence[Judged], others: Sequence[Judged]) -> NDArray[np.float64]:
    """Return differences of area, one row for each batch and one column for each task; NaN where there is none."""
    tasks = sorted({task for some in judged for task in some.areas})
    rows = [
        [some.areas[task] - other.areas[task] if task in some.areas else np.nan for task in tasks]
        for some, other in zip(judged, others, strict=True)
    ]
    return np.array(rows)


def fixed_batches(
    count: int,
    split: Split = "test",
    tasks: int = 32,
    budget: int = 10,
    measurements: str = PACKAGED,
    profile: str = "",
) -> list[Batch]:
    """Return batches of a split that are always the same, and none that is trained on.

    Args:
        count: How many batches.
        split: The split of tasks and authors.
        tasks: Tasks of a batch.
        budget: Attempts at a task.
        measurements: What verdicts are forecast from.
        profile: The profile whose members are the authors, one after another; empty: the authors of the split.

    Returns:
        The batches.
    """
    batches = [draw_batch(split, (7, number), tasks, (budget,), measurements) for number in range(count)]
    return [replace(batch, author=f"{profile}~{n}") for n, batch in enumerate(batches)] if profile else batches


def copy_of(weights: dict[str, Any]) -> CandidateScorer:
    """Return a network with these sizes and weights."""
    scorer = CandidateScorer(ScorerSizes(**weights["sizes"]))
    scorer.load_state_dict(weights["weights"])
    return scorer


def _policy(weights: dict[str, Any], kind: str, epsilon: float) -> Policy:
    if kind == "rule":
        return rollouts.similarity_feasible
    if kind == "random":
        return rollouts.uniform
    scorer = copy_of(weights)
    return rollouts.sampling(scorer) if kind == "sampling" else rollouts.exploring(scorer, epsilon)


def _attempts(weights: dict[str, Any], kind: str, epsilon: float, batch: Batch) -> Decisions:
    return make_attempts(batch, _policy(weights, kind, epsilon))


def _outcome(decisions: Sequence[Decisions]) -> dict[str, float]:
    return {
        "reward": float(np.mean(np.concatenate([some.rewards for some in decisions]))),
        "solved": float(np.mean([some.solved for some in decisions])),
    }


@contextmanager
def processes(workers: int) -> Iterator[Executor | None]:
    """Yield an executor of several processes; None for one, which is this one."""
    if workers < 2:
        yield None
        return
    # Not forked: torch has threads.
    with ProcessPoolExecutor(workers, get_context("spawn"), partial(torch.set_num_threads, 1)) as executor:
        yield executor
