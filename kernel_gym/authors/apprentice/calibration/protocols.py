"""Computes the figures of a profile in the protocols without memory, without writing a kernel.

`pass@k` has a closed form for one author: its attempts are independent draws. Chains of repairs are simulated. Several
authors of the profile are drawn, with their own beliefs and their own grasp of each task; the same random numbers serve
every profile, so that profiles can be compared.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernel_gym.authors.apprentice.behaviour.profile import Profile
from kernel_gym.authors.apprentice.calibration.idiom_table import IdiomTable
from kernel_gym.authors.apprentice.calibration.targets import Figure

Array = NDArray[Any]


@dataclass(frozen=True)
class Protocols:
    """The figures of profiles over the tasks of a table.

    Args:
        table: What kernels for the tasks need.
        persons: How many authors of each profile are drawn.
        seed: Seed of all random numbers.
    """

    table: IdiomTable
    persons: int = 4
    seed: int = 0

    def figures(self, profile: Profile, figures: Sequence[Figure]) -> Array:
        """Return the share of tasks that a profile's authors solve, for each figure."""
        odds = self._odds(profile)
        drafts = self._pass_rates(odds)
        longest = max((figure.attempts for figure in figures if figure.protocol == "repair"), default=0)
        chains = self._repairs(profile, odds, longest)
        return np.array([self._share(figure, drafts, chains) for figure in figures])

    def _share(self, figure: Figure, drafts: dict[str, Array], chains: dict[str, Array]) -> float:
        tasks = np.isin(self.table.suites, figure.suites)
        if figure.protocol == "pass@k":
            return float(np.mean(1 - (1 - drafts[figure.gate][:, tasks]) ** figure.attempts))
        return float(np.mean(chains[figure.gate][:, tasks] < figure.attempts))

    def _odds(self, profile: Profile) -> Array:
        """Return the log-odds of every idiom in a draft, by person, task and idiom."""
        base = self.table.prior + profile.skill + profile.verified * self.table.demonstrated
        for column, idiom in enumerate(self.table.idioms):
            stated = profile.stated_odds(idiom.id)
            if stated is not None:
                base[column] = stated
            elif idiom.meaning:
                base[column] = np.inf  # never misread
        belief, grasp = self._offsets
        return np.asarray(base + profile.belief * belief[:, None, :] + profile.grasp * grasp[:, :, None])

    def _pass_rates(self, odds: Array) -> dict[str, Array]:
        """Return the chance that one draft passes each gate, by person and task."""
        mistake = 1 - _sigmoid(odds)
        needed = self.table.needed.astype(float)

        def rate(effect: Array) -> Array:
            safe = np.log1p(-np.minimum(mistake * effect, 1 - 1e-12))
            return np.asarray(np.exp(np.einsum("tsi,pti->pts", needed, safe)).mean(axis=2))

        return {"compiled": rate(self.table.uncompilable), "correct": rate(self.table.harmful)}

    def _repairs(self, profile: Profile, odds: Array, attempts: int) -> dict[str, Array]:
        """Return the attempt (from 0) at which a chain of repairs first passes each gate; `attempts` if none does."""
        table, shape = self.table, odds.shape
        probability, hinted = _sigmoid(odds), _sigmoid(odds + profile.hinted)
        rng = np.random.default_rng([self.seed, 1])
        schedules = rng.integers(table.needed.shape[1], size=shape[:2])
        needed = table.needed[np.arange(shape[1]), schedules]
        first = {gate: np.full(shape[:2], attempts) for gate in ("compiled", "correct")}
        right, effect = rng.random(shape) < probability, rng.random(shape)
        for attempt in range(attempts):
            refused = needed & ~right & (effect < table.uncompilable)
            broken = needed & ~right & (effect < table.harmful)
            compiled, correct = ~np.any(refused, axis=2), ~np.any(broken, axis=2)
            first["compiled"][compiled & (first["compiled"] == attempts)] = attempt
            first["correct"][correct & (first["correct"] == attempts)] = attempt
            draw, kept, other = rng.random(shape), rng.random(shape), rng.random(shape)
            pointed = _one_of(np.where(np.expand_dims(compiled, 2), broken, refused), other)
            unnoticed = (kept < profile.inertia) | table.meaning
            again = np.where(pointed, draw < hinted, ~unnoticed & (draw < probability))
            copied = (kept < profile.copying) | table.meaning
            changed = np.where(right, copied, again)
            effect = np.where(right | pointed | ~unnoticed, other, effect)
            right = changed
        return first

    @cached_property
    def _offsets(self) -> tuple[Array, Array]:
        """The standard normal offsets of every person: by idiom, and by task."""
        rng = np.random.default_rng([self.seed, 0])
        tasks, _, columns = self.table.needed.shape
        return rng.standard_normal((self.persons, columns)), rng.standard_normal((self.persons, tasks))


def _one_of(mistakes: Array, draw: Array) -> Array:
    """Return one mistake of each kernel: a verdict's message names the first failure and no other."""
    rank = np.where(mistakes, draw, -1.0)
    return np.asarray(mistakes & (rank == rank.max(axis=2, keepdims=True)))


def _sigmoid(odds: Array) -> Array:
    with np.errstate(over="ignore"):
        return np.asarray(1 / (1 + np.exp(-odds)))
