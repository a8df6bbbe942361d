"""Show the author the items whose features promise most: values that apply to items which were never shown.

A table has a value for each item and learns nothing about others. Here the value of an item is a function of what the
observation says about it: the item, the task, and what else is in the context at the time of the pick. The reward of an
attempt is modelled as

    b . situation + u . (sum of the features of the picks) + v . features of the start point

so that u . features is what one more item adds. Weights have a Gaussian posterior, learned on-line from rewards alone
by Bayesian linear regression, one for each stage. One draw is made for every attempt (Thompson sampling), and items are
picked while they add something. It begins knowing nothing: all means are 0.

Options of `FeatureValueAgent`: `deviation`, `noise` and `explore`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from kernel_gym.agents.contract import Agent, Info, Metrics, Observation
from kernel_gym.agents.ranking import generate, legal_slots
from kernel_gym.agents.support.agent_files import read_agent_file
from kernel_gym.agents.support.open_attempts import OpenAttempts
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.observation import Layout
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage

Numbers = NDArray[np.float64]

#: The file that `save` writes.
FILE = "feature_value.json"
#: Global features that the expected reward depends on whatever is picked.
SITUATION = ("attempts_left", "best_speedup", "last_verdict", "outcomes", "author")


@dataclass
class Regression:
    """Bayesian linear regression with known noise.

    Args:
        mean: Posterior mean of the weights.
        covariance: Posterior covariance.
        noise: Deviation of the rewards.
    """

    mean: Numbers
    covariance: Numbers
    noise: float

    def draw(self, rng: np.random.Generator, scale: float) -> Numbers:
        """Draw weights from the posterior, with its deviations multiplied by `scale`."""
        drawn: Numbers = self.mean + scale * np.linalg.cholesky(self.covariance) @ rng.standard_normal(len(self.mean))
        return drawn

    def learn(self, row: Numbers, target: float) -> float:
        """Update with one observation. Returns the prediction from before the update."""
        expected = float(self.mean @ row)
        along = self.covariance @ row
        gain = along / (self.noise**2 + float(row @ along))
        self.mean = self.mean + gain * (target - expected)
        self.covariance = self.covariance - np.outer(gain, along)
        return expected


@dataclass
class _OpenAttempt:
    """An attempt that has not ended: its regression's row so far, and the weights drawn for it."""

    row: Numbers
    weights: Numbers


class FeatureValueAgent(Agent):
    """Thompson sampling on values that are linear in the features of items; pick while an item adds something.

    Args:
        seed: Seed of the draws from the posterior.
        deviation: Prior deviation of every weight.
        noise: Deviation of the rewards that the features do not explain.
        explore: Factor of the posterior's deviations in a draw; 0 picks by the mean.

    Raises:
        ConfigError: If an option is out of range.
    """

    def __init__(self, seed: int = 0, deviation: float = 0.3, noise: float = 0.7, explore: float = 0.5) -> None:
        super().__init__(seed)
        if not (deviation > 0.0 and noise > 0.0 and explore >= 0.0):
            raise ConfigError(
                "feature-value: deviation and noise must be above 0, explore at least 0, "
                f"not {deviation}, {noise} and {explore}"
            )
        self.deviation, self.noise, self.explore = deviation, noise, explore
        self.regressions: dict[Stage, Regression] = {}
        self._open = OpenAttempts[_OpenAttempt]()

    def act(self, observation: Observation, info: Info) -> int:
        """Return the item that adds most by the drawn weights; "generate now" once none adds anything."""
        slots = legal_slots(observation)
        if not slots:
            return generate(observation)
        features, attempt = _Features(observation), self._attempt(observation, info)
        part = features.start if info["start_due"] else features.picks
        values = features.candidates @ attempt.weights[part]
        best = max(slots, key=lambda slot: float(values[slot]))
        if not info["start_due"] and values[best] <= 0.0:
            return generate(observation)
        attempt.row[part] += features.candidates[best]
        chosen = info["candidates"][best].id
        if info["start_due"]:
            self._open.move(info["task"], chosen, (), attempt)
        else:
            self._open.move(info["task"], info["start"], (*info["picked"], chosen), attempt)
        return best

    def candidate_values(self, observation: Observation, info: Info) -> list[float]:
        """Return what each candidate adds to the expected reward, by the posterior's mean."""
        features, model = _Features(observation), self._regression(info["stage"], observation)
        values = features.candidates @ model.mean[features.start if info["start_due"] else features.picks]
        return [float(value) for value in values[: len(info["candidates"])]]

    def learn(self, attempt: Attempt) -> Metrics:
        """Update the regression of the attempt's stage with its features and its reward."""
        open_attempt = self._open.end(attempt.task, attempt.start, attempt.context)
        if open_attempt is None:
            return {}
        model = self.regressions[attempt.stage]
        expected = model.learn(open_attempt.row, attempt.reward)
        doubt = float(np.sqrt(np.diag(model.covariance)).mean())
        return {"error": abs(attempt.reward - expected), "predicted": expected, "doubt": doubt}

    def _attempt(self, observation: Observation, info: Info) -> _OpenAttempt:
        """Return the present attempt, with one draw from the posterior."""
        begins = not info["picked"] and (info["start_due"] or not info["start"])
        attempt = None if begins else self._open.find(info["task"], info["start"], info["picked"])
        if attempt is None:
            weights = self._regression(info["stage"], observation).draw(self.rng, self.explore)
            attempt = _OpenAttempt(_Features(observation).situation(), weights)
            self._open.begin(info["task"], info["start"], info["picked"], attempt)
        return attempt

    def _regression(self, stage: Stage, observation: Observation) -> Regression:
        if stage not in self.regressions:
            size = len(_Features(observation).situation())
            self.regressions[stage] = Regression(np.zeros(size), self.deviation**2 * np.eye(size), self.noise)
        return self.regressions[stage]

    def save(self, path: Path) -> None:
        """Write the posteriors and the random state."""
        path.mkdir(parents=True, exist_ok=True)
        data = {
            "regressions": [
                [stage.value, model.mean.tolist(), model.covariance.tolist()]
                for stage, model in self.regressions.items()
            ],
            "rng": self.rng.bit_generator.state,
        }
        (path / FILE).write_text(json.dumps(data))

    def load(self, path: Path) -> None:
        """Read back what `save` wrote.

        Raises:
            ConfigError: If the folder has no weights.
        """
        data = read_agent_file(path, FILE)
        self.regressions = {
            Stage(stage): Regression(np.array(mean), np.array(covariance), self.noise)
            for stage, mean, covariance in data["regressions"]
        }
        self.rng.bit_generator.state = data["rng"]


class _Features:
    """The parts of an observation that a regression uses, and where they lie in its row."""

    def __init__(self, observation: Observation) -> None:
        self._seen, slots = observation["observations"], len(observation["action_mask"]) - 1
        self._layout = Layout.of_size(slots, len(self._seen))
        width = self._layout.candidate_width
        rows = self._seen[: slots * width].reshape(slots, width).astype(np.float64)
        there = (rows != 0.0).any(axis=1, keepdims=True)
        #: Features of each candidate, after a 1 for being one.
        self.candidates: Numbers = np.concatenate([there, rows], axis=1)
        width += 1
        self.picks, self.start = slice(0, width), slice(width, 2 * width)

    def situation(self) -> Numbers:
        """Return the row of an attempt without picks."""
        names = [name for name in SITUATION if name in self._layout.global_columns]
        values = [np.atleast_1d(self._seen[self._layout.globals(name)]) for name in names]
        return np.concatenate([np.zeros(self.start.stop), [1.0], *values]).astype(np.float64)
