"""Forecasts the verdict of a kernel from its schedule and its mistakes.

The declared effect of each mistake says at which gate it ends a kernel. The first gate decides, and at that gate the
mistake that the kernel's text comes to first. Its message is one that the verifier gave for this mistake.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, cast

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.forecast.kernel_texts import TaskTexts
from kernel_gym.authors.apprentice.forecast.latency_model import LatencyModel
from kernel_gym.authors.apprentice.forecast.measurements import Measurements, Message, Point
from kernel_gym.verdict import Feasible, Incorrect, Profile, Uncompilable, Verdict

#: The name that forecast verdicts have in place of a device's.
DEVICE = "forecast"
#: The gates at which mistakes end a kernel, first things first. A mistake that is only slow ends none.
GATES = ("uncompilable", "fault", "mismatch")

Mistakes = Sequence[tuple[int, int]]
"""Mistakes as (column of the idiom, number of the spelling from 1), in the order of the kernel's text."""


class VerdictForecast:
    """Forecasts verdicts; those of failures are made once for each task and mistake."""

    def __init__(self, measurements: Measurements, idioms: Sequence[Idiom]) -> None:
        self._idioms, self._messages = idioms, measurements.messages
        self.latencies = LatencyModel(measurements)
        self.effects = [[idiom.effect_of(wrong) for wrong in idiom.wrong] for idiom in idioms]
        self._failures: dict[tuple[str, Schedule, int, int], Verdict] = {}
        self._points: dict[tuple[str, Schedule], Point] = {}

    def decisive(self, mistakes: Mistakes) -> tuple[int, int] | None:
        """Return the mistake that ends the kernel; None if it passes all gates."""
        for gate in GATES:
            for column, code in mistakes:
                if self.effects[column][code - 1] == gate:
                    return column, code
        return None

    def verdict(
        self, texts: TaskTexts, schedule: Schedule, mistakes: Mistakes, ends: tuple[int, int] | None
    ) -> Verdict:
        """Return the forecast of a kernel's verdict; `ends` is the decisive mistake."""
        if texts.plan is None:
            return Uncompilable("the author gave no answer: there is no source to compile", device=DEVICE)
        return self._feasible(texts, schedule, mistakes) if ends is None else self._failure(texts, schedule, *ends)

    def _feasible(self, texts: TaskTexts, schedule: Schedule, mistakes: Mistakes) -> Verdict:
        key = (texts.task.id, schedule)
        if key not in self._points:
            self._points[key] = self.latencies.forecast(*key, texts.fields)
        point, latency = self._points[key], self._points[key].latency
        if point.outcome != "feasible":
            return Incorrect(point.diagnosis, device=DEVICE, cause="timeout")
        for column, code in mistakes:
            latency *= self._message(column, code).ratio
        feedback = "; ".join(filter(None, [f"Correct. {latency:.3f} us at the timing sizes", point.diagnosis]))
        profile = Profile(bottleneck=point.bottleneck, diagnosis=point.diagnosis)
        return Feasible(feedback, device=DEVICE, latency=latency, profile=profile)

    def _failure(self, texts: TaskTexts, schedule: Schedule, column: int, code: int) -> Verdict:
        key = (texts.task.id, texts.home(schedule, column), column, code)
        if key not in self._failures:
            self._failures[key] = self._failed(texts, schedule, column, code)
        return self._failures[key]

    def _failed(self, texts: TaskTexts, schedule: Schedule, column: int, code: int) -> Verdict:
        message, text = self._message(column, code), texts.mistake(schedule, column, code)
        feedback = message.feedback.replace("{line}", str(text.line)).replace("{code}", text.code)
        line = text.line if "{line}" in message.feedback else None
        effect = self.effects[column][code - 1]
        if effect == "uncompilable":
            return Uncompilable(feedback, device=DEVICE, line=line)
        cause = cast(Literal["fault", "mismatch"], effect)
        return Incorrect(feedback, device=DEVICE, cause=cause, rule=message.rule, line=line, case=message.case)

    def _message(self, column: int, code: int) -> Message:
        idiom = self._idioms[column]
        mistake = idiom.wrong[code - 1]
        return self._messages.get(f"{idiom.id}:{mistake.name}") or _unmeasured(idiom)


def _unmeasured(idiom: Idiom) -> Message:
    """Return the message of a mistake that was never measured: what the idiom is about."""
    return Message("", f"Wrong result: {idiom.about}" if idiom.effect == "mismatch" else idiom.about)
