"""Composes the request to a model, within a budget of tokens.

The prompt always has the format and the task, and in refining the start point with its profile and the results of the
latest attempts from it. Then follow the picked memories, in the order of the picks, and the API pages, as far as they
fit. A memory that does not fit is cut, with a mark, if at least half of it fits; otherwise it is left out.

A start point that failed is to be repaired: the prompt has its code and what the verifier said in place of a profile.

Prompts are data with versions, so that one can be measured against another. Version 2 also asks for a repair if a
failed attempt at the task is among the memories, and gives code in memories the names of the example. Version 3 gives
these names to the API pages too, leaves out the pages that repeat the system prompt, and says what to do with the
numbers of a task. Version 4 is version 3 with a shorter example and shorter rules for Ascend C, for machines that read
and write slowly. A version has the files in which it differs from the one before.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

import jinja2
import yaml

from kernel_gym.authors.contract import Context, Note, StartPoint
from kernel_gym.kernel import Form, form_of
from kernel_gym.llm.endpoint import CHARACTERS_PER_TOKEN
from kernel_gym.tasks.specs import Signature
from kernel_gym.tasks.task import Task
from kernel_gym.verdict import Feasible

#: How many earlier attempts from the same start point are listed; the latest ones are.
CHILDREN = 12
_CUT = "\n[cut]"
_ROWS, _PAGES = "rows_cuda.cu", "pages.yaml"
#: A line of code that is a call.
_CALL = re.compile(r"\s*\w+(<[\w:, ]+>)?\(.*\);")
_FENCES = {"file": "cpp", "bundle": "python"}
#: Characters that the templates put around a memory.
_FRAME = 20


@dataclass(frozen=True)
class _Section:
    """One memory in the prompt."""

    heading: str
    text: str


#: For each language its system prompt and its example kernel; those for bundles.
LANGUAGES = {"ascendc": ("system.md", "example.cpp"), "cuda": ("system_cuda.md", "example_cuda.cu")}
BUNDLE = ("system_bundle.md", "example_bundle.txt")
#: The versions of the prompts, folders of `prompts/`, and the one that authors use by default.
VERSIONS = (1, 2, 3, 4)
VERSION = 1


@dataclass(frozen=True)
class _Failed:
    """A failed attempt to repair: its code, what the verifier said, and the memory that it is, if it is one."""

    code: str
    feedback: str
    note: Note | None = None


def messages(
    task: Task,
    context: Context,
    start: StartPoint | None,
    budget: int,
    language: str = "ascendc",
    version: int = VERSION,
    submission: Form = "file",
) -> list[dict[str, str]]:
    """Return the messages of one request.

    Args:
        task: The task to write a kernel for.
        context: The notes to show, the most important first.
        start: The kernel to refine, or to repair if it failed; None to draft a new one.
        budget: About how many tokens the messages may have.
        language: The language to write, a key of `LANGUAGES`.
        version: The version of the prompts, one of `VERSIONS`.
        submission: The form of the kernel, one file or a bundle.

    Returns:
        The system message and the user message.
    """
    version = 1 if submission == "bundle" else version
    system_file, example = BUNDLE if submission == "bundle" else LANGUAGES[language]
    system = _template(system_file, version).render(
        example=_file(example, version).rstrip(), rows=_file(_ROWS, version).rstrip() if version > 1 else ""
    )
    context = tuple(_pages(context, language)) if version > 2 else context
    context = tuple(replace(note, text=_renamed(note.text, language, version)) for note in context)
    failed = _failed(context, start, language, version)
    template = _template("repair.md" if failed else "refine.md" if start else "draft.md", version)
    fixed = {
        "task": task,
        "shapes": list(_shapes(task)),
        "start": start,
        "children": start.children[-CHILDREN:] if start else (),
        "diagnosis": _diagnosis(start),
        "failed": failed,
        "fence": _FENCES[start.kernel.form or "file"] if start else "",
    }
    base = len(system) + len(template.render(**fixed, notes=[]))
    room = int(budget * CHARACTERS_PER_TOKEN) - base
    shown = tuple(note for note in context if not failed or note is not failed.note)
    user = template.render(**fixed, notes=list(_fitting(shown, room)))
    return [{"role": "system", "content": system}, {"role": "user", "content": user}]


def _failed(context: Context, start: StartPoint | None, language: str, version: int) -> _Failed | None:
    """Return the attempt to repair: a start point that failed; in version 2 also the first failed attempt shown."""
    if start is not None:
        code = _renamed(start.kernel.source, language, version).rstrip()
        return None if start.verdict.feasible else _Failed(code, start.verdict.feedback.strip())
    for note in context if version > 1 else ():
        if note.kind == "trace" and note.same_task and note.code and note.verdict and not note.verdict.feasible:
            return _Failed(_renamed(note.code, language, version).rstrip(), note.verdict.feedback.strip(), note)
    return None


def _renamed(text: str, language: str, version: int) -> str:
    """Return a text in which code has the names of the example."""
    for pattern, replacement in _names(version).get(language, ()):
        text = pattern.sub(replacement, text)
    return text


def _pages(context: Context, language: str) -> Iterator[Note]:
    """Yield the notes without the API pages that repeat the system prompt, the others with calls in its names."""
    table = yaml.safe_load(_file(_PAGES, VERSIONS[-1]))
    for note in context:
        title, *lines = note.text.splitlines() or [""]
        if note.kind != "api":
            yield note
        elif title.strip() not in table["left_out"][language]:
            lines = [_call(line, table["names"][language]) for line in lines]
            yield replace(note, text="\n".join((title, *lines)))


def _call(line: str, names: Sequence[tuple[str, str]]) -> str:
    """Return a line with other names if it is a call."""
    if _CALL.match(line):
        for pattern, replacement in names:
            line = re.sub(pattern, replacement, line)
    return line


@cache
def _names(version: int) -> dict[str, list[tuple[re.Pattern[str], str]]]:
    if version == 1:
        return {}
    table = yaml.safe_load(_file("names.yaml", version))
    return {language: [(re.compile(rule[0]), rule[1]) for rule in rules] for language, rules in table.items()}


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
        fence = _FENCES[form_of(note.code)]
        yield _Section(heading, f"```{fence}\n{text}\n```" if note.kind == "trace" else text)


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
def prompts_digest(version: int = VERSION, submission: Form = "file") -> str:
    """Return a hash of the prompt files of a version for a form of kernels; the repair of version 1 is not in it."""
    version = 1 if submission == "bundle" else version
    pairs = [BUNDLE] if submission == "bundle" else LANGUAGES.values()
    names = ["draft.md", "refine.md", *(name for pair in pairs for name in pair)]
    if version > 1:
        names += ["repair.md", _ROWS, "names.yaml", *([_PAGES] if version > 2 else [])]
    return hashlib.sha256("\0".join(_file(name, version) for name in names).encode()).hexdigest()[:16]


@cache
def _template(name: str, version: int) -> jinja2.Template:
    environment = jinja2.Environment(undefined=jinja2.StrictUndefined, keep_trailing_newline=True)
    return environment.from_string(_file(name, version))


@cache
def _file(name: str, version: int) -> str:
    path = files("kernel_gym.authors.model").joinpath("prompts", str(version), name)
    return path.read_text() if path.is_file() or version == 1 else _file(name, version - 1)
