"""Lowers a task to its plan, and remembers the plan in memory and on disk."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import lru_cache, partial
from math import gcd
from typing import Any

import torch

from kernel_gym import activity
from kernel_gym.authors.apprentice.frontend import plan_store
from kernel_gym.authors.apprentice.frontend.identifiers import task_identifier
from kernel_gym.authors.apprentice.frontend.plan import Nest, Plan, Taps, Unsupported
from kernel_gym.authors.apprentice.frontend.plan_builder import Shapes
from kernel_gym.authors.apprentice.frontend.reader import read
from kernel_gym.errors import TaskError
from kernel_gym.tasks.graph import Graph, Result
from kernel_gym.tasks.operator_registry import RECURRENT as RECURRENT_LAYERS
from kernel_gym.tasks.specs import Case
from kernel_gym.tasks.task import Task

RECURRENT = re.compile(r"\b(LSTM|GRU|RNN)\(")
#: Every step of a recurrent layer calls one of these.
STEPPED = ("aten.sigmoid.default", "aten.tanh.default", "aten.relu.default")
#: A size at an edge: a few more elements than a block of 64.
LARGE = 66


def lower(task: Task, *, expert: bool = False) -> Plan:
    """Return the plan of a task.

    Args:
        task: The task to lower.
        expert: True for the plan of an expert, with stages that the apprentice does not know.

    Returns:
        The plan: stages that compute the task's outputs for any of its shapes.

    Raises:
        Unsupported: The task uses an operator that the apprentice cannot lower; the message names it.
    """
    plan = _lower(task, task.digest, expert)
    if isinstance(plan, str):
        raise Unsupported(plan)
    return plan


@lru_cache(maxsize=1024)
def _lower(task: Task, digest: str, expert: bool) -> Plan | str:
    # The digest covers the content; the plan also has the name and the title.
    key = f"{digest} {task_identifier(task.name)} {task.description}{' expert' if expert else ''}"
    plan = plan_store.load(key)
    if plan is None:
        activity.prepare(f"exporting {task.id}")
        plan = _read(task, expert)
        plan_store.store(key, plan)
    return plan


def _read(task: Task, expert: bool) -> Plan | str:
    """Return the plan, or the reason why there is none."""
    signature = task.instance(task.public).signature
    name, names = task_identifier(task.name), [spec.name for spec in signature.inputs]
    shapes = [_shapes(task, case) for case in task.cases]
    steady = _steady(task)
    try:
        # The calls of recurrent layers follow the number of steps: where that varies, the layers stay whole.
        layers = not steady and bool(RECURRENT.search(task.source)) and _steps_vary(task)
        graph, twins = task.instance(task.public).graph(layers=layers), _twins(task, layers=layers)
        options: dict[str, Any] = {"steady": steady, "edges": _edges(task, len(names))}
        samples = partial(_samples, task)
        plan = read(graph, name, _title(task), shapes, twins, names, expert=expert, samples=samples, **options)
    except Unsupported as error:
        return str(error)
    except TaskError as error:
        return f"Unsupported: {error}"
    if expert and _reduces_rows(plan):
        with suppress(Unsupported):  # the workspace may be too small for the copy
            return read(graph, name, _title(task), shapes, twins, names, expert=True, compact=True, **options)
    if expert:
        return plan
    try:
        unfused = read(graph, name, _title(task), shapes, twins, names, fused=False, **options)
    except Unsupported:  # a value that is a view only as long as it is fused
        return plan
    return replace(plan, unfused=unfused) if len(unfused.stages) > len(plan.stages) else plan


def _steps_vary(task: Task) -> bool:
    """Return whether the number of steps of a recurrent layer changes from case to case."""
    cases = (task.public, *task.hidden)
    steps = [_steps(task.instance(case).graph(layers=True)) for case in cases]
    if not any(steps):
        graphs = (task.instance(case).graph() for case in cases)
        steps = [[sum(call.operator in STEPPED for call in graph.calls)] for graph in graphs]
    return any(numbers != steps[0] for numbers in steps)


def _steps(graph: Graph) -> list[int]:
    """Return the numbers of steps of the recurrent layers that read an argument of the module."""
    shapes = {Result(item.name): item.tensor.shape for item in graph.inputs if item.tensor}
    layers = [call for call in graph.calls if call.operator in RECURRENT_LAYERS]
    first = [(shapes[source], call) for call in layers if (source := call.arguments[0]) in shapes]
    return [shape[1 if call.arguments[-1] else 0] for shape, call in first]


def _samples(task: Task) -> tuple[int, ...]:
    """Return the inputs, by place, whose first dimension counts samples that do not depend on each other.

    It is tried at the public case: among other samples and in another place, each has to give the same result. Where
    their number is the same at all cases, sizes of views may have it as a number, and there are none.
    """
    instance = task.instance(task.public)
    inputs, outputs = instance.signature.inputs, instance.signature.outputs
    first = outputs[0].shape[:1]
    places = tuple(i for i, spec in enumerate(inputs) if spec.origin == "argument" and spec.shape[:1] == first)
    elsewhere = [_first_dimensions(task, case, places) for case in (*task.hidden, task.timing)]
    count = next(iter(first), 1)
    if count < 2 or not places or any(len(sizes) > 1 for sizes in elsewhere) or all(first in s for s in elsewhere):
        return ()
    values, others, half = instance.own_inputs(0), instance.own_inputs(1), count // 2
    mixed = [torch.cat((values[i][-half:], others[i][half:])) if i in places else v for i, v in enumerate(values)]
    pairs = zip(*(instance.evaluate(tensors, torch.float64) for tensors in (values, mixed)), strict=True)
    return places if all(torch.allclose(result[-half:], moved[:half]) for result, moved in pairs) else ()


def _first_dimensions(task: Task, case: Case, places: Sequence[int]) -> set[tuple[int, ...]]:
    """Return the first dimensions of the outputs and of some inputs at a case."""
    signature = task.instance(case).signature
    return {spec.shape[:1] for spec in (*(signature.inputs[place] for place in places), *signature.outputs)}


def _reduces_rows(plan: Plan) -> bool:
    """Return whether a stage reduces the results of a convolution by taps, which have gaps between their rows."""
    results = {stage.target for stage in plan.stages if isinstance(stage, Taps)}
    nests = [stage for stage in plan.stages if isinstance(stage, Nest) and stage.reductions]
    return any(step.access and step.access.buffer in results for nest in nests for step in nest.loads)


def _steady(task: Task) -> bool:
    """Return whether `forward` calls the same operators at all cases."""
    return len({task.instance(case).signature.structure for case in task.cases}) == 1


def _edges(task: Task, inputs: int) -> list[Shapes]:
    """Return the shapes of all inputs where one size is large and the others are as small as their common divisors.

    A kernel has to work there too, and intermediate results may have longer rows than at the task's own cases.
    """
    by_name = {name: [dict(case.sizes).get(name, 0) for case in task.cases] for name, _ in task.public.sizes}
    divisors = {name: gcd(*sizes) if len(set(sizes)) > 1 else sizes[0] for name, sizes in by_name.items()}
    shapes = []
    for name, sizes in by_name.items():
        if len(set(sizes)) > 1:
            large = -(-max(LARGE, max(sizes)) // divisors[name]) * divisors[name]
            case = Case("edge", "hidden", tuple((divisors | {name: large}).items()))
            with suppress(TaskError):
                shapes.append(_shapes(task, case))
    return [edge for edge in shapes if len(edge.inputs) == inputs]


def _shapes(task: Task, case: Case) -> Shapes:
    signature = task.instance(case).signature
    return Shapes(tuple(spec.shape for spec in signature.inputs), signature.ints)


def _twins(task: Task, *, layers: bool = False) -> list[Callable[[], Graph]]:
    """Return what exports the module at the other cases, beginning with the one at which most sizes differ.

    The timing case, at which all should, comes last.
    """
    others = (*task.hidden, task.timing)
    first = min(others, key=lambda case: len(set(case.sizes) & set(task.public.sizes)))
    cases = (first, *(case for case in others if case != first or case == task.timing))
    return [lru_cache(maxsize=1)(partial(task.instance(case).graph, layers=layers)) for case in cases]


def _title(task: Task) -> str:
    words = (task.description or task.name.replace("_", " ")).strip().splitlines()[0].rstrip(".")
    return f"{words}."
