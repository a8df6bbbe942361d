"""The method: tabular stage values choose what the author is shown.

`Q_1` says whether an item helps to get a feasible kernel, `Q_2` whether it helps to lower latency. Every pick is
epsilon-greedy on the value of the stage; every finished attempt moves the value of each item that was shown (and of the
start point) towards its reward. Constants that the paper leaves open are the defaults of `ValueAgent`.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import sqrt
from pathlib import Path
from typing import Literal

from kernel_gym.agents.contract import Agent, Info, Metrics, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.support.agent_files import read_agent_file
from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.envs.attempt import Attempt
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage

#: What of the state a value depends on besides stage and item: nothing, the task's category, or the task.
Key = Literal["item", "category", "task"]
Row = tuple[str, str, int]
#: What is learned is saved as.
FILE = "value.json"


@dataclass
class Normaliser:
    """Running mean and deviation of a reward, PopArt style, and the reward in their units.

    `floor` keeps the deviation from below (the first rewards have none), `clip` bounds the result: z-scores are
    unbounded and would take the values out of any bounds. Values already learned are not rescaled when the estimates
    move.
    """

    floor: float = 0.1
    clip: float = 3.0
    count: int = 0
    mean: float = 0.0
    squares: float = 0.0

    def __call__(self, reward: float) -> float:
        """Take the reward into the estimates, then normalise it."""
        self.count += 1
        before = reward - self.mean
        self.mean += before / self.count
        self.squares += before * (reward - self.mean)
        return max(-self.clip, min(self.clip, (reward - self.mean) / self.sigma))

    @property
    def sigma(self) -> float:
        """The deviation so far, never below the floor."""
        return max(self.floor, sqrt(self.squares / self.count)) if self.count else self.floor


@dataclass
class Exploration:
    """Counts how picks were made; for looking at only, so it isn't saved."""

    picks: int = 0
    random: int = 0
    untried: int = 0
    offered: int = 0
    valued: int = 0

    def take(self, random: bool, known: Sequence[bool], picked: bool) -> None:
        """A pick: whether it was random, which of the legal candidates have a value, and whether the picked one has."""
        self.picks += 1
        self.random += random
        self.untried += not picked
        self.offered += len(known)
        self.valued += sum(known)

    def shares(self) -> Metrics:
        """Shares of the picks and candidates so far."""
        picks = max(1, self.picks)
        return {
            "explored": self.random / picks,
            "untried": self.untried / picks,
            "valued": self.valued / max(1, self.offered),
        }


class ValueAgent(Agent):
    """Epsilon-greedy on tabular stage values, updated by Monte Carlo.

    `alpha`: step size of an update. `epsilon`: chance that a pick is random. `q0`: value of an item that was never
    shown. `key`: what a value depends on besides stage and item. `sigma_floor` and `clip` guard the normalisation of
    `r2`; `r1` is learned raw. Ties go to the first slot: the most similar item, the fastest start point. `values` is
    the whole table, by (stage, "" or category or task, item); with fresh memory an episode's own items have numbers
    below 0 in it, until the next episode of their task begins.
    """

    def __init__(
        self,
        seed: int = 0,
        alpha: float = 0.2,
        epsilon: float = 0.1,
        q0: float = 0.0,
        key: Key = "item",
        sigma_floor: float = 0.1,
        clip: float = 3.0,
    ) -> None:
        super().__init__(seed)
        if not (0.0 < alpha <= 1.0 and 0.0 <= epsilon <= 1.0):
            raise ConfigError(f"value: alpha must lie in (0, 1] and epsilon in [0, 1], not {alpha} and {epsilon}")
        if not (sigma_floor > 0.0 and clip > 0.0):
            raise ConfigError(f"value: sigma_floor and clip must be above 0, not {sigma_floor} and {clip}")
        if key not in ("item", "category", "task"):
            raise ConfigError(f"value: key is item, category or task, not {key!r}")
        self.alpha, self.epsilon, self.q0, self.key = alpha, epsilon, q0, key
        self.normaliser = Normaliser(sigma_floor, clip)
        self.values: dict[Row, float] = {}
        self.exploration = Exploration()
        self._numbers = ItemNumbers()

    def value(self, stage: Stage, item: int, task: str = "", category: str = "") -> float:
        """Q of an item in a stage; of a task or category if the key says so."""
        return self.values.get(self._key(stage, item, task, category), self.q0)

    def act(self, observation: Observation, info: Info) -> int:
        """The legal candidate with the greatest value, or with probability epsilon any."""
        slots = legal_slots(observation)
        if not slots:
            return generate(observation)
        keys, random = self._keys(info), self.rng.random() < self.epsilon
        if random:
            slot = int(self.rng.choice(slots))
        else:
            slot = max(slots, key=lambda slot: self.values.get(keys[slot], self.q0))
        self.exploration.take(random, [keys[one] in self.values for one in slots], keys[slot] in self.values)
        return slot

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Q of every candidate in the stage at hand."""
        return [self.values.get(key, self.q0) for key in self._keys(info)]

    def _keys(self, info: Info) -> list[Row]:
        """Where the values of the candidates are kept, for the stage at hand."""
        stage, task, category = info["stage"], info["task"], info["category"]
        return [self._key(stage, candidate.id, task, category) for candidate in info["candidates"]]

    def learn(self, attempt: Attempt) -> Metrics:
        """Move the value of everything that was shown towards the reward."""
        if attempt.index == 0:
            self._forget(self._numbers.begin_episode(attempt.task))
        target = attempt.reward if attempt.stage is Stage.DRAFT else self.normaliser(attempt.reward)
        shown = attempt.context if attempt.start is None else (attempt.start, *attempt.context)
        errors = [self._update(self._key(attempt.stage, i, attempt.task, attempt.category), target) for i in shown]
        return {
            "error": sum(map(abs, errors)) / len(errors) if errors else 0.0,
            "items": float(len(self.values)),
            "r2_mean": self.normaliser.mean,
            "r2_sigma": self.normaliser.sigma,
            **self.exploration.shares(),
        }

    def _update(self, key: Row, target: float) -> float:
        error = target - self.values.get(key, self.q0)
        self.values[key] = self.values.get(key, self.q0) + self.alpha * error
        return error

    def _forget(self, items: Collection[int]) -> None:
        if items:
            self.values = {row: value for row, value in self.values.items() if row[2] not in items}

    def _key(self, stage: Stage, item: int, task: str, category: str) -> Row:
        state = {"item": "", "category": category, "task": task}[self.key]
        return (stage.value, state, self._numbers.number(task, item))

    def use_fresh_memory(self, lasting: int) -> None:
        """Values of an episode's own items are its own."""
        self._numbers = ItemNumbers(lasting)

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Values belong to items by id."""
        kept = ((row, value) for row, value in self.values.items() if row[2] in ids)
        self.values = {(stage, state, ids[item]): value for (stage, state, item), value in kept}

    def save(self, path: Path) -> None:
        """Write values, normaliser and the state of the generator; not the values of items that are gone with a run."""
        path.mkdir(parents=True, exist_ok=True)
        rows = [[*row, value] for row, value in self.values.items() if row[2] > 0]
        data = {
            "key": self.key,
            "values": rows,
            "normaliser": asdict(self.normaliser),
            "rng": self.rng.bit_generator.state,
        }
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote."""
        data = read_agent_file(path, FILE)
        if data["key"] != self.key:
            raise ConfigError(f"these values have the key {data['key']!r}; make the agent with key={data['key']!r}")
        self.values = {(stage, state, item): value for stage, state, item, value in data["values"]}
        seen = data["normaliser"] | {"floor": self.normaliser.floor, "clip": self.normaliser.clip}
        self.normaliser = Normaliser(**seen)
        self.rng.bit_generator.state = data["rng"]


def read_item_values(path: Path) -> dict[int, dict[str, float]]:
    """Q by item and then by stage (or stage and state, `draft of activation`, if values depend on it)."""
    values: dict[int, dict[str, float]] = {}
    for stage, state, item, value in read_agent_file(path, FILE)["values"]:
        values.setdefault(item, {})[f"{stage} of {state}" if state else stage] = value
    return values
