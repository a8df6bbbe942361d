"""Draw the figures of a run in progress as small images for TensorBoard."""

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

WIDTH, NAMES, ROW, EDGE = 640, 240, 18, 8
BACK, TEXT, LINE = "#ffffff", "#44444a", "#d9d9de"


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
    sheet = _Sheet(len(histories))
    width = (WIDTH - NAMES - EDGE) / budget
    for row, (task, history) in enumerate(histories.items()):
        sheet.name(row, task)
        for at, grade in enumerate(steps(history)[:budget]):
            sheet.bar(row, NAMES + at * width, NAMES + (at + 1) * width - 1, GRADES[grade])
    return sheet.pixels()


def tiers(histories: Histories, categories: Mapping[str, str]) -> Pixels:
    """Draw one row per category: how many of its tasks came how far."""
    reached: dict[str, list[int]] = defaultdict(list)
    for task, history in histories.items():
        reached[categories.get(task) or "other"].append(tier(history))
    sheet = _Sheet(len(reached))
    for row, (category, grades) in enumerate(sorted(reached.items())):
        sheet.name(row, f"{category} ({len(grades)})")
        x, width = float(NAMES), (WIDTH - NAMES - EDGE) / len(grades)
        for grade in sorted(grades):
            sheet.bar(row, x, x + width, GRADES[grade])
            x += width
    return sheet.pixels()


def solved(histories: Histories, budget: int) -> Pixels:
    """Draw the shares of tasks with a compiled and with a correct kernel over the attempts per task."""
    sheet, attempts_made = _Sheet(12), min(budget, max(map(len, histories.values())))
    left, right, top, bottom = 44, WIDTH - EDGE, EDGE, sheet.height - 28
    for share in (0.0, 0.5, 1.0):
        y = bottom - (bottom - top) * share
        sheet.draw.line((left, y, right, y), fill=LINE)
        sheet.draw.text((4, y - 7), f"{share:.0%}", fill=TEXT, font=sheet.font)
    for colour, verdict, y in ((COLOURS[3], "compiled", bottom - 40), (COLOURS[2], "feasible", bottom - 22)):
        first = [_first(history, verdict) for history in histories.values()]
        shares = [sum(index <= at for index in first) / len(first) for at in range(attempts_made)]
        points = [
            (left + (right - left) * at / max(1, budget - 1), bottom - (bottom - top) * share)
            for at, share in enumerate(shares)
        ]
        sheet.draw.line(points if len(points) > 1 else points * 2, fill=colour, width=3)
        sheet.draw.text((right - 80, y), "correct" if verdict == "feasible" else verdict, fill=colour, font=sheet.font)
    sheet.draw.text((left, bottom + 6), f"1 to {budget} attempts per task", fill=TEXT, font=sheet.font)
    return sheet.pixels()


def _first(history: list[Record], verdict: str) -> float:
    return next((at for at, record in enumerate(history) if record["verdict"][verdict]), float("inf"))


class _Sheet:
    """An image of rows with names at the left."""

    def __init__(self, rows: int) -> None:
        self.height = 2 * EDGE + ROW * rows
        self._image = Image.new("RGB", (WIDTH, self.height), BACK)
        self.draw = ImageDraw.Draw(self._image)
        self.font = ImageFont.load_default(12)

    def name(self, row: int, text: str) -> None:
        self.draw.text((EDGE, EDGE + row * ROW), text[:40], fill=TEXT, font=self.font)

    def bar(self, row: int, begin: float, end: float, colour: str) -> None:
        top = EDGE + row * ROW
        self.draw.rectangle((begin, top, max(begin, end), top + ROW - 4), fill=colour)

    def pixels(self) -> Pixels:
        return np.asarray(self._image)
