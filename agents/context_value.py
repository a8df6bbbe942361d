"""Show the author the context with the highest learned value: our design.

A table of values per item learns slowly, because every attempt adds items without a value. Here a value belongs to a
whole context and is computed from what the context shows for the task (`support/context_features.py`). So it applies to
items and tasks that were never seen. Each gate that a kernel has to pass has a Bayesian logistic regression of its own:

    P(compiles) = s(w1 . f),  P(correct | compiles) = s(w2 . f),  E[(1 + r2) / 2 | correct] = s(w3 . f)

with s the logistic function, so that the agent learns from failed attempts too. What the features do not explain goes
into an effect of each item, a mean and a variance, which is added to the log-odds of the product. Weights and effects
are drawn from their posterior once per attempt (Thompson sampling). Picks are greedy: the candidate that adds most to
the value of the context so far. When no candidate adds anything, the kernel is generated with a shorter context. Picks
complement each other because the features describe a set: code that is shown twice covers no more, and a second
experience of the same failure counts half. The agent reads the observation, `info` and finished attempts only.

The weights begin with one of three priors. `none` knows nothing: all means are 0, deviations are wide. `verdicts` was
learned from verdicts alone, on other tasks and authors (`kernel-gym pretrain prior`); its file says how many. `author`
was fitted to the simulated author's own probabilities, so that results with it are model-informed and no evidence that
learning helps.

Options of `ContextValueAgent`: `prior`, `deviation`, `item_deviation` and `explore`.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from math import exp, sqrt
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np

from kernel_gym.agents.contract import Agent, Info, Metrics, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.support.agent_files import read_agent_file
from kernel_gym.agents.support.context_features import (
    FEATURES,
    TaskOutlook,
    TaskRecord,
    Weights,
    features,
    gate_features,
    statements,
)
from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.agents.support.open_attempts import OpenAttempts
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage

#: The file that `save` writes.
FILE = "context_value.json"
#: What the regressions predict, in the order in which `FEATURES` lists prior weights.
GATES = ("compiles", "correct", "faster")
#: What the weights begin with.
Prior = Literal["none", "verdicts", "author"]
#: Deviation of every weight under each prior; that of `verdicts` is learned with the means.
DEVIATIONS = {"none": 1.0, "author": 0.1}
#: The packaged file with the prior that was learned from verdicts.
VERDICTS = "context_value_prior.json"


@dataclass
class GateModel:
    """Bayesian logistic regression for one gate, updated by one Newton step per observation.

    Args:
        mean: Posterior mean of the weights.
        covariance: Posterior covariance of the weights.
    """

    mean: Weights
    covariance: Weights

    def draw(self, rng: np.random.Generator, scale: float) -> Weights:
        """Draw weights from the posterior, with its deviations multiplied by `scale`."""
        spread: Weights = np.linalg.cholesky(self.covariance) @ rng.standard_normal(len(self.mean))
        return self.mean + scale * spread

    @property
    def doubt(self) -> float:
        """Mean posterior deviation of a weight."""
        return float(np.sqrt(np.diag(self.covariance)).mean())

    def learn(self, features: Weights, target: float) -> float:
        """Update with one observation, `target` in [0, 1]. Returns the prediction from before the update."""
        expected = logistic(float(self.mean @ features))
        along = self.covariance @ features
        steepness = expected * (1 - expected)
        self.covariance -= steepness * np.outer(along, along) / (1 + steepness * float(features @ along))
        self.mean += (self.covariance @ features) * (target - expected)
        return expected


@dataclass
class ItemEffects:
    """Effects of items that the features do not explain, as additions to the log-odds.

    Args:
        variance: Prior variance of an effect; its prior mean is 0.
        table: Mean and variance by (stage, item).
    """

    variance: float
    table: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    def of(self, stage: Stage, item: int) -> tuple[float, float]:
        """Return mean and variance of an item's effect."""
        return self.table.get((stage.value, item), (0.0, self.variance))

    def learn(self, stage: Stage, items: Sequence[int], expected: float, target: float) -> None:
        """Distribute the error of an attempt over the items that were shown, in proportion to their variance."""
        steepness = expected * (1 - expected)
        effects = [self.of(stage, item) for item in items]
        total = 1 + steepness * sum(variance for _, variance in effects)
        for item, (mean, variance) in zip(items, effects, strict=True):
            gain = variance / total
            self.table[stage.value, item] = (mean + gain * (target - expected), variance - steepness * variance * gain)

    def forget(self, items: Collection[int]) -> None:
        """Drop the effects of items that will not occur again."""
        if items:
            self.table = {row: effect for row, effect in self.table.items() if row[1] not in items}


class ContextValueAgent(Agent):
    """Thompson sampling on the value of the whole context: pick what adds most, stop when nothing adds.

    Args:
        seed: Seed of the draws from the posterior.
        prior: What the weights begin with: `none`, `verdicts`, `author`, or a file that `kernel-gym pretrain prior`
            wrote, ending in .json.
        deviation: Prior deviation of every weight; None: that of the prior.
        item_deviation: Prior deviation of an item's own effect.
        explore: Factor of the posterior's deviations in a draw; 0 picks by the mean.

    Raises:
        ConfigError: If an option is out of range.
    """

    def __init__(
        self,
        seed: int = 0,
        prior: Prior | str = "author",
        deviation: float | None = None,
        item_deviation: float = 0.1,
        explore: float = 0.3,
    ) -> None:
        super().__init__(seed)
        if prior not in get_args(Prior) and not prior.endswith(".json"):
            raise ConfigError(f"context-value: prior is one of {', '.join(get_args(Prior))}, not {prior!r}")
        if not ((deviation is None or deviation > 0.0) and item_deviation >= 0.0 and explore >= 0.0):
            raise ConfigError(
                "context-value: deviation must be above 0, item_deviation and explore at least 0, "
                f"not {deviation}, {item_deviation} and {explore}"
            )
        self.prior, self.deviation, self.explore = prior, deviation, explore
        self.effects = ItemEffects(item_deviation**2)
        self.gates = {(stage, gate): self._prior(stage, gate) for stage in Stage for gate in GATES}
        self.records: dict[str, TaskRecord] = {}
        #: How many tasks' kernels have a statement.
        self.statement_tasks: Counter[str] = Counter()
        self._open = OpenAttempts[_OpenAttempt]()
        self._numbers = ItemNumbers()

    def _prior(self, stage: Stage, gate: str) -> GateModel:
        """Return the regression of a gate before any attempt."""
        count = len(FEATURES)
        mean, deviation = np.zeros(count), np.full(count, self.deviation or DEVIATIONS.get(self.prior, 1.0))
        if self.prior == "author":
            mean = np.array([weights[GATES.index(gate)] for weights in FEATURES.values()])
        elif self.prior != "none":
            mean, learned = learned_prior(stage, gate, "" if self.prior == "verdicts" else self.prior)
            deviation = deviation if self.deviation else learned
        return GateModel(mean, np.diag(deviation**2))

    # Picking

    def act(self, observation: Observation, info: Info) -> int:
        """Return the candidate that adds most to the value of the context; "generate now" once none adds anything."""
        slots, candidates = legal_slots(observation), info["candidates"]
        if not slots:
            return generate(observation)
        if info["draft_due"]:
            return slots[0]
        attempt = self._attempt(info)
        if info["start_due"]:
            best = max(slots, key=lambda slot: attempt.value(candidates[slot], (), info))
            attempt.start = candidates[best]
            self._open.move(info["task"], attempt.start.id, (), attempt)
            return best
        picked = [attempt.seen[id] for id in info["picked"]]
        values = {slot: attempt.value(attempt.start, [*picked, candidates[slot]], info) for slot in slots}
        best = max(slots, key=lambda slot: values[slot])
        if values[best] > attempt.value(attempt.start, picked, info):
            self._open.move(info["task"], info["start"], (*info["picked"], candidates[best].id), attempt)
            return best
        return generate(observation)

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return what each candidate adds to the expected reward, by the posterior's mean."""
        attempt, candidates = self._find(info), info["candidates"]
        start, belief = attempt.start if attempt else None, self._mean(info["stage"], info["task"])
        attempt = _OpenAttempt(self.outlook(info["task"]), belief, start=start)
        if info["start_due"]:
            return [attempt.value(candidate, (), info) for candidate in candidates]
        picked = [candidate for candidate in candidates if candidate.id in info["picked"]]
        before = attempt.value(start, picked, info)
        return [attempt.value(start, [*picked, candidate], info) - before for candidate in candidates]

    def _attempt(self, info: Info) -> _OpenAttempt:
        """Return the present attempt, with one draw from the posterior and the candidates seen so far."""
        # A first pick always begins a new attempt: the agent does not learn the end of attempts that the
        # infrastructure failed, nor of those in an evaluation.
        begins = not info["picked"] and (info["start_due"] or not info["start"])
        attempt = None if begins else self._find(info)
        if attempt is None:
            attempt = _OpenAttempt(self.outlook(info["task"]), self._draw(info["stage"], info["task"]))
            self._open.begin(info["task"], info["start"], info["picked"], attempt)
        attempt.seen |= {candidate.id: candidate for candidate in info["candidates"]}
        return attempt

    def _find(self, info: Info) -> _OpenAttempt | None:
        return self._open.find(info["task"], info["start"], info["picked"])

    def outlook(self, task: str) -> TaskOutlook:
        """Return what is known about a task from the attempts so far."""
        return TaskOutlook(task, self.records, self.statement_tasks)

    def _draw(self, stage: Stage, task: str) -> Belief:
        weights = {gate: self.gates[stage, gate].draw(self.rng, self.explore) for gate in GATES}
        noise = np.random.default_rng(self.rng.integers(2**63))
        drawn: dict[int, float] = {}

        def effect(item: int) -> float:
            if item not in drawn:
                mean, variance = self.effects.of(stage, self._numbers.number(task, item))
                drawn[item] = mean + self.explore * sqrt(variance) * float(noise.standard_normal())
            return drawn[item]

        return Belief(weights, effect)

    def _mean(self, stage: Stage, task: str) -> Belief:
        weights = {gate: self.gates[stage, gate].mean for gate in GATES}
        return Belief(weights, lambda item: self.effects.of(stage, self._numbers.number(task, item))[0])

    # Learning

    def learn(self, attempt: Attempt) -> Metrics:
        """Update every gate that the kernel reached, then the task's record."""
        if attempt.index == 0:
            self.effects.forget(self._numbers.begin_episode(attempt.task))
        open_attempt = self._open.end(attempt.task, attempt.start, attempt.context)
        record = self.records.setdefault(attempt.task, TaskRecord())
        metrics = self._update(attempt, open_attempt) if open_attempt is not None else {}
        self.statement_tasks.update(statements(attempt.kernel.source) - record.statements.keys())
        record.add(attempt)
        return metrics

    def _update(self, attempt: Attempt, open_attempt: _OpenAttempt) -> Metrics:
        outlook, start, seen = open_attempt.outlook, open_attempt.start, open_attempt.seen
        picks = [seen[id] for id in attempt.context if id in seen]
        row = features(outlook, picks, start, attempt.best_us)
        shown = _shown_ids(start, picks)
        expected = self._mean(attempt.stage, attempt.task).value(outlook.record, row, attempt.stage, shown)
        numbers = [self._numbers.number(attempt.task, id) for id in shown]
        self.effects.learn(attempt.stage, numbers, (1 + expected) / 2, (1 + attempt.reward) / 2)
        for gate, target in _outcomes(attempt).items():
            self.gates[attempt.stage, gate].learn(gate_features(row, outlook.record, gate), target)
        return {
            "error": abs(attempt.reward - expected),
            "items": float(len(self.effects.table)),
            "predicted": expected,
            "doubt": sum(self.gates[attempt.stage, gate].doubt for gate in GATES) / len(GATES),
        }

    @property
    def values(self) -> dict[tuple[str, int], float]:
        """Mean effects of items on the log-odds, by stage and item."""
        return {row: mean for row, (mean, _) in self.effects.table.items()}

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Move effects to the new ids; effects of items that are not in the bank are dropped."""
        rows = ((row, effect) for row, effect in self.effects.table.items() if row[1] in ids)
        self.effects.table = {(stage, ids[item]): effect for (stage, item), effect in rows}

    def use_fresh_memory(self, lasting: int) -> None:
        """Keep the effects of different episodes' own items apart."""
        self._numbers = ItemNumbers(lasting)

    def save(self, path: Path) -> None:
        """Write weights, effects, records and random state; effects of an episode's own items are left out."""
        path.mkdir(parents=True, exist_ok=True)
        data = {
            "features": list(FEATURES),
            "gates": [
                [stage, gate, model.mean.tolist(), model.covariance.tolist()]
                for (stage, gate), model in self.gates.items()
            ],
            "effects": [[stage, item, *effect] for (stage, item), effect in self.effects.table.items() if item > 0],
            "records": {task: vars(record) for task, record in self.records.items()},
            "known": self.statement_tasks,
            "rng": self.rng.bit_generator.state,
        }
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote, also what earlier versions did.

        Raises:
            ConfigError: If the folder has no weights, or weights of other features.
        """
        data = read_agent_file(path, FILE)
        if data.get("features") != list(FEATURES):
            raise ConfigError("these weights belong to other features: another version saved the agent; train it again")
        self.gates = {
            (Stage(stage), gate): GateModel(np.array(mean), np.array(covariance))
            for stage, gate, mean, covariance in data["gates"]
        }
        self.effects.table = {(stage, item): (mean, variance) for stage, item, mean, variance in data["effects"]}
        self.records = {task: TaskRecord(**_with_counters(record)) for task, record in data["records"].items()}
        self.statement_tasks = Counter(data["known"])
        self.rng.bit_generator.state = data["rng"]


@cache
def _learned_priors(name: str) -> dict[tuple[str, str], tuple[Weights, Weights]]:
    file = Path(name) if name else resources.files("kernel_gym.agents").joinpath("weights", VERDICTS)
    if not file.is_file():
        where = name or "in this package"
        raise ConfigError(
            f"there is no learned prior {where}: make one with `kernel-gym pretrain prior` and name its file"
        )
    data = json.loads(file.read_text())
    if data["features"] != list(FEATURES):
        raise ConfigError("the learned prior belongs to other features: renew it with `kernel-gym pretrain prior`")
    return {(stage, gate): (np.array(mean), np.array(deviation)) for stage, gate, mean, deviation in data["gates"]}


def learned_prior(stage: Stage, gate: str, name: str = "") -> tuple[Weights, Weights]:
    """Return means and deviations of a gate's weights as learned from verdicts.

    Args:
        stage: The stage.
        gate: One of `GATES`.
        name: A file that `kernel-gym pretrain prior` wrote; empty: the packaged one.

    Returns:
        Means and deviations, new arrays.

    Raises:
        ConfigError: There is no such prior, or it is for other features.
    """
    mean, deviation = _learned_priors(name)[stage.value, gate]
    return mean.copy(), deviation.copy()


@dataclass(frozen=True)
class Belief:
    """Weights of the gates and effects of items: the posterior's mean, or one draw from it."""

    weights: Mapping[str, Weights]
    effect: Callable[[int], float]

    def value(self, record: TaskRecord, row: Weights, stage: Stage, shown: Sequence[int]) -> float:
        """Return the expected reward of an attempt whose context has these features and items."""
        chance = {gate: logistic(float(self.weights[gate] @ gate_features(row, record, gate))) for gate in GATES}
        good = chance["compiles"] * chance["correct"] * (chance["faster"] if stage is Stage.REFINE else 1.0)
        odds = good / (1 - good) * exp(sum(map(self.effect, shown)))
        return 2 * odds / (1 + odds) - 1


@dataclass
class _OpenAttempt:
    """An attempt that has not ended: its task's outlook, a belief, the candidates seen, the start point chosen."""

    outlook: TaskOutlook
    belief: Belief
    seen: dict[int, Candidate] = field(default_factory=dict)
    start: Candidate | None = None

    def value(self, start: Candidate | None, picks: Sequence[Candidate], info: Info) -> float:
        """Return the expected reward of the attempt with this start point and these picks."""
        row = features(self.outlook, picks, start, info["best_us"])
        return self.belief.value(self.outlook.record, row, info["stage"], _shown_ids(start, picks))


def _shown_ids(start: Candidate | None, picks: Sequence[Candidate]) -> list[int]:
    return [candidate.id for candidate in [*([start] if start else []), *picks]]


def _outcomes(attempt: Attempt) -> dict[str, float]:
    """Return the targets of the gates that an attempt's kernel reached."""
    verdict = attempt.verdict
    if not verdict.compiled:
        return {"compiles": 0.0}
    if not verdict.feasible:
        return {"compiles": 1.0, "correct": 0.0}
    faster = {"faster": (1 + attempt.reward) / 2} if attempt.stage is Stage.REFINE else {}
    return {"compiles": 1.0, "correct": 1.0, **faster}


def _with_counters(record: dict[str, Any]) -> dict[str, Any]:
    return {name: Counter(value) if isinstance(value, dict) else value for name, value in record.items()}


def read_item_values(path: Path) -> dict[int, dict[str, float]]:
    """Read the saved effects of items.

    Args:
        path: The folder that `ContextValueAgent.save` wrote.

    Returns:
        The mean effect on the log-odds, by item and then by stage.

    Raises:
        ConfigError: If the folder has no effects.
    """
    effects: dict[int, dict[str, float]] = {}
    for stage, item, mean, _ in read_agent_file(path, FILE)["effects"]:
        effects.setdefault(item, {})[stage] = mean
    return effects


def logistic(odds: float) -> float:
    """Return 1 / (1 + e^-odds), kept away from exactly 0 and 1."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, odds))))
