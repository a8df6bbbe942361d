"""Write down a run: every attempt goes to the journal, to TensorBoard and, if feasible, to the run folder's kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

from gymnasium.error import InvalidAction

from kernel_gym.agents.contract import Agent, BudgetSpent
from kernel_gym.authors.contract import Recording
from kernel_gym.envs.attempt import Attempt
from kernel_gym.errors import KernelGymError
from kernel_gym.experiments.runs.figures import RunOutcome, outcome
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.reference_latency import ReferenceLatencies
from kernel_gym.experiments.runs.run_folder import counted_records
from kernel_gym.experiments.runs.run_plan import RunPlan
from kernel_gym.experiments.runs.tracking.events import Events
from kernel_gym.experiments.runs.tracking.metrics import Meter, category
from kernel_gym.experiments.runs.tracking.wandb_run import WandbRun

Progress = Callable[[int, int, int], None]
"""Called after every attempt with: attempts made, attempts in all, tasks solved."""


def no_progress(done: int, total: int, solved: int) -> None:
    """Show no progress."""


class RunStopped(BaseException):
    """Carries an error through a training loop. Not an Exception: libraries that own the loop swallow those."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


@contextmanager
def original_error() -> Iterator[None]:
    """Raise the error that a `RunStopped` carries."""
    try:
        yield
    except RunStopped as stopped:
        raise stopped.reason from None


class RunRecorder:
    """Writes every attempt of a run into its folder, and ends the training loop when the budget is spent.

    `paid_parts` are the parts whose use of a model is logged; `reference` compares latencies with the oracle's.
    """

    def __init__(self, plan: RunPlan, journal: Journal, progress: Progress = no_progress) -> None:
        self.plan, self.journal = plan, journal
        self.paid_parts: dict[str, Recording] = {}
        self.reference: ReferenceLatencies | None = None
        self._meter = Meter(len(plan.task_ids), plan.config.env)
        self._progress = progress
        self._categories: dict[str, str] = {}
        self._best: dict[str, float] = {}
        self._kept: set[str] = set()
        self._checkpoints = 0

    def __enter__(self) -> RunRecorder:
        path, config = self.plan.folder.path, self.plan.config
        self._tracker = WandbRun(path, config, len(self.journal.records)) if config.wandb else None
        self._events = Events(path, config, self.plan.attempts, self._tracker, self.plan.batch)
        return self

    def __exit__(self, *failure: object) -> None:
        self._events.close()
        if self._tracker is not None:
            self._tracker.close(failed=failure[0] is not None)

    @property
    def attempts(self) -> int:
        """The number of attempts so far."""
        return self._meter.attempts

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self.attempts >= self.plan.attempts

    @contextmanager
    def during_step(self) -> Iterator[None]:
        """Wrap a step of the environment: raise `BudgetSpent` before it, or `RunStopped` if it fails."""
        if self.finished:
            raise BudgetSpent
        with self.stopping_on_error():
            yield

    @contextmanager
    def stopping_on_error(self) -> Iterator[None]:
        """Turn an error into `RunStopped`, so that a library that owns the loop cannot swallow it."""
        try:
            yield
        except InvalidAction as error:
            reason = KernelGymError(f"agent {self.plan.config.agent!r} chose no action: {error}")
            raise RunStopped(reason) from error
        except Exception as error:
            raise RunStopped(error) from error

    def record(self, attempt: Attempt) -> None:
        """Write down an attempt."""
        self._write_to_journal(attempt)
        figures = self._meter.add(attempt)
        self._events.attempt(figures, self.attempts)
        for name, part in self.paid_parts.items():
            self._events.scalars(f"{name}/", part.usage(), self.attempts)
        latency = attempt.verdict.latency_us
        if latency is not None:
            self._compare_latency(attempt, latency)
            self._keep_kernel(attempt, latency)
        self._categories[attempt.task] = attempt.category
        if self._events.draws(self.attempts):
            self._events.draw(self._current_round(), self._categories, self.attempts)
        round_number, attempts_into_round = divmod(self.attempts, self.plan.attempts_per_round)
        if self.plan.config.rounds > 1 and attempts_into_round == 0:
            self._events.round(self.outcome(round_number), round_number)
        self._progress(self.attempts, self.plan.attempts, self._meter.solved)

    def _write_to_journal(self, attempt: Attempt) -> None:
        replaying = self.journal.replaying
        self.journal.write(journal_record(attempt))
        if replaying and not self.journal.replaying:
            self.plan.folder.note_resumed(len(self.journal.records), self.plan.config)

    def _compare_latency(self, attempt: Attempt, latency: float) -> None:
        if self.reference is not None:
            figures = self.reference.add(attempt.task, category(attempt), latency)
            self._events.scalars("", figures, self.attempts)

    def _keep_kernel(self, attempt: Attempt, latency: float) -> None:
        """Write a feasible kernel, also as the best of its task if it is the fastest so far."""
        if attempt.kernel.digest not in self._kept:
            self._kept.add(attempt.kernel.digest)
            self.plan.folder.keep_kernel(attempt.kernel)
        if latency < self._best.get(attempt.task, float("inf")):
            self._best[attempt.task] = latency
            self.plan.folder.keep_best(attempt.task, attempt.kernel.source)

    def _current_round(self) -> list[Record]:
        """Return the records of the round in progress that count."""
        config, each = self.plan.config, self.plan.attempts_per_round
        first = (self.attempts - 1) // each * each if config.rounds > 1 else 0
        return counted_records(self.journal.records[first : self.attempts], config)

    def outcome(self, round_number: int) -> RunOutcome:
        """Return the figures of a round, counted from 1."""
        config, each = self.plan.config, self.plan.attempts_per_round
        first = (round_number - 1) * each
        records = counted_records(self.journal.records[first : first + each if config.rounds > 1 else None], config)
        return outcome(config.agent, config, records, self.plan.task_ids)

    def write_agent_metrics(self, metrics: Mapping[str, float], attempts: int) -> None:
        """Write what an agent reports about itself after so many attempts."""
        self._events.agent(metrics, attempts)

    def write_agent_values(self, agent: Agent) -> None:
        """Write the distribution of an agent's values, if it keeps a table of them."""
        self._events.values(getattr(agent, "values", {}), self.attempts // self.plan.batch, self.attempts)

    def save_checkpoint(self, agent: Agent) -> None:
        """Save the agent if a checkpoint is due; a run has `config.checkpoints`, evenly spaced."""
        due = self.attempts * self.plan.config.checkpoints // self.plan.attempts
        if due > self._checkpoints:
            self._checkpoints = due
            agent.save(self.plan.folder.checkpoint(self.attempts))

    def write_summary(self, result: RunOutcome) -> None:
        """Write the settings with the figures and the fastest kernels to TensorBoard, and the reference latencies."""
        self._events.settings(result)
        if self.reference is not None:
            self.plan.folder.keep_references(self.reference.measured)
        for file in sorted((self.plan.folder.path / "best").glob("*.cpp")):
            self._events.kernel(file.stem, file.read_text(), self.attempts)

    def usage(self) -> dict[str, dict[str, float]]:
        """Return the tokens and dollars of each part that uses a model; `replayed` is 1 if nothing was paid."""
        return {name: part.usage() | _replayed(part) for name, part in self.paid_parts.items()}


def _replayed(part: Recording) -> dict[str, float]:
    return {"replayed": 1} if getattr(part, "replays", False) else {}


def journal_record(attempt: Attempt) -> Record:
    """Return an attempt as the journal keeps it; the kernel's source is in the bank."""
    return {
        "task": attempt.task,
        "stage": str(attempt.stage),
        "index": attempt.index,
        "context": attempt.context,
        "start": attempt.start,
        "api_pages": attempt.api_pages,
        "kernel": attempt.kernel.digest,
        "reward": attempt.reward,
        "produced": attempt.produced,
        "verdict": attempt.verdict.to_json(),
    }
