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

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.observation import Situation, Vector
from kernel_gym.envs.pool import Candidate, Child, Wanted, similar
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
        self.stage = Stage.DRAFT
        self.used = 0
        self.first_us: float | None = None
        self.best_us: float | None = None
        self.last: Verdict | None = None
        self.failures = 0
        self._found: set[int] = set()
        if self._options.memory == "fresh":
            self.bank.restore(self._origin)
        if self._options.stages != "draft":
            self._resume()
        self.open_attempt()

    def _resume(self) -> None:
        kernels = self._kernels()
        if kernels:
            self.stage = Stage.REFINE
            self.first_us = latency(min(kernels, key=lambda kernel: kernel.id))
            self.best_us = latency(kernels[0])
        elif self._options.stages == "refine":
            where = f" on {self._services.device}" if self._services.device else ""
            raise ConfigError(
                f"stages='refine' needs a bank with a feasible kernel for {self.task.id}{where}; it has none"
            )

    # One attempt: picks

    def open_attempt(self) -> None:
        """Open an attempt: fix the pool, or offer the start points first. Nothing is offered once the task is over."""
        self.picked: tuple[int, ...] = ()
        self.start: Candidate | None = None
        self.start_due = self.stage is Stage.REFINE and not self.over
        self.picks_left = self._options.picks
        self._show(self._start_points() if self.start_due else () if self.over else self._candidates())

    def _show(self, pool: tuple[Candidate, ...]) -> None:
        self.pool = pool
        self._clock = self.bank.attempts
        self._fastest = self._fastest_latencies()
        self._rows = self._layout.candidates(pool, self._situation())

    def _fastest_latencies(self) -> dict[str, float]:
        """The best latency known here for each task that a candidate with a latency comes from."""
        tasks = {candidate.item.task for candidate in self.pool if candidate.latency_us is not None}
        best = {task: next(filter(self._mine, self.bank.start_points(task)), None) for task in sorted(tasks)}
        return {task: latency(found) for task, found in best.items() if found is not None}

    def _candidates(self) -> tuple[Candidate, ...]:
        query, bottleneck, exclude = describe(self.task), "", set[int]()
        if self.start is not None:
            query, bottleneck = refining_query(self.task, self.start.item), profile(self.start.item).bottleneck
            exclude.add(self.start.id)
        if self._options.memory == "frozen":
            exclude.update(range(self._origin.size + 1, len(self.bank) + 1))
        wanted = Wanted(query, self._width, self._services.language, bottleneck, frozenset(exclude))
        return similar(self.bank, wanted, self._options.composition)

    @property
    def _width(self) -> int:
        """How many candidates there are at most in this attempt."""
        return self._options.width(self.used)

    def _kernels(self) -> list[MemoryItem]:
        """P(x): the feasible kernels of the task that count here, fastest first."""
        return [item for item in self.bank.start_points(self.task.id) if self._mine(item)]

    def _start_points(self) -> tuple[Candidate, ...]:
        """P(x), fastest first, as many as the pool takes."""
        ids = [item.id for item in self._kernels()[: self._width]]
        found, children = self.bank.look_up(ids, describe(self.task)), self.bank.children_of(ids)
        return tuple(
            Candidate(one.item, one.similarity, one.outcomes, True, self._children(children[one.item.id]))
            for one in found
        )

    def _children(self, traces: Iterable[MemoryItem]) -> tuple[Child, ...]:
        return tuple(Child.of(trace) for trace in traces if self._mine(trace))

    def _mine(self, item: MemoryItem) -> bool:
        """Return whether a kernel counts here: it was judged on this device and, in frozen memory, was there from the
        first or was found in this episode."""
        if not self._services.judged_here(item):
            return False
        return self._options.memory != "frozen" or item.id <= self._origin.size or item.id in self._found

    def pick(self, action: int) -> None:
        """Take a candidate, or `K` to stop picking. A masked action is a no-op that uses up the pick."""
        legal = bool(self.mask()[action])
        if self.start_due:
            self.start, self.start_due = self.pool[action if legal else 0], False
            self._show(self._candidates())
        elif action == self._options.slots:
            self.picks_left = 0
        else:
            self.picks_left -= 1
            if legal:
                self.picked += (action,)
                self._layout.mark(self._rows, self.pool, self.picked, self._services.operators(self.task))

    @property
    def ready(self) -> bool:
        """True once the picks are over and a kernel can be written."""
        return self.picks_left == 0 and not self.start_due

    @property
    def budget(self) -> int:
        """How many attempts the task gets."""
        return self._options.budget

    @property
    def over(self) -> bool:
        """True once the budget is spent, or drafting alone has found its kernel."""
        return self.used >= self.budget or (self._options.stages == "draft" and self.best_us is not None)

    @property
    def given_up(self) -> bool:
        """True after too many infrastructure errors in a row."""
        return self.failures >= PATIENCE

    # One attempt: kernel, verdict, memory

    def request(self) -> GenerationRequest:
        """Return what the author is asked: the picked items, the API pages that go with them, the start point."""
        start = None if self.start is None else self.start.item
        request = generation_request(
            self.task,
            [self.pool[slot].item for slot in self.picked],
            lambda query, code: self.bank.api_pages(query, code, self._services.language),
            start,
            () if start is None else filter(self._mine, self.bank.children(start.id)),
        )
        self._api_pages = request.api_pages
        return request

    def commit(self, result: GenerationResult) -> AttemptResult:
        """Take in the verdict: reward, records, new items."""
        self.last = result.verdict
        return self._fail(result.verdict) if isinstance(result.verdict, Unjudged) else self._learn(result)

    def _fail(self, verdict: Unjudged) -> AttemptResult:
        """The infrastructure failed: no budget, no memory, no reward."""
        self.failures += 1
        return AttemptResult(REWARDS[self.stage].on_error, None, verdict.feedback)

    def _learn(self, result: GenerationResult) -> AttemptResult:
        reward = REWARDS[self.stage](result.verdict, self.best_us)
        context = tuple(self.pool[slot].id for slot in self.picked)
        start = None if self.start is None else self.start.id
        produced = self._remember(result, context if start is None else (start, *context), reward)
        attempt = Attempt(
            task=self.task.id,
            category=self.task.category,
            stage=self.stage,
            index=self.used,
            context=context,
            start=start,
            api_pages=self._api_pages,
            kernel=result.kernel,
            verdict=result.verdict,
            reward=reward,
            best_us=self.best_us,
            produced=produced,
        )
        self._advance(result.verdict)
        return AttemptResult(reward, attempt)

    def _remember(self, result: GenerationResult, shown: tuple[int, ...], reward: float) -> tuple[int, ...]:
        """Put the outcome on record, the new trace and experience into the bank; frozen takes in start points only."""
        if self._options.statistics:
            self.bank.record(self.stage, shown, reward)
        if self._options.memory == "frozen" and not result.verdict.feasible:
            return ()
        start = None if self.start is None else self.start.item
        operators = tuple(sorted(self._services.operators(self.task)))
        new = trace(self.task, result.kernel, result.verdict, self.stage, operators=operators, start=start)
        items = [new] if self._options.memory == "frozen" else [new, experience(new, start=start)]
        ids = self.bank.add(items)
        if result.verdict.feasible:
            self._found.add(ids[0])
        return ids

    def _advance(self, verdict: Verdict) -> None:
        self.used += 1
        self.failures = 0
        if (now_us := verdict.latency_us) is not None:
            self.first_us = self.first_us or now_us
            self.best_us = min(now_us, self.best_us or now_us)
            # The bank may have known this kernel under another verdict: then there is nothing to refine yet.
            if self.stage is Stage.DRAFT and self._options.stages != "draft" and self._kernels():
                self.stage = Stage.REFINE

    # What the agent sees

    def mask(self) -> Vector:
        """1 for every legal action. `K` is legal unless a start point is due."""
        mask = np.zeros(self._options.slots + 1, np.float32)
        if not self.ready:
            mask[: len(self.pool)] = 1.0
            mask[list(self.picked)] = 0.0
        mask[-1] = float(not self.start_due)
        return mask

    def observation(self) -> dict[str, Vector]:
        """What the policy sees; always a new array."""
        row = np.concatenate([self._rows.ravel(), self._layout.situation(self._situation())])
        return {"observations": row, "action_mask": self.mask()}

    def _situation(self) -> Situation:
        return Situation(
            task=self.task.id,
            category=self.task.category,
            operators=self._services.operators(self.task),
            stage=self.stage,
            attempts_left=(self.budget - self.used) / self.budget,
            picks_left=(self.picks_left + self.start_due) / (self._options.picks + 1),
            first_us=self.first_us,
            best_us=self.best_us,
            last=self.last,
            embedding=self._services.embedding(self.task),
            fastest=self._fastest,
            clock=self._clock,
        )

    def info(self) -> dict[str, Any]:
        """Return the structured view, with ids."""
        return {
            "task": self.task.id,
            "category": self.task.category,
            "stage": self.stage,
            "attempts_left": self.budget - self.used,
            "picks_left": self.picks_left,
            "start_due": self.start_due,
            "candidates": self.pool,
            "picked": tuple(self.pool[slot].id for slot in self.picked),
            "start": None if self.start is None else self.start.id,
            "first_us": self.first_us,
            "best_us": self.best_us,
            "last_verdict": self.last,
        }
