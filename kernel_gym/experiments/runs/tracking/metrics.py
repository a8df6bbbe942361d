"""The metrics that a run writes to TensorBoard, with their meanings. Plug-in agents add their own under `agent/`."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from kernel_gym.agents.support.item_numbers import ItemNumbers
from kernel_gym.config import EnvConfig
from kernel_gym.envs.attempt import Attempt

#: Scalars, written after every attempt; the step is the number of attempts so far. `<...>` stands for a name.
METRICS: dict[str, str] = {
    "solved/correct": "share of tasks with a feasible kernel",
    "solved/compiled": "share of tasks with a kernel that compiled",
    "reward/mean": "mean reward of the attempts so far",
    "reward/draft": "reward of a drafting attempt: +1 if feasible, otherwise -1",
    "reward/refine": "reward of a refining attempt: tanh of log(best so far / latency), -1 if not feasible",
    "latency/<task>": "lowest latency of a task so far, in microseconds",
    "speedup/first_draft": "median over solved tasks of first feasible latency / best latency",
    "speedup/oracle": "median over solved tasks of the oracle's latency / best latency; on the simulator",
    "speedup/floor": "the same with the device's floor: a launch, and tensors or multiply-adds at the highest rate",
    "rate/compiled": "share of attempts so far that compiled",
    "rate/correct": "share of attempts so far that were feasible",
    "stage/<stage>/compiled": "as `rate/compiled`, for drafting or for refining attempts",
    "stage/<stage>/correct": "as `rate/correct`, likewise",
    "stage/<stage>/reward": "as `reward/mean`, likewise",
    "category/<category>/solved": "tasks of a category with a feasible kernel / those attempted",
    "category/<category>/reward": "mean reward of the attempts at tasks of a category",
    "category/<category>/compiled": "share of those attempts that compiled",
    "category/<category>/correct": "share of those attempts that were feasible",
    "category/<category>/speedup": "as `speedup/first_draft`, over the solved tasks of a category",
    "category/<category>/oracle": "as `speedup/oracle`, likewise",
    "category/<category>/floor": "as `speedup/floor`, likewise",
    "memory/items": "number of memories that attempts have produced",
    "memory/shown": "share of those that were shown in some attempt",
    "<part>/tokens_in": "tokens sent to a model; only with a model as author, embedder or inspection",
    "<part>/tokens_out": "tokens that the model answered with",
    "<part>/dollars": "cost of these tokens at the configured prices",
    "agent/explored": "`value`: share of picks so far that were drawn at random",
    "agent/untried": "`value`: share of picks so far that went to an item without a value",
    "agent/valued": "`value`: share of the candidates offered so far that had a value in their stage",
    "agent/error": "`value`, `context-value`: distance between the reward and the expected reward of the items shown",
    "agent/items": "`value`, `context-value`: number of values, by item and stage",
    "agent/r2_mean": "`value`: mean of the refining rewards so far, which normalises r2",
    "agent/r2_sigma": "`value`: standard deviation of the refining rewards so far, likewise",
    "agent/predicted": "`context-value`: expected reward of the context, before the attempt",
    "agent/doubt": "`context-value`: mean standard deviation of its weights in the stage; it explores by these",
    "agent/rllib/<name>": "`ppo`, `dqn`: what RLlib reports of a batch: losses, entropy, returns of episodes",
    "agent/sb3/<name>": "`maskable-ppo`: stable-baselines3's metrics of a batch",
    "round/<figure>": "figures of each round of a run with several rounds; the step is the round",
    "hparam/<figure>": "figures of the complete run, with its settings",
}
#: Scalars of the run that a comparison or a study adds for each agent, over its seeds.
OVER_SEEDS: dict[str, str] = {
    "mean/solved": "share of tasks with a feasible kernel, mean over seeds",
    "mean/reward": "mean reward of the attempts number t at every task, likewise",
    "mean/speedup": "median over solved tasks of first feasible latency / best latency, likewise",
    "mean/<curve>/low": "lower end of the 95% interval of `mean/<curve>`",
    "mean/<curve>/high": "upper end of that interval",
}
#: What is written besides scalars.
OTHERS: dict[str, str] = {
    "values/<stage>": "histogram of the agent's values by item; for `context-value`, what an item adds to log-odds",
    "figure/attempts": "image, ten per run: every attempt at every task, by how far it came",
    "figure/tiers": "image: how far tasks came, by category",
    "figure/solved": "image: shares of tasks with a compiled and with a correct kernel over attempts",
    "kernel/<task>": "text: the fastest kernel of a task, once the run is complete",
    "custom_scalars__config__": "the charts of the tab *Custom Scalars*",
}


def documented(name: str) -> bool:
    """Return whether a name is in one of the tables."""
    patterns = (re.sub(r"<\w+>", r".+", entry) for entry in (*METRICS, *OVER_SEEDS, *OTHERS))
    return any(re.fullmatch(pattern, name) for pattern in patterns)


def table() -> str:
    """Return every metric with its meaning as a Markdown table."""
    entries = METRICS | OVER_SEEDS | OTHERS
    rows = [f"| `{name}` | {meaning} |" for name, meaning in entries.items()]
    return "\n".join(["| metric | meaning |", "|---|---|", *rows])


class Mean:
    """A running mean; for truth values, the share of true ones."""

    def __init__(self) -> None:
        self.count = 0
        self.total = 0.0

    def add(self, value: float) -> float:
        """Add a value; return the mean so far."""
        self.count += 1
        self.total += value
        return self.total / self.count


class Meter:
    """The running figures of a run.

    With fresh memory the items of each episode are counted separately. With stages=draft no kernel is refined, so there
    is no speedup.
    """

    def __init__(self, tasks: int, env: EnvConfig) -> None:
        self.tasks = tasks
        self.attempts = 0
        self._means: dict[str, Mean] = defaultdict(Mean)
        self._compiled: set[str] = set()
        self._latencies: dict[str, list[float]] = defaultdict(list)
        self._categories: dict[str, set[str]] = defaultdict(set)
        self._produced: set[int] = set()
        self._shown: set[int] = set()
        self._numbers = ItemNumbers(0 if env.memory == "fresh" else None)
        self._refines = env.stages != "draft"

    @property
    def solved(self) -> int:
        """The number of tasks with a feasible kernel."""
        return len(self._latencies)

    def add(self, attempt: Attempt) -> Mapping[str, float]:
        """Add an attempt; return all figures that it changes."""
        self.attempts += 1
        if attempt.verdict.compiled:
            self._compiled.add(attempt.task)
        if attempt.verdict.latency_us is not None:
            self._latencies[attempt.task].append(attempt.verdict.latency_us)
        return {
            f"reward/{attempt.stage}": attempt.reward,
            "reward/mean": self._means["reward/mean"].add(attempt.reward),
            **self._rates(attempt),
            "solved/compiled": len(self._compiled) / self.tasks,
            "solved/correct": self.solved / self.tasks,
            **self._by_category(attempt),
            **self._memory(attempt),
            **self._latency(attempt),
        }

    def _rates(self, attempt: Attempt) -> dict[str, float]:
        verdict = attempt.verdict
        shares: dict[str, float] = {"compiled": bool(verdict.compiled), "correct": verdict.feasible}
        new = {f"rate/{name}": value for name, value in shares.items()}
        for scope in (f"stage/{attempt.stage}", f"category/{category(attempt)}"):
            new |= {f"{scope}/{name}": value for name, value in shares.items()} | {f"{scope}/reward": attempt.reward}
        return {key: self._means[key].add(value) for key, value in new.items()}

    def _by_category(self, attempt: Attempt) -> dict[str, float]:
        name = category(attempt)
        self._categories[name].add(attempt.task)
        attempted = self._categories[name]
        solved = [self._latencies[task] for task in attempted if task in self._latencies]
        figures = {f"category/{name}/solved": len(solved) / len(attempted)}
        return figures | ({f"category/{name}/speedup": _speedup(solved)} if solved and self._refines else {})

    def _memory(self, attempt: Attempt) -> dict[str, float]:
        if attempt.index == 0:
            self._numbers.begin_episode(attempt.task)
        shown = attempt.context if attempt.start is None else (attempt.start, *attempt.context)
        self._shown.update(self._numbers.number(attempt.task, id) for id in shown)
        self._produced.update(self._numbers.number(attempt.task, id) for id in attempt.produced)
        both, all_ = len(self._produced & self._shown), len(self._produced)
        return {"memory/items": all_, "memory/shown": both / max(1, all_)}

    def _latency(self, attempt: Attempt) -> dict[str, float]:
        best = {f"latency/{attempt.task}": min(own)} if (own := self._latencies.get(attempt.task)) else {}
        if not self._latencies or not self._refines:
            return best
        return best | {"speedup/first_draft": _speedup(self._latencies.values())}


def category(attempt: Attempt) -> str:
    """Return the category that an attempt counts for."""
    return attempt.category or "other"


def _speedup(histories: Iterable[Sequence[float]]) -> float:
    """Return the median of first / best latency."""
    return median(history[0] / min(history) for history in histories)
