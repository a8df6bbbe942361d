"""Compare the forecast environment with live verdicts: outcomes, latencies and the ranking of agents.

Attempts of the forecast environment with random picks are made over all tasks and sampled authors. Their kernels are
judged, and each verdict is compared with its forecast. Agents then work on the same tasks in both environments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.stats import binomtest, kendalltau

from kernel_gym import plugins, suites
from kernel_gym.agents.contract import Agent
from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.forecast.environment import ForecastVectorEnv
from kernel_gym.envs.vector import KernelSynthesisVectorEnv, view
from kernel_gym.experiments.runs.agent_actions import AgentActions
from kernel_gym.experiments.runs.recording_env import finished_attempts
from kernel_gym.kernel import Kernel
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Incorrect, Unjudged, Verdict
from kernel_gym.verifier.contract import KernelVerifier

#: Kernels in a piece, and the tasks that they are for.
PIECE, TASKS = 50, 25
#: The attempts of an episode whose kernels are judged.
ATTEMPTS = (2, 6)
OUTCOMES = ("uncompilable", "incorrect", "feasible")


@dataclass(frozen=True)
class Comparison:
    """The forecast and the live verdict of one kernel."""

    task: str
    author: str
    stage: str
    forecast: str
    live: str
    forecast_cause: str = ""
    live_cause: str = ""
    forecast_us: float | None = None
    live_us: float | None = None
    mistakes: tuple[str, ...] = ()
    feedback: str = ""


@dataclass(frozen=True)
class Standing:
    """How an agent did on some tasks in one environment: share of tasks solved, mean reward, mean log speedup."""

    agent: str
    seed: int
    live: bool
    solved: float
    reward: float
    speedup: float


def author_of(piece: int) -> str:
    """Return the author of a piece: the three profiles and draws around them in turn."""
    base = ("middle", "strong", "weak")[piece % 3]
    return base if piece < 3 else f"{base}~{piece}"


def forecast_attempts(piece: int, tasks: Sequence[Task], measurements: str = "ascendc") -> list[Attempt]:
    """Return the attempts of a piece; pieces go through the tasks in a fixed random order, again and again."""
    order = np.random.default_rng(0).permutation(len(tasks))
    count = min(TASKS, len(tasks))
    chosen = [tasks[order[(piece * count + n) % len(tasks)]] for n in range(count)]
    author = {"profile": author_of(piece)}
    envs = ForecastVectorEnv(count, measurements, tasks=chosen, budget=max(ATTEMPTS), author_options=author)
    rng = np.random.default_rng(piece)
    observations, _ = envs.reset(seed=piece)
    attempts: list[Attempt] = []
    done = 0
    while done < max(ATTEMPTS):
        mask = observations["action_mask"]
        observations, *_, infos = envs.step((rng.random(mask.shape) * mask).argmax(axis=1))
        if "attempt" in infos:
            done += 1
            attempts += list(infos["attempt"]) if done in ATTEMPTS else []
    return attempts


def compare_pieces(
    pieces: Mapping[int, Sequence[Attempt]], verify_all: Callable[..., Sequence[Verdict]]
) -> dict[int, list[Comparison]]:
    """Have the kernels of attempts judged and return the comparisons; kernels that stay unjudged are left out.

    Kernels of several pieces are judged together: a slow one holds up fewer others.
    """
    asked = [(piece, attempt) for piece, attempts in pieces.items() for attempt in attempts]
    pairs = [(Kernel(a.kernel.source, trusted=True), suites.find_task(a.task)) for _, a in asked]
    comparisons: dict[int, list[Comparison]] = {piece: [] for piece in pieces}
    for (piece, attempt), verdict in zip(asked, verify_all(pairs), strict=True):
        if not isinstance(verdict, Unjudged):
            comparisons[piece].append(_comparison(author_of(piece), attempt, verdict))
    return comparisons


def _comparison(author: str, attempt: Attempt, live: Verdict) -> Comparison:
    forecast, wrong = attempt.verdict, attempt.kernel.variant.wrong  # type: ignore[attr-defined]
    return Comparison(
        attempt.task,
        author,
        attempt.stage.value,
        forecast.outcome,
        live.outcome,
        _cause(forecast),
        _cause(live),
        forecast.latency_us,
        live.latency_us,
        tuple(f"{idiom}:{name}" for idiom, name in wrong.items()),
        "" if forecast.outcome == live.outcome else live.feedback[:200],
    )


def _cause(verdict: Verdict) -> str:
    return verdict.cause if isinstance(verdict, Incorrect) else ""


def standing(
    agent: str,
    seed: int,
    tasks: Sequence[str],
    budget: int,
    verifier: KernelVerifier | None,
    profile: str = "middle",
    measurements: str = "ascendc",
) -> Standing:
    """Let an agent work on tasks in lock-step; live with a verifier, in the forecast environment without."""
    options: dict[str, Any] = {"tasks": list(tasks), "budget": budget, "author_options": {"profile": profile}}
    envs: gym.vector.VectorEnv[Any, Any, Any]
    if verifier is None:
        envs = ForecastVectorEnv(len(tasks), measurements, **options)
    else:
        envs = KernelSynthesisVectorEnv(len(tasks), verifier=verifier, **options)
    try:
        attempts = _attempts(envs, plugins.load("kernel_gym.agents", agent)(seed=seed), budget, seed)
    finally:
        envs.close()
    latencies = [[a.verdict.latency_us for a in attempts if a.task == task and a.verdict.feasible] for task in tasks]
    solved = [np.array(some, np.float64) for some in latencies if some]
    speedups = [float(np.log(some[0] / some.min())) for some in solved]
    reward = float(np.mean([attempt.reward for attempt in attempts]))
    speedup = float(np.mean(speedups)) if speedups else 0.0
    return Standing(agent, seed, verifier is not None, len(solved) / len(tasks), reward, speedup)


def _attempts(envs: gym.vector.VectorEnv[Any, Any, Any], agent: Agent, rounds: int, seed: int) -> list[Attempt]:
    """Return the attempts of an agent that acts and learns in lock-step, round by round."""
    agent_actions, attempts = AgentActions(agent, type(agent).__name__), list[Attempt]()
    observations, infos = envs.reset(seed=seed)
    while rounds:
        views = (view(observations, infos, i) for i in range(envs.num_envs))
        actions = [agent_actions.ask(observation, info, len(attempts) + 1) for observation, info in views]
        observations, *_, infos = envs.step(np.array(actions))
        finished = [attempt for _, attempt in finished_attempts(infos, envs.num_envs)]
        for attempt in finished:
            agent.learn(attempt)
        attempts += finished
        rounds -= bool(finished)
    return attempts


# Figures


@dataclass(frozen=True)
class Share:
    """A share with its 95% Wilson interval."""

    count: int
    of: int
    low: float
    high: float

    def __str__(self) -> str:
        if not self.of:
            return "none"
        return f"{100 * self.count / self.of:.1f}% [{100 * self.low:.1f}, {100 * self.high:.1f}] of {self.of}"


def share(flags: Iterable[bool]) -> Share:
    """Return the share of true flags."""
    values = list(flags)
    if not values:
        return Share(0, 0, 0.0, 1.0)
    interval = binomtest(sum(values), len(values)).proportion_ci(method="wilson")
    return Share(sum(values), len(values), float(interval.low), float(interval.high))


def figures(comparisons: Sequence[Comparison], standings: Sequence[Standing]) -> dict[str, Any]:
    """Return all figures of the comparison as plain data."""
    both = [c for c in comparisons if c.forecast_us is not None and c.live_us is not None]
    return {
        "kernels": len(comparisons),
        "tasks": len({c.task for c in comparisons}),
        "authors": len({c.author for c in comparisons}),
        "agreement": asdict(share(c.forecast == c.live for c in comparisons)),
        "forecast": {o: asdict(share(c.live == o for c in comparisons if c.forecast == o)) for o in OUTCOMES},
        "live": {o: asdict(share(c.forecast == o for c in comparisons if c.live == o)) for o in OUTCOMES},
        "cause": asdict(
            share(c.forecast_cause == c.live_cause for c in comparisons if c.forecast == c.live == "incorrect")
        ),
        "latency": latency_figures(both),
        "wrong": wrong_mistakes(comparisons),
        "agents": [asdict(standing) for standing in standings],
        "ranking": ranking(standings),
    }


def latency_figures(both: Sequence[Comparison]) -> dict[str, float]:
    """Return Kendall's tau within tasks, over all pairs of kernels of one task, and the errors of the latencies."""
    ordered = [
        np.sign(np.log(one.forecast_us / other.forecast_us) * np.log(one.live_us / other.live_us))  # type: ignore[operator]
        for task in sorted({c.task for c in both})
        for one, other in combinations([c for c in both if c.task == task], 2)
        if abs(np.log(one.live_us / other.live_us)) > 1e-6  # type: ignore[operator]
    ]
    errors = [abs(float(np.log(c.forecast_us / c.live_us))) for c in both]  # type: ignore[operator]
    return {
        "kernels": len(both),
        "pairs": len(ordered),
        "tau_within_tasks": round(float(np.mean(ordered)), 4) if ordered else 0.0,
        "median_factor": round(float(np.exp(np.median(errors))), 4) if errors else 1.0,
        "p90_factor": round(float(np.exp(np.quantile(errors, 0.9))), 4) if errors else 1.0,
    }


def wrong_mistakes(comparisons: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Return the single mistakes whose kernels most often end otherwise than forecast, and how."""
    rows: dict[tuple[str, str, str], int] = {}
    for c in comparisons:
        if c.forecast != c.live:
            about = c.mistakes[0] if len(c.mistakes) == 1 else "no mistake" if not c.mistakes else "several mistakes"
            rows[about, c.forecast, c.live] = rows.get((about, c.forecast, c.live), 0) + 1
    ordered = sorted(rows.items(), key=lambda row: (-row[1], row[0]))
    return [{"mistake": a, "forecast": f, "live": live, "kernels": n} for (a, f, live), n in ordered[:12]]


def ranking(standings: Sequence[Standing]) -> dict[str, Any]:
    """Return the agents by mean reward in both environments, and Kendall's tau of the two orders."""
    means = {
        live: {
            agent: float(np.mean([s.reward for s in standings if s.agent == agent and s.live is live]))
            for agent in sorted({s.agent for s in standings if s.live is live})
        }
        for live in (False, True)
    }
    agents = sorted(set(means[False]) & set(means[True]))
    tau = 1.0
    if len(agents) > 1:
        tau = float(kendalltau([means[False][a] for a in agents], [means[True][a] for a in agents]).statistic)
    return {
        "forecast": sorted(agents, key=lambda agent: -means[False][agent]),
        "live": sorted(agents, key=lambda agent: -means[True][agent]),
        "tau": round(tau, 4) if tau == tau else 0.0,
    }


def page(data: dict[str, Any], command: str, provenance: dict[str, Any]) -> str:
    """Return the figures as a Markdown page."""

    def told(row: dict[str, Any]) -> str:
        return str(Share(**row))

    latency, ranked = data["latency"], data["ranking"]
    lines = [
        "# Forecast and live verdicts",
        "",
        f"{data['kernels']:,} kernels of {data['tasks']} tasks by {data['authors']} authors, made in the forecast "
        "environment with random picks, were judged. Shares have 95% Wilson intervals.",
        "",
        f"Command: `{command}`. Measurements: `{_shortened(provenance.get('command', 'unknown'))}` at commit "
        f"`{str(provenance.get('commit', 'unknown'))[:12]}`, {provenance.get('tasks', 0)} tasks.",
        "",
        f"The outcome is that of the verifier for {told(data['agreement'])}.",
        "",
        "| outcome | of those forecast, live is the same | of those live, forecast was the same |",
        "|---|---|---|",
        *(f"| {o} | {told(data['forecast'][o])} | {told(data['live'][o])} |" for o in OUTCOMES),
        "",
        f"Of kernels that are incorrect in both, the cause is the same for {told(data['cause'])}.",
        "",
        "## Latency",
        "",
        "| kernels feasible in both | pairs within a task | Kendall's tau within tasks | median factor | 90% within |",
        "|---|---|---|---|---|",
        f"| {latency['kernels']:,} | {latency['pairs']:,} | {latency['tau_within_tasks']:.3f} | "
        f"{latency['median_factor']:.2f} | {latency['p90_factor']:.2f} |",
        "",
        "## Where the forecast is wrong",
        "",
        "| the kernel has | forecast | live | kernels |",
        "|---|---|---|---|",
        *(f"| {row['mistake']} | {row['forecast']} | {row['live']} | {row['kernels']} |" for row in data["wrong"]),
    ]
    if data["agents"]:
        lines += ["", "## Ranking of agents", "", *_agent_table(data["agents"])]
        lines += ["", f"By mean reward: forecast {' > '.join(ranked['forecast'])}; live {' > '.join(ranked['live'])}."]
        lines += [f"Kendall's tau of the two orders is {ranked['tau']:.2f}."]
    return "\n".join(lines) + "\n"


def _shortened(command: str, words: int = 12) -> str:
    """Return a command without most of its names if it has many."""
    parts = command.split()
    return command if len(parts) <= words else " ".join([*parts[: words // 2], "...", *parts[-2:]])


def _agent_table(rows: Sequence[dict[str, Any]]) -> list[str]:
    lines = ["| agent | solved: forecast | live | mean reward: forecast | live |", "|---|---|---|---|---|"]
    for agent in sorted({row["agent"] for row in rows}):
        cells = [
            np.mean([row[key] for row in rows if row["agent"] == agent and row["live"] is live] or [np.nan])
            for key in ("solved", "reward")
            for live in (False, True)
        ]
        lines.append(f"| {agent} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |")
    return lines
