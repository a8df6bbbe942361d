"""Render the state of an episode as text, for `render()`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.attempt_rules import Progress
from kernel_gym.envs.episode import AttemptResult, Episode
from kernel_gym.envs.pool import Candidate
from kernel_gym.errors import ConfigError
from kernel_gym.memory.item import Stage
from kernel_gym.tasks.task import Task


@dataclass(frozen=True)
class EpisodeState:
    """What is shown of an episode of the forecast environment; an `Episode` has the same attributes."""

    task: Task
    progress: Progress
    budget: int
    over: bool
    start_due: bool
    picks_left: int
    pool: Iterable[Candidate]
    picked: tuple[int, ...]
    attempts: Sequence[Attempt]
    draft_due: bool = False


def known_mode(mode: str | None, metadata: Mapping[str, Any]) -> str | None:
    """Return a `render_mode` if the environment has it, else raise a ConfigError."""
    if mode is not None and mode not in metadata["render_modes"]:
        raise ConfigError(f"render_mode is one of {', '.join(metadata['render_modes'])}, not {mode!r}")
    return mode


def frame(episode: Episode | EpisodeState, result: AttemptResult | None) -> str:
    """Return task, progress, the verdict of an attempt that has just ended, and the pool as text."""
    progress = episode.progress
    best = "none" if progress.best_us is None else f"{progress.best_us:.2f} us"
    if progress.best_us and progress.first_us:
        best += f", {progress.first_us / progress.best_us:.2f} x as fast as the first"
    lines = [f"{episode.task.id}  {progress.stage}  attempt {progress.used}/{episode.budget}  best {best}"]
    if result is not None:
        lines.append(_outcome(result))
    if episode.over:
        return "\n".join([*lines, "  the episode is over"])
    lines.append(f"  {due(episode)}:")
    for slot, candidate in enumerate(episode.pool):
        mark = "*" if slot in episode.picked else " "
        quality = "feasible" if candidate.item.feasible else ""
        line = f" {mark}{slot:>3} {candidate.kind:<10} {candidate.similarity:5.2f} {quality:<8} {candidate.item.title}"
        lines.append(line.rstrip()[:120])
    return "\n".join(lines)


def due(episode: Episode | EpisodeState) -> str:
    """Return what an open attempt waits for, in words."""
    if episode.draft_due:
        return "choose the draft to verify"
    if episode.start_due:
        refining = episode.progress.stage is Stage.REFINE
        return "choose a start point" if refining else "mend the last attempt, or draft anew"
    return f"{episode.picks_left} pick{'' if episode.picks_left == 1 else 's'} left"


def _outcome(result: AttemptResult) -> str:
    if result.attempt is None:
        return f"  not judged: {result.failure}"
    verdict = result.attempt.verdict
    words = verdict.feedback.strip().splitlines() or [""]
    return f"  {verdict.outcome}, reward {result.reward:+.2f}: {words[0]}"[:120]
