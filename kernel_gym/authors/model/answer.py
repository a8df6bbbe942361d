"""The kernel in a model's answer.

Models answer with prose around the code, with several blocks, with a fence that is never closed because the answer was
cut, with a diff instead of a file, with no fence at all, or after thinking aloud. What can be read as one whole file is
taken; the verifier judges the rest.
"""

from __future__ import annotations

import re

_FENCE = re.compile(
    r"^[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_HUNK = re.compile(r"^@@.*?$", re.MULTILINE)


def kernel_source(answer: str, start: str = "") -> str:
    """The source in an answer; a diff is applied to `start`. Empty if there is none."""
    answer = answer.rpartition("</think>")[2]
    blocks = [match.group(3) for match in _FENCE.finditer(answer)]
    whole = [block for block in blocks if "kernel_launch" in block and not _is_diff(block)]
    if whole:
        return _clean(whole[-1])  # models correct themselves: the last whole file counts
    for block in [*reversed(blocks), answer]:
        if start and _is_diff(block) and (patched := apply_diff(start, block)) is not None:
            return _clean(patched)
    return _clean(_unfenced(answer))


def _is_diff(block: str) -> bool:
    return bool(_HUNK.search(block)) and bool(re.search(r"^[+-](?![+-])", block, re.MULTILINE))


def _unfenced(answer: str) -> str:
    """Code without a fence: from the first include to the last brace at the start of a line."""
    begin = re.search(r"^[ \t]*#[ \t]*include\b", answer, re.MULTILINE)
    if begin is None or "kernel_launch" not in answer[begin.start() :]:
        return ""
    code = answer[begin.start() :]
    ends = list(re.finditer(r"^\}[^\n]*$", code, re.MULTILINE))
    return code[: ends[-1].end()] if ends else code


def apply_diff(source: str, diff: str) -> str | None:
    """Apply a unified diff by what its hunks say (models get line numbers wrong); None if one fits nowhere."""
    lines = source.splitlines()
    at = 0
    for hunk in _HUNK.split(diff)[1:]:
        rows = [row for row in hunk.removeprefix("\n").splitlines() if row[:1] in (" ", "+", "-") or not row]
        while rows and not rows[-1]:
            rows.pop()
        old = [row[1:] for row in rows if row[:1] != "+"]
        new = [row[1:] for row in rows if row[:1] != "-"]
        found = next((i for i in range(at, len(lines) - len(old) + 1) if lines[i : i + len(old)] == old), None)
        if not rows or found is None:
            return None
        lines[found : found + len(old)] = new
        at = found + len(new)
    return "\n".join(lines) + "\n"


def _clean(source: str) -> str:
    """The file with one line end at its end; no NUL bytes, no carriage returns."""
    text = source.replace("\r\n", "\n").replace("\0", "").strip("\n")
    return text + "\n" if text.strip() else ""
