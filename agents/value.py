"""Show the author the items with the highest learned value: the paper's method (arXiv 2603.10846).

There is one table of values per stage: `Q_1` says how much an item helps to get a feasible kernel, `Q_2` how much it
helps to lower latency. Picks are epsilon-greedy on the value of the stage. Every finished attempt moves the value of
each item that was shown, and of the start point, towards its reward:

    Q(s, m) += alpha * (r - Q(s, m))

The reward of refining is normalised first; see `Normaliser`. What the paper leaves open is an option of `ValueAgent`.
`rule` sets them together: `published` is the paper's rule as far as it is known, `simple` (the default) the one that
this package began with. An option that is given replaces the rule's.

| option | simple | published | meaning |
|---|---|---|---|
| explore | pick | context | what is random with probability epsilon: each pick, or all picks of an attempt |
| epsilon | 0.1 | 0.2 | that probability |
| half_life | 0 | 10 | attempts at a task after which epsilon has halved; 0: it stays |
| merge | false | true | experiences that say the same share one value, and a context has one of them |
| matched | 0 | 2 | first picks in refining that are candidates against, or with, the start point's bottleneck |
| alpha | 0.2 | 0.2 | step size |
| q0 | 0 | 0 | value of an item that was never shown; `mean`: the mean value of its stage |
| key | item | item | what a value depends on besides stage and item |
| baseline | none | none | `task`: the reward of drafting is relative to the mean of the task's earlier ones |
| similarity | 0 | 0 | weight of similarity beside value, both as z-scores over the candidates; 0.5 as in MemRL |

The environment has the other parts of the paper's rule: `composition=by-kind` and `pool_schedule`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from math import sqrt
from pathlib import Path
from typing import Any, Literal

import numpy as np

from kernel_gym.agents.contract import Agent, Info, Metrics, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.support.agent_files import read_agent_file
from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Kind, Stage
from kernel_gym.verdict import Feasible

#: Part of the state that a value depends on besides stage and item: none, the task's category, or the task.
Key = Literal["item", "category", "task"]
#: Key of a value: stage, then "" or category or task, then the item's number.
Row = tuple[str, str, int]
#: The file that `save` writes.
FILE = "value.json"
#: Options that differ between the rules.
RULES: dict[str, dict[str, Any]] = {
    "simple": {"explore": "pick", "epsilon": 0.1, "half_life": 0.0, "merge": False, "matched": 0},
    "published": {"explore": "context", "epsilon": 0.2, "half_life": 10.0, "merge": True, "matched": 2},
}


@dataclass
class Normaliser:
    """Normalises a reward by its running mean and deviation, PopArt style.

    Values that are already learned are not rescaled when the estimates move.

    Args:
        floor: Lower bound of the deviation, which the first rewards do not have.
        clip: Bound of the result. Z-scores are unbounded and would take the values out of any bounds.
        count: Rewards seen so far.
        mean: Their mean.
        squares: Sum of their squared deviations from the mean.
    """

    floor: float = 0.1
    clip: float = 3.0
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def __call__(self, reward: float) -> float:
        """Update the estimates with a reward and return it normalised."""
        self.count += 1
        deviation = reward - self.mean
        self.mean += deviation / self.count
        self.squares += deviation * (reward - self.mean)
        return max(-self.clip, min(self.clip, (reward - self.mean) / self.sigma))

    @property
    def sigma(self) -> float:
        """The deviation of the rewards so far, at least `floor`."""
        return max(self.floor, sqrt(self.squares / self.count)) if self.count else self.floor


@dataclass
class Exploration:
    """Counts how picks were made, for the log. It is not saved."""

    picks: int = 0
    random: int = 0
    untried: int = 0
    offered: int = 0
    valued: int = 0

    def add(self, random: bool, valued: Sequence[bool], picked_valued: bool) -> None:
        """Count a pick: whether it was random, which legal candidates have a value, and whether the pick has one."""
        self.picks += 1
        self.random += random
        self.untried += not picked_valued
        self.offered += len(valued)
        self.valued += sum(valued)

    def shares(self) -> Metrics:
        """Return shares of the picks and candidates so far."""
        picks = max(1, self.picks)
        return {
            "explored": self.random / picks,
            "untried": self.untried / picks,
            "valued": self.valued / max(1, self.offered),
        }


@dataclass
class TaskState:
    """What the agent keeps of a task. It is not saved.

    Args:
        attempts: Attempts in the present episode.
        random: Whether the picks of the present attempt are random.
        bottleneck: That of the start point of the present attempt; empty in drafting.
        drafts: Drafts of all episodes, and the sum of their rewards.
        total: See `drafts`.
    """

    attempts: int = 0
    random: bool = False
    bottleneck: str = ""
    drafts: int = 0
    total: float = 0.0


class ValueAgent(Agent):
    """Pick epsilon-greedily on tabular stage values, updated by Monte Carlo.

    Ties go to the first slot: the most similar item, the fastest start point.

    Args:
        seed: Seed of the random picks.
        alpha: Step size of an update, in (0, 1].
        epsilon: Probability of a random choice; None: the rule's.
        q0: Value of an item that was never shown: a number, or `mean`.
        key: What a value depends on besides stage and item: `item` (nothing else), `category` or `task`.
        sigma_floor: Lower bound of the deviation by which the reward of refining is normalised. The reward of
            drafting is learned raw.
        clip: Bound of the normalised reward.
        rule: `simple` or `published`: the rule that options which are None are taken from.
        explore: What is random: `pick` (each pick on its own) or `context` (all picks of an attempt).
        half_life: Attempts at a task after which epsilon has halved; 0: it stays.
        merge: Whether experiences that say the same count as one.
        matched: First picks in refining that match the start point's bottleneck, if candidates do.
        baseline: `none`, or `task`: the reward of drafting is relative to the mean of the task's earlier drafts.
        similarity: Weight of similarity beside value, in [0, 1].

    Raises:
        ConfigError: If an option is out of range.

    Attributes:
        values: The whole table, by (stage, "" or category or task, item). With fresh memory an episode's own items
            have numbers below 0, until the next episode of their task begins.
    """

    def __init__(
        self,
        seed: int = 0,
        alpha: float = 0.2,
        epsilon: float | None = None,
        q0: float | Literal["mean"] = 0.0,
        key: Key = "item",
        sigma_floor: float = 0.1,
        clip: float = 3.0,
        rule: Literal["simple", "published"] = "simple",
        explore: Literal["pick", "context"] | None = None,
        half_life: float | None = None,
        merge: bool | None = None,
        matched: int | None = None,
        baseline: Literal["none", "task"] = "none",
        similarity: float = 0.0,
    ) -> None:
        super().__init__(seed)
        _require("rule", rule, tuple(RULES))
        options = {"explore": explore, "epsilon": epsilon, "half_life": half_life, "merge": merge, "matched": matched}
        own = RULES[rule] | {name: value for name, value in options.items() if value is not None}
        self.alpha, self.epsilon, self.q0, self.key = alpha, float(own["epsilon"]), q0, key
        self.explore, self.half_life, self.merge, self.matched = (
            own[name] for name in ("explore", "half_life", "merge", "matched")
        )
        self.baseline, self.similarity = baseline, similarity
        self._check_options(sigma_floor, clip)
        self.normaliser = Normaliser(sigma_floor, clip)
        self.values: dict[Row, float] = {}
        self.exploration = Exploration()
        self._numbers = ItemNumbers()
        self._tasks: dict[str, TaskState] = {}
        #: The first experience that said something, by what it said; and by the number of each that says the same.
        self._lessons: dict[str, int] = {}
        self._same: dict[int, int] = {}
        #: The mean value by stage, until a value changes.
        self._means: dict[str, float] = {}

    def _check_options(self, sigma_floor: float, clip: float) -> None:
        alpha, epsilon = self.alpha, self.epsilon
        if not (0.0 < alpha <= 1.0 and 0.0 <= epsilon <= 1.0):
            raise ConfigError(f"value: alpha must lie in (0, 1] and epsilon in [0, 1], not {alpha} and {epsilon}")
        if not (sigma_floor > 0.0 and clip > 0.0):
            raise ConfigError(f"value: sigma_floor and clip must be above 0, not {sigma_floor} and {clip}")
        if self.half_life < 0 or self.matched < 0 or not 0.0 <= self.similarity <= 1.0:
            raise ConfigError("value: half_life and matched must not be below 0, similarity must lie in [0, 1]")
        if isinstance(self.q0, str):
            _require("q0", self.q0, ("mean",))
        _require("key", self.key, ("item", "category", "task"))
        _require("explore", self.explore, ("pick", "context"))
        _require("baseline", self.baseline, ("none", "task"))

    def value(self, stage: Stage, item: int, task: str = "", category: str = "") -> float:
        """Return Q of an item in a stage; task and category count where `key` says so."""
        return self._values_of([self._key(stage, item, task, category)])[0]

    # Picking

    def act(self, observation: Observation, info: Info) -> int:
        """Return the legal candidate with the greatest value, or with probability epsilon a random one."""
        slots = legal_slots(observation)
        if self.merge:
            slots = self._without_repetitions(slots, info)
        if not slots:
            return generate(observation)
        keys, random = self._keys(info), self._explores(info)
        if random:
            slot = int(self.rng.choice(slots))
        else:
            scores = dict(zip(slots, self._scores([keys[slot] for slot in slots], slots, info), strict=True))
            slot = max(self._matching(slots, info), key=lambda slot: scores[slot])
        if info["start_due"]:
            self._task(info).bottleneck = _bottleneck(info["candidates"][slot])
        self.exploration.add(random, [keys[legal] in self.values for legal in slots], keys[slot] in self.values)
        return slot

    def _explores(self, info: Info) -> bool:
        """Return whether this pick is random; decided at each pick, or at the first pick of an attempt."""
        state = self._task(info)
        first = not info["picked"] and (info["start_due"] or not info["start"])
        if first and info["stage"] == Stage.DRAFT:
            state.bottleneck = ""
        if first or self.explore == "pick":
            decay = 0.5 ** (state.attempts / self.half_life) if self.half_life else 1.0
            state.random = bool(self.rng.random() < self.epsilon * decay)
        return state.random

    def _scores(self, keys: Sequence[Row], slots: Sequence[int], info: Info) -> list[float]:
        """Return the score of candidates: the value, or its z-score mixed with that of the similarity."""
        values = self._values_of(keys)
        if not self.similarity or info["start_due"]:
            return values
        near = [info["candidates"][slot].similarity for slot in slots]
        mixed = (1 - self.similarity) * _z_scores(values) + self.similarity * _z_scores(near)
        return [float(score) for score in mixed]

    def _matching(self, slots: list[int], info: Info) -> list[int]:
        """Return the candidates that match the start point's bottleneck while such are due; else all."""
        bottleneck = self._task(info).bottleneck
        if info["start_due"] or not bottleneck or len(info["picked"]) >= self.matched:
            return slots
        return [slot for slot in slots if _matches(info["candidates"][slot], bottleneck)] or slots

    def _without_repetitions(self, slots: Sequence[int], info: Info) -> list[int]:
        """Return the candidates that say something which no pick says already."""
        candidates, task = info["candidates"], info["task"]
        for candidate in candidates:
            self._read(candidate, task)
        said = {self._representative(self._numbers.number(task, id)) for id in info["picked"]}
        numbers = [self._representative(self._numbers.number(task, candidate.id)) for candidate in candidates]
        return [slot for slot in slots if numbers[slot] not in said]

    def _read(self, candidate: Candidate, task: str) -> None:
        """Note what an experience says, when it is first offered."""
        number = self._numbers.number(task, candidate.id)
        if candidate.item.kind is Kind.EXPERIENCE and number not in self._same and candidate.item.verdict is not None:
            lesson = _lesson(candidate.item.verdict.feedback) if not candidate.item.feasible else f"item {number}"
            self._same[number] = self._lessons.setdefault(lesson, number)

    def _representative(self, number: int) -> int:
        """Return the number of the first experience that says the same; of other items their own."""
        return self._same.get(number, number)

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return Q of every candidate in the present stage."""
        return self._values_of(self._keys(info))

    def _keys(self, info: Info) -> list[Row]:
        """Return the table keys of the candidates in the present stage."""
        stage, task = info["stage"].value, info["task"]
        state = self._state(task, info["category"])
        numbers = [self._numbers.number(task, candidate.item.id) for candidate in info["candidates"]]
        return [(stage, state, self._same.get(number, number)) for number in numbers]

    def _key(self, stage: Stage, item: int, task: str, category: str) -> Row:
        return (stage.value, self._state(task, category), self._representative(self._numbers.number(task, item)))

    def _state(self, task: str, category: str) -> str:
        """Return the part of a key that is the task's."""
        return {"item": "", "category": category, "task": task}[self.key]

    def _values_of(self, keys: Sequence[Row]) -> list[float]:
        """Return the values of table keys; those of unseen items are `q0`."""
        return [self.values[key] if key in self.values else self._unseen(key[0]) for key in keys]

    def _unseen(self, stage: str) -> float:
        if self.q0 != "mean":
            return float(self.q0)
        if stage not in self._means:
            values = [value for (own, _, _), value in self.values.items() if own == stage]
            self._means[stage] = sum(values) / len(values) if values else 0.0
        return self._means[stage]

    def _task(self, info: Info) -> TaskState:
        return self._tasks.setdefault(info["task"], TaskState())

    # Learning

    def learn(self, attempt: Attempt) -> Metrics:
        """Move the values of all items that were shown towards the reward."""
        if attempt.index == 0:
            self._forget(self._numbers.begin_episode(attempt.task))
        target = self._target(attempt)
        shown = attempt.context if attempt.start is None else (attempt.start, *attempt.context)
        errors = [self._update(self._key(attempt.stage, id, attempt.task, attempt.category), target) for id in shown]
        return {
            "error": sum(map(abs, errors)) / len(errors) if errors else 0.0,
            "items": float(len(self.values)),
            "r2_mean": self.normaliser.mean,
            "r2_sigma": self.normaliser.sigma,
            **self.exploration.shares(),
        }

    def _target(self, attempt: Attempt) -> float:
        """Return what the values move towards: the reward of drafting, or the normalised one of refining."""
        state = self._tasks.setdefault(attempt.task, TaskState())
        state.attempts = attempt.index + 1
        if attempt.stage is not Stage.DRAFT:
            return self.normaliser(attempt.reward)
        usual = state.total / state.drafts if state.drafts and self.baseline == "task" else 0.0
        state.drafts, state.total = state.drafts + 1, state.total + attempt.reward
        return attempt.reward - usual

    def _update(self, key: Row, target: float) -> float:
        (value,) = self._values_of([key])
        error = target - value
        self.values[key] = value + self.alpha * error
        self._means.clear()
        return error

    def _forget(self, items: Collection[int]) -> None:
        if items:
            self.values = {row: value for row, value in self.values.items() if row[2] not in items}
            self._same = {item: first for item, first in self._same.items() if {item, first}.isdisjoint(items)}
            self._lessons = {lesson: item for lesson, item in self._lessons.items() if item not in items}

    # Memories and files

    def use_fresh_memory(self, lasting: int) -> None:
        """Keep the values of different episodes' own items apart."""
        self._numbers = ItemNumbers(lasting)

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Move values to the new ids; values of items that are not in the bank are dropped."""
        rows = ((row, value) for row, value in self.values.items() if row[2] in ids)
        self.values = {(stage, state, ids[item]): value for (stage, state, item), value in rows}
        self._lessons = {lesson: ids[item] for lesson, item in self._lessons.items() if item in ids}
        self._same = {ids[item]: ids[first] for item, first in self._same.items() if {item, first} <= ids.keys()}

    def save(self, path: Path) -> None:
        """Write values, normaliser and random state; values of an episode's own items are left out."""
        path.mkdir(parents=True, exist_ok=True)
        rows = [[*row, value] for row, value in self.values.items() if row[2] > 0]
        data = {
            "key": self.key,
            "values": rows,
            "normaliser": asdict(self.normaliser),
            "rng": self.rng.bit_generator.state,
        }
        if self.merge:
            data["lessons"] = {lesson: item for lesson, item in self._lessons.items() if item > 0}
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote; `floor` and `clip` stay as configured.

        Raises:
            ConfigError: If the folder has no values, or values with another `key`.
        """
        data = read_agent_file(path, FILE)
        if data["key"] != self.key:
            raise ConfigError(f"these values have the key {data['key']!r}; make the agent with key={data['key']!r}")
        self.values = {(stage, state, item): value for stage, state, item, value in data["values"]}
        self._lessons = data.get("lessons", {})
        estimates = data["normaliser"] | {"floor": self.normaliser.floor, "clip": self.normaliser.clip}
        self.normaliser = Normaliser(**estimates)
        self.rng.bit_generator.state = data["rng"]


def _require(name: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise ConfigError(f"value: {name} is one of {', '.join(allowed)}, not {value!r}")


def _bottleneck(start: Candidate) -> str:
    verdict = start.item.verdict
    return verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""


def _matches(candidate: Candidate, bottleneck: str) -> bool:
    """Return whether a candidate is a practice against a bottleneck, or comes from a kernel that has it."""
    return bottleneck in candidate.item.bottlenecks or _bottleneck(candidate) == bottleneck


def _z_scores(values: Sequence[float]) -> Any:
    array = np.asarray(values, np.float64)
    deviation = float(array.std())
    return (array - array.mean()) / deviation if deviation > 1e-9 else np.zeros(len(array))


@lru_cache(maxsize=65536)
def _lesson(feedback: str) -> str:
    """Return what the message of a failure says, without the numbers and the quotation that belong to one kernel."""
    return re.sub(r"\d+", "", feedback.partition(" | ")[0])


def read_item_values(path: Path) -> dict[int, dict[str, float]]:
    """Read the saved values of items.

    Args:
        path: The folder that `ValueAgent.save` wrote.

    Returns:
        Q by item and then by stage, or by stage and state (`draft of activation`) where values depend on the state.

    Raises:
        ConfigError: If the folder has no values.
    """
    values: dict[int, dict[str, float]] = {}
    for stage, state, item, value in read_agent_file(path, FILE)["values"]:
        values.setdefault(item, {})[f"{stage} of {state}" if state else stage] = value
    return values
