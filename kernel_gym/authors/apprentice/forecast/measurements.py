"""What the forecast was measured on: latencies of schedules by task, and the verdict of every mistake.

A file is xz-compressed JSON. `kernel-gym forecast renew` makes it; the packaged one is `tables/ascendc.json.xz`.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Mapping, Sequence
from dataclasses import asdict, astuple, dataclass, field
from functools import lru_cache
from importlib import resources
from pathlib import Path
from types import MappingProxyType
from typing import Any

from kernel_gym.authors.apprentice.ascendc.schedule import Schedule
from kernel_gym.errors import ConfigError

VERSION = 1
#: The measurements that come with the package.
PACKAGED = "ascendc"


@dataclass(frozen=True)
class Point:
    """The verdict of a kernel without mistakes: its latency and profile, or the outcome if it was not feasible."""

    schedule: Schedule
    latency: float
    bottleneck: str = ""
    diagnosis: str = ""
    outcome: str = "feasible"


@dataclass(frozen=True)
class Message:
    """The verdict of a kernel with one mistake.

    `feedback` has `{line}` and `{code}` where the verifier names the line at fault and quotes it. `ratio` is how many
    times as long a kernel takes whose mistake is only slow.
    """

    outcome: str
    feedback: str
    cause: str = ""
    rule: str = ""
    case: str = ""
    ratio: float = 1.0


@dataclass
class Measurements:
    """Points by task and messages by mistake (`idiom:spelling`); `provenance` says commit, device and command."""

    language: str = "ascendc"
    provenance: dict[str, Any] = field(default_factory=dict)
    points: dict[str, list[Point]] = field(default_factory=dict)
    messages: dict[str, Message] = field(default_factory=dict)

    def save(self, path: Path) -> None:
        """Write the file; the same measurements give the same bytes."""
        data = {"version": VERSION, "language": self.language, "provenance": self.provenance}
        text = json.dumps(data | to_json(self.points, self.messages), indent=0)
        path.write_bytes(lzma.compress(text.encode(), preset=9))


def to_json(
    points: Mapping[str, Sequence[Point]] = MappingProxyType({}),
    messages: Mapping[str, Message] = MappingProxyType({}),
) -> dict[str, Any]:
    """Return points and messages as plain data; `from_json` reads them back."""
    return {
        "messages": {name: asdict(messages[name]) for name in sorted(messages)},
        "points": {task: [_plain(point) for point in points[task]] for task in sorted(points)},
    }


def from_json(data: Mapping[str, Any]) -> Measurements:
    """Return the measurements that `to_json` or a file holds."""
    return Measurements(
        data.get("language", "ascendc"),
        data.get("provenance", {}),
        {task: [_point(point) for point in points] for task, points in data["points"].items()},
        {mistake: Message(**message) for mistake, message in data["messages"].items()},
    )


def _plain(point: Point) -> list[Any]:
    schedule = [int(value) for value in astuple(point.schedule)]
    return [schedule, round(point.latency, 4), point.bottleneck, point.diagnosis, point.outcome]


def _point(data: list[Any]) -> Point:
    defaults = astuple(Schedule())
    values = (type(default)(value) for default, value in zip(defaults, data[0], strict=True))
    return Point(Schedule(*values), *data[1:])


@lru_cache(maxsize=4)
def load(name: str | Path = PACKAGED) -> Measurements:
    """Return measurements from a file, or the packaged ones by name.

    Args:
        name: A file that `kernel-gym forecast renew` wrote, or `ascendc`.

    Returns:
        The measurements.

    Raises:
        ConfigError: There is no such file, or it holds something else.
    """
    place = Path(str(name)) if Path(str(name)).suffix else resources.files(__package__) / "tables" / f"{name}.json.xz"
    if not place.is_file():
        raise ConfigError(f"there are no measurements {name}; name a file that `kernel-gym forecast renew` wrote")
    try:
        data = json.loads(lzma.decompress(place.read_bytes()))
        if data["version"] != VERSION:
            raise ConfigError(f"the measurements {name} have version {data['version']}, not {VERSION}: renew them")
        return from_json(data)
    except (lzma.LZMAError, ValueError, KeyError, TypeError) as error:
        raise ConfigError(
            f"{name} has no measurements ({type(error).__name__}): make it with `kernel-gym forecast renew`"
        ) from error
