"""Show the author the items with the highest learned value: the paper's method (arXiv 2603.10846).

There is one table of values per stage: `Q_1` says how much an item helps to get a feasible kernel, `Q_2` how much it
helps to lower latency. Every pick is epsilon-greedy on the value of the stage. Every finished attempt moves the value
of each item that was shown, and of the start point, towards its reward:

    Q(s, m) += alpha * (r - Q(s, m))

The reward of refining is normalised first; see `Normaliser`. Constants that the paper leaves open are options of
`ValueAgent`: `alpha`, `epsilon`, `q0`, `key`, `sigma_floor` and `clip`.
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

#: Part of the state that a value depends on besides stage and item: none, the task's category, or the task.
Key = Literal["item", "category", "task"]
#: Key of a value: stage, then "" or category or task, then the item's number.
Row = tuple[str, str, int]
#: The file that `save` writes.
FILE = "value.json"


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


class ValueAgent(Agent):
    """Pick epsilon-greedily on tabular stage values, updated by Monte Carlo.

    Ties go to the first slot: the most similar item, the fastest start point.

    Args:
        seed: Seed of the random picks.
        alpha: Step size of an update, in (0, 1].
        epsilon: Probability that a pick is random.
        q0: Value of an item that was never shown.
        key: What a value depends on besides stage and item: `item` (nothing else), `category` or `task`.
        sigma_floor: Lower bound of the deviation by which the reward of refining is normalised. The reward of
            drafting is learned raw.
        clip: Bound of the normalised reward.

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
        """Return Q of an item in a stage; task and category count where `key` says so."""
        return self.values.get(self._key(stage, item, task, category), self.q0)

    def act(self, observation: Observation, info: Info) -> int:
        """Return the legal candidate with the greatest value, or with probability epsilon a random one."""
        slots = legal_slots(observation)
        if not slots:
            return generate(observation)
        keys, random = self._keys(info), self.rng.random() < self.epsilon
        if random:
            slot = int(self.rng.choice(slots))
        else:
            slot = max(slots, key=lambda slot: self.values.get(keys[slot], self.q0))
        self.exploration.add(random, [keys[legal] in self.values for legal in slots], keys[slot] in self.values)
        return slot

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return Q of every candidate in the present stage."""
        return [self.values.get(key, self.q0) for key in self._keys(info)]

    def _keys(self, info: Info) -> list[Row]:
        """Return the table keys of the candidates in the present stage."""
        stage, task, category = info["stage"], info["task"], info["category"]
        return [self._key(stage, candidate.id, task, category) for candidate in info["candidates"]]

    def learn(self, attempt: Attempt) -> Metrics:
        """Move the values of all items that were shown towards the reward."""
        if attempt.index == 0:
            self._forget(self._numbers.begin_episode(attempt.task))
        target = attempt.reward if attempt.stage is Stage.DRAFT else self.normaliser(attempt.reward)
        shown = attempt.context if attempt.start is None else (attempt.start, *attempt.context)
        errors = [self._update(self._key(attempt.stage, id, attempt.task, attempt.category), target) for id in shown]
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
        """Keep the values of different episodes' own items apart."""
        self._numbers = ItemNumbers(lasting)

    def remap_items(self, ids: Mapping[int, int]) -> None:
        """Move values to the new ids; values of items that are not in the bank are dropped."""
        rows = ((row, value) for row, value in self.values.items() if row[2] in ids)
        self.values = {(stage, state, ids[item]): value for (stage, state, item), value in rows}

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
        estimates = data["normaliser"] | {"floor": self.normaliser.floor, "clip": self.normaliser.clip}
        self.normaliser = Normaliser(**estimates)
        self.rng.bit_generator.state = data["rng"]


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
