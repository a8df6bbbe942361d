"""True effects of memories, and how near an agent's values come to them.

A run is played again from its journal, and in some of its attempts (the states) everything is known: the pool, what the
agent thought of each candidate, what it showed. The author is a program, so what each memory does to the chance of a
good kernel can be computed, with the same draws with and without it:

* *alone*: what a candidate adds to an empty context,
* *left out*: what the context that was shown loses without it.

Values are scored by rank correlation with these, contexts by their distance to the one that a greedy picker that knows
would have shown.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.stats import spearmanr

from kernel_gym.agents.contract import Agent, Info
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.config import RunConfig
from kernel_gym.envs import factories
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.observation import Vector
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.seeding import generator
from kernel_gym.envs.vector import view
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.runs.journal import Drift, Journal, Record
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.training import as_it_was, environment_options, make_agent, operators, session_class
from kernel_gym.experiments.statistics import Interval, interval
from kernel_gym.memory.item import MemoryItem
from kernel_gym.verdict import Unjudged

Watch = Callable[[int, int], None]
"""Called as the work goes on with: states examined, states in all."""

#: Pickers that are asked what they would have shown in the same states.
OTHERS: dict[str, type[Agent]] = {
    "similarity": SimilarityAgent,
    "similarity-feasible": SimilarityFeasibleAgent,
    "similarity-diverse": SimilarityDiverseAgent,
}


@dataclass(frozen=True)
class Effect:
    """What one candidate does: `alone` to an empty context, `left_out` to the one shown (None if it wasn't in it)."""

    item: int
    kind: str
    title: str
    feasible: bool
    alone: float
    left_out: float | None
    worth: float | None


@dataclass(frozen=True)
class State:
    """One attempt seen with full knowledge: chances of a good kernel by who picked, and the effect of each candidate.

    `chances` are the author's own; `verified` are shares of kernels, written with the same draws for each picker, that
    the verifier found feasible (empty unless asked for).
    """

    task: str
    stage: str
    attempt: int
    chances: Mapping[str, float]
    verified: Mapping[str, float]
    effects: tuple[Effect, ...]

    def correlation(self, name: str) -> float | None:
        """Rank correlation of the agent's values with an effect, `alone` or `left_out`; None where there is none."""
        pairs = [(one.worth, getattr(one, name)) for one in self.effects]
        known = [(worth, effect) for worth, effect in pairs if worth is not None and effect is not None]
        if len(known) < 3 or any(len(set(column)) < 2 for column in zip(*known, strict=True)):
            return None
        return float(spearmanr(*zip(*known, strict=True)).statistic)


@dataclass(frozen=True)
class Report:
    """What the states come to."""

    agent: str
    states: tuple[State, ...]

    def chances(self) -> dict[str, Interval | None]:
        """Mean chance of a good kernel, by who picked."""
        names = self.states[0].chances if self.states else ()
        return {name: interval([state.chances[name] for state in self.states]) for name in names}

    def verified(self) -> dict[str, Interval | None]:
        """The share of kernels that the verifier found feasible, by who picked, in the states where it was asked."""
        asked = [state.verified for state in self.states if state.verified]
        return {name: interval([shares[name] for shares in asked]) for name in (asked[0] if asked else ())}

    def regrets(self) -> dict[str, Interval | None]:
        """How far each stays behind the picker that knows, on average."""
        names = [name for name in (self.states[0].chances if self.states else ()) if name != "oracle"]
        return {
            name: interval([state.chances["oracle"] - state.chances[name] for state in self.states]) for name in names
        }

    def correlation(self, name: str) -> tuple[Interval | None, int]:
        """Mean rank correlation of values and effects over the states that have one, and how many these are."""
        found = [value for state in self.states if (value := state.correlation(name)) is not None]
        return interval(found), len(found)

    def to_json(self) -> dict[str, Any]:
        """Everything, as plain data."""
        return {
            "agent": self.agent,
            "correlation": {name: _plain(self.correlation(name)[0]) for name in ("alone", "left_out")},
            "chances": {name: _plain(value) for name, value in self.chances().items()},
            "regrets": {name: _plain(value) for name, value in self.regrets().items()},
            "verified": {name: _plain(value) for name, value in self.verified().items()},
            "states": [asdict(state) for state in self.states],
        }


@dataclass(frozen=True)
class Question:
    """What is looked at: `states` attempts (None: all) in `stage` (empty: either), drawn by `seed`; chances over
    `draws` schedules; and in the first `verify` of them `kernels` kernels a picker are written and judged.

    `tasks`, with or without their suite, and `attempts`, an operator's counted from 0 as in the journal, leave only
    those to draw from.
    """

    states: int | None = 60
    stage: str = "draft"
    seed: int = 0
    draws: int = 4
    verify: int = 0
    kernels: int = 8
    tasks: tuple[str, ...] = ()
    attempts: tuple[int, ...] = ()

    def chosen(self, run: Path) -> set[int]:
        """The attempts of a run to look at, by their place in its journal."""
        journal = Journal.read(RunFolder(run).journal)
        found = [place for place, record in enumerate(journal) if self._asks(record)]
        unknown = set(self.tasks) - {name for record in journal for name in _names(record)}
        if unknown or not found:
            at = f" at {', '.join(sorted(unknown) or self.tasks)}" if self.tasks else ""
            numbered = f" numbered {', '.join(map(str, self.attempts))}" if self.attempts else ""
            known = ", ".join(dict.fromkeys(record["task"] for record in journal))
            stage = f" in the stage {self.stage!r}" if self.stage else ""
            raise KernelGymError(f"{run} has no attempts{at}{numbered}{stage}; its operators: {known or 'none'}")
        return set(generator(self.seed, "credit").permutation(found)[: self.states].tolist())

    def _asks(self, record: Record) -> bool:
        return (
            self.stage in ("", record["stage"])
            and (not self.tasks or any(name in self.tasks for name in _names(record)))
            and (not self.attempts or record["index"] in self.attempts)
        )


def _names(record: Record) -> tuple[str, str]:
    """An operator with and without its suite."""
    return record["task"], record["task"].rpartition("/")[2]


def examine(run: Path, question: Question, watch: Watch = lambda done, of: None) -> Report:
    """Play a run again and look at some of its attempts."""
    found: list[State] = []
    for visit in visits(run, question, watch):
        if visit.chosen:
            kernels = question.kernels if len(found) < question.verify else 0
            found.append(_state(visit.seen, visit.oracle, kernels, visit.verifier))
    return Report(load_config(run).agent, tuple(found))


# Playing a run again


@dataclass(frozen=True)
class Visit:
    """An attempt of a run that is played again, whether it is one to look at, and who knows what it might have been."""

    seen: Seen
    chosen: bool
    oracle: OracleAgent
    verifier: Callable[[], Any]


def visits(run: Path, question: Question, watch: Watch = lambda done, of: None) -> Iterator[Visit]:
    """The attempts of a run in their order, up to the last one to look at."""
    config = load_config(run)
    if make_agent(config).owns_loop:
        raise ConfigError(f"{config.agent!r} owns its loop and cannot be asked step by step")
    oracle = _oracle(config, question.draws)
    chosen, done = question.chosen(run), 0
    with Replay(run, config) as replay:
        for number, seen in enumerate(replay.attempts(oracle)):
            yield Visit(seen, number in chosen, oracle, replay.verifier)
            if number in chosen:
                done += 1
                watch(done, len(chosen))
            if done == len(chosen):
                return


@dataclass(frozen=True)
class Seen:
    """An attempt that was played again: what the agent saw at its first pick, what it thought, what came of it.

    `mask` has 1 for what could be picked.
    """

    info: Info
    mask: Vector
    worth: Sequence[float] | None
    attempt: Attempt

    @property
    def state(self) -> Info:
        """What was known when the context was picked, the start point chosen."""
        return dict(self.info) | {"start": self.attempt.start}


class Replay:
    """A run, attempt by attempt, from its journal; in a folder of its own, so that the run stays as it is."""

    def __init__(self, run: Path, config: RunConfig) -> None:
        self.run, source = run, RunFolder(run)
        given = {name: str(getattr(config, name)) for name in ("initial_memory", "initial_agent")}
        paths = {name: str(source.within(path).absolute()) for name, path in given.items() if path}
        self.config = config.model_copy(update=paths)
        self._stack = ExitStack()
        self._verifier: Any = None
        self._folder = RunFolder.open(Path(self._stack.enter_context(TemporaryDirectory())) / "run", self.config)
        for file in (source.journal, source.embeddings):
            if file.exists():
                shutil.copyfile(file, self._folder.path / file.name)

    def __enter__(self) -> Replay:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def verifier(self) -> Any:
        """A verifier for kernels that the run never saw; made when it is first asked for."""
        if self._verifier is None:
            self._verifier = factories.verifier(environment_options(self.config, self._folder))
            self._stack.callback(self._verifier.close)
        return self._verifier

    def attempts(self, oracle: OracleAgent) -> Iterator[Seen]:
        """The attempts in the order of the journal, to its end."""
        journal, tasks = Journal(self._folder.journal), operators(self.config, self._folder)
        self._stack.callback(journal.close)
        made = session_class(self.config)(self.config, self._folder, journal, tasks, lambda *_: None)
        session = self._stack.enter_context(made)
        agent, envs, first = session.agent(), session.vector(), dict[int, tuple[Info, Vector, Sequence[float] | None]]()
        with self._telling():
            observations, infos = envs.reset(seed=self.config.seed)
        while journal.replaying:
            actions = []
            for i in range(envs.num_envs):
                observation, info = view(observations, infos, i)
                oracle.remember_start_points(info)
                if not info["start_due"] and not info["picked"] and observation["action_mask"][:-1].any():
                    first[i] = info, observation["action_mask"].copy(), agent.candidate_values(observation, info)
                actions.append(agent.act(observation, info))
            with self._telling():
                observations, _, _, _, infos = envs.step(np.asarray(actions))
            for i in range(envs.num_envs):
                if (attempt := view({}, infos, i)[1].get("attempt")) is not None:
                    if self.config.learning:
                        agent.learn(attempt)
                    yield Seen(*first[i], attempt)

    @contextmanager
    def _telling(self) -> Iterator[None]:
        """What fails is told of the run, not of the folder it is played in."""
        try:
            with as_it_was():
                yield
        except Drift as drift:
            raise KernelGymError(
                f"{self.run} cannot be played again: {drift.what}; ask with what it was made with (provenance.json)"
            ) from drift


# Knowing what was picked


def _state(seen: Seen, oracle: OracleAgent, kernels: int, verifier: Callable[[], Any]) -> State:
    pool = {candidate.id: candidate for candidate in seen.info["candidates"]}
    info = seen.state
    shown = [pool[id].item for id in seen.attempt.context]
    others = {name: _items(kind(), seen) for name, kind in OTHERS.items()}
    contexts = {"nothing": [], **others, "agent": shown, "oracle": _items(oracle, seen)}
    chances = {name: oracle.success_chance(info, items) for name, items in contexts.items()}
    worth: Sequence[float | None] = seen.worth or [None] * len(pool)
    effects = []
    for candidate, value in zip(pool.values(), worth, strict=True):
        alone = oracle.success_chance(info, [candidate.item]) - chances["nothing"]
        rest = [item for item in shown if item.id != candidate.id]
        left_out = chances["agent"] - oracle.success_chance(info, rest) if len(rest) < len(shown) else None
        item = candidate.item
        effects.append(Effect(item.id, candidate.kind, item.title, item.feasible, alone, left_out, value))
    asked = ("nothing", "agent", "oracle") if kernels else ()
    verified = {name: _passing(info, contexts[name], oracle, kernels, verifier()) for name in asked}
    return State(info["task"], str(info["stage"]), seen.attempt.index, chances, verified, tuple(effects))


def _items(agent: Agent, seen: Seen) -> list[MemoryItem]:
    """What an agent would have shown in the same state."""
    return [one.item for one in picks(agent, seen.state, seen.mask)]


def picks(agent: Agent, info: Info, legal: Vector) -> list[Candidate]:
    """What an agent picks in a state where `legal` is the mask, by asking it again and again."""
    picked: list[int] = []
    while len(picked) < info["picks_left"]:
        mask = legal.copy()
        mask[picked] = 0.0
        now = dict(info) | {"picked": tuple(info["candidates"][slot].id for slot in picked)}
        action = agent.act({"action_mask": mask}, now)
        if action == len(legal) - 1:
            break
        picked.append(action)
    return [info["candidates"][slot] for slot in picked]


def _passing(info: Info, items: Sequence[MemoryItem], oracle: OracleAgent, kernels: int, verifier: Any) -> float:
    """The share of kernels, the same draws for every context, that the verifier finds feasible."""
    request = oracle.request(info, items)
    written = [
        oracle.author.write(request.task, request.context, request.start, generator("credit", info["task"], draw))
        for draw in range(kernels)
    ]
    verdicts = verifier.verify_all([(kernel, request.task) for kernel in written if kernel.source.strip()])
    if any(isinstance(verdict, Unjudged) for verdict in verdicts):
        raise KernelGymError("the verifier could not judge; run the same command again")
    return sum(bool(verdict.feasible) for verdict in verdicts) / kernels


def _oracle(config: RunConfig, draws: int) -> OracleAgent:
    """The picker that knows the run's author."""
    return OracleAgent(0, draws=draws, **OracleAgent.options_for(config.env))


def _plain(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else asdict(value)
