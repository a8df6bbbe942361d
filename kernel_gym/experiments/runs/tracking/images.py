"""Draw the figures of a run in progress as small images for TensorBoard, which shows them about 350 pixels wide."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from kernel_gym.experiments.drawing import COLOURS, GRADES
from kernel_gym.experiments.runs.finished_run import steps, tier
from kernel_gym.experiments.runs.journal import Record

Pixels = NDArray[np.uint8]
Histories = Mapping[str, list[Record]]

WIDTH, NAMES, ROW, EDGE, LETTERS = 480, 190, 24, 8, 15
BACK, TEXT, LINE = "#ffffff", "#33333a", "#d9d9de"
#: What the colours mean, in the order of `GRADES`.
STEP_WORDS = ("does not compile", "not correct", "correct", "faster than before")
TIER_WORDS = ("nothing", "compiled", "correct", "2x as fast as first")


def figures(records: Sequence[Record], categories: Mapping[str, str], budget: int) -> dict[str, Pixels]:
    """Return name -> image of the attempts so far; `categories` has task -> category."""
    histories: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        histories[record["task"]].append(record)
    return {
        "figure/attempts": attempts(histories, budget),
        "figure/tiers": tiers(histories, categories),
        "figure/solved": solved(histories, budget),
    }


def attempts(histories: Histories, budget: int) -> Pixels:
    """Draw one row per task, one cell per attempt, coloured by how far it came."""
    sheet = _Sheet(f"attempts 1 to {budget} at every task", len(histories), STEP_WORDS)
    width = (WIDTH - NAMES - EDGE) / budget
    of_one_suite = len({task.partition("/")[0] for task in histories}) == 1
    for row, (task, history) in enumerate(histories.items()):
        sheet.name(row, task.partition("/")[2] if of_one_suite else task)
        for at, grade in enumerate(steps(history)[:budget]):
            sheet.bar(row, NAMES + at * width, NAMES + (at + 1) * width - 1, GRADES[grade])
    return sheet.pixels()


def tiers(histories: Histories, categories: Mapping[str, str]) -> Pixels:
    """Draw one row per category: how many of its tasks came how far."""
    reached: dict[str, list[int]] = defaultdict(list)
    for task, history in histories.items():
        reached[categories.get(task) or "other"].append(tier(history))
    sheet = _Sheet("how far tasks came (number of tasks)", len(reached), TIER_WORDS)
    for row, (category, grades) in enumerate(sorted(reached.items())):
        sheet.name(row, f"{category} ({len(grades)})")
        x, width = float(NAMES), (WIDTH - NAMES - EDGE) / len(grades)
        for grade in sorted(grades):
            sheet.bar(row, x, x + width, GRADES[grade])
            x += width
    return sheet.pixels()


def solved(histories: Histories, budget: int) -> Pixels:
    """Draw the shares of tasks with a compiled and with a correct kernel over the attempts per task."""
    colours = (COLOURS[3], COLOURS[2])
    sheet = _Sheet(f"share of tasks, attempts 1 to {budget}", 9, ("compiled", "correct"), colours)
    attempts_so_far = min(budget, max(map(len, histories.values())))
    left, right, top, bottom = 56, WIDTH - EDGE - 4, sheet.top + 8, sheet.bottom - 10
    for share in (0.0, 0.5, 1.0):
        y = bottom - (bottom - top) * share
        sheet.draw.line((left, y, right, y), fill=LINE)
        sheet.draw.text((EDGE, y - 9), f"{share:.0%}", fill=TEXT, font=sheet.font)
    for colour, verdict in zip(colours, ("compiled", "feasible"), strict=True):
        first = [_first(history, verdict) for history in histories.values()]
        shares = [sum(index <= at for index in first) / len(first) for at in range(attempts_so_far)]
        points = [
            (left + (right - left) * at / max(1, budget - 1), bottom - (bottom - top) * share)
            for at, share in enumerate(shares)
        ]
        sheet.draw.line(points if len(points) > 1 else points * 2, fill=colour, width=4)
    return sheet.pixels()


def _first(history: list[Record], verdict: str) -> float:
    return next((at for at, record in enumerate(history) if record["verdict"][verdict]), float("inf"))


class _Sheet:
    """An image with a title, rows with names at the left, and at the bottom what the colours mean."""

    def __init__(self, title: str, rows: int, words: Sequence[str], colours: Sequence[str] = GRADES) -> None:
        self.top, self.font = EDGE + ROW, ImageFont.load_default(LETTERS)
        self.bottom = self.top + ROW * rows
        self._image = Image.new("RGB", (WIDTH, self.bottom + ROW * -(-len(words) // 2) + EDGE), BACK)
        self.draw = ImageDraw.Draw(self._image)
        self.draw.text((EDGE, EDGE - 2), title, fill=TEXT, font=self.font)
        for i, (word, colour) in enumerate(zip(words, colours, strict=True)):
            x, y = EDGE + i % 2 * (WIDTH // 2), self.bottom + 4 + i // 2 * ROW
            self.draw.rectangle((x, y + 2, x + 14, y + 16), fill=colour)
            self.draw.text((x + 22, y), word, fill=TEXT, font=self.font)

    def name(self, row: int, text: str) -> None:
        """Write the name of a row, cut to its width."""
        while self.font.getlength(text) > NAMES - 2 * EDGE:
            text = f"{text.rstrip('…')[:-1]}…"
        self.draw.text((EDGE, self.top + row * ROW), text, fill=TEXT, font=self.font)

    def bar(self, row: int, begin: float, end: float, colour: str) -> None:
        """Draw a part of a row."""
        top = self.top + row * ROW
        self.draw.rectangle((begin, top, max(begin, end), top + ROW - 5), fill=colour)

    def pixels(self) -> Pixels:
        """Return the image."""
        return np.asarray(self._image)
