"""Draw the pictures of a report as SVG text, with colours for light and dark backgrounds, without external files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from html import escape

import numpy as np

from kernel_gym.experiments.statistics import Curve, band

#: One per contender, in order; further contenders use them again, dashed.
COLOURS = (
    "#4477aa",
    "#ee6677",
    "#228833",
    "#b8860b",
    "#2aa5bd",
    "#aa3377",
    "#7f7f7f",
    "#8c564b",
    "#6a51a3",
    "#e6793b",
    "#4daf8c",
    "#9aa82c",
    "#5b8cff",
)
#: One colour for each of `TIERS` and `STEPS`, from nothing to fast.
GRADES = ("#8a8a92", "#d9822b", "#4477aa", "#2e9e52")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 310, 52, 46
#: Width of pictures that are placed side by side.
PANEL = 400
#: Height of a row with a name.
ROW = 17
#: The style of a picture outside of a report.
STYLE = (
    "<style>text{font:11px system-ui,sans-serif;fill:#6b6b70}.grid{stroke:#d9d9de;stroke-width:1}"
    "@media(prefers-color-scheme:dark){text{fill:#a0a0a8}.grid{stroke:#3a3a40}}</style>"
)


def colour(index: int) -> str:
    """Return the colour of a contender."""
    return COLOURS[index % len(COLOURS)]


def dashed(index: int) -> bool:
    """Return whether the line of a contender is dashed because another one has its colour."""
    return index >= len(COLOURS)


def swatch(index: int) -> str:
    """Return the look of a contender's line as a CSS background."""
    if not dashed(index):
        return colour(index)
    return f"repeating-linear-gradient(90deg, {colour(index)} 0 4px, transparent 4px 6px)"


def curves(series: Mapping[str, Sequence[Sequence[float]]], unit: str, key: bool = False) -> str:
    """Draw mean curves over seeds with their 95% intervals; `series` has name -> seed -> values in [0, 1].

    `key` writes the names below, for a picture outside of a report.
    """
    parts = [_frame(unit, max((len(runs[0]) for runs in series.values()), default=1))]
    for i, (name, runs) in enumerate(series.items()):
        mean, low, high = band(runs)
        x = LEFT + (WIDTH - LEFT - 14) * np.arange(len(mean)) / max(1, len(mean) - 1)
        outline = " ".join(_points(x, _y(high)) + _points(x[::-1], _y(low)[::-1]))
        parts.append(f'<g class="series"><polygon points="{outline}" fill="{colour(i)}" opacity="0.12"/>')
        dash = ' stroke-dasharray="5 3"' if dashed(i) else ""
        parts.append(
            f'<polyline points="{" ".join(_points(x, _y(mean)))}" fill="none" stroke="{colour(i)}" '
            f'stroke-width="2"{dash}><title>{escape(name)}: {mean[-1]:.2f} at the end</title></polyline></g>'
        )
    rows = _key(list(series), HEIGHT + 14) if key else []
    return figure("".join([*parts, *rows]), HEIGHT + (12 + 20 * -(-len(series) // 4) if key else 0), "solve curves")


def _key(names: Sequence[str], top: int) -> list[str]:
    parts = []
    for i, name in enumerate(names):
        x, y = LEFT + (i % 4) * 146, top + i // 4 * 20
        pieces = ((x, 4), (x + 6, 4)) if dashed(i) else ((x, 10),)
        parts += [f'<rect x="{at}" y="{y - 9}" width="{w}" height="10" fill="{colour(i)}"/>' for at, w in pieces]
        parts.append(f'<text x="{x + 15}" y="{y}">{escape(name)}</text>')
    return parts


def _frame(unit: str, attempts: int) -> str:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = float(_y(np.asarray(share)))
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 14}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for share in (0.0, 0.5, 1.0):
        x = LEFT + (WIDTH - LEFT - 14) * share
        lines.append(
            f'<text x="{x:.0f}" y="{HEIGHT - 28}" text-anchor="middle">{1 + round((attempts - 1) * share)}</text>'
        )
    lines.append(f'<text x="{(LEFT + WIDTH) / 2:.0f}" y="{HEIGHT - 8}" text-anchor="middle">{escape(unit)}</text>')
    return "".join(lines)


def spread(values: Mapping[str, Sequence[float]]) -> str:
    """Draw distributions on a logarithmic scale, one row per contender: every value a dot, the quartiles a bar."""
    rows, top = [], max((max(own) for own in values.values() if own), default=2.0)
    left, span = 12 + 9 * max(map(len, values), default=1), float(np.log(max(top, 2.0)))
    for i, (name, own) in enumerate(values.items()):
        y = 14 + i * 22
        rows.append(f'<text x="0" y="{y + 4}">{escape(name)}</text>')
        xs = [_log_x(value, span, left) for value in own]
        if xs:
            low, middle, high = np.percentile(xs, (25, 50, 75))
            box = f'x="{low:.1f}" y="{y - 5}" width="{high - low:.1f}" height="10"'
            rows.append(f'<rect {box} fill="{colour(i)}" opacity="0.3"/>')
            rows.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 7}" y2="{y + 7}" stroke="{colour(i)}"/>')
        rows += [f'<circle cx="{x:.1f}" cy="{y}" r="2" fill="{colour(i)}" opacity="0.6"/>' for x in xs]
    bottom = 14 + len(values) * 22
    rows += [
        f'<text x="{_log_x(tick, span, left):.0f}" y="{bottom + 6}" text-anchor="middle">{tick:g}x</text>'
        for tick in (1, 2, 5, 10, 20, 50, 100, 200, 500)
        if tick <= max(top, 2.0)
    ]
    return figure("".join(rows), bottom + 12, "distribution of speedups")


def _log_x(value: float, span: float, left: float) -> float:
    return left + (WIDTH - left - 16) * float(np.log(max(value, 1.0)) / span)


def tiers(rows: Mapping[str, Sequence[int]]) -> str:
    """Draw one bar per contender: how many tasks came how far; counts are in the order of `GRADES`."""
    left, parts = 8 + 7 * max(map(len, rows), default=1), []
    for i, (name, counts) in enumerate(rows.items()):
        y, x, whole = 4 + i * 20, float(left), sum(counts) or 1
        parts.append(f'<text x="0" y="{y + 11}">{escape(name)}</text>')
        for grade, count in zip(GRADES, counts, strict=True):
            width = (PANEL - left) * count / whole
            if count:
                parts.append(
                    f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="14" fill="{grade}">'
                    f"<title>{count} of {whole}</title></rect>"
                )
            x += width
    return figure("".join(parts), 6 + 20 * len(rows), "how far tasks came", PANEL)


def timeline(rows: Sequence[tuple[str, Sequence[int]]], attempts: int) -> str:
    """Draw one row per task, one cell per attempt, coloured by how far it came; `rows` has task and grades."""
    left, width = 250, (WIDTH - 260) / max(1, attempts)
    cells: dict[int, list[str]] = {grade: [] for grade in range(len(GRADES))}
    parts = []
    for i, (name, grades) in enumerate(rows):
        parts.append(f'<text x="0" y="{14 + i * ROW}">{escape(_short(name))}</text>')
        for at, grade in enumerate(grades):
            box = f"h{width - 1:.2f}v{ROW - 3}h-{width - 1:.2f}z"
            cells[grade].append(f"M{left + at * width:.1f} {3 + i * ROW}{box}")
    parts += [f'<path d="{"".join(boxes)}" fill="{GRADES[grade]}"/>' for grade, boxes in cells.items() if boxes]
    bottom = 16 + len(rows) * ROW
    for at in sorted({1, (attempts + 1) // 2, attempts}):
        parts.append(f'<text x="{left + (at - 0.5) * width:.1f}" y="{bottom}" text-anchor="middle">{at}</text>')
    return figure("".join(parts), bottom + 6, "attempts at every task", wide=True)


def arcs(names: Iterable[str], edges: Mapping[tuple[str, str], int]) -> str:
    """Draw an arrow from each task whose memory was shown to the task solved with it; other tasks are left out."""
    connected = {name for edge in edges for name in edge}
    place = {name: 10 + i * ROW for i, name in enumerate(name for name in names if name in connected)}
    parts = [f'<text x="0" y="{y + 4}">{escape(_short(name))}</text>' for name, y in place.items()]
    for (source, target), count in edges.items():
        a, b = place[source], place[target]
        reach = 275 + min(440.0, abs(b - a) * 1.1)
        parts.append(
            f'<path d="M255 {a} C {reach:.0f} {a}, {reach:.0f} {b}, 262 {b}" fill="none" '
            f'stroke="{COLOURS[0]}" stroke-width="{1 + 0.6 * min(5, count):.1f}" opacity="0.55">'
            f"<title>{escape(source)} helped {escape(target)} ({count})</title></path>"
            f'<path d="M255 {b}l9 -4v8z" fill="{COLOURS[0]}"/>'
        )
    return figure("".join(parts), 20 + len(place) * ROW, "transfer between tasks", wide=True)


def bars(values: Mapping[str, float]) -> str:
    """Draw the busy time of each pipe."""
    top = max(values.values(), default=1.0) or 1.0
    parts = []
    for i, (name, value) in enumerate(sorted(values.items(), key=lambda pair: -pair[1])):
        y = 4 + i * 20
        width = 440 * value / top
        parts.append(f'<text x="0" y="{y + 11}">{escape(name)}</text>')
        parts.append(f'<rect x="60" y="{y}" width="{width:.1f}" height="12" fill="{COLOURS[0]}"/>')
        parts.append(f'<text x="{66 + width:.0f}" y="{y + 11}">{value:.2f} us</text>')
    return figure("".join(parts), 8 + 20 * len(values), "busy time of every pipe")


def alone(svg: str) -> str:
    """Return a picture as the content of an SVG file."""
    head, body = svg.split(">", 1)
    return f'{head} xmlns="http://www.w3.org/2000/svg">{STYLE}{body}\n'


def _short(name: str) -> str:
    """Return a name that fits next to a row."""
    return name if len(name) <= 38 else f"{name[:37]}…"


def _y(share: Curve) -> Curve:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * np.asarray(share, dtype=float)


def _points(x: Curve, y: Curve) -> list[str]:
    return [f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)]


def figure(body: str, height: int, label: str, width: int = WIDTH, wide: bool = False) -> str:
    """Return an SVG element; a `wide` one has long names and is scrolled on a narrow screen instead of shrunk."""
    kind = ' class="wide"' if wide else ' class="panel"' if width == PANEL else ""
    return f'<svg viewBox="0 0 {width} {height}" role="img" aria-label="{escape(label)}"{kind}>{body}</svg>'
