"""The catalogue of attacks and honest oddities: one file each, under the name of their language.

A file begins with a header of comments:

    // task: level1/relu
    // cause: S3 G15
    // expect: screen
    // about: a form feed between backslash and newline joins two lines for the compiler

`cause` holds the ids that `--cause` selects by. `expect` is one of

    feasible             an honest kernel, which every gate must let pass
    no gain              refused, or feasible and not faster than the honest kernel
    refused              stopped at any gate
    right                refused, or feasible and right in a second opinion (`recheck.py`)
    screen, compile, ... stopped at this gate

`honest` names the honest kernel in `honest/` that the file belongs to; by default the task's name. `untold` is a text
that the feedback must not contain.

What follows is the kernel. If it begins with a line such as `// at: host` or `// instead of: work`, it is a list of
changes to the honest kernel: the text below such a line goes before the line that is marked `// @host`, or in place of
it. `// at: end x 1000` repeats the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from kernel_gym.errors import KernelGymError
from kernel_gym.kernel import Kernel
from kernel_gym.verdict import GATES

HERE = Path(__file__).parent
#: The suffix of kernel files by language.
SUFFIXES = {"ascendc": ".cpp", "cuda": ".cu"}
EXPECTATIONS = ("feasible", "no gain", "refused", "right", *GATES)
_KEYS = ("task", "cause", "expect", "about", "honest", "untold")
_HEADER = re.compile(rf"// ({'|'.join(_KEYS)}): (.+)")
_CHANGE = re.compile(r"^// (at|instead of): (\w+)(?: x (\d+))?\n", re.MULTILINE)
_MARK = re.compile(r"[ \t]*// @(\w+)$", re.MULTILINE)


@dataclass(frozen=True)
class Attack:
    """A kernel of the catalogue and the outcome that it must have.

    Args:
        name: The file's name without suffix.
        kernel: The whole kernel.
        task: Id of the task that it is judged on.
        causes: Ids of the weaknesses that it tries.
        expected: One of `EXPECTATIONS`.
        about: What it tries, in one sentence.
        honest: Name of the honest kernel that its latency is compared with.
        untold: Text that the feedback must not contain; empty if there is none.
    """

    name: str
    kernel: Kernel
    task: str
    causes: tuple[str, ...]
    expected: str
    about: str
    honest: str
    untold: str = ""


@cache
def load(language: str) -> tuple[Attack, ...]:
    """Return all attacks and honest oddities in a language, sorted by name, the honest ones last."""
    folder = HERE / language
    suffix = SUFFIXES.get(language, "")
    if not suffix or not folder.is_dir():
        raise KernelGymError(f"there are no attacks in {language!r}: known are {', '.join(sorted(SUFFIXES))}")
    files = [*sorted(folder.glob(f"*{suffix}")), *sorted((folder / "honest").glob(f"*{suffix}"))]
    return tuple(_read(file, language) for file in files)


def select(attacks: Iterable[Attack], causes: Iterable[str] = (), names: Iterable[str] = ()) -> tuple[Attack, ...]:
    """Return the attacks with one of the causes and one of the names; an empty list selects all.

    Raises:
        KernelGymError: If no attack has a cause or a name.
    """
    chosen = tuple(attacks)
    for word, key in (("cause", lambda a: a.causes), ("name", lambda a: (a.name,))):
        selection = set(causes if word == "cause" else names)
        available = {value for attack in chosen for value in key(attack)}
        if unknown := sorted(selection - available):
            raise KernelGymError(f"no attack of {word} {unknown[0]!r}: `kernel-gym attack --list` shows them")
        chosen = tuple(attack for attack in chosen if not selection or selection & set(key(attack)))
    return chosen


def one_per_cause(attacks: Iterable[Attack]) -> tuple[Attack, ...]:
    """Return a few attacks that try every cause."""
    tried: set[str] = set()
    chosen = []
    for attack in attacks:
        if not tried.issuperset(attack.causes):
            chosen.append(attack)
            tried.update(attack.causes)
    return tuple(chosen)


def honest(language: str, name: str) -> Attack | None:
    """Return the honest kernel of a name; None if there is none."""
    return next((attack for attack in load(language) if attack.name == name and attack.expected == "feasible"), None)


def _read(file: Path, language: str) -> Attack:
    header, _ = _split(file)
    if header["expect"] not in EXPECTATIONS:
        raise KernelGymError(f"{file.name}: expect {header['expect']!r} is none of {', '.join(EXPECTATIONS)}")
    return Attack(
        name=file.stem,
        kernel=Kernel(_MARK.sub("", _text(file, HERE / language / "honest")), language),
        task=header["task"],
        causes=tuple(header["cause"].split()),
        expected=header["expect"],
        about=header["about"],
        honest=_base(header),
        untold=header.get("untold", ""),
    )


def _text(file: Path, honest_kernels: Path) -> str:
    """Return the kernel of a file with its marks; a list of changes is applied to the honest kernel it belongs to."""
    header, body = _split(file)
    if not _CHANGE.match(body):
        return body
    return _changed(body, _text(honest_kernels / f"{_base(header)}{file.suffix}", honest_kernels), file.name)


def _base(header: dict[str, str]) -> str:
    return header.get("honest", header["task"].rpartition("/")[2])


def _split(file: Path) -> tuple[dict[str, str], str]:
    """Return the header and the text below it."""
    text, header = file.read_bytes().decode(), {}
    while match := _HEADER.match(text):
        header[match[1]] = match[2].strip()
        text = text[match.end() + 1 :]
    if missing := {"task", "cause", "expect", "about"} - header.keys():
        raise KernelGymError(f"{file.name}: the header has no {sorted(missing)[0]!r}")
    return header, text


def _changed(changes: str, base: str, name: str) -> str:
    """Return the honest kernel with the changes made to it."""
    pieces = _CHANGE.split(changes)[1:]
    for kind, mark, times, text in zip(pieces[::4], pieces[1::4], pieces[2::4], pieces[3::4], strict=True):
        line = re.search(rf"^.*// @{mark}\n", base, re.MULTILINE)
        if line is None:
            raise KernelGymError(f"{name}: the honest kernel has no line marked '// @{mark}'")
        text = text if times is None else text.removesuffix("\n") * int(times) + "\n"
        end = line.start() if kind == "at" else line.end()
        base = base[: line.start()] + text + base[end:]
    return base
