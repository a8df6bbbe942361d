"""Composes the request to a model, within a budget of tokens.

The prompt always has the format and the task, and in refining the start point with its profile and the results of the
latest attempts from it. Then follow the picked memories, in the order of the picks, and the API pages, as far as they
fit. A memory that does not fit is cut, with a mark, if at least half of it fits; otherwise it is left out.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

import jinja2

from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.llm.endpoint import CHARACTERS_PER_TOKEN
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible

#: How many earlier attempts from the same start point are listed; the latest ones are.
CHILDREN = 12
_CUT = "\n[cut]"
#: Characters that the templates put around a memory.
_FRAME = 20


@dataclass(frozen=True)
class _Section:
    """One memory in the prompt."""

    heading: str
    text: str


#: For each language its system prompt and its example kernel.
LANGUAGES = {"ascendc": ("system.md", "example.cpp"), "cuda": ("system_cuda.md", "example_cuda.cu")}


def messages(
    task: Task, context: Context, start: StartPoint | None, budget: int, language: str = "ascendc"
) -> list[dict[str, str]]:
    """Return the messages of one request.

    Args:
        task: The task to write a kernel for.
        context: The notes to show, the most important first.
        start: The kernel to refine; None to draft a new one.
        budget: About how many tokens the messages may have.
        language: The language to write, a key of `LANGUAGES`.

    Returns:
        The system message and the user message.
    """
    system_file, example = LANGUAGES[language]
    system = _template(system_file).render(example=_file(example).rstrip())
    template = _template("draft.md" if start is None else "refine.md")
    fixed = {
        "task": task,
        "shapes": list(_shapes(task)),
        "start": start,
        "children": start.children[-CHILDREN:] if start else (),
        "diagnosis": _diagnosis(start),
    }
    base = len(system) + len(template.render(**fixed, notes=[]))
    room = int(budget * CHARACTERS_PER_TOKEN) - base
    user = template.render(**fixed, notes=list(_fitting(context, room)))
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _fitting(context: Context, room: int) -> Iterator[_Section]:
    """Yield the notes that fit into `room` characters, API pages last."""
    ordered = [note for note in context if note.kind != "api"] + [note for note in context if note.kind == "api"]
    for note in ordered:
        heading, text = _heading(note), note.text.strip()
        space = room - len(heading) - len(_CUT) - _FRAME
        if len(text) > space:
            if space < len(text) / 2:
                continue
            text = text[:space] + _CUT
        room -= len(heading) + len(text) + _FRAME
        yield _Section(heading, f"```cpp\n{text}\n```" if note.kind == "trace" else text)


def _heading(note: Note) -> str:
    if note.kind == "api":
        return "API"
    if note.kind == "practice":
        return "Good practice"
    if note.kind == "experience":
        return "Experience"
    whose = "An earlier attempt at this operator" if note.same_task else "A kernel for another operator"
    return f"{whose}: {note.verdict.outcome if note.verdict else 'not judged'}"


def _shapes(task: Task) -> Iterator[str]:
    """Yield the public shapes and the shape that is timed; an author may know no others."""
    for case in (task.public, task.timing):
        signature = task.instance(case).signature
        yield f"{'Timed' if case.role == 'timing' else 'For example'}: {_describe(signature)}"


def _describe(signature: Signature) -> str:
    tensors = [f"{spec.name or 'input'} {spec.dtype}{list(spec.shape)}" for spec in signature.inputs]
    outputs = [f"{spec.dtype}{list(spec.shape)}" for spec in signature.outputs]
    extra = [f"ints {list(signature.ints)}"] if signature.ints else []
    extra += [f"floats {list(signature.floats)}"] if signature.floats else []
    return "; ".join(["inputs " + ", ".join(tensors), "outputs " + ", ".join(outputs), *extra])


def _diagnosis(start: StartPoint | None) -> str:
    return start.verdict.profile.diagnosis if start and isinstance(start.verdict, Feasible) else ""


@cache
def prompts_digest() -> str:
    """Return a hash of all prompt files."""
    names = ("draft.md", "refine.md", *(name for pair in LANGUAGES.values() for name in pair))
    return hashlib.sha256("\0".join(_file(name) for name in names).encode()).hexdigest()[:16]


@cache
def _template(name: str) -> jinja2.Template:
    return jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True).from_string(_file(name))


@cache
def _file(name: str) -> str:
    return files("kernel_gym.authors.model").joinpath("prompts", name).read_text()
