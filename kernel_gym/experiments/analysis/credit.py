"""Compute the true effects of memories, and how well an agent's values predict them.

A run is replayed from its journal. In some of its attempts, the states, everything is known: the pool, the agent's
values of the candidates, and the context that it picked. The simulated author is a program, so the effect of a memory
on the chance of a good kernel can be computed, with the same random draws with and without it:

* *alone*: what a candidate adds to an empty context,
* *left out*: what the context that was shown loses without the candidate.

Values are scored by their rank correlation with these effects, contexts by their distance to the one that the oracle
would have shown.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from scipy.stats import spearmanr

from kernel_gym.agents.contract import Agent, Info
from kernel_gym.agents.oracle import OracleAgent
from kernel_gym.agents.similarity import SimilarityAgent
from kernel_gym.agents.similarity_diverse import SimilarityDiverseAgent
from kernel_gym.agents.similarity_feasible import SimilarityFeasibleAgent
from kernel_gym.config import RunConfig
from kernel_gym.envs.observation import Vector
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.seeding import generator
from kernel_gym.errors import ConfigError, KernelGymError
from kernel_gym.experiments.analysis.replay import Replay, ReplayedAttempt
from kernel_gym.experiments.runs.journal import Journal, Record
from kernel_gym.experiments.runs.run_folder import RunFolder, load_config
from kernel_gym.experiments.runs.run_plan import make_agent
from kernel_gym.experiments.statistics import Interval, interval
from kernel_gym.memory.item import MemoryItem
from kernel_gym.verdict import Unjudged

Watch = Callable[[int, int], None]
"""Called after every state with: states examined, states in all."""

#: Agents whose contexts are computed in the same states.
HEURISTICS: dict[str, type[Agent]] = {
    "similarity": SimilarityAgent,
    "similarity-feasible": SimilarityFeasibleAgent,
    "similarity-diverse": SimilarityDiverseAgent,
}


@dataclass(frozen=True)
class CreditSettings:
    """Which attempts of a run are examined, and how closely.

    Attributes:
        states: The number of attempts to examine; None for all.
        stage: The stage to examine; empty for both.
        seed: The seed that attempts are drawn with.
        draws: The number of author schedules that chances are averaged over.
        verify: In how many states kernels are written and verified as well.
        kernels: The number of kernels for each context in these states.
        tasks: The tasks to draw from, with or without their suite; empty for all.
        attempts: The attempts of a task to draw from, counted from 0 as in the journal; empty for all.
    """

    states: int | None = 60
    stage: str = "draft"
    seed: int = 0
    draws: int = 4
    verify: int = 0
    kernels: int = 8
    tasks: tuple[str, ...] = ()
    attempts: tuple[int, ...] = ()

    def select(self, run: Path) -> set[int]:
        """Return the attempts of a run to examine, by their index in its journal."""
        journal = Journal.read(RunFolder(run).journal)
        matching = [index for index, record in enumerate(journal) if self._matches(record)]
        unknown = set(self.tasks) - {name for record in journal for name in _task_names(record)}
        if unknown or not matching:
            at = f" at {', '.join(sorted(unknown) or self.tasks)}" if self.tasks else ""
            numbered = f" numbered {', '.join(map(str, self.attempts))}" if self.attempts else ""
            tasks = ", ".join(dict.fromkeys(record["task"] for record in journal))
            stage = f" in the stage {self.stage!r}" if self.stage else ""
            raise KernelGymError(f"{run} has no attempts{at}{numbered}{stage}; its tasks: {tasks or 'none'}")
        return set(generator(self.seed, "credit").permutation(matching)[: self.states].tolist())

    def _matches(self, record: Record) -> bool:
        return (
            self.stage in ("", record["stage"])
            and (not self.tasks or any(name in self.tasks for name in _task_names(record)))
            and (not self.attempts or record["index"] in self.attempts)
        )


def _task_names(record: Record) -> tuple[str, str]:
    """Return the task's id with and without its suite."""
    return record["task"], record["task"].rpartition("/")[2]


@dataclass(frozen=True)
class Effect:
    """How much one candidate changes the chance of a good kernel.

    `alone` is the gain of an empty context by adding it, `left_out` the loss of the context shown by leaving it out;
    None if it is not in it. `value` is the agent's value of the candidate, None if it has none.
    """

    item: int
    kind: str
    title: str
    feasible: bool
    alone: float
    left_out: float | None
    value: float | None


@dataclass(frozen=True)
class State:
    """An examined attempt: the chance of a good kernel for each context, and the effect of each candidate.

    `chances` are the author's own. `verified` are the shares of feasible kernels, written with the same draws for each
    context; empty if no kernels were verified.
    """

    task: str
    stage: str
    attempt: int
    chances: Mapping[str, float]
    verified: Mapping[str, float]
    effects: tuple[Effect, ...]

    def correlation(self, name: str) -> float | None:
        """Return the rank correlation of the agent's values with an effect, `alone` or `left_out`.

        It is None with fewer than three pairs or without variation.
        """
        effects = [(effect.value, getattr(effect, name)) for effect in self.effects]
        pairs = [(value, effect) for value, effect in effects if value is not None and effect is not None]
        if len(pairs) < 3 or any(len(set(column)) < 2 for column in zip(*pairs, strict=True)):
            return None
        return float(spearmanr(*zip(*pairs, strict=True)).statistic)


@dataclass(frozen=True)
class CreditReport:
    """The examined states of a run, and their means."""

    agent: str
    states: tuple[State, ...]

    def chances(self) -> dict[str, Interval | None]:
        """Return the mean chance of a good kernel for each context."""
        names = self.states[0].chances if self.states else ()
        return {name: interval([state.chances[name] for state in self.states]) for name in names}

    def verified(self) -> dict[str, Interval | None]:
        """Return the mean share of feasible kernels for each context, over the states with verified kernels."""
        shares = [state.verified for state in self.states if state.verified]
        return {name: interval([state[name] for state in shares]) for name in (shares[0] if shares else ())}

    def regrets(self) -> dict[str, Interval | None]:
        """Return how far each context's chance is below the oracle's, on average."""
        names = [name for name in (self.states[0].chances if self.states else ()) if name != "oracle"]
        return {
            name: interval([state.chances["oracle"] - state.chances[name] for state in self.states]) for name in names
        }

    def correlation(self, name: str) -> tuple[Interval | None, int]:
        """Return the mean rank correlation of values and effects over the states that have one, and their number."""
        correlations = [value for state in self.states if (value := state.correlation(name)) is not None]
        return interval(correlations), len(correlations)

    def to_json(self) -> dict[str, Any]:
        """Return everything as plain data."""
        return {
            "agent": self.agent,
            "correlation": {name: _plain(self.correlation(name)[0]) for name in ("alone", "left_out")},
            "chances": {name: _plain(value) for name, value in self.chances().items()},
            "regrets": {name: _plain(value) for name, value in self.regrets().items()},
            "verified": {name: _plain(value) for name, value in self.verified().items()},
            "states": [asdict(state) for state in self.states],
        }


def _plain(value: Interval | None) -> dict[str, float] | None:
    return None if value is None else asdict(value)


def examine(run: Path, settings: CreditSettings, watch: Watch = lambda done, total: None) -> CreditReport:
    """Replay a run and compute the true effects of the candidates in some of its attempts.

    Args:
        run: The folder of a run with a simulated author.
        settings: Which attempts are examined, and how closely.
        watch: Called after every state with the states examined and the states in all.

    Returns:
        The states with their effects.

    Raises:
        ConfigError: The run's agent owns its training loop.
        KernelGymError: The run has no such attempts, or cannot be replayed.
    """
    states: list[State] = []
    for examined in examined_attempts(run, settings, watch):
        if examined.selected:
            kernels = settings.kernels if len(states) < settings.verify else 0
            states.append(_state(examined, kernels))
    return CreditReport(load_config(run).agent, tuple(states))


@dataclass(frozen=True)
class ExaminedAttempt:
    """A replayed attempt, whether it was selected, and the means to examine it."""

    replayed: ReplayedAttempt
    selected: bool
    oracle: OracleAgent
    verifier: Callable[[], Any]


def examined_attempts(
    run: Path, settings: CreditSettings, watch: Watch = lambda done, total: None
) -> Iterator[ExaminedAttempt]:
    """Replay a run and yield its attempts in order, up to the last selected one."""
    config = load_config(run)
    if make_agent(config).owns_loop:
        raise ConfigError(f"{config.agent!r} owns its training loop and cannot be replayed step by step")
    oracle = _oracle(config, settings.draws)
    selected, done = settings.select(run), 0
    with Replay(run, config) as replay:
        for index, replayed in enumerate(replay.attempts(oracle)):
            yield ExaminedAttempt(replayed, index in selected, oracle, replay.verifier)
            if index in selected:
                done += 1
                watch(done, len(selected))
            if done == len(selected):
                return


def _oracle(config: RunConfig, draws: int) -> OracleAgent:
    """Return the oracle of the run's author."""
    return OracleAgent(0, draws=draws, **OracleAgent.options_for(config.env))


def _state(examined: ExaminedAttempt, kernels: int) -> State:
    replayed, oracle = examined.replayed, examined.oracle
    pool = {candidate.id: candidate for candidate in replayed.info["candidates"]}
    info = replayed.state
    shown = [pool[id].item for id in replayed.attempt.context]
    heuristics = {name: _items(kind(), replayed) for name, kind in HEURISTICS.items()}
    contexts = {"nothing": [], **heuristics, "agent": shown, "oracle": _items(oracle, replayed)}
    chances = {name: oracle.success_chance(info, items) for name, items in contexts.items()}
    values: Sequence[float | None] = replayed.values or [None] * len(pool)
    effects = []
    for candidate, value in zip(pool.values(), values, strict=True):
        alone = oracle.success_chance(info, [candidate.item]) - chances["nothing"]
        others = [item for item in shown if item.id != candidate.id]
        left_out = chances["agent"] - oracle.success_chance(info, others) if len(others) < len(shown) else None
        item = candidate.item
        effects.append(Effect(item.id, candidate.kind, item.title, item.feasible, alone, left_out, value))
    compared = ("nothing", "agent", "oracle") if kernels else ()
    verified = {name: _feasible_share(examined, contexts[name], kernels) for name in compared}
    return State(info["task"], str(info["stage"]), replayed.attempt.index, chances, verified, tuple(effects))


def _items(agent: Agent, replayed: ReplayedAttempt) -> list[MemoryItem]:
    """Return the context that an agent would have picked in the same state."""
    return [candidate.item for candidate in pick_context(agent, replayed.state, replayed.mask)]


def pick_context(agent: Agent, info: Info, legal: Vector) -> list[Candidate]:
    """Return the candidates that an agent picks one after another in a state; `legal` is the action mask."""
    picked: list[int] = []
    while len(picked) < info["picks_left"]:
        mask = legal.copy()
        mask[picked] = 0.0
        current = dict(info) | {"picked": tuple(info["candidates"][slot].id for slot in picked)}
        action = agent.act({"action_mask": mask}, current)
        if action == len(legal) - 1:
            break
        picked.append(action)
    return [info["candidates"][slot] for slot in picked]


def _feasible_share(examined: ExaminedAttempt, items: Sequence[MemoryItem], kernels: int) -> float:
    """Return the share of feasible kernels, written with the same draws for every context."""
    info, oracle = examined.replayed.state, examined.oracle
    request = oracle.request(info, items)
    written = [
        oracle.author.write(request.task, request.context, request.start, generator("credit", info["task"], draw))
        for draw in range(kernels)
    ]
    pairs = [(kernel, request.task) for kernel in written if kernel.source.strip()]
    verdicts = examined.verifier().verify_all(pairs)
    if any(isinstance(verdict, Unjudged) for verdict in verdicts):
        raise KernelGymError("a kernel could not be verified; run the same command again")
    return sum(bool(verdict.feasible) for verdict in verdicts) / kernels
