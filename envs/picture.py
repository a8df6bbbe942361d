"""Draw the state of an episode as a picture, for `render_mode="rgb_array"`.

At the left are the candidates with their similarities and rewards, the picks marked in their order. At the right are
the gates that each attempt passed, the latencies, and the last verdict in words.
"""

from __future__ import annotations

from functools import cache
from math import log
from textwrap import wrap
from typing import Any

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from kernel_gym.envs.attempt import Attempt
from kernel_gym.envs.episode import AttemptResult, Episode
from kernel_gym.envs.pool import Candidate
from kernel_gym.envs.rendering import EpisodeState, due
from kernel_gym.memory.item import Stage
from kernel_gym.verdict import GATES, Cheated, Feasible, Incorrect, Uncompilable, Verdict

Pixels = NDArray[np.uint8]

#: The width of every picture and the least height. Both are even, as video codecs want it.
WIDTH, LEAST_HEIGHT = 960, 540
EDGE, TOP, ROW, CELL = 16, 92, 20, 16
#: Left edges of the columns of the candidates, the width of a bar and the right edge of the last column.
SLOT, PICK, KIND, ID, TITLE, SIMILARITY, REWARD, BAR, END = 16, 38, 62, 136, 178, 438, 530, 48, 630
#: Left edge of the words on the last attempt; left and right edge of what is drawn over the attempts.
WORDS, LEFT, RIGHT = 650, 722, WIDTH - EDGE
#: Letters on a line of the verdict and lines of it.
LETTERS, LINES = 46, 5
PAPER, INK, FAINT, LINE, PICKED = "#ffffff", "#26262b", "#74747c", "#dcdce2", "#e6eefb"
BLUE, GREEN, RED, PURPLE = "#4477aa", "#228833", "#cc3311", "#aa3377"
KINDS = {"experience": "#b06000", "trace": BLUE, "practice": "#00796b", "start": PURPLE}


def height(slots: int) -> int:
    """Return the height of a picture, which depends on the number of slots alone."""
    return max(LEAST_HEIGHT, TOP + ROW * slots + EDGE) // 2 * 2


def picture(episode: Episode | EpisodeState, result: AttemptResult | None, slots: int) -> Pixels:
    """Draw an episode.

    Args:
        episode: The episode.
        result: The attempt that has just ended, if one has.
        slots: K, the most candidates that a pool can have.

    Returns:
        RGB values, shape (height(slots), WIDTH, 3).
    """
    sheet = _Sheet(height(slots))
    _head(sheet, episode)
    _candidates(sheet, episode)
    _gates(sheet, episode)
    _latencies(sheet, episode)
    _last(sheet, episode, result)
    return sheet.pixels()


class _Sheet:
    """A white sheet with text in three sizes."""

    def __init__(self, tall: int) -> None:
        self._image = Image.new("RGB", (WIDTH, tall), PAPER)
        self.draw = ImageDraw.Draw(self._image)

    def text(self, x: float, y: float, words: str, colour: str = INK, size: int = 12, anchor: str = "lm") -> None:
        """Write one line, vertically centred at y."""
        self.draw.text((x, y), words, fill=colour, font=_font(size), anchor=anchor)

    def cut(self, words: str, room: float, size: int = 12) -> str:
        """Return the words shortened until they fit."""
        font = _font(size)
        if font.getlength(words) <= room:
            return words
        while words and font.getlength(f"{words}…") > room:
            words = words[:-1]
        return f"{words.rstrip()}…"

    def box(self, left: float, top: float, right: float, bottom: float, colour: str) -> None:
        """Fill a rectangle."""
        self.draw.rectangle((left, top, max(left, right), bottom), fill=colour)

    def pixels(self) -> Pixels:
        """Return the sheet as an array that may be changed."""
        return np.array(self._image)


@cache
def _font(size: int) -> Any:
    return ImageFont.load_default(size)


def _head(sheet: _Sheet, episode: Episode | EpisodeState) -> None:
    progress = episode.progress
    sheet.text(EDGE, 26, sheet.cut(episode.task.id, WIDTH - 2 * EDGE, 18), size=18)
    numbers = [f"{progress.stage}", f"attempt {min(progress.used + 1, episode.budget)} of {episode.budget}"]
    if progress.best_us is not None and progress.first_us is not None:
        gain = progress.first_us / progress.best_us
        numbers.append(f"best {progress.best_us:.2f} us, {gain:.2f} x as fast as the first")
    sheet.text(EDGE, 50, "   |   ".join(numbers), FAINT)
    sheet.draw.line((0, 64, WIDTH, 64), fill=LINE)


def _candidates(sheet: _Sheet, episode: Episode | EpisodeState) -> None:
    y = TOP - 14
    if episode.over:
        feasible = sum(attempt.verdict.feasible for attempt in episode.attempts)
        sheet.text(SLOT, y, f"the episode is over: {feasible} of {len(episode.attempts)} kernels feasible")
        return
    sheet.text(SLOT, y, due(episode))
    sheet.draw.ellipse((TITLE, y - 4, TITLE + 7, y + 3), fill=GREEN)
    sheet.text(TITLE + 13, y, "feasible", FAINT, 11)
    sheet.text(SIMILARITY, y, "similarity", FAINT, 11)
    sheet.text(REWARD, y, "mean reward (uses)", FAINT, 11)
    for slot, candidate in enumerate(episode.pool):
        order = episode.picked.index(slot) + 1 if slot in episode.picked else 0
        _candidate(sheet, slot, candidate, order, episode)


def _candidate(sheet: _Sheet, slot: int, candidate: Candidate, order: int, episode: Episode | EpisodeState) -> None:
    top = TOP + slot * ROW
    middle = top + ROW / 2
    if order:
        sheet.box(SLOT - 6, top, END, top + ROW - 2, PICKED)
        sheet.draw.rounded_rectangle((PICK, top + 2, PICK + 17, top + ROW - 4), 8, fill=BLUE)
        sheet.text(PICK + 9, middle - 1, str(order), PAPER, 11, "mm")
    sheet.text(SLOT, middle, str(slot), FAINT, 11)
    sheet.text(KIND, middle, candidate.kind, KINDS[candidate.kind])
    sheet.text(ID + 36, middle, f"#{candidate.id}", FAINT, 11, "rm")
    if candidate.item.feasible:
        sheet.draw.ellipse((TITLE, middle - 4, TITLE + 7, middle + 3), fill=GREEN)
    sheet.text(TITLE + 13, middle, sheet.cut(candidate.item.title, SIMILARITY - TITLE - 24))
    sheet.box(SIMILARITY, middle - 4, SIMILARITY + BAR, middle + 3, LINE)
    sheet.box(SIMILARITY, middle - 4, SIMILARITY + BAR * max(0.0, min(1.0, candidate.similarity)), middle + 3, BLUE)
    sheet.text(SIMILARITY + BAR + 7, middle, f"{candidate.similarity:.2f}", FAINT, 11)
    outcome = candidate.outcome(episode.progress.stage)
    if outcome.uses:
        _signed_bar(sheet, middle, outcome.mean)
        sheet.text(REWARD + BAR + 7, middle, f"{outcome.mean:+.2f} ({outcome.uses})", FAINT, 11)


def _signed_bar(sheet: _Sheet, middle: float, value: float) -> None:
    """Draw a value in [-1, 1] from the middle of its column."""
    zero = REWARD + BAR / 2
    end = zero + BAR / 2 * max(-1.0, min(1.0, value))
    sheet.box(min(zero, end), middle - 4, max(zero, end), middle + 3, GREEN if value >= 0 else RED)
    sheet.draw.line((zero, middle - 6, zero, middle + 5), fill=FAINT)


def _gates(sheet: _Sheet, episode: Episode | EpisodeState) -> None:
    sheet.text(LEFT, TOP - 14, "gates passed by each attempt", FAINT, 11)
    step = _step(episode)
    for row, gate in enumerate(GATES):
        sheet.text(LEFT - 8, TOP + (row + 0.5) * CELL, gate, FAINT, 11, "rm")
        for at in range(episode.budget):
            left = LEFT + at * step
            attempt = _attempt_at(episode, at)
            colour = LINE if attempt is None else _colour(attempt.verdict, row)
            sheet.box(left, TOP + row * CELL, left + step - (2 if step > 4 else 1), TOP + row * CELL + CELL - 3, colour)


def _step(episode: Episode | EpisodeState) -> float:
    return (RIGHT - LEFT) / episode.budget


def _attempt_at(episode: Episode | EpisodeState, index: int) -> Attempt | None:
    return episode.attempts[index] if index < len(episode.attempts) else None


def _colour(verdict: Verdict, gate: int) -> str:
    """Return the colour of a gate: passed, refused, or not reached."""
    passed = _gates_passed(verdict)
    if gate < passed:
        return GREEN
    if gate > passed:
        return LINE
    return PURPLE if verdict.hack else RED


def _gates_passed(verdict: Verdict) -> int:
    """Return how many gates a kernel passed."""
    match verdict:
        case Feasible():
            return len(GATES)
        case Cheated():
            return GATES.index(verdict.gate)
        case Uncompilable():
            return GATES.index("compile")
        case Incorrect():
            return GATES.index("correctness")
        case _:
            return 0


def _latencies(sheet: _Sheet, episode: Episode | EpisodeState) -> None:
    """Draw the latency of every feasible attempt and the best so far, on a logarithmic scale."""
    top, bottom, step = TOP + 122, TOP + 290, _step(episode)
    sheet.text(LEFT, top - 20, "latency: each attempt, and the best so far", FAINT, 11)
    sheet.draw.line((LEFT, bottom, RIGHT, bottom), fill=FAINT)
    for number in sorted({1, (episode.budget + 1) // 2, episode.budget}):
        sheet.text(LEFT + (number - 0.5) * step, bottom + 10, str(number), FAINT, 11, "mm")
    best = _best_before(episode)
    latencies = [attempt.verdict.latency_us for attempt in episode.attempts]
    scale = [us for us in (best, *latencies) if us]
    if not scale:
        sheet.text((LEFT + RIGHT) / 2, (top + bottom) / 2, "no feasible kernel yet", FAINT, anchor="mm")
        return
    low, high = log(min(scale) / 1.1), log(max(scale) * 1.1)

    def y(us: float) -> float:
        return bottom - (bottom - top) * (log(us) - low) / (high - low)

    for us in sorted({min(scale), max(scale)}):
        sheet.text(LEFT - 8, y(us), f"{us:.2f} us", FAINT, 11, "rm")
        sheet.draw.line((LEFT, y(us), RIGHT, y(us)), fill=LINE)
    line: list[tuple[float, float]] = [(LEFT, y(best))] if best else []
    for index, latency in enumerate(latencies):
        if latency:
            x, before = LEFT + (index + 0.5) * step, best or latency
            best = min(latency, before)
            line += [(x, y(before)), (x, y(best))]
            sheet.draw.ellipse((x - 3, y(latency) - 3, x + 3, y(latency) + 3), fill=BLUE)
    line.append((LEFT + (len(latencies) + 0.5 * (not episode.over)) * step, line[-1][1]))
    sheet.draw.line(line, fill=GREEN, width=2)


def _best_before(episode: Episode | EpisodeState) -> float | None:
    """Return the best latency that the bank held when the episode began."""
    return episode.attempts[0].best_us if episode.attempts else episode.progress.best_us


def _last(sheet: _Sheet, episode: Episode | EpisodeState, result: AttemptResult | None) -> None:
    """Write what the last attempt was shown and what the verdict on it was."""
    y = TOP + 326
    if result is not None and result.attempt is None:
        lines = [("not judged", RED), *((line, INK) for line in wrap(result.failure, LETTERS)[:LINES])]
    elif episode.attempts:
        attempt = episode.attempts[-1]
        good = attempt.verdict.feasible
        shown = ", ".join(f"#{item}" for item in attempt.context) or "nothing"
        changed = "mended" if attempt.stage is Stage.DRAFT else "refined"
        start = f"{changed} #{attempt.start}, " if attempt.start is not None else ""
        lines = [
            (
                f"attempt {attempt.index + 1}: {attempt.verdict.outcome}, reward {attempt.reward:+.2f}",
                GREEN if good else RED,
            ),
            (f"{start}shown {shown}", FAINT),
            *((line, INK) for line in wrap(" ".join(attempt.verdict.feedback.split()), LETTERS)[:LINES]),
        ]
    else:
        lines = [("no attempt yet", FAINT)]
    for i, (words, colour) in enumerate(lines):
        sheet.text(WORDS, y + 17 * i, sheet.cut(words, RIGHT - WORDS), colour)
