"""Pictures of a report: plain SVG text, colours that read on light and on dark, nothing loaded from anywhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape

import numpy as np

#: One a contender, in order; after them they begin again, dashed.
COLOURS = ("#4477aa", "#ee6677", "#228833", "#b8860b", "#2aa5bd", "#aa3377", "#7f7f7f", "#8c564b", "#6a51a3", "#e6793b")
WIDTH, HEIGHT, LEFT, BOTTOM = 640, 300, 44, 30


def colour(index: int) -> str:
    """The colour of a contender."""
    return COLOURS[index % len(COLOURS)]


def curves(series: Mapping[str, Sequence[Sequence[float]]], unit: str) -> str:
    """Mean curves over seeds, each within the range of its seeds; `series` has name -> seed -> values in [0, 1]."""
    parts = [_frame(unit, max((len(runs[0]) for runs in series.values()), default=1))]
    for i, (name, runs) in enumerate(series.items()):
        data = np.asarray(runs)
        x = LEFT + (WIDTH - LEFT - 8) * np.arange(data.shape[1]) / max(1, data.shape[1] - 1)
        low, high, mean = (_y(values) for values in (data.min(0), data.max(0), data.mean(0)))
        band = " ".join(_points(x, high) + _points(x[::-1], low[::-1]))
        parts.append(f'<polygon points="{band}" fill="{colour(i)}" opacity="0.13"/>')
        dash = ' stroke-dasharray="5 3"' if i >= len(COLOURS) else ""
        parts.append(
            f'<polyline points="{" ".join(_points(x, mean))}" fill="none" stroke="{colour(i)}" stroke-width="2"{dash}>'
            f"<title>{escape(name)}: {data.mean(0)[-1]:.2f} at the end</title></polyline>"
        )
    return _svg("".join(parts), HEIGHT)


def _frame(unit: str, attempts: int) -> str:
    lines = []
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        y = float(_y(np.asarray(share)))
        lines.append(f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{y:.1f}" y2="{y:.1f}" class="grid"/>')
        lines.append(f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{share:.0%}</text>')
    for share in (0.0, 0.5, 1.0):
        x = LEFT + (WIDTH - LEFT - 8) * share
        lines.append(
            f'<text x="{x:.0f}" y="{HEIGHT - 12}" text-anchor="middle">{1 + round((attempts - 1) * share)}</text>'
        )
    lines.append(f'<text x="{WIDTH / 2:.0f}" y="{HEIGHT}" text-anchor="middle">{escape(unit)}</text>')
    return "".join(lines)


def spread(values: Mapping[str, Sequence[float]]) -> str:
    """Distributions on a logarithmic scale, one row a contender: every value a dot, the quartiles a bar."""
    rows, top = [], max((max(own) for own in values.values() if own), default=2.0)
    span = np.log(max(top, 2.0))
    for i, (name, own) in enumerate(values.items()):
        y = 14 + i * 22
        rows.append(f'<text x="0" y="{y + 4}">{escape(name)}</text>')
        xs = [_log_x(value, span) for value in own]
        if xs:
            low, middle, high = np.percentile(xs, (25, 50, 75))
            box = f'x="{low:.1f}" y="{y - 5}" width="{high - low:.1f}" height="10"'
            rows.append(f'<rect {box} fill="{colour(i)}" opacity="0.3"/>')
            rows.append(f'<line x1="{middle:.1f}" x2="{middle:.1f}" y1="{y - 7}" y2="{y + 7}" stroke="{colour(i)}"/>')
        rows += [f'<circle cx="{x:.1f}" cy="{y}" r="2" fill="{colour(i)}" opacity="0.6"/>' for x in xs]
    bottom = 14 + len(values) * 22
    rows += [
        f'<text x="{_log_x(tick, span):.0f}" y="{bottom + 6}" text-anchor="middle">{tick:g}x</text>'
        for tick in (1, 2, 5, 10, 20, 50, 100)
        if tick <= top
    ]
    return _svg("".join(rows), bottom + 10)


def _log_x(value: float, span: float) -> float:
    return 190 + (WIDTH - 200) * float(np.log(max(value, 1.0)) / span)


def timeline(rows: Sequence[tuple[str, int | None, Sequence[int]]], attempts: int) -> str:
    """One line an operator: attempts until it was solved, a mark for the first success, dots for faster kernels."""
    parts = []
    for i, (name, solved, better) in enumerate(rows):
        y = 10 + i * 14

        def x(attempt: int) -> float:
            return 250 + (WIDTH - 260) * attempt / max(1, attempts - 1)

        end = x(attempts - 1 if solved is None else solved)
        parts.append(f'<text x="0" y="{y + 4}">{escape(name[:44])}</text>')
        parts.append(f'<line x1="250" x2="{end:.1f}" y1="{y}" y2="{y}" class="grid"/>')
        if solved is not None:
            parts.append(f'<rect x="{end - 4:.1f}" y="{y - 4}" width="8" height="8" fill="{COLOURS[2]}"/>')
        parts += [f'<circle cx="{x(at):.1f}" cy="{y}" r="2.5" fill="{COLOURS[0]}"/>' for at in better]
    return _svg("".join(parts), 20 + len(rows) * 14)


def arcs(names: Sequence[str], edges: Mapping[tuple[str, str], int]) -> str:
    """Who helped whom: operators below each other, an arc from the one whose memory was shown to the one solved."""
    place = {name: 10 + i * 14 for i, name in enumerate(names)}
    parts = [f'<text x="0" y="{y + 4}">{escape(name[:44])}</text>' for name, y in place.items()]
    for (source, target), count in edges.items():
        a, b = place[source], place[target]
        reach = 260 + min(360.0, abs(b - a) * 0.9)
        parts.append(
            f'<path d="M255 {a} C {reach:.0f} {a}, {reach:.0f} {b}, 255 {b}" fill="none" '
            f'stroke="{COLOURS[0] if a < b else COLOURS[1]}" stroke-width="{min(4, count)}" opacity="0.5">'
            f"<title>{escape(source)} helped {escape(target)}</title></path>"
        )
    return _svg("".join(parts), 20 + len(names) * 14)


def bars(values: Mapping[str, float]) -> str:
    """Busy time by pipe."""
    top = max(values.values(), default=1.0) or 1.0
    parts = []
    for i, (name, value) in enumerate(sorted(values.items(), key=lambda pair: -pair[1])):
        y = 4 + i * 16
        width = 460 * value / top
        parts.append(f'<text x="0" y="{y + 10}">{escape(name)}</text>')
        parts.append(f'<rect x="90" y="{y}" width="{width:.1f}" height="11" fill="{COLOURS[0]}"/>')
        parts.append(f'<text x="{96 + width:.0f}" y="{y + 10}">{value:.2f} us</text>')
    return _svg("".join(parts), 8 + 16 * len(values))


def _y(share: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> np.ndarray[tuple[int, ...], np.dtype[np.float64]]:
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - 10) * np.asarray(share, dtype=float)


def _points(
    x: np.ndarray[tuple[int, ...], np.dtype[np.float64]], y: np.ndarray[tuple[int, ...], np.dtype[np.float64]]
) -> list[str]:
    return [f"{a:.1f},{b:.1f}" for a, b in zip(x, y, strict=True)]


def _svg(body: str, height: int) -> str:
    return f'<svg viewBox="0 0 {WIDTH} {height}" role="img">{body}</svg>'
