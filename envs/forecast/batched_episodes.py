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
from kernel_gym.envs.forecast.bank import STAGES, ForecastBank, Pool
from kernel_gym.envs.forecast.batched_history import BatchedHistory, aligned, repeated, share_of, word_shares
from kernel_gym.envs.forecast.items import SCALE, Items, Numbers, Places
from kernel_gym.envs.forecast.variants import ForecastKernel, Variant
from kernel_gym.envs.observation import HALF_AGE, HALF_LENGTH, HALF_USES, VERDICTS, Layout, Vector, shares
from kernel_gym.envs.options import Options
from kernel_gym.envs.pool import Candidate, Child
from kernel_gym.envs.rendering import EpisodeState
from kernel_gym.memory.item import Kind, Stage
from kernel_gym.suites.definitions import CATEGORIES
from kernel_gym.verdict import Feasible, Verdict

REFINE = STAGES.index(Stage.REFINE)


class BatchedEpisodes:
    """`count` episodes, each at one task. All share one bank; in fresh memory each has its own."""

    def __init__(self, items: Items, options: Options, author: ForecastAuthor, count: int) -> None:
        self.items, self.options, self.author, self.count = items, options, author, count
        self.layout = Layout(options.slots, version=options.layout)
        self._number = {task.id: number for number, task in enumerate(items.tasks)}
        self.curriculum = Curriculum(items.tasks, options.curriculum)
        self._own_banks = [ForecastBank(items) for _ in range(count if options.memory == "fresh" else 1)]
        self.banks = self._own_banks * (count // len(self._own_banks))
        self.seed, self.attempts, self.outcomes = 0, Counter[int](), Counter[str]()
        #: Further kernels that are drawn for every context and join nothing, and the mean rewards of all its kernels.
        self.redraws, self.mean_rewards = 0, np.zeros(count)
        self._redrawn = np.random.default_rng(0)
        self._columns = self.layout.candidate_columns
        self._globals = self.layout.global_columns
        names = (task.category if task.category in CATEGORIES else "other" for task in items.tasks)
        self._category = np.array([CATEGORIES.index(name) for name in names])
        self._empty()

    def _empty(self) -> None:
        count, slots = self.count, self.options.slots
        self.task, self.stage, self.used = (np.zeros(count, np.int64) for _ in range(3))
        self.first_us, self.best_us = np.full(count, np.nan), np.full(count, np.nan)
        self.last: list[Verdict | None] = [None] * count
        #: Ids of the candidates, 0 where there is none, and their places.
        self.pool, self._places = np.zeros((count, slots), np.int64), np.full((count, slots), -1)
        self.picked: list[tuple[int, ...]] = [()] * count
        self.picked_ids: list[tuple[int, ...]] = [()] * count
        #: Id of the start point, 0 while there is none, and the query that fills the pool.
        self.start, self._query = np.zeros(count, np.int64), np.zeros(count, np.int64)
        self.start_due = np.zeros(count, np.bool_)
        #: Which episodes have to choose the draft to verify; the drafts of each, its pages, and the choices.
        self.draft_due = np.zeros(count, np.bool_)
        self._drafts: list[list[Variant]] = []
        self._pages: list[tuple[int, ...]] = []
        self._draft = np.zeros(count, np.int64)
        self.picks_left = np.zeros(count, np.int64)
        self._observed = np.zeros((count, self.layout.size), np.float32)
        #: Which episodes are over; None when the progress of one has changed since it was computed.
        self._over: Any = None
        #: Which are ready; None when one has picked since.
        self._ready: Any = None
        #: The mask of the present states; None when they have changed since it was computed.
        self._legal: Vector | None = None
        self._words: list[Any] = [None] * count
        self._open = np.zeros((count, self.items.task_operators.shape[1]), np.uint64)
        self._own_kernels: list[set[int]] = [set() for _ in range(count)]
        #: Id of the trace of the last attempt, if it can be mended; else 0.
        self._to_mend = np.zeros(count, np.int64)
        self._attempts: list[list[Attempt]] = [[] for _ in range(count)]
        self._histories = [BatchedHistory() for _ in range(count)]
        self.shown: list[Any] = [()] * count

    @property
    def rows(self) -> Vector:
        """The candidates' part of the observations, by episode and slot; a view."""
        width = self.layout.candidate_width
        return self._observed[:, : self.options.slots * width].reshape(self.count, self.options.slots, width)

    @property
    def _situations(self) -> Vector:
        """The global part of the observations; a view."""
        return self._observed[:, self.options.slots * self.layout.candidate_width :]

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
        self._own_kernels[i], self._attempts[i], self._histories[i] = set(), [], BatchedHistory()
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
        self.start[index], self._query[index] = 0, self.items.task_query[self.task[index]]
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
        self._describe_situations(index)
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
            self.pool[some, :width] = bank.pools(self._query[some], width, starts, names, limit, composition, drafted)

    def _width(self, i: int) -> int:
        """Return the most candidates that this attempt can have."""
        return self.options.width(int(self.used[i]))

    @staticmethod
    def _bottleneck(bank: ForecastBank, start: int) -> str:
        verdict = bank.variant(start).verdict if start else None
        return verdict.profile.bottleneck if isinstance(verdict, Feasible) else ""

    def _describe_pools(self, index: Places) -> None:
        """Describe new pools before anything is picked; those on one bank together."""
        self._open[index] = self.items.task_operators[self.task[index]]
        for i in index.tolist():
            self.picked[i] = self.picked_ids[i] = ()
            self._words[i] = None
        if self.options.memory == "fresh":
            for i in index.tolist():
                self._describe_pools_of(self.banks[i], np.array([i]))
        else:
            self._describe_pools_of(self.banks[0], index)

    def _describe_pools_of(self, bank: ForecastBank, index: Places) -> None:
        ids, places = self.pool[index], bank.places(self.pool[index])
        self._places[index] = places
        similarity = -self.items.distance[self._query[index][:, None], places] / SCALE
        record_of, stage, due = bank.record_of[ids - 1], bank.stage(ids), self.start_due[index].tolist()
        kinds, objects = self.items.kind[places], self.items.objects[places]
        counts, plain = (ids > 0).sum(axis=1).tolist(), ids.tolist()
        for n, (i, count) in enumerate(zip(index.tolist(), counts, strict=True)):
            candidates = plain[n][:count]
            children = self._children(i, candidates) if due[n] else ()
            self.shown[i] = Pool(
                self.items.descriptions,
                kinds[n],
                objects[n],
                tuple(candidates),
                stage[n],
                similarity[n],
                record_of[n],
                due[n],
                children,
                bank.offered,
            )
        rows = self._described(index, places)
        rows[..., self._columns["similarity"]] = _clipped(similarity)
        self._measured(bank, places, stage, record_of, rows)
        if self.layout.version > 1:
            self._describe_more(index, places, rows)
        rows[places < 0] = 0.0
        self.rows[index] = rows

    def _children(self, i: int, starts: Sequence[int]) -> tuple[tuple[Child, ...], ...]:
        """Return the results of refining each start point; in frozen memory only those of this episode."""
        if self.stage[i] != REFINE:
            return ((),) * len(starts)
        bank, own = self.banks[i], self._own_kernels[i]
        children = [bank.children(start) for start in starts]
        if self.options.memory != "frozen":
            return tuple(children)
        return tuple(tuple(child for child in siblings if child.id in own) for siblings in children)

    def _described(self, index: Places, places: Places) -> Vector:
        """Return the candidates' features that do not depend on the bank, one row each."""
        items, columns, task = self.items, self._columns, self.task[index][:, None]
        rows = np.zeros((*places.shape, self.layout.candidate_width), np.float32)
        starting, kind = self.start_due[index][:, None], items.kind[places]
        for name, code in (("experience", 0), ("trace", 1), ("practice", 2)):
            rows[..., columns[f"kind.{name}"]] = (kind == code) & ~starting
        rows[..., columns["kind.start"]] = starting
        rows[..., columns["same_task"]] = items.of_task[places] == task
        rows[..., columns["same_category"]] = items.category[places] == items.task_category[task]
        rows[..., columns["feasible"]] = items.feasible[places]
        share = share_of(items.task_operators[task], items.operators[places])
        rows[..., columns["operators"]] = rows[..., columns["uncovered"]] = share
        return rows

    def _measured(self, bank: ForecastBank, places: Places, stage: Places, record_of: Numbers, rows: Vector) -> None:
        """Fill in the features that come from the bank."""
        columns, items = self._columns, self.items
        relative = np.minimum(1.0, bank.fastest[items.of_task[places]] / items.latency[places])
        rows[..., columns["relative_latency"]] = np.where(np.isnan(relative), 0.0, relative)
        age = np.maximum(0, bank.attempts - record_of[..., 6])
        rows[..., columns["age"]] = age / (age + HALF_AGE)
        uses, total, recent = (record_of[..., begin : begin + 2] for begin in (0, 2, 4))
        often, mean, recent = uses / (uses + HALF_USES), _clipped(total / np.maximum(uses, 1)), _clipped(recent)
        for code, name in enumerate(STAGES):
            rows[..., columns[f"origin.{name}"]] = stage == code
            rows[..., columns[f"uses.{name}"]] = often[..., code]
            rows[..., columns[f"mean.{name}"]] = mean[..., code]
            rows[..., columns[f"recent.{name}"]] = recent[..., code]

    def _describe_more(self, index: Places, places: Places, rows: Vector) -> None:
        """Fill in the features of version 2."""
        columns, items, histories = self._columns, self.items, [self._histories[i] for i in index.tolist()]
        length, words = items.length[places], items.known_words[places]
        rows[..., columns["compiled"]] = items.compiled[places]
        rows[..., columns["length"]] = length / (length + HALF_LENGTH)
        rows[..., columns["covered"]] = word_shares(aligned([history.kernel_words for history in histories]), words)
        named = word_shares(aligned([history.failure_words for history in histories]), words)
        rows[..., columns["named"]] = rows[..., columns["unnamed"]] = named
        rows[..., columns["repeated"]] = repeated(histories, items.failure[places])
        rows[..., columns["text"]] = items.text[places]

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
            self._legal = None
            starting, slots = who[due], np.where(legal[due], actions[due], 0)
            refining = self.stage[starting] == REFINE
            declined = ~refining & ~(legal[due] & (slots < self.options.slots))
            slots = np.where(declined, 0, slots)
            self.start[starting] = np.where(declined, 0, self.pool[starting, slots])
            self.start_due[starting] = False
            places = self._places[starting, slots]
            for i, place in zip(starting[refining].tolist(), places[refining].tolist(), strict=True):
                self._query[i] = self.items.refining_query(int(self.task[i]), place)
            self._fill(starting.tolist())
            self._describe_pools(starting)
            who, actions, legal = who[~due], actions[~due], legal[~due]
            self._situations[starting, self._globals["picks_left"]] = self._share_of_picks(starting)
        every, taking = self._every(who), actions < self.options.slots
        self.picks_left[every] = np.where(taking, self.picks_left[every] - 1, 0)
        self._ready = None
        marked = taking & legal
        if marked.any():
            self._take(who[marked], actions[marked])
        if self._legal is not None:
            mask[who[marked], actions[marked]] = 0.0
            mask[who[self.picks_left[every] == 0], :-1] = 0.0
        self._situations[every, self._globals["picks_left"]] = self._share_of_picks(every)

    def _every(self, who: Places) -> Any:
        """Return an index of these episodes, in their order: quicker than their numbers if they are all."""
        return slice(None) if len(who) == self.count else who

    def _take(self, who: Places, slots: Places) -> None:
        """Add the candidates in these slots to the picks."""
        for i, slot in zip(who.tolist(), slots.tolist(), strict=True):
            self.picked[i] = (*self.picked[i], slot)
            self.picked_ids[i] = (*self.picked_ids[i], self.shown[i].ids[slot])
        if not self.ready.all():  # else all pools are described anew before anybody sees them
            self._mark(who, slots)

    def _mark(self, who: Places, slots: Places) -> None:
        """Bring the features that depend on the picks up to date. Those of empty slots are 0, as for an empty item."""
        every = self._every(who)
        items, columns, places = self.items, self._columns, self._places[every]
        taken = places[np.arange(len(who)), slots]
        known = items.known_words
        words = known[taken]
        for n, i in enumerate(who.tolist()):
            if self._words[i] is not None:
                words[n, : len(self._words[i])] |= self._words[i]
            self._words[i] = words[n]
        self._open[every] &= ~items.operators[taken]
        near = known[places]
        common = np.bitwise_count(near & words[:, None]).sum(axis=2, dtype=np.int64)
        rows = self.rows
        rows[who, slots, columns["picked"]] = 1.0
        rows[every, :, columns["overlap"]] = common / np.maximum(items.word_count[places], 1)
        rows[every, :, columns["uncovered"]] = share_of(self._open[every][:, None], items.operators[places])
        if self.layout.version > 1:
            unnamed = aligned([self._histories[i].failure_words for i in who.tolist()])
            width = min(unnamed.shape[1], words.shape[1])
            unnamed[:, :width] &= ~words[:, :width]
            rows[every, :, columns["unnamed"]] = word_shares(unnamed, near)

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
                shown[i, : len(slots)] = self._places[i, list(slots)]
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
        rows, count = self.rows, self.options.drafts
        for i, drafts in enumerate(self._drafts):
            items = (self.items.descriptions.draft_item(variant, number) for number, variant in enumerate(drafts, 1))
            self.shown[i] = tuple(Candidate(item, 0.0) for item in items)
            self.picked[i] = ()
            self.pool[i] = 0
            # Drafts have no id in the bank; any above 0 marks a slot as filled.
            self.pool[i, :count] = 1
            rows[i] = self.layout.drafts(count)
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
            shown[n, : len(slots)] = self._places[i, slots]
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
        tried = bank.tried(self._children(i, [start])[0])
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
        self._histories[i].add(self.items, variant.verdict, [self.banks[i].place(id) for id in attempt.produced[:1]])
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
        self._over = None

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
            picked = self.rows[..., self._columns["picked"]] != 0.0
            required = self.draft_due | (self.start_due & (self.stage == REFINE))
            self._legal = attempt_rules.action_mask(self.pool > 0, picked, self.ready, required)
        return self._legal

    def observations(self) -> dict[str, Vector]:
        """Return what policies see, one row for each episode; always new arrays."""
        return {"observations": self._observed.copy(), "action_mask": self.mask().copy()}

    def _describe_situations(self, index: Places) -> None:
        """Describe the situation in which attempts begin."""
        options, columns, each = self.options, self._globals, np.arange(len(index))
        rows = np.zeros((len(index), self.layout.global_width), np.float32)
        last = [self.last[i] for i in index.tolist()]
        outcomes = [0 if verdict is None else VERDICTS.index(verdict.outcome) for verdict in last]
        speedup = np.tanh(np.log(self.first_us[index] / self.best_us[index]))
        rows[each, _first(columns["stage"]) + self.stage[index]] = 1.0
        rows[:, columns["attempts_left"]] = (options.budget - self.used[index]) / options.budget
        rows[:, columns["picks_left"]] = self._share_of_picks(index)
        rows[:, columns["best_speedup"]] = np.where(speedup > 0, speedup, 0.0)
        rows[each, _first(columns["last_verdict"]) + np.array(outcomes)] = 1.0
        rows[each, _first(columns["category"]) + self._category[self.task[index]]] = 1.0
        rows[:, columns["embedding"]] = self.items.embedding[self.task[index]]
        if self.layout.version > 1:
            rows[:, columns["outcomes"]] = [shares(self._histories[i].outcomes) for i in index.tolist()]
            rows[:, columns["author"]] = shares(self.outcomes)
        self._situations[index] = rows

    def _share_of_picks(self, index: Any) -> Numbers:
        share: Numbers = (self.picks_left[index] + self.start_due[index]) / (self.options.picks + 1)
        return share

    def infos(self) -> dict[str, list[Any]]:
        """Return the `info` of the present states: for each key a list with one place for each episode."""
        tasks = [self.items.tasks[number] for number in self.task.tolist()]
        return {
            "task": [task.id for task in tasks],
            "category": [task.category for task in tasks],
            "stage": [STAGES[stage] for stage in self.stage.tolist()],
            "attempts_left": (self.options.budget - self.used).tolist(),
            "picks_left": self.picks_left.tolist(),
            "start_due": self.start_due.tolist(),
            "draft_due": self.draft_due.tolist(),
            "candidates": list(self.shown),
            "picked": list(self.picked_ids),
            "start": self.start.tolist(),
            "first_us": [0.0 if isnan(us) else us for us in self.first_us.tolist()],
            "best_us": [0.0 if isnan(us) else us for us in self.best_us.tolist()],
            "last_verdict": list(self.last),
        }


def _clipped(numbers: Numbers) -> Numbers:
    """Return the numbers, at least -1 and at most 1; quicker than `clip` for few of them."""
    clipped: Numbers = np.minimum(np.maximum(numbers, -1.0), 1.0)
    return clipped


def _first(columns: int | slice) -> int:
    return columns if isinstance(columns, int) else columns.start
