"""Many episodes at once: the attempt logic of `Episode` with arrays. Both follow `kernel_gym.envs.attempt_rules`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from math import isnan, nan
from typing import Any

import numpy as np

from kernel_gym.authors.apprentice.forecast.author import ForecastAuthor, ForecastRequest, StartVariant
from kernel_gym.envs import attempt_rules
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.attempt_rules import Progress, refining
from kernel_gym.envs.curriculum import Curriculum
from kernel_gym.envs.forecast.bank import STAGES, ForecastBank
from kernel_gym.envs.forecast.batched_history import BatchedHistory
from kernel_gym.envs.forecast.batched_observations import BatchedObservations
from kernel_gym.envs.forecast.items import Items, Numbers, Places
from kernel_gym.envs.forecast.variants import ForecastKernel, Variant
from kernel_gym.envs.observation import Vector
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Candidate, Child
from kernel_gym.envs.rendering import EpisodeState
from kernel_gym.memory.item import Kind, Stage
from kernel_gym.verdict import Feasible, Verdict

REFINE = STAGES.index(Stage.REFINE)


class BatchedEpisodes:
    """`count` episodes, each at one task. All share one bank; in fresh memory each has its own."""

    def __init__(self, items: Items, options: Options, author: ForecastAuthor, count: int) -> None:
        self.items, self.options, self.author, self.count = items, options, author, count
        self._number = {task.id: number for number, task in enumerate(items.tasks)}
        self.curriculum = Curriculum(items.tasks, options.curriculum)
        self._own_banks = [ForecastBank(items) for _ in range(count if options.memory == "fresh" else 1)]
        self.banks = self._own_banks * (count // len(self._own_banks))
        self.seed, self.attempts, self.outcomes = 0, Counter[int](), Counter[str]()
        #: Further kernels that are drawn for every context and join nothing, and the mean rewards of all its kernels.
        self.redraws, self.mean_rewards = 0, np.zeros(count)
        self._redrawn = np.random.default_rng(0)
        self._empty()
        self.observed = BatchedObservations(self)

    def _empty(self) -> None:
        count, slots = self.count, self.options.slots
        self.task, self.stage, self.used = (np.zeros(count, np.int64) for _ in range(3))
        self.first_us, self.best_us = np.full(count, np.nan), np.full(count, np.nan)
        self.last: list[Verdict | None] = [None] * count
        #: Ids of the candidates, 0 where there is none.
        self.pool = np.zeros((count, slots), np.int64)
        self.picked: list[tuple[int, ...]] = [()] * count
        self.picked_ids: list[tuple[int, ...]] = [()] * count
        #: Id of the start point, 0 while there is none, and the query that fills the pool.
        self.start, self.query = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.start_due = np.zeros(count, np.bool_)
        #: Which episodes have to choose the draft to verify; the drafts of each, its pages, and the choices.
        self.draft_due = np.zeros(count, np.bool_)
        self._drafts: list[list[Variant]] = []
        self._pages: list[tuple[int, ...]] = []
        self._draft = np.zeros(count, np.int64)
        self.picks_left = np.zeros(count, np.int64)
        #: Which episodes are over, and what infos say of their progress; None when that has changed since.
        self._over: Any = None
        self._facts: dict[str, list[Any]] | None = None
        #: Which are ready; None when one has picked since.
        self._ready: Any = None
        #: The mask of the present states; None when they have changed since it was computed.
        self._legal: Vector | None = None
        self._own_kernels: list[set[int]] = [set() for _ in range(count)]
        #: Id of the trace of the last attempt, if it can be mended; else 0.
        self._to_mend = np.zeros(count, np.int64)
        self._attempts: list[list[Attempt]] = [[] for _ in range(count)]
        self.histories = [BatchedHistory() for _ in range(count)]
        self.shown: list[Any] = [()] * count

    # Tasks

    def restart(self, seed: int) -> None:
        """Restore everything as constructed and set the run seed."""
        self.seed, self._redrawn = seed, np.random.default_rng([seed, 1])
        self.attempts.clear()
        self.outcomes.clear()
        self.curriculum.restart(seed)
        self.items.clear()
        for bank in self._own_banks:
            bank.clear()

    def begin(self, i: int, name: str | None = None) -> None:
        """Begin the next task, or the one named; in refining if the bank holds a feasible kernel of it."""
        task = self.curriculum.next() if name is None else self.curriculum.named(name)
        self.task[i], self.last[i] = self._number[task.id], None
        self.items.know_task(self._number[task.id])
        self._set_progress(i, Progress())
        self._own_kernels[i], self._attempts[i], self.histories[i] = set(), [], BatchedHistory()
        self._to_mend[i] = 0
        bank = self.banks[i]
        if self.options.memory == "fresh":
            self.items.release(bank.own_places())
            bank.clear()
        if self.options.stages != "draft" and (kernels := self._kernels(i)):
            self._set_progress(i, refining(self._latency(i, min(kernels)), self._latency(i, kernels[0])))

    def _latency(self, i: int, id: int) -> float:
        latency = self.banks[i].variant(id).verdict.latency_us
        assert latency is not None
        return latency

    def _kernels(self, i: int) -> list[int]:
        """Return the feasible traces of the task, fastest first; in frozen memory only those of this episode."""
        starts = self.banks[i].starts(int(self.task[i]))
        if self.options.memory != "frozen":
            return starts
        return [id for id in starts if id in self._own_kernels[i]]

    @property
    def over(self) -> Any:
        """Which episodes have spent their budget, or have a feasible kernel if they only draft."""
        if self._over is None:
            self._over = attempt_rules.is_over(self.options, self.used, ~np.isnan(self.best_us))
        return self._over

    @property
    def ready(self) -> Any:
        """Which episodes have made their picks, so that their kernels can be written, or have chosen a draft."""
        if self._ready is None:
            self._ready = attempt_rules.is_ready(self.picks_left, self.start_due) & ~self.draft_due
        return self._ready

    # Picks

    def open_attempts(self, who: Sequence[int]) -> None:
        """Open an attempt in each of these episodes: fix the pool, or offer the start points first."""
        index = np.asarray(who, np.int64)
        over = self.over
        self.start[index], self.query[index] = 0, self.items.task_query[self.task[index]]
        refining = self.stage[index] == REFINE
        self.start_due[index] = attempt_rules.start_is_due(refining, self._to_mend[index] > 0, over[index])
        self.picks_left[index] = self.options.picks
        self.pool[index] = 0
        for i in who:
            if self.start_due[i]:
                width = self.options.start_width(int(self.used[i]))
                starts = self._kernels(i)[:width] if self.stage[i] == REFINE else [int(self._to_mend[i])]
                self.pool[i, : len(starts)] = starts
        self._fill([i for i in who if not self.start_due[i] and not over[i]])
        self._describe_pools(index)
        self.observed.describe_situations(index)
        self._legal = self._ready = None

    def _fill(self, who: Sequence[int]) -> None:
        """Fill pools from the bank; those on one bank and equally wide together."""
        groups: dict[tuple[int, int], list[int]] = {}
        for i in who:
            groups.setdefault((id(self.banks[i]), self._width(i)), []).append(i)
        for (_, width), some in groups.items():
            bank, starts = self.banks[some[0]], self.start[some].tolist()
            names = [self._bottleneck(bank, start) for start in starts]
            limit = self.items.initial_size if self.options.memory == "frozen" else len(bank)
            by_kind = self.options.composition == "by-kind"
            drafted = np.where(self.stage[some] == REFINE, -1, self.task[some]).tolist() if by_kind else ()
            self.pool[some] = 0
            composition = self.options.composition
            self.pool[some, :width] = bank.pools(self.query[some], width, starts, names, limit, composition, drafted)

    def _width(self, i: int) -> int:
        """Return the most candidates that this attempt can have."""
        return self.options.width(int(self.used[i]))

    @staticmethod
    def _bottleneck(bank: ForecastBank, start: int) -> str:
        verdict = bank.variant(start).verdict if start else None
        return verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""

    def _describe_pools(self, index: Places) -> None:
        """Describe new pools before anything is picked; those on one bank together."""
        for i in index.tolist():
            self.picked[i] = self.picked_ids[i] = ()
        together = index[:, None] if self.options.memory == "fresh" else index[None]
        for some in together:
            for i, pool in zip(some.tolist(), self.observed.describe_pools(self.banks[some[0]], some), strict=True):
                self.shown[i] = pool

    def children(self, i: int, starts: Sequence[int]) -> tuple[tuple[Child, ...], ...]:
        """Return the results of refining each start point; in frozen memory only those of this episode."""
        if self.stage[i] != REFINE:
            return ((),) * len(starts)
        bank, own = self.banks[i], self._own_kernels[i]
        children = [bank.children(start) for start in starts]
        if self.options.memory != "frozen":
            return tuple(children)
        return tuple(tuple(child for child in siblings if child.id in own) for siblings in children)

    def pick(self, who: Places, actions: Places) -> None:
        """Take one action in each of these episodes; a masked one is a no-op that uses up the pick."""
        mask = self.mask()
        legal = mask[who, actions] == 1.0
        if self.options.drafts > 1 and (choosing := self.draft_due[who]).any():
            self._draft[who[choosing]] = np.where(legal[choosing], actions[choosing], 0)
            self.draft_due[who[choosing]] = False
            self._legal = self._ready = None
            who, actions, legal = who[~choosing], actions[~choosing], legal[~choosing]
        if (due := self.start_due[who]).any():
            self._legal = self._ready = None
            starting, slots = who[due], np.where(legal[due], actions[due], 0)
            refining = self.stage[starting] == REFINE
            declined = ~refining & ~(legal[due] & (slots < self.options.slots))
            slots = np.where(declined, 0, slots)
            self.start[starting] = np.where(declined, 0, self.pool[starting, slots])
            self.start_due[starting] = False
            places = self.observed.places[starting, slots]
            for i, place in zip(starting[refining].tolist(), places[refining].tolist(), strict=True):
                self.query[i] = self.items.refining_query(int(self.task[i]), place)
            self._fill(starting.tolist())
            self._describe_pools(starting)
            self.observed.count_picks(starting)
            who, actions, legal = who[~due], actions[~due], legal[~due]
            if not len(who):
                return
        every, taking = self.every(who), actions < self.options.slots
        self.picks_left[every] = np.where(taking, self.picks_left[every] - 1, 0)
        self._ready = None
        marked = taking & legal
        if marked.any():
            self._take(who[marked], actions[marked])
        if self._legal is not None:
            mask[who[marked], actions[marked]] = 0.0
            mask[who[self.picks_left[every] == 0], :-1] = 0.0
        self.observed.count_picks(every)

    def every(self, who: Places) -> Any:
        """Return an index of these episodes, in their order: quicker than their numbers if they are all."""
        return slice(None) if len(who) == self.count else who

    def _take(self, who: Places, slots: Places) -> None:
        """Add the candidates in these slots to the picks."""
        for i, slot in zip(who.tolist(), slots.tolist(), strict=True):
            self.picked[i] = (*self.picked[i], slot)
            self.picked_ids[i] = (*self.picked_ids[i], self.shown[i].ids[slot])
        if not self.ready.all():  # else all pools are described anew before anybody sees them
            self.observed.mark(who, slots)

    # Kernels

    def generate(self) -> list[Attempt]:
        """Write all kernels; commit them, or offer them if there are several for one verification.

        Attempts are committed in index order, and the next ones open. So every author sees the bank before this step.
        """
        if not self._drafts:
            self._write()
            if self.options.drafts > 1:
                self._offer_drafts()
                return []
        variants = [drafts[choice] for drafts, choice in zip(self._drafts, self._draft.tolist(), strict=True)]
        places = self._new_places(variants)
        attempts = [self._learn(i, variant, self._pages[i], places) for i, variant in enumerate(variants)]
        self._drafts, self._draft[:] = [], 0
        self.open_attempts(range(self.count))
        return attempts

    def _write(self) -> None:
        """Have the author write the kernels of all attempts, as many for each as the options say."""
        picks, each = self.options.picks, self.options.drafts
        shown = np.full((self.count, picks + 1), -1)
        for i, slots in enumerate(self.picked):
            if slots:
                shown[i, : len(slots)] = self.observed.places[i, list(slots)]
            if self.start[i]:
                shown[i, picks] = self.banks[i].place(int(self.start[i]))
        api = self.items.api_pages(self.task, shown)
        context = np.concatenate([shown[:, :picks], api], axis=1)
        asked = [self._request(i, context[i], int(shown[i, picks])) for i in range(self.count)]
        requests = [
            replace(r, number=r.number * each + draft) if each > 1 else r for r in asked for draft in range(each)
        ]
        decisions = self.author.decide(self.seed, requests, self.items)
        variants = [
            self.items.descriptions.variant(request.texts, decision)
            for request, decision in zip(requests, decisions, strict=True)
        ]
        self._drafts = [variants[i * each : (i + 1) * each] for i in range(self.count)]
        if self.redraws:
            self.mean_rewards = self._mean_rewards(asked)
        # The seed knowledge is numbered from 1 on; the demonstration is no item of a bank.
        self._pages = [tuple(page + 1 for page in some if 0 <= page < self.items.seed_size) for some in api.tolist()]

    def _mean_rewards(self, asked: Sequence[ForecastRequest]) -> Numbers:
        """Return the mean reward of each attempt's first kernel and of `redraws` others for the same context."""
        doubles = self.author.draws(len(asked) * self.redraws, self._redrawn)
        decisions = self.author.decide(self.seed, asked, self.items, doubles, self.redraws)
        about, totals = self.items.descriptions, np.zeros(self.count)
        for i, drafts in enumerate(self._drafts):
            before, some = self._progress(i), decisions[i * self.redraws : (i + 1) * self.redraws]
            verdicts = [drafts[0].verdict, *(about.verdict(asked[i].texts, each) for each in some)]
            totals[i] = sum(before.reward(verdict, self.options) for verdict in verdicts)
        mean: Numbers = totals / (1 + self.redraws)
        return mean

    def _offer_drafts(self) -> None:
        """Offer the drafts of every attempt as its pool."""
        self.draft_due[:] = True
        count = self.options.drafts
        for i, drafts in enumerate(self._drafts):
            items = (self.items.descriptions.draft_item(variant, number) for number, variant in enumerate(drafts, 1))
            self.shown[i] = tuple(Candidate(item, 0.0) for item in items)
            self.picked[i] = ()
            self.pool[i] = 0
            # Drafts have no id in the bank; any above 0 marks a slot as filled.
            self.pool[i, :count] = 1
            self.observed.show_drafts(i, count)
        self._legal = self._ready = None

    def possible_requests(self) -> tuple[Places, Places, list[ForecastRequest]]:
        """Return what the author would be asked with each legal pick added, or with none.

        Returns:
            Episodes, actions and requests, one each; none for episodes that choose a start point or a draft.
        """
        picking = (self.mask() > 0.5) & ~(self.start_due | self.draft_due)[:, None]
        who, actions = np.nonzero(picking)
        picks, shown = self.options.picks, np.full((len(who), self.options.picks + 1), -1)
        for n, (i, action) in enumerate(zip(who.tolist(), actions.tolist(), strict=True)):
            slots = [*self.picked[i], *([action] if action < self.options.slots else [])]
            shown[n, : len(slots)] = self.observed.places[i, slots]
            if self.start[i]:
                shown[n, picks] = self.banks[i].place(int(self.start[i]))
        pages = self.items.api_pages(self.task[who], shown)
        contexts = np.concatenate([shown[:, :picks], pages], axis=1)
        starts = shown[:, picks].tolist()
        return who, actions, [self._asked(i, contexts[n], starts[n]) for n, i in enumerate(who.tolist())]

    def _request(self, i: int, shown: Places, place: int) -> ForecastRequest:
        self.attempts[int(self.task[i])] += 1
        return self._asked(i, shown, place, self.attempts[int(self.task[i])] - 1)

    def _asked(self, i: int, shown: Places, place: int, number: int = 0) -> ForecastRequest:
        bank, task, start = self.banks[i], int(self.task[i]), int(self.start[i])
        texts = self.items.descriptions.texts(self.items.tasks[task])
        if not start:
            return ForecastRequest(texts, task, number, shown)
        variant = bank.variant(start)
        if not variant.verdict.feasible:
            failure = self.items.descriptions.failure(variant)
            return ForecastRequest(texts, task, number, shown, StartVariant(place, variant.schedule, failure=failure))
        tried = bank.tried(self.children(i, [start])[0])
        return ForecastRequest(
            texts,
            task,
            number,
            shown,
            StartVariant(place, variant.schedule, self._bottleneck(bank, start), tried),
        )

    def _new_places(self, variants: Sequence[Variant]) -> dict[Any, int]:
        """Add the items that the banks lack, all at once; return their places by bank and key."""
        new: dict[Any, tuple[Kind, Variant]] = {}
        for i, variant in enumerate(variants):
            bank, count = self.banks[i], attempt_rules.items_kept(self.options, variant.verdict)
            if count and not bank.id_of(variant.key):
                new.setdefault((id(bank), variant.key), (Kind.TRACE, variant))
            if count > 1 and not bank.id_of(variant.experience_key):
                new.setdefault((id(bank), variant.experience_key), (Kind.EXPERIENCE, variant))
        return dict(zip(new, self.items.add(list(new.values())), strict=True)) if new else {}

    def _learn(self, i: int, variant: Variant, pages: tuple[int, ...], places: dict[Any, int]) -> Attempt:
        before, start = self._progress(i), int(self.start[i])
        attempt = before.attempt(
            self.options,
            variant.texts.task,
            ForecastKernel(variant),
            variant.verdict,
            self.picked_ids[i],
            start or None,
            pages,
            self._remember(i, variant, before, places),
        )
        self.last[i] = variant.verdict
        self.outcomes[variant.verdict.outcome] += 1
        self.histories[i].add(self.items, variant.verdict, [self.banks[i].place(id) for id in attempt.produced[:1]])
        self._attempts[i].append(attempt)
        self._set_progress(i, before.after(variant.verdict, self.options))
        return attempt

    def _remember(self, i: int, variant: Variant, before: Progress, places: dict[Any, int]) -> tuple[int, ...]:
        """Record the reward of the shown items and add the new items to the bank; return their ids."""
        bank, verdict, start = self.banks[i], variant.verdict, int(self.start[i])
        if self.options.statistics:
            shown = self.picked_ids[i]
            bank.record(before.stage, (start, *shown) if start else shown, before.reward(verdict, self.options))
        count = attempt_rules.items_kept(self.options, verdict)
        if not count:
            return ()
        bank.attempts += 1
        trace = bank.id_of(variant.key)
        if not trace:
            trace = bank.join(variant.key, places[id(bank), variant.key], before.stage, variant)
        if verdict.feasible:
            self._own_kernels[i].add(trace)
        mendable = self.options.repair and not verdict.feasible and variant.texts.plan is not None
        self._to_mend[i] = trace if mendable else 0
        if start:
            bank.add_child(start, trace)
        if count == 1:
            return (trace,)
        key = variant.experience_key
        return trace, bank.id_of(key) or bank.join(key, places[id(bank), key], before.stage)

    def _progress(self, i: int) -> Progress:
        first_us, best_us = float(self.first_us[i]), float(self.best_us[i])
        return Progress(
            STAGES[self.stage[i]],
            int(self.used[i]),
            None if isnan(first_us) else first_us,
            None if isnan(best_us) else best_us,
        )

    def _set_progress(self, i: int, progress: Progress) -> None:
        self.stage[i], self.used[i] = STAGES.index(progress.stage), progress.used
        self.first_us[i] = nan if progress.first_us is None else progress.first_us
        self.best_us[i] = nan if progress.best_us is None else progress.best_us
        self._over = self._facts = None

    def state(self, i: int) -> EpisodeState:
        """Return what is shown of an episode."""
        return EpisodeState(
            self.items.tasks[self.task[i]],
            self._progress(i),
            self.options.budget,
            bool(self.over[i]),
            bool(self.start_due[i]),
            int(self.picks_left[i]),
            self.shown[i],
            self.picked[i],
            self._attempts[i],
            bool(self.draft_due[i]),
        )

    # What the agent sees

    def mask(self) -> Vector:
        """Return 1 for every legal action, one row for each episode."""
        if self._legal is None:
            required = self.draft_due | (self.start_due & (self.stage == REFINE))
            self._legal = attempt_rules.action_mask(self.pool > 0, self.observed.picked, self.ready, required)
        return self._legal

    def observations(self) -> dict[str, Vector]:
        """Return what policies see, one row for each episode; always new arrays."""
        return {"observations": self.observed.all.copy(), "action_mask": self.mask().copy()}

    def infos(self) -> dict[str, list[Any]]:
        """Return the `info` of the present states: for each key a list with one place for each episode."""
        if self._facts is None:
            self._facts = self._progress_facts()
        return {
            **self._facts,
            "picks_left": self.picks_left.tolist(),
            "start_due": self.start_due.tolist(),
            "draft_due": self.draft_due.tolist(),
            "candidates": self.shown,
            "picked": self.picked_ids,
            "start": self.start.tolist(),
        }

    def _progress_facts(self) -> dict[str, list[Any]]:
        tasks = [self.items.tasks[number] for number in self.task.tolist()]
        return {
            "task": [task.id for task in tasks],
            "category": [task.category for task in tasks],
            "stage": [STAGES[stage] for stage in self.stage.tolist()],
            "attempts_left": (self.options.budget - self.used).tolist(),
            "first_us": [0.0 if isnan(us) else us for us in self.first_us.tolist()],
            "best_us": [0.0 if isnan(us) else us for us in self.best_us.tolist()],
            "last_verdict": self.last,
        }
