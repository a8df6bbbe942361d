"""One episode: the attempts at one task. Both forms of the environment run the same attempt logic.

    episode.begin(task)                              the first attempt opens: its pool is fixed
    episode.pick(action)                             until episode.ready
    request = episode.request()                      what the author is asked
    result = services.generate_and_verify([request])[0]
    episode.commit(result)                           reward, records, memory
    episode.open_attempt()                           the next attempt

The vector form has the requests of all its episodes written and judged together. Every episode sees the bank as it was
when its attempt opened.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_gym.envs import attempt_rules
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.attempt_rules import Progress, refining
from kernel_gym.envs.observation import History, Situation, Vector, project_items
from kernel_gym.envs.pool import Candidate, Child, PoolRequest, draft_item, similar
from kernel_gym.envs.prompt_context import (
    GenerationRequest,
    describe,
    generation_request,
    latency,
    profile,
    refining_query,
)
from kernel_gym.envs.rewards import REWARDS
from kernel_gym.envs.services import GenerationResult, Services
from kernel_gym.errors import ConfigError
from kernel_gym.kernel import Kernel
from kernel_gym.memory.bank import MemoryBank
from kernel_gym.memory.experience import experience, trace
from kernel_gym.memory.item import MemoryItem, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Unjudged, Verdict

#: Infrastructure errors in a row, each after its retries, that end an episode.
PATIENCE = 5


@dataclass(frozen=True)
class AttemptResult:
    """How an attempt ended. `attempt` is None if the infrastructure failed; `failure` says how."""

    reward: float
    attempt: Attempt | None
    failure: str = ""

    def info(self) -> dict[str, Any]:
        """Return what the step's `info` says about the attempt."""
        return {"attempt": self.attempt} if self.attempt is not None else {"failure": self.failure}


class Episode:
    """The attempts at one task: its progress and the attempt that is open."""

    def __init__(self, services: Services, bank: MemoryBank) -> None:
        self._services, self.bank = services, bank
        self._options, self._layout = services.options, services.layout
        self._origin = bank.snapshot()

    def begin(self, task: Task) -> None:
        """Begin a task: in drafting, or in refining if the bank holds a feasible kernel of it already."""
        self.task = task
        self.last: Verdict | None = None
        self.attempts: list[Attempt] = []
        self.failures = 0
        self._own_traces: set[int] = set()
        self._history = History()
        #: Id of the trace of the last attempt; 0 before the first.
        self._last_trace = 0
        if self._options.memory == "fresh":
            self.bank.restore(self._origin)
        self.progress = self._resumed() if self._options.stages != "draft" else Progress()
        self.open_attempt()

    def _resumed(self) -> Progress:
        if kernels := self._kernels():
            return refining(latency(min(kernels, key=lambda kernel: kernel.id)), latency(kernels[0]))
        if self._options.stages == "refine":
            where = f" on {self._services.judge}" if self._services.judge else ""
            raise ConfigError(
                f"stages='refine' needs a bank with a feasible kernel for {self.task.id}{where}; it has none"
            )
        return Progress()

    # One attempt: picks

    def open_attempt(self) -> None:
        """Open an attempt: fix the pool, or offer start points first. Nothing is offered once the task is over."""
        self.picked: tuple[int, ...] = ()
        self.start: Candidate | None = None
        self._context: tuple[Candidate, ...] | None = None
        #: Kernels that the author wrote for this attempt, with several `drafts`, and the one to verify.
        self.drafts: tuple[Kernel, ...] | None = None
        self.draft: Kernel | None = None
        self.draft_due = False
        starts = () if self.over else self._start_points() if self._refining else self._to_mend()
        self.start_due = bool(attempt_rules.start_is_due(self._refining, bool(starts), self.over))
        self.picks_left = self._options.picks
        self._offer(starts if self.start_due else () if self.over else self._candidates())

    @property
    def _refining(self) -> bool:
        return self.progress.stage is Stage.REFINE

    def _to_mend(self) -> tuple[Candidate, ...]:
        """Return the last attempt as a start point, if the options offer it and it failed with a kernel."""
        if not (self._options.repair and self._last_trace):
            return ()
        (last,) = self.bank.look_up([self._last_trace], describe(self.task))
        mendable = bool(last.item.code) and not last.item.feasible
        return (Candidate(last.item, last.similarity, last.outcomes, start=True),) if mendable else ()

    def _offer(self, pool: tuple[Candidate, ...]) -> None:
        """Make these candidates the pool and compute their features."""
        self.pool = pool
        self._clock = self.bank.attempts
        self._fastest = self._fastest_latencies()
        ids = [candidate.id for candidate in pool] if self._layout.version > 1 else []
        vectors = project_items(self.bank.vectors(ids)) if ids else ()
        self._texts: dict[int, Vector] = dict(zip(ids, vectors, strict=True))
        self._rows = self._layout.candidates(pool, self._situation())

    def _fastest_latencies(self) -> dict[str, float]:
        """Return the best latency of each task that a candidate with a latency comes from."""
        tasks = {candidate.item.task for candidate in self.pool if candidate.latency_us is not None}
        best = {task: next(filter(self._counts_here, self.bank.start_points(task)), None) for task in sorted(tasks)}
        return {task: latency(kernel) for task, kernel in best.items() if kernel is not None}

    def _candidates(self) -> tuple[Candidate, ...]:
        query, bottleneck, exclude = describe(self.task), "", set[int]()
        if self.start is not None:
            exclude.add(self.start.id)
            if self._refining:
                query, bottleneck = refining_query(self.task, self.start.item), profile(self.start.item).bottleneck
        if self._options.memory == "frozen":
            exclude.update(range(self._origin.size + 1, len(self.bank) + 1))
        drafted = "" if self._refining else self.task.id
        request = PoolRequest(query, self._width, self._services.language, bottleneck, frozenset(exclude), drafted)
        return similar(self.bank, request, self._options.composition)

    @property
    def _width(self) -> int:
        """The most candidates that this attempt can have."""
        return self._options.width(self.progress.used)

    def _kernels(self) -> list[MemoryItem]:
        """Return P(x): the feasible kernels of the task that count here, fastest first."""
        return [item for item in self.bank.start_points(self.task.id) if self._counts_here(item)]

    def _start_points(self) -> tuple[Candidate, ...]:
        """Return P(x), fastest first, as many as the pool takes."""
        ids = [item.id for item in self._kernels()[: self._options.start_width(self.progress.used)]]
        children = self.bank.children_of(ids)
        return tuple(
            Candidate(start.item, start.similarity, start.outcomes, True, self._children(children[start.item.id]))
            for start in self.bank.look_up(ids, describe(self.task))
        )

    def _children(self, traces: Iterable[MemoryItem]) -> tuple[Child, ...]:
        return tuple(Child.of(trace) for trace in traces if self._counts_here(trace))

    def _counts_here(self, item: MemoryItem) -> bool:
        """Return whether a kernel of the bank can be refined in this episode.

        It must have been judged on this device, with its options and by this policy. In frozen memory it must also be
        part of the original bank or have been found in this episode.
        """
        if not self._services.judged_here(item):
            return False
        return self._options.memory != "frozen" or item.id <= self._origin.size or item.id in self._own_traces

    def pick(self, action: int) -> None:
        """Pick a candidate, or `K` to stop picking. A masked action is a no-op that uses up the pick."""
        legal = bool(self.mask()[action])
        if self.draft_due and self.drafts:
            self.draft, self.draft_due = self.drafts[action if legal else 0], False
        elif self.start_due:
            if self._refining:
                self.start = self.pool[action if legal else 0]
            elif legal and action < self._options.slots:
                self.start = self.pool[action]
            self.start_due = False
            self._offer(self._candidates())
        elif action == self._options.slots:
            self.picks_left = 0
        else:
            self.picks_left -= 1
            if legal:
                self.picked += (action,)
                self._layout.mark(
                    self._rows, self.pool, self.picked, self._services.operators(self.task), self._history.failure_words
                )

    @property
    def context(self) -> tuple[Candidate, ...]:
        """The picked candidates, in the order of the picks."""
        return tuple(self.pool[slot] for slot in self.picked) if self._context is None else self._context

    @property
    def ready(self) -> bool:
        """True once the picks are over and a kernel can be written, or once the draft to verify is chosen."""
        return bool(attempt_rules.is_ready(self.picks_left, self.start_due)) and not self.draft_due

    @property
    def needs_drafts(self) -> bool:
        """True if the options ask for several drafts and they are not written yet."""
        return self._options.drafts > 1 and self.drafts is None

    def offer_drafts(self, drafts: Sequence[Kernel]) -> None:
        """Offer the kernels that the author wrote; with none there is nothing to choose."""
        self._context, self.picked = self.context, ()
        self.drafts, self.draft_due = tuple(drafts), bool(drafts)
        items = (draft_item(self.task, kernel.source, kernel.language, i) for i, kernel in enumerate(drafts, 1))
        self.pool = tuple(Candidate(item, 0.0) for item in items)
        self._rows = self._layout.drafts(len(drafts))

    @property
    def budget(self) -> int:
        """T: the attempts at the task."""
        return self._options.budget

    @property
    def over(self) -> bool:
        """True once the budget is spent or, with `stages="draft"`, a kernel is feasible: the step's `terminated`."""
        return bool(attempt_rules.is_over(self._options, self.progress.used, self.progress.best_us is not None))

    @property
    def given_up(self) -> bool:
        """True after too many infrastructure errors in a row: the step's `truncated`."""
        return self.failures >= PATIENCE

    # One attempt: kernel, verdict, memory

    def request(self) -> GenerationRequest:
        """Return what the author is asked: the picked items, the API pages that go with them, the start point."""
        start = None if self.start is None else self.start.item
        request = generation_request(
            self.task,
            [candidate.item for candidate in self.context],
            lambda query, code: self.bank.api_pages(query, code, self._services.language),
            start,
            filter(self._counts_here, self.bank.children(start.id)) if start is not None and self._refining else (),
            self._options.pages,
            self._services.language,
        )
        self._api_pages = request.api_pages
        return request

    def commit(self, result: GenerationResult) -> AttemptResult:
        """Take in the verdict: pay the reward, record it, add new items to the bank."""
        self.last = result.verdict
        return self._fail(result.verdict) if isinstance(result.verdict, Unjudged) else self._learn(result)

    def _fail(self, verdict: Unjudged) -> AttemptResult:
        """Count an infrastructure error: it costs no budget, adds no memory and pays no reward."""
        self.failures += 1
        return AttemptResult(REWARDS[self.progress.stage].on_error, None, verdict.feedback)

    def _learn(self, result: GenerationResult) -> AttemptResult:
        """Add the attempt to the bank and to the progress; return its record and its reward."""
        context = tuple(candidate.id for candidate in self.context)
        start = None if self.start is None else self.start.id
        shown = context if start is None else (start, *context)
        before = self.progress
        new_items = self._remember(result, shown)
        self._history.add(result.verdict, self.bank.get(new_items[0]).text if new_items else "")
        self._services.outcomes[result.verdict.outcome] += 1
        attempt = before.attempt(
            self._options, self.task, result.kernel, result.verdict, context, start, self._api_pages, new_items
        )
        # The bank may have known this kernel under another verdict: then there is nothing to refine yet.
        refinable = result.verdict.feasible and (before.stage is Stage.REFINE or bool(self._kernels()))
        self.progress = before.after(result.verdict, self._options, bool(refinable))
        self.attempts.append(attempt)
        self.failures = 0
        return AttemptResult(attempt.reward, attempt)

    def _remember(self, result: GenerationResult, shown: tuple[int, ...]) -> tuple[int, ...]:
        """Record the reward of the shown items and add the new items to the bank; return their ids."""
        stage = self.progress.stage
        if self._options.statistics:
            self.bank.record(stage, shown, self.progress.reward(result.verdict, self._options))
        count = attempt_rules.items_kept(self._options, result.verdict)
        if not count:
            return ()
        start = None if self.start is None else self.start.item
        operators = tuple(sorted(self._services.operators(self.task)))
        verdict = self._services.judged(result.verdict)
        new = trace(self.task, result.kernel, verdict, stage, operators=operators, start=start)
        ids = self.bank.add([new, experience(new, start=start)][:count])
        self._last_trace = ids[0]
        if result.verdict.feasible:
            self._own_traces.add(ids[0])
        return ids

    # What the agent sees

    def mask(self) -> Vector:
        """Return 1 for every legal action. `K` is legal unless a start point must be chosen."""
        slots = np.arange(self._options.slots)
        return attempt_rules.action_mask(
            slots < len(self.pool),
            np.isin(slots, self.picked),
            self.ready,
            self.draft_due or (self.start_due and self._refining),
        )

    def observation(self) -> dict[str, Vector]:
        """Return what the policy sees; always new arrays."""
        row = np.concatenate([self._rows.ravel(), self._layout.situation(self._situation())])
        return {"observations": row, "action_mask": self.mask()}

    def _situation(self) -> Situation:
        return Situation(
            task=self.task.id,
            category=self.task.category,
            operators=self._services.operators(self.task),
            stage=self.progress.stage,
            attempts_left=(self.budget - self.progress.used) / self.budget,
            picks_left=(self.picks_left + self.start_due) / (self._options.picks + 1),
            first_us=self.progress.first_us,
            best_us=self.progress.best_us,
            last=self.last,
            embedding=self._services.embedding(self.task),
            fastest=self._fastest,
            clock=self._clock,
            kernel_words=self._history.kernel_words,
            failure_words=self._history.failure_words,
            failures=self._history.failures,
            outcomes=self._history.outcomes,
            author=self._services.outcomes,
            texts=self._texts,
        )

    def info(self) -> dict[str, Any]:
        """Return the `info` of the present state: task, stage, candidates, picks and latencies."""
        return {
            "task": self.task.id,
            "category": self.task.category,
            "stage": self.progress.stage,
            "attempts_left": self.budget - self.progress.used,
            "picks_left": self.picks_left,
            "start_due": self.start_due,
            "candidates": self.pool,
            "draft_due": self.draft_due,
            "picked": tuple(candidate.id for candidate in self.context),
            # Numbers always, so that Gymnasium's vector environments can put the infos of several into one array.
            "start": 0 if self.start is None else self.start.id,
            "first_us": float(self.progress.first_us or 0.0),
            "best_us": float(self.progress.best_us or 0.0),
            "last_verdict": self.last,
        }
