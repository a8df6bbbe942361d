"""Logged attempts with the probability of every pick, and estimates of another policy's reward from them.

A log is made by a policy that draws each pick with a known probability. What another policy would have earned in the
same states is estimated from the log alone: by inverse propensity, where each attempt counts with the ratio of the
probabilities of its picks, and doubly robust (arXiv 1511.03722), where a model of the reward is corrected by these
ratios. On forecasts the truth is known too: the environment is copied at the beginning of an attempt, and the other
policy makes the attempt in the copy.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from kernel_gym.agents.scoring import CandidateScorer, ScorerSizes
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.observation import Layout, Vector
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.pretraining import rollouts
from kernel_gym.experiments.pretraining.learners import DQNLearner, LoggedLearner
from kernel_gym.experiments.pretraining.rollouts import Batch, Decisions, Policy, make_attempts

Numbers = NDArray[np.float64]
#: Expected reward that makes one action e times as likely as another in a policy that was fitted to a log.
TEMPERATURE = 0.02
#: Returns the probability of every action, one row for each observation.
Probabilities = Callable[[Vector, Vector], Numbers]


def mixed(share: float) -> Probabilities:
    """Return the policy that follows the rule `similarity-feasible` with probability `share`, else picks at random."""

    def probabilities(seen: Vector, mask: Vector) -> Numbers:
        by_chance = mask / mask.sum(axis=1, keepdims=True)
        actions, _ = rollouts.similarity_feasible(seen, mask, np.random.default_rng(0))
        by_rule = np.eye(mask.shape[1])[actions]
        both: Numbers = share * by_rule + (1 - share) * by_chance
        return both

    return probabilities


def drawn_from(probabilities: Probabilities) -> Policy:
    """Return the policy that draws actions with these probabilities."""

    def act(seen: Vector, mask: Vector, rng: np.random.Generator) -> Any:
        chances = probabilities(seen, mask)
        actions = (chances.cumsum(axis=1) < rng.random((len(chances), 1))).sum(axis=1).clip(max=mask.shape[1] - 1)
        return actions, np.log(chances[np.arange(len(actions)), actions])

    return act


def true_reward(batch: Batch, logging: Policy, target: Policy) -> tuple[float, float]:
    """Return the mean reward of the logging policy, and of another one in the states that the first leads to.

    Args:
        batch: Where attempts are made.
        logging: The policy that decides which states there are.
        target: The policy that makes one attempt from each of these states, in a copy.

    Returns:
        The two means; both policies meet the same draws of the author.
    """
    envs, count = batch.environments(), len(batch.tasks)
    rng, other = np.random.default_rng(batch.seed), np.random.default_rng(batch.seed + 1)
    observations, _ = envs.reset(seed=batch.seed)
    own, others = list[float](), list[float]()
    while len(own) < batch.attempts:
        others += _attempt(copy.deepcopy(envs), observations, target, other)[0]
        rewards, observations = _attempt(envs, observations, logging, rng)
        own += rewards
    assert len(others) == len(own) == count * batch.budget
    return float(np.mean(own)), float(np.mean(others))


def true_reward_of_shares(logging: float, target: float, batch: Batch) -> float:
    """Return the mean reward of the mixed policy with share `target`, in states of the one with share `logging`."""
    return true_reward(batch, drawn_from(mixed(logging)), drawn_from(mixed(target)))[1]


def _attempt(envs: ForecastVectorEnv, observations: Any, policy: Policy, rng: np.random.Generator) -> Any:
    """Make one attempt at each task; return the rewards and the observations after it."""
    while True:
        actions, _ = policy(observations["observations"], observations["action_mask"], rng)
        observations, rewards, *_, infos = envs.step(actions)
        if "attempt" in infos:
            return rewards.tolist(), observations


# Logs in files


def write_log(folder: Path, number: int, decisions: Decisions, batch: Batch) -> None:
    """Write the decisions of a batch as one file; observations have half precision."""
    arrays = {field.name: getattr(decisions, field.name) for field in fields(Decisions)}
    arrays["observations"] = decisions.observations.astype(np.float16)
    folder.mkdir(parents=True, exist_ok=True)
    draft = folder / f"draft-{number:05d}.npz"
    np.savez_compressed(draft, allow_pickle=False, author=batch.author, tasks=np.array(batch.tasks), **arrays)
    draft.replace(folder / f"log-{number:05d}.npz")


def read_log(file: Path) -> Decisions:
    """Return the decisions of a file.

    Raises:
        KernelGymError: The file is no log.
    """
    try:
        with np.load(file) as arrays:
            columns = {field.name: arrays[field.name] for field in fields(Decisions) if field.name in arrays}
    except (OSError, ValueError, KeyError) as error:
        raise KernelGymError(f"{file} is no log: make one with `kernel-gym pretrain log`") from error
    columns["observations"] = columns["observations"].astype(np.float32)
    return Decisions(**columns | {"solved": float(columns["solved"])})


def logged(batch: Batch, share: float) -> Decisions:
    """Make the attempts of a batch with the mixed policy; `log_probabilities` are those of the picks."""
    return make_attempts(batch, drawn_from(mixed(share)))


def log_batch(folder: Path, share: float, number: int, batch: Batch) -> int:
    """Make and write the attempts of a batch; return how many picks they have."""
    decisions = logged(batch, share)
    write_log(folder, number, decisions, batch)
    return len(decisions.actions)


# Learning


def fit_scores(
    log: Sequence[Decisions], logging: Probabilities, epochs: int = 3, hidden: int = 64, layers: int = 1, seed: int = 0
) -> tuple[CandidateScorer, float]:
    """Fit a network to a log: its scores say which action earns more.

    Args:
        log: The log.
        logging: The policy that made it.
        epochs: Passes over the log.
        hidden: Width of the network.
        layers: Layers of self-attention.
        seed: Seed of weights and order.

    Returns:
        The network, on the processor, and the squared error of its predictions at the end. Scores are expected rewards
        divided by `TEMPERATURE`, so that a policy that draws with them as logits prefers what earns more.
    """
    torch.manual_seed(seed)
    layout = Layout.of_size(log[0].masks.shape[1] - 1, log[0].observations.shape[1])
    device = "cuda" if torch.cuda.is_available() else "cpu"
    learner = LoggedLearner(CandidateScorer(ScorerSizes.of(layout, hidden, layers)).to(device), 2e-3, seed)
    chances = [logging(some.observations, some.masks.astype(np.float32)) for some in log]
    figures = learner.fit(log, chances, epochs)
    scorer = learner.scorer.cpu()
    with torch.no_grad():
        for parameter in (*scorer.score.parameters(), *scorer.generate[-1].parameters()):
            parameter.div_(TEMPERATURE)
    return scorer, figures["error"]


# Estimates


@dataclass(frozen=True)
class Estimate:
    """Estimates of a policy's mean reward, and the mean reward of the log.

    Attributes:
        logged: Mean reward of the logged attempts.
        propensity: By inverse propensity.
        normalised: The same, divided by the mean of the ratios instead of the number of attempts.
        doubly_robust: By the model and the ratios.
        effective: Attempts that the ratios leave, as (sum of ratios)^2 / sum of squared ratios.
    """

    logged: float
    propensity: float
    normalised: float
    doubly_robust: float
    effective: float


def reward_model(log: Sequence[Decisions], epochs: int = 3, seed: int = 0) -> CandidateScorer:
    """Return a network whose scores are the expected rewards of actions, fitted to a log."""
    torch.manual_seed(seed)
    layout = Layout.of_size(log[0].masks.shape[1] - 1, log[0].observations.shape[1])
    learner = DQNLearner(CandidateScorer(ScorerSizes.of(layout, 32, 1)), 1e-3, seed)
    learner.clone(log, epochs)
    return learner.scorer


def estimate(log: Sequence[Decisions], target: Probabilities, model: CandidateScorer) -> Estimate:
    """Estimate what a policy would earn in the logged states.

    Args:
        log: The log.
        target: The policy.
        model: Expected rewards of actions.

    Returns:
        The estimates.
    """
    rows = [_attempt_values(some, target, model) for some in log]
    rewards, ratios, robust = (np.concatenate(columns) for columns in zip(*rows, strict=True))
    return Estimate(
        float(rewards.mean()),
        float((ratios * rewards).mean()),
        float((ratios * rewards).sum() / ratios.sum()),
        float(robust.mean()),
        float(ratios.sum() ** 2 / (ratios**2).sum()),
    )


def _attempt_values(some: Decisions, target: Probabilities, model: CandidateScorer) -> tuple[Numbers, Numbers, Numbers]:
    """Return reward, ratio of probabilities and doubly robust value of each attempt."""
    mask = some.masks.astype(np.float32)
    chances = target(some.observations, mask)
    taken = np.arange(len(some.actions)), some.actions
    ratio = chances[taken] / np.exp(some.log_probabilities.astype(np.float64))
    with torch.no_grad():
        batch = {"observations": torch.as_tensor(some.observations), "action_mask": torch.as_tensor(mask)}
        values = model.masked(batch, 0.0)[0].double().numpy()
    expected = (chances * values).sum(axis=1)
    robust, product = np.zeros(len(ratio)), np.zeros(len(ratio))
    # A decision comes before those that follow it.
    for row in range(len(ratio) - 1, -1, -1):
        after = some.following[row]
        later = some.returns[row] if after < 0 else robust[after]
        robust[row] = expected[row] + ratio[row] * (later - values[row, some.actions[row]])
        product[row] = ratio[row] * (1.0 if after < 0 else product[after])
    first = np.setdiff1d(np.arange(len(ratio)), some.following[some.following >= 0])
    return some.returns[first].astype(np.float64), product[first], robust[first]


def errors_table(estimates: Sequence[Estimate], truths: Sequence[float]) -> str:
    """Return a Markdown table that holds the estimates of batches against their truth."""
    truth = np.array(truths)
    lines = ["| estimate | mean | mean error | standard error |", "|---|---|---|---|"]
    for name in ("logged", "propensity", "normalised", "doubly_robust"):
        values = np.array([getattr(some, name) for some in estimates])
        errors = values - truth
        spread = errors.std(ddof=1) / len(errors) ** 0.5 if len(errors) > 1 else float("nan")
        lines.append(f"| {name} | {values.mean():+.4f} | {errors.mean():+.4f} | {spread:.4f} |")
    lines.append(f"| truth | {truth.mean():+.4f} | | |")
    return "\n".join(lines) + "\n"
