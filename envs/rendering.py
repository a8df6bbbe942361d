"""The state of a workbench in words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from kernel_gym.envs.episode import AttemptResult, Episode
from kernel_gym.errors import ConfigError


def known_mode(mode: str | None, metadata: Mapping[str, Any]) -> str | None:
    """A `render_mode`, if it is one of an environment's."""
    if mode is not None and mode not in metadata["render_modes"]:
        raise ConfigError(f"render_mode is one of {', '.join(metadata['render_modes'])}, not {mode!r}")
    return mode


def frame(bench: Episode, settled: AttemptResult | None) -> str:
    """Task, progress, the verdict of an attempt that was just settled, and the pool."""
    best = "none" if bench.best_us is None else f"{bench.best_us:.2f} us"
    lines = [f"{bench.task.id}  {bench.stage}  attempt {bench.used}/{bench.budget}  best {best}"]
    if settled is not None:
        lines.append(_outcome(settled))
    if bench.over:
        return "\n".join([*lines, "  the episode is over"])
    lines.append("  choose a start point:" if bench.start_due else f"  {bench.picks_left} picks left:")
    for slot, candidate in enumerate(bench.pool):
        mark = "*" if slot in bench.picked else " "
        quality = "feasible" if candidate.item.feasible else ""
        line = f" {mark}{slot:>3} {candidate.kind:<10} {candidate.similarity:5.2f} {quality:<8} {candidate.item.title}"
        lines.append(line.rstrip()[:120])
    return "\n".join(lines)


def _outcome(settled: AttemptResult) -> str:
    if settled.attempt is None:
        return f"  not judged: {settled.failure}"
    verdict = settled.attempt.verdict
    words = verdict.feedback.strip().splitlines() or [""]
    return f"  {verdict.outcome}, reward {settled.reward:+.2f}: {words[0]}"[:120]
