"""What went wrong in an answer: the kind of its first mistake, and the name that it is about.

The kinds are those that people sort failed kernels into. They are read from the verdict, so equal verdicts give equal
mistakes.
"""

from __future__ import annotations

import re

from kernel_gym.authors.contract import Note
from kernel_gym.kernel import Kernel
from kernel_gym.llm.endpoint import Reply
from kernel_gym.verdict import Cheated, Feasible, Incorrect, Uncompilable, Verdict

#: Kinds of compile errors, by what the compilers say; the first that fits counts.
_COMPILE = (
    ("undeclared name", re.compile(r"was not declared|undeclared identifier|is undefined|has not been declared")),
    ("unknown member", re.compile(r"has no (?:non-static data )?member|no member named")),
    ("wrong arguments", re.compile(r"no matching function|too (?:few|many) arguments|cannot convert|no instance of")),
    ("tensor used as a number", re.compile(r"no match for .operator|no operator|invalid operands|no suitable conver")),
    ("unknown type", re.compile(r"does not name a type|unknown type name|is not a template|not a class or namespace")),
    ("syntax", re.compile(r"expected|stray|unterminated|missing terminat")),
    ("missing kernel_launch", re.compile(r"kernel_launch")),
)
_QUOTED = re.compile(r"'([\w:~<>]+)'|\"([\w:]+)\"")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w{2,}")
_NUMBERED = re.compile(r"^line \d+: ")


def mistake(verdict: Verdict, kernel: Kernel, reply: Reply | None = None) -> str:
    """Return the kind of an answer's first mistake.

    Args:
        verdict: The verdict on the answer.
        kernel: The kernel in the answer.
        reply: The reply, which says whether the answer was cut off.

    Returns:
        The kind; empty for a feasible kernel.
    """
    cut = reply is not None and reply.finish == "length"
    if not kernel.source.strip():
        return "cut off" if cut else "no kernel"
    match verdict:
        case Feasible():
            return ""
        case Cheated():
            return f"refused: {verdict.rule}"
        case Uncompilable():
            return "cut off" if cut else _compile_kind(verdict.feedback)
        case Incorrect():
            return f"fault: {verdict.rule}" if verdict.cause == "fault" and verdict.rule else verdict.cause
    return "unjudged"


def _compile_kind(feedback: str) -> str:
    # What is behind the bar is the author's line.
    message = feedback.splitlines()[0].partition(" | ")[0] if feedback else ""
    return next((kind for kind, pattern in _COMPILE if pattern.search(message)), "other compile error")


def same_mistake_key(verdict: Verdict, kernel: Kernel, reply: Reply | None = None) -> str:
    """Return a text that is equal for two answers with the same mistake: its kind and the name that it is about."""
    kind = mistake(verdict, kernel, reply)
    if not isinstance(verdict, Uncompilable) or not kind:
        return kind
    message = _NUMBERED.sub("", verdict.feedback.partition("\n")[0].partition(" | ")[0])
    quoted = _QUOTED.search(message)
    return f"{kind}: {next(filter(None, quoted.groups()))}" if quoted else kind


def spellings(text: str) -> frozenset[str]:
    """Return the identifiers of a text."""
    return frozenset(_IDENTIFIER.findall(text))


def failed_note(kernel: Kernel, verdict: Verdict, with_message: bool) -> Note:
    """Return a failed attempt at the task itself as a note, with the verifier's message or without."""
    if not with_message:
        return Note("trace", kernel.source, kernel.source, None, same_task=True)
    commented = "\n".join(f"// {line}" for line in verdict.feedback.strip().splitlines())
    return Note("trace", f"{commented}\n{kernel.source}", kernel.source, verdict, same_task=True)
