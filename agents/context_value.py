"""An agent of our own: values of whole contexts, learned over items and tasks, with their uncertainty.

A table of values per item learns slowly: every attempt adds items that have none. Here a value belongs to a context,
computed from what the context shows for the task at hand (`features`), so what is learned holds for items and tasks
that were never seen. Each gate that a kernel has to pass has a Bayesian logistic regression of its own:

    P(compiles) = s(w1 . f),  P(correct | compiles) = s(w2 . f),  E[(1 + r2) / 2 | correct] = s(w3 . f)

with s the logistic function, so that an attempt teaches even when it fails. For what the features can't tell, each item
has an effect of its own, with a mean and a variance: an addition to the log-odds of the whole. Weights and effects are
drawn from their posterior once an attempt (Thompson sampling). Picks are greedy: the candidate that adds most to the
value of what is picked; when none adds anything, the kernel is generated with a shorter context. Picks complement each
other because the features are those of a set: code that is shown twice covers no more, and a second account of the same
failure says half as much. Nothing but the observation, `info` and finished attempts is looked at.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from math import exp, sqrt
from pathlib import Path
from typing import Any

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

#: What is learned is saved as.
FILE = "context_value.json"
GATES = ("compiles", "correct", "faster")


@dataclass
class GateModel:
    """Bayesian logistic regression, updated by one Newton step an observation: a mean and a covariance of weights."""

    mean: Weights
    covariance: Weights

    def draw(self, rng: np.random.Generator, scale: float) -> Weights:
        """Weights from the posterior, its deviations multiplied by `scale`."""
        spread: Weights = np.linalg.cholesky(self.covariance) @ rng.standard_normal(len(self.mean))
        return self.mean + scale * spread

    @property
    def doubt(self) -> float:
        """Mean deviation of a weight."""
        return float(np.sqrt(np.diag(self.covariance)).mean())

    def learn(self, features: Weights, target: float) -> float:
        """Take in one observation, `target` in [0, 1]; what was predicted before."""
        expected = logistic(float(self.mean @ features))
        along = self.covariance @ features
        steepness = expected * (1 - expected)
        self.covariance -= steepness * np.outer(along, along) / (1 + steepness * float(features @ along))
        self.mean += (self.covariance @ features) * (target - expected)
        return expected


@dataclass
class ItemEffects:
    """What items do beyond what their features tell, by (stage, item): mean and variance of an addition to log-odds."""

    variance: float
    table: dict[tuple[str, int], tuple[float, float]] = field(default_factory=dict)

    def of(self, stage: Stage, item: int) -> tuple[float, float]:
        """Mean and variance."""
        return self.table.get((stage.value, item), (0.0, self.variance))

    def learn(self, stage: Stage, items: Sequence[int], expected: float, target: float) -> None:
        """Share the error of an attempt among the items that were shown, the uncertain ones first."""
        steepness = expected * (1 - expected)
        known = [self.of(stage, item) for item in items]
        together = 1 + steepness * sum(variance for _, variance in known)
        for item, (mean, variance) in zip(items, known, strict=True):
            gain = variance / together
            self.table[stage.value, item] = (mean + gain * (target - expected), variance - steepness * variance * gain)

    def forget(self, items: Collection[int]) -> None:
        """These will not be met again."""
        if items:
            self.table = {row: known for row, known in self.table.items() if row[1] not in items}


class ContextValueAgent(Agent):
    """Thompson sampling on the value of the whole context; picks what adds most, stops when nothing adds.

    `deviation` is the prior's for every weight, `item_deviation` that of an item's own effect; `explore` multiplies the
    posterior's deviations in a draw: 0 picks by the mean.
    """

    def __init__(
        self, seed: int = 0, deviation: float = 0.1, item_deviation: float = 0.1, explore: float = 0.3
    ) -> None:
        super().__init__(seed)
        if not (deviation > 0.0 and item_deviation >= 0.0 and explore >= 0.0):
            raise ConfigError(
                "context-value: deviation must be above 0, item_deviation and explore at least 0, "
                f"not {deviation}, {item_deviation} and {explore}"
            )
        self.deviation, self.explore = deviation, explore
        self.effects = ItemEffects(item_deviation**2)
        self.gates = {(stage, gate): self._prior(i) for stage in Stage for i, gate in enumerate(GATES)}
        self.records: dict[str, TaskRecord] = {}
        self.known: Counter[str] = Counter()
        self._open = OpenAttempts[_Open]()
        self._numbers = ItemNumbers()

    def _prior(self, gate: int) -> GateModel:
        expected = np.array([weights[gate] for weights in FEATURES.values()])
        return GateModel(expected, self.deviation**2 * np.eye(len(expected)))

    # Picking

    def act(self, observation: Observation, info: Info) -> int:
        """The candidate that adds most to the value of the context; `K` once none adds anything."""
        slots, candidates = legal_slots(observation), info["candidates"]
        if not slots:
            return generate(observation)
        now = self._attempt(info)
        if info["start_due"]:
            best = max(slots, key=lambda slot: now.value(candidates[slot], (), info))
            now.start = candidates[best]
            self._open.move(info["task"], now.start.id, (), now)
            return best
        picked = [now.seen[id] for id in info["picked"]]
        worth = {slot: now.value(now.start, [*picked, candidates[slot]], info) for slot in slots}
        best = max(slots, key=lambda slot: worth[slot])
        if worth[best] > now.value(now.start, picked, info):
            self._open.move(info["task"], info["start"], (*info["picked"], candidates[best].id), now)
            return best
        return generate(observation)

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """What each candidate adds to the expected reward, by the posterior's mean."""
        open_, candidates = self._known(info), info["candidates"]
        now = _Open(
            self.outlook(info["task"]), self._mean(info["stage"], info["task"]), start=open_.start if open_ else None
        )
        if info["start_due"]:
            return [now.value(candidate, (), info) for candidate in candidates]
        picked = [candidate for candidate in candidates if candidate.id in info["picked"]]
        before = now.value(now.start, picked, info)
        return [now.value(now.start, [*picked, candidate], info) - before for candidate in candidates]

    def _attempt(self, info: Info) -> _Open:
        """The attempt under way: what is known about its task, one draw, and the candidates it met."""
        # Of attempts that the infrastructure failed, or that it is not to learn from, it is not told the end.
        begins = not info["picked"] and (info["start_due"] or info["start"] is None)
        now = None if begins else self._known(info)
        if now is None:
            now = _Open(self.outlook(info["task"]), self._draw(info["stage"], info["task"]))
            self._open.begin(info["task"], info["start"], info["picked"], now)
        now.seen |= {candidate.id: candidate for candidate in info["candidates"]}
        return now

    def _known(self, info: Info) -> _Open | None:
        return self._open.find(info["task"], info["start"], info["picked"])

    def outlook(self, task: str) -> TaskOutlook:
        """What is known about a task now."""
        return TaskOutlook(task, self.records, self.known)

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
        """Tell every gate that the kernel reached what came of it, then count the attempt into the task's record."""
        if attempt.index == 0:
            self.effects.forget(self._numbers.begin_episode(attempt.task))
        now = self._open.end(attempt.task, attempt.start, attempt.context)
        record = self.records.setdefault(attempt.task, TaskRecord())
        metrics = self._take(attempt, now) if now is not None else {}
        self.known.update(statements(attempt.kernel.source) - record.statements.keys())
        record.take(attempt)
        return metrics

    def _take(self, attempt: Attempt, now: _Open) -> Metrics:
        picks = [now.seen[id] for id in attempt.context if id in now.seen]
        row = features(now.outlook, picks, now.start, attempt.best_us)
        shown = [one.id for one in _shown(now.start, picks)]
        expected = self._mean(attempt.stage, attempt.task).value(now.outlook.record, row, attempt.stage, shown)
        numbers = [self._numbers.number(attempt.task, id) for id in shown]
        self.effects.learn(attempt.stage, numbers, (1 + expected) / 2, (1 + attempt.reward) / 2)
        for gate, target in _outcomes(attempt).items():
            self.gates[attempt.stage, gate].learn(gate_features(row, now.outlook.record, gate), target)
        return {
            "error": abs(attempt.reward - expected),
            "items": float(len(self.effects.table)),
            "predicted": expected,
            "doubt": sum(self.gates[attempt.stage, gate].doubt for gate in GATES) / len(GATES),
        }

    @property
    def values(self) -> dict[tuple[str, int], float]:
        """What items add to the log-odds beyond their features, by stage and item."""
        return {row: mean for row, (mean, _) in self.effects.table.items()}

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Effects belong to items by id."""
        kept = ((row, known) for row, known in self.effects.table.items() if row[1] in ids)
        self.effects.table = {(stage, ids[item]): known for (stage, item), known in kept}

    def use_fresh_memory(self, lasting: int) -> None:
        """Effects of an episode's own items are its own."""
        self._numbers = ItemNumbers(lasting)

    def save(self, path: Path) -> None:
        """Write weights, records and the state of the generator; no effects of items that are gone with a run."""
        path.mkdir(parents=True, exist_ok=True)
        data = {
            "features": list(FEATURES),
            "gates": [
                [stage, gate, one.mean.tolist(), one.covariance.tolist()] for (stage, gate), one in self.gates.items()
            ],
            "effects": [[stage, item, *known] for (stage, item), known in self.effects.table.items() if item > 0],
            "records": {task: vars(record) for task, record in self.records.items()},
            "known": self.known,
            "rng": self.rng.bit_generator.state,
        }
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote."""
        data = read_agent_file(path, FILE)
        if data.get("features") != list(FEATURES):
            raise ConfigError("these weights belong to other features: the agent was saved by another version")
        self.gates = {
            (Stage(stage), gate): GateModel(np.array(mean), np.array(covariance))
            for stage, gate, mean, covariance in data["gates"]
        }
        self.effects.table = {(stage, item): (mean, variance) for stage, item, mean, variance in data["effects"]}
        self.records = {task: TaskRecord(**_counted(record)) for task, record in data["records"].items()}
        self.known = Counter(data["known"])
        self.rng.bit_generator.state = data["rng"]


@dataclass(frozen=True)
class Belief:
    """Weights of the gates and effects of items: the posterior's mean, or a draw from it."""

    weights: Mapping[str, Weights]
    effect: Callable[[int], float]

    def value(self, record: TaskRecord, row: Weights, stage: Stage, shown: Sequence[int]) -> float:
        """The expected reward of an attempt whose context has these features and items."""
        chance = {gate: logistic(float(self.weights[gate] @ gate_features(row, record, gate))) for gate in GATES}
        good = chance["compiles"] * chance["correct"] * (chance["faster"] if stage is Stage.REFINE else 1.0)
        odds = good / (1 - good) * exp(sum(map(self.effect, shown)))
        return 2 * odds / (1 + odds) - 1


@dataclass
class _Open:
    """An attempt under way: what is known about its task, a belief, the candidates it met, the start point it chose."""

    outlook: TaskOutlook
    belief: Belief
    seen: dict[int, Candidate] = field(default_factory=dict)
    start: Candidate | None = None

    def value(self, start: Candidate | None, picks: Sequence[Candidate], info: Info) -> float:
        """The expected reward of the attempt with this start point and these picks."""
        row = features(self.outlook, picks, start, info["best_us"])
        return self.belief.value(self.outlook.record, row, info["stage"], [one.id for one in _shown(start, picks)])


def _shown(start: Candidate | None, picks: Sequence[Candidate]) -> list[Candidate]:
    return [*([start] if start else []), *picks]


def _outcomes(attempt: Attempt) -> dict[str, float]:
    """The gates that an attempt's kernel reached, with what came of each."""
    verdict = attempt.verdict
    if not verdict.compiled:
        return {"compiles": 0.0}
    if not verdict.feasible:
        return {"compiles": 1.0, "correct": 0.0}
    faster = {"faster": (1 + attempt.reward) / 2} if attempt.stage is Stage.REFINE else {}
    return {"compiles": 1.0, "correct": 1.0, **faster}


def _counted(record: dict[str, Any]) -> dict[str, Any]:
    return {name: Counter(value) if isinstance(value, dict) else value for name, value in record.items()}


def read_item_values(path: Path) -> dict[int, dict[str, float]]:
    """What an item adds to the log-odds beyond its features, by item and then by stage."""
    effects: dict[int, dict[str, float]] = {}
    for stage, item, mean, _ in read_agent_file(path, FILE)["effects"]:
        effects.setdefault(item, {})[stage] = mean
    return effects


def logistic(odds: float) -> float:
    """1 / (1 + e^-odds), kept off 0 and 1."""
    return 1 / (1 + exp(-max(-30.0, min(30.0, odds))))
