"""Tasks from problem files: KernelBench, MultiKernelBench or a user's own.

Such a file has one set of sizes, often of several gigabytes. Check sizes are derived by halving its constants as long
as the module still works, hidden sizes by giving constants odd values at which the same parameters still work. The
timing case keeps the original sizes up to a limit. The task's flags say what was changed.
"""

from __future__ import annotations

import ast
import hashlib
import json
import os
import re
import time
import warnings
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_gym.disk_cache import cache_folder, write_whole
from kernel_gym.errors import ProblemFileDied, TaskError, TaskWarning
from kernel_gym.suites.definitions import CATEGORIES
from kernel_gym.tasks.size_constants import find_sizes, parse_module
from kernel_gym.tasks.specs import Case, Signature
from kernel_gym.tasks.task import Task

if TYPE_CHECKING:
    from kernel_gym.tasks.confined_instance import ConfinedInstance
    from kernel_gym.tasks.instance import ModuleInstance

#: Environment variable: `1` to run problem files in this process, without confinement.
TRUST = "KERNEL_GYM_TRUST"
#: Bytes of all tensors together at the public case and at the timing case.
CHECK_BYTES, TIMING_BYTES = 256 << 10, 256 << 20
#: A hidden case may be somewhat larger than the public one.
HIDDEN_BYTES = 2 * CHECK_BYTES
#: Constants below this are kernel sizes, strides, axes: never halved.
SMALLEST = 8
#: What a problem file defines.
FORM = ("Model", "get_inputs", "get_init_inputs")
#: Names of constants that are settings of the module, whatever their value.
SETTINGS = re.compile(r"kernel|stride|padding|dilation|group|num_layers|heads", re.IGNORECASE)
#: Seconds that the derivation of a file's cases may take in all, and size constants that are looked at.
DERIVE_SECONDS, MOST_SIZES = 600.0, 200
#: A prime is looked for near sizes up to this.
LARGEST_VARIED = 1 << 31
_COMPOUND = (ast.If, ast.Try, ast.With)
#: Increased when cases are derived differently, so that cached cases of before are not used.
VERSION = 6


def load_file(path: Path, trust: bool = False) -> Task:
    """Load the task of a problem file; a TaskError says why a file cannot be loaded.

    The file is code: it runs in a confined process, or in this one with `trust` or `$KERNEL_GYM_TRUST`.
    """
    trust = trust or os.environ.get(TRUST) == "1"
    if not path.is_file():
        raise TaskError(f"no problem file {str(path)!r}")
    source = _text(path)
    check_form(source)
    cases, flags = _cases(source, trust)
    number = re.match(r"(\d+)_", path.stem)
    return Task(
        id=str(path),
        category=_category(path),
        source=source,
        cases=cases,
        description=re.sub(r"[_\s]+", " ", re.sub(r"^\d+_", "", path.stem)).strip(),
        level=_level(path),
        number=int(number[1]) if number else None,
        flags=flags,
        confined=not trust,
    )


def load_all(folder: Path, trust: bool = False) -> Iterator[Task | TaskError]:
    """Yield, for every problem file of a folder, its task or the error that says why it has none; by number."""
    for path in sorted(folder.glob("*.py"), key=file_order):
        if path.name == "__init__.py":
            continue
        try:
            yield load_file(path, trust)
        except TaskError as error:
            yield TaskError(f"{path}: {error}")


def load_folder(folder: Path, trust: bool = False) -> tuple[Task, ...]:
    """Return the tasks of a folder's problem files. For each file that cannot be loaded, a warning says why."""
    results = list(load_all(folder, trust))
    reasons = [str(result) for result in results if isinstance(result, TaskError)]
    tasks = tuple(result for result in results if isinstance(result, Task))
    if not tasks:
        why = f": {'; '.join(reasons[:3])}" if reasons else ", it has no .py file"
        raise TaskError(f"no problem file in {str(folder)!r} could be loaded{why}")
    for reason in reasons:
        warnings.warn(f"left out: {reason}", TaskWarning, stacklevel=3)
    return tasks


def derive(source: str, trust: bool = False) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Derive cases and flags from a module's text."""
    original = dict(islice(find_sizes(source).items(), MOST_SIZES))
    module = _Module(source, trust)
    signature = module.signature(original)
    timing = _shrunk(module, original, TIMING_BYTES)
    public = _shrunk(module, timing, CHECK_BYTES)
    module.run(public)
    hidden = _hidden(module, public)
    cases = [_case("public", "public", public), *hidden, _case("timing", "timing", timing)]
    changed = {role: sizes for role, sizes in (("check", public), ("timing", timing)) if sizes != original}
    flags = [f"shrunk: {role} {_changes(original, sizes)}" for role, sizes in changed.items()]
    if signature.changes:
        flags.append(f"changes: {', '.join(signature.changes)} (their new values are outputs)")
    flags += [f"seeded: {place} draws the same numbers at every call" for place in signature.draws]
    if not hidden:
        flags.append("fixed-shape")
    if module.signature(public).nbytes > HIDDEN_BYTES < signature.nbytes:
        flags.append("large: no constant makes its check case small")
    return tuple(cases), tuple(flags)


def _cases(source: str, trust: bool) -> tuple[tuple[Case, ...], tuple[str, ...]]:
    """Return derived cases and flags, cached on disk because deriving them builds the module many times."""
    import torch

    key = hashlib.sha256(f"{VERSION} {torch.__version__} {source}".encode()).hexdigest()
    file = cache_folder() / "cases" / f"{key}.json"
    if not file.is_file():
        with warnings.catch_warnings():  # the module is built dozens of times and would repeat its warnings as often
            warnings.simplefilter("ignore")
            cases, flags = derive(source, trust)
        data = [[case.name, case.role, list(case.sizes)] for case in cases]
        write_whole(file, json.dumps({"cases": data, "flags": flags}))
    stored = json.loads(file.read_text())
    rows: list[Any] = stored["cases"]
    cases = tuple(Case(name, role, tuple((key, value) for key, value in sizes)) for name, role, sizes in rows)
    return cases, tuple(stored["flags"])


class _Module:
    """The module of a problem file at any sizes."""

    def __init__(self, source: str, trust: bool) -> None:
        self._source = source
        self._digest = hashlib.sha256(source.encode()).hexdigest()
        self._trust = trust
        self._deadline = time.monotonic() + DERIVE_SECONDS
        self._signatures: dict[tuple[tuple[str, int], ...], Signature] = {}

    def signature(self, sizes: dict[str, int]) -> Signature:
        """Return the signature at these sizes."""
        key = tuple(sizes.items())
        if key not in self._signatures:
            self._signatures[key] = self._at(Case("original", "timing", key)).signature
        return self._signatures[key]

    def run(self, sizes: dict[str, int]) -> None:
        """Run the module on real values: shapes alone do not show an index that is out of range."""
        self._at(Case("check", "public", tuple(sizes.items()))).run_example()

    def probe(self, sizes: dict[str, int]) -> Signature | None:
        """Return the signature at these sizes; None if the module does not work there."""
        try:
            signature = self.signature(sizes)
        except ProblemFileDied:
            raise
        except TaskError:
            return None
        return signature if all(spec.numel for spec in (*signature.inputs, *signature.outputs)) else None

    def runs(self, sizes: dict[str, int]) -> bool:
        """Return whether the module runs on real values at these sizes."""
        try:
            self.run(sizes)
        except ProblemFileDied:
            raise
        except TaskError:
            return False
        return True

    def _at(self, case: Case) -> ModuleInstance | ConfinedInstance:
        if time.monotonic() > self._deadline:
            raise ProblemFileDied(f"the problem file takes longer than {DERIVE_SECONDS:.0f} s to be tried at its sizes")
        if self._trust:
            from kernel_gym.tasks.instance import ModuleInstance

            return ModuleInstance(self._source, self._digest, case, ())
        from kernel_gym.tasks.confined_instance import ConfinedInstance

        return ConfinedInstance(self._source, self._digest, None, case)


def _shrunk(module: _Module, sizes: dict[str, int], limit: int) -> dict[str, int]:
    """Halve the largest constants that help until the tensors fit; stops early if nothing helps."""
    signature = module.signature(sizes)
    while signature.nbytes > limit:
        smaller = _halved(module, sizes, signature)
        if smaller is None:
            return sizes
        sizes, signature = smaller
    return sizes


def _halved(module: _Module, sizes: dict[str, int], before: Signature) -> tuple[dict[str, int], Signature] | None:
    """Halve one constant, or all equal ones if the module works with none of them alone.

    A constant that leads the module into another branch is halved only if no other helps.
    """
    branching = None
    large = {name: size for name, size in sizes.items() if size >= SMALLEST and not SETTINGS.search(name)}
    order = sorted(large, key=lambda name: -large[name])
    together = [[name for name in order if large[name] == size] for size in dict.fromkeys(large[n] for n in order)]
    for names in [*([name] for name in order), *(equal for equal in together if len(equal) > 1)]:
        trial = sizes | {name: sizes[name] // 2 for name in names}
        signature = module.probe(trial)
        if signature is None or signature.nbytes >= before.nbytes:
            continue
        if not _branches(signature, before):
            return trial, signature
        branching = branching or (trial, signature)
    return branching


def _branches(signature: Signature, before: Signature) -> bool:
    """Return whether the module takes another branch at these sizes, judged by the number of functions it calls.

    A branch changes that number a little: a block without a shortcut, for example, skips one convolution. A loop with
    half as many rounds changes it a lot and is no other branch.
    """
    return signature.calls != before.calls and 4 * signature.calls > 3 * before.calls


def _hidden(module: _Module, public: dict[str, int]) -> list[Case]:
    """Return up to three variants: all free constants odd, the first of them 1, and all of them other primes.

    Constants that are equal, such as height and width, differ in the last one if the module works there.
    """
    reference = module.signature(public)
    varied = [name for name, size in public.items() if size <= LARGEST_VARIED]
    free = [name for name in varied if _varies(module, public, name, _prime_near(public[name], 0), reference)]
    free = [name for name in free if not _is_loop(module, public, name, reference)]
    together = [{name: _prime_near(public[name], step) for name in free} for step in (0, 1)]
    together.insert(1, _different(together[1]))
    alone = [
        {name: value} for name in free for value in (1, _prime_near(public[name], 0), _prime_near(public[name], 1))
    ]
    variants: list[dict[str, int]] = []
    for change in [*together[:1], *alone[:1], *together[1:], *alone[1:]]:
        sizes = public | change
        if len(variants) < 3 and change and sizes not in variants and _agrees(module, sizes, reference):
            variants.append(sizes)
    return [_case(f"hidden-{position}", "hidden", sizes) for position, sizes in enumerate(variants, 1)]


def _different(sizes: dict[str, int]) -> dict[str, int]:
    """Return sizes of which no two are equal: the first ones stay, the others are the next primes."""
    different: dict[str, int] = {}
    for name, size in sizes.items():
        while size in different.values():
            size = _prime_near(size, 0)
        different[name] = size
    return different


def _is_loop(module: _Module, public: dict[str, int], name: str, reference: Signature) -> bool:
    """Return whether a constant counts the rounds of a loop: the module calls so many more operators in each.

    It is a number of layers, then: for every one of them there is another graph.
    """
    slopes = set()
    for step in (0, 1):
        value = _prime_near(public[name], step)
        signature = module.probe(public | {name: value})
        if value != public[name] and signature is not None:
            slopes.add((signature.calls - reference.calls) / (value - public[name]))
    return len(slopes) == 1 and slopes.pop() >= 1


def _varies(module: _Module, public: dict[str, int], name: str, value: int, reference: Signature) -> bool:
    return not SETTINGS.search(name) and _agrees(module, public | {name: value}, reference)


def _agrees(module: _Module, sizes: dict[str, int], reference: Signature) -> bool:
    """Return whether the module works at these sizes with the same parameters and with other tensors."""
    signature = module.probe(sizes)
    if signature is None or signature.nbytes > max(HIDDEN_BYTES, 2 * reference.nbytes):
        return False
    same_ranks = [len(spec.shape) for spec in signature.inputs] == [len(spec.shape) for spec in reference.inputs]
    if not (same_ranks and _state(signature) == _state(reference) and _shapes(signature) != _shapes(reference)):
        return False
    return module.runs(sizes)


def _state(signature: Signature) -> object:
    """Return what must stay the same: parameters, constants, attributes. Numbers that `forward` draws may be more."""
    drawn = [spec.origin == "constant" and bool(signature.draws) for spec in signature.inputs]
    kept = [
        (spec.name, len(spec.shape) if is_drawn else spec.shape)
        for spec, is_drawn in zip(signature.inputs, drawn, strict=True)
        if spec.origin != "argument"
    ]
    return kept, signature.ints, signature.floats


def _shapes(signature: Signature) -> object:
    return [spec.shape for spec in signature.inputs]


def _prime_near(value: int, step: int) -> int:
    """Return a prime other than `value`: the next above it at `step` 0, a prime well below it at 1."""
    candidate = value + 1 if step == 0 else max(2, value * 2 // 3)
    while any(candidate % divisor == 0 for divisor in range(2, int(candidate**0.5) + 1)):
        candidate += 1
    return candidate


def _case(name: str, role: Any, sizes: dict[str, int]) -> Case:
    return Case(name, role, tuple(sizes.items()))


def _changes(original: dict[str, int], sizes: dict[str, int]) -> str:
    return ", ".join(f"{name} {original[name]} to {sizes[name]}" for name in original if original[name] != sizes[name])


def check_form(source: str) -> None:
    """Raise a TaskError for a text that is no problem file, without running it: it says which form the text has."""
    tree = parse_module(source)
    imported = {name for node in ast.walk(tree) for name in _imported(node)}
    defined = {name for statement in tree.body for name in _defined(statement)}
    missing = [name for name in FORM if name not in defined]
    if not missing or "*" in defined:
        return
    if "torch_npu" in imported:
        raise TaskError(f"another form, NPUKernelBench's: it imports torch_npu and defines no {missing[0]}")
    kernel = " (it holds ModelNew: an answer, not a problem)" if "ModelNew" in defined else ""
    raise TaskError(
        f"the problem file defines no {missing[0]}; the format is Model, get_inputs(), get_init_inputs(){kernel}"
    )


def _imported(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [item.name.partition(".")[0] for item in node.names]
    return [node.module.partition(".")[0]] if isinstance(node, ast.ImportFrom) and node.module else []


def _defined(statement: ast.stmt) -> list[str]:
    """Return the names that a statement at the top of a module defines."""
    match statement:
        case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
            return [name]
        case ast.Import(names=names) | ast.ImportFrom(names=names):
            return [item.asname or item.name for item in names]
        case ast.Assign(targets=targets):
            return [node.id for target in targets for node in ast.walk(target) if isinstance(node, ast.Name)]
        case ast.If() | ast.Try() | ast.With():  # walked once, with all that is inside of it
            inner = (node for node in ast.walk(statement) if isinstance(node, ast.stmt))
            return [name for node in inner if not isinstance(node, _COMPOUND) for name in _defined(node)]
    return []


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise TaskError(f"the file is not UTF-8 text: byte {error.start} cannot be decoded") from error


def _category(path: Path) -> str:
    """Return the category that the folder names, as in MultiKernelBench; level 2 of KernelBench is fused chains."""
    folder = path.resolve().parent.name.lower()
    if folder in CATEGORIES:
        return folder
    return {"level2": "fuse", "level3": "arch"}.get(folder, "other")


def _level(path: Path) -> int | None:
    match = re.fullmatch(r"level(\d)", path.resolve().parent.name)
    return int(match[1]) if match else None


def file_order(path: Path) -> tuple[int, str]:
    """Return the key by which files are ordered: their numbers, then their names."""
    match = re.match(r"(\d+)", path.name)
    return (int(match[1]) if match else 10**9, path.name)
