"""Misreadings: plans that compute something else than the task asks.

A misreading changes the plan before the kernel is written, so it is the same in every language. The site of the change
is a property of the plan: an author who misreads a task again makes the same mistake again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from importlib import resources
from math import floor, isfinite, log10

import yaml

from kernel_gym.authors.apprentice.behaviour.idioms import Idiom
from kernel_gym.authors.apprentice.frontend.plan import Either, Nest, Pieces, Plan, Product, Ref, Scan, Stage, Step

#: The kinds of misreading.
KINDS = ("formula", "boundary", "precision")
#: What a misread formula computes in place of each function, with the same number of arguments.
_RESEMBLING = {
    "add": "sub",
    "sub": "add",
    "mul": "div",
    "div": "mul",
    "max": "min",
    "min": "max",
    "relu": "abs",
    "abs": "relu",
    "tanh": "sigmoid",
    "sigmoid": "tanh",
    "erf": "tanh",
}
#: Constants below this do not change a result visibly when their sign changes.
_VISIBLE = 1e-3


def misreading(kind: str) -> Idiom:
    """Return the idiom of a kind of misreading: `formula`, `boundary` or `precision`."""
    return _misreadings()[f"meaning.{kind}"]


@lru_cache(maxsize=1)
def _misreadings() -> dict[str, Idiom]:
    text = resources.files(__package__).joinpath("meaning.yaml").read_text()
    return {idiom.id: idiom for idiom in map(Idiom.model_validate, yaml.safe_load(text))}


@lru_cache(maxsize=4096)
def misread(plan: Plan, kind: str) -> Plan | None:
    """Return the plan as an author of this misreading understands it; None if the plan cannot be misread so."""
    change = {"formula": _other_formula, "boundary": _without_tail, "precision": _rounded}[kind]
    stages = _changed(plan.stages, change)
    if stages is None:
        return None
    unfused = plan.unfused and (misread(plan.unfused, kind) or plan.unfused)
    return replace(plan, stages=stages, unfused=unfused)


def _changed(stages: tuple[Stage, ...], change: Callable[[Stage], Stage | None]) -> tuple[Stage, ...] | None:
    """Return the stages with the last one that can be changed; None if none can."""
    for index in reversed(range(len(stages))):
        stage = _changed_within(stages[index], change)
        if stage is not None:
            return (*stages[:index], stage, *stages[index + 1 :])
    return None


def _changed_within(stage: Stage, change: Callable[[Stage], Stage | None]) -> Stage | None:
    match stage:
        case Either():
            # Both ways of computing the result are misread alike, or neither.
            cube = _changed(stage.cube, change)
            vector = change(stage.vector)
            return replace(stage, cube=cube, vector=vector) if cube and vector else None  # type: ignore[arg-type]
        case Pieces():
            products = _changed(tuple(part for part in stage.stages if isinstance(part, Product)), change)
            if not products:
                return None
            changed = iter(products)
            parts = tuple(next(changed) if isinstance(part, Product) else part for part in stage.stages)
            return replace(stage, stages=parts)  # type: ignore[arg-type]
    return change(stage)


def _other_formula(stage: Stage) -> Stage | None:
    """Replace the last function that has one which resembles it."""
    match stage:
        case Scan():
            return replace(stage, function="prod" if stage.function == "sum" else "sum")
        case Nest():
            for index, step in reversed(list(enumerate(stage.steps))):
                if _matters(step):
                    return _with_step(stage, index, replace(step, function=_RESEMBLING[step.function]))
    return None


def _matters(step: Step) -> bool:
    """Return whether the step's function can be replaced and the replacement changes the result visibly."""
    numbers = [abs(argument) for argument in step.arguments if not isinstance(argument, Ref)]
    plain = step.function in _RESEMBLING and not (step.access or step.reduction or step.field or step.idiom)
    return plain and all(number > _VISIBLE and number != 1 and isfinite(number) for number in numbers)


def _without_tail(stage: Stage) -> Stage | None:
    """Leave out the last eighth of the innermost loop, and at least one element."""
    match stage:
        case Nest():
            return _with_fields(stage, stage.vector)
        case Scan():
            return _with_fields(stage, "axis")
        case Product():
            return replace(stage, k=_shortened(stage.k))
    return None


def _with_fields(stage: Nest | Scan, name: str) -> Stage | None:
    fields = tuple((field, _shortened(text) if field == name else text) for field, text in stage.fields)
    return replace(stage, fields=fields) if fields != stage.fields else None


def _shortened(size: str) -> str:
    return f"({size}) - (({size}) > 1) * (({size}) / 8 + (({size}) < 8))"


def _rounded(stage: Stage) -> Stage | None:
    """Round the constants to one digit."""
    if not isinstance(stage, Nest):
        return None
    for index, step in reversed(list(enumerate(stage.steps))):
        arguments = tuple(item if isinstance(item, Ref) else _one_digit(item) for item in step.arguments)
        if arguments != step.arguments and not step.idiom:
            return _with_step(stage, index, replace(step, arguments=arguments))
    return None


def _one_digit(number: float) -> float:
    """Return the number with one significant digit, if it is a constant of a formula and this changes it visibly."""
    if not isfinite(number) or abs(number) < _VISIBLE:
        return number
    rounded = round(number, -floor(log10(abs(number))))
    return rounded if abs(rounded - number) > _VISIBLE * abs(number) else number


def _with_step(nest: Nest, index: int, step: Step) -> Nest:
    return replace(nest, steps=(*nest.steps[:index], step, *nest.steps[index + 1 :]))
