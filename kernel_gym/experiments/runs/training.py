"""Training an agent: the loop, the journal, the events. The same for every agent.

All tasks of a batch are worked on in lock-step on one bank, one attempt each an iteration, until each has had its
budget; that is the paper's outer loop. Agents that own their loop are given the same environments and stopped at the
same cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from kernel_gym import plugins
from kernel_gym.agents.contract import Agent, BudgetSpent
from kernel_gym.authors.contract import Recording
from kernel_gym.config import RunConfig
from kernel_gym.envs import factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.curriculum import whole_levels
from kernel_gym.envs.options import Options
from kernel_gym.envs.vector import KernelSynthesisVectorEnv, view
from kernel_gym.errors import ConfigError, InfrastructureError
from kernel_gym.experiments.runs.comparison import RunOutcome, outcome
from kernel_gym.experiments.runs.events import Events
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.metrics import Meter, category
from kernel_gym.experiments.runs.recorded_verdicts import RecordedVerdicts
from kernel_gym.experiments.runs.recording_env import RecordingEnv, RecordingVectorEnv
from kernel_gym.experiments.runs.reference_latency import Yardsticks
from kernel_gym.experiments.runs.run_folder import RunFolder, counted, keeping_what_is_written, keeps_memory
from kernel_gym.memory.seed import seed_items

Part = TypeVar("Part")

#: Devices whose time costs nothing: oracles are run on them to compare with.
SIMULATED = ("ascend-sim",)

Progress = Callable[[int, int, int], None]
"""Called after every attempt with: attempts made, attempts in all, operators solved."""


def train(config: RunConfig, folder: RunFolder, progress: Progress = lambda done, of, solved: None) -> RunOutcome:
    """Run `config` into `folder`, from its beginning or from where it was stopped; the run in figures."""
    tasks = operators(config, folder)
    if folder.complete:
        found = outcome(config.agent, config, folder.last_round(config, len(tasks)), tasks)
        if folder.bank.exists() or not keeps_memory(config):
            return found
    with keeping_what_is_written(folder.path), ExitStack() as cleanup:
        journal = folder.start_over(synced=not config.env.table)
        cleanup.callback(folder.stop, journal)
        session = cleanup.enter_context(session_class(config)(config, folder, journal, tasks, progress))
        agent = session.agent()
        progress(0, session.total, 0)
        with as_it_was():
            if agent.owns_loop and config.learning:
                agent.fit(session, session.total, lambda metrics, _: session.report(agent, metrics))
            else:
                _work(agent, session)
        folder.agent.mkdir(exist_ok=True)  # dropped by stores that keep no empty folders
        agent.save(folder.agent)
        result = outcome(config.agent, config, session.round(config.rounds), tasks)
        session.conclude(result)
        folder.finish(session.usage())
    return result


def operators(config: RunConfig, folder: RunFolder) -> list[str]:
    """The ids of the operators that a run works on."""
    found = _operators(config, environment_options(config, folder))
    if twice := sorted({name for name in found if found.count(name) > 1}):
        raise ConfigError(f"{', '.join(twice)} would count twice: name each task once")
    return found


def _operators(config: RunConfig, options: Options) -> list[str]:
    if not config.env.table:
        return [task.id for task in factories.tasks(options)]
    from kernel_gym.experiments.runs import tabular_training

    return tabular_training.tasks(options, config.env.table)


def at_once(config: RunConfig, folder: RunFolder, tasks: Sequence[str]) -> int:
    """How many tasks are worked on at once: a batch, or all; level by level, as many as divide every level evenly."""
    most = len(tasks)
    if config.env.curriculum == "levels":
        options = environment_options(config, folder)
        most = whole_levels(factories.tasks(replace(options, tasks=tasks) if config.env.table else options))
    batch = config.batch or most
    if len(tasks) % batch:
        raise ConfigError(f"{len(tasks)} tasks don't make whole batches of {batch}")
    if most % batch:
        raise ConfigError(f"batches of {batch} would mix the levels: batch must divide {most}, or be 0")
    return batch


def session_class(config: RunConfig) -> type[Session]:
    """Who makes the environments of a run; tables take a while to import."""
    if not config.env.table:
        return Session
    from kernel_gym.experiments.runs.tabular_training import TabularSession

    return TabularSession


def make_agent(config: RunConfig) -> Agent:
    """The agent that a configuration names."""
    kind = plugins.load("kernel_gym.agents", config.agent)
    suited = kind.options_for(config.env) if hasattr(kind, "options_for") else {}  # a plug-in may be any callable
    try:
        agent: Agent = kind(seed=config.seed, **{**suited, **config.agent_options})
    except TypeError as error:
        raise ConfigError(f"agent {config.agent!r} does not take these options: {error}") from error
    return agent


def environment_options(config: RunConfig, folder: RunFolder) -> Options:
    """The environment of a run; the same for every agent with the same settings."""
    return Options(
        suite=config.suite,
        tasks=config.tasks or None,
        budget=config.budget,
        workers=config.workers,
        seed=config.seed,
        bank=folder.bank,
        # What is frozen together with its agent is evaluated: a record would be learned from by those who see it.
        statistics=config.learning or config.env.memory != "frozen",
        **config.env.model_dump(exclude={"table"}),
    )


class Stopped(BaseException):
    """A failure that ends the run, on its way out. Not an Exception: libraries that own the loop swallow those."""

    def __init__(self, reason: Exception) -> None:
        self.reason = reason


@contextmanager
def as_it_was() -> Iterator[None]:
    """A failure that has come through everybody's loop is again what it was."""
    try:
        yield
    except Stopped as stopped:
        raise stopped.reason from None


class Session:
    """One run under way: makes the environments, writes down every attempt, stops at the budget."""

    def __init__(
        self, config: RunConfig, folder: RunFolder, journal: Journal, tasks: Sequence[str], progress: Progress
    ) -> None:
        self.config, self.folder, self.journal = config, folder, journal
        self.tasks = tuple(tasks)
        #: attempts of a round, and in all
        self.each = len(tasks) * config.budget
        self.total = self.each * config.rounds
        self.batch = at_once(config, folder, tasks)
        if config.rounds > 1 and config.env.stages == "draft":
            raise ConfigError("rounds have no common end where drafting is all: leave rounds or stages out")
        self.meter = Meter(len(tasks), config.env)
        self._progress = progress
        self._categories: dict[str, str] = {}
        self._best: dict[str, float] = {}
        self._kept: set[str] = set()
        self._paid: dict[str, Recording] = {}
        #: ids here of the items that earlier runs knew too, by their ids there
        self._numbers: dict[int, int] = {}
        #: how many items memory begins with
        self._known = 0
        self._saved = 0

    def __enter__(self) -> Session:
        self._stack = ExitStack()
        self._events = Events(self.folder.path, self.config, self.total)
        self._stack.callback(self._events.close)
        self._prepare()
        return self

    def _prepare(self) -> None:
        """Make the parts of the environment."""
        options = environment_options(self.config, self.folder)
        options = replace(
            options,
            author=self._recording("author", factories.author(options), self.folder.transcript),
            embedder=self._recording("embedder", factories.embedder(options), self.folder.embeddings),
            inspection=self._recording("inspection", factories.inspector(options), self.folder.inspections) or {},
        )
        self._know(len(seed_items(factories.author(options).language)))
        if self.config.initial_memory:
            self._remember(options)
        records = self.journal.records
        self._verifier = RecordedVerdicts(records, factories.device_name(options), lambda: factories.verifier(options))
        self._stack.callback(self._verifier.close)
        self._yardsticks = Yardsticks(self._verifier)
        self._options = replace(options, verifier=self._verifier)

    def _know(self, seed: int) -> None:
        """Every bank begins with the seed knowledge; without memories of another run, it alone is known from before."""
        self._known, self._numbers = seed, {id: id for id in range(1, seed + 1)}

    def _remember(self, options: Options) -> None:
        """Put the memories that the run begins with into its bank."""
        file = self.folder.within(self.config.initial_memory)
        with factories.bank(options, factories.author(options).language) as bank:
            bank.import_(file)
            self._known, self._numbers = len(bank), bank.local_ids(file) if self.config.initial_agent else {}

    def agent(self) -> Agent:
        """The agent, with what it had learned before if the configuration says so."""
        agent = make_agent(self.config)
        if self.config.initial_agent:
            agent.load(self.folder.within(self.config.initial_agent))
            agent.remap_items(self._numbers)
        if self.config.env.memory == "fresh":
            agent.use_fresh_memory(self._known)
        return agent

    def _recording(self, name: str, part: Part, path: Path) -> Part:
        """A part; one that is asked over a network keeps what it was answered in the run folder."""
        if isinstance(part, Recording):
            part.record_to(path)
            self._paid[name] = part
        return part

    def __exit__(self, *failure: object) -> None:
        self._stack.close()

    def __call__(self) -> gym.Env[Any, Any]:
        """The environment, one task after another."""
        env = gym.make("kernel_gym/KernelSynthesis-v0", disable_env_checker=True, **arguments(self._options))
        self._stack.callback(env.close)
        return RecordingEnv(env, self)

    def vector(self) -> gym.vector.VectorEnv[Any, Any, Any]:
        """All tasks of a batch at once, one attempt each an iteration; then the next batch."""
        envs = KernelSynthesisVectorEnv(num_envs=self.batch, **arguments(self._options))
        self._stack.callback(envs.close)
        return RecordingVectorEnv(envs, self)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Around every step: end the loop once every attempt of the budget has been made, or once something failed."""
        if self.meter.attempts >= self.total:
            raise BudgetSpent
        with self.failing():
            yield

    @contextmanager
    def failing(self) -> Iterator[None]:
        """Whatever fails within comes out as it is, whoever owns the loop."""
        try:
            yield
        except Exception as error:
            raise Stopped(error) from error

    def take(self, info: Mapping[str, Any]) -> None:
        """Write down the attempt that a step brought, if it did.

        An attempt that the infrastructure failed, all retries included, stops the run: going on without it would make
        another curve than the one that running again resumes.
        """
        if "failure" in info:
            raise InfrastructureError(f"{info['failure']}; run the same command again to go on")
        if "attempt" in info:
            self._write(info["attempt"])

    def _write(self, attempt: Attempt) -> None:
        resuming = self.journal.replaying
        self.journal.write(record(attempt))
        if resuming and not self.journal.replaying:
            self.folder.go_on(len(self.journal.records))
        figures, now = self.meter.take(attempt), self.meter.attempts
        self._events.attempt(figures, now)
        for name, part in self._paid.items():
            self._events.scalars(f"{name}/", part.usage(), now)
        latency = attempt.verdict.latency_us
        if latency is not None:
            self._measure(attempt, latency)
            self._keep(attempt, latency)
        self._categories[attempt.task] = attempt.category
        if self._events.draws(now):
            self._events.draw(self._round_so_far(), self._categories, now)
        if self.config.rounds > 1 and now % self.each == 0:
            self._end_round(now // self.each)
        self._progress(now, self.total, self.meter.solved)

    def _measure(self, attempt: Attempt, latency: float) -> None:
        """Hold a latency against what is possible, where that costs nothing."""
        if self.config.env.device in SIMULATED and not self.config.env.table:
            figures = self._yardsticks.take(attempt.task, category(attempt), latency)
            self._events.scalars("", figures, self.meter.attempts)

    def _keep(self, attempt: Attempt, latency: float) -> None:
        """Write down a feasible kernel, and that it is the fastest of its operator if it is."""
        if attempt.kernel.digest not in self._kept:
            self._kept.add(attempt.kernel.digest)
            self.folder.keep(attempt.kernel)
        if latency < self._best.get(attempt.task, float("inf")):
            self._best[attempt.task] = latency
            self.folder.keep_best(attempt.task, attempt.kernel.source)

    def round(self, number: int) -> list[Record]:
        """The attempts of a round, counted from 1; those that count where drafting is all."""
        first = (number - 1) * self.each
        return counted(self.journal.records[first : first + self.each if self.config.rounds > 1 else None], self.config)

    def _round_so_far(self) -> list[Record]:
        begun = (self.meter.attempts - 1) // self.each * self.each if self.config.rounds > 1 else 0
        return counted(self.journal.records[begun : self.meter.attempts], self.config)

    def _end_round(self, number: int) -> None:
        """Write what a round came to."""
        made = self.round(number)
        self._events.round(outcome(self.config.agent, self.config, made, self.tasks), number)

    def show_values(self, agent: Agent) -> None:
        """Write the distribution of an agent's values, if it keeps a table of them."""
        now = self.meter.attempts
        self._events.values(getattr(agent, "values", {}), now // self.batch, now)

    def conclude(self, result: RunOutcome) -> None:
        """Write what stands at the end: settings beside figures, and the fastest kernels as text."""
        self._events.settings(result)
        for file in sorted((self.folder.path / "best").glob("*.cpp")):
            self._events.kernel(file.stem, file.read_text(), self.meter.attempts)

    def report(self, agent: Agent, metrics: Mapping[str, float]) -> None:
        """Take what an agent that owns its loop says after an iteration of it."""
        self.log(metrics, self.meter.attempts)
        self.checkpoint(agent)

    def checkpoint(self, agent: Agent) -> None:
        """Save the agent on the way, as often as was asked for."""
        due = self.meter.attempts * self.config.checkpoints // self.total
        if due > self._saved:
            self._saved = due
            agent.save(self.folder.checkpoint(self.meter.attempts))

    def usage(self) -> dict[str, dict[str, float]]:
        """What each part that is asked over a network used."""
        return {name: part.usage() for name, part in self._paid.items()}

    def log(self, metrics: Mapping[str, float], step: int) -> None:
        """Write what the agent says about itself."""
        self._events.agent(metrics, step)


def _work(agent: Agent, session: Session) -> None:
    """The loop for agents that only act and learn."""
    envs = session.vector()
    observations, infos = envs.reset(seed=session.config.seed)
    while session.meter.attempts < session.total:
        actions = [agent.act(*view(observations, infos, i)) for i in range(envs.num_envs)]
        observations, _, _, _, infos = envs.step(np.asarray(actions))
        made = [one for i in range(envs.num_envs) if (one := view({}, infos, i)[1].get("attempt")) is not None]
        for number, attempt in enumerate(made, session.meter.attempts - len(made) + 1):
            if session.config.learning:
                session.log(agent.learn(attempt), number)
        if "_attempt" in infos:
            session.show_values(agent)
            session.checkpoint(agent)


def record(attempt: Attempt) -> Record:
    """An attempt as the journal keeps it; the kernel's source is in the bank."""
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


def arguments(options: Options) -> dict[str, Any]:
    """Options as keyword arguments."""
    return {field.name: getattr(options, field.name) for field in fields(options)}
