"""The chance of a good kernel for many contexts at once: what the simulated author itself would expect.

`prediction.py` computes the same for one context. Here schedules of drafts are drawn once for each task, and the effect
of a context on the schedule is left out, so that a state with twenty candidates takes a fraction of a millisecond. It
reads the author's own probabilities: a yardstick, and nothing that a learner may be given.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernel_gym.authors.apprentice.forecast.author import (
    Flags,
    ForecastAuthor,
    ForecastRequest,
    Numbers,
    Places,
    Readings,
    StartVariant,
)
from kernel_gym.authors.apprentice.forecast.kernel_texts import TaskTexts
from kernel_gym.authors.apprentice.prediction import FAILURES

#: Schedules of a task's drafts that chances are averaged over.
DRAWS = 4
#: What a move against the bottleneck adds to the reward of a feasible refinement, about.
FASTER = 0.3


class KnowingAuthor(ForecastAuthor):
    """Says what reward each request can expect."""

    def _prepare(self) -> None:
        super()._prepare()
        self._needs: dict[str, Numbers] = {}
        shares = []
        for idiom in self._idioms:
            weights = [spelling.weight for spelling in idiom.wrong]
            harmless = [idiom.effect_of(spelling) not in FAILURES for spelling in idiom.wrong]
            shares.append(np.average(harmless, weights=weights))
        #: By idiom: how often a wrong spelling does no harm.
        self._harmless = np.array(shares)

    def expected_rewards(self, requests: Sequence[ForecastRequest], readings: Readings) -> Numbers:
        """Return the expected reward of each request.

        Args:
            requests: What the author may be asked, without a kernel to mend.
            readings: What it reads in the items.

        Returns:
            2p - 1 in drafting, with p the chance of a feasible kernel; in refining p (1 + gain) - 1.
        """
        profile, shown = self.profile, np.stack([request.shown for request in requests])
        tasks = np.array([request.task for request in requests])
        starts = np.array([request.start.place if request.start else -1 for request in requests])
        priors = np.stack([self._prior(request.texts.task.name) for request in requests])
        free = _sigmoid(self._odds(priors, shown, tasks, readings))
        copied = readings.right[starts]
        copied[:, self._spellings :] = readings.feasible[starts][:, None]
        prompted: Numbers = np.where(readings.shows[shown].any(axis=1), profile.prompted, 0.0)
        touched, gain = self._moves_made(requests, prompted)
        kept = profile.copying + (profile.care - profile.copying) * touched
        needs = np.stack([self._needed(request) for request in requests])
        good = self._passes(np.where(copied, kept, free), needs)
        if profile.skeleton:
            place, takes = self._skeletons(shown, starts, tasks, readings)
            taken = self._passes(np.where(copied | readings.right[place], kept, free), needs)
            good = np.where(takes, (1 - profile.skeleton) * good + profile.skeleton * taken, good)
        rewards: Numbers = good * np.where(starts < 0, 2.0, 1.0 + FASTER * gain) - 1.0
        return rewards

    def _passes(self, right: Numbers, needs: Numbers) -> Numbers:
        """Return the chance that nothing needed is wrong and does harm, averaged over schedules."""
        logarithms = np.log(right + (1 - right) * self._harmless)
        passes: Numbers = np.exp(np.einsum("ni,ndi->nd", logarithms, needs)).mean(axis=1)
        return passes

    def _skeletons(self, shown: Places, starts: Places, tasks: Places, readings: Readings) -> tuple[Places, Flags]:
        """Return the kernel of each context that may be taken over, and whether there is one."""
        kernels = readings.coded[shown] & readings.feasible[shown]
        own = kernels & (readings.of_task[shown] == tasks[:, None])
        place = shown[np.arange(len(shown)), (2 * own + kernels).argmax(axis=1)]
        return place, kernels.any(axis=1) & (starts < 0)

    def _moves_made(self, requests: Sequence[ForecastRequest], prompted: Numbers) -> tuple[Numbers, Numbers]:
        """Return how likely a first move touches each idiom, and how likely it is one against the bottleneck."""
        touched, gain = np.zeros((len(requests), len(self._idioms))), np.zeros(len(requests))
        for row, request in enumerate(requests):
            if request.start is None:
                continue
            scores = self._scores(request) + prompted[row]
            weights = np.exp(scores - scores.max()) if np.isfinite(scores).any() else np.zeros(len(scores))
            share = weights / max(weights.sum(), 1e-12)
            touched[row] = share @ self._risks
            gain[row] = share @ np.array([request.start.bottleneck in move.fits for move in self._moves])
        return touched, gain

    def _needed(self, request: ForecastRequest) -> Numbers:
        """Return which idioms the kernels of each schedule need: the start point's, or draws of a draft's."""
        if request.start is not None:
            return np.repeat(self._needed_of(request.texts, request.start)[None], DRAWS, axis=0)
        task = request.texts.task.id
        if task not in self._needs:
            rng = np.random.default_rng(0)
            odds = self._draft_odds + self.profile.ambition
            taken = rng.random((DRAWS, *self._rungs.shape)) < (1 / (1 + np.exp(-odds)))[:, None]
            rungs = np.cumprod(taken & self._rungs, axis=2).sum(axis=2)
            starts = [StartVariant(-1, self._draft(request.texts, row)) for row in rungs]
            self._needs[task] = np.stack([self._needed_of(request.texts, start) for start in starts])
        return self._needs[task]

    def _needed_of(self, texts: TaskTexts, start: StartVariant) -> Numbers:
        needs = np.zeros(len(self._idioms))
        if texts.plan is None:
            return needs
        meanings = [column for column in texts.meanings if column in self._meanings]
        needs[[*meanings, *texts.text(start.schedule).needed]] = 1.0
        return needs


def _sigmoid(odds: Numbers) -> Numbers:
    chance: Numbers = 1 / (1 + np.exp(-odds))
    return chance
