"""Finds the kernel in a model's answer.

Models write prose around the code, several blocks, a fence that is never closed because the answer was cut, a diff
instead of a file, code without a fence, or their thoughts before the answer. Whatever can be read as one whole file is
the kernel; the verifier does the rest.
"""

from __future__ import annotations

import re

from kernel_gym.kernel import form_of

_FENCE = re.compile(
    r"^[ \t]*(`{3,}(?!`)|~{3,}(?!~))[ \t]*([\w+#.-]*)[^\n]*\n(.*?)(?:^[ \t]*\1[ \t]*$|\Z)", re.MULTILINE | re.DOTALL
)
_HUNK = re.compile(r"^@@.*?$", re.MULTILINE)


def kernel_source(answer: str, start: str = "") -> str:
    """Return the kernel source in an answer.

    Args:
        answer: The model's reply.
        start: The source that a diff in the answer is applied to.

    Returns:
        The source; empty if the answer has none.
    """
    answer = answer.rpartition("</think>")[2]
    blocks = [match.group(3) for match in _FENCE.finditer(answer)]
    whole = [block for block in blocks if _is_kernel(block) and not _is_diff(block)]
    if whole:
        return _clean(whole[-1])  # models correct themselves: the last whole file counts
    for block in [*reversed(blocks), answer]:
        if start and _is_diff(block) and (patched := apply_diff(start, block)) is not None:
            return _clean(patched)
    return _clean(_unfenced(answer))


def _is_kernel(block: str) -> bool:
    return "kernel_launch" in block or form_of(block) == "bundle"


def _is_diff(block: str) -> bool:
    return bool(_HUNK.search(block)) and bool(re.search(r"^[+-](?![+-])", block, re.MULTILINE))


def _unfenced(answer: str) -> str:
    """Return code without a fence: a bundle, or from the first include to the last brace at the start of a line."""
    if form_of(answer) == "bundle":
        return answer[re.search(r"^\w+_src[ \t]*=", answer, re.MULTILINE).start() :]  # type: ignore[union-attr]
    begin = re.search(r"^[ \t]*#[ \t]*include\b", answer, re.MULTILINE)
    if begin is None or "kernel_launch" not in answer[begin.start() :]:
        return ""
    code = answer[begin.start() :]
    ends = list(re.finditer(r"^\}[^\n]*$", code, re.MULTILINE))
    return code[: ends[-1].end()] if ends else code


def apply_diff(source: str, diff: str) -> str | None:
    """Return the source with a unified diff applied; None if a hunk fits nowhere.

    Hunks are placed by their text, since models get line numbers wrong.
    """
    lines = source.splitlines()
    at = 0
    for hunk in _HUNK.split(diff)[1:]:
        rows = [row for row in hunk.removeprefix("\n").splitlines() if row[:1] in (" ", "+", "-") or not row]
        while rows and not rows[-1]:
            rows.pop()
        old = [row[1:] for row in rows if row[:1] != "+"]
        new = [row[1:] for row in rows if row[:1] != "-"]
        place = next((i for i in range(at, len(lines) - len(old) + 1) if lines[i : i + len(old)] == old), None)
        if not rows or place is None:
            return None
        lines[place : place + len(old)] = new
        at = place + len(new)
    return "\n".join(lines) + "\n"


def _clean(source: str) -> str:
    """Return the source with one newline at its end, without NUL bytes and carriage returns."""
    text = source.replace("\r\n", "\n").replace("\0", "").strip("\n")
    return text + "\n" if text.strip() else ""
