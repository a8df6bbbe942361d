"""The two items that an attempt adds to the memory: its trace (kernel and verdict) and its experience (in words)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from difflib import SequenceMatcher
from functools import lru_cache
from itertools import islice

from kernel_gym.errors import BundleError
from kernel_gym.hardware.bundles.text import read
from kernel_gym.kernel import Kernel, form_of
from kernel_gym.memory.item import Kind, MemoryItem, Stage
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Unjudged, Verdict

Lines = tuple[str, ...]

#: The most calls and changed places that an experience quotes: it must stay short.
QUOTED_CALLS = 10
QUOTED_CHANGES = 6
#: The longest call that is joined from several lines, and the most pairs of equal lines by which sources are aligned.
LONGEST_CALL, MOST_PAIRS = 4000, 1_000_000

# A call on the device begins with a capital: `Exp(...)`, `queue.AllocTensor<float>()`.
_CALL = re.compile(r"(?<![\w:])(?:AscendC::)?([A-Z]\w*)(?:<[\w:, ]*>)?\s*\(")
# Names that a source defines itself: types, macros, and functions, which have a type before the name.
_OWN_TYPE = re.compile(r"(?:\bclass|\bstruct|#[ \t]*define)\s+(\w+)")
_ANGLED = r"<(?:[^<>(){};]|<[^<>(){};]*>)*>"
_OWN_FUNCTION = re.compile(
    rf"(?:^|[{{}};])\s*(?:template\s*{_ANGLED}\s*)?"
    rf"(?:(?!(?:return|else|do|case|default|throw|new)\b)[\w:\"]+(?:{_ANGLED})?[\s*&]+)+(?:\w+::)*~?([A-Z]\w*)\s*\("
)
# A comment of one line, the begin of a longer one, a directive.
_ASIDE = re.compile(r"//[^\n]*|/\*|^[ \t]*#(?:[^\\\n]|\\.)*", re.DOTALL | re.MULTILINE)
_LITERAL = re.compile(r"\"(?:\\.|[^\"\\])*\"|'(?:\\.|[^'\\])'")
_USUAL = frozenset(
    ("GetBlockIdx", "GetBlockNum", "SetGlobalBuffer", "InitBuffer", "AllocTensor", "FreeTensor", "EnQue", "DeQue")
)
_CAUSES = {
    "fault": "broke a rule of the device",
    "timeout": "did not finish",
    "refused": "refused a shape that counts",
    "mismatch": "computed something else than the reference",
}


def trace(
    task: Task,
    kernel: Kernel,
    verdict: Verdict,
    stage: Stage,
    *,
    operators: tuple[str, ...] = (),
    start: MemoryItem | None = None,
) -> MemoryItem:
    """Return the trace of an attempt.

    Args:
        task: The task.
        kernel: The attempt's kernel.
        verdict: Its verdict.
        stage: The stage of the attempt.
        operators: ATen operators of the task.
        start: The start point that the kernel was refined from, or the failed one that it mends; None for a new draft.

    Returns:
        A trace that is not in the bank yet.
    """
    return MemoryItem(
        kind=Kind.TRACE,
        title=title(task.id, kernel.source, verdict, start),
        text=f"{'#' if kernel.form == 'bundle' else '//'} {verdict_line(verdict)}\n{kernel.source}",
        code=kernel.source,
        verdict=verdict,
        task=task.id,
        category=task.category,
        operators=operators,
        stage=stage,
        parent=start.id if start is not None else None,
        language=kernel.language,
    )


def experience(trace: MemoryItem, start: MemoryItem | None = None) -> MemoryItem:
    """Return the experience of an attempt: what worked or failed, and why.

    Args:
        trace: The attempt's trace. If it is not in the bank yet, the experience refers to it as the item added just
            before (`bank.PREVIOUS`).
        start: The start point that the kernel was refined from, or the failed one that it mends; None for a new draft.

    Returns:
        An experience that is not in the bank yet.

    Raises:
        ValueError: If the trace has no verdict.
    """
    if trace.verdict is None:
        raise ValueError(f"trace {trace.title!r} has no verdict to learn from")
    paragraphs = [
        _outcome(trace, trace.verdict, start),
        *(_changes(start.code, trace.code) if start is not None else ()),
        *_lesson(trace, trace.verdict, start),
    ]
    return MemoryItem(
        kind=Kind.EXPERIENCE,
        title=f"{'what worked' if trace.feasible else 'what failed'}: {trace.title}",
        text="\n".join(paragraphs),
        verdict=trace.verdict,
        task=trace.task,
        category=trace.category,
        operators=trace.operators,
        stage=trace.stage,
        source=trace.id,
        language=trace.language,
    )


def verdict_line(verdict: Verdict) -> str:
    """Return a verdict in one line, the outcome first."""
    feedback = _first_line(verdict.feedback)
    match verdict:
        case Feasible():
            about = verdict.profile.diagnosis or verdict.profile.bottleneck
            return f"FEASIBLE, {verdict.latency:.2f} us" + (f"; {_first_line(about)}" if about else "")
        case Uncompilable():
            return f"DOES NOT COMPILE{_at(verdict.line)}: {feedback}"
        case Incorrect():
            where = f" at case {verdict.case}" if verdict.case else ""
            return f"INCORRECT ({_CAUSES[verdict.cause]}{where}): {feedback}"
        case Cheated():
            return f"REJECTED as cheating (rule {verdict.rule or 'unnamed'}, found at {verdict.gate}): {feedback}"
        case Unjudged():
            return f"NOT JUDGED: {feedback}"


def title(task: str, source: str, verdict: Verdict, start: MemoryItem | None) -> str:
    """Return the title of a trace: a draft and its outcome, or what was refined or repaired and its outcome."""
    outcome = f"{verdict.latency:.2f} us" if isinstance(verdict, Feasible) else verdict.outcome
    if start is None:
        return f"{task}, draft, {outcome}"
    pairs = _differences(start.code, source)
    old, new = next(((old, new) for old, new in pairs if old and new), pairs[0] if pairs else ((), ()))
    change = " -> ".join(f"`{lines[0][:70]}`" for lines in (old, new) if lines) or "nothing changed"
    more = f" and {len(pairs) - 1} more places" if len(pairs) > 1 else ""
    return f"{task}, {'refined' if start.feasible else 'repaired'}, {outcome}: {change}{more}"


def _outcome(trace: MemoryItem, verdict: Verdict, start: MemoryItem | None) -> str:
    line = f"{trace.task} ({trace.category or 'other'}), {trace.stage or 'draft'}: {verdict_line(verdict)}"
    before = start.verdict.latency_us if start is not None and start.verdict is not None else None
    if verdict.latency_us is None or before is None:
        return line
    ratio = before / verdict.latency_us
    judgement = "faster" if ratio > 1.005 else "slower" if ratio < 0.995 else "no faster"
    return f"{line}\nThe change made it {judgement}: {before:.2f} us -> {verdict.latency_us:.2f} us, {ratio:.2f}x."


def _lesson(trace: MemoryItem, verdict: Verdict, start: MemoryItem | None) -> list[str]:
    if isinstance(verdict, Feasible):
        refined = start is not None and start.feasible
        return _bottlenecks(verdict, start) + ([] if refined else _calls(_device_code(trace.code)))
    advice = verdict.feedback.strip().splitlines()[1:4]
    return [*_culprit(trace.code, verdict), *(f"  {line.strip()}" for line in advice if line.strip())]


def _device_code(code: str) -> str:
    """Return the text that runs on the device: a kernel's file, or the kernel of a bundle."""
    try:
        return read(code)["kernel_src"] if form_of(code) == "bundle" else code
    except BundleError:
        return code


def _culprit(code: str, verdict: Verdict) -> list[str]:
    line = verdict.line if isinstance(verdict, Uncompilable | Incorrect) else None
    lines = code.splitlines()
    if line is None or not 1 <= line <= len(lines):
        return []
    rule = f", rule {verdict.rule}" if isinstance(verdict, Incorrect) and verdict.rule else ""
    return [f"The line at fault (line {line}{rule}):", f"  {lines[line - 1].strip()}"]


def _bottlenecks(verdict: Feasible, start: MemoryItem | None) -> list[str]:
    now = verdict.profile.bottleneck
    before = start.verdict.profile.bottleneck if start is not None and isinstance(start.verdict, Feasible) else ""
    if not before or not now:
        return []
    return [f"The bottleneck was {before} and is {now}." if before != now else f"The bottleneck is still {now}."]


def _calls(code: str) -> list[str]:
    """Quote the first use of each API name as verified spelling; names that every kernel has come last."""
    lines = [*_joined(code)]
    own = {*_OWN_TYPE.findall(code), *(name for line in lines for name in _OWN_FUNCTION.findall(line))}
    uses: dict[str, str] = {}
    for line in lines:
        for name in () if _OWN_FUNCTION.match(line) else _CALL.findall(line):
            if name not in own:
                uses.setdefault(name, line)
    ranked = sorted(uses, key=lambda name: name in _USUAL)
    quoted = list(islice(dict.fromkeys(uses[name] for name in ranked), QUOTED_CALLS))
    return ["Calls as used here:", *(f"  {line}" for line in quoted)] if quoted else []


def _joined(code: str) -> Iterator[str]:
    """Yield the lines of a source without comments and directives; a call over several lines becomes one."""
    held = ""
    for line in _without_asides(code).splitlines():
        held = f"{held} {line.strip()}".strip()
        bare = _LITERAL.sub("", held)
        if bare.count("(") <= bare.count(")") or len(held) > LONGEST_CALL:
            yield held
            held = ""


def _without_asides(code: str) -> str:
    """Return a source without comments and directives; a comment that nothing ends is none."""
    parts, begin, last = list[str](), 0, code.rfind("*/")
    while (aside := _ASIDE.search(code, begin)) is not None:
        end = aside.end()
        if aside.group() != "/*":
            parts.append(code[begin : aside.start()])
        elif end <= last:
            parts.append(code[begin : aside.start()])
            end = code.index("*/", end) + 2
        else:
            parts.append(code[begin:end])
        begin = end
    return "".join([*parts, code[begin:]])


def _changes(before: str, after: str) -> list[str]:
    pairs = _differences(before, after)
    if not pairs:
        return ["The kernel is the same as its start point."]
    lines = [f"  {sign} {line}" for old, new in pairs for sign, some in (("-", old), ("+", new)) for line in some]
    left = len(lines) - 2 * QUOTED_CHANGES
    return ["What changed:", *lines[: 2 * QUOTED_CHANGES], *([f"  ... and {left} more lines"] if left > 0 else [])]


@lru_cache(maxsize=16)
def _differences(before: str, after: str) -> tuple[tuple[Lines, Lines], ...]:
    """Return the places where two sources differ, as lines removed and lines added, without surrounding blanks."""
    # Cached: both the title of a trace and its experience need it.
    old, new = (tuple(line.strip() for line in source.splitlines() if line.strip()) for source in (before, after))
    counts = Counter(old), Counter(new)
    if sum(count * counts[1][line] for line, count in counts[0].items()) > MOST_PAIRS:
        return _middles(old, new)  # aligning them would take hours
    steps = SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
    return tuple((old[i:j], new[k:m]) for tag, i, j, k, m in steps if tag != "equal")


def _middles(old: Lines, new: Lines) -> tuple[tuple[Lines, Lines], ...]:
    """Return what is left of two sources without the lines that both begin and end with."""
    shortest = min(len(old), len(new))
    head = next((i for i in range(shortest) if old[i] != new[i]), shortest)
    tail = next((i for i in range(shortest - head) if old[-1 - i] != new[-1 - i]), shortest - head)
    pair = old[head : len(old) - tail], new[head : len(new) - tail]
    return (pair,) if any(pair) else ()


def _first_line(text: str) -> str:
    return next((line.strip() for line in text.splitlines() if line.strip()), "no words")


def _at(line: int | None) -> str:
    return f" at line {line}" if line is not None else ""
