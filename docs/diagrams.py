"""The diagrams of the concept pages: boxes on a grid and arrows between them, written as SVG files.

`python docs/diagrams.py` writes `docs/diagrams/*.svg`; a test holds the files to this description.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from pathlib import Path

FOLDER = Path(__file__).resolve().parent / "diagrams"
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN = 148, 58, 58, 60, 24
FILLS = {
    "plain": ("#eef1fb", "#3f51b5"),
    "data": ("#fff6e0", "#b26a00"),
    "good": ("#e6f4ea", "#2e7d32"),
    "bad": ("#fdecea", "#b3261e"),
    "zone": ("#f7f7f8", "#9aa0a6"),
}
STYLE = (
    "text{font:14px 'Segoe UI',Roboto,Helvetica,Arial,sans-serif;fill:#1f2328;text-anchor:middle}"
    ".small{font-size:12px;fill:#57606a}.left{text-anchor:start}"
    "path{fill:none;stroke:#57606a;stroke-width:1.5}"
)


@dataclass(frozen=True)
class Box:
    """A box at a column and a row; `|` parts its lines, of which the second and later ones are small."""

    column: float
    row: float
    text: str
    kind: str = "plain"
    columns: float = 1
    rows: float = 1

    @property
    def x(self) -> float:
        return MARGIN + self.column * (WIDTH + GAP_X)

    @property
    def y(self) -> float:
        return MARGIN + self.row * (HEIGHT + GAP_Y)

    @property
    def width(self) -> float:
        return WIDTH + (self.columns - 1) * (WIDTH + GAP_X)

    @property
    def height(self) -> float:
        return HEIGHT + (self.rows - 1) * (HEIGHT + GAP_Y)

    def side(self, name: str, shift: float = 0) -> tuple[float, float]:
        """Return the middle of a side, moved along it by `shift`."""
        middle_x, middle_y = self.x + self.width / 2, self.y + self.height / 2
        return {
            "l": (self.x, middle_y + shift),
            "r": (self.x + self.width, middle_y + shift),
            "t": (middle_x + shift, self.y),
            "b": (middle_x + shift, self.y + self.height),
        }[name]

    def svg(self) -> str:
        """Return the box as SVG; a zone has its text in the upper left corner."""
        fill, stroke = FILLS[self.kind]
        dash = ' stroke-dasharray="5 4"' if self.kind == "zone" else ""
        grow = 16 if self.kind == "zone" else 0
        top = 12 if self.kind == "zone" else 0
        box = (
            f'<rect x="{self.x - grow:g}" y="{self.y - grow - top:g}" width="{self.width + 2 * grow:g}" '
            f'height="{self.height + 2 * grow + top:g}" rx="8" fill="{fill}" stroke="{stroke}"{dash}/>'
        )
        if self.kind == "zone":
            return box + f'<text class="small left" x="{self.x - 6:g}" y="{self.y - 10:g}">{escape(self.text)}</text>'
        lines = self.text.split("|")
        x, y = self.x + self.width / 2, self.y + self.height / 2 + 5 - 9 * (len(lines) - 1)
        words = [
            f'<text{" class=" + chr(34) + "small" + chr(34) if number else ""} x="{x:g}" y="{y + 18 * number:g}">'
            f"{escape(line)}</text>"
            for number, line in enumerate(lines)
        ]
        return box + "".join(words)


@dataclass(frozen=True)
class Arrow:
    """An arrow from a side of a box to a side of another: `l`, `r`, `t`, `b`; it turns once if it has to.

    `shift` moves both ends along their sides, so that two arrows can join the same boxes. `at` is where along the
    arrow's first straight piece the label stands.
    """

    source: str
    target: str
    sides: str
    label: str = ""
    shift: float = 0
    at: float = 0.5

    def svg(self, boxes: dict[str, Box]) -> str:
        """Return the arrow and its label."""
        x0, y0 = boxes[self.source].side(self.sides[0], self.shift)
        x1, y1 = boxes[self.target].side(self.sides[1], self.shift)
        flat = self.sides[0] in "lr"
        if flat and self.sides[1] in "lr" and y0 != y1:
            middle = (x0 + x1) / 2
            points = [(x0, y0), (middle, y0), (middle, y1), (x1, y1)]
        elif not flat and self.sides[1] in "tb" and x0 != x1:
            middle = (y0 + y1) / 2
            points = [(x0, y0), (x0, middle), (x1, middle), (x1, y1)]
        else:
            points = [(x0, y0), *([] if x0 == x1 or y0 == y1 else [(x1, y0) if flat else (x0, y1)]), (x1, y1)]
        line = " L".join(f"{x:g} {y:g}" for x, y in points)
        path = f'<path d="M{line}" marker-end="url(#end)"/>'
        (ax, ay), (bx, by) = points[0], points[1]
        x, y = ax + (bx - ax) * self.at, ay + (by - ay) * self.at
        return path + (self._label(x, y, flat) if self.label else "")

    def _label(self, x: float, y: float, flat: bool) -> str:
        lines = self.label.split("|")
        x, y = (x, y - 6 - 14 * (len(lines) - 1)) if flat else (x + 6, y + 4 - 7 * (len(lines) - 1))
        kind = "small" if flat else "small left"
        return "".join(
            f'<text class="{kind}" x="{x:g}" y="{y + 14 * number:g}">{escape(line)}</text>'
            for number, line in enumerate(lines)
        )


@dataclass(frozen=True)
class Diagram:
    """Boxes by name, arrows between them, and a title for screen readers."""

    title: str
    boxes: dict[str, Box]
    arrows: list[Arrow] = field(default_factory=list)

    def svg(self) -> str:
        """Return the diagram as an SVG document."""
        width = max(box.x + box.width for box in self.boxes.values()) + MARGIN
        height = max(box.y + box.height for box in self.boxes.values()) + MARGIN
        top = 12 if any(box.kind == "zone" and box.row == 0 for box in self.boxes.values()) else 0
        parts = [box.svg() for box in self.boxes.values()] + [arrow.svg(self.boxes) for arrow in self.arrows]
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 {-top} {width:g} {height + top:g}" '
            f'width="{width:g}" height="{height + top:g}" role="img">\n<title>{escape(self.title)}</title>\n'
            f"<style>{STYLE}</style>\n"
            '<defs><marker id="end" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto">'
            '<path d="M0 0 L8 4 L0 8 z" style="fill:#57606a;stroke:none"/></marker></defs>\n'
            f'<rect y="{-top}" width="100%" height="100%" rx="10" fill="#fff"/>\n' + "\n".join(parts) + "\n</svg>\n"
        )


DIAGRAMS = {
    "step": Diagram(
        "One attempt: the agent picks, the author writes, the verifier judges, the memory grows",
        {
            "memory": Box(1, 0, "memory bank|items with statistics", "data"),
            "agent": Box(0, 1, "agent|chooses the context"),
            "environment": Box(1, 1, "environment|episode and budget"),
            "author": Box(2, 1, "author|frozen"),
            "verifier": Box(2, 2, "verifier|five gates"),
            "device": Box(3, 2, "device|compiles and runs"),
        },
        [
            Arrow("agent", "environment", "rl", "picks", -12),
            Arrow("environment", "agent", "lr", "reward", 12),
            Arrow("memory", "environment", "bt", "candidates", -48),
            Arrow("environment", "memory", "tb", "new items", 48),
            Arrow("environment", "author", "rl", "context"),
            Arrow("author", "verifier", "bt", "kernel"),
            Arrow("verifier", "device", "rl", "kernel", -12),
            Arrow("device", "verifier", "lr", "build, run", 12),
            Arrow("verifier", "environment", "lb", "verdict"),
        ],
    ),
    "gates": Diagram(
        "The gates of the verifier in order, and the verdict of a kernel that a gate stops",
        {
            "screen": Box(0, 0, "1 screen|the source text"),
            "compile": Box(1, 0, "2 compile|dialect, compiler"),
            "binary": Box(2, 0, "3 binary|the object file"),
            "correctness": Box(3, 0, "4 correctness|secret values"),
            "latency": Box(4, 0, "5 latency|timing sizes"),
            "feasible": Box(5, 0, "Feasible|latency, profile", "good"),
            "cheated1": Box(0, 1, "Cheated", "bad"),
            "uncompilable": Box(1, 1, "Uncompilable", "bad"),
            "cheated2": Box(2, 1, "Cheated", "bad"),
            "incorrect": Box(3, 1, "Incorrect", "bad"),
            "cheated3": Box(4, 1, "Cheated|or Incorrect", "bad"),
        },
        [
            *(
                Arrow(source, target, "rl")
                for source, target in [
                    ("screen", "compile"),
                    ("compile", "binary"),
                    ("binary", "correctness"),
                    ("correctness", "latency"),
                    ("latency", "feasible"),
                ]
            ),
            *(
                Arrow(source, target, "bt")
                for source, target in [
                    ("screen", "cheated1"),
                    ("compile", "uncompilable"),
                    ("binary", "cheated2"),
                    ("correctness", "incorrect"),
                    ("latency", "cheated3"),
                ]
            ),
        ],
    ),
    "latency": Diagram(
        "Decisions of the latency gate on the simulator",
        {
            "values": Box(0, 0, "secret values|stress rows mixed in", "data"),
            "run": Box(1, 0, "computed run|at the timing sizes"),
            "compare": Box(2, 0, "every element|compared"),
            "floor": Box(3, 0, "below the|physical floor?"),
            "good": Box(4, 0, "latency|of that run", "good"),
            "stopped": Box(1, 1, "budget spent:|compared so far"),
            "wrong": Box(2, 1, "Incorrect|case timing", "bad"),
            "cheat": Box(3, 1, "Cheated|below-floor", "bad"),
            "smaller": Box(1, 2, "two smaller sizes|compared in full"),
            "grown": Box(2, 2, "latency|extrapolated", "good"),
        },
        [
            Arrow("values", "run", "rl"),
            Arrow("run", "compare", "rl", "ends"),
            Arrow("compare", "floor", "rl", "right"),
            Arrow("floor", "good", "rl", "no"),
            Arrow("run", "stopped", "bt", "too slow"),
            Arrow("compare", "wrong", "bt", "wrong"),
            Arrow("floor", "cheat", "bt", "yes"),
            Arrow("stopped", "wrong", "rl", "wrong"),
            Arrow("stopped", "smaller", "bt", "right"),
            Arrow("smaller", "grown", "rl", "grows steadily"),
        ],
    ),
    "memory": Diagram(
        "Value-driven memory: retrieval proposes, values choose, the reward updates the values",
        {
            "bank": Box(0, 0, "memory bank|all items", "data"),
            "pool": Box(1, 0, "pool|K = lambda N candidates", "data"),
            "picks": Box(2, 0, "picks|N items", "data"),
            "context": Box(3, 0, "context|and API pages", "data"),
            "attempt": Box(4, 0, "attempt|kernel, verdict"),
            "task": Box(0, 1, "task|text, diagnosis"),
            "values": Box(2, 1, "values Q|by stage and item"),
            "reward": Box(4, 1, "reward|r1 or r2"),
        },
        [
            Arrow("bank", "pool", "rl", "retrieval"),
            Arrow("pool", "picks", "rl", "choice"),
            Arrow("picks", "context", "rl"),
            Arrow("context", "attempt", "rl", "author"),
            Arrow("task", "pool", "rb", "query"),
            Arrow("values", "picks", "tb", "highest, or random"),
            Arrow("attempt", "reward", "bt", "verifier"),
            Arrow("reward", "values", "lr", "update of every item that was shown", at=0.5),
        ],
    ),
    "author": Diagram(
        "The simulated author: a plan of loop nests, spelled through idioms that the context makes likelier",
        {
            "module": Box(0, 0, "task|PyTorch module", "data"),
            "plan": Box(1, 0, "plan|loop nests"),
            "schedule": Box(2, 0, "schedule|cores, tiles, buffers"),
            "idioms": Box(3, 0, "idioms|right or wrong spelling"),
            "kernel": Box(4, 0, "kernel|Ascend C or CUDA", "good"),
            "context": Box(2, 1, "context|notes, start point", "data"),
            "odds": Box(3, 1, "log-odds|prior + evidence"),
            "profile": Box(4, 1, "author profile|weak, middle, strong", "data"),
        },
        [
            Arrow("module", "plan", "rl", "export"),
            Arrow("plan", "schedule", "rl"),
            Arrow("schedule", "idioms", "rl"),
            Arrow("idioms", "kernel", "rl"),
            Arrow("context", "schedule", "tb", "shows moves"),
            Arrow("context", "odds", "rl", "reading"),
            Arrow("odds", "idioms", "tb", "one draw each"),
            Arrow("profile", "odds", "lr", "constants"),
        ],
    ),
    "devices": Diagram(
        "Processes of a verification: the kernel's code never meets values, expected outputs, a clock or a verdict",
        {
            "zone1": Box(0, 0, "verifier process: trusted", "zone", rows=2),
            "zone2": Box(1.25, 0, "device process: trusted", "zone", rows=2),
            "zone3": Box(2.5, 0, "kernel process: confined", "zone", rows=2),
            "values": Box(0, 0, "values|expected outputs", "data"),
            "verdict": Box(0, 1, "comparison|verdict"),
            "memory": Box(1.25, 0, "tensors|guards, poison", "data"),
            "clock": Box(1.25, 1, "execution|time"),
            "host": Box(2.5, 0, "kernel_launch|host function"),
            "code": Box(2.5, 1, "kernel code|no tensor data"),
        },
        [
            Arrow("values", "memory", "rl", "inputs"),
            Arrow("clock", "verdict", "lr", "outputs"),
            Arrow("host", "code", "bt", "launches"),
            Arrow("code", "clock", "lr", "records"),
        ],
    ),
    "timing": Diagram(
        "The simulator: instruction records are executed, checked and then timed",
        {
            "source": Box(0, 0, "kernel.cpp", "data"),
            "library": Box(1, 0, "kernel.so|g++, confined"),
            "process": Box(2, 0, "kernel process|cores as fibers"),
            "executor": Box(3, 0, "executor|computes, checks rules"),
            "result": Box(4, 0, "outputs or fault", "good"),
            "pipes": Box(3, 1, "timing pass|seven pipes a core"),
            "chip": Box(2, 1, "chip profile|rates, latencies", "data"),
            "latency": Box(4, 1, "latency, profile|diagnosis", "good"),
        },
        [
            Arrow("source", "library", "rl", "compile"),
            Arrow("library", "process", "rl", "load"),
            Arrow("process", "executor", "rl", "ring"),
            Arrow("executor", "result", "rl"),
            Arrow("executor", "pipes", "bt", "instruction records"),
            Arrow("chip", "pipes", "rl"),
            Arrow("pipes", "latency", "rl"),
        ],
    ),
}


def main() -> None:
    """Write every diagram."""
    for name, diagram in DIAGRAMS.items():
        (FOLDER / f"{name}.svg").write_text(diagram.svg())


if __name__ == "__main__":
    main()
